/** A client on a ledger: it pays as on a contract, reads the committee from proofs, and follows it. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import {
  encodeMemo,
  ETHER,
  FastPay,
  formatAccount,
  formatPaymentLink,
  memoryStore,
  NO_MEMO,
  parsePaymentLink,
  type FastPayClient,
  type Hex,
  type OrderStore,
  type Redemption,
  type Signer,
} from "../../src/index.js";
import { Committees } from "../../src/chain/committees.js";
import { openLedger, type LedgerDescription } from "../../src/ledger.js";
import type { Primary } from "../../src/primary.js";
import { TestArchive } from "../support/archive.js";
import { authorities, person } from "../support/committee.js";
import { NOW_MS, TestLedger, VECTORS } from "../support/ledger.js";
import { problem, TestNode } from "../support/node.js";

const DOMAIN = { chainId: 0n, contract: VECTORS.description.contract };
const RECIPIENT = "0x00000000000000000000000000000000000000aa";
const alice = person("alice");
const bob = person("bob");

let ledger: TestLedger;
let nodes: TestNode[];
let storage: OrderStore;
const clients: FastPayClient[] = [];

beforeEach(async () => {
  // The recorded states are of one day, and old ones do not count.
  vi.useFakeTimers({ toFake: ["Date"], now: NOW_MS });
  ledger = await TestLedger.start();
  nodes = await Promise.all(authorities(4, "epoch 0", DOMAIN).map((keys) => TestNode.start(keys)));
  for (const node of nodes) node.account(alice.account).balance = 100n;
  storage = memoryStore();
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await Promise.all([ledger.stop(), ...nodes.map((node) => node.stop())]);
  vi.useRealTimers();
});

/** A server with one answer. */
async function serveJson(body: unknown): Promise<{ url: string; stop: () => Promise<void> }> {
  const server = createServer((_, response) => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = (): Promise<void> => new Promise((resolve) => void (server.closeAllConnections(), server.close(() => resolve())));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}

async function connect(description: LedgerDescription = ledger.description, relayers: readonly string[] = [], names?: readonly Hex[]): Promise<FastPayClient> {
  const endpoints = nodes.map(({ url, keys }, number) => ({ http: url, name: names?.[number] ?? keys.votingKey }));
  const client = await FastPay.create({ ledger: openLedger(description), authorities: endpoints, relayers, storage });
  clients.push(client);
  return client;
}

const pay = (client: FastPayClient, amount: bigint, signer: Signer = alice) =>
  client.pay(signer, { recipient: bob.account, asset: ETHER, amount, memo: encodeMemo("rent") });

/** The members have new keys, and the ledger has installed them. */
function rotate(): void {
  authorities(4, "epoch 1", DOMAIN).forEach((keys, number) => Object.assign(nodes[number] ?? {}, { keys, epoch: 1n }));
  ledger.reach("rotated");
}

const redemption: Redemption = {
  type: "redemption",
  sender: alice.account,
  recipient: RECIPIENT,
  asset: ETHER,
  amount: 30n,
  fee: 0n,
  sequence: 0n,
  memo: NO_MEMO,
};

describe("a client", () => {
  test("pays, and the recipient has the money and its history", async () => {
    const client = await connect();
    expect(client).toMatchObject({ primary: "ledger", committeesFrom: "ledger", domain: DOMAIN });
    const { certificate } = await pay(client, 7n);
    expect(certificate.votes).toHaveLength(3);
    expect((await client.account(bob.account)).balances).toMatchObject([{ asset: ETHER, balance: 7n }]);
    const { received } = await client.history(bob.account);
    expect(received).toMatchObject([{ payment: { amount: 7n, memo: encodeMemo("rent") } }]);
    expect(await client.isCurrent()).toBe(true);
    const link = formatPaymentLink({ account: bob.account, domain: client.domain, asset: ETHER, amount: 7n });
    expect(parsePaymentLink(link).domain).toEqual(DOMAIN);
  });

  test("follows a rotation, while it pays", async () => {
    const client = await connect();
    await pay(client, 1n);
    rotate();
    const { certificate } = await pay(client, 2n);
    expect(certificate.epoch).toBe(1n);
    expect((await client.committee()).members.map(({ votingKey }) => votingKey)).toEqual(nodes.map(({ keys }) => keys.votingKey));
    expect((await client.committee(0n)).members).not.toEqual((await client.committee()).members);
    await expect(client.committee(2n)).rejects.toMatchObject({ code: "not-found" });
  });

  test("counts no checkpoints of an earlier epoch", async () => {
    const primary = openLedger(ledger.description) as unknown as Primary;
    const first = await primary.committee(0n);
    const counting = async () => {
      const current = await Committees.readCurrent(primary, Promise.resolve(first));
      const committees = await new Committees(primary, current, Promise.resolve(first)).counting();
      return committees.map(({ epoch }) => epoch);
    };
    expect(await counting()).toEqual([0n]);
    ledger.reach("rotated");
    expect(await counting()).toEqual([1n]);
  });

  test("makes a payment that keys of an earlier epoch say is void", async () => {
    const client = await connect();
    for (const node of nodes.slice(1)) node.lie = ({ path }) => (path === "/v1/orders" ? problem(503, "busy") : undefined);
    await expect(pay(client, 7n)).rejects.toMatchObject({ code: "no-quorum" });
    expect(await client.unfinished(alice.account)).toHaveLength(1);
    const archive = new TestArchive(nodes.slice(0, 3).map(({ keys }) => keys));
    archive.add([], [{ account: alice.account, sequence: 0n }]);
    rotate();
    for (const node of nodes) node.lie = () => undefined;
    const [liar] = nodes as [TestNode];
    liar.archive = archive;
    liar.lie = ({ path }) => {
      if (path.includes("/certificates/")) return problem(410, "pruned", { first: "1", checkpoint: "1" }, "never");
      const state = { nextSequence: "1", received: "0", deposits: "0", pending: null, holdings: [], truncated: false };
      return path === `/v1/accounts/${formatAccount(alice.account)}` ? { status: 200, body: state } : undefined;
    };
    const resumed = await (await connect()).resume(alice.account);
    expect(resumed).toMatchObject([{ type: "settled", receipt: { certificate: { epoch: 1n } } }]);
    expect(nodes.filter((node) => node.account(alice.account).sent[0] !== undefined).length).toBeGreaterThanOrEqual(3);
  });

  test("starts with the committee that it stored where members show an earlier one, whatever keys are listed", async () => {
    const retired = nodes.map(({ keys }) => keys.votingKey);
    await connect();
    rotate();
    expect((await (await connect()).committee()).epoch).toBe(1n);
    ledger.reach("open");
    for (const names of [undefined, retired]) {
      const client = await connect(ledger.description, [], names);
      expect(client.committeesFrom).toBe("storage");
      expect((await client.committee()).epoch).toBe(1n);
      expect((await pay(client, 1n)).certificate.epoch).toBe(1n);
    }
  });

  test("starts with the committee that it stored where members go back between two reads", async () => {
    await connect();
    const [epoch] = VECTORS.states.find(({ name }) => name === "rotated")?.reads ?? [];
    for (const member of ledger.members) member.lie = (key) => (key === epoch?.key ? { proof: epoch.encoding } : undefined);
    const client = await connect();
    expect(client.committeesFrom).toBe("storage");
    expect((await pay(client, 1n)).certificate.epoch).toBe(0n);
    storage = memoryStore();
    await expect(connect()).rejects.toMatchObject({ code: "chain-unreachable", details: { primary: "ledger" } });
  });

  test("starts and pays with the committee that it stored, while no member answers", async () => {
    await connect();
    ledger.reach("away");
    const client = await connect();
    expect(client.committeesFrom).toBe("storage");
    expect((await pay(client, 3n)).certificate.votes).toHaveLength(3);
    storage = memoryStore();
    await expect(connect()).rejects.toMatchObject({ code: "chain-unreachable" });
  });

  test("redeems, and sees when the ledger has paid", async () => {
    const client = await connect();
    ledger.reach("funded");
    const { certificate } = await client.redeem(alice, { recipient: RECIPIENT, asset: ETHER, amount: 30n });
    expect(certificate.order.transfer).toEqual(redemption);
    expect(await client.redemptionStatus(redemption)).toEqual({ state: "open" });
    ledger.reach("redeemed");
    expect(await client.redemptionStatus(redemption)).toEqual({ state: "paid", hash: undefined });
    // A thief with the committee's keys would have spent the number on an order of his own.
    expect(await client.redemptionStatus({ ...redemption, recipient: DOMAIN.contract })).toEqual({ state: "displaced", hash: undefined });
  });

  test("sees what becomes of a number that its owner has unlocked, and steps over one that is void", async () => {
    const client = await connect();
    const status = () => client.unlockStatus(alice.account, 1n);
    ledger.reach("redeemed");
    expect(await status()).toEqual({ state: "none" });
    ledger.reach("requested");
    expect(await status()).toMatchObject({ state: "requested", isFinal: true, isDecided: false });
    ledger.reach("voided");
    expect(await status()).toEqual({ state: "voided" });
    expect(await client.redemptionStatus({ ...redemption, sequence: 1n })).toEqual({ state: "voided" });
    // Alice's first number has a certificate, and the authorities have stepped over the second.
    await pay(client, 1n);
    for (const node of nodes) {
      const account = node.account(alice.account);
      account.next = 2n;
      account.sent[1] = undefined;
    }
    const { certificate } = await pay(client, 2n);
    expect(certificate.order.transfer.sequence).toBe(2n);
  });

  test("reads what the committee's accounts have in all, and the number of its events", async () => {
    const client = await connect();
    const total = async () => (await client.assetStatus(ETHER)).totalBalance;
    expect(await total()).toBe(0n);
    ledger.reach("funded");
    expect(await total()).toBe(100n);
    ledger.reach("redeemed");
    expect(await client.assetStatus(ETHER)).toMatchObject({ totalBalance: 70n, totalClaims: 0n, outflowAvailable: 70n });
    expect(await client.contractStatus()).toMatchObject({ epoch: 0n, lastTransactionIndex: 2n, pausedUntil: 0n });
    rotate();
    expect(await client.contractStatus()).toMatchObject({ epoch: 1n, lastTransactionIndex: 5n });
  });

  test("proposes the fee of a relayer of this committee on this ledger, and of no other", async () => {
    const quote = { chainId: "0", contract: DOMAIN.contract, relayer: RECIPIENT, fees: [{ asset: ETHER, fee: "3" }] };
    const relayers = await Promise.all([quote, { ...quote, contract: RECIPIENT }, { ...quote, chainId: "1" }].map(serveJson));
    const client = await connect(ledger.description, relayers.map(({ url }) => url));
    const fees = await client.relayerFees(ETHER);
    expect(fees).toMatchObject({ proposed: 3n, offers: [{ relayer: RECIPIENT, fee: 3n }], usualMs: 3_000 });
    expect(fees.silent.map(({ url }) => url)).toEqual(relayers.slice(1).map(({ url }) => url));
    await Promise.all(relayers.map(({ stop }) => stop()));
  });

  test("counts assets as the command line does", async () => {
    const client = await connect();
    expect(await client.assetInfo(ETHER)).toMatchObject({ symbol: "native", decimals: 18 });
    expect(await client.assetInfo(RECIPIENT)).toMatchObject({ symbol: "units", decimals: 0 });
    await expect(pay(client, 101n)).rejects.toMatchObject({
      code: "insufficient-funds",
      message: expect.stringMatching(/has 0\.0{15}1 native and needs 0\.0{15}101 native$/),
    });
  });

  test("refuses to redeem to the domain's address, which nobody has the key of", async () => {
    const client = await connect();
    const asked = client.redeem(alice, { recipient: DOMAIN.contract, asset: ETHER, amount: 1n });
    await expect(asked).rejects.toMatchObject({ code: "recipient-is-fastpay" });
    expect(await client.isFastPay(RECIPIENT)).toBe(false);
  });

  test("says of each operation that needs a contract how it is done on a ledger", async () => {
    const client = await connect();
    const { certificate } = await pay(client, 1n);
    const wallet = undefined as never;
    const hash = `0x${"00".repeat(32)}` as const;
    const sent = { type: "deposit", account: alice.account, hash, submittedAtMs: 0 } as never;
    const asked: readonly (readonly [Promise<unknown>, RegExp])[] = [
      [client.deposit(wallet, { asset: ETHER, amount: 1n }), /`fastpay deposit`/],
      [client.redeemOnChain(wallet, certificate), /`fastpay redeem --self`/],
      [client.executeQueued(wallet, redemption), /nothing is queued/],
      [client.claim(wallet, { asset: ETHER }), /`fastpay-ledger reserve show`/],
      [client.claimable(RECIPIENT, ETHER), /`fastpay-ledger reserve show`/],
      [client.unlock("relayer", alice), /no program requests it on a ledger yet/],
      [client.unlockCost(), /no program requests it on a ledger yet/],
      [client.balanceOnChain(RECIPIENT, ETHER), /`fastpay-ledger reserve show`/],
      [client.redemptionCost(), /no gas/],
      [client.depositStatus(hash), /no Ethereum transactions/],
      [client.contractTransaction(hash), /no Ethereum transactions/],
      [client.depositTransaction(1n), /no Ethereum transactions/],
      [client.resumeTransaction(sent), /no Ethereum transactions/],
    ];
    for (const [call, action] of asked) {
      await expect(call).rejects.toMatchObject({ code: "needs-contract", action: expect.stringMatching(action) });
    }
    expect(await client.unlockStatus(alice.account, 1n)).toEqual({ state: "none" });
    expect(await client.unfinishedTransactions(alice.account)).toEqual([]);
  });
});

describe("the members of the ledger", () => {
  test("cannot show an older state than was read before, whichever of them answer first", async () => {
    const client = await connect();
    ledger.reach("funded");
    expect((await client.assetStatus(ETHER)).totalBalance).toBe(100n);
    for (const number of [0, 1, 2]) ledger.member(number).serves = "open";
    for (let time = 0; time < 5; time += 1) expect((await client.assetStatus(ETHER)).totalBalance).toBe(100n);
    ledger.member(3).serves = "open";
    await expect(client.assetStatus(ETHER)).rejects.toMatchObject({
      code: "chain-unreachable",
      message: expect.stringContaining("behind height 2"),
    });
    // One alone knew of the newest height, and the others learn of it.
    setTimeout(() => ledger.reach("redeemed"), 100);
    expect((await client.assetStatus(ETHER)).totalBalance).toBe(70n);
  });

  test("cannot show an older state than an honest one of f + 1 has", async () => {
    const client = await connect();
    for (const liar of ledger.members) {
      ledger.reach("redeemed");
      liar.serves = "funded";
      for (let time = 0; time < 5; time += 1) expect((await client.assetStatus(ETHER)).totalBalance).toBe(70n);
    }
  });

  test.each([
    ["garbage", () => ({ proof: "0x00" })],
    ["no proof", () => ({})],
    ["no bytes", () => ({ proof: "state" })],
    ["too much", () => ({ proof: `0x${"00".repeat(200_000)}` })],
    ["the proof of another entry", () => ({ proof: VECTORS.states[1]?.reads[0]?.encoding })],
    ["a committee of its own", () => ({ proof: VECTORS.refused.find(({ name }) => name === "the committee: another value")?.encoding })],
    ["absence", () => ({ proof: VECTORS.refused.find(({ name }) => name === "the omnibus: said to be absent")?.encoding })],
  ])("may answer with %s: one liar changes nothing, and three are noticed", async (what, lie) => {
    const client = await connect();
    ledger.reach("funded");
    ledger.member(0).lie = lie;
    for (let time = 0; time < 3; time += 1) expect((await client.assetStatus(ETHER)).totalBalance).toBe(100n);
    for (const number of [1, 2]) ledger.member(number).lie = lie;
    const noticed = await client.assetStatus(ETHER).catch((error: unknown) => error);
    expect(noticed).toMatchObject({ code: "chain-unreachable", details: { primary: "ledger" } });
    // It is refused before it is decoded.
    if (what === "too much") expect((noticed as Error).message).toContain("at most 263168 bytes long");
  });

  test.each(VECTORS.absurd)("if they are traitors who certify $name, are found out", async ({ key, encoding }) => {
    ledger.reach("rotated");
    const primary = openLedger(ledger.description) as unknown as Primary;
    const ask = async () => {
      const outcomes = await Promise.allSettled([primary.status(), primary.assetStatus(ETHER), primary.committee(1n)]);
      return outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason.code] : []));
    };
    expect(await ask()).toEqual([]);
    for (const member of ledger.members) member.lie = (asked) => (asked === key ? { proof: encoding } : undefined);
    expect(await ask()).toEqual(["malformed-answer"]);
  });

  test("may be away or silent, if f + 1 answer; one alone proves nothing", async () => {
    const client = await connect();
    ledger.reach("funded");
    ledger.member(0).serves = "silent";
    ledger.member(1).serves = "away";
    expect((await client.assetStatus(ETHER)).totalBalance).toBe(100n);
    expect(ledger.members.every(({ asked }) => asked > 0)).toBe(true);
    ledger.member(2).serves = "away";
    await expect(client.assetStatus(ETHER)).rejects.toMatchObject({ code: "chain-unreachable" });
  });

  test("have states that are ten minutes old at most", async () => {
    const client = await connect();
    vi.setSystemTime((VECTORS.states[0]?.time ?? 0) + 600_000);
    expect((await client.contractStatus()).epoch).toBe(0n);
    vi.setSystemTime((VECTORS.states[0]?.time ?? 0) + 600_001);
    await expect(client.contractStatus()).rejects.toMatchObject({
      code: "chain-unreachable",
      message: expect.stringContaining("2027-01-15T08:00:01"),
      action: expect.stringContaining("clock"),
    });
  });

  test("are asked at once, and nobody waits for the slow ones", async () => {
    const client = await connect();
    ledger.member(3).serves = "silent";
    const before = performance.now();
    await client.contractStatus();
    expect(performance.now() - before).toBeLessThan(4_000);
  });
});
