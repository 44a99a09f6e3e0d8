/** The authorities of one epoch, and their quorum. */

import { isHex, lower, type Address, type Hex } from "./bytes.js";
import { FastPayError } from "./errors.js";

/** The smallest committee that tolerates a Byzantine member. */
export const COMMITTEE_SIZE_MIN = 4;
/** The largest committee: a member's index is one byte in the votes that the contract reads. */
export const COMMITTEE_SIZE_MAX = 255;

/** An authority's Ed25519 verification key, which is its name: 32 bytes, lower case. */
export type AuthorityName = Hex;

/** One member of a committee, by its public keys. */
export interface Authority {
  /** The Ed25519 key that votes on payments. */
  readonly votingKey: AuthorityName;
  /** The Ethereum address of the secp256k1 key that votes on redemptions, in lower case. */
  readonly redemptionKey: Address;
}

declare const checked: unique symbol;

/** The authorities of one epoch, each with one vote, in the order of their names. `makeCommittee` creates it. */
export interface Committee {
  readonly epoch: bigint;
  readonly members: readonly Authority[];
  /** The number of members that may be Byzantine: f = ⌊(n − 1) / 3⌋. */
  readonly faultsTolerated: number;
  /**
   * The quorum: ⌊(n + f) / 2⌋ + 1, which is 2f + 1 for n = 3f + 1. For every n, any two quorums share an honest member,
   * and the honest members form a quorum.
   */
  readonly quorum: number;
  readonly [checked]: true;
}

/** A committee of the given members, in any order. Throws `invalid-committee`. */
export function makeCommittee(epoch: bigint, authorities: readonly Authority[]): Committee {
  const size = authorities.length;
  if (size < COMMITTEE_SIZE_MIN || size > COMMITTEE_SIZE_MAX) {
    throw unfit(`a committee has ${COMMITTEE_SIZE_MIN} to ${COMMITTEE_SIZE_MAX} authorities, not ${size}`);
  }
  const members = authorities.map(({ votingKey, redemptionKey }) => {
    if (!isHex(votingKey, 32) || !isHex(redemptionKey, 20)) throw unfit("a key is malformed");
    if (/^0x0*$/.test(votingKey) || /^0x0*$/.test(redemptionKey)) throw unfit(`authority ${votingKey} has a zero key`);
    return { votingKey: lower(votingKey), redemptionKey: lower(redemptionKey) };
  });
  members.sort((a, b) => (a.votingKey < b.votingKey ? -1 : 1));
  if (new Set(members.map((member) => member.votingKey)).size < size) throw unfit("an authority is listed twice");
  if (new Set(members.map((member) => member.redemptionKey)).size < size) {
    throw unfit("a redemption key is listed twice");
  }
  const committee: Omit<Committee, typeof checked> = { epoch, members, ...thresholdsOf(size) };
  return committee as Committee;
}

/** The thresholds of so many members, as in `Committee`. */
export function thresholdsOf(size: number): Pick<Committee, "faultsTolerated" | "quorum"> {
  const faultsTolerated = Math.floor((size - 1) / 3);
  return { faultsTolerated, quorum: Math.floor((size + faultsTolerated) / 2) + 1 };
}

/** The member with this name, and its index; undefined if there is none. */
export function memberOf(committee: Committee, name: AuthorityName): { index: number; member: Authority } | undefined {
  const index = committee.members.findIndex((member) => member.votingKey === name);
  const member = committee.members[index];
  return member && { index, member };
}

function unfit(message: string): FastPayError {
  return new FastPayError("invalid-committee", message, "check the contract's address and the chain");
}
