/** Transfers: what a sender signs to move value [FP §4.2]. */

import { accountFromEthereum, ZERO_ACCOUNT, type AccountId } from "./accounts.js";
import { AMOUNT_MAX, SEQUENCE_MAX } from "./amounts.js";
import { isHex, type Address, type Hex } from "./bytes.js";
import { FastPayError } from "./errors.js";

/** The asset that is the Primary's own coin; an ERC-20 is named by its address. */
export const ETHER: Address = `0x${"0".repeat(40)}`;

/** The deployment for which something is signed. Nothing signed for one deployment is valid in another. */
export interface Domain {
  /** The chain's id (EIP-155); 0 without a Primary. */
  readonly chainId: bigint;
  /** The contract's address. */
  readonly contract: Address;
}

interface TransferFields {
  /** Whose balance is debited. */
  readonly sender: AccountId;
  /** What is moved: an ERC-20's address in lower case, or `ETHER`. */
  readonly asset: Address;
  /** How much is debited, in the asset's smallest unit. */
  readonly amount: bigint;
  /** The sender's number of this order, from 0 without gap. */
  readonly sequence: bigint;
  /** Free for the user; see `encodeMemo`. */
  readonly memo: Hex;
}

/** Moves `amount` to another FastPay account. */
export interface Payment extends TransferFields {
  readonly type: "payment";
  /** Who is paid. */
  readonly recipient: AccountId;
}

/** Moves `amount` out: the recipient gets `amount − fee`, and whoever submits the certificate gets `fee`. */
export interface Redemption extends TransferFields {
  readonly type: "redemption";
  /** Who is paid on the Primary. */
  readonly recipient: Address;
  /** The part of `amount` that goes to whoever brings it to the contract. */
  readonly fee: bigint;
}

/** What an order asks for. */
export type Transfer = Payment | Redemption;

/** The proof that the owner of the sender's account ordered a transfer. */
export type Authorization =
  | { readonly type: "ed25519"; readonly key: Hex; readonly signature: Hex }
  | { readonly type: "ethereum"; readonly signature: Hex };

/** A transfer and its owner's authorization, not yet checked. */
export interface TransferOrder {
  readonly transfer: Transfer;
  readonly authorization: Authorization;
}

/** Checks the rules that a transfer can break all by itself. Throws `invalid-transfer`. */
export function checkTransfer(transfer: Transfer, domain: Domain): void {
  const { amount, sequence } = transfer;
  if (amount <= 0n) throw invalid("the amount is zero", "order at least one of the asset's smallest unit");
  if (amount > AMOUNT_MAX) throw invalid("the amount has more than 128 bits", "order less");
  if (sequence < 0n || sequence > SEQUENCE_MAX) throw invalid("the sequence number cannot be used", "ask for the next");
  if (!isHex(transfer.asset, 20)) throw invalid("the asset is no address", "give the token's address");
  if (!isHex(transfer.memo, 32)) throw invalid("the memo has not 32 bytes", "use encodeMemo");
  const recipient = transfer.type === "payment" ? transfer.recipient : accountFromEthereum(transfer.recipient);
  if (!isHex(recipient, 32) || !isHex(transfer.sender, 32)) {
    throw invalid("an account has not 32 bytes", "use parseAccount");
  }
  if (recipient === ZERO_ACCOUNT) {
    throw invalid("the recipient is the zero address, which nobody owns", "give the recipient's account");
  }
  if (recipient === accountFromEthereum(domain.contract)) {
    throw invalid("the recipient is the FastPay contract itself, which cannot spend", "give the recipient's account");
  }
  if (transfer.type === "redemption" && (transfer.fee < 0n || transfer.fee > amount)) {
    throw invalid(`the fee ${transfer.fee} is above the amount ${amount}`, "lower the fee");
  }
}

function invalid(message: string, action: string): FastPayError {
  return new FastPayError("invalid-transfer", message, action);
}
