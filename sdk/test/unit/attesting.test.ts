/**
 * A certificate of an epoch that ended counts, at an authority and for a client, with the votes of f + 1 members; silence
 * is none, and no denial.
 */

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import type { Certificate, VerifiedCertificate, VerifiedOrder } from "../../src/index.js";
import { settle } from "../../src/quorum/settle.js";
import { OrderJournal } from "../../src/storage/journal.js";
import { operationOf, type Context } from "../../src/wallet/context.js";
import { readHistory } from "../../src/wallet/history.js";
import { resume, send } from "../../src/wallet/send.js";
import { encodeCertificate } from "../../src/wire.js";
import { TestArchive } from "../support/archive.js";
import { DOMAIN, paymentOf, person, signed } from "../support/committee.js";
import { later, problem, type Answer, type Request } from "../support/node.js";
import { Scene } from "../support/scene.js";

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

/** All authorities refuse a certificate without votes, and answer so when they are asked for a vote. */
function answer(code: string, status: number): void {
  for (const node of scene.nodes) {
    node.lie = ({ path }) => {
      if (path === "/v1/certificates") return problem(409, "unattested");
      return path === "/v1/unlocks/votes" ? problem(status, code) : undefined;
    };
  }
}

test("an order is certified again only if so many deny its certificate that it cannot get the votes", async () => {
  answer("not-requested", 409);
  await expect(scene.pay(7n)).rejects.toMatchObject({ code: "epoch-ended" });
});

test("members that do not answer now do not deny a certificate: it is brought again, and settled", async () => {
  answer("busy", 503);
  let asked = 0;
  for (const node of scene.nodes) {
    const refuse = node.lie;
    node.lie = (request) => {
      if (request.path === "/v1/unlocks/votes") asked += 1;
      return request.path === "/v1/certificates" && asked > 16 ? undefined : refuse(request);
    };
  }
  expect((await scene.pay(7n)).certificate.order.transfer.sequence).toBe(0n);
});

describe("a certificate that keys of an ended epoch made later", () => {
  /** Of a payment of 9, which Alice has signed for number 0. In the next epoch, a payment of 7 was executed under it. */
  let forged: Certificate;
  let context: Context;

  beforeEach(async () => {
    forged = await scene.certified(9n);
    scene.rotate();
    const executed = await scene.certified(7n);
    for (const node of scene.nodes) node.confirm(executed);
    context = await scene.later();
    // The liar answers first.
    scene.node(0).lie = ({ path }) => (path.includes("/certificates/") ? { status: 200, body: encodeCertificate(forged) } : undefined);
    for (const node of scene.nodes.slice(1)) {
      node.lie = (request) => (request.path.includes("/certificates/") ? later(node.honest(request)) : undefined);
    }
  });

  const journal = () => journalOf(context);
  const verified = (certificate: Certificate): Promise<VerifiedCertificate> => context.network.verify(certificate, scene.alice.account, 0n);
  const order = (amount: bigint): Promise<VerifiedOrder> => signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, amount, 0n));
  const pay = (amount: bigint) => {
    const intent = (sequence: bigint) => paymentOf(scene.alice.account, scene.bob.account, amount, sequence);
    return send(context, scene.alice, intent, () => undefined, undefined);
  };
  const bobHas = (): Set<bigint> => new Set(scene.nodes.map((node) => node.account(scene.bob.account).balance));

  test("is not settled, though each authority confirms it, and hides the one that counts no longer", async () => {
    await expect(settle(operationIn(context), await verified(forged))).rejects.toMatchObject({ code: "epoch-ended" });
    const found = await context.network.findCertificate(scene.alice.account, 0n);
    expect(found).toMatchObject({ epoch: 1n, order: { transfer: { amount: 7n } } });
  });

  test("does not take the number of an executed order, which is not paid again", async () => {
    await journal().create(await order(7n));
    const { certificate } = await pay(7n);
    expect(certificate).toMatchObject({ epoch: 1n, order: { transfer: { sequence: 0n, amount: 7n } } });
    expect(bobHas()).toEqual(new Set([7n]));
  });

  test("does not take it either if it was stored before", async () => {
    await journal().create(await order(7n));
    await journal().certify(await verified(forged));
    const { certificate } = await pay(7n);
    expect(certificate).toMatchObject({ epoch: 1n, order: { transfer: { sequence: 0n, amount: 7n } } });
    expect(bobHas()).toEqual(new Set([7n]));
  });

  test("is neither settled nor given up while others do not say what they executed", async () => {
    for (const node of scene.nodes) node.lie = ({ path }) => (path === "/v1/unlocks/votes" ? problem(503, "busy") : undefined);
    const settling = settle(operationIn(context), await verified(forged));
    await expect(settling).rejects.toMatchObject({ code: "no-quorum", details: { what: "confirmations" } });
    for (const node of scene.nodes) node.lie = () => undefined;
    await expect(settle(operationIn(context), await verified(forged))).rejects.toMatchObject({ code: "epoch-ended" });
  });

  test("does not hide what the archive proves of a pruned number", async () => {
    await journal().create(await order(7n));
    await journal().certify(await verified(forged));
    const archive = new TestArchive(scene.nodes.slice(0, 3).map(({ keys }) => keys), 1n);
    archive.add(scene.node(1).account(scene.alice.account).sent.filter((certificate) => certificate !== undefined));
    const unattesting = ({ path }: Request): Answer | undefined => (path === "/v1/unlocks/votes" ? problem(410, "pruned", { first: "1", checkpoint: "1" }, "never") : undefined);
    for (const [number, node] of scene.nodes.entries()) {
      node.prune(archive, 1);
      const { lie } = node;
      node.lie = (request) => unattesting(request) ?? (number === 0 ? lie(request) : undefined);
    }
    // No archive answers.
    const lies = scene.nodes.map(({ lie }) => lie);
    const ordered = (): number => scene.nodes.reduce((sum, { orders }) => sum + orders.length, 0);
    const before = [ordered(), (await journal().entry(0n))?.state];
    for (const [number, node] of scene.nodes.entries()) {
      node.lie = (request) => (request.path.includes("/archived") ? problem(404, "not-found") : lies[number]?.(request));
    }
    const resuming = resume(context, scene.alice.account, () => undefined, undefined);
    await expect(resuming).rejects.toMatchObject({ code: "no-quorum", message: expect.stringContaining("have pruned") as string });
    expect([ordered(), (await journal().entry(0n))?.state]).toEqual(before);
    for (const [number, node] of scene.nodes.entries()) node.lie = lies[number] ?? node.lie;
    const resumed = await resume(context, scene.alice.account, () => undefined, undefined);
    expect(resumed).toMatchObject([{ type: "archived", order: { amount: 7n }, executed: { transfer: { amount: 7n } } }]);
  });
});

/** The amounts that Bob's history shows as received. */
async function income(context: Context): Promise<bigint[]> {
  return (await readHistory(context, scene.bob.account, 25, undefined)).received.map(({ payment }) => payment.amount);
}

test("a history shows no income that one authority proves with a certificate that keys of an ended epoch made later", async () => {
  const forged = await scene.certified(9n);
  const { transfer, authorization } = await signed(scene.alice, paymentOf(scene.alice.account, person("carol").account, 7n, 0n));
  scene.rotate();
  const votes = scene.nodes.slice(0, 3).map(({ keys }) => keys.vote(1n, transfer));
  for (const node of scene.nodes) node.confirm({ order: { transfer, authorization }, epoch: 1n, votes });
  const context = await scene.later();
  scene.lists(0, forged);
  expect(await income(context)).toEqual([]);
  // A second member is f + 1.
  scene.lists(1, forged);
  expect(await income(context)).toEqual([9n]);
});

test("a history shows no income that one authority proves with a certificate whose number the contract voided", async () => {
  const hidden = await scene.certified(9n);
  for (const node of scene.nodes) {
    node.freeze(scene.alice.account);
    node.decide(scene.alice.account, undefined);
  }
  scene.lists(0, hidden);
  expect(await income(scene.context)).toEqual([]);
});

test("a history shows income that one authority lists once a second one votes that it was executed", async () => {
  const certificate = await scene.certified(9n);
  scene.lists(0, certificate);
  expect(await income(scene.context)).toEqual([]);
  // Its own list has not arrived.
  for (const node of scene.nodes.slice(0, 2)) node.confirm(certificate);
  scene.node(1).account(scene.bob.account).received = [];
  expect(await income(scene.context)).toEqual([9n]);
});

test("what is settled takes the place of a stored certificate of a later epoch for another order", async () => {
  const executed = await scene.certified(7n);
  for (const node of scene.nodes) node.confirm(executed);
  scene.rotate();
  const forged = await scene.certified(9n);
  scene.rotate();
  const context = await scene.later();
  const journal = journalOf(context);
  await journal.create(await signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, 7n, 0n)));
  await journal.certify(await context.network.verify(forged, scene.alice.account, 0n));
  expect(await resume(context, scene.alice.account, () => undefined, undefined)).toMatchObject([{ type: "settled" }]);
  const entry = await journal.entry(0n);
  expect(entry).toMatchObject({ state: "settled", certificate: { epoch: 0n, order: { transfer: { amount: 7n } } } });
});

test("a rotation that is noticed meanwhile makes nothing of what is settled again", async () => {
  await (await scene.pay(7n)).rest;
  const order = await signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, 8n, 1n));
  await journalOf(scene.context).create(order);
  const votes = scene.nodes.slice(0, 3).map(({ keys }) => keys.vote(0n, order.transfer));
  votes.sort((a, b) => (a.authority < b.authority ? -1 : 1));
  for (const node of scene.nodes) node.confirm({ order, epoch: 0n, votes });
  scene.rotate();
  const before = scene.steps.length;
  expect(await scene.resume()).toMatchObject([{ type: "settled" }]);
  const begun = scene.steps.slice(before).flatMap((step) => (step.type === "ordered" ? [step.transfer.sequence] : []));
  expect(new Set(begun)).toEqual(new Set([1n]));
});

test("a certificate of the epoch before is settled with one question more to each authority", async () => {
  const certificate = await scene.certified(7n);
  scene.rotate();
  const context = await scene.later();
  let asked = 0;
  for (const node of scene.nodes) {
    node.lie = ({ path }) => {
      if (path === "/v1/unlocks/votes") asked += 1;
      return undefined;
    };
  }
  await (await settle(operationIn(context), await context.network.verify(certificate, scene.alice.account, 0n))).rest;
  expect(asked).toBeLessThanOrEqual(4);
  expect(asked).toBeGreaterThanOrEqual(2);
});

test("what one authority alone executed in time is certified again by the others", async () => {
  const certificate = await scene.certified(7n);
  scene.rotate();
  const context = await scene.later();
  await journalOf(context).certify(await context.network.verify(certificate, scene.alice.account, 0n));
  scene.node(0).confirm(certificate);
  for (const node of scene.nodes.slice(1)) {
    node.lie = (request) => {
      // Its own answer comes first.
      if (request.path === "/v1/orders") return later(node.honest(request));
      const isOld = request.path === "/v1/certificates" && JSON.parse(request.body).epoch === "0";
      return isOld ? problem(409, "unattested", { epoch: "0" }, "never") : undefined;
    };
  }
  const resumed = await resume(context, scene.alice.account, () => undefined, undefined);
  expect(resumed).toMatchObject([{ type: "settled", receipt: { certificate: { epoch: 1n, order: { transfer: { amount: 7n } } } } }]);
  expect(scene.nodes.map((node) => node.account(scene.alice.account).next)).toEqual([1n, 1n, 1n, 1n]);
});

function journalOf({ store }: Context): OrderJournal {
  if (store === undefined) throw new Error("there is a store");
  return new OrderJournal(store, DOMAIN, scene.alice.account);
}

const operationIn = (context: Context) => operationOf(context, journalOf(context), () => undefined, undefined);

test("a certificate that nobody attests does not end a payment: the order is certified in its place", async () => {
  const forged = encodeCertificate(await scene.certified(9n));
  scene.rotate();
  const context = await scene.later();
  let isRefused = false;
  for (const [number, node] of scene.nodes.entries()) {
    node.lie = ({ path, body }) => {
      const isOld = path === "/v1/certificates" && JSON.parse(body).epoch === "0";
      isRefused ||= isOld;
      if (isOld) return problem(409, "unattested", { epoch: "0" }, "never");
      // The liar answers first.
      if (number > 0) return path === "/v1/orders" && !isRefused ? problem(503, "busy", {}, "later") : undefined;
      if (path.includes("/certificates/")) return { status: 200, body: forged };
      return path === "/v1/orders" ? problem(409, "already-confirmed", { expectedSequence: "1" }) : undefined;
    };
  }
  const intent = (sequence: bigint) => paymentOf(scene.alice.account, scene.bob.account, 7n, sequence);
  const { certificate } = await send(context, scene.alice, intent, () => undefined, undefined);
  expect(certificate).toMatchObject({ epoch: 1n, order: { transfer: { sequence: 0n, amount: 7n } } });
});
