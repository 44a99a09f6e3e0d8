/** The newest transfers are those that certificates prove, and no liar alone puts another one first. */

import { afterEach, beforeEach, expect, test } from "vitest";

import { formatAccount } from "../../src/index.js";
import { LatestTransfers } from "../../src/wallet/latest.js";
import { Scene } from "../support/scene.js";

let scene: Scene;
let latest: LatestTransfers;
/** The number of requested certificates. */
let asked: number;

beforeEach(async () => {
  scene = await Scene.open();
  latest = new LatestTransfers(scene.patient().network);
  asked = 0;
  for (const node of scene.nodes) {
    node.lie = ({ path, body }) => {
      if (path === "/v1/certificates/read") asked += (JSON.parse(body) as { names: unknown[] }).names.length;
      return undefined;
    };
  }
});

afterEach(() => scene.close());

async function pay(...amounts: bigint[]): Promise<void> {
  for (const amount of amounts) await (await scene.pay(amount)).rest;
}

async function amounts(): Promise<bigint[]> {
  return (await latest.read()).map(({ order: { transfer } }) => (transfer.type === "payment" ? transfer.amount : -1n));
}

function listed(...sequences: number[]): { status: number; body: object } {
  const sender = formatAccount(scene.alice.account);
  return { status: 200, body: { transfers: sequences.map((sequence) => ({ sender, sequence: String(sequence), digest: "0x" })) } };
}

test("they come newest first, and a certificate is read once", async () => {
  expect(await amounts()).toEqual([]);
  await pay(1n, 2n);
  expect(await amounts()).toEqual([2n, 1n]);
  expect(asked).toBe(2);
  await pay(3n);
  expect(await amounts()).toEqual([3n, 2n, 1n]);
  expect(asked).toBe(3);
});

test("an authority alone puts no old one first, also if it says it twice, and what nobody proves is left out", async () => {
  await pay(1n, 2n, 3n);
  scene.node(0).lie = ({ path }) => (path === "/v1/transfers" ? listed(0, 0, 0, 99) : undefined);
  expect(await amounts()).toEqual([3n, 2n, 1n]);
  scene.node(0).lie = ({ path }) => (path === "/v1/transfers" ? { status: 200, body: { transfers: [{}] } } : undefined);
  expect(await amounts()).toEqual([3n, 2n, 1n]);
});

test("where no two list the same, all are shown", async () => {
  await pay(1n, 2n, 3n, 4n);
  scene.nodes.forEach((node, number) => {
    node.lie = ({ path }) => (path === "/v1/transfers" ? listed(number) : undefined);
  });
  expect((await amounts()).sort()).toEqual([1n, 2n, 3n, 4n]);
});

test("if no authority lists any, the error says so", async () => {
  for (const node of scene.nodes) node.lie = () => ({ status: 404, body: {} });
  await expect(latest.read()).rejects.toMatchObject({ code: "too-few-answers" });
});
