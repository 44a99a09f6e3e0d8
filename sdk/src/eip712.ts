/** The signed statements: EIP-712 typed structs under one domain, hashed as by the contract and the authorities. */

import {
  concat as concatHex,
  domainSeparator,
  encodeAbiParameters,
  hashStruct,
  hashTypedData,
  keccak256,
  stringToHex,
  type TypedDataDefinition,
} from "viem";

import type { AccountId } from "./accounts.js";
import { lower, type Hex } from "./bytes.js";
import type { Checkpoint } from "./archive/checkpoint.js";
import type { MemberEndpoint as EndpointFields } from "./member-endpoints.js";
import type { Domain, Output, Payment, Payout, Redemption, Transfer } from "./transfer.js";

/** The Solidity structs, by name. */
export const STATEMENTS = {
  Payment: [
    { name: "sender", type: "bytes32" },
    { name: "recipient", type: "bytes32" },
    { name: "asset", type: "address" },
    { name: "amount", type: "uint128" },
    { name: "sequence", type: "uint64" },
    { name: "memo", type: "bytes32" },
  ],
  Redemption: [
    { name: "sender", type: "bytes32" },
    { name: "recipient", type: "address" },
    { name: "asset", type: "address" },
    { name: "amount", type: "uint128" },
    { name: "fee", type: "uint128" },
    { name: "sequence", type: "uint64" },
    { name: "memo", type: "bytes32" },
  ],
  Payout: [
    { name: "sender", type: "bytes32" },
    { name: "asset", type: "address" },
    { name: "outputs", type: "Output[]" },
    { name: "sequence", type: "uint64" },
    { name: "memo", type: "bytes32" },
  ],
  Output: [
    { name: "recipient", type: "bytes32" },
    { name: "amount", type: "uint128" },
    { name: "memo", type: "bytes32" },
  ],
  PaymentVote: [
    { name: "epoch", type: "uint64" },
    { name: "root", type: "bytes32" },
  ],
  RedemptionVote: [
    { name: "epoch", type: "uint64" },
    { name: "redemption", type: "Redemption" },
  ],
  RedemptionBatchVote: [
    { name: "epoch", type: "uint64" },
    { name: "redemptionsHash", type: "bytes32" },
  ],
  UnlockRequest: [
    { name: "account", type: "bytes32" },
    { name: "sequence", type: "uint64" },
  ],
  CertificateVote: [
    { name: "epoch", type: "uint64" },
    { name: "account", type: "bytes32" },
    { name: "sequence", type: "uint64" },
    { name: "digest", type: "bytes32" },
  ],
  VoidVote: [
    { name: "epoch", type: "uint64" },
    { name: "account", type: "bytes32" },
    { name: "sequence", type: "uint64" },
    { name: "unanimous", type: "bool" },
  ],
  CheckpointVote: [
    { name: "epoch", type: "uint64" },
    { name: "number", type: "uint64" },
    { name: "previous", type: "bytes32" },
    { name: "transactionIndex", type: "uint64" },
    { name: "cut", type: "bytes32" },
    { name: "state", type: "bytes32" },
    { name: "segment", type: "bytes32" },
  ],
  MemberEndpoint: [
    { name: "number", type: "uint64" },
    { name: "shards", type: "string[]" },
    { name: "http", type: "string" },
    { name: "tlsCa", type: "string" },
  ],
} as const;

const { Payment, Redemption, Payout, Output, PaymentVote, RedemptionVote, RedemptionBatchVote } = STATEMENTS;
const { UnlockRequest, CertificateVote, VoidVote, CheckpointVote, MemberEndpoint } = STATEMENTS;

function domainOf({ chainId, contract }: Domain) {
  // Some wallets compare the id with that of their own chain, which is a number and not a bigint.
  const id = chainId <= Number.MAX_SAFE_INTEGER ? Number(chainId) : chainId;
  return { name: "FastPay", version: "1", chainId: id, verifyingContract: contract } as const;
}

/**
 * The fields of a transfer that are signed: without `type`, which is not part of the struct. Addresses in lower case.
 */
function message<T extends Payment | Redemption>(transfer: T): Omit<T, "type"> {
  const { type: _, ...fields } = transfer;
  return { ...fields, asset: lower(fields.asset), recipient: lower(fields.recipient) };
}

/** The typed data of a transfer, which an Ethereum wallet shows and signs (`eth_signTypedData_v4`). */
export function transferTypedData(domain: Domain, transfer: Transfer): TypedDataDefinition {
  switch (transfer.type) {
    case "payment":
      return { domain: domainOf(domain), types: { Payment }, primaryType: "Payment", message: message(transfer) };
    case "redemption":
      return { domain: domainOf(domain), types: { Redemption }, primaryType: "Redemption", message: message(transfer) };
    case "payout": {
      const { sender, asset, outputs, sequence, memo } = transfer;
      const fields = { sender, asset: lower(asset), outputs, sequence, memo };
      return { domain: domainOf(domain), types: { Payout, Output }, primaryType: "Payout", message: fields };
    }
  }
}

/** The digest that a sender signs to order `transfer`. It identifies the transfer. */
export function transferDigest(domain: Domain, transfer: Transfer): Hex {
  return hashTypedData(transferTypedData(domain, transfer));
}

/** The struct hash of one output of a payout. */
export function outputHash({ recipient, amount, memo }: Output): Hex {
  return hashStruct({ types: { Output }, primaryType: "Output", data: { recipient, amount, memo } });
}

/** The digest of a payout, computed from the hashes of its outputs in their order. */
export function payoutDigest(domain: Domain, payout: Omit<Payout, "type" | "outputs">, hashes: readonly Hex[]): Hex {
  const words = [{ type: "bytes32" }, { type: "bytes32" }, { type: "address" }, { type: "bytes32" }] as const;
  const typeHash = keccak256(stringToHex(`${structText("Payout")}${structText("Output")}`));
  const { sender, asset, sequence, memo } = payout;
  const struct = encodeAbiParameters(
    [...words, { type: "uint64" }, { type: "bytes32" }],
    [typeHash, sender, lower(asset), keccak256(concatHex(hashes)), sequence, memo],
  );
  return keccak256(concatHex(["0x1901", domainSeparator({ domain: domainOf(domain) }), keccak256(struct)]));
}

/** The EIP-712 type encoding of a struct, without the structs that it refers to. */
function structText(name: "Payout" | "Output"): string {
  return `${name}(${STATEMENTS[name].map((field) => `${field.type} ${field.name}`).join(",")})`;
}

/** The digest that an authority's Ed25519 key signs to vote for all payments under a Merkle root. */
export function paymentVoteDigest(domain: Domain, epoch: bigint, root: Hex): Hex {
  const types = { PaymentVote };
  return hashTypedData({ domain: domainOf(domain), types, primaryType: "PaymentVote", message: { epoch, root } });
}

/** The digest that an authority's secp256k1 key signs to vote for one redemption. */
export function redemptionVoteDigest(domain: Domain, epoch: bigint, redemption: Redemption): Hex {
  return hashTypedData({
    domain: domainOf(domain),
    types: { RedemptionVote, Redemption },
    primaryType: "RedemptionVote",
    message: { epoch, redemption: message(redemption) },
  });
}

/** The digest that an authority's secp256k1 key signs to vote for many redemptions at once, in this order. */
export function redemptionBatchVoteDigest(domain: Domain, epoch: bigint, redemptions: readonly Redemption[]): Hex {
  const hashes = redemptions.map((redemption) =>
    hashStruct({ types: { Redemption }, primaryType: "Redemption", data: message(redemption) }),
  );
  return hashTypedData({
    domain: domainOf(domain),
    types: { RedemptionBatchVote },
    primaryType: "RedemptionBatchVote",
    message: { epoch, redemptionsHash: keccak256(concatHex(hashes)) },
  });
}

/** The typed data that an owner signs to ask the contract to unlock a number. */
export function unlockTypedData(domain: Domain, account: AccountId, sequence: bigint): TypedDataDefinition {
  return { domain: domainOf(domain), types: { UnlockRequest }, primaryType: "UnlockRequest", message: { account, sequence } };
}

/** The digest that an owner signs to ask the contract to unlock a number. */
export function unlockRequestDigest(domain: Domain, account: AccountId, sequence: bigint): Hex {
  return hashTypedData(unlockTypedData(domain, account, sequence));
}

/**
 * The digest that an authority's secp256k1 key signs to attest that a number's order with this `digest` is certified.
 */
export function certificateVoteDigest(domain: Domain, epoch: bigint, account: AccountId, sequence: bigint, digest: Hex): Hex {
  const message = { epoch, account, sequence, digest };
  return hashTypedData({ domain: domainOf(domain), types: { CertificateVote }, primaryType: "CertificateVote", message });
}

/**
 * The digest that an authority's secp256k1 key signs to void a number; `unanimous` counts only with the votes of all
 * members.
 */
export function voidVoteDigest(domain: Domain, epoch: bigint, account: AccountId, sequence: bigint, unanimous: boolean): Hex {
  const message = { epoch, account, sequence, unanimous };
  return hashTypedData({ domain: domainOf(domain), types: { VoidVote }, primaryType: "VoidVote", message });
}

/** The digest that an authority's Ed25519 key signs to certify a checkpoint, and that identifies the checkpoint. */
export function checkpointDigest(domain: Domain, checkpoint: Checkpoint): Hex {
  const types = { CheckpointVote };
  return hashTypedData({ domain: domainOf(domain), types, primaryType: "CheckpointVote", message: { ...checkpoint } });
}

/** The digest that a member's Ed25519 key signs to say where it can be reached. */
export function memberEndpointDigest(
  domain: Domain,
  { number, shards, http = "", tlsCa = "" }: Omit<EndpointFields, "authority" | "signature">,
): Hex {
  const message = { number, shards, http, tlsCa };
  return hashTypedData({ domain: domainOf(domain), types: { MemberEndpoint }, primaryType: "MemberEndpoint", message });
}
