/** Reads ranges of an authority's lists page by page. */

import { malformed } from "./decode.js";
import { prunedOf, type Pruned } from "./problem.js";
import type { Page } from "./wire.js";

/** The maximum number of pages to read. An honest authority needs fewer. */
const PAGES_MAX = 200;

/** The entries that an authority keeps of a range of its list, oldest first, and the part that it has pruned, if any. */
export interface Kept<T> {
  readonly entries: readonly T[];
  readonly pruned: Pruned | undefined;
}

/** The newest `count` entries of a list with `total` entries, oldest first, without those that are pruned. */
export async function readNewest<T>(
  read: (start: bigint) => Promise<Page<T>>,
  total: bigint,
  count: number,
): Promise<readonly T[]> {
  const start = total > BigInt(count) ? total - BigInt(count) : 0n;
  return (await readKept(read, start, total)).entries;
}

/** The entries from position `from` up to `to` (exclusive) that an authority keeps. */
export async function readKept<T>(read: (start: bigint) => Promise<Page<T>>, from: bigint, to: bigint): Promise<Kept<T>> {
  try {
    return { entries: await readRange(read, from, to), pruned: undefined };
  } catch (error) {
    const pruned = prunedOf(error);
    if (pruned === undefined) throw error;
    if (pruned.first <= from) throw malformed("the first kept entry", "behind the pruned ones");
    return { entries: await readRange(read, pruned.first, to), pruned };
  }
}

/** The entries of a list from position `from` up to `to` (exclusive), oldest first. */
async function readRange<T>(read: (start: bigint) => Promise<Page<T>>, from: bigint, to: bigint): Promise<T[]> {
  const found: T[] = [];
  for (let page = 0; page < PAGES_MAX && from + BigInt(found.length) < to; page += 1) {
    const { entries } = await read(from + BigInt(found.length));
    if (entries.length === 0) throw malformed("the answer", "a page with entries, though there are some");
    found.push(...entries);
  }
  return found.slice(0, Number(to - from));
}
