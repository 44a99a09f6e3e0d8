/** A submitted deposit continues despite failures of the Ethereum node or the page; nobody has to send it again. */

import { setTimeout as sleep } from "node:timers/promises";
import { pad } from "viem";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { ETHER, memoryStore, type ChainStep, type OrderStore } from "../../src/index.js";
import type { ContractContext } from "../../src/wallet/context.js";
import { deposit, followDeposit } from "../../src/wallet/deposits.js";
import { forgetTransaction, unfinishedTransactions, type Sent } from "../../src/wallet/transactions.js";
import { OWNER, TestChain } from "../support/chain.js";
import { onContract, Scene } from "../support/scene.js";

let scene: Scene;
let chain: TestChain;
let context: ContractContext;
let steps: ChainStep[];

beforeEach(async () => {
  scene = await Scene.open();
  chain = new TestChain(scene.bob.account, 7n);
  context = { ...scene.context, ...onContract(chain.contract) };
  steps = [];
  for (const node of scene.nodes) node.lie = chain.credit;
});

afterEach(() => scene.close());

function begin(options: { store?: OrderStore | undefined; signal?: AbortSignal } = {}) {
  const intent = { recipient: chain.recipient, asset: ETHER, amount: chain.amount };
  const its = { ...context, store: "store" in options ? options.store : context.store };
  return deposit(its, chain.wallet, intent, (step) => steps.push(step), options.signal);
}

const unfinished = () => unfinishedTransactions(context, chain.recipient);
const go = (sent: unknown) => followDeposit(context, sent as Sent<"deposit">, (step) => steps.push(step), undefined);
const hasStep = (type: ChainStep["type"]) => vi.waitFor(() => expect(steps.map((step) => step.type)).toContain(type), 30_000);

function mine(): void {
  chain.block = chain.newest + 1n;
  chain.newest = chain.block;
}

test("a silent node does not end it, before its block or after", async () => {
  const done = begin();
  await hasStep("submitted");
  const sent = { type: "deposit", hash: chain.hash, account: chain.recipient, asset: ETHER, amount: 7n };
  expect(await unfinished()).toMatchObject([sent]);
  chain.isSilent = true;
  await hasStep("node");
  steps = [];
  chain.isSilent = false;
  await vi.waitFor(() => expect(steps).toEqual([{ type: "node", failure: undefined }]), 30_000);
  mine();
  await hasStep("included");
  steps = [];
  chain.isSilent = true;
  await hasStep("node");
  chain.final = chain.newest;
  chain.isSilent = false;
  expect(await done).toMatchObject({ hash: chain.hash, deposit: { index: 1n, amount: 7n } });
  expect(steps).toContainEqual({ type: "node", failure: expect.stringContaining("the Ethereum node failed") });
  expect(steps.findLast((step) => step.type === "node")).toEqual({ type: "node", failure: undefined });
  expect(chain.asked.filter((method) => method === "eth_sendTransaction")).toHaveLength(1);
  expect(await unfinished()).toEqual([]);
});

test("blocks are counted down until its own stays", async () => {
  const done = begin();
  await hasStep("submitted");
  chain.final = chain.newest - 2n;
  mine();
  const counted = (blocks: bigint) => vi.waitFor(() => expect(steps).toContainEqual({ type: "finalizing", hash: chain.hash, blocks }), 30_000);
  await counted(3n);
  chain.final += 2n;
  await counted(1n);
  chain.final += 1n;
  await done;
  // Once for each block, however often the node is asked.
  expect(steps.filter(({ type }) => type === "finalizing")).toHaveLength(2);
});

test("an aborted wait reports the hash, stops polling, and can be continued", async () => {
  const controller = new AbortController();
  const done = begin({ signal: controller.signal });
  await hasStep("submitted");
  // It waits for its block, of which the node is asked again and again.
  await vi.waitFor(() => expect(chain.asked.at(-1)).toBe("eth_blockNumber"), 30_000);
  controller.abort();
  await expect(done).rejects.toMatchObject({ code: "aborted", details: { hash: chain.hash } });
  await sleep(50);
  const asked = chain.asked.length;
  await sleep(100);
  expect(chain.asked).toHaveLength(asked);

  const [left] = await unfinished();
  if (left === undefined) throw new Error("it is forgotten");
  mine();
  chain.final = chain.newest;
  expect(await go(left)).toMatchObject({ hash: chain.hash });
  expect(await unfinished()).toEqual([]);
});

test("one that was reverted is not followed again", async () => {
  mine();
  chain.isReverted = true;
  await expect(begin()).rejects.toMatchObject({ code: "reverted", details: { hash: chain.hash } });
  expect(await unfinished()).toEqual([]);
});

test("a cancelled one is forgotten at the user's request, and only that one", async () => {
  const controller = new AbortController();
  const done = begin({ signal: controller.signal });
  await hasStep("submitted");
  controller.abort();
  await expect(done).rejects.toMatchObject({ code: "aborted" });
  const name = { type: "deposit", account: chain.recipient } as const;
  await forgetTransaction(context, { ...name, hash: `0x${"00".repeat(32)}` });
  expect(await unfinished()).toHaveLength(1);
  expect(await unfinishedTransactions(context, scene.alice.account)).toEqual([]);
  await forgetTransaction(context, { ...name, hash: chain.hash });
  expect(await unfinished()).toEqual([]);
});

describe("one that another transaction replaced while no program ran", () => {
  const other = pad("0xd1");

  /** What is left in the storage of it. */
  async function left(): Promise<unknown> {
    const controller = new AbortController();
    const done = begin({ signal: controller.signal });
    await vi.waitFor(async () => expect(await unfinished()).toMatchObject([{ place: { from: OWNER, nonce: 7 } }]), 30_000);
    controller.abort();
    await expect(done).rejects.toMatchObject({ code: "aborted" });
    chain.replacement = other;
    mine();
    chain.final = chain.newest;
    return (await unfinished())[0];
  }

  test("is found, and followed until it is credited", async () => {
    expect(await go(await left())).toMatchObject({ hash: other, deposit: { index: 1n, amount: 7n } });
    expect(await unfinished()).toEqual([]);
  });

  test("is reported and forgotten if it was cancelled", async () => {
    const sent = await left();
    chain.did = "nothing";
    await expect(go(sent)).rejects.toMatchObject({ code: "not-found", message: expect.stringContaining("made no deposit") });
    expect(await unfinished()).toEqual([]);
  });

  test("is reported as replaced and forgotten if no node knows it", async () => {
    const sent = await left();
    chain.listsSenders = false;
    await expect(go(sent)).rejects.toMatchObject({
      code: "not-found",
      message: expect.stringContaining("cancelled or replaced"),
      details: { hash: chain.hash },
    });
    expect(await unfinished()).toEqual([]);
  });

  test("is awaited until its block is final", async () => {
    const sent = await left();
    chain.listsSenders = false;
    chain.final = chain.newest - 1n;
    const done = go(sent);
    await hasStep("submitted");
    await sleep(50);
    expect(await unfinished()).toHaveLength(1);
    chain.final = chain.newest;
    await expect(done).rejects.toMatchObject({ code: "not-found" });
  });
});

test.each([
  ["fails", { ...memoryStore(), create: () => Promise.reject(new Error("the disk is full")) }],
  ["is missing", undefined],
])("a storage that %s does not stop what was sent", async (_name, store) => {
  mine();
  chain.final = chain.newest;
  expect(await begin({ store })).toMatchObject({ hash: chain.hash });
});
