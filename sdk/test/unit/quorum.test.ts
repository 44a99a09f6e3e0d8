/** Paying while authorities are silent, slow, behind, or lie. `conversations.test.ts` has what a client concludes. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { FastPayError, formatAccount, memoryStore, parseCertificate, type TransferStep } from "../../src/index.js";
import { problem, receivedJson, type Answer, type Request } from "../support/node.js";
import { Scene } from "../support/scene.js";

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

const toOrders =
  (answer: Answer | (() => Answer | undefined)) =>
  ({ path }: Request): Answer | undefined =>
    path !== "/v1/orders"
      ? undefined
      : typeof answer === "function" && answer.length === 0
        ? (answer as () => Answer)()
        : (answer as Answer);

describe("one authority of four", () => {
  test("is silent: the others are enough", async () => {
    scene.node(0).lie = () => "hang";
    const receipt = await scene.pay(30n);
    expect(receipt.certificate.votes).toHaveLength(3);
    expect(scene.node(1).account(scene.bob.account).balance).toBe(30n);
  });

  test("is unreachable", async () => {
    await scene.node(0).stop();
    expect((await scene.pay(30n)).certificate.votes).toHaveLength(3);
  });

  test("answers with an endless body", async () => {
    scene.node(0).lie = () => (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const write = (): void => {
        if (!response.destroyed) response.write(" ".repeat(65_536), () => setImmediate(write));
      };
      write();
    };
    expect((await scene.pay(30n)).certificate.votes).toHaveLength(3);
  });

  test("claims a next number without proof", async () => {
    scene.node(0).lie = ({ path, method }) =>
      method === "GET" && path.split("/").length === 4
        ? {
            status: 200,
            body: { nextSequence: "7", pending: null, holdings: [], received: "0", deposits: "0", truncated: false },
          }
        : undefined;
    expect((await scene.pay(30n)).certificate.order.transfer.sequence).toBe(0n);
  });

  test("asks for the same certificate again and again", async () => {
    await scene.pay(1n);
    scene.node(0).lie = toOrders(problem(409, "sequence-too-high", { expectedSequence: "0" }));
    expect((await scene.pay(30n)).certificate.order.transfer.sequence).toBe(1n);
  });

  test("invents or hides money, and is not believed", async () => {
    const balance =
      (value: string) =>
      ({ path, method }: Request) =>
        method === "GET" && path.split("/").length === 4
          ? {
              status: 200,
              body: {
                nextSequence: "0",
                pending: null,
                holdings: [{ asset: `0x${"0".repeat(40)}`, balance: value }],
                received: "0",
                deposits: "0",
                truncated: false,
              },
            }
          : undefined;
    scene.node(0).lie = balance("1000000");
    await expect(scene.pay(101n)).rejects.toMatchObject({ code: "insufficient-funds", details: { available: 100n } });
    expect(scene.nodes.flatMap(({ orders }) => orders)).toEqual([]);
    scene.node(0).lie = balance("0");
    await scene.pay(100n);
  });

  test.each([
    ["disk-low", 503, "disk"],
    ["account-budget", 429, "account"],
    ["address-budget", 429, "address"],
  ] as const)("has no room (%s): nobody else is held up, and where more have none it is said in plain words", async (code, status, whose) => {
    const full = problem(status, code, { retryAfterMs: 120_000 }, "later");
    scene.node(0).lie = toOrders(full);
    await scene.pay(30n);
    scene.node(1).lie = toOrders(full);
    const error = await scene.pay(31n, { timing: { deadlineMs: 300 } }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "no-room", details: { whose, retryAfterMs: 120_000 } });
    expect((error as FastPayError).message).toMatch(/^at the authorities: /);
    expect((error as FastPayError).action).toMatch(/wait 2 min.*resume/);
    expect(scene.steps).toContainEqual(expect.objectContaining({ type: "waiting", failure: { kind: "no-room", whose, retryAfterMs: 120_000 } }));
    for (const node of scene.nodes) node.lie = () => undefined;
    expect(await scene.resume()).toMatchObject([{ type: "settled", receipt: { certificate: { order: { transfer: { amount: 31n } } } } }]);
  });

  test("is busy, and gets the same bytes again after the delay that it asked for", async () => {
    let refusals = 3;
    await scene.node(3).stop();
    scene.node(0).lie = toOrders(() =>
      refusals-- > 0 ? problem(503, "busy", { retryAfterMs: 10 }, "later") : (undefined as unknown as Answer),
    );
    await scene.pay(30n);
    expect(scene.node(0).orders).toHaveLength(4);
    expect(new Set(scene.nodes.flatMap(({ orders }) => orders)).size).toBe(1);
  });
});

test("an authority that lagged is brought up to date and votes", async () => {
  scene.node(0).lie = () => "hang";
  const [first, second] = [await scene.pay(1n), await scene.pay(2n)];
  await Promise.all([first.rest, second.rest]);
  expect(scene.node(0).account(scene.alice.account).next).toBe(0n);
  scene.node(0).lie = () => undefined;
  await scene.node(3).stop();
  await scene.pay(3n);
  expect(scene.node(0).account(scene.alice.account).next).toBe(3n);
  expect(scene.node(0).account(scene.bob.account).balance).toBe(6n);
});

test("a payment that few authorities know is sent to all, and can be spent", async () => {
  const { certificate, rest } = await scene.pay(30n);
  await rest;
  // As if it had been confirmed at one authority alone.
  for (const node of scene.nodes.slice(1)) {
    const [alice, bob] = [node.account(scene.alice.account), node.account(scene.bob.account)];
    Object.assign(alice, { next: 0n, sent: [], balance: 100n });
    Object.assign(bob, { received: [], balance: 0n });
  }
  const back = await scene.pay(30n, { signer: scene.bob });
  expect(back.certificate.order.transfer).toMatchObject({ sender: scene.bob.account, amount: 30n });
  await back.rest;
  for (const node of scene.nodes) expect(node.account(scene.alice.account).sent[0]?.order).toEqual(certificate.order);
});

test("one authority that lists garbage or duplicates does not prevent a payment from reaching all", async () => {
  const { certificate, rest } = await scene.pay(30n);
  await rest;
  for (const node of scene.nodes.slice(1)) {
    const [alice, bob] = [node.account(scene.alice.account), node.account(scene.bob.account)];
    Object.assign(alice, { next: 0n, sent: [], balance: 100n });
    Object.assign(bob, { received: [], balance: 0n });
  }
  const real = receivedJson(certificate, 0) as { number: string; payment: { sequence: string } };
  const invented = (i: number) => ({ ...real, payment: { ...real.payment, sequence: String(100 + i) } });
  const entries = [...Array.from({ length: 60 }, (_, i) => invented(i)), real, real, real];
  const total = String(entries.length);
  const bob = `/v1/accounts/${formatAccount(scene.bob.account)}`;
  scene.node(1).lie = ({ path }) => {
    if (path === `${bob}/received`) return { status: 200, body: { total, payments: entries } };
    if (path !== bob) return undefined;
    const state = { nextSequence: "0", pending: null, holdings: [], received: total, deposits: "0", truncated: false };
    return { status: 200, body: state };
  };
  const back = await scene.pay(30n, { signer: scene.bob });
  expect(back.certificate.order.transfer).toMatchObject({ sender: scene.bob.account, amount: 30n });
  await back.rest;
  for (const node of scene.nodes) expect(node.account(scene.alice.account).sent[0]?.order).toEqual(certificate.order);
});

test("one authority that never shows its list does not prevent a payment from reaching another", async () => {
  await (await scene.pay(30n)).rest;
  // As if two authorities had not heard of it. One of them shows no list, either.
  for (const node of scene.nodes.slice(0, 2)) {
    Object.assign(node.account(scene.alice.account), { next: 0n, sent: [], balance: 100n });
    Object.assign(node.account(scene.bob.account), { received: [], balance: 0n });
  }
  const bob = `/v1/accounts/${formatAccount(scene.bob.account)}`;
  scene.node(1).lie = ({ path }) => (path.startsWith(bob) ? "hang" : undefined);
  // Less than one request may take.
  const timing = { deadlineMs: 20_000, fundsPatienceMs: 10_000 };
  const { certificate } = await scene.pay(30n, { signer: scene.bob, timing });
  expect(certificate.votes.map(({ authority }) => authority)).toContain(scene.node(0).keys.votingKey);
});

test("two silent authorities: no quorum, and resuming finishes the same order", async () => {
  for (const node of scene.nodes.slice(2)) node.lie = ({ path }) => (path === "/v1/orders" ? "hang" : undefined);
  await expect(scene.pay(30n, { timing: { deadlineMs: 1_500 } })).rejects.toMatchObject({
    code: "no-quorum",
    details: { what: "votes", quorum: 3, timedOut: true },
  });
  for (const node of scene.nodes) node.lie = () => undefined;
  const [resumed] = await scene.resume();
  expect(resumed).toMatchObject({ type: "settled", receipt: { resumed: true } });
  expect(new Set(scene.nodes.flatMap(({ orders }) => orders)).size).toBe(1);
});

test("the committee changes its keys while an order waits: the new keys certify it", async () => {
  const committee = scene.rotate(false);
  setTimeout(() => scene.chain.epochs.push(committee), 200);
  const { certificate } = await scene.pay(30n);
  expect(certificate.epoch).toBe(1n);
  expect(new Set(scene.nodes.flatMap(({ orders }) => orders)).size).toBe(1);
});

test("those who answered before a rotation are asked again after it", async () => {
  const before = scene.nodes.map(({ keys }) => keys);
  scene.rotate();
  const after = scene.nodes.map(({ keys }) => keys);
  // Two vote in the epoch before, one in the new one, and one is silent: all that a quorum can consist of.
  for (const number of [0, 1]) Object.assign(scene.node(number), { keys: before[number], epoch: 0n });
  scene.node(3).lie = ({ path }) => (path === "/v1/orders" ? "hang" : undefined);
  setTimeout(() => {
    for (const number of [0, 1]) Object.assign(scene.node(number), { keys: after[number], epoch: 1n });
  }, 200);
  // It waits for an answer far longer than the test.
  const { certificate } = await scene.pay(30n, { timing: { deadlineMs: 3_600_000 } });
  expect(certificate.epoch).toBe(1n);
});

test("confirmations of two epochs are not added up: a quorum of one committee settles a transfer", async () => {
  // Two confirm, then the committee changes its keys, and the other two confirm after that.
  const inEpoch = scene.nodes.map((_, number) => (number < 2 ? 0n : 1n));
  for (const [number, node] of scene.nodes.entries()) {
    node.lie = ({ path, body }) => {
      if (path !== "/v1/certificates") return undefined;
      node.confirm(parseCertificate(body));
      return { status: 200, body: { nextSequence: "1", epoch: String(inEpoch[number]) } };
    };
  }
  await expect(scene.pay(30n, { timing: { deadlineMs: 10_000 } })).rejects.toMatchObject({ code: "new-epoch" });
  expect(scene.steps.map(({ type }) => type)).not.toContain("settled");
  scene.rotate();
  inEpoch.fill(1n);
  expect(await scene.resume()).toMatchObject([{ type: "settled" }]);
});

test("an aborted payment loses nothing", async () => {
  for (const node of scene.nodes) node.lie = ({ path }) => (path === "/v1/orders" ? "hang" : undefined);
  const controller = new AbortController();
  const onStep = ({ type }: TransferStep): void => {
    if (type === "ordered") setTimeout(() => controller.abort(), 10);
  };
  const paying = scene.pay(30n, { signal: controller.signal, onStep });
  await expect(paying).rejects.toMatchObject({ code: "aborted" });
  for (const node of scene.nodes) node.lie = () => undefined;
  const receipt = await scene.pay(30n);
  expect(receipt.resumed).toBe(true);
  await receipt.rest;
  expect(scene.node(0).account(scene.bob.account).balance).toBe(30n);
});

describe("a full storage", () => {
  /** Takes what `takes` says, until the disk has room again. */
  const full = (takes: (key: string) => boolean) => {
    const store = memoryStore();
    const disk = { isFull: true };
    const create = async (key: string, value: string): Promise<boolean> => {
      if (disk.isFull && !takes(key)) throw new FastPayError("storage", "the disk is full", "make room");
      return store.create(key, value);
    };
    return { disk, store: { ...store, create } };
  };

  /** At an authority that may be the one beyond the quorum. */
  const hasArrived = (balance: bigint) =>
    vi.waitFor(() => expect(scene.node(1).account(scene.bob.account).balance).toBe(balance), 30_000);

  test("refuses an order: nothing is sent", async () => {
    const { store, disk } = full(() => false);
    await expect(scene.pay(30n, { store })).rejects.toMatchObject({
      code: "storage",
      action: expect.stringContaining("nothing was sent"),
    });
    expect(scene.nodes.flatMap(({ orders }) => orders)).toEqual([]);
    disk.isFull = false;
    expect((await scene.pay(30n, { store })).certificate.order.transfer.sequence).toBe(0n);
  });

  test.each(["certificate", "settled"])("refuses an order's outcome (%s): the money arrives, and the error is reported", async (kind) => {
    const { store, disk } = full((key) => !key.endsWith(kind));
    await expect(scene.pay(30n, { store })).rejects.toMatchObject({
      code: "storage",
      message: expect.stringContaining("the transfer is settled"),
    });
    await hasArrived(30n);
    disk.isFull = false;
    expect(await scene.resume(store)).toMatchObject([{ type: "settled" }]);
    expect((await scene.pay(5n, { store })).certificate.order.transfer.sequence).toBe(1n);
    await hasArrived(35n);
  });
});
