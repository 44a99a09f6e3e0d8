/**
 * A recovery debits a redemption that the contract had paid, without its certificate: a checkpoint or the contract
 * proves to the wallet what became of its number, and nobody redeems it twice.
 */

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { ETHER, memoryStore, NO_MEMO, transferDigest, type Certificate, type Redemption, type Resumed, type Transfer, type TransferOrder } from "../../src/index.js";
import { decodeLeaf } from "../../src/archive/leaf.js";
import { toBytes } from "../../src/bytes.js";
import { OrderJournal } from "../../src/storage/journal.js";
import { viewAccount } from "../../src/wallet/account.js";
import { operationOf } from "../../src/wallet/context.js";
import { readHistory } from "../../src/wallet/history.js";
import { resume } from "../../src/wallet/send.js";
import { firstOpenNumber } from "../../src/wallet/unlock.js";
import { TestArchive, type Page } from "../support/archive.js";
import { TestChain } from "../support/chain.js";
import { DOMAIN, paymentOf, signed } from "../support/committee.js";
import { problem, type Request } from "../support/node.js";
import { Scene } from "../support/scene.js";
import { checkpoints } from "../support/vectors.js";

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

const alice = () => scene.alice.account;
const journal = () => new OrderJournal(scene.context.store ?? memoryStore(), DOMAIN, alice());
const bobHas = () => scene.nodes.map((node) => node.account(scene.bob.account).balance);
/** The different orders that authorities have received. */
const sentOrders = () => new Set(scene.nodes.flatMap(({ orders }) => orders));

/** Alice's redemption of 7 under a number. */
function redemption(sequence: bigint, amount = 7n): Redemption {
  const recipient = "0x00000000000000000000000000000000000000aa";
  return { type: "redemption", sender: alice(), recipient, asset: ETHER, amount, fee: 0n, sequence, memo: NO_MEMO };
}

/** Its certificate by the present committee, which no authority has. */
async function certified(of: Transfer): Promise<Certificate> {
  const { transfer, authorization } = await signed(scene.alice, of);
  const { epoch } = scene.node(0);
  const votes = scene.nodes.slice(0, 3).map(({ keys }) => keys.vote(epoch, transfer));
  return { order: { transfer, authorization }, epoch, votes: votes.sort((a, b) => (a.authority < b.authority ? -1 : 1)) };
}

/** Stores an order, and its certificate if it has one. */
async function store({ transfer, authorization }: TransferOrder, certificate?: Certificate): Promise<void> {
  await journal().create({ transfer, authorization, digest: transferDigest(DOMAIN, transfer) } as Parameters<OrderJournal["create"]>[0]);
  if (certificate === undefined) return;
  const digest = transferDigest(DOMAIN, certificate.order.transfer);
  await journal().certify({ ...certificate, digest } as Parameters<OrderJournal["certify"]>[0]);
}

/** Alice has a certificate of an order under her first number that nobody has confirmed. */
async function certifiedHere(transfer: Transfer): Promise<void> {
  const certificate = await certified(transfer);
  await store(certificate.order, certificate);
}

/** A recovery debits the redemption, without its order. Its account goes on with `next`. */
async function recover(paid: Redemption, next: bigint, { isArchived = true } = {}): Promise<void> {
  scene.recover();
  await scene.context.network.committees.refresh();
  const archive = new TestArchive(scene.nodes.slice(0, 3).map(({ keys }) => keys), 1n);
  archive.add([], [], [paid]);
  for (const node of scene.nodes) {
    node.debit(paid, next);
    if (isArchived) node.prune(archive, 1);
  }
}

/** The contract has a number as spent on this redemption, or on none that its log names. */
function spend(sequence: bigint, on?: Redemption, event: "Redeemed" | "RedemptionQueued" | "RedemptionReleased" = "Redeemed"): void {
  scene.chain.spent.set(sequence, on && { event, digest: transferDigest(DOMAIN, on) });
}

/** Authorities are beyond Alice's first number, and have no certificate of it. */
function pass(nodes = scene.nodes): void {
  for (const node of nodes) node.decide(alice(), undefined);
}

const typesOf = (resumed: readonly Resumed[]) => resumed.map(({ type }) => type);

describe("leaf 0x24", () => {
  /** The leaves of the recovery's stream, which has orders of nobody. */
  function leaves(): Uint8Array[] {
    const stream = toBytes(checkpoints.recovery);
    const found: Uint8Array[] = [];
    for (let at = 8; at < stream.length; ) {
      const length = new DataView(stream.buffer).getUint32(at, true);
      found.push(stream.subarray(at + 4, at + 4 + length));
      at += 4 + length;
    }
    return found;
  }

  test("is read as Rust writes it, and has one encoding", () => {
    const kinds = leaves().map((leaf) => [leaf[0], decodeLeaf(leaf)?.type]);
    expect(kinds.filter(([, type]) => type !== undefined)).toEqual([[0x24, "paid"], [0x24, "paid"]]);
    const paid = leaves().filter((leaf) => leaf[0] === 0x24);
    expect(paid.map(decodeLeaf)).toMatchObject([{ transfer: { type: "redemption" } }, { transfer: { type: "redemption" } }]);
    for (const leaf of paid) {
      expect(decodeLeaf(leaf.subarray(0, -1))).toBeUndefined();
      expect(decodeLeaf(Uint8Array.of(...leaf, 0))).toBeUndefined();
    }
  });

  test("an order that was executed is not taken for one that was debited", async () => {
    await recover(redemption(0n), 1n);
    for (const node of scene.nodes) {
      node.lie = (request) => {
        if (!request.path.includes("/archived/") || request.query.get("paid") !== "true") return undefined;
        const { body } = node.honest(request) as { body: Page };
        for (const entry of body.entries) entry.leaf = `0x2201${entry.leaf.slice(4)}`;
        return { status: 200, body };
      };
    }
    expect(await scene.context.network.findNumber(alice(), 0n)).toBeUndefined();
  });

  test("authorities are asked for it only where they refuse a list without it", async () => {
    await recover(redemption(0n), 1n);
    const asked: string[] = [];
    const [authority] = scene.context.network.authorities;
    const watch = ({ path, query }: Request): undefined => {
      if (path.includes("/archived/")) asked.push(`${path.split("/").at(-1)} ${query.get("paid")}`);
    };
    scene.node(0).lie = watch;
    const page = await authority?.archived(alice(), { type: "sent", from: 0n });
    expect(page?.entries).toHaveLength(1);
    expect(asked.splice(0)).toEqual(["sent null", "sent true"]);
    await authority?.archived(alice(), { type: "sent", from: 1n });
    expect(asked.splice(0)).toEqual(["sent null"]);
    for (const [code, list] of [["busy", "sent"], ["not-archived", "received"]] as const) {
      scene.node(0).lie = (request) => watch(request) ?? problem(404, code);
      const from = list === "sent" ? { type: list, from: 0n } : { type: list, from: { checkpoint: 0n, entry: 0n } };
      await expect(authority?.archived(alice(), from as { type: "sent"; from: bigint })).rejects.toMatchObject({ problem: code });
      expect(asked.splice(0)).toEqual([`${list} null`]);
    }
  });

  test("an authority of the release before this one, which does not know the parameter, is left", async () => {
    await recover(redemption(0n), 1n);
    for (const node of scene.nodes.slice(0, 3)) {
      node.lie = ({ query }) => (query.has("paid") ? problem(400, "malformed") : undefined);
    }
    expect(await scene.context.network.findNumber(alice(), 0n)).toMatchObject({ proof: { type: "checkpoint", isPaid: true } });
  });
});

describe("a redemption that a recovery debited in its place", () => {
  test("is proven by the checkpoint, and the account goes on, also in a storage that knows nothing", async () => {
    const paid = redemption(0n);
    await certifiedHere(paid);
    await recover(paid, 1n);
    const [resumed] = await scene.resume();
    expect(resumed).toMatchObject({ type: "archived", order: paid, executed: { transfer: paid, proof: { checkpoint: 1n, isPaid: true } } });
    expect((await journal().entry(0n))?.state).toBe("settled");
    expect(await scene.resume()).toEqual([]);
    const other = memoryStore();
    for (const [number, store] of [scene.context.store, other].entries()) {
      const { certificate, rest } = await scene.pay(1n, store === undefined ? {} : { store });
      await rest;
      expect(certificate.order.transfer.sequence).toBe(1n + BigInt(number));
    }
    expect(await new OrderJournal(other, DOMAIN, alice()).entry(0n)).toMatchObject({ state: "settled", archived: paid });
    const { sent } = await readHistory({ ...scene.context, store: other }, alice(), 25, undefined);
    expect(sent.map(({ transfer, proof }) => [transfer.sequence, proof.type])).toEqual([[2n, "certificate"], [1n, "certificate"], [0n, "checkpoint"]]);
  });

  test("another one that the contract paid supersedes ours", async () => {
    await certifiedHere(redemption(0n, 9n));
    await recover(redemption(0n), 1n);
    expect(await scene.resume()).toMatchObject([{ type: "archived", order: { amount: 9n }, executed: { transfer: { amount: 7n } } }]);
    expect((await journal().entry(0n))?.state).toBe("superseded");
  });
});

describe("a redemption that a recovery debited behind a gap", () => {
  /** Alice has paid 7 to Bob and redeemed 7. The recovery knows no certificate of the payment. */
  async function behindGap(isArchived: boolean): Promise<Redemption> {
    await (await scene.pay(7n)).rest;
    await (await scene.redeem(7n)).rest;
    await recover(redemption(1n), 0n, { isArchived });
    return redemption(1n);
  }

  test("is noted as paid once it is stepped over, and the next number is free, also in a storage that knows nothing", async () => {
    const paid = await behindGap(false);
    spend(1n, paid);
    const before = sentOrders();
    const resumed = await scene.resume();
    expect(resumed).toMatchObject([{ type: "settled", receipt: { certificate: { epoch: 1n } } }, { type: "paid", order: paid }]);
    expect(sentOrders()).toEqual(before);
    expect(await scene.resume()).toEqual([]);
    expect((await journal().entry(1n))?.state).toBe("settled");
    for (const [number, store] of [scene.context.store, memoryStore()].entries()) {
      const { certificate, rest } = await scene.pay(1n, store === undefined ? {} : { store });
      await rest;
      expect(certificate.order.transfer.sequence).toBe(2n + BigInt(number));
    }
    expect(bobHas()).toEqual([9n, 9n, 9n, 9n]);
  });

  test("is proven by the checkpoint if an archive shows it, also without the Ethereum node", async () => {
    const paid = await behindGap(true);
    const resumed = await scene.resume();
    expect(typesOf(resumed)).toEqual(["settled", "archived"]);
    expect(resumed[1]).toMatchObject({ executed: { transfer: paid, proof: { isPaid: true } } });
    const store = memoryStore();
    const { certificate } = await scene.pay(1n, { store });
    expect(certificate.order.transfer.sequence).toBe(2n);
    expect((await new OrderJournal(store, DOMAIN, alice()).entry(1n))?.archived).toEqual(paid);
  });

  test("proves no next number while one authority alone is beyond it", async () => {
    await recover(redemption(4n), 0n);
    const state = scene.node(0).account(alice());
    Object.assign(state, { debited: undefined, next: 5n, kept: { sent: 5, received: 0 } });
    expect(await scene.context.network.findNumber(alice(), 4n)).toMatchObject({ proof: { isPaid: true } });
    expect((await viewAccount(scene.context, alice(), [])).nextSequence).toBe(0n);
    const { certificate } = await scene.pay(1n);
    expect(certificate.order.transfer.sequence).toBe(0n);
  });

  test("is not taken for settled while one authority alone is beyond it", async () => {
    await store((await certified(redemption(4n))).order);
    await recover(redemption(4n), 0n);
    const state = scene.node(0).account(alice());
    Object.assign(state, { debited: undefined, next: 5n, kept: { sent: 5, received: 0 } });
    const context = { ...scene.context, timing: { ...scene.context.timing, deadlineMs: 1_000 } };
    await expect(resume(context, alice(), () => undefined, undefined)).rejects.toMatchObject({ code: "no-quorum" });
    expect((await journal().entry(4n))?.state).toBe("created");
  });
});

describe("a number that authorities stepped over and the contract has spent", () => {
  /** A recovery has ended Alice's certificate of a transfer, and authorities have stepped over its number. */
  async function passed(transfer: Transfer): Promise<void> {
    await certifiedHere(transfer);
    scene.recover();
    pass();
  }

  test.each(["Redeemed", "RedemptionQueued"] as const)("%s for this redemption: it is paid", async (event) => {
    await passed(redemption(0n));
    spend(0n, redemption(0n), event);
    expect(await scene.resume()).toEqual([{ type: "paid", order: redemption(0n) }]);
    expect(await journal().entry(0n)).toMatchObject({ state: "settled", order: { transfer: redemption(0n) } });
    expect(await scene.resume()).toEqual([]);
  });

  test("on a redemption that was released again: ours is void", async () => {
    await passed(redemption(0n));
    spend(0n, redemption(0n), "RedemptionReleased");
    expect(await scene.resume()).toEqual([{ type: "voided", order: redemption(0n) }]);
    expect((await journal().entry(0n))?.state).toBe("voided");
  });

  test("on another order: ours is void", async () => {
    await passed(redemption(0n));
    spend(0n, redemption(0n, 9n));
    expect(await scene.resume()).toEqual([{ type: "voided", order: redemption(0n) }]);
  });

  test("without a log: a redemption counts as paid, and a payment as void", async () => {
    for (const [transfer, type] of [[redemption(0n), "paid"], [paymentOf(alice(), scene.bob.account, 7n, 0n), "voided"]] as const) {
      await scene.close();
      scene = await Scene.open();
      await passed(transfer);
      spend(0n);
      expect(await scene.resume()).toEqual([{ type, order: transfer }]);
    }
  });

  test("the same redemption, ordered again, is not made twice", async () => {
    await passed(redemption(0n));
    spend(0n, redemption(0n));
    const before = sentOrders();
    await expect(scene.redeem(7n)).rejects.toMatchObject({ code: "executed-before", details: { order: redemption(0n) } });
    expect(sentOrders()).toEqual(before);
    // Ordered once more, it is another one.
    expect((await scene.redeem(7n)).certificate.order.transfer.sequence).toBe(1n);
  });

  test("an order that had superseded ours before, and that a recovery ended, is not shown as what was paid", async () => {
    const { order } = await certified(redemption(0n));
    await store(order, await certified(redemption(0n, 9n)));
    scene.recover();
    pass();
    spend(0n, redemption(0n));
    expect(await scene.resume()).toEqual([{ type: "paid", order: redemption(0n) }]);
    expect(await journal().entry(0n)).toMatchObject({ state: "settled", certificate: undefined, order: { transfer: redemption(0n) } });
  });

  describe("nothing is noted", () => {
    async function staysOpen(code: string): Promise<void> {
      await expect(scene.resume()).rejects.toMatchObject({ code });
      expect(await journal().unfinished()).toHaveLength(1);
    }

    test("while the contract has not spent the number in a final block", async () => {
      await passed(redemption(0n));
      await staysOpen("voided");
    });

    test("while the Ethereum node does not answer", async () => {
      await passed(redemption(0n));
      spend(0n, redemption(0n));
      scene.context.primary.isSpent = () => Promise.reject(new Error("the node is away"));
      await staysOpen("voided");
    });

    test("while fewer than a quorum say that they have no certificate", async () => {
      await passed(redemption(0n));
      spend(0n, redemption(0n));
      for (const node of scene.nodes.slice(0, 2)) {
        node.lie = ({ path }) => (path.includes("/certificates/") ? problem(503, "busy", {}, "later") : undefined);
      }
      await staysOpen("voided");
    });

    test("while one authority alone is beyond the number: the order is executed", async () => {
      await certifiedHere(redemption(0n));
      scene.recover();
      pass(scene.nodes.slice(0, 1));
      spend(0n, redemption(0n));
      expect(typesOf(await scene.resume())).toEqual(["settled"]);
    });

    test("of an order whose certificate counts: it is settled", async () => {
      await certifiedHere(redemption(0n));
      scene.recover();
      const certificate = await certified(redemption(0n));
      for (const node of scene.nodes) node.confirm(certificate);
      spend(0n, redemption(0n));
      expect(typesOf(await scene.resume())).toEqual(["settled"]);
    });
  });

  describe("without a known recovery", () => {
    beforeEach(async () => {
      await store((await certified(redemption(0n))).order);
      pass();
    });

    test("only the log counts, and only if it names this order", async () => {
      spend(0n);
      await expect(scene.resume()).rejects.toMatchObject({ code: "voided" });
      spend(0n, redemption(0n, 9n));
      await expect(scene.resume()).rejects.toMatchObject({ code: "voided" });
      spend(0n, redemption(0n), "RedemptionReleased");
      await expect(scene.resume()).rejects.toMatchObject({ code: "voided" });
      expect((await journal().entry(0n))?.state).toBe("created");
      spend(0n, redemption(0n));
      expect(await scene.resume()).toEqual([{ type: "paid", order: redemption(0n) }]);
    });
  });

  test("proves the next number, and neither the authorities nor the contract alone do", async () => {
    const next = async () => (await viewAccount({ ...scene.context, store: memoryStore() }, alice(), [])).nextSequence;
    spend(0n);
    expect(await next()).toBe(0n);
    pass(scene.nodes.slice(0, 1));
    expect(await next()).toBe(0n);
    scene.chain.spent.clear();
    pass(scene.nodes.slice(1));
    expect(await next()).toBe(0n);
    spend(0n);
    expect(await next()).toBe(1n);
    for (const node of scene.nodes.slice(0, 2)) {
      node.lie = ({ path }) => (path.includes("/certificates/") ? problem(503, "busy", {}, "later") : undefined);
    }
    expect(await next()).toBe(0n);
  });
});

describe("the contract's answer", () => {
  test("a number is spent once its block is final, and not because it is void", async () => {
    const chain = new TestChain(scene.bob.account, 7n);
    const isSpent = () => chain.contract.isSpent(alice(), 0n);
    expect(await isSpent()).toBe(false);
    chain.spend(redemption(0n));
    expect(await isSpent()).toBe(false);
    chain.final = chain.newest;
    expect(await isSpent()).toBe(true);
    chain.isVoided = true;
    expect(await isSpent()).toBe(false);
  });

  test("a log counts once its block is final", async () => {
    const chain = new TestChain(scene.bob.account, 7n);
    chain.spend(redemption(0n), "RedemptionQueued", chain.final);
    chain.spend(redemption(0n), "RedemptionReleased", chain.newest);
    const { contract } = chain;
    expect(await contract.finalSpending(alice(), 0n)).toMatchObject({ event: "RedemptionQueued" });
    chain.final = chain.newest;
    expect(await contract.finalSpending(alice(), 0n)).toMatchObject({ event: "RedemptionReleased" });
  });

  test("a log that the node does not serve names no order", async () => {
    const chain = new TestChain(scene.bob.account, 7n);
    chain.spend(redemption(0n), "RedemptionQueued", chain.final);
    expect(await chain.contract.finalSpending(alice(), 0n)).toMatchObject({ event: "RedemptionQueued", digest: transferDigest(DOMAIN, redemption(0n)) });
    chain.logRange = 0n;
    expect(await chain.contract.finalSpending(alice(), 0n)).toBeUndefined();
  });
});

describe("what a recovery left out", () => {
  test("an order whose certificate was pruned is made again", async () => {
    const { order } = await certified(paymentOf(alice(), scene.bob.account, 7n, 0n));
    await store(order);
    const certificate = await scene.certified(7n);
    for (const node of scene.nodes) node.confirm(certificate);
    const archive = new TestArchive(scene.nodes.slice(0, 3).map(({ keys }) => keys));
    archive.add([certificate]);
    for (const node of scene.nodes) node.prune(archive, 1);
    expect(typesOf(await scene.resume())).toEqual(["archived"]);
    scene.recover();
    await scene.context.network.committees.refresh();
    const resumed = await scene.resume();
    expect(resumed).toMatchObject([{ type: "settled", receipt: { certificate: { epoch: 1n, order } } }]);
    expect(await journal().entry(0n)).toMatchObject({ state: "settled", certificate: { epoch: 1n } });
    expect(bobHas().filter((balance) => balance === 7n).length).toBeGreaterThanOrEqual(3);
    expect(await scene.resume()).toEqual([]);
  });

  test("the number to unlock is the first one of it", async () => {
    const operation = operationOf(scene.context, journal(), () => undefined, undefined);
    for (const amount of [7n, 8n]) await (await scene.pay(amount)).rest;
    expect(await firstOpenNumber(operation, journal())).toBe(2n);
    scene.recover();
    await scene.context.network.committees.refresh();
    expect(await firstOpenNumber(operation, journal())).toBe(0n);
    const certificate = await scene.certified(7n);
    for (const node of scene.nodes) node.confirm(certificate);
    expect(await firstOpenNumber(operation, journal())).toBe(1n);
  });
});
