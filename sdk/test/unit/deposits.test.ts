/** A deposit is found in an authority's list, wherever it stands. */

import { expect, test } from "vitest";

import type { AuthorityClient } from "../../src/authority.js";
import { ETHER } from "../../src/index.js";
import { hasCredited } from "../../src/wallet/deposits.js";
import { person } from "../support/committee.js";

const recipient = person("alice").account;
const { signal } = new AbortController();

/** An authority whose list has so many deposits, with pages of 100; counts its pages. */
function listing(count: number) {
  const entry = (place: number) => ({ index: BigInt(3 * place + 1), recipient, asset: ETHER, amount: 7n });
  const all = Array.from({ length: count }, (_, place) => entry(place));
  const read = { pages: 0 };
  const authority = {
    account: () => Promise.resolve({ deposits: BigInt(count) }),
    deposits: (_: unknown, start: bigint) => {
      read.pages += 1;
      return Promise.resolve({ total: BigInt(count), entries: all.slice(Number(start), Number(start) + 100) });
    },
  } as unknown as AuthorityClient;
  return { authority, entry, read };
}

test.each([1, 99, 100, 101, 127, 128, 154, 155, 1_000, 5_000])("each of %i deposits is found, and no other", async (count) => {
  const { authority, entry, read } = listing(count);
  const found = (place: number, change: object = {}) =>
    hasCredited(authority, { ...entry(place), authorities: 0, ...change }, signal);
  for (let place = 0; place < count; place += Math.ceil(count / 60)) expect(await found(place)).toBe(true);
  expect(await found(count - 1)).toBe(true);
  for (const change of [{ amount: 8n }, { index: 2n }, { index: 0n }, { index: BigInt(3 * count + 1) }]) {
    expect(await found(0, change)).toBe(false);
  }
  expect(read.pages).toBeLessThan(66 * 9);
});
