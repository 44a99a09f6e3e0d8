/** What authorities have pruned is read from their archives, proven, and readers do not notice. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { ETHER, memoryStore, NO_MEMO, ProblemError, transferDigest, type AccountEvent, type AccountId, type Certificate, type History, type OrderStore } from "../../src/index.js";
import { OrderJournal } from "../../src/storage/journal.js";
import { viewAccount } from "../../src/wallet/account.js";
import { hasCredited } from "../../src/wallet/deposits.js";
import { gatherEvidence } from "../../src/wallet/evidence.js";
import { readHistory } from "../../src/wallet/history.js";
import { payMany } from "../../src/wallet/many.js";
import { spreadReceived } from "../../src/wallet/receive.js";
import { send } from "../../src/wallet/send.js";
import { watchAccount } from "../../src/wallet/watch.js";
import { TestArchive, type Page } from "../support/archive.js";
import { DOMAIN, paymentOf, person, signed } from "../support/committee.js";
import { problem, type Answer, type TestNode } from "../support/node.js";
import { Scene } from "../support/scene.js";

let scene: Scene;
let archive: TestArchive;
let alice: AccountId;
let bob: AccountId;

/** Alice has paid Bob 1 to 5: two checkpoints, of which the second has the last two. */
beforeEach(async () => {
  scene = await Scene.open();
  [alice, bob] = [scene.alice.account, scene.bob.account];
  const keys = scene.nodes.slice(0, 3).map((node) => node.keys);
  for (let amount = 1n; amount <= 5n; amount += 1n) {
    const { transfer, authorization } = await signed(scene.alice, paymentOf(alice, bob, amount, amount - 1n));
    const votes = keys.map((key) => key.vote(0n, transfer));
    for (const node of scene.nodes) node.confirm({ order: { transfer, authorization }, epoch: 0n, votes });
  }
  archive = new TestArchive(keys);
  archive.add(certificates().slice(0, 3));
  archive.add(certificates().slice(3));
});

afterEach(() => scene.close());

function certificates(): Certificate[] {
  return scene.node(0).account(alice).sent.filter((certificate) => certificate !== undefined);
}

function prune(nodes: readonly TestNode[] = scene.nodes): void {
  for (const node of nodes) node.prune(archive, 2);
}

/** A node lies in its archive. */
function forge(node: TestNode, change: (page: Page) => void): void {
  node.lie = (request) => {
    if (!request.path.includes("/archived/")) return undefined;
    const answer = node.honest(request) as { status: number; body: Page };
    change(answer.body);
    return answer;
  };
}

/** Answers of all nodes about their archives. */
function everyArchiveSays(answer: Answer): void {
  for (const node of scene.nodes) node.lie = ({ path }) => (path.includes("/archived/") ? answer : undefined);
}

/** What somebody reads who has nothing of it in a storage, page by page. */
async function pagesOf(account: AccountId, limit: number): Promise<History[]> {
  const context = await scene.later();
  const pages: History[] = [];
  for (let cursor; pages.length < 20; ) {
    const page: History = await readHistory(context, account, limit, cursor);
    pages.push(page);
    if (page.older === undefined) return pages;
    cursor = JSON.parse(JSON.stringify(page.older));
  }
  throw new Error("the history has no end");
}

async function sentBy(account: AccountId, limit = 25): Promise<unknown[]> {
  return (await pagesOf(account, limit)).flatMap(({ sent }) => sent.map(({ transfer }) => (transfer as { amount: bigint }).amount));
}

async function receivedBy(account: AccountId, limit = 25): Promise<bigint[]> {
  return (await pagesOf(account, limit)).flatMap(({ received }) => received.map(({ payment }) => payment.amount));
}

describe("a history", () => {
  test("of sent transfers is the same, with checkpoints as proofs", async () => {
    const before = await sentBy(alice);
    prune();
    expect(await sentBy(alice)).toEqual(before);
    expect(await sentBy(alice, 2)).toEqual(before);
    const [{ sent, incomplete }] = (await pagesOf(alice, 25)) as [History];
    expect(sent.map(({ proof }) => (proof.type === "checkpoint" ? proof.checkpoint : undefined))).toEqual([2n, 2n, 1n, 1n, 1n]);
    expect(sent.map(({ digest }) => digest).reverse()).toEqual(certificates().map(({ order }) => transferDigest(DOMAIN, order.transfer)));
    expect(incomplete).toEqual([]);
  });

  test.each([25, 2, 1])("of received payments is the same, in pages of %s", async (limit) => {
    prune();
    expect((await receivedBy(bob, limit)).sort()).toEqual([1n, 2n, 3n, 4n, 5n]);
    expect((await receivedBy(bob, limit)).slice(0, 2).sort()).toEqual([4n, 5n]);
  });

  test("goes on from what is kept into the archive", async () => {
    prune();
    for (const amount of [6n, 7n]) await (await scene.pay(amount)).rest;
    expect(await sentBy(alice, 3)).toEqual([7n, 6n, 5n, 4n, 3n, 2n, 1n]);
    const [first] = await pagesOf(bob, 3);
    expect(first?.received.map(({ proof }) => proof.type)).toEqual(["certificate", "certificate", "checkpoint"]);
    for (const limit of [25, 3, 2]) expect((await receivedBy(bob, limit)).sort()).toEqual([1n, 2n, 3n, 4n, 5n, 6n, 7n]);
  });

  test("needs no archive while f + 1 authorities have pruned nothing", async () => {
    prune(scene.nodes.slice(0, 2));
    everyArchiveSays(problem(404, "not-archived"));
    const [{ received, sent, incomplete }] = (await pagesOf(bob, 25)) as [History];
    expect(received.map(({ proof }) => proof.type)).toEqual(Array(5).fill("certificate"));
    expect(sent).toEqual([]);
    expect(incomplete).toEqual([]);
    expect(await sentBy(alice)).toHaveLength(5);
  });

  test("reads a payout's outputs to the account, each once", async () => {
    const carol = person("carol").account;
    const outputs = [carol, bob, carol].map((recipient, i) => ({ recipient, amount: BigInt(10 + i), memo: `0x${"00".repeat(32)}` as const }));
    const payout = (sequence: bigint) => ({ type: "payout", sender: alice, asset: ETHER, outputs, sequence, memo: `0x${"11".repeat(32)}` }) as const;
    await (await send(scene.context, scene.alice, payout, () => undefined, undefined)).rest;
    archive.add(certificates().slice(5));
    for (const node of scene.nodes) node.prune(archive, 3);
    const [{ received }] = (await pagesOf(carol, 25)) as [History];
    expect(received).toMatchObject([{ output: 0, payment: { amount: 10n } }, { output: 2, payment: { amount: 12n } }]);
  });

  test("leaves out void numbers", async () => {
    archive.add([], [{ account: alice, sequence: 5n }]);
    for (const node of scene.nodes) {
      node.decide(alice, undefined);
      node.prune(archive, 3);
    }
    expect(await sentBy(alice)).toEqual([5n, 4n, 3n, 2n, 1n]);
    expect((await viewAccount(await scene.later(), alice, [])).nextSequence).toBe(6n);
    expect((await pagesOf(alice, 25))[0]?.incomplete).toEqual([]);
  });

  test("says which lists lack entries if no authority returns them", async () => {
    const view = await viewAccount(await scene.later(), alice, []);
    const bobs = await viewAccount(await scene.later(), bob, []);
    prune();
    everyArchiveSays(problem(404, "not-archived"));
    const context = await scene.later();
    expect(await readHistory(context, alice, 25, undefined, view)).toMatchObject({ sent: [], incomplete: ["sent"] });
    expect(await readHistory(context, bob, 25, undefined, bobs)).toMatchObject({ received: [], incomplete: ["received"] });
  });
});

test("a history of received payments is shown as far back as archives reach, and said to be incomplete", async () => {
  for (const amount of [6n, 7n]) {
    await (await scene.pay(amount)).rest;
    archive.add(certificates().slice(-1));
  }
  for (const node of scene.nodes) {
    node.prune(archive, 4);
    node.lie = ({ path, query }) => {
      const isFar = path.endsWith("/archived/received") && Number(query.get("cursor")?.split(".")[0]) < 3;
      return isFar ? problem(404, "not-archived") : undefined;
    };
  }
  const pages = await pagesOf(bob, 25);
  expect(pages.map(({ received }) => received.map(({ payment }) => payment.amount))).toEqual([[7n, 6n], []]);
  expect(pages.map(({ incomplete }) => incomplete)).toEqual([["received"], ["received"]]);
});

describe("authorities that lie in their archives", () => {
  test.each<[string, (page: Page) => void]>([
    ["a vote is forged", ({ votes }) => Object.assign(votes[0] ?? {}, { signature: `0x${"11".repeat(64)}` })],
    ["a header is altered", ({ headers }) => Object.assign(headers[0] ?? {}, { cut: `0x${"11".repeat(32)}` })],
    ["an entry is altered", ({ entries }) => entries.forEach((entry) => (entry.leaf = `${entry.leaf.slice(0, -2)}ff` as `0x${string}`))],
    ["an entry is left out", ({ entries }) => void entries.shift()],
    ["everything is left out", ({ entries, headers }) => void (entries.splice(0), headers.splice(0, headers.length - 1))],
  ])("%s: the next one is asked", async (_, change) => {
    prune();
    forge(scene.node(0), change);
    forge(scene.node(2), change);
    expect(await sentBy(alice)).toEqual([5n, 4n, 3n, 2n, 1n]);
    expect((await receivedBy(bob)).sort()).toEqual([1n, 2n, 3n, 4n, 5n]);
  });

  test("one that never answers is left, and delays no single number", async () => {
    prune();
    scene.node(0).lie = ({ path }) => (path.includes("/archived/") ? "hang" : undefined);
    const { network } = scene.patient();
    expect(await network.archive.number(alice, 2n)).toMatchObject({ sequence: 2n, checkpoint: 1n });
    expect(await network.archive.number(alice, 9n)).toBeUndefined();
    expect([...(await network.archive.sent(alice, 1n, 4n)).keys()]).toEqual([1n, 2n, 3n]);
  });

  test("one that sends few entries slowly stops no list, and is asked first no longer", async () => {
    prune();
    let asked = 0;
    scene.node(0).lie = (request) => {
      if (!request.path.includes("/archived/")) return undefined;
      asked += 1;
      request.query.set("limit", "1");
      const { body } = scene.node(0).honest(request) as { body: object };
      return (response) => void setTimeout(() => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body)), 4_500);
    };
    const { network } = scene.patient();
    expect([...(await network.archive.sent(alice, 0n, 5n)).keys()]).toEqual([0n, 1n, 2n, 3n, 4n]);
    expect(asked).toBe(1);
    expect((await network.archive.sent(alice, 0n, 5n)).size).toBe(5);
    expect(asked).toBe(1);
  });

  test("pages of few entries are continued", async () => {
    archive.entriesMax = 2;
    prune();
    expect(await sentBy(alice)).toEqual([5n, 4n, 3n, 2n, 1n]);
    expect((await receivedBy(bob)).sort()).toEqual([1n, 2n, 3n, 4n, 5n]);
  });

  test("votes of a committee that has ended, or whose keys were out, count for nothing", async () => {
    prune();
    scene.rotate();
    const { network } = await scene.later();
    expect(await network.archive.number(alice, 2n)).toMatchObject({ sequence: 2n });
    scene.chain.compromised.add(0n);
    expect(await (await scene.later()).network.archive.number(alice, 2n)).toBeUndefined();
    scene.chain.compromised.clear();
    scene.rotate();
    expect(await (await scene.later()).network.archive.number(alice, 2n)).toBeUndefined();
  });
});

describe("an account", () => {
  test("has the next number that a checkpoint proves, and no higher one", async () => {
    prune();
    scene.node(1).lie = ({ path }) => {
      if (path.split("/").length !== 4 || !path.startsWith("/v1/accounts/")) return undefined;
      const honest = scene.node(1).honest({ method: "GET", path, query: new URLSearchParams(), body: "" }) as { body: object };
      return { status: 200, body: { ...honest.body, nextSequence: "9" } };
    };
    expect((await viewAccount(await scene.later(), alice, [])).nextSequence).toBe(5n);
  });

  test("pays again from a storage that knows nothing, and stores what the archive has", async () => {
    prune();
    const store = memoryStore();
    const receipt = await scene.pay(6n, { store });
    expect(receipt.certificate.order.transfer.sequence).toBe(5n);
    await receipt.rest;
    const entries = await new OrderJournal(store, scene.context.network.domain, alice).entries();
    expect(entries.map(({ sequence, state }) => `${sequence} ${state}`)).toEqual([0, 1, 2, 3, 4, 5].map((number) => `${number} settled`));
    expect(await new OrderJournal(store, scene.context.network.domain, alice).unfinished()).toEqual([]);
  });
});

describe("a list that another storage has paid, with pruned numbers", () => {
  const lines = [{ recipient: person("carol").account, asset: ETHER, amount: 10n, memo: NO_MEMO }];

  /** The page has number 5, and a payment number 6. */
  beforeEach(async () => {
    await payList(memoryStore());
    await (await scene.pay(6n, { store: memoryStore() })).rest;
    archive.add(certificates().slice(5));
    for (const node of scene.nodes) node.prune(archive, 3);
  });

  function payList(store: OrderStore) {
    return payMany({ ...scene.context, store }, scene.alice, lines, {}, () => undefined);
  }

  /** Archives have only the numbers that `has` accepts. */
  function everyArchiveHas(has: (from: number, isWhole: boolean) => boolean): void {
    for (const node of scene.nodes) {
      node.lie = ({ path, query }) => {
        if (!path.endsWith("/archived/sent")) return undefined;
        return has(Number(query.get("from")), query.get("limit") !== "1") ? undefined : problem(404, "not-archived");
      };
    }
  }

  test("is not paid again while one of them is not proven, however often it is tried", async () => {
    everyArchiveHas((from) => from === 6);
    const store = memoryStore();
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await expect(payList(store)).rejects.toMatchObject({ code: "too-few-answers", details: { missing: [5n, 4n, 3n, 2n, 1n, 0n] } });
    }
    expect(scene.node(0).account(alice).next).toBe(7n);
    everyArchiveHas(() => true);
    expect(await payList(store)).toMatchObject({ orders: [{ state: "settled", sequence: 5n }] });
    expect(scene.node(0).account(alice).next).toBe(7n);
  });

  test("is found under a number that is older than the newest 256", async () => {
    const other = memoryStore();
    for (const node of scene.nodes) node.account(alice).balance = 300n;
    for (let payments = 0; payments < 257; payments += 1) await (await scene.pay(1n, { store: other })).rest;
    expect(await payList(memoryStore())).toMatchObject({ orders: [{ state: "settled", sequence: 5n }] });
    expect(scene.node(0).account(alice).next).toBe(264n);
  });

  test("is found if only single numbers can be read", async () => {
    everyArchiveHas((_, isWhole) => !isWhole);
    expect(await payList(memoryStore())).toMatchObject({ orders: [{ state: "settled", sequence: 5n }] });
    expect(scene.node(0).account(alice).next).toBe(7n);
  });
});

describe("an order that is not finished in this storage, with a pruned number", () => {
  /** A storage with an order of this amount under number 5, which nobody has finished. */
  async function ordered(amount: bigint): Promise<OrderStore> {
    const store = memoryStore();
    for (const certificate of certificates()) await journal(store).certify(await verified(certificate));
    for (const { sequence } of await journal(store).entries()) await journal(store).settle(sequence);
    await journal(store).create(await signed(scene.alice, paymentOf(alice, bob, amount, 5n)));
    return store;
  }

  function verified(certificate: Certificate) {
    return scene.context.network.verify(certificate, alice, certificate.order.transfer.sequence);
  }

  function journal(store: OrderStore): OrderJournal {
    return new OrderJournal(store, scene.context.network.domain, alice);
  }

  /** Another copy of the wallet pays this amount under number 5, which all authorities prune. */
  async function paidElsewhere(amount: bigint): Promise<void> {
    await (await scene.pay(amount)).rest;
    archive.add(certificates().slice(5));
    for (const node of scene.nodes) node.prune(archive, 3);
  }

  test("is not paid again if it was executed, and the error says so", async () => {
    const store = await ordered(6n);
    await paidElsewhere(6n);
    await expect(scene.pay(6n, { store })).rejects.toMatchObject({ code: "executed-before", details: { executed: { proof: { checkpoint: 3n } } } });
    expect((await journal(store).entry(5n))?.state).toBe("settled");
    expect(await journal(store).unfinished()).toEqual([]);
    expect(scene.node(0).account(alice).next).toBe(6n);
  });

  test("is superseded if another one was executed, and the payment gets the next number", async () => {
    const store = await ordered(7n);
    await paidElsewhere(6n);
    const receipt = await scene.pay(7n, { store });
    expect(receipt.certificate.order.transfer).toMatchObject({ sequence: 6n, amount: 7n });
    expect((await journal(store).entry(5n))?.state).toBe("superseded");
  });

  test("is void if a checkpoint says so", async () => {
    const store = await ordered(7n);
    archive.add([], [{ account: alice, sequence: 5n }]);
    for (const node of scene.nodes) {
      node.decide(alice, undefined);
      node.prune(archive, 3);
    }
    expect(await scene.resume(store)).toMatchObject([{ type: "voided", order: { sequence: 5n } }]);
    expect((await journal(store).entry(5n))?.state).toBe("voided");
  });

  test("of another copy is told as archived", async () => {
    const store = await ordered(7n);
    await paidElsewhere(6n);
    expect(await scene.resume(store)).toMatchObject([{ type: "archived", order: { amount: 7n }, executed: { transfer: { amount: 6n } } }]);
  });
});

test("received payments that others have pruned displace no new ones, and their lister is not doubted", async () => {
  prune(scene.nodes.slice(0, 3));
  // A new payment that only the lister of the old ones has.
  const { certificate, rest } = await scene.pay(6n);
  await rest;
  for (const node of scene.nodes.slice(0, 3)) {
    node.account(bob).received.pop();
    Object.assign(node.account(alice), { next: 5n, sent: node.account(alice).sent.slice(0, 5) });
  }
  const { context } = scene;
  await spreadReceived({ ...context, stored: async () => undefined, report: () => undefined, signal: undefined }, bob);
  for (const node of scene.nodes) expect(node.account(bob).received.at(-1)?.certificate.order).toEqual(certificate.order);
});

test("a deposit that is pruned is credited, and one that is not applied is not", async () => {
  const { network } = scene.context;
  const [authority] = network.authorities;
  if (authority === undefined) throw new Error("there is nobody to ask");
  scene.node(0).lie = ({ path, query }) => {
    if (path.endsWith("/deposits")) return query.get("start") === "0" ? problem(410, "pruned", { first: "2", checkpoint: "2" }) : undefined;
    if (path === "/v1/deposits/7") return problem(410, "pruned", { first: "8", checkpoint: "2" });
    if (path.startsWith("/v1/deposits/")) return problem(404, "not-found");
    if (path.split("/").length !== 4 || !path.startsWith("/v1/accounts/")) return undefined;
    const holdings: unknown[] = [];
    return { status: 200, body: { nextSequence: "0", received: "0", deposits: "2", holdings, truncated: false } };
  };
  const funded = { index: 7n, recipient: bob, asset: ETHER, amount: 5n, authorities: 0 };
  const signal = new AbortController().signal;
  expect(await hasCredited(authority, funded, signal)).toBe(true);
  await expect(hasCredited(authority, { ...funded, index: 9n }, signal)).rejects.toMatchObject({ problem: "not-found" });
});

test("a pruned transfer is found by account and number, with the checkpoint that proves it", async () => {
  prune();
  const context = await scene.later();
  const found = await gatherEvidence(context, { account: alice, sequence: 3n });
  expect(found).toMatchObject({ certificate: undefined, archived: { checkpoint: 2n, executed: { transfer: { amount: 4n } } } });
  expect(found.answers.map(({ error }) => (error instanceof ProblemError ? error.problem : undefined))).toEqual(Array(4).fill("pruned"));
  expect((await gatherEvidence(context, { account: alice, sequence: 9n })).archived).toBeUndefined();
});

/** A node's streams: pruned up to what it keeps, silent behind. */
function streamFrom(node: TestNode, account: AccountId, checkpoint = 2): string[] {
  const cursors: string[] = [];
  node.lie = ({ path, query }) => {
    if (!path.endsWith("/events")) return undefined;
    const cursor = query.get("cursor") ?? "";
    cursors.push(cursor);
    const [sent = 0, received = 0] = cursor.split(".").map(Number);
    const { kept } = node.account(account);
    const first = sent < kept.sent ? kept.sent : received < kept.received ? kept.received : undefined;
    if (first !== undefined) return problem(410, "pruned", { first: String(first), checkpoint: String(checkpoint) }, "never");
    return (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(": hello\n\n");
    };
  };
  return cursors;
}

function amountsOf(events: readonly AccountEvent[]): unknown[] {
  return events.map((event) => (event.type === "received" ? event.payment.amount : undefined)).sort();
}

async function take(account: AccountId, position: string, count: number): Promise<{ events: AccountEvent[]; cursor: object }> {
  const from = Object.fromEntries(scene.nodes.map(({ url }) => [url, position]));
  const watch = watchAccount(scene.context, account, from, undefined);
  const events: AccountEvent[] = [];
  for await (const event of watch) {
    events.push(event);
    if (events.length === count) break;
  }
  return { events, cursor: watch.cursor() };
}

describe("a watch from before pruned events", () => {
  test("reports each received payment once, and goes on behind them", async () => {
    prune();
    const cursors = scene.nodes.map((node) => streamFrom(node, bob));
    const from = Object.fromEntries(scene.nodes.map(({ url }) => [url, "0.0.0"]));
    const events: AccountEvent[] = [];
    const end = new AbortController();
    // The streams are opened again at the position behind them, while the watch waits for more.
    void expect.poll(() => cursors.every((asked) => asked.includes("0.5.0")), { timeout: 120_000 }).toBe(true).finally(() => end.abort());
    for await (const event of watchAccount(scene.context, bob, from, end.signal)) events.push(event);
    expect(amountsOf(events)).toEqual([1n, 2n, 3n, 4n, 5n]);
    expect(events[0]).toMatchObject({ proof: { type: "checkpoint", checkpoint: 1n } });
    expect(cursors.map((asked) => asked.slice(0, 2))).toEqual(Array(4).fill(["0.0.0", "0.5.0"]));
  });

  test("reports the account's own transfers, from its position on", async () => {
    prune();
    for (const node of scene.nodes) streamFrom(node, alice);
    const { events } = await take(alice, "3.0.0", 2);
    expect(events).toMatchObject([{ type: "confirmed", transfer: { sequence: 3n } }, { type: "confirmed", transfer: { sequence: 4n } }]);
  });

  test("reads one checkpoint more than have the missing payments, and no others", async () => {
    await (await scene.pay(6n)).rest;
    archive.add(certificates().slice(5));
    for (const node of scene.nodes) node.prune(archive, 3);
    for (const node of scene.nodes) streamFrom(node, bob, 3);
    const { events } = await take(bob, "0.5.0", 3);
    expect(amountsOf(events)).toEqual([4n, 5n, 6n]);
  });

  test("misses no payment that came after one of a later checkpoint", async () => {
    for (const node of scene.nodes) {
      const { received } = node.account(bob);
      received.splice(2, 2, ...received.slice(2, 4).reverse());
    }
    prune();
    for (const node of scene.nodes) streamFrom(node, bob);
    // 1, 2 and 4 were read; 3 and 5 were not.
    const { events } = await take(bob, "0.3.0", 5);
    expect(amountsOf(events)).toEqual([1n, 2n, 3n, 4n, 5n]);
  });

  test("goes on behind payments that are counted and in no archive, if f + 1 archives say so", async () => {
    prune();
    for (const node of scene.nodes) node.account(bob).kept.received = 6;
    const cursors = scene.nodes.map((node) => streamFrom(node, bob));
    const { events } = await take(bob, "0.0.0", 5);
    expect(amountsOf(events)).toEqual([1n, 2n, 3n, 4n, 5n]);
    // A single archive may leave payments out.
    for (const node of scene.nodes.slice(1)) {
      const { lie } = node;
      node.lie = (request) => (request.path.includes("/archived/") ? problem(404, "not-archived") : lie(request));
    }
    for (const asked of cursors) asked.splice(0);
    const end = new AbortController();
    void expect.poll(() => cursors.every((asked) => asked.length > 2), { timeout: 120_000 }).toBe(true).finally(() => end.abort());
    const from = Object.fromEntries(scene.nodes.map(({ url }) => [url, "0.0.0"]));
    for await (const event of watchAccount(scene.context, bob, from, end.signal)) expect(event).toBeUndefined();
    // The first may be one of the watch before, which was on its way when that ended.
    expect(cursors.flatMap((asked) => asked.slice(1)).every((cursor) => cursor === "0.0.0")).toBe(true);
  });

  test("its cursor stays before what the caller has not taken", async () => {
    prune();
    for (const node of scene.nodes) streamFrom(node, bob);
    const { cursor } = await take(bob, "0.0.0", 3);
    expect(new Set(Object.values(cursor))).toEqual(new Set(["0.0.0"]));
  });

  test("believes no single authority that old payments are new", async () => {
    for (const node of scene.nodes) streamFrom(node, bob);
    prune(scene.nodes.slice(3));
    const end = new AbortController();
    const from = Object.fromEntries(scene.nodes.map(({ url }, i) => [url, i === 3 ? "0.0.0" : "0.5.0"]));
    setTimeout(() => end.abort(), 1_500);
    for await (const event of watchAccount(scene.context, bob, from, end.signal)) expect(event).toBeUndefined();
  });

  test("waits until an archive has them", async () => {
    prune();
    for (const node of scene.nodes) streamFrom(node, bob);
    const lies = scene.nodes.map(({ lie }) => lie);
    let asked = 0;
    scene.nodes.forEach((node, i) => {
      node.lie = (request) => {
        if (!request.path.includes("/archived/")) return lies[i]?.(request);
        asked += 1;
        return asked <= 8 ? problem(404, "not-archived") : undefined;
      };
    });
    const { events } = await take(bob, "0.0.0", 5);
    expect(events).toHaveLength(5);
  });
});
