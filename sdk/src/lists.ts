/** Reads ranges of an authority's lists page by page. */

import { malformed } from "./decode.js";
import type { Page } from "./wire.js";

/** The maximum number of pages to read. An honest authority needs fewer. */
const PAGES_MAX = 200;

/** The newest `count` entries of a list with `total` entries, oldest first. */
export function readNewest<T>(read: (start: bigint) => Promise<Page<T>>, total: bigint, count: number): Promise<T[]> {
  const start = total > BigInt(count) ? total - BigInt(count) : 0n;
  return readRange(read, start, total);
}

/** The entries of a list from position `from` up to `to` (exclusive), oldest first. */
export async function readRange<T>(read: (start: bigint) => Promise<Page<T>>, from: bigint, to: bigint): Promise<T[]> {
  const found: T[] = [];
  for (let page = 0; page < PAGES_MAX && from + BigInt(found.length) < to; page += 1) {
    const { entries } = await read(from + BigInt(found.length));
    if (entries.length === 0) throw malformed("the answer", "a page with entries, though there are some");
    found.push(...entries);
  }
  return found.slice(0, Number(to - from));
}
