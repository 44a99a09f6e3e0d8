/** Received payments that authorities have pruned, proven by checkpoints of the committee. */

import type { AccountId } from "../accounts.js";
import type { ArchivedNumber } from "../archive/page.js";
import type { BackPosition } from "../archive/read.js";
import { memberIn, type AuthorityClient } from "../authority.js";
import { provenByArchive, type Network } from "../network.js";
import { entryOf, listedOf, textOf } from "../received.js";
import type { HistoryCursor, ReceivedEntry } from "../views.js";

/** The oldest entry that was read of an authority's list of received payments. */
export interface ListEnd {
  readonly authority: AuthorityClient;
  /** The position of that entry; 0 if the list has no older ones. */
  readonly start: bigint;
  /** The checkpoint up to which the archive has the older ones, if the authority has pruned them. */
  readonly pruned: bigint | undefined;
}

/** A part of a history from the archives. */
export interface ArchivedReceived {
  /** Newest first. */
  readonly entries: readonly ReceivedEntry[];
  /** The position of older entries in the cursor. */
  readonly position: Pick<HistoryCursor, "pruned" | "archive">;
  readonly hasOlder: boolean;
  /** True if no authority returned entries that belong here or follow. */
  readonly isIncomplete: boolean;
}

/**
 * Continues an account's received payments in the archives, once the authorities' lists have ended: up to `count`
 * transfers, without the payments in `shown`.
 */
export async function receivedFromArchive(
  network: Network,
  account: AccountId,
  lists: readonly ListEnd[],
  cursor: HistoryCursor | undefined,
  count: number,
  shown: ReadonlySet<string>,
): Promise<ArchivedReceived> {
  const ended = lists.flatMap(({ authority, pruned }) => (pruned === undefined ? [] : [[authority.url, pruned.toString()]]));
  const pruned: Record<string, string> = { ...cursor?.pruned, ...Object.fromEntries(ended) };
  const nothing = { entries: [], position: {}, hasOlder: false, isIncomplete: false };
  if (Object.keys(pruned).length === 0) return nothing;
  if (cursor?.archive === END) return { ...nothing, position: { pruned, archive: END } };
  if (lists.some(({ start }) => start > 0n)) return { ...nothing, position: { pruned } };
  const from = positionOf(cursor?.archive) ?? { checkpoint: prunedByMost(network, lists, pruned), read: 0 };
  if (from.checkpoint === 0n) return { ...nothing, position: { pruned, archive: END } };
  if (count <= 0) return { ...nothing, position: { pruned, archive: `${from.checkpoint}.${from.read}` }, hasOlder: true };
  const back = await network.archive.receivedBack(account, from, count);
  if (back === undefined) return { ...nothing, position: { pruned, archive: END }, isIncomplete: true };
  const entries = back.numbers.flatMap((number) => receivedIn(number, account)).filter((entry) => !shown.has(textOf(listedOf(entry))));
  const archive = back.older === undefined ? END : `${back.older.checkpoint}.${back.older.read}`;
  return { entries, position: { pruned, archive }, hasOlder: archive !== END, isIncomplete: back.isCutOff };
}

/** The position of a list that has no older entries. */
const END = "end";

/** The payments of a proven transfer to an account. */
export function receivedIn(number: ArchivedNumber, account: AccountId): ReceivedEntry[] {
  const proven = provenByArchive(number);
  if (proven === undefined) return [];
  const { transfer } = proven;
  const outputs = transfer.type === "payout" ? [...transfer.outputs.keys()] : [undefined];
  return outputs.flatMap((output) => entryOf(proven, account, output) ?? []);
}

/**
 * The newest checkpoint whose payments may be missing in all lists: f + 1 authorities have pruned no more, so one of them
 * lists what is newer, if it is honest.
 */
function prunedByMost(network: Network, lists: readonly ListEnd[], pruned: Readonly<Record<string, string>>): bigint {
  const claims = new Map<string, bigint>();
  for (const { authority } of lists) {
    const member = memberIn(network.committee, authority);
    if (member !== undefined) claims.set(member, BigInt(pruned[authority.url] ?? 0));
  }
  const sorted = [...claims.values()].sort((a, b) => (a < b ? -1 : Number(a > b)));
  return sorted[Math.min(network.trusted, sorted.length) - 1] ?? 0n;
}

function positionOf(text: string | undefined): BackPosition | undefined {
  const [, checkpoint, read] = /^([0-9]+)\.([0-9]+)$/.exec(text ?? "") ?? [];
  return checkpoint === undefined || read === undefined ? undefined : { checkpoint: BigInt(checkpoint), read: Number(read) };
}
