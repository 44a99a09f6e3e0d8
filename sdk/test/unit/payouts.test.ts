/** A payout or a claim that was sent is followed to its end, also by the next page, and never sent a second time meanwhile. */

import { decodeFunctionData, getAddress, size } from "viem";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import {
  accountFromEthereum,
  ETHER,
  type ChainStep,
  type ClaimIntent,
  type Hex,
  type Redemption,
  type VerifiedCertificate,
} from "../../src/index.js";
import { FASTPAY_ABI } from "../../src/chain/abi.js";
import type { Context } from "../../src/wallet/context.js";
import { checkRecipient, claim, executeQueued, followClaim, redeemOnChain, resumePayout } from "../../src/wallet/payouts.js";
import { unfinishedTransactions, type Sent } from "../../src/wallet/transactions.js";
import { DOMAIN } from "../support/committee.js";
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

const report = (step: ChainStep): void => void steps.push(step);
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

test("a number that the contract voided is spent, and is not called paid", async () => {
  chain.isRedeemed = true;
  expect(await chain.contract.redemptionStatus(scene.alice.account, 0n)).toEqual({ state: "paid" });
  chain.isVoided = true;
  expect(await chain.contract.redemptionStatus(scene.alice.account, 0n)).toEqual({ state: "voided" });
});

describe("a payout", () => {
  const bring = () => redeemOnChain(context, chain.wallet, certificate, report, controller.signal);
  const unfinished = () => unfinishedTransactions(context, scene.alice.account);
  const resume = async () => resumePayout(context, (await unfinished())[0] as Sent<"payout">, report, controller.signal);

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

describe("what waits in the queue", () => {
  const execute = () => {
    const { transfer } = certificate.order;
    return executeQueued(context, chain.wallet, transfer as Redemption, report, controller.signal);
  };
  const votes = () => {
    const { functionName, args } = decodeFunctionData({ abi: FASTPAY_ABI, data: chain.sent.at(-1) ?? "0x" });
    expect(functionName).toBe("executeQueued");
    return (args?.[1] ?? "none") as Hex;
  };

  test("is executed without votes", async () => {
    chain.queue = { needsVotes: false };
    await leave(execute());
    expect(votes()).toBe("0x");
  });

  test("of an epoch whose keys were stolen is voted for by the current committee first", async () => {
    chain.queue = { needsVotes: true };
    scene.rotate();
    await leave(execute());
    // One byte and 65 of signature each, of a quorum.
    expect(size(votes())).toBe(3 * 66);
  });

  test("without a certificate, as a thief queued it, is not voted for", async () => {
    chain.queue = { needsVotes: true };
    const { transfer } = certificate.order;
    const stolen = { ...transfer, amount: 8n } as Redemption;
    const outcome = executeQueued(context, chain.wallet, stolen, report, controller.signal);
    await expect(outcome).rejects.toMatchObject({ code: "not-found" });
    expect(sendings()).toBe(0);
  });
});

describe("a recipient", () => {
  test("that is a contract of FastPay is refused; any other address is not, nor while the node is away", async () => {
    const { council, fastPay, itsCouncil, stranger } = chain.others;
    for (const recipient of [DOMAIN.contract, council, fastPay, itsCouncil]) {
      await expect(checkRecipient(chain.contract, recipient)).rejects.toMatchObject({ code: "recipient-is-fastpay" });
    }
    for (const recipient of [OWNER, stranger]) await checkRecipient(chain.contract, recipient);
    chain.isSilent = true;
    await checkRecipient(chain.contract, fastPay);
  });
});

describe("a claim", () => {
  beforeEach(() => {
    chain.claimable = 7n;
  });

  const account = accountFromEthereum(OWNER);
  const collect = (intent: Partial<ClaimIntent> = {}) =>
    claim(context, chain.wallet, { asset: ETHER, ...intent }, report, controller.signal);
  const called = () => decodeFunctionData({ abi: FASTPAY_ABI, data: chain.sent.at(-1) ?? "0x" });
  const unfinished = () => unfinishedTransactions(context, account);

  test("that is on its way is followed by whoever asks for it again, and after a reload", async () => {
    await leave(collect());
    const sentFor = { type: "claim", hash: chain.hash, account, asset: ETHER, amount: 7n };
    expect(await unfinished()).toMatchObject([sentFor]);
    await leave(collect());
    expect(sendings()).toBe(1);
    chain.did = "claim";
    mine();
    const [sent] = await unfinished();
    const receipt = await followClaim(context, sent as Sent<"claim">, report, controller.signal);
    expect(receipt).toEqual({ hash: chain.hash, amount: 7n, to: OWNER });
    expect(await unfinished()).toEqual([]);
  });

  test("is collected whole by default; a part of it, or to another address, where that is said", async () => {
    const other: Hex = "0x00000000000000000000000000000000000000bb";
    const checksum = (text: Hex) => getAddress(text);
    for (const [intent, to, amount] of [
      [{}, OWNER, 7n],
      [{ amount: 3n }, OWNER, 3n],
      [{ to: other, amount: 2n }, other, 2n],
    ] as const) {
      const collecting = collect(intent);
      await vi.waitFor(() => expect(chain.sent.length).toBeGreaterThan(0), 30_000);
      expect(called()).toEqual({ functionName: "claim", args: [checksum(ETHER), checksum(to), amount] });
      chain.did = "claim";
      mine();
      await collecting;
      chain.sent.length = 0;
      chain.block = undefined;
    }
  });

  test("of somebody else is paid to them, and to nobody else", async () => {
    const owner: Hex = "0x00000000000000000000000000000000000000bb";
    await expect(collect({ owner, to: OWNER })).rejects.toMatchObject({ code: "invalid-argument" });
    await expect(collect({ to: DOMAIN.contract })).rejects.toMatchObject({ code: "recipient-is-fastpay" });
    expect(sendings()).toBe(0);
    await leave(collect({ owner }));
    expect(called()).toEqual({ functionName: "claimFor", args: [getAddress(owner), getAddress(ETHER), 7n] });
    expect(await unfinishedTransactions(context, accountFromEthereum(owner))).toMatchObject([{ type: "claim" }]);
  });

  test("that was cancelled in the wallet is not called done", async () => {
    mine();
    await expect(collect()).rejects.toMatchObject({ code: "not-found", details: { hash: chain.hash } });
    expect(await unfinished()).toEqual([]);
  });
});
