/**
 * An account's proven history: certificates prove transfers, and f + 1 authorities confirm deposits. If authorities have
 * pruned a certificate, a checkpoint of the committee proves the transfer (`archived.ts`). The protocol has no clock, so
 * there are three separate lists.
 */

import type { AccountId } from "../accounts.js";
import type { AuthorityClient } from "../authority.js";
import { readKept } from "../lists.js";
import { attest } from "../quorum/attest.js";
import type { VerifiedCertificate } from "../certificate.js";
import { membersAmong, provenBy, provenByArchive, type Network } from "../network.js";
import type { AuthorityRef } from "../progress.js";
import { listedOf, orderText, ReceivedProofs, textOf } from "../received.js";
import { OrderJournal } from "../storage/journal.js";
import type { AccountView, DepositEntry, History, HistoryCursor, OrderEntry, ReceivedEntry, SentEntry } from "../views.js";
import type { DepositItem, ReceivedItem } from "../wire.js";
import { orderEntry, viewAccount } from "./account.js";
import { receivedFromArchive, type ListEnd } from "./archived.js";
import type { Context } from "./context.js";

/** The number of certificates that are fetched at a time. */
const FETCHED_AT_ONCE = 8;

/** The entries of one authority's list from position `start` on. Older entries end there. */
interface Listed<T> extends ListEnd {
  readonly authority: AuthorityClient;
  readonly entries: readonly T[];
}

/** The newest `limit` entries of each list as of `view`, or those before `cursor`. */
export async function readHistory(
  context: Context,
  account: AccountId,
  limit: number,
  cursor: HistoryCursor | undefined,
  view?: AccountView,
): Promise<History> {
  const { network } = context;
  const { states, nextSequence } = view ?? (await viewAccount(context, account, []));
  const before = cursor === undefined ? nextSequence : BigInt(cursor.sent);
  const from = before > BigInt(limit) ? before - BigInt(limit) : 0n;
  const listed = async <T>(
    kind: "received" | "deposits",
    read: (authority: AuthorityClient, start: bigint, signal: AbortSignal) => Promise<{ entries: readonly T[] }>,
  ): Promise<Listed<T>[]> => {
    const lists = await network.askAll(async (authority, signal): Promise<Listed<T>> => {
      const end = cursor?.[kind][authority.url];
      const known = states.find((state) => state.authority.url === authority.url)?.answer;
      const to = end === undefined ? (known ?? (await authority.account(account, undefined, signal)))[kind] : BigInt(end);
      const start = to > BigInt(limit) ? to - BigInt(limit) : 0n;
      const page = async (at: bigint) => ({ total: to, entries: (await read(authority, at, signal)).entries });
      const { entries, pruned } = await readKept(page, start, to);
      // A pruned list has no older entries.
      return { authority, entries, start: pruned === undefined ? start : 0n, pruned: pruned?.checkpoint };
    });
    return lists.flatMap(({ answer }) => (answer === undefined ? [] : [answer]));
  };
  const [own, receivedLists, depositLists] = await Promise.all([
    readOwn(context, account, from, before),
    listed<ReceivedItem>("received", (authority, start, signal) => authority.received(account, start, signal)),
    listed<DepositItem>("deposits", (authority, start, signal) => authority.deposits(account, start, signal)),
  ]);
  const listedAs = newestFirst(receivedLists);
  const missing = own.flatMap(({ sequence, certificate }) => (certificate === undefined ? [{ sender: account, sequence }] : []));
  const names = new Map([...missing, ...listedAs.map(({ item }) => listedOf(item))].map((name) => [orderText(name), name]));
  const answering = network.authorities.filter(({ url }) => states.some((state) => state.authority.url === url && state.answer !== undefined));
  const { found, pruned } = await network.readCertificates([...names.values()], answering);
  const [sent, kept] = await Promise.all([
    proveSent(network, account, own, found, pruned),
    proveReceived(network, new ReceivedProofs(network, account, found.values()), listedAs),
  ]);
  const shown = new Set(kept.map((entry) => textOf(listedOf(entry))));
  const archived = await receivedFromArchive(network, account, receivedLists, cursor, limit - kept.length, shown);
  const deposits = agreedDeposits(depositLists, network);
  const hasOlder = from > 0n || [...receivedLists, ...depositLists].some(({ start }) => start > 0n) || archived.hasOlder;
  const older: HistoryCursor = {
    sent: from.toString(),
    received: starts(receivedLists),
    deposits: starts(depositLists),
    ...archived.position,
  };
  const isIncomplete = {
    sent: sent.isIncomplete,
    received: archived.isIncomplete,
    deposits: depositLists.some((list) => list.pruned !== undefined),
  };
  return {
    sent: sent.entries,
    received: [...kept, ...archived.entries],
    deposits,
    older: hasOlder ? older : undefined,
    incomplete: (["sent", "received", "deposits"] as const).filter((list) => isIncomplete[list]),
  };
}

function starts(lists: readonly Listed<unknown>[]): Record<string, string> {
  return Object.fromEntries(lists.map(({ authority, start }) => [authority.url, start.toString()]));
}

/** An order of a history: its entry in the storage, with its certificate if stored. */
interface Own {
  readonly sequence: bigint;
  readonly order: OrderEntry | undefined;
  readonly certificate: VerifiedCertificate | undefined;
}

/** The orders with numbers from `from` up to `to` (exclusive), newest first, without void numbers. */
async function readOwn({ network, store }: Context, account: AccountId, from: bigint, to: bigint): Promise<Own[]> {
  const journal = store && new OrderJournal(store, network.domain, account);
  const numbers: bigint[] = [];
  for (let sequence = to - 1n; sequence >= from; sequence -= 1n) numbers.push(sequence);
  return inTurns(numbers, async (sequence) => {
    const stored = await journal?.entry(sequence);
    if (stored?.state === "voided") return undefined;
    const certificate = stored?.certificate && (await network.verify(stored.certificate, account, sequence).catch(() => undefined));
    return { sequence, order: stored && orderEntry(account, stored)[0], certificate };
  });
}

/** Proves sent transfers. Incomplete if an authority has pruned a number and no archive has it. */
async function proveSent(
  network: Network,
  account: AccountId,
  own: readonly Own[],
  found: ReadonlyMap<string, VerifiedCertificate>,
  pruned: ReadonlySet<string>,
): Promise<{ entries: SentEntry[]; isIncomplete: boolean }> {
  const isGone = ({ sequence }: { sequence: bigint }): boolean => {
    const name = orderText({ sender: account, sequence });
    return pruned.has(name) && !found.has(name);
  };
  // Newest first, so the last one is the lowest.
  const gone = own.filter((one) => one.certificate === undefined && isGone(one)).map(({ sequence }) => sequence);
  const [highest, lowest] = [gone[0], gone.at(-1)];
  const archived = lowest === undefined || highest === undefined ? new Map() : await network.archive.sent(account, lowest, highest + 1n);
  let isIncomplete = false;
  const entries = await inTurns(own, async ({ sequence, order, certificate: stored }) => {
    const certificate = stored ?? found.get(orderText({ sender: account, sequence }));
    if (certificate !== undefined) return { ...provenBy(certificate), order };
    const number = archived.get(sequence);
    if (number !== undefined) {
      const proven = provenByArchive(number);
      return proven && { ...proven, order };
    }
    const proven = await network.findNumber(account, sequence);
    isIncomplete ||= proven === undefined && isGone({ sequence });
    return proven === undefined || proven === "void" ? undefined : { ...proven, order };
  });
  return { entries, isIncomplete };
}

/** A received payment, as listed by the authority that has it closest to the end of its list. */
interface Newest {
  readonly age: number;
  readonly lister: AuthorityClient;
  /** All that list it. */
  readonly listers: readonly AuthorityClient[];
  readonly item: ReceivedItem;
}

function newestFirst(lists: readonly Listed<ReceivedItem>[]): Newest[] {
  // Authorities share no order of arrival. Sort by the smallest distance from the end of any authority's list.
  const found = new Map<string, Newest>();
  for (const { authority, entries } of lists) {
    entries.forEach((item, i) => {
      const name = textOf(listedOf(item));
      const age = entries.length - i;
      const known = found.get(name);
      const nearest = known === undefined || age < known.age ? { age, lister: authority, item } : known;
      found.set(name, { ...nearest, listers: [...(known?.listers ?? []), authority] });
    });
  }
  return [...found.values()].sort((a, b) => a.age - b.age);
}

async function proveReceived(network: Network, proofs: ReceivedProofs, listed: readonly Newest[]): Promise<ReceivedEntry[]> {
  const { committee, trusted, closed } = network;
  const proven = await inTurns(listed, async ({ lister, listers, item }) => {
    const entry = await proofs.find(lister, listedOf(item));
    const certificate = entry?.proof.type === "certificate" ? entry.proof.certificate : undefined;
    if (certificate === undefined || membersAmong(listers, committee) >= trusted) return entry;
    // Its number may be void, or keys of an earlier epoch may have made it since.
    return (await attest(network, committee, certificate, closed).catch(() => undefined)) && entry;
  });
  // Of two orders under one name, a recovery has ended the earlier one.
  const ages = new Map<string, number>();
  const nameOf = ({ payment, output }: ReceivedEntry): string => `${orderText(payment)}/${output ?? ""}`;
  const ageOf = ({ proof }: ReceivedEntry): number => (proof.type === "checkpoint" ? Infinity : Number(proof.certificate.epoch));
  for (const entry of proven) ages.set(nameOf(entry), Math.max(ages.get(nameOf(entry)) ?? 0, ageOf(entry)));
  return proven.filter((entry) => ageOf(entry) === ages.get(nameOf(entry)));
}

/** The deposits that f + 1 members list identically, newest first. */
function agreedDeposits(lists: readonly Listed<DepositItem>[], { committee, trusted }: Network): DepositEntry[] {
  const found = new Map<string, { item: DepositItem; listers: AuthorityRef[] }>();
  for (const { authority, entries } of lists) {
    for (const item of entries) {
      const name = `${item.index}/${item.recipient}/${item.asset}/${item.amount}`;
      const known = found.get(name) ?? { item, listers: [] };
      known.listers.push(authority);
      found.set(name, known);
    }
  }
  return [...found.values()]
    .map(({ item, listers }) => ({ ...item, authorities: membersAmong(listers, committee) }))
    .filter(({ authorities }) => authorities >= trusted)
    .sort((a, b) => (a.index < b.index ? 1 : -1));
}

/** Maps a bounded number of items at a time, in order, and omits undefined results. */
async function inTurns<T, U>(items: readonly T[], act: (item: T) => Promise<U | undefined>): Promise<U[]> {
  const done: U[] = [];
  for (let at = 0; at < items.length; at += FETCHED_AT_ONCE) {
    const results = await Promise.all(items.slice(at, at + FETCHED_AT_ONCE).map(act));
    done.push(...results.filter((result) => result !== undefined));
  }
  return done;
}
