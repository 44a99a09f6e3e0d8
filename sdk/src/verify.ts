/** Verifies orders and votes. Verified values have their own types, which only verification returns. */

import { accountFromEd25519, ethereumAddressOf, type AccountId } from "./accounts.js";
import type { Hex } from "./bytes.js";
import { memberOf, type AuthorityName, type Committee } from "./committee.js";
import { paymentVoteDigest, redemptionVoteDigest, transferDigest } from "./eip712.js";
import { FastPayError } from "./errors.js";
import { merkleRoot, type MerklePath } from "./merkle.js";
import { isEd25519Signature, recoverSigner } from "./signatures.js";
import { checkTransfer, type Authorization, type Domain, type Transfer, type TransferOrder } from "./transfer.js";

declare const verified: unique symbol;

/** A transfer order with a verified signature of its owner. */
export interface VerifiedOrder extends TransferOrder {
  /** The digest that the sender signed. It identifies the order. */
  readonly digest: Hex;
  readonly [verified]: "order";
}

/**
 * One authority's vote, not yet checked: on the Merkle root of a batch of payments and payouts, or on one redemption.
 */
export type Vote =
  | ({ readonly type: "payment"; readonly authority: AuthorityName; readonly signature: Hex } & MerklePath)
  | { readonly type: "redemption"; readonly authority: AuthorityName; readonly signature: Hex };

/** The reason why a vote does not count. */
export type VoteFault = "not-a-member" | "wrong-kind" | "path" | "signature";

/** True if the owner of an account signed a digest. */
export function isAuthorized(authorization: Authorization, account: AccountId, digest: Hex): boolean {
  if (authorization.type === "ed25519") {
    return accountFromEd25519(authorization.key) === account && isEd25519Signature(authorization.signature, digest, authorization.key);
  }
  const owner = ethereumAddressOf(account);
  return owner !== undefined && recoverSigner(authorization.signature, digest) === owner.toLowerCase();
}

/** Verifies an order as far as possible without the account's state. Throws `invalid-transfer` or `invalid-order`. */
export function verifyOrder(order: TransferOrder, domain: Domain): VerifiedOrder {
  checkTransfer(order.transfer, domain);
  const digest = transferDigest(domain, order.transfer);
  const { sender } = order.transfer;
  const { authorization } = order;
  if (authorization.type === "ed25519") {
    if (accountFromEd25519(authorization.key) !== sender) throw wrongKey(sender);
    if (!isEd25519Signature(authorization.signature, digest, authorization.key)) throw badSignature(sender);
  } else {
    const owner = ethereumAddressOf(sender);
    if (owner === undefined) throw wrongKey(sender);
    if (recoverSigner(authorization.signature, digest) !== owner.toLowerCase()) throw badSignature(sender);
  }
  return { ...order, digest } as VerifiedOrder;
}

/**
 * Why `vote` is not a valid vote of a committee member for the payment or payout of this digest; undefined if it is.
 */
export function paymentVoteFault(vote: Vote, committee: Committee, domain: Domain, digest: Hex): VoteFault | undefined {
  if (memberOf(committee, vote.authority) === undefined) return "not-a-member";
  if (vote.type !== "payment") return "wrong-kind";
  const root = merkleRoot(digest, vote);
  if (root === undefined) return "path";
  const signed = paymentVoteDigest(domain, committee.epoch, root);
  return isEd25519Signature(vote.signature, signed, vote.authority) ? undefined : "signature";
}

/** The statement that authorities sign to vote for a transfer. */
export interface Ballot {
  readonly transfer: Transfer;
  readonly digest: Hex;
}

/** Why `vote` is not a valid vote of a committee member for this ballot; undefined if it is. */
export function voteFault(vote: Vote, committee: Committee, domain: Domain, ballot: Ballot): VoteFault | undefined {
  const { transfer } = ballot;
  if (transfer.type !== "redemption") return paymentVoteFault(vote, committee, domain, ballot.digest);
  const found = memberOf(committee, vote.authority);
  if (found === undefined) return "not-a-member";
  if (vote.type !== "redemption") return "wrong-kind";
  const digest = redemptionVoteDigest(domain, committee.epoch, transfer);
  return recoverSigner(vote.signature, digest) === found.member.redemptionKey ? undefined : "signature";
}

/** One authority's vote for the contract, not yet checked: for a batch of redemptions, or about a number to unlock. */
export interface BatchVote {
  readonly authority: AuthorityName;
  readonly signature: Hex;
}

/** The first of the votes in the order of their signers' names, as the contract demands it. */
export function firstVotes(votes: ReadonlyMap<AuthorityName, BatchVote>, count: number): BatchVote[] {
  return [...votes.values()].sort((a, b) => (a.authority < b.authority ? -1 : 1)).slice(0, count);
}

/** Why `vote` is not a valid vote of a committee member on this digest; undefined if it is. */
export function batchVoteFault(vote: BatchVote, committee: Committee, digest: Hex): VoteFault | undefined {
  const found = memberOf(committee, vote.authority);
  if (found === undefined) return "not-a-member";
  return recoverSigner(vote.signature, digest) === found.member.redemptionKey ? undefined : "signature";
}

/**
 * Whether the authority with this `name` may return a vote of `voter`. If its name is unknown or of an earlier epoch,
 * the signature alone suffices.
 */
export function mayVoteFor(committee: Committee, name: AuthorityName | undefined, voter: AuthorityName): boolean {
  return name === undefined || name === voter || memberOf(committee, name) === undefined;
}

function wrongKey(sender: string): FastPayError {
  const message = `the key does not own account ${sender}`;
  return new FastPayError("invalid-order", message, "sign with the key of the sending account");
}

function badSignature(sender: string): FastPayError {
  const message = `the signature of account ${sender} is not valid for this order in this deployment`;
  return new FastPayError("invalid-order", message, "sign the unchanged order again");
}
