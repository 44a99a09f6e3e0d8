/** An account is shown as soon as a quorum has answered; who is only later than that is not said to be away. */

import { afterEach, beforeEach, expect, test } from "vitest";

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

test("one that was not heard has neither an answer nor an error", async () => {
  scene.node(0).lie = () => "hang";
  expect(await stateOfFirst()).toMatchObject({ answer: undefined, error: undefined });
});

test("one that cannot be reached has an error", async () => {
  await scene.node(0).stop();
  expect(await stateOfFirst(Number.POSITIVE_INFINITY)).toMatchObject({ answer: undefined, error: { code: "unreachable" } });
});

test("one that is late is heard where everybody is waited for", async () => {
  const late = scene.node(0);
  late.lie = (request) => (response) => {
    const { status, body } = late.honest(request) as { status: number; body: unknown };
    setTimeout(() => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    }, LATE_MS);
  };
  expect(await stateOfFirst(Number.POSITIVE_INFINITY)).toMatchObject({ answer: { nextSequence: 0n } });
});
