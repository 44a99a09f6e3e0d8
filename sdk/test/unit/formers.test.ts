/** An authority that has left the committee has no voice, at a listed address or under a name that it claims. */

import type { ServerResponse } from "node:http";

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { ETHER, formatAccount, type Hex } from "../../src/index.js";
import { AuthorityClient } from "../../src/authority.js";
import type { Contract } from "../../src/chain/contract.js";
import { memberAnswers, Network } from "../../src/network.js";
import { settle } from "../../src/quorum/settle.js";
import { UnlockBallot } from "../../src/quorum/unlock.js";
import { conflictOf } from "../../src/wallet/conflicts.js";
import type { Context } from "../../src/wallet/context.js";
import { countCredits } from "../../src/wallet/deposits.js";
import { readHistory } from "../../src/wallet/history.js";
import { isVoid } from "../../src/wallet/voids.js";
import { watchAccount } from "../../src/wallet/watch.js";
import { sleep } from "../../src/waiting.js";
import { authorities, committeeOfKeys, DOMAIN, Keys, paymentOf, signed } from "../support/committee.js";
import { problem, TestNode, type Answer, type Request } from "../support/node.js";
import { Scene, TIMING } from "../support/scene.js";

let scene: Scene;
/** It has left the committee, and its address is still listed. The first member conspires with it. */
let former: TestNode;

beforeEach(async () => {
  scene = await Scene.open();
  former = await TestNode.start(new Keys("former"));
  former.account(scene.alice.account).balance = 100n;
});

afterEach(async () => {
  await former.stop();
  await scene.close();
});

const clientOf = (node: TestNode, name?: Hex): AuthorityClient => new AuthorityClient(node.url, name, TIMING.requestMs);
const listed = (nodes: readonly TestNode[]): AuthorityClient[] => nodes.map((node) => clientOf(node, node.keys.votingKey));

function contextWith(clients: readonly AuthorityClient[]): Context {
  return { ...scene.context, network: new Network(DOMAIN, scene.context.network.committees, clients, TIMING) };
}

const operationIn = (context: Context) => ({ ...context, stored: async () => undefined, report: () => undefined, signal: undefined });

/** The first member and the former one answer so. */
function conspire(answer: (request: Request) => Answer | undefined): void {
  for (const node of [scene.node(0), former]) node.lie = answer;
}

describe.each([
  ["under its name", true],
  ["without a name", false],
])("a former member that is listed %s", (_, isNamed) => {
  let context: Context;

  beforeEach(() => {
    context = contextWith([clientOf(former, isNamed ? former.keys.votingKey : undefined), ...listed(scene.nodes)]);
  });

  const account = () => scene.alice.account;
  const states = () => context.network.accountStates(account(), undefined, undefined, 10_000);
  const void0 = { unlockStatus: async () => ({ state: "voided" }), isSpent: async () => false } as unknown as Contract;

  test("confirms nothing", async () => {
    const certificate = await context.network.verify(await scene.certified(3n), account(), 0n);
    for (const node of scene.nodes.slice(2)) node.lie = ({ path }) => (path === "/v1/certificates" ? problem(400, "invalid", {}, "never") : undefined);
    const operation = { ...operationIn(context), timing: { ...TIMING, deadlineMs: 2_000 } };
    await expect(settle(operation, certificate)).rejects.toMatchObject({ code: "no-quorum", details: { count: 2 } });
  });

  test("steps over no number, and lacks no certificate", async () => {
    const beyond = { nextSequence: "9", received: "0", deposits: "0", pending: null, holdings: [], truncated: false };
    conspire(({ path }) => (path === `/v1/accounts/${formatAccount(account())}` ? { status: 200, body: beyond } : undefined));
    expect(await isVoid({ network: context.network, primary: void0 }, account(), 0n, await states())).toBe(false);
    conspire(() => undefined);
    for (const node of scene.nodes.slice(2)) node.lie = ({ path }) => (path.includes("/certificates/") ? problem(500, "internal") : undefined);
    expect(await context.network.isWithoutCertificate(account(), 0n)).toBe(false);
    scene.node(2).lie = () => undefined;
    expect(await context.network.isWithoutCertificate(account(), 0n)).toBe(true);
  });

  test.each([
    ["void", problem(409, "voided", { expectedSequence: "1" }, "never")],
    ["of a newer epoch", problem(409, "not-voting", { epoch: "7" }, "later")],
  ])("makes no order %s", async (_what, refusal) => {
    conspire(({ path }) => (path === "/v1/orders" ? refusal : undefined));
    scene.node(3).lie = ({ path }) => (path === "/v1/orders" ? problem(400, "invalid", {}, "never") : undefined);
    const paying = scene.pay(3n, { network: context.network, timing: { deadlineMs: 2_000 } });
    await expect(paying).rejects.toMatchObject({ code: "no-quorum" });
  });

  test("delays no decision of the members", async () => {
    const certificate = await context.network.verify(await scene.certified(3n), account(), 0n);
    for (const node of scene.nodes) node.lie = ({ path }) => (path === "/v1/certificates" ? problem(409, "voided", { expectedSequence: "1" }, "never") : undefined);
    // It waits for as long as a minute for what may still change.
    const startMs = Date.now();
    await expect(settle(operationIn(context), certificate)).rejects.toMatchObject({ code: "voided" });
    expect(Date.now() - startMs).toBeLessThan(TIMING.deadlineMs / 2);
  });

  test("ends no epoch", async () => {
    const certificate = await context.network.verify(await scene.certified(3n), account(), 0n);
    conspire(({ path }) => (path === "/v1/certificates" ? problem(409, "epoch-ended", { epoch: "1" }, "never") : undefined));
    for (const node of scene.nodes.slice(2)) node.lie = ({ path }) => (path === "/v1/certificates" ? problem(400, "invalid", {}, "never") : undefined);
    const operation = { ...operationIn(context), timing: { ...TIMING, deadlineMs: 2_000 } };
    await expect(settle(operation, certificate)).rejects.toMatchObject({ code: "no-quorum" });
    expect(context.network.isRecovered).toBe(false);
  });

  test("holds no order, but its copy of one is not lost", async () => {
    const [ours, theirs] = await Promise.all([5n, 6n].map((amount) => signed(scene.alice, paymentOf(account(), scene.bob.account, amount, 0n))));
    for (const node of [former, scene.node(0)]) node.account(account()).pending = theirs;
    for (const node of scene.nodes.slice(1, 3)) node.account(account()).pending = ours;
    const conflict = conflictOf(context.network, account(), 0n, await states());
    expect(conflict.contenders().map(({ holders, reach }) => [holders.length, reach])).toEqual([[2, 3], [1, 2]]);
    scene.node(0).account(account()).pending = undefined;
    expect(conflictOf(context.network, account(), 0n, await states()).contenders()).toHaveLength(2);
  });

  test("is no part of the quorum of a read", async () => {
    for (const node of scene.nodes.slice(2)) node.lie = (request) => later(node, request);
    const answered = (await context.network.accountStates(account())).filter(({ error }) => error === undefined);
    expect(answered.filter(({ authority }) => authority.url !== former.url).length).toBeGreaterThanOrEqual(3);
  });

  test("refuses no vote about a number", () => {
    const ballot = new UnlockBallot(DOMAIN, context.network.committee, { sender: account(), sequence: 0n }, true);
    for (const authority of context.network.authorities.slice(0, 2)) ballot.fail(authority, { kind: "not-requested" });
    expect(ballot.refusals("not-requested")).toBe(1);
  });

  test("reports no deposit", async () => {
    const id = formatAccount(scene.bob.account);
    const deposit = { index: "1", recipient: id, asset: ETHER, amount: "1000" };
    const state = { nextSequence: "0", received: "0", deposits: "1", pending: null, holdings: [], truncated: false };
    conspire(({ path }) => {
      if (path === `/v1/accounts/${id}`) return { status: 200, body: state };
      if (path === `/v1/accounts/${id}/deposits`) return { status: 200, body: { total: "1", deposits: [deposit] } };
      if (!path.endsWith("/events")) return undefined;
      return (response: ServerResponse): void => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(`event: deposited\nid: 0.0.1\ndata: ${JSON.stringify(deposit)}\n\n`);
      };
    });
    const funded = { index: 1n, recipient: scene.bob.account, asset: ETHER, amount: 1_000n, authorities: 0 } as const;
    expect(await countCredits(context.network, funded, {})).toBe(1);
    expect((await readHistory(context, scene.bob.account, 5, undefined)).deposits).toEqual([]);
    const end = new AbortController();
    const told = watchAccount(context, scene.bob.account, undefined, end.signal)[Symbol.asyncIterator]().next();
    expect(await Promise.race([told, sleep(1_000).then(() => "nothing")])).toBe("nothing");
    end.abort();
  });
});

test("after a rotation, members at their listed addresses count under their new names", async () => {
  const { network } = scene.context;
  const committee = scene.rotate();
  await network.committees.refresh();
  const answers = await network.accountStates(scene.alice.account, undefined, undefined, 10_000);
  expect(answers.map(({ authority }) => (authority as AuthorityClient).member).sort()).toEqual(committee.members.map(({ votingKey }) => votingKey));
  expect(memberAnswers(answers, committee)).toHaveLength(4);
  await (await scene.pay(3n)).rest;
  // Those that follow a rotation later than this client count from then on.
  const before = scene.nodes.map(({ keys, epoch }) => ({ keys, epoch }));
  scene.rotate();
  const after = scene.nodes.map(({ keys, epoch }) => ({ keys, epoch }));
  scene.nodes.forEach((node, number) => Object.assign(node, before[number]));
  await network.committees.refresh();
  const read = () => network.accountStates(scene.alice.account);
  await expect(read()).rejects.toMatchObject({ code: "too-few-answers", details: { answered: 0 } });
  scene.nodes.forEach((node, number) => Object.assign(node, after[number]));
  await expect.poll(() => read().then(() => true, () => false), { timeout: 5_000 }).toBe(true);
  expect((await scene.pay(4n)).certificate.epoch).toBe(2n);
});

describe("a name that a former member claims", () => {
  let joined: TestNode;
  let network: Network;

  /** The fourth member has left, and another one has come, whose address is not listed. */
  beforeEach(async () => {
    joined = await TestNode.start(new Keys("joined"));
    const [first, second, third] = authorities(4) as [Keys, Keys, Keys];
    scene.chain.epochs.push(committeeOfKeys([first, second, third, joined.keys], 1n));
    network = (await scene.later()).network;
  });

  afterEach(() => joined.stop());

  const claims = (node: TestNode, of: TestNode): void => {
    node.lie = (request) => (request.path === "/v1/status" ? of.honest(request) : undefined);
  };
  const membersNow = async (): Promise<string[]> => {
    await Promise.all(network.authorities.map((authority) => authority.identify()));
    return network.authorities.map(({ member }) => member);
  };

  test("is the member's once that says where it is", async () => {
    claims(scene.node(3), joined);
    expect((await membersNow())[3]).toBe(joined.keys.votingKey);
    scene.node(0).lie = ({ path }) => (path === "/v1/endpoints" ? { status: 200, body: { endpoints: [joined.keys.endpoint(5n, joined.url)] } } : undefined);
    expect(await network.findMembers()).toBe(true);
    const names = [...scene.nodes.slice(0, 3).map(({ keys }) => keys.votingKey), scene.node(3).url, joined.keys.votingKey];
    expect(await membersNow()).toEqual(names);
  });

  test("of a listed member is not believed", async () => {
    claims(scene.node(3), scene.node(0));
    expect((await membersNow())[3]).toBe(scene.node(3).url);
  });

  test("is nobody's while two claim it, unless one of them has signed its address", async () => {
    const [first] = authorities(1) as [Keys];
    scene.chain.epochs.push(committeeOfKeys([first, joined.keys, ...authorities(2, "others")], 2n));
    await network.committees.refresh();
    for (const number of [2, 3]) claims(scene.node(number), joined);
    expect((await membersNow()).slice(2)).toEqual([scene.node(2).url, scene.node(3).url]);
    network.learn([{ ...joined.keys.endpoint(5n, scene.node(3).url), number: 5n, tlsCa: undefined }], () => undefined);
    expect((await membersNow()).slice(2)).toEqual([scene.node(2).url, joined.keys.votingKey]);
  });
});

/** The node's honest answer, some time later. */
function later(node: TestNode, request: Request): Answer {
  const answer = node.honest(request);
  if (typeof answer !== "object") throw new Error("an honest one answers");
  return (response) => {
    const send = (): void => {
      response.writeHead(answer.status, { "content-type": "application/json" });
      response.end(typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body));
    };
    setTimeout(send, 300);
  };
}
