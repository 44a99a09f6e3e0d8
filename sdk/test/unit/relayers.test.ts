/** Relayers' fees: of each that answers for this deployment, and a fee that most of them accept. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";

import { ETHER } from "../../src/index.js";
import { relayerFees } from "../../src/wallet/relayers.js";
import { Contract } from "../../src/chain/contract.js";
import type { Context } from "../../src/wallet/context.js";
import { DOMAIN } from "../support/committee.js";
import { Scene } from "../support/scene.js";

const TOKEN = "0x7070707070707070707070707070707070707070";
const RELAYER = "0x00000000000000000000000000000000000000e1";

let scene: Scene;
let servers: Server[];

beforeEach(async () => {
  scene = await Scene.open();
  servers = [];
});

afterEach(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await scene.close();
});

async function relayer(body: unknown, status = 200): Promise<string> {
  const server = createServer((request, response) => {
    response.writeHead(request.url === "/v1/fees" ? status : 404, { "content-type": "application/json" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** As docs/API.md shows it. */
function quote(fee: bigint, change: object = {}): object {
  const fees = [{ asset: ETHER, fee: fee.toString() }, { asset: TOKEN, fee: "7" }];
  return { chainId: "31337", contract: DOMAIN.contract, relayer: RELAYER, gasPrice: "2000000000", fees, ...change };
}

/** A chain with a block every 12 seconds. */
function contextWith(relayers: readonly string[], newest = 100n): Context {
  const block = (number: bigint) => ({ number, timestamp: 1_700_000_000n + 12n * number });
  const client = { getBlock: async ({ blockNumber = newest }: { blockNumber?: bigint }) => block(blockNumber) };
  return { ...scene.context, primary: new Contract(client as never, DOMAIN, "latest"), relayers };
}

test("the fee that more than half of the relayers accept is proposed, with the usual time", async () => {
  const urls = await Promise.all([300n, 100n, 200n].map((fee) => relayer(quote(fee))));
  const fees = await relayerFees(contextWith(urls), ETHER);
  expect(fees.offers).toEqual([
    { url: urls[1], relayer: RELAYER, fee: 100n },
    { url: urls[2], relayer: RELAYER, fee: 200n },
    { url: urls[0], relayer: RELAYER, fee: 300n },
  ]);
  expect(fees).toMatchObject({ proposed: 200n, silent: [], usualMs: 60_000 + 36_000 });
  // Two of them both take the higher fee.
  expect((await relayerFees(contextWith(urls.slice(0, 2)), ETHER)).proposed).toBe(300n);
  expect((await relayerFees(contextWith(urls.slice(0, 1)), TOKEN)).proposed).toBe(7n);
});

test("one relayer cannot move the proposal far, whatever fee it announces", async () => {
  const honest = await Promise.all([100n, 110n].map((fee) => relayer(quote(fee))));
  for (const fee of [0n, 2n ** 128n - 1n]) {
    const { proposed = 0n } = await relayerFees(contextWith([...honest, await relayer(quote(fee))]), ETHER);
    expect(proposed === 100n || proposed === 110n).toBe(true);
  }
});

test.each([
  ["of another chain", quote(1n, { chainId: "1" }), 200],
  ["of another contract", quote(1n, { contract: RELAYER }), 200],
  ["that does not know the price of gas", { error: "the gas price is unknown now" }, 503],
  ["that answers no JSON", "<html>", 200],
  ["that answers another form", { fees: "all" }, 200],
  ["with a fee that is none", quote(-1n), 200],
])("one %s has no say", async (_name, body, status) => {
  const [good, bad] = [await relayer(quote(100n)), await relayer(body, status)];
  const fees = await relayerFees(contextWith([bad, good]), ETHER);
  expect(fees.offers.map(({ url }) => url)).toEqual([good]);
  expect(fees.silent.map(({ url }) => url)).toEqual([bad]);
});

test("nothing is proposed if no relayer serves the asset or answers", async () => {
  const url = await relayer(quote(1n, { fees: [] }));
  expect(await relayerFees(contextWith([url, "http://127.0.0.1:1"]), ETHER)).toMatchObject({
    offers: [],
    proposed: undefined,
    silent: [{ url: "http://127.0.0.1:1", error: { code: "unreachable" } }],
  });
  expect(await relayerFees(contextWith([], 0n), ETHER)).toMatchObject({ offers: [], proposed: undefined, usualMs: 60_000 });
});
