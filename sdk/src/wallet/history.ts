/**
 * An account's history, proven: what it sent and received by certificates, its deposits by the word of f + 1
 * authorities. There is no clock in the protocol, so the three lists stand side by side.
 */

import type { AccountId } from "../accounts.js";
import type { AuthorityClient } from "../authority.js";
import { readRange } from "../lists.js";
import type { Network } from "../network.js";
import { nameOf, ReceivedProofs, textOf } from "../received.js";
import { OrderJournal } from "../storage/journal.js";
import type { DepositEntry, History, HistoryCursor, ReceivedEntry, SentEntry } from "../views.js";
import type { DepositItem, ReceivedItem } from "../wire.js";
import { orderEntry } from "./account.js";
import type { Context } from "./context.js";
import { provenNext } from "./finish.js";

/** So many certificates are fetched at a time. */
const FETCHED_AT_ONCE = 8;

/** What one authority lists, and where its older entries end. */
interface Listed<T> {
  readonly authority: AuthorityClient;
  readonly entries: readonly T[];
  readonly start: bigint;
}

/** The newest `limit` entries of each list, or those before `cursor`. */
export async function readHistory(
  context: Context,
  account: AccountId,
  limit: number,
  cursor: HistoryCursor | undefined,
): Promise<History> {
  const { network } = context;
  const answers = await network.accountStates(account);
  const before =
    cursor === undefined
      ? await provenNext({ network, signal: undefined }, { account }, 0n, answers)
      : BigInt(cursor.sent);
  const from = before > BigInt(limit) ? before - BigInt(limit) : 0n;
  const listed = async <T>(
    kind: "received" | "deposits",
    read: (authority: AuthorityClient, start: bigint, signal: AbortSignal) => Promise<{ entries: readonly T[] }>,
  ): Promise<Listed<T>[]> => {
    const lists = await network.askAll(async (authority, signal): Promise<Listed<T>> => {
      const end = cursor?.[kind][authority.url];
      const to = end === undefined ? (await authority.account(account, undefined, signal))[kind] : BigInt(end);
      const start = to > BigInt(limit) ? to - BigInt(limit) : 0n;
      const page = async (at: bigint) => ({ total: to, entries: (await read(authority, at, signal)).entries });
      return { authority, start, entries: await readRange(page, start, to) };
    });
    return lists.flatMap(({ answer }) => (answer === undefined ? [] : [answer]));
  };
  const [sent, receivedLists, depositLists] = await Promise.all([
    readSent(context, account, from, before),
    listed<ReceivedItem>("received", (authority, start, signal) => authority.received(account, start, signal)),
    listed<DepositItem>("deposits", (authority, start, signal) => authority.deposits(account, start, signal)),
  ]);
  const received = await proveReceived(network, account, receivedLists);
  const deposits = agreedDeposits(depositLists, network.trusted);
  const older: HistoryCursor = {
    sent: from.toString(),
    received: starts(receivedLists),
    deposits: starts(depositLists),
  };
  const hasOlder = from > 0n || [...receivedLists, ...depositLists].some(({ start }) => start > 0n);
  return { sent, received, deposits, older: hasOlder ? older : undefined };
}

function starts(lists: readonly Listed<unknown>[]): Record<string, string> {
  return Object.fromEntries(lists.map(({ authority, start }) => [authority.url, start.toString()]));
}

async function readSent(
  { network, store }: Context,
  account: AccountId,
  from: bigint,
  to: bigint,
): Promise<SentEntry[]> {
  const journal = store && new OrderJournal(store, network.domain, account);
  const numbers: bigint[] = [];
  for (let sequence = to - 1n; sequence >= from; sequence -= 1n) numbers.push(sequence);
  return inTurns(numbers, async (sequence) => {
    const stored = await journal?.entry(sequence);
    const own =
      stored?.certificate && (await network.verify(stored.certificate, account, sequence).catch(() => undefined));
    const certificate = own ?? (await network.findCertificate(account, sequence));
    if (certificate === undefined) return undefined;
    return { certificate, order: stored && orderEntry(account, stored)[0] };
  });
}

async function proveReceived(
  network: Network,
  account: AccountId,
  lists: readonly Listed<ReceivedItem>[],
): Promise<ReceivedEntry[]> {
  // By how far from the newest end the authority has it that saw it last: arrival has no common order.
  const found = new Map<string, { age: number; lister: AuthorityClient; item: ReceivedItem }>();
  for (const { authority, entries } of lists) {
    entries.forEach((item, i) => {
      const name = textOf(nameOf(item));
      const age = entries.length - i;
      const known = found.get(name);
      if (known === undefined || age < known.age) found.set(name, { age, lister: authority, item });
    });
  }
  const newestFirst = [...found.values()].sort((a, b) => a.age - b.age);
  const proofs = new ReceivedProofs(network, account);
  return inTurns(newestFirst, ({ lister, item }) => proofs.find(lister, nameOf(item)));
}

/** The deposits that at least `trusted` authorities list alike, the newest first. */
function agreedDeposits(lists: readonly Listed<DepositItem>[], trusted: number): DepositEntry[] {
  const found = new Map<string, { item: DepositItem; authorities: Set<string> }>();
  for (const { authority, entries } of lists) {
    for (const item of entries) {
      const name = `${item.index}/${item.recipient}/${item.asset}/${item.amount}`;
      const known = found.get(name) ?? { item, authorities: new Set() };
      known.authorities.add(authority.url);
      found.set(name, known);
    }
  }
  return [...found.values()]
    .filter(({ authorities }) => authorities.size >= trusted)
    .map(({ item, authorities }) => ({ ...item, authorities: authorities.size }))
    .sort((a, b) => (a.index < b.index ? 1 : -1));
}

/** Maps with a bounded number at a time, in order; what comes to nothing is left out. */
async function inTurns<T, U>(items: readonly T[], act: (item: T) => Promise<U | undefined>): Promise<U[]> {
  const done: U[] = [];
  for (let at = 0; at < items.length; at += FETCHED_AT_ONCE) {
    const results = await Promise.all(items.slice(at, at + FETCHED_AT_ONCE).map(act));
    done.push(...results.filter((result) => result !== undefined));
  }
  return done;
}
