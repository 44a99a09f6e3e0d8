/**
 * An honest authority that lags is brought up to date, although a faster one shows certificates that it must refuse. The
 * fast one votes for nothing, so an order needs the vote of the one that lags.
 */

import { afterEach, beforeEach, expect, test } from "vitest";

import { memoryStore, type VerifiedOrder } from "../../src/index.js";
import { certify } from "../../src/quorum/certify.js";
import { OrderJournal } from "../../src/storage/journal.js";
import { operationOf, type Context } from "../../src/wallet/context.js";
import { encodeCertificate } from "../../src/wire.js";
import { DOMAIN, paymentOf, person, signed } from "../support/committee.js";
import { later, problem } from "../support/node.js";
import { Scene } from "../support/scene.js";

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

async function isCertified(context: Context, order: VerifiedOrder): Promise<void> {
  const { lie } = scene.node(0);
  scene.node(0).lie = (request) => (request.path === "/v1/orders" ? problem(503, "busy", {}, "later") : lie(request));
  const journal = new OrderJournal(memoryStore(), DOMAIN, order.transfer.sender);
  const timing = { ...context.timing, deadlineMs: 15_000, fundsPatienceMs: 10_000 };
  const operation = { ...operationOf(context, journal, () => undefined, undefined), timing };
  expect((await certify(operation, order)).digest).toBe(order.digest);
}

test.each([false, true])("a listed payment that it must refuse keeps no other from it; its number is void: %s", async (isVoid) => {
  const carol = person("carol");
  const { transfer, authorization } = await signed(carol, paymentOf(carol.account, scene.bob.account, 5n, 0n));
  const votes = scene.nodes.slice(0, 3).map(({ keys }) => keys.vote(0n, transfer));
  votes.sort((a, b) => (a.authority < b.authority ? -1 : 1));
  for (const node of scene.nodes) {
    node.freeze(carol.account);
    if (isVoid) node.decide(carol.account, undefined);
  }
  scene.lists(0, { order: { transfer, authorization }, epoch: 0n, votes });
  const income = await scene.certified(7n);
  for (const node of scene.nodes.slice(1, 3)) {
    node.confirm(income);
    node.lie = (request) => (request.path.endsWith("/received") ? later(node.honest(request)) : undefined);
  }
  await isCertified(scene.context, await signed(scene.bob, paymentOf(scene.bob.account, scene.alice.account, 7n, 0n)));
});

test("a certificate that retired keys made hides no other of its number from it", async () => {
  const forged = encodeCertificate(await scene.certified(9n));
  scene.rotate();
  const executed = await scene.certified(7n);
  scene.node(0).lie = ({ path }) => (path.includes("/certificates/") ? { status: 200, body: forged } : undefined);
  for (const node of scene.nodes.slice(1, 3)) {
    node.confirm(executed);
    node.lie = (request) => (request.path.includes("/certificates/") ? later(node.honest(request)) : undefined);
  }
  scene.node(3).lie = ({ path, body }) => {
    const isOld = path === "/v1/certificates" && JSON.parse(body).epoch === "0";
    return isOld ? problem(409, "unattested", { epoch: "0" }, "never") : undefined;
  };
  const order = await signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, 1n, 1n));
  await isCertified(await scene.later(), order);
});
