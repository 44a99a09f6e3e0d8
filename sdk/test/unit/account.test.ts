/** An account is shown as soon as a quorum has answered; who is only later than that is not said to be away. */

import { afterEach, beforeEach, expect, test } from "vitest";

import type { AuthorityClient } from "../../src/authority.js";
import { Network } from "../../src/network.js";
import { viewAccount } from "../../src/wallet/account.js";
import { Scene } from "../support/scene.js";

/** Longer than authorities beyond a quorum are waited for where nothing is said. */
const LATE_MS = 500;

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

async function stateOfFirst(graceMs?: number) {
  const { states } = await viewAccount(scene.context, scene.alice.account, [], graceMs);
  expect(states).toHaveLength(4);
  return states.find(({ authority }) => authority.url === scene.node(0).url);
}

test("one that was not awaited has neither an answer nor an error", async () => {
  scene.node(0).lie = () => "hang";
  expect(await stateOfFirst()).toMatchObject({ answer: undefined, error: undefined });
});

test("one that is unreachable has an error", async () => {
  await scene.node(0).stop();
  expect(await stateOfFirst(Number.POSITIVE_INFINITY)).toMatchObject({ answer: undefined, error: { code: "unreachable" } });
});

/** Has the first authority answer honestly, and late. */
function delayFirst(): void {
  const late = scene.node(0);
  late.lie = (request) => (response) => {
    const { status, body } = late.honest(request) as { status: number; body: unknown };
    setTimeout(() => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    }, LATE_MS);
  };
}

test("a late one counts when all are awaited", async () => {
  delayFirst();
  expect(await stateOfFirst(Number.POSITIVE_INFINITY)).toMatchObject({ answer: { nextSequence: 0n } });
});

test("a late one counts when its answer completes the quorum", async () => {
  delayFirst();
  const { network } = scene.context;
  const ask = async (authority: AuthorityClient, signal: AbortSignal): Promise<string> => {
    await authority.account(scene.alice.account, undefined, signal);
    return authority.url;
  };
  const answers = await network.askAll(ask, { counts: (url) => url !== scene.node(1).url });
  expect(answers.map(({ answer }) => answer)).toContain(scene.node(0).url);
});

test("an authority that claims a number and withholds its certificate delays nobody", async () => {
  await (await scene.pay(7n)).rest;
  const liar = scene.node(0);
  liar.lie = (request) => {
    if (request.path.includes("/certificates/")) return "hang";
    const { status, body } = liar.honest(request) as { status: number; body: object };
    return { status, body: { ...body, nextSequence: "9" } };
  };
  // Also a page that knows nothing of the account: one number is proven, and the other is not.
  const known = scene.patient();
  for (const context of [known, { ...known, store: undefined }]) {
    const { nextSequence } = await viewAccount(context, scene.alice.account, [], Number.POSITIVE_INFINITY);
    expect(nextSequence).toBe(1n);
  }
});

test("with too few answers, the error gives each authority's failure, also of one that was not awaited", async () => {
  await scene.node(0).stop();
  scene.node(1).lie = () => "hang";
  const failures = {
    [scene.node(0).url]: { kind: "silent" },
    [scene.node(1).url]: { kind: "silent", message: "no answer in time" },
  };
  const { domain, committees, authorities } = scene.context.network;
  const network = new Network(domain, committees, authorities, { readMs: LATE_MS });
  const error: unknown = await network.accountStates(scene.alice.account).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "too-few-answers", details: { answered: 2, quorum: 3, failures } });
  expect(Object.keys((error as { details: { failures: object } }).details.failures)).toHaveLength(2);
});
