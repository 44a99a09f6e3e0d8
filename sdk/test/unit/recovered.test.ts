/** After a recovery, certificates of earlier epochs count for nothing: their orders are certified again, and signed once. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { amountOf, memoryStore, transferDigest } from "../../src/index.js";
import { OrderJournal } from "../../src/storage/journal.js";
import { readHistory } from "../../src/wallet/history.js";
import { DOMAIN, paymentOf, signed } from "../support/committee.js";
import { problem, receivedJson } from "../support/node.js";
import { encodeCertificate } from "../../src/wire.js";
import { Scene } from "../support/scene.js";

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

/** Alice has a certificate of a payment of 7 to Bob that nobody has confirmed. */
async function payWithoutSettling(): Promise<void> {
  for (const node of scene.nodes) {
    node.lie = ({ path }) => (path === "/v1/certificates" ? problem(400, "invalid") : undefined);
  }
  await expect(scene.pay(7n)).rejects.toMatchObject({ code: "no-quorum" });
  for (const node of scene.nodes) node.lie = () => undefined;
}

/** All authorities have executed Alice's first order, a payment of this amount to Bob. */
async function include(amount: bigint): Promise<void> {
  const certificate = await scene.certified(amount);
  for (const node of scene.nodes) node.confirm(certificate);
}

const journal = (): OrderJournal => new OrderJournal(scene.context.store ?? memoryStore(), DOMAIN, scene.alice.account);
const bobHas = (): bigint[] => scene.nodes.map((node) => node.account(scene.bob.account).balance);
const orders = (): Set<string> => new Set(scene.nodes.flatMap((node) => node.orders));

describe("after a recovery", () => {
  test("an unsettled order is certified again, and nothing new is signed", async () => {
    await payWithoutSettling();
    const before = orders();
    scene.recover();
    const resumed = await scene.resume();
    expect(resumed).toMatchObject([{ type: "settled", receipt: { certificate: { epoch: 1n } } }]);
    expect(orders()).toEqual(before);
    expect(bobHas().filter((balance) => balance === 7n).length).toBeGreaterThanOrEqual(3);
    expect((await journal().entry(0n))?.state).toBe("settled");
    expect(await scene.resume()).toEqual([]);
    const { certificate } = await scene.pay(1n);
    expect(certificate.order.transfer.sequence).toBe(1n);
  });

  test("an order that the recovery included is settled", async () => {
    await payWithoutSettling();
    scene.recover();
    await include(7n);
    expect(await scene.resume()).toMatchObject([{ type: "settled" }]);
    expect(bobHas()).toEqual([7n, 7n, 7n, 7n]);
  });

  test("another order that took the number is reported, and ours is not made", async () => {
    await payWithoutSettling();
    scene.recover();
    await include(9n);
    const [resumed] = await scene.resume();
    expect(resumed).toMatchObject({ type: "superseded", order: { amount: 7n }, certificate: { order: { transfer: { amount: 9n } } } });
    const entry = await journal().entry(0n);
    expect(entry).toMatchObject({ state: "superseded", certificate: { epoch: 1n, order: { transfer: { amount: 9n } } } });
    expect(await scene.resume()).toEqual([]);
    expect(bobHas()).toEqual([9n, 9n, 9n, 9n]);
  });

  test("another order that took the number is unfinished until it is settled, and its certificate is kept", async () => {
    await payWithoutSettling();
    scene.recover();
    await include(9n);
    for (const node of scene.nodes) {
      const isNew = (body: string): boolean => JSON.parse(body).epoch === "1";
      node.lie = ({ path, body }) => (path === "/v1/certificates" && isNew(body) ? problem(400, "invalid") : undefined);
    }
    await expect(scene.resume()).rejects.toMatchObject({ code: "no-quorum" });
    expect(await journal().unfinished()).toMatchObject([{ certificate: { order: { transfer: { amount: 9n } } } }]);
    for (const node of scene.nodes) node.lie = () => undefined;
    expect(await scene.resume()).toMatchObject([{ type: "superseded", certificate: { order: { transfer: { amount: 9n } } } }]);
    expect(await journal().unfinished()).toEqual([]);
  });

  test("after two recoveries, the newest certificate of an order counts", async () => {
    await payWithoutSettling();
    for (const epoch of [1n, 2n]) {
      scene.recover();
      const entry = await journal().entry(0n);
      if (entry?.state === "settled") await scene.pay(1n);
      else await scene.resume();
      expect(await journal().entry(0n)).toMatchObject({ state: "settled", certificate: { epoch } });
    }
  });

  test("settled orders that the recovery left out are made again before the next one", async () => {
    for (const amount of [7n, 8n]) await (await scene.pay(amount)).rest;
    scene.recover();
    // It equals one that was left out, and is one more.
    const receipt = await scene.pay(8n);
    await receipt.rest;
    expect([receipt.resumed, receipt.certificate.order.transfer.sequence]).toEqual([false, 2n]);
    expect(bobHas().filter((balance) => balance === 23n).length).toBeGreaterThanOrEqual(3);
    const paid = scene.node(0).account(scene.alice.account).sent.map((certificate) => certificate && amountOf(certificate.order.transfer));
    expect(paid).toEqual([7n, 8n, 8n]);
  });

  test("an unfinished order behind one that was left out waits for that", async () => {
    await (await scene.pay(7n)).rest;
    const { transfer, authorization } = await signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, 8n, 1n));
    await journal().create({ transfer, authorization, digest: transferDigest(DOMAIN, transfer) } as Parameters<OrderJournal["create"]>[0]);
    scene.recover();
    expect(await scene.resume()).toMatchObject([{ type: "settled", receipt: { certificate: { order: { transfer: { amount: 8n } } } } }]);
    expect(bobHas().filter((balance) => balance === 15n).length).toBeGreaterThanOrEqual(3);
  });

  test("a history has what took a number, and not the ended order of one that shows its certificate", async () => {
    const ended = await scene.certified(50n);
    scene.recover();
    await include(1n);
    await scene.context.network.committees.refresh();
    const certificate = JSON.parse(encodeCertificate(ended));
    for (const lists of [false, true]) {
      scene.node(0).lie = ({ path }) => {
        if (path === "/v1/certificates/read") return { status: 200, body: { certificates: [certificate], lookedUp: 1 } };
        if (path.includes("/certificates/")) return { status: 200, body: certificate };
        if (!lists || !path.endsWith("/received")) return undefined;
        return { status: 200, body: { total: "1", payments: [receivedJson(ended, 0)] } };
      };
      const { received } = await readHistory(scene.context, scene.bob.account, 25, undefined);
      expect(received.map(({ payment }) => payment.amount)).toEqual([1n]);
    }
  });

  test("an ended certificate that one authority returns proves nothing once two have said so", async () => {
    await payWithoutSettling();
    const ended = await scene.certified(7n);
    scene.recover();
    await include(9n);
    scene.node(0).lie = ({ path }) => (path.includes("/certificates/") ? { status: 200, body: encodeCertificate(ended) } : undefined);
    await scene.resume();
    const { network } = scene.context;
    const [first] = network.authorities;
    const found = await network.findCertificate(scene.alice.account, 0n, { first });
    expect(found).toMatchObject({ epoch: 1n, order: { transfer: { amount: 9n } } });
  });

  test("an ended certificate that one authority returns does not keep a number from being void", async () => {
    const ended = await scene.certified(7n);
    const { transfer, authorization } = ended.order;
    await journal().create({ transfer, authorization, digest: transferDigest(DOMAIN, transfer) } as Parameters<OrderJournal["create"]>[0]);
    scene.recover();
    await scene.context.network.committees.refresh();
    scene.chain.voided.add(0n);
    for (const node of scene.nodes) node.decide(scene.alice.account, undefined);
    scene.node(0).lie = ({ path }) => (path.includes("/certificates/") ? { status: 200, body: encodeCertificate(ended) } : undefined);
    expect(await scene.resume()).toMatchObject([{ type: "voided" }]);
    expect((await journal().entry(0n))?.state).toBe("voided");
  });

  test("one authority alone ends no epoch", async () => {
    await payWithoutSettling();
    scene.rotate();
    scene.node(0).lie = ({ path }) => (path === "/v1/certificates" ? problem(409, "epoch-ended", { epoch: "1" }, "never") : undefined);
    expect(await scene.resume()).toMatchObject([{ type: "settled", receipt: { certificate: { epoch: 0n } } }]);
  });
});
