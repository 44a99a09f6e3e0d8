/** A payout or a claim that was sent is followed to its end, also by the next page, and never sent a second time meanwhile. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { accountFromEthereum, ETHER, type ChainStep, type VerifiedCertificate } from "../../src/index.js";
import type { Context } from "../../src/wallet/context.js";
import { claim, followClaim, redeemOnChain, resumePayout } from "../../src/wallet/payouts.js";
import { unfinishedTransactions, type Sent } from "../../src/wallet/transactions.js";
import { OWNER, TestChain } from "../support/chain.js";
import { Scene } from "../support/scene.js";

let scene: Scene;
let chain: TestChain;
let context: Context;
let certificate: VerifiedCertificate;
let controller: AbortController;
let steps: ChainStep[];

beforeEach(async () => {
  scene = await Scene.open();
  chain = new TestChain(scene.bob.account, 7n);
  chain.did = "nothing";
  context = { ...scene.context, contract: chain.contract };
  ({ certificate } = await scene.redeem(7n));
  controller = new AbortController();
  steps = [];
});

afterEach(() => scene.close());

const tell = (step: ChainStep): void => void steps.push(step);
const sendings = () => chain.asked.filter((method) => method === "eth_sendTransaction").length;
const isSubmitted = () => vi.waitFor(() => expect(steps.map(({ type }) => type)).toContain("submitted"), 30_000);

function mine(): void {
  chain.block = chain.newest + 1n;
  chain.newest = chain.block;
  chain.final = chain.block;
}

/** Goes away after it was sent. */
async function leave(work: Promise<unknown>): Promise<void> {
  await isSubmitted();
  controller.abort();
  await expect(work).rejects.toMatchObject({ code: "aborted", details: { hash: chain.hash } });
  controller = new AbortController();
  steps = [];
}

describe("a payout", () => {
  const bring = () => redeemOnChain(context, chain.wallet, certificate, tell, controller.signal);
  const unfinished = () => unfinishedTransactions(context, scene.alice.account);
  const resume = async () => resumePayout(context, (await unfinished())[0] as Sent<"payout">, tell, controller.signal);

  test("that is on its way is followed by whoever asks for it again, and not sent twice", async () => {
    await leave(bring());
    expect(await unfinished()).toMatchObject([{ type: "payout", hash: chain.hash, sequence: 0n, from: "open" }]);
    const again = bring();
    await isSubmitted();
    chain.isRedeemed = true;
    mine();
    expect(await again).toEqual({ hash: chain.hash, status: { state: "paid" } });
    expect(sendings()).toBe(1);
    expect(await unfinished()).toEqual([]);
  });

  test("goes on after a reload, through a silent node", async () => {
    await leave(bring());
    chain.isSilent = true;
    const resumed = resume();
    await isSubmitted();
    await vi.waitFor(() => expect(steps.map(({ type }) => type)).toContain("node"), 30_000);
    chain.isSilent = false;
    mine();
    chain.isRedeemed = true;
    await resumed;
    expect(await unfinished()).toEqual([]);
    expect(sendings()).toBe(1);
  });

  test("is over where a relayer was faster, whatever becomes of the transaction", async () => {
    await leave(bring());
    chain.isRedeemed = true;
    expect(await resume()).toEqual({ hash: undefined, status: { state: "paid" } });
    expect(await unfinished()).toEqual([]);
  });

  test("that was reverted because a relayer was faster is none the worse", async () => {
    await leave(bring());
    const resumed = resume();
    await vi.waitFor(() => expect(steps.filter(({ type }) => type === "submitted")).toHaveLength(2), 30_000);
    chain.isRedeemed = true;
    chain.isReverted = true;
    mine();
    expect(await resumed).toEqual({ hash: undefined, status: { state: "paid" } });
  });

  test("that was cancelled in the wallet is not called done, and can be sent again", async () => {
    await leave(bring());
    mine();
    await expect(resume()).rejects.toMatchObject({ code: "not-found", details: { hash: chain.hash } });
    expect(await unfinished()).toEqual([]);
    chain.block = undefined;
    const again = bring();
    await isSubmitted();
    await vi.waitFor(() => expect(sendings()).toBe(2), 30_000);
    chain.isRedeemed = true;
    mine();
    await again;
  });
});

describe("a claim", () => {
  const account = accountFromEthereum(OWNER);
  const collect = () => claim(context, chain.wallet, ETHER, undefined, tell, controller.signal);
  const unfinished = () => unfinishedTransactions(context, account);

  test("that is on its way is followed by whoever asks for it again, and after a reload", async () => {
    await leave(collect());
    expect(await unfinished()).toMatchObject([{ type: "claim", hash: chain.hash, account, asset: ETHER }]);
    await leave(collect());
    expect(sendings()).toBe(1);
    chain.did = "claim";
    mine();
    const [sent] = await unfinished();
    const receipt = await followClaim(context, sent as Sent<"claim">, tell, controller.signal);
    expect(receipt).toEqual({ hash: chain.hash, amount: 7n });
    expect(await unfinished()).toEqual([]);
  });

  test("that was cancelled in the wallet is not called done", async () => {
    mine();
    await expect(collect()).rejects.toMatchObject({ code: "not-found", details: { hash: chain.hash } });
    expect(await unfinished()).toEqual([]);
  });
});
