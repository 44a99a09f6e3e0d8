/**
 * Entries of an authority's archive, with their proof. An authority prunes what a checkpoint of the committee includes;
 * from then on the checkpoint proves it, in place of the certificate:
 *
 * ```text
 *  entry ─ path ─► segment of checkpoint k ◄─ previous ─ checkpoint k + 1 ◄─ … ◄─ previous ─ newest one ◄─ votes
 * ```
 * A list of sent transfers has no gaps, so it is complete. Nothing proves that a list of received payments is: a liar
 * can leave payments out, so callers merge the lists of several authorities.
 */

import type { AccountId } from "../accounts.js";
import { toBytes, type Hex } from "../bytes.js";
import type { Committee } from "../committee.js";
import { checkpointDigest, transferDigest } from "../eip712.js";
import { FastPayError } from "../errors.js";
import { leafRoot, type LeafPath } from "../merkle.js";
import type { Domain, Transfer } from "../transfer.js";
import { checkpointFault, type Checkpoint, type CheckpointVote } from "./checkpoint.js";
import { decodeLeaf } from "./leaf.js";

/** The maximum number of checkpoints in a page. */
export const ARCHIVE_HEADERS_MAX = 2_048;

/** An entry of an archive, not verified. */
export interface ArchiveEntry extends LeafPath {
  /** As it is hashed. */
  readonly leaf: Hex;
  /** The number of the checkpoint whose segment contains it. */
  readonly checkpoint: bigint;
}

/** A part of an account's list in an archive, not verified. */
export interface ArchivePage {
  /** By checkpoint, account and number. */
  readonly entries: readonly ArchiveEntry[];
  /** From the lowest checkpoint of an entry to the newest one of the archive, without a gap. */
  readonly headers: readonly Checkpoint[];
  /** Of exactly a quorum, for the newest checkpoint. */
  readonly votes: readonly CheckpointVote[];
  /** The place at which the list continues; undefined if the archive has no more of it. */
  readonly next: ArchivePlace | undefined;
}

/** A place in an archive: a checkpoint, and the position of an entry in its segment. */
export interface ArchivePlace {
  readonly checkpoint: bigint;
  readonly entry: bigint;
}

/** The requested list: the numbers of an account from one on, or the transfers that paid it from a place on. */
export type ArchiveList =
  | { readonly type: "sent"; readonly from: bigint }
  | { readonly type: "received"; readonly from: ArchivePlace };

/** A number of an account, proven by a checkpoint. */
export interface ArchivedNumber {
  readonly account: AccountId;
  readonly sequence: bigint;
  /** The executed transfer with its digest; undefined if the number is void. */
  readonly executed: { readonly transfer: Transfer; readonly digest: Hex } | undefined;
  /**
   * True if a recovery debited the transfer without its owner's order, because the contract had paid or queued it. It is
   * a redemption, and no other order of the number is ever executed. An earlier number may still be free.
   */
  readonly isPaid: boolean;
  /** The number of the checkpoint that proves it. */
  readonly checkpoint: bigint;
}

/** A verified page. */
export interface VerifiedArchivePage {
  readonly entries: readonly ArchivedNumber[];
  readonly next: ArchivePlace | undefined;
}

/** Why a page proves nothing. */
export type ArchiveFault =
  | "no-headers"
  | "too-many-headers"
  /** A checkpoint is not built on the one before it. */
  | "unlinked"
  /** The newest checkpoint is not certified by a committee that counts. */
  | "certificate"
  /** The checkpoint of an entry is missing. */
  | "no-header"
  /** An entry is not in the segment of its checkpoint. */
  | "not-proven"
  /** An entry is not a number of an account. */
  | "other-leaf"
  | "other-account"
  /** A number is left out or repeated. */
  | "gap"
  /** Entries are repeated or out of order, or the list does not move forward. */
  | "unordered";

/**
 * Verifies a page of an account's list. The votes must be those of one of the `counting` committees (see
 * `Committees.counting`). Throws `invalid-certificate` with the `ArchiveFault` in `details.fault`.
 */
export function verifyArchivePage(
  page: ArchivePage,
  account: AccountId,
  list: ArchiveList,
  counting: readonly Committee[],
  domain: Domain,
): VerifiedArchivePage {
  const newest = verifyHeaders(page, counting, domain);
  const headers = new Map(page.headers.map((header) => [header.number, header]));
  const entries = page.entries.map((entry) => verifyEntry(entry, headers.get(entry.checkpoint), domain));
  if (list.type === "sent") checkSent(entries, account, list.from);
  else checkReceived(entries, account, list.from, page.next, newest.number);
  return { entries, next: page.next };
}

/** Checks that the checkpoints are linked and that the newest one is certified. Returns the newest one. */
function verifyHeaders({ headers, votes }: ArchivePage, counting: readonly Committee[], domain: Domain): Checkpoint {
  const newest = headers.at(-1);
  if (newest === undefined) throw unproven("no-headers", "it shows no checkpoint");
  if (headers.length > ARCHIVE_HEADERS_MAX) throw unproven("too-many-headers", `it shows more than ${ARCHIVE_HEADERS_MAX} checkpoints`);
  headers.forEach((header, i) => {
    const before = headers[i - 1];
    if (before === undefined) return;
    const isNext = header.number === before.number + 1n && header.previous === checkpointDigest(domain, before);
    if (!isNext) throw unproven("unlinked", `checkpoint ${header.number} is not built on the one before it`);
  });
  const committee = counting.find(({ epoch }) => epoch === newest.epoch);
  const fault = committee === undefined ? "its epoch does not count" : checkpointFault(newest, votes, committee, domain);
  if (fault !== undefined) throw unproven("certificate", `checkpoint ${newest.number} is not certified: ${fault}`);
  return newest;
}

function verifyEntry(entry: ArchiveEntry, header: Checkpoint | undefined, domain: Domain): ArchivedNumber {
  const { checkpoint } = entry;
  if (header === undefined) throw unproven("no-header", `checkpoint ${checkpoint} of an entry is missing`);
  const bytes = toBytes(entry.leaf);
  if (leafRoot(bytes, entry) !== header.segment) {
    throw unproven("not-proven", `an entry is not in the segment of checkpoint ${checkpoint}`);
  }
  const leaf = decodeLeaf(bytes);
  if (leaf === undefined) throw unproven("other-leaf", "an entry is not a number of an account");
  if (leaf.type === "void") {
    return { account: leaf.account, sequence: leaf.sequence, executed: undefined, isPaid: false, checkpoint };
  }
  const { transfer } = leaf;
  const executed = { transfer, digest: transferDigest(domain, transfer) };
  return { account: transfer.sender, sequence: transfer.sequence, executed, isPaid: leaf.type === "paid", checkpoint };
}

function checkSent(entries: readonly ArchivedNumber[], account: AccountId, from: bigint): void {
  entries.forEach((entry, i) => {
    if (entry.account !== account) throw unproven("other-account", "an entry belongs to another account");
    const expected = from + BigInt(i);
    if (entry.sequence !== expected) throw unproven("gap", `number ${entry.sequence} follows where ${expected} must`);
  });
}

function checkReceived(
  entries: readonly ArchivedNumber[],
  account: AccountId,
  from: ArchivePlace,
  next: ArchivePlace | undefined,
  newest: bigint,
): void {
  if (!entries.every(({ executed }) => executed !== undefined && pays(executed.transfer, account))) {
    throw unproven("other-account", "an entry does not pay the account");
  }
  const isOrdered = entries.every((entry, i) => {
    const before = entries[i - 1];
    return before === undefined ? entry.checkpoint >= from.checkpoint : comesBefore(before, entry);
  });
  // A list that did not move forward could be read for ever.
  const last = entries.at(-1)?.checkpoint ?? 0n;
  const isForward =
    next === undefined || (isBefore(from, next) && next.checkpoint >= last && next.checkpoint <= newest);
  if (!isOrdered || !isForward) throw unproven("unordered", "entries are repeated or out of order");
}

/** True if a transfer pays an account of FastPay, alone or as one of several. */
function pays(transfer: Transfer, account: AccountId): boolean {
  if (transfer.type === "payout") return transfer.outputs.some(({ recipient }) => recipient === account);
  return transfer.type === "payment" && transfer.recipient === account;
}

function comesBefore(a: ArchivedNumber, b: ArchivedNumber): boolean {
  if (a.checkpoint !== b.checkpoint) return a.checkpoint < b.checkpoint;
  return a.account === b.account ? a.sequence < b.sequence : a.account < b.account;
}

/** True if a place is before another one. */
function isBefore(a: ArchivePlace, b: ArchivePlace): boolean {
  return a.checkpoint === b.checkpoint ? a.entry < b.entry : a.checkpoint < b.checkpoint;
}

function unproven(fault: ArchiveFault, what: string): FastPayError {
  const message = `the archived entries are not proven: ${what}`;
  return new FastPayError("invalid-certificate", message, "do not trust their source; ask another authority", {
    details: { fault },
  });
}
