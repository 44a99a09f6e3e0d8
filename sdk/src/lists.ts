/** Pages of an authority's lists. */

import { malformed } from "./decode.js";
import type { Page } from "./wire.js";

/** The maximum number of pages that an honest authority needs for an answer. */
const PAGES_MAX = 200;

/** The newest `count` entries of a list that has `total`, oldest first. */
export function readNewest<T>(read: (start: bigint) => Promise<Page<T>>, total: bigint, count: number): Promise<T[]> {
  const start = total > BigInt(count) ? total - BigInt(count) : 0n;
  return readRange(read, start, total);
}

/** The entries of a list from one place to another (exclusive), oldest first. */
export async function readRange<T>(read: (start: bigint) => Promise<Page<T>>, from: bigint, to: bigint): Promise<T[]> {
  const found: T[] = [];
  for (let page = 0; page < PAGES_MAX && from + BigInt(found.length) < to; page += 1) {
    const { entries } = await read(from + BigInt(found.length));
    if (entries.length === 0) throw malformed("the answer", "a page with entries, though there are some");
    found.push(...entries);
  }
  return found.slice(0, Number(to - from));
}
