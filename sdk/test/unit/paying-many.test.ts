/** Many recipients are paid with few orders: all are checked before the first signature, and nobody is paid twice. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import {
  accountOf,
  decodeMemo,
  encodeMemo,
  ETHER,
  formatAccount,
  memoryStore,
  type ListStatus,
  type ManyOptions,
  type ManyStep,
  type OrderStore,
  type PayListLine,
  type Payout,
  type Signer,
} from "../../src/index.js";
import { pageName, planList } from "../../src/pay-list.js";
import { OrderJournal } from "../../src/storage/journal.js";
import { closeList, linesOf, openLists, payMany, viewList } from "../../src/wallet/many.js";
import { readHistory } from "../../src/wallet/history.js";
import { watchAccount } from "../../src/wallet/watch.js";
import { encodeCertificate } from "../../src/wire.js";
import { DOMAIN, person, signed } from "../support/committee.js";
import { problem, receivedJson } from "../support/node.js";
import { Scene } from "../support/scene.js";

const TOKEN = "0x7070707070707070707070707070707070707070";
let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

/** Payments of 1, 2, 3 … to as many people. */
function lines(count: number): PayListLine[] {
  return Array.from({ length: count }, (_, i) => ({
    recipient: person(`person ${i}`).account,
    asset: ETHER,
    amount: BigInt(i + 1),
    memo: encodeMemo(`for ${i}`),
  }));
}

interface Options extends ManyOptions {
  readonly store?: OrderStore;
  readonly signer?: Signer;
  readonly onStep?: (step: ManyStep) => void;
}

function payAll(list: readonly PayListLine[], { store = scene.context.store, signer = scene.alice, onStep, ...options }: Options = {}) {
  const context = { ...scene.context, store };
  return payMany(context, signer, list, options, (step) => onStep?.(step));
}

function states({ orders }: ListStatus): string[] {
  return orders.map(({ state }) => state);
}

/** The first page of a list, under number 0. */
function pageOf(list: readonly PayListLine[]): Payout {
  const { digest, pages } = planList(list, 256, DOMAIN);
  const [page] = pages;
  if (page === undefined) throw new Error("there is no page");
  const { asset, outputs } = page;
  return { type: "payout", sender: scene.alice.account, asset, outputs, sequence: 0n, memo: pageName(digest, 0) };
}

/** What each person has at the authority that has most of it. */
function paid(count: number): bigint[] {
  return Array.from({ length: count }, (_, i) => {
    const balances = scene.nodes.map((node) => node.account(person(`person ${i}`).account).balance);
    return balances.reduce((most, balance) => (balance > most ? balance : most), 0n);
  });
}

const exactly = (count: number): bigint[] => Array.from({ length: count }, (_, i) => BigInt(i + 1));

/** The orders that authorities were asked to vote for, by number: more than one of a number would lock the account. */
function ordersByNumber(): Map<string, Set<string>> {
  const orders = new Map<string, Set<string>>();
  for (const body of scene.nodes.flatMap((node) => node.orders)) {
    const { sequence } = JSON.parse(body).transfer;
    orders.set(sequence, (orders.get(sequence) ?? new Set()).add(body));
  }
  return orders;
}

/** A signer who counts, and fails from a signature on. */
function counting(failsFrom = Number.POSITIVE_INFINITY): Signer & { asked: number } {
  const signer = {
    ...scene.alice,
    asked: 0,
    authorize: async (...of: Parameters<Signer["authorize"]>) => {
      signer.asked += 1;
      if (signer.asked >= failsFrom) throw new Error("the person has gone");
      return scene.alice.authorize(...of);
    },
  };
  return signer;
}

test("a list that another storage paid is not paid again though one authority hides its order behind a forged certificate", async () => {
  const forged = await scene.certified(9n);
  scene.rotate();
  await payAll(lines(2));
  await (await scene.pay(1n)).rest;
  const hides = `/v1/accounts/${formatAccount(scene.alice.account)}/certificates/0`;
  scene.node(0).lie = ({ path }) => (path === hides ? { status: 200, body: encodeCertificate(forged) } : undefined);
  for (const node of scene.nodes.slice(1)) {
    // The liar answers first.
    node.lie = (request) => {
      const answer = request.path === hides ? node.honest(request) : undefined;
      return typeof answer !== "object" ? answer : (response) => void setTimeout(() => response.writeHead(answer.status).end(answer.body), 50);
    };
  }
  const signer = counting();
  const { network } = await scene.later();
  const context = { ...scene.context, network, store: memoryStore() };
  const status = await payMany(context, signer, lines(2), {}, () => undefined);
  expect([signer.asked, states(status), status.orders[0]?.sequence]).toEqual([0, ["settled"], 0n]);
  expect(paid(2)).toEqual(exactly(2));
});

test("a list is paid although one authority shows a certificate of it that it kept back until the number was void", async () => {
  const hidden = await signed(scene.alice, pageOf(lines(2)));
  const votes = scene.nodes.slice(0, 3).map(({ keys }) => keys.vote(0n, hidden.transfer));
  for (const node of scene.nodes) {
    node.freeze(scene.alice.account);
    node.decide(scene.alice.account, undefined);
  }
  scene.chain.voided.add(0n);
  await (await scene.pay(1n, { store: memoryStore() })).rest;
  const hides = `/v1/accounts/${formatAccount(scene.alice.account)}/certificates/0`;
  const body = encodeCertificate({ order: hidden, epoch: 0n, votes: votes.sort((a, b) => (a.authority < b.authority ? -1 : 1)) });
  scene.node(0).lie = ({ path }) => (path === hides ? { status: 200, body } : undefined);
  const status = await payAll(lines(2), { store: memoryStore() });
  expect(status.orders.map(({ state, sequence }) => [state, sequence])).toEqual([["settled", 2n]]);
  expect(paid(2)).toEqual(exactly(2));
});

test("a new storage learns many orders of earlier epochs quietly, and settled", async () => {
  for (const amount of [1n, 2n, 3n]) await (await scene.pay(amount)).rest;
  scene.rotate();
  const { network } = await scene.later();
  const store = memoryStore();
  const before = scene.steps.length;
  await scene.pay(4n, { store, network });
  // Only the newest one is finished, as in the same epoch.
  expect(scene.steps.slice(before).filter(({ type }) => type === "finishing")).toHaveLength(1);
  const entries = await new OrderJournal(store, DOMAIN, scene.alice.account).entries();
  expect(entries.map(({ state }) => state)).toEqual(["settled", "settled", "settled", "settled"]);
});

describe("a list", () => {
  test("is paid with the fewest orders possible; each payment has its own memo and name", async () => {
    const signer = counting();
    const status = await payAll(lines(5), { signer, maxOutputs: 2 });
    expect(signer.asked).toBe(3);
    expect(states(status)).toEqual(["settled", "settled", "settled"]);
    expect(status.orders.map(({ sequence }) => sequence)).toEqual([0n, 1n, 2n]);
    expect(paid(5)).toEqual(exactly(5));
    const fifth = await readHistory(scene.context, person("person 4").account, 10, undefined);
    expect(fifth.received).toMatchObject([{ output: 0, payment: { amount: 5n, sequence: 2n, sender: scene.alice.account } }]);
    expect(decodeMemo(fifth.received[0]?.payment.memo ?? "0x")).toBe("for 4");
    expect(fifth.received[0]?.digest).toBe(status.orders[2]?.digest);
    const own = await readHistory(scene.context, scene.alice.account, 10, undefined);
    expect(own.sent.map(({ transfer }) => transfer.type)).toEqual(["payout", "payout", "payout"]);
    // As a list says before it is signed.
    expect(own.sent.map(({ transfer }) => transfer.memo).reverse()).toEqual(status.orders.map(({ memo }) => memo));
  });

  test("may pay one account several times, but not its sender", async () => {
    const [line] = lines(1);
    if (line === undefined) throw new Error("there is no line");
    const own = { ...line, recipient: scene.alice.account, amount: 40n };
    await expect(payAll([line, own])).rejects.toMatchObject({ details: { errors: [{ line: 2, fault: "own-account" }] } });
    const status = await payAll([line, { ...line, amount: 3n }, line]);
    expect(states(status)).toEqual(["settled"]);
    expect(paid(1)).toEqual([5n]);
    const { received } = await readHistory(scene.context, accountOf(line.recipient), 10, undefined);
    expect(received.map(({ output, payment }) => [output, payment.amount]).sort()).toEqual([[0, 1n], [1, 3n], [2, 1n]]);
  });

  test("reports its progress in order, and what must be signed", async () => {
    const told: ManyStep[] = [];
    const status = await payAll(lines(3), { maxOutputs: 1, onStep: (step) => told.push(step) });
    const lists = told.flatMap((step) => (step.type === "list" ? [states(step.status)] : []));
    expect(lists[0]).toEqual(["open", "open", "open"]);
    expect(lists).toContainEqual(["ordered", "open", "open"]);
    expect(lists.at(-1)).toEqual(states(status));
    expect(told.flatMap((step) => (step.type === "signing" ? [step.transfer.sequence] : []))).toEqual([0n, 1n, 2n]);
    // Nothing that was reached is taken back.
    const ranks = ["open", "ordered", "certified", "settled"];
    for (const page of [0, 1, 2]) {
      const ways = lists.map((list) => ranks.indexOf(list[page] ?? ""));
      expect(ways).toEqual([...ways].sort((a, b) => a - b));
    }
  });
});

describe("nothing is signed", () => {
  test("if the sum of all orders exceeds the balance, though the first is covered", async () => {
    const signer = counting();
    const asked = payAll([...lines(10), { ...lines(1)[0], amount: 50n } as PayListLine], { signer, maxOutputs: 10 });
    await expect(asked).rejects.toMatchObject({ code: "insufficient-funds", details: { needed: 105n, available: 100n } });
    const token = payAll([...lines(1), { ...lines(1)[0], asset: TOKEN } as PayListLine], { signer });
    await expect(token).rejects.toMatchObject({ code: "insufficient-funds", details: { asset: TOKEN } });
    expect(signer.asked).toBe(0);
    expect(await openLists(scene.context, scene.alice.account)).toEqual([]);
  });

  test("if one line is invalid", async () => {
    const signer = counting();
    const bad = lines(3).map((line, i) => (i === 1 ? line : { ...line, amount: 0n }));
    await expect(payAll(bad, { signer })).rejects.toMatchObject({
      code: "invalid-list",
      details: { errors: [{ line: 1, fault: "zero-amount" }, { line: 3, fault: "zero-amount" }] },
    });
    expect(signer.asked).toBe(0);
  });

  test("if the list cannot be stored", async () => {
    const signer = counting();
    const full: OrderStore = { ...memoryStore(), create: () => Promise.reject(new Error("the disk is full")) };
    await expect(payAll(lines(2), { signer, store: full })).rejects.toThrow("the disk is full");
    expect(signer.asked).toBe(0);
  });

  test("if a list of this name pays something else, or is another account's", async () => {
    const name = `0x${"4d".repeat(32)}` as const;
    await payAll(lines(2), { name });
    await expect(payAll(lines(3), { name })).rejects.toMatchObject({ details: { errors: [{ fault: "changed" }] } });
    const other = payMany(scene.context, scene.bob, lines(2), { name }, () => undefined);
    await expect(other).rejects.toMatchObject({ details: { errors: [{ fault: "begun-by-another-account" }] } });
    // Also where only its orders are known here.
    const elsewhere = payAll(lines(3), { name, store: memoryStore() });
    await expect(elsewhere).rejects.toMatchObject({ details: { errors: [{ fault: "changed" }] } });
    await expect(payAll(lines(2), { name: "0x12" })).rejects.toMatchObject({ code: "invalid-argument" });
    expect(paid(3)).toEqual([1n, 2n, 0n]);
  });
});

describe("a list is paid once", () => {
  test("however often it is given under its name; another name makes another list", async () => {
    const first = await payAll(lines(4), { maxOutputs: 3 });
    const signer = counting();
    // As it was begun, whatever is asked for now.
    const again = await payAll(lines(4), { maxOutputs: 1, signer });
    expect(again.orders).toEqual(first.orders);
    expect(signer.asked).toBe(0);
    expect(paid(4)).toEqual(exactly(4));
    await payAll(lines(4), { name: `0x${"11".repeat(32)}` });
    expect(paid(4)).toEqual([2n, 4n, 6n, 8n]);
  });

  test("also from another storage, which learns of it from the authorities", async () => {
    await payAll(lines(4), { maxOutputs: 2 });
    const status = await payAll(lines(4), { maxOutputs: 2, store: memoryStore() });
    expect(states(status)).toEqual(["settled", "settled"]);
    expect(paid(4)).toEqual(exactly(4));
  });

  test.each([1, 2, 3])("if the user leaves before signature %s", async (failsFrom) => {
    const list = lines(6);
    await expect(payAll(list, { signer: counting(failsFrom), maxOutputs: 2 })).rejects.toThrow("the person has gone");
    const [open] = await openLists(scene.context, scene.alice.account);
    expect(open && states(open)).toEqual([0, 1, 2].map((page) => (page < failsFrom - 1 ? "settled" : "open")));
    // Without the list itself, which stands in the storage.
    const { lines: kept, maxOutputs } = await linesOf(scene.context, open?.name ?? "0x");
    const signer = counting();
    const status = await payAll(kept, { signer, maxOutputs });
    expect(signer.asked).toBe(4 - failsFrom);
    expect(states(status)).toEqual(["settled", "settled", "settled"]);
    expect(paid(6)).toEqual(exactly(6));
    expect(await openLists(scene.context, scene.alice.account)).toEqual([]);
    for (const orders of ordersByNumber().values()) expect(orders.size).toBe(1);
  });

  /** A storage that ends with the program, before or after it has written for the `n`th time. */
  function crashing(store: OrderStore, at: number, isWritten: boolean): { store: OrderStore; writes: () => number } {
    let writes = 0;
    const create = async (key: string, value: string): Promise<boolean> => {
      writes += 1;
      if (writes > at) throw new Error("the program has ended");
      if (writes === at && !isWritten) throw new Error("the program has ended");
      const created = await store.create(key, value);
      if (writes === at) throw new Error("the program has ended");
      return created;
    };
    return { store: { ...store, create }, writes: () => writes };
  }

  test("wherever the program stops: before or after each write", { timeout: 600_000 }, async () => {
    const counted = crashing(memoryStore(), Number.POSITIVE_INFINITY, true);
    await payAll(lines(4), { maxOutputs: 2, store: counted.store });
    const total = counted.writes();
    // The list, two orders, two certificates, two settlements, the end.
    expect(total).toBeGreaterThanOrEqual(8);
    for (let at = 1; at <= total; at += 1) {
      for (const isWritten of [false, true]) {
        await scene.close();
        scene = await Scene.open();
        const disk = memoryStore();
        await payAll(lines(4), { maxOutputs: 2, store: crashing(disk, at, isWritten).store }).catch(() => undefined);
        const status = await payAll(lines(4), { maxOutputs: 2, store: disk });
        expect(states(status), `write ${at}, ${isWritten}`).toEqual(["settled", "settled"]);
        expect(paid(4), `write ${at}, ${isWritten}`).toEqual(exactly(4));
        for (const orders of ordersByNumber().values()) expect(orders.size, `write ${at}, ${isWritten}`).toBe(1);
      }
    }
  });

  test("if too few authorities answer after the order was sent", async () => {
    for (const number of [0, 1]) scene.node(number).lie = ({ path }) => (path === "/v1/orders" ? problem(503, "busy", {}, "later") : undefined);
    const context = { ...scene.context, timing: { ...scene.context.timing, deadlineMs: 300 } };
    await expect(payMany(context, scene.alice, lines(2), {}, () => undefined)).rejects.toMatchObject({ code: "no-quorum" });
    expect(states(await viewList(scene.context, scene.alice.account, lines(2), {}))).toEqual(["ordered"]);
    for (const node of scene.nodes) node.lie = () => undefined;
    const signer = counting();
    expect(states(await payAll(lines(2), { signer }))).toEqual(["settled"]);
    expect(signer.asked).toBe(0);
    expect(paid(2)).toEqual(exactly(2));
  });

  test("if another copy of the wallet takes a number: the page gets another one", async () => {
    let isTaken = false;
    const signer: Signer = {
      ...scene.alice,
      async authorize(domain, transfer) {
        if (!isTaken) {
          isTaken = true;
          await scene.pay(6n, { store: memoryStore() });
        }
        return scene.alice.authorize(domain, transfer);
      },
    };
    const status = await payAll(lines(4), { signer, maxOutputs: 2 });
    expect(status.orders.map(({ state, sequence }) => [state, sequence])).toEqual([["settled", 1n], ["settled", 2n]]);
    expect(paid(4)).toEqual(exactly(4));
  });

  test("if another copy pays a page of it before the user has signed", async () => {
    const list = lines(4);
    let isPaid = false;
    const signer: Signer = {
      ...scene.alice,
      async authorize(domain, transfer) {
        if (!isPaid) {
          isPaid = true;
          await payAll(list, { store: memoryStore(), maxOutputs: 2 });
        }
        return scene.alice.authorize(domain, transfer);
      },
    };
    const status = await payAll(list, { signer, maxOutputs: 2 });
    expect(states(status)).toEqual(["settled", "settled"]);
    expect(paid(4)).toEqual(exactly(4));
  });
});

test("a closed list is no longer open, and is paid if it is given again", async () => {
  await expect(payAll(lines(2), { signer: counting(1) })).rejects.toThrow("the person has gone");
  const [open] = await openLists(scene.context, scene.alice.account);
  expect(await openLists(scene.context, scene.bob.account)).toEqual([]);
  await closeList(scene.context, open?.name ?? "0x");
  expect(await openLists(scene.context, scene.alice.account)).toEqual([]);
  expect(states(await payAll(lines(2)))).toEqual(["settled"]);
  await expect(linesOf(scene.context, `0x${"00".repeat(32)}`)).rejects.toMatchObject({ code: "not-found" });
});

test("an order that another copy left unfinished is adopted as a page of the list", async () => {
  const left = await signed(scene.alice, pageOf(lines(2)));
  for (const node of scene.nodes.slice(0, 2)) node.account(scene.alice.account).pending = left;
  const signer = counting();
  expect(states(await payAll(lines(2), { signer }))).toEqual(["settled"]);
  expect(signer.asked).toBe(0);
  expect(paid(2)).toEqual(exactly(2));
});

test("aborting stops before the next signature, and loses nothing", async () => {
  const abort = new AbortController();
  const onStep = (step: ManyStep): void => {
    if (step.type === "list" && step.status.orders[0]?.state === "settled") abort.abort();
  };
  const asked = payAll(lines(40), { maxOutputs: 1, signal: abort.signal, onStep }).catch((error: unknown) => error);
  expect(await asked).toMatchObject({ code: "insufficient-funds" });
  const error = await payAll(lines(12), { maxOutputs: 1, signal: abort.signal, onStep }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "aborted" });
  expect(states(await payAll(lines(12), { maxOutputs: 1 }))).toEqual(lines(12).map(() => "settled"));
  expect(paid(12)).toEqual(exactly(12));
});

test("a watch emits each output of a payout once, by its name", async () => {
  const [line] = lines(1);
  if (line === undefined) throw new Error("there is no line");
  await payAll([line, { ...line, amount: 7n }]);
  const [certificate] = scene.node(0).account(scene.alice.account).sent;
  if (certificate === undefined) throw new Error("nothing was sent");
  for (const node of scene.nodes) {
    node.lie = ({ path }) => {
      if (!path.endsWith("/events")) return undefined;
      return (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (const output of [0, 1]) {
          const data = JSON.stringify(receivedJson(certificate, output, output));
          response.write(`event: received\nid: 0.${output + 1}.0\ndata: ${data}\n\n`);
        }
      };
    };
  }
  const found: [number | undefined, bigint][] = [];
  for await (const event of watchAccount(scene.context, accountOf(line.recipient), undefined, undefined)) {
    if (event.type === "received") found.push([event.output, event.payment.amount]);
    if (found.length === 2) break;
  }
  expect(found.sort()).toEqual([[0, 1n], [1, 7n]]);
});

test("a payout that few authorities have confirmed is sent to all, so that its outputs can be spent", async () => {
  const [line] = lines(1);
  const own = { ...line, recipient: scene.bob.account, amount: 30n } as PayListLine;
  await payAll([own, { ...own, amount: 20n }]);
  // Only one of them keeps what it was told.
  for (const node of scene.nodes.slice(1)) {
    Object.assign(node.account(scene.alice.account), { next: 0n, sent: [], balance: 100n });
    Object.assign(node.account(scene.bob.account), { balance: 0n, received: [] });
  }
  const carol = person("carol").account;
  const context = { ...scene.context, store: memoryStore() };
  const status = await payMany(context, scene.bob, [{ ...own, recipient: carol, amount: 50n }], {}, () => undefined);
  expect(states(status)).toEqual(["settled"]);
});

test("the storage holds the list, and one order for each page", async () => {
  await payAll(lines(3), { maxOutputs: 2 });
  const journal = new OrderJournal(scene.context.store as OrderStore, DOMAIN, scene.alice.account);
  expect((await journal.entries()).map(({ state }) => state)).toEqual(["settled", "settled"]);
  const keys = await scene.context.store?.keys(`${DOMAIN.chainId}/${DOMAIN.contract}/lists/`);
  expect(keys?.map((key) => key.split(".").at(-1))).toEqual(["begun", "closed"]);
});

test("a page whose number the contract voided gets another one, and each recipient is paid once", async () => {
  for (const node of scene.nodes) node.lie = ({ path }) => (path === "/v1/orders" ? problem(422, "invalid", {}, "never") : undefined);
  await expect(payAll(lines(3))).rejects.toMatchObject({ code: "no-quorum" });
  for (const node of scene.nodes) {
    node.lie = () => undefined;
    node.freeze(scene.alice.account);
    node.decide(scene.alice.account, undefined);
  }
  scene.chain.voided.add(0n);
  const status = await payAll(lines(3));
  expect(status.orders).toMatchObject([{ state: "settled", sequence: 1n }]);
  expect(paid(3)).toEqual(exactly(3));
});
