/** A client on a real ledger: members and authorities are processes, and one member lies. */

import { ed25519 } from "@noble/curves/ed25519.js";
import { afterAll, beforeAll, expect, test } from "vitest";

import {
  accountFromEd25519,
  ed25519Signer,
  ETHER,
  FastPay,
  formatAccount,
  memoryStore,
  NO_MEMO,
  parseAmount,
  verifyCertificate,
  type FastPayClient,
  type Redemption,
} from "../../src/index.js";
import { openLedger, type LedgerDescription } from "../../src/ledger.js";
import { LyingProxy, startLedger, type StartedLedger } from "../support/ledger-network.js";

const RECIPIENT = "0x00000000000000000000000000000000000000aa";
const units = (amount: string): bigint => parseAmount(amount, 18);
const alice = ed25519Signer(new Uint8Array(32).fill(0xa1));
const bob = ed25519Signer(new Uint8Array(32).fill(0xb0));
const bank = accountFromEd25519(ed25519.getPublicKey(new Uint8Array(32).fill(1)));

let ledger: StartedLedger;
let proxy: LyingProxy;
/** Member 0 is behind the proxy. */
let description: LedgerDescription;
const clients: FastPayClient[] = [];

beforeAll(async () => {
  ledger = await startLedger(`sdk-${process.pid}`);
  const [first, ...others] = ledger.ledger.members;
  if (first === undefined) throw new Error("a cluster has members");
  proxy = await LyingProxy.start(first.http);
  description = { ...ledger.ledger, members: [{ ...first, http: proxy.url }, ...others] };
});

afterAll(async () => {
  for (const client of clients) client.close();
  await proxy.stop();
  await ledger.stop();
});

async function connect(by = description): Promise<FastPayClient> {
  const client = await FastPay.create({ ledger: openLedger(by), authorities: ledger.authorities, storage: memoryStore() });
  clients.push(client);
  return client;
}

const balanceOf = async (client: FastPayClient, account = alice.account): Promise<bigint> =>
  (await client.account(account)).balances.find(({ asset }) => asset === ETHER)?.balance ?? 0n;

test("a bank funds an account, and the client sees the deposit and pays", async () => {
  const client = await connect();
  expect(client).toMatchObject({ primary: "ledger", committeesFrom: "ledger" });
  const watch = client.watch(alice.account);
  const seen = watch[Symbol.asyncIterator]().next();
  await ledger.fund(formatAccount(alice.account), "5");
  expect((await seen).value).toMatchObject({ type: "deposited", amount: units("5"), asset: ETHER });
  expect((await client.assetStatus(ETHER)).totalBalance).toBe(units("5"));

  const { certificate } = await client.pay(alice, { recipient: bob.account, asset: ETHER, amount: units("1.25") });
  verifyCertificate(certificate, await client.committee(0n), client.domain);
  expect(await balanceOf(client)).toBe(units("3.75"));
  expect(await balanceOf(client, bob.account)).toBe(units("1.25"));
  const { received } = await client.history(bob.account);
  expect(received).toMatchObject([{ payment: { sender: alice.account, amount: units("1.25") } }]);
  const { deposits } = await client.history(alice.account);
  expect(deposits).toMatchObject([{ amount: units("5"), recipient: alice.account }]);
});

test("a member that lies is not believed, and changes nothing", async () => {
  const flip = (at: number) => (proof: `0x${string}`) => {
    const digit = proof[at] === "0" ? "1" : "0";
    return `0x${proof.slice(2, at)}${digit}${proof.slice(at + 1)}` as const;
  };
  const client = await connect();
  const honest = await client.assetStatus(ETHER);
  // In the header, in the votes, and in the value or its path.
  for (const at of [40, 700, 900, 1_000]) {
    proxy.lie = flip(at);
    for (let time = 0; time < 3; time += 1) expect(await client.assetStatus(ETHER)).toEqual(honest);
  }
  expect(proxy.lies).toBeGreaterThanOrEqual(4);
  const alone = await connect({ ...description, members: description.members.slice(0, 2) }).catch((error: unknown) => error);
  expect(alone).toMatchObject({ code: "chain-unreachable" });
  proxy.lie = (proof) => proof;
});

test("what the ledger has paid is known, and what it has not paid", async () => {
  const client = await connect();
  await ledger.fund(formatAccount(bank), "2");
  await ledger.redeem("0.5", RECIPIENT);
  const facts = { recipient: RECIPIENT, asset: ETHER, amount: units("0.5"), fee: 0n, memo: NO_MEMO } as const;
  const paid: Redemption = { type: "redemption", sender: bank, sequence: 0n, ...facts };
  expect(await client.redemptionStatus(paid)).toEqual({ state: "paid", hash: undefined });
  expect(await client.redemptionStatus({ ...paid, amount: units("0.6") })).toEqual({ state: "displaced", hash: undefined });
  const { certificate } = await client.redeem(alice, { recipient: RECIPIENT, asset: ETHER, amount: units("0.5") });
  expect(await client.redemptionStatus(certificate.order.transfer as Redemption)).toEqual({ state: "open" });
  // The omnibus holds what was deposited, without what was paid.
  expect((await client.assetStatus(ETHER)).totalBalance).toBe(units("6.5"));
});

test("a rotation is followed, while the client pays", async () => {
  const client = await connect();
  const events = (await client.contractStatus()).lastTransactionIndex;
  await ledger.rotate();
  await expect.poll(async () => {
    const { certificate } = await client.pay(alice, { recipient: bob.account, asset: ETHER, amount: 1n });
    return certificate.epoch;
  }).toBe(1n);
  expect((await client.committee()).epoch).toBe(1n);
  expect(await client.contractStatus()).toMatchObject({ epoch: 1n, lastTransactionIndex: events + 1n });
  expect((await (await connect()).committee()).epoch).toBe(1n);
});
