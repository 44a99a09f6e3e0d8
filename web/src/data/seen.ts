/**
 * The time at which this browser first saw an entry of a history. The protocol has no clock, so this is only an upper
 * bound of the payment's time.
 */

import type { AccountId } from "@fastpay/sdk";
import { useEffect, useState } from "react";

import { useNetwork } from "../network/NetworkProvider";

/**
 * The maximum number of stored times, about 150 kB of the 5 MB that a browser allows a host. The oldest are removed.
 */
const SEEN_MAX = 2_000;

/** The times of these entries in milliseconds since 1970, by their keys. Stores the current time for new entries. */
export function useSeen(account: AccountId, keys: readonly string[]): ReadonlyMap<string, number> {
  const { config } = useNetwork();
  const place = `fastpay.seen.${config.chainId}.${config.contract}.${account}`;
  const [seen, setSeen] = useState(() => read(place));
  const text = keys.join();
  useEffect(() => {
    // Another page may have stored some meanwhile.
    const before = read(place);
    const now = Date.now();
    const added = text.split(",").filter((key) => key !== "" && !before.has(key));
    const after = added.length === 0 ? before : new Map([...before, ...added.map((key) => [key, now] as const)].slice(-SEEN_MAX));
    if (added.length > 0) write(place, after);
    setSeen(after);
  }, [place, text]);
  return seen;
}

function read(place: string): Map<string, number> {
  try {
    const entries: unknown = JSON.parse(localStorage.getItem(place) ?? "[]");
    if (!Array.isArray(entries)) return new Map();
    return new Map(entries.filter(([key, ms]) => typeof key === "string" && typeof ms === "number"));
  } catch {
    return new Map();
  }
}

function write(place: string, seen: ReadonlyMap<string, number>): void {
  try {
    localStorage.setItem(place, JSON.stringify([...seen]));
  } catch {
    // No space: the times last for this visit only.
  }
}
