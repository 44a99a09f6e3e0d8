/** Transfers: the statements that a sender signs to move value [FP §4.2]. */

import { accountFromEthereum, PRIVATE_POOL, ZERO_ACCOUNT, type AccountId } from "./accounts.js";
import { AMOUNT_MAX, SEQUENCE_MAX } from "./amounts.js";
import { isHex, type Address, type Hex } from "./bytes.js";
import { FastPayError } from "./errors.js";

/** The asset ETH: the Primary's native currency. Any other asset is an ERC-20's address. */
export const ETHER: Address = `0x${"0".repeat(40)}`;

/** A deployment. A signature for one deployment is invalid in every other. */
export interface Domain {
  /** The chain's id (EIP-155); 0 without a Primary. */
  readonly chainId: bigint;
  /** The contract's address. */
  readonly contract: Address;
}

interface TransferFields {
  /** The debited account. */
  readonly sender: AccountId;
  /** The asset: an ERC-20's address in lower case, or `ETHER`. */
  readonly asset: Address;
  /** The sequence number of the order. A sender's numbers start at 0 and have no gaps. */
  readonly sequence: bigint;
  /** Chosen by the sender; see `encodeMemo`. */
  readonly memo: Hex;
}

/** Moves `amount` to another FastPay account. */
export interface Payment extends TransferFields {
  readonly type: "payment";
  /** The recipient. */
  readonly recipient: AccountId;
  /** The amount, in the asset's smallest unit. */
  readonly amount: bigint;
}

/** Redeems `amount`: the recipient gets `amount − fee`, and the account that submits the certificate gets `fee`. */
export interface Redemption extends TransferFields {
  readonly type: "redemption";
  /** The recipient on the Primary. */
  readonly recipient: Address;
  /** The debited amount, in the asset's smallest unit. */
  readonly amount: bigint;
  /** The part of `amount` that pays the account that submits the redemption. */
  readonly fee: bigint;
}

/** The maximum number of outputs in a payout. */
export const PAYOUT_OUTPUTS_MAX = 256;

/** One payment of a payout. */
export interface Output {
  /** The recipient. */
  readonly recipient: AccountId;
  /** The amount, in the asset's smallest unit. */
  readonly amount: bigint;
  /** Chosen by the sender; see `encodeMemo`. */
  readonly memo: Hex;
}

/** Pays up to `PAYOUT_OUTPUTS_MAX` FastPay accounts, entirely or not at all. A recipient may occur several times. */
export interface Payout extends TransferFields {
  readonly type: "payout";
  readonly outputs: readonly Output[];
}

/** The transfer of an order. */
export type Transfer = Payment | Redemption | Payout;

/** The amount that a transfer debits, in the asset's smallest unit. */
export function amountOf(transfer: Transfer): bigint {
  return transfer.type === "payout" ? sumOf(transfer.outputs) : transfer.amount;
}

/**
 * The payment that a transfer makes to a FastPay account: a payment itself, or a payout's output with the number
 * `output`, from 0. Undefined if there is no such payment. The payment of an output has no digest of its own: use that
 * of the payout.
 */
export function paymentIn(transfer: Transfer, output?: number): Payment | undefined {
  if (transfer.type === "payment") return output === undefined ? transfer : undefined;
  const paid = transfer.type === "payout" && output !== undefined ? transfer.outputs[output] : undefined;
  if (paid === undefined) return undefined;
  const { sender, asset, sequence } = transfer;
  return { type: "payment", sender, asset, sequence, ...paid };
}

function sumOf(outputs: readonly Output[]): bigint {
  return outputs.reduce((sum, { amount }) => sum + amount, 0n);
}

/** The proof that the owner of the sender's account ordered a transfer. */
export type Authorization =
  | { readonly type: "ed25519"; readonly key: Hex; readonly signature: Hex }
  | { readonly type: "ethereum"; readonly signature: Hex };

/** A transfer and its owner's authorization, not yet checked. */
export interface TransferOrder {
  readonly transfer: Transfer;
  readonly authorization: Authorization;
}

/** A fault of a transfer, independent of the signature. */
export type TransferFault =
  | "zero-amount"
  | "amount-too-large"
  | "sequence"
  /** A field has the wrong type. */
  | "malformed"
  /** Nobody could spend money of this recipient: the zero address, or the FastPay contract. */
  | "forbidden-recipient"
  | "fee-above-amount"
  | "no-outputs"
  | "too-many-outputs"
  /** The outputs' amounts have a sum of more than 128 bits. */
  | "sum-too-large";

/**
 * Checks all rules that depend on the transfer alone. Throws `invalid-transfer`, with the `TransferFault` in
 * `details.fault` and the number of a bad output in `details.output`.
 */
export function checkTransfer(transfer: Transfer, domain: Domain): void {
  const { sequence } = transfer;
  if (sequence < 0n || sequence > SEQUENCE_MAX) {
    throw invalid("sequence", "the sequence number cannot be used", "ask for the next");
  }
  if (!isHex(transfer.asset, 20)) throw invalid("malformed", "the asset is not an address", "give the token's address");
  if (!isHex(transfer.memo, 32)) throw invalid("malformed", "the memo has not 32 bytes", "use encodeMemo");
  if (!isHex(transfer.sender, 32)) throw invalid("malformed", "the sender is not an account", "use parseAccount");
  switch (transfer.type) {
    case "payment":
      checkPaid(transfer.recipient, transfer.amount, domain);
      break;
    case "redemption": {
      const { recipient, amount, fee } = transfer;
      if (!isHex(recipient, 20)) throw invalid("malformed", "the recipient is not an address", "give an Ethereum address");
      checkPaid(accountFromEthereum(recipient), amount, domain);
      if (fee < 0n || fee > amount) {
        throw invalid("fee-above-amount", "the fee exceeds the amount", "lower the fee");
      }
      break;
    }
    case "payout":
      checkOutputs(transfer.outputs, domain);
  }
}

function checkOutputs(outputs: readonly Output[], domain: Domain): void {
  const { length } = outputs;
  if (length === 0) throw invalid("no-outputs", "the payout has no output", "give at least one");
  if (length > PAYOUT_OUTPUTS_MAX) {
    const message = `the payout has ${length} outputs; at most ${PAYOUT_OUTPUTS_MAX} fit into one order`;
    throw invalid("too-many-outputs", message, "split it");
  }
  for (const [output, { recipient, amount, memo }] of outputs.entries()) {
    if (!isHex(memo, 32)) throw invalid("malformed", "the memo has not 32 bytes", "use encodeMemo", output);
    checkOutput(recipient, amount, domain, output);
  }
  if (sumOf(outputs) > AMOUNT_MAX) {
    throw invalid("sum-too-large", "the sum of the outputs has more than 128 bits", "split the payout");
  }
}

/**
 * Checks one output of a payout, whose number is `output`, or a new payment. Authorities refuse payments to the pool of
 * private payments unless their memo makes a coin, and payouts to it. Throws `invalid-transfer`.
 */
export function checkOutput(recipient: AccountId, amount: bigint, domain: Domain, output?: number): void {
  checkPaid(recipient, amount, domain, output);
  if (recipient === PRIVATE_POOL) {
    const message = "the recipient is the pool of private payments";
    throw invalid("forbidden-recipient", message, "give the recipient's account", output);
  }
}

/** Checks a recipient and an amount; `output` is the number in a payout. Throws `invalid-transfer`. */
function checkPaid(recipient: AccountId, amount: bigint, domain: Domain, output?: number): void {
  if (amount <= 0n) {
    throw invalid("zero-amount", "the amount is zero", "order at least one of the asset's smallest unit", output);
  }
  if (amount > AMOUNT_MAX) throw invalid("amount-too-large", "the amount has more than 128 bits", "order less", output);
  if (!isHex(recipient, 32)) throw invalid("malformed", "the recipient is not an account", "use parseAccount", output);
  const action = "give the recipient's account";
  if (recipient === ZERO_ACCOUNT) {
    throw invalid("forbidden-recipient", "the recipient is the zero address, which nobody owns", action, output);
  }
  if (recipient === accountFromEthereum(domain.contract)) {
    const message = "the recipient is the FastPay contract itself, which cannot spend";
    throw invalid("forbidden-recipient", message, action, output);
  }
}

function invalid(fault: TransferFault, message: string, action: string, output?: number): FastPayError {
  const where = output === undefined ? message : `output ${output}: ${message}`;
  const details = { fault, ...(output === undefined ? {} : { output }) };
  return new FastPayError("invalid-transfer", where, action, { details });
}
