/**
 * What the storage says is true at every instant, and is written down before the next step is taken: authorities and
 * whoever is told look into it when something arrives. The storage takes its time, so that whoever does not wait for it
 * is seen. Each test fails where the two steps that it names are swapped.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { ETHER, memoryStore, type ChainStep, type OrderStore } from "../../src/index.js";
import { OrderJournal } from "../../src/storage/journal.js";
import type { ContractContext } from "../../src/wallet/context.js";
import { claim } from "../../src/wallet/payouts.js";
import { TestChain } from "../support/chain.js";
import { DOMAIN } from "../support/committee.js";
import { onContract, Scene } from "../support/scene.js";

let scene: Scene;
/** The names of what is in the storage, by their ends: `order`, `certificate`, `settled`, `submitted`, `ended`. */
let kept: Set<string>;
let store: OrderStore;

beforeEach(async () => {
  scene = await Scene.open();
  kept = new Set();
  const slow = memoryStore();
  store = {
    ...slow,
    create: async (key, value) => {
      await sleep(300);
      const isNew = await slow.create(key, value);
      kept.add(key.slice(key.lastIndexOf(".") + 1));
      return isNew;
    },
  };
});

afterEach(() => scene.close());

/** What was kept whenever something came to an authority under a path. */
function listen(path: string): string[] {
  const heard: string[] = [];
  for (const node of scene.nodes) {
    const before = node.lie;
    node.lie = (request) => {
      if (request.path === path) heard.push([...kept].sort().join(" "));
      return before(request);
    };
  }
  return heard;
}

test("an order and its certificate are stored before they are sent, and settled is stored last", async () => {
  const [orders, certificates] = [listen("/v1/orders"), listen("/v1/certificates")];
  await scene.pay(30n, { store });
  expect(new Set(orders)).toEqual(new Set(["order"]));
  // Of three confirmations the last one cannot have been given yet.
  expect(certificates.slice(0, 3)).toEqual(Array(3).fill("certificate order"));
  expect(kept.has("settled")).toBe(true);
  expect(await scene.resume(store)).toEqual([]);
});

test("an order of another copy is stored before it is sent", async () => {
  for (const node of scene.nodes.slice(2)) node.lie = ({ path }) => (path === "/v1/orders" ? "hang" : undefined);
  await expect(scene.pay(30n, { timing: { deadlineMs: 1_000 } })).rejects.toMatchObject({ code: "no-quorum" });
  for (const node of scene.nodes) node.lie = () => undefined;
  const orders = listen("/v1/orders");
  await scene.resume(store);
  expect(new Set(orders)).toEqual(new Set(["order"]));
  expect(orders.length).toBeGreaterThanOrEqual(3);
});

test("a certificate that reached nobody is listed, and sent later", async () => {
  for (const node of scene.nodes) node.lie = ({ path }) => (path === "/v1/certificates" ? "hang" : undefined);
  const paying = scene.pay(30n, { store, timing: { deadlineMs: 1_000 } });
  await expect(paying).rejects.toMatchObject({ code: "no-quorum", details: { what: "confirmations" } });
  const journal = new OrderJournal(store, DOMAIN, scene.alice.account);
  expect((await journal.unfinished()).map(({ state }) => state)).toEqual(["certified"]);
  for (const node of scene.nodes) node.lie = () => undefined;
  expect(await scene.resume(store)).toMatchObject([{ type: "settled" }]);
});

test("settled is not stored without the certificate", async () => {
  const journal = new OrderJournal(store, DOMAIN, scene.alice.account);
  await expect(journal.settle(0n)).rejects.toThrow("its certificate is not in the storage");
  expect(kept).toEqual(new Set());
});

test("a transaction is stored before it is reported as submitted, and its end is stored once it is final", async () => {
  const chain = new TestChain(scene.bob.account, 7n);
  chain.did = "claim";
  const context: ContractContext = { ...scene.context, store, ...onContract(chain.contract) };
  const said: [ChainStep["type"], string][] = [];
  const report = ({ type }: ChainStep): void => void said.push([type, [...kept].sort().join(" ")]);
  const claiming = claim(context, chain.wallet, { asset: ETHER }, report, undefined);
  await vi.waitFor(() => expect(said.map(([type]) => type)).toContain("submitted"), 30_000);
  [chain.newest, chain.block, chain.final] = [11n, 11n, 11n];
  await claiming;
  expect(said.find(([type]) => type === "submitted")?.[1]).toContain("submitted");
  for (const [, now] of said) expect(now).not.toContain("ended");
  expect(kept.has("ended")).toBe(true);
});
