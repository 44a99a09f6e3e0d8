/** Answers count by member: one member's answers at two addresses count once. */

import type { ServerResponse } from "node:http";

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { ETHER, formatAccount, memoryStore, type VerifiedCertificate } from "../../src/index.js";
import { AuthorityClient } from "../../src/authority.js";
import type { Contract } from "../../src/chain/contract.js";
import { memberAnswers, Network } from "../../src/network.js";
import { settle } from "../../src/quorum/settle.js";
import { UnlockBallot } from "../../src/quorum/unlock.js";
import { viewAccount } from "../../src/wallet/account.js";
import type { Context } from "../../src/wallet/context.js";
import { countCredits } from "../../src/wallet/deposits.js";
import { findDeposit } from "../../src/wallet/evidence.js";
import { readHistory } from "../../src/wallet/history.js";
import { send } from "../../src/wallet/send.js";
import { isVoid } from "../../src/wallet/voids.js";
import { watchAccount } from "../../src/wallet/watch.js";
import { sleep } from "../../src/waiting.js";
import { DOMAIN, paymentOf, signed } from "../support/committee.js";
import { problem, TestNode, type Request } from "../support/node.js";
import { Scene } from "../support/scene.js";

let scene: Scene;
/** The second address of the first member. */
let twin: TestNode;

beforeEach(async () => {
  scene = await Scene.open();
  twin = await TestNode.start(scene.node(0).keys);
  twin.account(scene.alice.account).balance = 100n;
});

afterEach(async () => {
  await twin.stop();
  await scene.close();
});

/** The first member with two addresses, and these others. */
function doubled(isFirstNamed: boolean, others = [scene.node(1), scene.node(2)]): Context {
  const { network, timing } = scene.context;
  const client = (node: TestNode, name?: `0x${string}`) => new AuthorityClient(node.url, name, timing.requestMs);
  const first = client(scene.node(0), isFirstNamed ? scene.node(0).keys.votingKey : undefined);
  const clients = [first, client(twin), ...others.map((node) => client(node))];
  return { ...scene.context, network: new Network(DOMAIN, network.committees, clients, timing) };
}

/** Both addresses of the first member answer so. */
function lie(answer: (request: Request) => ReturnType<TestNode["lie"]>): void {
  for (const node of [scene.node(0), twin]) node.lie = answer;
}

const operationOf = (context: Context) => ({
  ...context,
  stored: async () => undefined,
  report: () => undefined,
  signal: undefined,
});

describe.each([
  ["named at one of them", true],
  ["named at neither", false],
])("a member with two addresses, %s,", (_, isFirstNamed) => {
  let context: Context;
  let certificate: VerifiedCertificate;

  beforeEach(async () => {
    context = doubled(isFirstNamed);
    const receipt = await scene.pay(3n);
    await receipt.rest;
    certificate = receipt.certificate;
  });

  const refuseAtThird = (): void => {
    scene.node(2).lie = ({ path }) => (path === "/v1/certificates" ? problem(400, "invalid", {}, "never") : undefined);
  };

  test("confirms a certificate once", async () => {
    refuseAtThird();
    await expect(settle(operationOf(context), certificate)).rejects.toMatchObject({
      code: "no-quorum",
      details: { count: 2, quorum: 3 },
    });
    scene.node(2).lie = () => undefined;
    await (await settle(operationOf(context), certificate)).rest;
  });

  test("alone cannot make a certificate or void a number", async () => {
    refuseAtThird();
    lie(({ path }) => (path === "/v1/certificates" ? problem(409, "voided", { expectedSequence: "2" }, "never") : undefined));
    await expect(settle(operationOf(context), certificate)).rejects.toMatchObject({ code: "no-quorum" });
    // Nor does it have stepped over a number for f + 1 members.
    const beyond = { nextSequence: "9", received: "0", deposits: "0", pending: null, holdings: [], truncated: false };
    lie(({ path }) => (path.startsWith("/v1/accounts/") ? { status: 200, body: beyond } : undefined));
    const answers = await context.network.accountStates(scene.alice.account, undefined, undefined, 10_000);
    expect(answers.filter(({ error }) => error === undefined)).toHaveLength(4);
    const contract = { unlockStatus: async () => ({ state: "voided" }), isSpent: async () => false } as unknown as Contract;
    expect(await isVoid({ network: context.network, primary: contract }, scene.alice.account, 8n, answers)).toBe(false);
  });

  test("alone cannot confirm a balance or a deposit", async () => {
    const id = formatAccount(scene.bob.account);
    const deposit = { index: "1", recipient: id, asset: ETHER, amount: "1000" };
    lie(({ path }) => {
      if (path === "/v1/deposits/1") return { status: 200, body: deposit };
      if (path === `/v1/accounts/${id}/deposits`) return { status: 200, body: { total: "1", deposits: [deposit] } };
      if (path !== `/v1/accounts/${id}`) return undefined;
      const holdings = [{ asset: ETHER, balance: "1000" }];
      return { status: 200, body: { nextSequence: "0", received: "9", deposits: "1", pending: null, holdings, truncated: false } };
    });
    const view = await viewAccount(context, scene.bob.account, [], 10_000);
    expect(view.balances).toMatchObject([{ balance: 3n, agreeing: 2, answered: 3 }]);
    expect(await findDeposit(context, 1n)).toBeUndefined();
    const funded = { index: 1n, recipient: scene.bob.account, asset: ETHER, amount: 1_000n, authorities: 0 } as const;
    expect(await countCredits(context.network, funded, {})).toBe(1);
    const history = await readHistory(context, scene.bob.account, 5, undefined);
    expect(history.deposits).toEqual([]);
  });

  test("counts towards the answers that a read needs", async () => {
    const unanswering = ({ path }: Request) => (path.startsWith("/v1/accounts/") ? problem(500, "internal") : undefined);
    scene.node(1).lie = unanswering;
    await expect(context.network.accountStates(scene.alice.account)).rejects.toMatchObject({
      code: "too-few-answers",
      details: { answered: 2, quorum: 3 },
    });
  });

  test("alone cannot report a deposit to a watch", async () => {
    const id = formatAccount(scene.bob.account);
    const data = JSON.stringify({ index: "1", recipient: id, asset: ETHER, amount: "5" });
    const tell = ({ path }: Request) => {
      if (!path.endsWith("/events")) return undefined;
      return (response: ServerResponse): void => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(`event: deposited\nid: 0.0.1\ndata: ${data}\n\n`);
      };
    };
    lie(tell);
    const next = (end: AbortController) =>
      watchAccount(context, scene.bob.account, undefined, end.signal)[Symbol.asyncIterator]().next();
    const end = new AbortController();
    expect(await Promise.race([next(end), sleep(1_000).then(() => "nothing")])).toBe("nothing");
    end.abort();
    // A second member is f + 1.
    scene.node(1).lie = tell;
    const later = new AbortController();
    const told = await next(later);
    later.abort();
    expect(told.value).toMatchObject({ type: "deposited", authorities: 2 });
  });

  test.each([
    ["frozen", problem(409, "frozen", { expectedSequence: "1" })],
    ["voided", problem(409, "voided", { expectedSequence: "1" }, "never")],
    ["no-primary", problem(400, "no-primary", {}, "never")],
    ["new-epoch", { status: 409, body: { code: "not-voting", title: "", status: 409, action: "", retry: "later", epoch: "7" } }],
  ] as const)("alone decides no order: %s", async (code, refusal) => {
    const refusing = (answer: ReturnType<TestNode["lie"]>) => ({ path }: Request) => (path === "/v1/orders" ? answer : undefined);
    lie(refusing(refusal));
    const all = doubled(isFirstNamed, scene.nodes.slice(1));
    scene.node(2).lie = refusing(problem(400, "invalid", {}, "never"));
    const pay = (): Promise<unknown> => {
      const short = { ...all, store: memoryStore(), timing: { ...all.timing, deadlineMs: 500 } };
      const intent = (sequence: bigint) => paymentOf(scene.alice.account, scene.bob.account, 1n, sequence);
      return send(short, scene.alice, intent, () => undefined, undefined);
    };
    await expect(pay()).rejects.toMatchObject({ code: "no-quorum" });
    // A second member is f + 1.
    scene.node(2).lie = refusing(refusal);
    await expect(pay()).rejects.toMatchObject({ code });
  });

  test("cannot make an account look stuck", async () => {
    const order = (amount: bigint) => signed(scene.alice, paymentOf(scene.alice.account, scene.bob.account, amount, 1n));
    const [ours, theirs] = [await order(5n), await order(6n)];
    const all = doubled(isFirstNamed, scene.nodes.slice(1));
    for (const node of [scene.node(0), twin]) Object.assign(node.account(scene.alice.account), { next: 1n, pending: theirs });
    for (const node of [scene.node(1), scene.node(2)]) node.account(scene.alice.account).pending = ours;
    const view = await viewAccount({ ...all, store: memoryStore() }, scene.alice.account, [], 10_000);
    expect(view.stuckAt).toBeUndefined();
    // Two members each.
    scene.node(3).account(scene.alice.account).pending = ours;
    scene.node(1).account(scene.alice.account).pending = theirs;
    const stuck = await viewAccount({ ...all, store: memoryStore() }, scene.alice.account, [], 10_000);
    expect(stuck.stuckAt).toBe(1n);
  });
});

describe("an address without a listed name that claims another member's name", () => {
  let context: Context;

  /** The first member's only address lies, and says that it is the second one. */
  function impostor(answer: (request: Request) => ReturnType<TestNode["lie"]>): void {
    scene.node(0).lie = (request) => {
      return answer(request) ?? (request.path === "/v1/status" ? scene.node(1).honest(request) : undefined);
    };
  }

  /** Answers a moment later. */
  function late(node: TestNode): void {
    node.lie = (request) => {
      if (request.path !== "/v1/certificates") return undefined;
      return (response) => void setTimeout(() => write(response, node.honest(request)), 50);
    };
  }

  function write(response: ServerResponse, answer: ReturnType<TestNode["honest"]>): void {
    if (typeof answer !== "object") throw new Error("an honest one answers");
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body));
  }

  beforeEach(() => {
    const { network, timing } = scene.context;
    const clients = scene.nodes.map((node, number) => {
      return new AuthorityClient(node.url, number === 0 ? undefined : node.keys.votingKey, timing.requestMs);
    });
    context = { ...scene.context, network: new Network(DOMAIN, network.committees, clients, timing) };
  });

  test("does not hide that member's confirmation", async () => {
    const { certificate, rest } = await scene.pay(3n);
    await rest;
    const later = { status: 200, body: { nextSequence: "1", epoch: "9" } };
    impostor(({ path }) => (path === "/v1/certificates" ? later : undefined));
    await context.network.authorities[0]?.identify();
    expect(context.network.authorities[0]).toMatchObject({ given: scene.node(1).keys.votingKey, member: scene.node(0).url });
    scene.nodes.slice(1).forEach(late);
    await (await settle(operationOf(context), certificate)).rest;
  });

  test("does not count for it", async () => {
    const beyond = { nextSequence: "9", received: "0", deposits: "0", pending: null, holdings: [], truncated: false };
    impostor(({ path }) => (path.startsWith("/v1/accounts/") ? { status: 200, body: beyond } : undefined));
    await context.network.authorities[0]?.identify();
    const answers = await context.network.accountStates(scene.alice.account, undefined, undefined, 10_000);
    expect(memberAnswers(answers, context.network.committee).map(({ answer }) => answer.nextSequence)).toEqual([0n, 0n, 0n]);
  });
});

test("a number is void only if a quorum knows no certificate of it", async () => {
  const { network } = scene.context;
  const contract = { unlockStatus: async () => ({ state: "voided" }), isSpent: async () => false } as unknown as Contract;
  for (const node of scene.nodes) node.account(scene.alice.account).next = 1n;
  const isVoidNow = async (): Promise<boolean> => {
    const answers = await network.accountStates(scene.alice.account, undefined, undefined, 10_000);
    return isVoid({ network, primary: contract }, scene.alice.account, 0n, answers);
  };
  expect(await isVoidNow()).toBe(true);
  // Silence says nothing: one of these may have executed it.
  const silent = ({ path }: Request) => (path.includes("/certificates/") ? problem(500, "internal") : undefined);
  scene.node(0).lie = silent;
  expect(await isVoidNow()).toBe(true);
  scene.node(1).lie = silent;
  expect(await isVoidNow()).toBe(false);
});

test("a ballot counts members that refuse, not addresses", () => {
  const { network } = scene.context;
  const ballot = new UnlockBallot(DOMAIN, network.committee, { sender: scene.alice.account, sequence: 0n }, true);
  const name = scene.node(0).keys.votingKey;
  const failure = { kind: "not-requested" } as const;
  for (const url of ["http://a.example", "http://b.example"]) ballot.fail(new AuthorityClient(url, name, 1_000), failure);
  expect([ballot.refusals("not-requested"), ballot.failures.size]).toEqual([1, 2]);
  ballot.fail(new AuthorityClient("http://c.example", scene.node(1).keys.votingKey, 1_000), failure);
  expect(ballot.refusals("not-requested")).toBe(2);
});

test("an authority that gives no name counts for nothing, until it does", async () => {
  for (const node of scene.nodes.slice(0, 2)) node.lie = ({ path }) => (path === "/v1/status" ? problem(500, "internal") : undefined);
  const context = nameless();
  const { certificate, rest } = await scene.pay(3n);
  await rest;
  const short = { ...operationOf(context), timing: { ...context.timing, deadlineMs: 2_000 } };
  await expect(settle(short, certificate)).rejects.toMatchObject({ code: "no-quorum", details: { count: 2 } });
  scene.node(0).lie = () => undefined;
  await settle(operationOf(nameless()), certificate);
});

/** All addresses are listed without names. */
function nameless(): Context {
  const { network, timing } = scene.context;
  const clients = scene.nodes.map(({ url }) => new AuthorityClient(url, undefined, timing.requestMs));
  return { ...scene.context, network: new Network(DOMAIN, network.committees, clients, timing) };
}
