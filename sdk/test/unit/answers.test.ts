/** Validation of authorities' answers: fields, streams, and rules over many answers. */

import { describe, expect, test } from "vitest";

import { ETHER, type Hex } from "../../src/index.js";
import { ProblemError } from "../../src/problem.js";
import { EventParser } from "../../src/sse.js";
import { agreedBalances, claimsAbove, supportedBalance } from "../../src/agreement.js";
import type { AccountState } from "../../src/views.js";
import { decodeAccount, decodeStatus, decodeVoted } from "../../src/wire.js";

describe("answers", () => {
  const account = { nextSequence: "1", pending: null, holdings: [], received: "0", deposits: "0", truncated: false };

  test("with fields of a later version are read", () => {
    expect(decodeAccount({ ...account, later: [1] }, "it")).toEqual({
      nextSequence: 1n,
      pending: undefined,
      holdings: [],
      received: 0n,
      deposits: 0n,
      truncated: false,
    });
  });

  test.each([
    ["no object", null],
    ["a list", []],
    ["a number as a number", { ...account, nextSequence: 1 }],
    ["a negative number", { ...account, nextSequence: "-1" }],
    ["a number with zeros before it", { ...account, nextSequence: "01" }],
    ["a number of more than 64 bits", { ...account, nextSequence: (1n << 64n).toString() }],
    ["a field left out", { ...account, received: undefined }],
    ["a field of the prototype", JSON.parse('{"__proto__": {"nextSequence": "1"}}')],
    ["a balance of more than 256 bits", { ...account, holdings: [{ asset: ETHER, balance: (1n << 255n).toString() }] }],
    ["an asset that is none", { ...account, holdings: [{ asset: "0x12", balance: "1" }] }],
    ["a pending order that is none", { ...account, pending: { transfer: { type: "gift" } } }],
    ["too many holdings", { ...account, holdings: Array(10_001).fill({ asset: ETHER, balance: "1" }) }],
  ])("with %s are refused", (_name, value) => {
    expect(() => decodeAccount(value, "it")).toThrow(expect.objectContaining({ code: "malformed-answer" }));
  });

  test("hexadecimal is read in both cases and is in lower case from there on", () => {
    const vote = { type: "redemption", authority: `0x${"AB".repeat(32)}`, signature: `0x${"cD".repeat(65)}` };
    expect(decodeVoted({ epoch: "0", vote }, "it").vote.authority).toBe(`0x${"ab".repeat(32)}`);
    const long = {
      ...vote,
      type: "payment",
      signature: `0x${"00".repeat(64)}`,
      directions: 0,
      siblings: Array(11).fill(`0x${"00".repeat(32)}`),
    };
    expect(() => decodeVoted({ epoch: "0", vote: long }, "it")).toThrow("a list of at most 10");
  });

  test("of an authority without Ethereum have no contract", () => {
    const status = {
      authority: `0x${"00".repeat(32)}`,
      version: "1",
      chainId: "0",
      contract: null,
      epoch: "0",
      votes: true,
      shards: [],
      follower: { state: "none" },
    };
    expect(decodeStatus(status, "it").contract).toBeUndefined();
  });

  test("report that an authority was restored, and the sums of its accounts", () => {
    const totals = [{ asset: `0x${"00".repeat(20)}`, accounts: "-79" }];
    const status = {
      authority: `0x${"00".repeat(32)}`,
      version: "1",
      chainId: "1",
      contract: `0x${"fa".repeat(20)}`,
      epoch: "0",
      votes: false,
      restored: true,
      shards: [{ totals }],
      follower: { state: "atHead" },
    };
    expect(decodeStatus(status, "it")).toMatchObject({ votes: false, restored: true, shards: [{ totals: [{ accounts: -79n }] }] });
  });

  test("that are problems say what to do; none of their fields is required", () => {
    const error = new ProblemError(503, { code: "busy", retry: "later", retryAfterMs: 20 });
    expect(error).toMatchObject({ code: "refused", problem: "busy", isTransient: true, facts: { retryAfterMs: 20 } });
    expect(new ProblemError(418, { code: "new-in-a-later-version" })).toMatchObject({ isTransient: false });
    expect(() => new ProblemError(500, "<html>")).toThrow(expect.objectContaining({ code: "malformed-answer" }));
  });
});

describe("event streams", () => {
  const text =
    'retry: 1\n\n: comment\n\nid: 0.1.0\nevent: received\ndata: {"a":\ndata: 1}\n\ndata: x\r\nid: 0.2.0\r\n\r\n';

  test("are read in any pieces", () => {
    for (let size = 1; size <= text.length; size += 1) {
      const parser = new EventParser();
      const events = [];
      for (let at = 0; at < text.length; at += size) events.push(...parser.feed(text.slice(at, at + size)));
      expect(events, `in pieces of ${size}`).toEqual([
        { event: "received", data: '{"a":\n1}', id: "0.1.0" },
        { event: "message", data: "x", id: "0.2.0" },
      ]);
    }
  });

  test("with an endless event are abandoned", () => {
    const parser = new EventParser();
    const piece = `data: ${"x".repeat(1_000)}\n`;
    expect(() => {
      for (let i = 0; i < 2_000; i += 1) parser.feed(piece);
    }).toThrow(expect.objectContaining({ code: "malformed-answer" }));
    // Comments and events that end may go on for ever.
    const patient = new EventParser();
    for (let i = 0; i < 5_000; i += 1) patient.feed(`: ${"x".repeat(500)}\n\ndata: ${"x".repeat(500)}\n\n`);
  });
});

describe("the agreed account", () => {
  const state = (next: bigint, balance: bigint, asset: Hex = ETHER): AccountState => ({
    nextSequence: next,
    pending: undefined,
    holdings: [{ asset, balance }],
    received: 0n,
    deposits: 0n,
    truncated: false,
  });
  const supported = (states: AccountState[], next: bigint) =>
    supportedBalance(states, next, ETHER, 2, (sequence) =>
      sequence >= 3n ? { asset: ETHER, amount: 10n } : undefined,
    );
  const agreed = (states: AccountState[]) =>
    agreedBalances(states, 2).map(({ balance, agreeing }) => [balance, agreeing]);

  test("a single authority cannot invent or hide money", () => {
    expect(supported([state(5n, 100n), state(5n, 100n), state(5n, 1_000_000n)], 5n)).toBe(100n);
    expect(supported([state(5n, 100n), state(5n, 100n), state(5n, -7n)], 5n)).toBe(100n);
  });

  test("lagging authorities are advanced by known orders", () => {
    expect(supported([state(5n, 80n), state(3n, 100n), state(3n, 100n)], 5n)).toBe(80n);
    expect(supported([state(5n, 80n), state(2n, 100n), state(2n, 100n)], 5n)).toBeUndefined();
    expect(supported([state(5n, 80n), state(9n, 100n), state(9n, 100n)], 5n)).toBeUndefined();
    expect(supported([state(5n, 80n), state(5n, 80n), state(5_000n, 100n)], 4_000n)).toBeUndefined();
  });

  test("the balance is the newest that an honest authority reports", () => {
    expect(agreed([state(1n, 50n), state(1n, 50n), state(1n, 50n), state(0n, 60n)])).toEqual([[50n, 3]]);
    expect(agreed([state(1n, 50n), state(1n, 50n), state(0n, 60n), state(0n, 60n)])).toEqual([[50n, 2]]);
    expect(agreed([state(1n, 50n), state(1n, 60n), state(1n, 70n)])).toEqual([[60n, 1]]);
    expect(agreed([state(1n, 0n), state(1n, 0n)])).toEqual([]);
    // A lone liar's asset is shown to hold nothing.
    const lie = state(9n, 9n, `0x${"11".repeat(20)}`);
    expect(agreed([state(1n, 0n), state(1n, 0n), lie])).toEqual([]);
    expect(agreed([])).toEqual([]);
  });

  test("one authority's long list hides nothing, and each entry is read once", () => {
    const address = (i: number): Hex => `0x${i.toString(16).padStart(40, "0")}`;
    let looked = 0;
    const lies = Array.from({ length: 10_000 }, (_, i) => ({
      get asset() {
        looked += 1;
        return address(i + 1);
      },
      balance: 1n,
    }));
    const liar = { ...state(1n, 50n), holdings: [...lies, { asset: ETHER, balance: 50n }] };
    expect(agreed([state(1n, 50n), state(1n, 50n), liar])).toEqual([[50n, 3]]);
    expect(looked).toBe(10_000);
  });

  test("an authority that claims to be ahead of all cannot make an old balance the newest", () => {
    const old = state(1n, 100n);
    const now = state(2n, 50n);
    expect(agreed([now, now, old, { ...old, nextSequence: 9n }])).toEqual([[50n, 2]]);
    expect(agreed([now, now, old, { ...old, nextSequence: 2n, received: 9n }])).toEqual([[50n, 2]]);
    // A payment came in: the same number, and more of what is known.
    const paid = { ...state(2n, 70n), received: 1n };
    expect(agreed([paid, paid, now, { ...now, deposits: 9n }])).toEqual([[70n, 2]]);
  });

  test("claims must be proven, the highest first", () => {
    expect(claimsAbove([state(3n, 0n), state(9n, 0n), state(1n, 0n), state(9n, 0n)], 1n)).toEqual([9n, 3n]);
  });
});
