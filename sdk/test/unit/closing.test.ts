/** A program that is done ends: nothing is asked, and nothing is waited for, behind its back. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { included } from "../../src/chain/transactions.js";
import type { ChainStep } from "../../src/index.js";
import { Network } from "../../src/network.js";
import { watchAccount } from "../../src/wallet/watch.js";
import { payMany } from "../../src/wallet/many.js";
import { send } from "../../src/wallet/send.js";
import { paymentOf } from "../support/committee.js";
import { TestChain } from "../support/chain.js";
import { Scene } from "../support/scene.js";

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(async () => {
  vi.unstubAllGlobals();
  await scene.close();
});

/** Counts the timers that the library sets from now on and that have neither come nor been cleared. */
function countTimers(): () => number {
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const open = new Set<unknown>();
  vi.stubGlobal("setTimeout", (act: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) => {
    const timer = set(() => {
      open.delete(timer);
      act(...given);
    }, ms);
    // Those of Node's own client keep no program alive.
    if (!(new Error().stack ?? "").includes("undici")) open.add(timer);
    return timer;
  });
  vi.stubGlobal("clearTimeout", (timer: ReturnType<typeof set>) => {
    open.delete(timer);
    clear(timer);
  });
  return () => open.size;
}

test("a transaction found by its number is no longer polled", async () => {
  const chain = new TestChain(scene.bob.account, 7n);
  chain.block = 5n;
  // As a node does that has not told of a new block since.
  const contract = chain.contract;
  vi.spyOn(contract.client, "waitForTransactionReceipt").mockImplementation(
    ({ signal }) =>
      new Promise((_, reject) => {
        const end = (): void => reject(new Error("This operation was aborted"));
        if (signal?.aborted) end();
        signal?.addEventListener("abort", end, { once: true });
      }),
  );
  const open = countTimers();
  const steps: ChainStep[] = [];
  const receipt = await included({ contract, report: (step) => steps.push(step), signal: undefined }, chain.hash);
  expect(receipt.blockNumber).toBe(5n);
  await vi.waitFor(() => expect(open()).toBe(0));
  // Nor is the node said to be silent.
  expect(steps).toEqual([]);
});

test("a closed client leaves no timer, though an authority never answers", async () => {
  const closing = new AbortController();
  const { domain, committees, authorities } = scene.context.network;
  const network = new Network(domain, committees, authorities, { readMs: 3_600_000 }, closing.signal);
  const timing = { ...scene.context.timing, backgroundMs: 3_600_000, deadlineMs: 3_600_000 };
  const context = { ...scene.context, network, timing };
  scene.node(3).lie = ({ path }) => (path === "/v1/certificates" ? { status: 503, body: { code: "busy", retry: "later" } } : undefined);
  const open = countTimers();
  const intent = (sequence: bigint) => paymentOf(scene.alice.account, scene.bob.account, 7n, sequence);
  const { rest } = await send(context, scene.alice, intent, () => undefined, closing.signal);
  expect(open()).toBeGreaterThan(0);
  closing.abort();
  expect(await rest).toBe(3);
  await vi.waitFor(() => expect(open()).toBe(0));
});

test("a closed client's pending calls end with `aborted`", async () => {
  const closing = new AbortController();
  const { domain, committees, authorities } = scene.context.network;
  const network = new Network(domain, committees, authorities, { readMs: 3_600_000 }, closing.signal);
  const context = { ...scene.context, network };
  for (const node of scene.nodes) node.lie = () => "hang";
  const line = { recipient: scene.bob.account, asset: `0x${"0".repeat(40)}` as const, amount: 1n };
  const asked = [
    network.accountStates(scene.alice.account),
    payMany(context, scene.alice, [line], { signal: closing.signal }, () => undefined),
  ];
  const watching = (async () => {
    for await (const event of watchAccount(context, scene.bob.account, undefined, closing.signal)) expect(event).toBeUndefined();
  })();
  const ends = Promise.allSettled(asked);
  closing.abort();
  for (const end of await ends) expect(end).toMatchObject({ status: "rejected", reason: { code: "aborted" } });
  await watching;
});
