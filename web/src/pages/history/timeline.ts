/** A history as one list, newest first. */

import { decodeMemo, formatAccount, type AccountId, type Address, type DepositEntry, type Hex, type History, type ReceivedEntry, type SentEntry } from "@fastpay/sdk";

/** An entry with its kind, its key in this list, and its time in milliseconds since 1970, if known. */
export type TimelineItem = (
  | { readonly kind: "received"; readonly entry: ReceivedEntry }
  | { readonly kind: "sent" | "redeemed"; readonly entry: SentEntry }
  | { readonly kind: "deposit"; readonly entry: DepositEntry }
) & {
  readonly key: string;
  readonly ms: number | undefined;
  /** True if `ms` is the time of the order; false if `ms` is an upper bound. */
  readonly isExact: boolean;
};

type Entries = Pick<History, "received" | "sent" | "deposits">;

/** A filter of the list. */
export interface Filter {
  readonly kind: TimelineItem["kind"] | "all";
  readonly asset: Address | "all";
  /** A part of an account, a memo or a digest. */
  readonly text: string;
}

/** The keys of the entries without an order time. */
export function undatedKeys(history: Entries): string[] {
  const elsewhere = history.sent.filter(({ order }) => order?.createdAtMs === undefined);
  return [...history.received.map(receivedKey), ...elsewhere.map(sentKey), ...history.deposits.map(depositKey)];
}

/** All entries, newest first. `seen` has the times at which this browser first saw them. */
export function timeline(
  history: Entries,
  seen: ReadonlyMap<string, number>,
): TimelineItem[] {
  const [received, sent, deposited] = [notAfterNewer(seen), notAfterNewer(seen), notAfterNewer(seen)];
  const items: TimelineItem[] = [
    ...history.received.map((entry) => {
      const key = receivedKey(entry);
      return { kind: "received" as const, entry, key, ms: received(key), isExact: false };
    }),
    ...history.sent.map((entry) => {
      const key = sentKey(entry);
      const kind = entry.transfer.type === "redemption" ? ("redeemed" as const) : ("sent" as const);
      const ordered = entry.order?.createdAtMs;
      return { kind, entry, key, ms: ordered ?? sent(key), isExact: ordered !== undefined };
    }),
    ...history.deposits.map((entry) => {
      const key = depositKey(entry);
      return { kind: "deposit" as const, entry, key, ms: deposited(key), isExact: false };
    }),
  ];
  // An item without a time has just arrived.
  const time = ({ ms }: TimelineItem): number => ms ?? Number.MAX_SAFE_INTEGER;
  // An authority's list and the archive may both have a received payment.
  return [...new Map(items.map((item) => [item.key, item])).values()].sort((a, b) => time(b) - time(a));
}

/**
 * The times of a list's entries, for calls from the newest entry to the oldest. An older entry gets no later time than
 * a newer one, even if this browser first saw it later, for example on a later page.
 */
function notAfterNewer(seen: ReadonlyMap<string, number>): (key: string) => number | undefined {
  let newer = Number.POSITIVE_INFINITY;
  return (key) => {
    const ms = seen.get(key);
    if (ms === undefined) return undefined;
    newer = Math.min(newer, ms);
    return newer;
  };
}

/** True if an entry matches a filter. */
export function passes(item: TimelineItem, { kind, asset, text }: Filter): boolean {
  if (kind !== "all" && item.kind !== kind) return false;
  if (asset !== "all" && assetOf(item) !== asset) return false;
  const wanted = text.trim().toLowerCase();
  return wanted === "" || wordsOf(item).some((words) => words.toLowerCase().includes(wanted));
}

/** The asset of an entry. */
export function assetOf(item: TimelineItem): Address {
  switch (item.kind) {
    case "received":
      return item.entry.payment.asset;
    case "deposit":
      return item.entry.asset;
    default:
      return item.entry.transfer.asset;
  }
}

function wordsOf(item: TimelineItem): string[] {
  switch (item.kind) {
    case "received": {
      const { payment, digest } = item.entry;
      return [formatAccount(payment.sender), decodeMemo(payment.memo), digest];
    }
    case "deposit":
      return [`deposit ${item.entry.index}`];
    default: {
      const { transfer, digest } = item.entry;
      const paid = (recipient: AccountId, memo: Hex): string[] => [formatAccount(recipient), decodeMemo(memo)];
      switch (transfer.type) {
        case "payment":
          return [digest, ...paid(transfer.recipient, transfer.memo)];
        case "redemption":
          return [digest, transfer.recipient, decodeMemo(transfer.memo)];
        case "payout":
          return [digest, ...transfer.outputs.flatMap(({ recipient, memo }) => paid(recipient, memo))];
      }
    }
  }
}

function receivedKey({ digest, output }: ReceivedEntry): string {
  return `${digest}/${output ?? ""}`;
}

function sentKey({ digest }: SentEntry): string {
  return digest;
}

function depositKey({ index }: DepositEntry): string {
  return `deposit/${index}`;
}
