/** A request with an expiry is not signed, stored or sent after it; an order made in time is finished. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { memoryStore, type Signer } from "../../src/index.js";
import { OrderJournal } from "../../src/storage/journal.js";
import { signerUntil } from "../../src/wallet/send.js";
import { DOMAIN, paymentOf, signed } from "../support/committee.js";
import { Scene } from "../support/scene.js";

/** In seconds since 1970. */
const EXPIRES = 1_800_000_000n;

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
  vi.useFakeTimers({ toFake: ["Date"] });
});

afterEach(async () => {
  vi.useRealTimers();
  await scene.close();
});

/** The clock, in seconds from the end on. */
function setClock(seconds: number): void {
  vi.setSystemTime((Number(EXPIRES) + seconds) * 1_000);
}

test("the wallet is asked before the expiry, and not after", async () => {
  const authorize = vi.fn(scene.alice.authorize);
  const signer = signerUntil({ ...scene.alice, authorize }, EXPIRES);
  setClock(0.001);
  await expect(scene.pay(7n, { signer })).rejects.toMatchObject({ code: "invalid-link", details: { expires: EXPIRES } });
  expect(authorize).not.toHaveBeenCalled();
  setClock(0);
  expect((await scene.pay(7n, { signer })).certificate.order.transfer).toMatchObject({ amount: 7n });
  expect(authorize).toHaveBeenCalledOnce();
});

test("a signature that arrives after the expiry is not used", async () => {
  const slow: Signer = {
    ...scene.alice,
    authorize: (domain, transfer) => {
      setClock(1);
      return scene.alice.authorize(domain, transfer);
    },
  };
  const store = memoryStore();
  setClock(-1);
  await expect(scene.pay(7n, { store, signer: signerUntil(slow, EXPIRES) })).rejects.toMatchObject({ code: "invalid-link" });
  expect(await store.keys("")).toEqual([]);
  expect(scene.nodes.flatMap(({ orders }) => orders)).toEqual([]);
});

test("an order made in time is finished after the expiry, and paid once", async () => {
  const store = memoryStore();
  const order = await signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, 7n, 0n));
  await new OrderJournal(store, DOMAIN, scene.alice.account).create(order);
  setClock(1);
  const receipt = await scene.pay(7n, { store, signer: signerUntil(scene.alice, EXPIRES) });
  expect(receipt.certificate.digest).toBe(order.digest);
});
