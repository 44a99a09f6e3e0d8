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
import type { ContractContext } from "../../src/wallet/context.js";
import { checkRecipient, claim, executeQueued, followClaim, redeemOnChain, resumePayout } from "../../src/wallet/payouts.js";
import { unfinishedTransactions, type Sent } from "../../src/wallet/transactions.js";
import { DOMAIN } from "../support/committee.js";
import { OWNER, spentIn, TestChain } from "../support/chain.js";
import { onContract, Scene } from "../support/scene.js";

let scene: Scene;
let chain: TestChain;
let context: ContractContext;
let certificate: VerifiedCertificate;
let controller: AbortController;
let steps: ChainStep[];

beforeEach(async () => {
  scene = await Scene.open();
  chain = new TestChain(scene.bob.account, 7n);
  chain.did = "nothing";
  context = { ...scene.context, ...onContract(chain.contract) };
  ({ certificate } = await scene.redeem(7n));
  controller = new AbortController();
  steps = [];
});

afterEach(() => scene.close());

const own = (): Redemption => certificate.order.transfer as Redemption;
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

describe("a redemption's state", () => {
  const stolen = (): Redemption => ({ ...own(), amount: 8n });
  const status = () => chain.contract.redemptionStatus(scene.alice.account, 0n, certificate.digest);

  test("is paid only if the contract logged this very redemption", async () => {
    expect(await status()).toEqual({ state: "open" });
    chain.spend(own());
    expect(await status()).toEqual({ state: "paid", hash: spentIn(chain.newest) });
  });

  test("is displaced if a thief spent its number on another order, also one in the queue", async () => {
    chain.spend(stolen(), "RedemptionQueued");
    chain.queue = { needsVotes: false };
    expect(await status()).toEqual({ state: "displaced", hash: spentIn(10n) });
    chain.queue = undefined;
    chain.newest = 12n;
    chain.spend(stolen());
    expect(await status()).toEqual({ state: "displaced", hash: spentIn(12n) });
  });

  test("is not paid if it was released from the queue, or its number is void", async () => {
    chain.spend(own(), "RedemptionQueued", 8n);
    chain.queue = { needsVotes: false };
    expect(await status()).toMatchObject({ state: "queued" });
    chain.queue = undefined;
    chain.spend(own(), "RedemptionReleased", 9n);
    expect(await status()).toEqual({ state: "released", hash: spentIn(9n) });
    chain.isVoided = true;
    expect(await status()).toEqual({ state: "voided" });
  });

  test("is unknown if the log does not show it, is unavailable, or is older than the views", async () => {
    chain.isRedeemed = true;
    expect(await status()).toEqual({ state: "spent" });
    expect(await chain.contract.redemptionStatus(scene.alice.account, 0n, undefined)).toEqual({ state: "spent" });
    chain.spend(own(), "RedemptionQueued");
    expect(await status()).toEqual({ state: "spent" });
    chain.spend(own());
    chain.logRange = 0n;
    expect(await status()).toEqual({ state: "spent" });
  });

  test("is read backwards from the newest block, and final blocks once", async () => {
    const { contract } = chain;
    const ask = (sequence: bigint) => contract.redemptionStatus(scene.alice.account, sequence, certificate.digest);
    [chain.newest, chain.final] = [250_000n, 249_990n];
    chain.spend(own(), "Redeemed", 225_000n);
    // A number that is looked for at the same time.
    const [found, unknown] = await Promise.all([ask(0n), ask(5n)]);
    expect(found).toEqual({ state: "paid", hash: spentIn(225_000n) });
    expect(unknown).toEqual({ state: "spent" });
    // 100,000 blocks in ranges of 10,000, and those that are not final for each.
    expect(chain.ranges).toHaveLength(12);
    expect(chain.ranges.at(-1)?.[0]).toBe(150_000n);
    // A log of a block that was undone is not kept.
    chain.spend({ ...own(), sequence: 5n }, "Redeemed", 250_000n);
    expect(await ask(5n)).toMatchObject({ state: "displaced" });
    chain.log.pop();
    expect(await ask(5n)).toEqual({ state: "spent" });
    [chain.newest, chain.final] = [250_100n, 250_050n];
    chain.spend({ ...own(), sequence: 5n }, "Redeemed", 250_040n);
    expect(await ask(5n)).toEqual({ state: "displaced", hash: spentIn(250_040n) });
    expect(chain.ranges.slice(-2)).toEqual([[249_991n, 250_050n], [250_051n, 250_100n]]);
  });

  test("is read in smaller ranges if the node requires it", async () => {
    [chain.newest, chain.final] = [250_000n, 249_990n];
    chain.logRange = 1_000n;
    chain.spend(own(), "Redeemed", 240_000n);
    expect(await status()).toEqual({ state: "paid", hash: spentIn(240_000n) });
    expect(chain.ranges).toHaveLength(11);
  });
});

describe("a payout", () => {
  const bring = () => redeemOnChain(context, chain.wallet, certificate, report, controller.signal);
  const unfinished = () => unfinishedTransactions(context, scene.alice.account);
  const resume = async () => resumePayout(context, (await unfinished())[0] as Sent<"payout">, report, controller.signal);

  test("that is pending is followed by a repeated call, and not sent twice", async () => {
    await leave(bring());
    expect(await unfinished()).toMatchObject([{ type: "payout", hash: chain.hash, sequence: 0n, from: "open" }]);
    const again = bring();
    await isSubmitted();
    chain.spend(own());
    mine();
    expect(await again).toEqual({ hash: chain.hash, status: { state: "paid", hash: spentIn(10n) } });
    expect(sendings()).toBe(1);
    expect(await unfinished()).toEqual([]);
  });

  test("continues after a reload, despite a silent node", async () => {
    await leave(bring());
    chain.isSilent = true;
    const resumed = resume();
    await isSubmitted();
    await vi.waitFor(() => expect(steps.map(({ type }) => type)).toContain("node"), 30_000);
    chain.isSilent = false;
    mine();
    chain.spend(own());
    await resumed;
    expect(await unfinished()).toEqual([]);
    expect(sendings()).toBe(1);
  });

  test("ends if a relayer was faster, whatever happens to the transaction", async () => {
    await leave(bring());
    chain.spend(own());
    expect(await resume()).toEqual({ hash: undefined, status: { state: "paid", hash: spentIn(10n) } });
    expect(await unfinished()).toEqual([]);
  });

  test("that was reverted because a relayer was faster succeeds", async () => {
    await leave(bring());
    const resumed = resume();
    await vi.waitFor(() => expect(steps.filter(({ type }) => type === "submitted")).toHaveLength(2), 30_000);
    chain.spend(own());
    chain.isReverted = true;
    mine();
    expect(await resumed).toEqual({ hash: undefined, status: { state: "paid", hash: spentIn(10n) } });
  });

  test("whose number a thief spends first is never reported as done, and not followed again", async () => {
    await leave(bring());
    const resumed = resume();
    await vi.waitFor(() => expect(steps.filter(({ type }) => type === "submitted")).toHaveLength(2), 30_000);
    chain.spend({ ...own(), amount: 8n });
    chain.isReverted = true;
    mine();
    const displaced = { code: "never-paid", details: { status: { state: "displaced", hash: spentIn(10n) } } };
    await expect(resumed).rejects.toMatchObject(displaced);
    expect(await unfinished()).toEqual([]);
    await expect(bring()).rejects.toMatchObject(displaced);
    expect(sendings()).toBe(1);
  });

  test("that an earlier version stored without its digest is followed, and not reported as paid", async () => {
    await leave(bring());
    const [sent] = (await unfinished()) as Sent<"payout">[];
    const { digest: _, ...old } = sent as Sent<"payout">;
    chain.spend(own());
    const resumed = resumePayout(context, { ...old, digest: undefined }, report, controller.signal);
    expect(await resumed).toEqual({ hash: undefined, status: { state: "spent" } });
  });

  test("that was cancelled in the wallet is not reported as done, and can be sent again", async () => {
    await leave(bring());
    mine();
    await expect(resume()).rejects.toMatchObject({ code: "not-found", details: { hash: chain.hash } });
    expect(await unfinished()).toEqual([]);
    chain.block = undefined;
    const again = bring();
    await isSubmitted();
    await vi.waitFor(() => expect(sendings()).toBe(2), 30_000);
    chain.spend(own());
    mine();
    await again;
  });
});

describe("a queued redemption", () => {
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

  test("of an epoch whose keys were stolen is first certified by the current committee", async () => {
    chain.queue = { needsVotes: true };
    scene.rotate();
    await leave(execute());
    // One byte and 65 of signature each, of a quorum.
    expect(size(votes())).toBe(3 * 66);
  });

  test("without a certificate, as a thief queues it, gets no votes", async () => {
    chain.queue = { needsVotes: true };
    const { transfer } = certificate.order;
    const stolen = { ...transfer, amount: 8n } as Redemption;
    const outcome = executeQueued(context, chain.wallet, stolen, report, controller.signal);
    await expect(outcome).rejects.toMatchObject({ code: "not-found" });
    expect(sendings()).toBe(0);
  });
});

describe("a recipient", () => {
  test("that is a FastPay contract is refused; other addresses are accepted, also while the node is unreachable", async () => {
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

  test("that is pending is followed by a repeated call, and after a reload", async () => {
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

  test("is claimed whole by default, or in part or to another address on request", async () => {
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

  test("of another owner is paid to that owner only", async () => {
    const owner: Hex = "0x00000000000000000000000000000000000000bb";
    await expect(collect({ owner, to: OWNER })).rejects.toMatchObject({ code: "invalid-argument" });
    await expect(collect({ to: DOMAIN.contract })).rejects.toMatchObject({ code: "recipient-is-fastpay" });
    expect(sendings()).toBe(0);
    await leave(collect({ owner }));
    expect(called()).toEqual({ functionName: "claimFor", args: [getAddress(owner), getAddress(ETHER), 7n] });
    expect(await unfinishedTransactions(context, accountFromEthereum(owner))).toMatchObject([{ type: "claim" }]);
  });

  test("that was cancelled in the wallet is not reported as done", async () => {
    mine();
    await expect(collect()).rejects.toMatchObject({ code: "not-found", details: { hash: chain.hash } });
    expect(await unfinished()).toEqual([]);
  });
});
