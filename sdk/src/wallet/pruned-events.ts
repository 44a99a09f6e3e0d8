/**
 * The events of an account that an authority pruned before its stream was read, from the archives. Deposits are not in
 * the archives' lists: the contract's log has them.
 */

import type { AccountId } from "../accounts.js";
import type { AuthorityClient } from "../authority.js";
import { malformed } from "../decode.js";
import { FastPayError } from "../errors.js";
import { provenByArchive, type Network } from "../network.js";
import { prunedOf, type Pruned } from "../problem.js";
import { listedOf, textOf } from "../received.js";
import type { AccountEvent } from "../views.js";
import { receivedIn } from "./archived.js";

/** Pruned events, and the position behind them. */
export interface PrunedEvents {
  readonly events: readonly Exclude<AccountEvent, { type: "deposited" }>[];
  readonly position: string;
}

/** The events behind a position of an authority's stream that it has pruned. Throws if no archive has them. */
export async function prunedEvents(
  network: Network,
  authority: AuthorityClient,
  account: AccountId,
  position: string,
  signal: AbortSignal,
): Promise<PrunedEvents> {
  const [sent = 0n, received = 0n, deposits = 0n] = position.split(".").map(BigInt);
  const [sentKept, receivedKept, depositsKept] = await Promise.all([
    firstKept(sent, authority.sent(account, sent, signal)),
    firstKept(received, authority.received(account, received, signal)),
    firstKept(deposits, authority.deposits(account, deposits, signal)),
  ]);
  const [own, others] = await Promise.all([
    ownEvents(network, account, sent, sentKept.first, signal),
    receivedEvents(network, account, receivedKept, Number(receivedKept.first - received), signal),
  ]);
  return { events: [...own, ...others], position: [sentKept, receivedKept, depositsKept].map(({ first }) => first).join(".") };
}

/** The position from which on an authority keeps a list, at least `from`. */
async function firstKept(from: bigint, page: Promise<unknown>): Promise<Pruned> {
  try {
    await page;
    return { first: from, checkpoint: 0n };
  } catch (error) {
    const pruned = prunedOf(error);
    if (pruned === undefined) throw error;
    if (pruned.first <= from) throw malformed("the first kept entry", "behind the pruned ones");
    return pruned;
  }
}

async function ownEvents(network: Network, account: AccountId, from: bigint, to: bigint, signal: AbortSignal): Promise<PrunedEvents["events"]> {
  if (from === to) return [];
  const numbers = await network.archive.sent(account, from, to, signal);
  if (numbers.size < Number(to - from)) throw unread();
  return [...numbers.values()].flatMap((number) => {
    const proven = provenByArchive(number);
    return proven === undefined ? [] : [{ type: "confirmed" as const, ...proven }];
  });
}

/**
 * The newest archived payments to the account, of which this many are missing. Authorities list payments in the order
 * of arrival, which is not that of the checkpoints. So all payments of the oldest needed checkpoint come, and those of
 * the one before it.
 */
async function receivedEvents(
  network: Network,
  account: AccountId,
  { checkpoint }: Pruned,
  missing: number,
  signal: AbortSignal,
): Promise<PrunedEvents["events"]> {
  if (missing === 0) return [];
  const found = await network.archive.receivedUpTo(account, checkpoint, missing, { further: 1n, signal });
  if (found === undefined) throw unread();
  const { numbers, isWhole, isComplete } = found;
  const oldest = (numbers[missing - 1]?.checkpoint ?? 1n) - 1n;
  const needed = numbers.filter((number) => number.checkpoint >= oldest).reverse();
  const entries = needed.flatMap((number) => receivedIn(number, account));
  // An authority that was rebased on what it had in part counts payments that no archive has.
  if (entries.length < missing && !(isWhole && isComplete)) throw unread();
  return entries.map((entry) => ({ type: "received" as const, ...entry }));
}

/** The name of an event, by which it is reported once. */
export function nameOfEvent(event: PrunedEvents["events"][number]): string {
  const name = event.type === "received" ? textOf(listedOf(event)) : `${event.transfer.sequence}/${event.digest}`;
  return `${event.type}/${name}`;
}

function unread(): FastPayError {
  const message = "no authority returned all of the account's pruned entries";
  return new FastPayError("not-found", message, "try again when more authorities can be reached");
}
