/** A client whose storage has the committees starts and pays while the Ethereum node does not answer. */

import { createPublicClient, custom, decodeFunctionData, encodeFunctionResult, toHex, type Hex } from "viem";
import { afterEach, beforeEach, expect, test } from "vitest";

import { FASTPAY_ABI } from "../../src/chain/abi.js";
import { ETHER, FastPay, memoryStore, type Committee, type FastPayClient, type OrderStore } from "../../src/index.js";
import { authorities, committeeOfKeys, DOMAIN } from "../support/committee.js";
import { Scene } from "../support/scene.js";

let scene: Scene;
let storage: OrderStore;
const clients: FastPayClient[] = [];
/** The node's state: it answers, refuses, or accepts requests and never answers. */
let node: "answers" | "refuses" | "hangs" | "is of another chain";

beforeEach(async () => {
  scene = await Scene.open();
  storage = memoryStore();
  node = "answers";
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await scene.close();
});

async function answer({ method, params }: { method: string; params?: unknown }): Promise<unknown> {
  if (node === "hangs") return new Promise(() => undefined);
  if (node === "refuses") throw new Error("the node is down");
  if (method === "eth_chainId") return toHex(DOMAIN.chainId + (node === "answers" ? 0n : 1n));
  const [{ data }] = params as readonly [{ data: Hex }];
  const { functionName, args } = decodeFunctionData({ abi: FASTPAY_ABI, data });
  if (functionName === "epoch") return encodeFunctionResult({ abi: FASTPAY_ABI, functionName, result: BigInt(scene.chain.epochs.length - 1) });
  if (functionName !== "committee") throw new Error(`${functionName} is not needed`);
  const { members } = scene.chain.epochs[Number(args[0])] as Committee;
  return encodeFunctionResult({ abi: FASTPAY_ABI, functionName, result: members as never });
}

async function start(options: { names?: readonly Hex[]; setAside?: boolean } = {}): Promise<FastPayClient> {
  const publicClient = createPublicClient({ transport: custom({ request: answer }, { retryCount: 0 }) });
  const client = await FastPay.create({
    publicClient,
    contract: DOMAIN.contract,
    chainId: Number(DOMAIN.chainId),
    authorities: scene.nodes.map(({ url, keys }, i) => ({ http: url, name: options.names?.[i] ?? keys.votingKey })),
    storage,
    setAside: options.setAside ?? false,
  });
  clients.push(client);
  return client;
}

const pay = (client: FastPayClient) => client.pay(scene.alice, { recipient: scene.bob.account, asset: ETHER, amount: 7n });

test.each(["refuses", "hangs"] as const)("the node %s: the committee comes from the storage, and payments are settled", async (state) => {
  expect((await start()).committeesFrom).toBe("contract");
  node = state;
  const client = await start();
  expect(client.committeesFrom).toBe("storage");
  expect((await pay(client)).certificate.votes).toHaveLength(3);
});

test("a newer committee is stored when it is read", async () => {
  const client = await start();
  scene.rotate();
  await pay(client);
  expect((await client.committee()).epoch).toBe(1n);
  node = "refuses";
  expect((await (await start()).committee()).epoch).toBe(1n);
});

test("without stored committees, or with other listed names, the node is needed", async () => {
  node = "refuses";
  await expect(start()).rejects.toMatchObject({ code: "chain-unreachable" });
  node = "answers";
  await start();
  node = "refuses";
  const strangers = authorities(4, "strangers").map(({ votingKey }) => votingKey);
  await expect(start({ names: strangers })).rejects.toMatchObject({ code: "chain-unreachable" });
});

test("if several deployments were used at the address, the node is needed", async () => {
  await start();
  const [first] = scene.chain.epochs;
  scene.chain.epochs[0] = committeeOfKeys(authorities(4, "anew"));
  const names = scene.chain.epochs[0].members.map(({ votingKey }) => votingKey);
  await start({ names, setAside: true });
  scene.chain.epochs[0] = first as Committee;
  node = "refuses";
  await expect(start()).rejects.toMatchObject({ code: "chain-unreachable" });
  await expect(start({ setAside: true })).rejects.toMatchObject({ code: "chain-unreachable" });
});

test("once the node answers again, a client with stored committees detects a new network", async () => {
  await start();
  node = "refuses";
  const client = await start();
  await expect(client.isCurrent()).rejects.toMatchObject({ code: "chain-unreachable" });
  node = "answers";
  expect(await client.isCurrent()).toBe(true);
  scene.chain.epochs[0] = committeeOfKeys(authorities(4, "anew"));
  expect(await client.isCurrent()).toBe(false);
});

test("a node of another chain is not hidden by stored committees", async () => {
  await start();
  node = "is of another chain";
  await expect(start()).rejects.toMatchObject({ code: "wrong-chain" });
});
