/** Two copies of one wallet, two pages of one browser, and crashes: no number is ever used for two orders from one storage. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { amountOf, memoryStore, transferDigest, type OrderStore, type Signer } from "../../src/index.js";
import { OrderJournal } from "../../src/storage/journal.js";
import { DOMAIN, paymentOf, signed } from "../support/committee.js";
import { Scene } from "../support/scene.js";

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

/** The orders that each node received, by number. */
function digestsByNumber(): Map<string, Set<string>> {
  const digests = new Map<string, Set<string>>();
  for (const body of scene.nodes.flatMap(({ orders }) => orders)) {
    const { sequence } = JSON.parse(body).transfer;
    digests.set(sequence, (digests.get(sequence) ?? new Set()).add(body));
  }
  return digests;
}

describe("one storage", () => {
  test("concurrent payments get consecutive numbers", async () => {
    const receipts = await Promise.all([1n, 2n, 3n, 4n].map((amount) => scene.pay(amount)));
    expect(receipts.map(({ certificate }) => certificate.order.transfer.sequence)).toEqual([0n, 1n, 2n, 3n]);
    for (const bodies of digestsByNumber().values()) expect(bodies.size).toBe(1);
  });

  test("pages without shared locks: the second order for a number is not sent", async () => {
    const shared = memoryStore();
    // Pages whose locks nobody else respects, and which all have signed before one of them writes anything down.
    const store: OrderStore = { ...shared, exclusively: (_name, _patienceMs, task) => task() };
    let signing = 0;
    let release = (): void => undefined;
    const all = new Promise<void>((resolve) => {
      release = resolve;
    });
    const signer: Signer = {
      ...scene.alice,
      async authorize(domain, transfer) {
        signing += 1;
        if (signing === 3) release();
        await all;
        return scene.alice.authorize(domain, transfer);
      },
    };
    const outcomes = await Promise.allSettled([1n, 2n, 3n].map((amount) => scene.pay(amount, { store, signer })));
    expect(digestsByNumber().get("0")?.size).toBe(1);
    const failures = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(failures.map(({ reason }) => reason.code)).toEqual(["busy", "busy"]);
  });

  test("an order stored before a crash is sent unchanged", async () => {
    const store = memoryStore();
    const order = await signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, 7n, 0n));
    await new OrderJournal(store, DOMAIN, scene.alice.account).create(order);
    // The same payment again finishes that one; another one comes after it.
    expect((await scene.pay(7n, { store })).certificate.digest).toBe(order.digest);
    expect((await scene.pay(7n, { store })).certificate.order.transfer.sequence).toBe(1n);
  });

  test("a certificate stored before a crash is settled", async () => {
    const store = memoryStore();
    const { certificate, rest } = await scene.pay(7n);
    await rest;
    for (const node of scene.nodes)
      Object.assign(node.account(scene.alice.account), { next: 0n, sent: [], balance: 100n });
    const journal = new OrderJournal(store, DOMAIN, scene.alice.account);
    await journal.certify(certificate);
    expect((await journal.unfinished()).map(({ state }) => state)).toEqual(["certified"]);
    await scene.resume(store);
    expect((await journal.entries()).map(({ state }) => state)).toEqual(["settled"]);
    expect(scene.node(0).account(scene.alice.account).next).toBe(1n);
  });

  test("orders of another deployment are kept apart", async () => {
    const store = memoryStore();
    const order = await signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, 7n, 0n));
    await new OrderJournal(store, { ...DOMAIN, chainId: 1n }, scene.alice.account).create(order);
    expect(await new OrderJournal(store, DOMAIN, scene.alice.account).entries()).toEqual([]);
  });
});

describe("two storages with the same key", () => {
  test("numbers used by the other one are learned", async () => {
    await scene.pay(1n);
    const receipt = await scene.pay(2n, { store: memoryStore() });
    expect(receipt.certificate.order.transfer.sequence).toBe(1n);
  });

  test("an order that the other one left unfinished is finished first", async () => {
    const left = await signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, 5n, 0n));
    for (const node of scene.nodes.slice(0, 2)) node.account(scene.alice.account).pending = left;
    const receipt = await scene.pay(7n);
    expect(receipt.certificate.order.transfer).toMatchObject({ sequence: 1n, amount: 7n });
    expect(scene.node(3).account(scene.bob.account).balance).toBe(12n);
    expect(scene.steps.map(({ type }) => type)).toContain("adopted");
  });

  test("resuming also finishes it, without a key", async () => {
    const left = await signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, 5n, 0n));
    for (const node of scene.nodes.slice(0, 2)) node.account(scene.alice.account).pending = left;
    const resumed = await scene.resume(memoryStore());
    expect(resumed).toMatchObject([{ type: "settled", receipt: { certificate: { digest: left.digest } } }]);
  });

  test("two orders with one number: the one that can still be certified is finished, and the other is superseded", async () => {
    const [ours, theirs] = await Promise.all(
      [5n, 6n].map((amount) => signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, amount, 0n))),
    );
    if (ours === undefined || theirs === undefined) throw new Error("nothing was signed");
    const store = memoryStore();
    await new OrderJournal(store, DOMAIN, scene.alice.account).create(ours);
    for (const node of scene.nodes.slice(0, 2)) node.account(scene.alice.account).pending = theirs;
    const [resumed] = await scene.resume(store);
    expect(resumed).toMatchObject({ type: "superseded", order: ours.transfer });
    expect(scene.node(3).account(scene.bob.account).balance).toBe(6n);
    // Nobody was asked for a vote on ours: it might have locked the account for ever.
    const sent = scene.nodes.flatMap(({ orders }) => orders.map((body) => JSON.parse(body).transfer.amount));
    expect(new Set(sent)).toEqual(new Set(["6"]));
  });

  test.each([false, true])(
    "a certificate in place of ours that a crash left unsettled is settled and not taken for ours; ordered again: %s",
    async (repeat) => {
      const store = memoryStore();
      const journal = new OrderJournal(store, DOMAIN, scene.alice.account);
      const { certificate: theirs, rest } = await scene.pay(6n, { store: memoryStore() });
      await rest;
      // What is left is what stands in this storage: no authority has confirmed it.
      for (const node of scene.nodes) {
        Object.assign(node.account(scene.alice.account), { next: 0n, sent: [], balance: 100n });
        Object.assign(node.account(scene.bob.account), { balance: 0n, received: [] });
      }
      const ours = paymentOf(scene.alice.account, scene.bob.account, 5n, 0n);
      await journal.create(await signed(scene.alice, ours));
      await journal.certify(theirs);
      expect((await journal.unfinished()).map(({ state }) => state)).toEqual(["superseded"]);
      if (repeat) {
        const receipt = await scene.pay(5n, { store });
        expect(receipt.certificate.order.transfer).toMatchObject({ sequence: 1n, amount: 5n });
        expect(receipt.resumed).toBe(false);
        await receipt.rest;
      } else {
        const resumed = await scene.resume(store);
        expect(resumed).toMatchObject([{ type: "superseded", order: ours, certificate: { digest: theirs.digest } }]);
      }
      const arrived = scene.nodes.map((node) => node.account(scene.bob.account).balance);
      expect(arrived.filter((balance) => balance === (repeat ? 11n : 6n)).length).toBeGreaterThanOrEqual(3);
      expect(await journal.unfinished()).toEqual([]);
      expect((await journal.entries()).map(({ state }) => state)).toEqual(["superseded", ...(repeat ? ["settled"] : [])]);
    },
  );

  test("another copy takes the number while the wallet asks: its steps are reported under its own order", async () => {
    const signer: Signer = {
      ...scene.alice,
      async authorize(domain, transfer) {
        await scene.pay(6n, { store: memoryStore(), onStep: () => scene.steps.pop() });
        return scene.alice.authorize(domain, transfer);
      },
    };
    await expect(scene.pay(5n, { signer })).rejects.toMatchObject({ code: "superseded" });
    const said = scene.steps.flatMap((step) => ("transfer" in step ? [`${step.type} ${amountOf(step.transfer)}`] : [step.type]));
    const told = said.filter((text) => !/^(vote|waiting|catching-up|confirmed)/.test(text));
    expect(told).toEqual(["signing 5", "ordered 5", "adopted 6", "certified", "settled"]);
    expect(scene.steps.findLast(({ type }) => type === "certified")).toMatchObject({
      certificate: { order: { transfer: { amount: 6n } } },
    });
  });

  test("each resumed order is named before its steps are reported", async () => {
    const store = memoryStore();
    const journal = new OrderJournal(store, DOMAIN, scene.alice.account);
    const { certificate, rest } = await scene.pay(7n);
    await rest;
    await journal.certify(certificate);
    await journal.create(await signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, 8n, 1n)));
    scene.steps.length = 0;
    await scene.resume(store);
    const said = scene.steps.flatMap((step) => ("transfer" in step ? [`${step.type} ${amountOf(step.transfer)}`] : [step.type]));
    const told = said.filter((text) => !/^(vote|waiting|catching-up|confirmed)/.test(text));
    expect(told).toEqual(["adopted 7", "certified", "settled", "ordered 8", "certified", "settled"]);
  });

  test("a number used meanwhile: our order is superseded, and the error names the other one", async () => {
    const theirs = await scene.pay(5n);
    await theirs.rest;
    const store = memoryStore();
    const ours = await signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, 6n, 0n));
    await new OrderJournal(store, DOMAIN, scene.alice.account).create(ours);
    const [resumed] = await scene.resume(store);
    expect(resumed).toMatchObject({ type: "superseded", certificate: { digest: theirs.certificate.digest } });
    const entry = await new OrderJournal(store, DOMAIN, scene.alice.account).entry(0n);
    expect(entry?.state).toBe("superseded");
    expect(transferDigest(DOMAIN, ours.transfer)).not.toBe(theirs.certificate.digest);
  });
});
