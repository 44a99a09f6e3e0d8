/** A history is read in pages: its certificates with one request, whatever single authorities keep back or forge. */

import { afterEach, beforeEach, expect, test } from "vitest";

import type { AccountId } from "../../src/index.js";
import { readHistory } from "../../src/wallet/history.js";
import type { Answer, Request } from "../support/node.js";
import { Scene } from "../support/scene.js";

const PAYMENTS = 12;
const READ = "/v1/certificates/read";

let scene: Scene;
let requests: Request[];

beforeEach(async () => {
  scene = await Scene.open();
  for (let amount = 1n; amount <= PAYMENTS; amount += 1n) await scene.pay(amount);
  requests = [];
  everyNodeSays(() => undefined);
});

afterEach(() => scene.close());

/** Notes what is asked, and answers otherwise than honestly where `answer` says so. */
function everyNodeSays(answer: (request: Request, number: number) => Answer | undefined): void {
  scene.nodes.forEach((node, number) => {
    node.lie = (request) => {
      requests.push(request);
      return answer(request, number);
    };
  });
}

/** What somebody reads who has nothing of it in a storage. */
async function amountsOf(account: AccountId, side: "sent" | "received"): Promise<unknown[]> {
  const history = await readHistory(await scene.later(), account, 25, undefined);
  if (side === "received") return history.received.map(({ payment }) => payment.amount);
  return history.sent.map(({ transfer }) => (transfer as { amount: bigint }).amount);
}

const EXPECTED = Array.from({ length: PAYMENTS }, (_, i) => BigInt(PAYMENTS - i));

test("sent transfers take one bulk read, besides the proof of the last one", async () => {
  expect(await amountsOf(scene.alice.account, "sent")).toEqual(EXPECTED);
  expect(requests.filter(({ path }) => path === READ)).toHaveLength(1);
  expect(new Set(requests.map(({ path }) => path).filter((path) => path.includes("/certificates/"))).size).toBe(2);
  // Four states, four proofs of the newest, one read.
  expect(requests.length).toBeLessThanOrEqual(9);
});

test("received transfers take one bulk read", async () => {
  expect(await amountsOf(scene.bob.account, "received")).toEqual(EXPECTED);
  // Four states, four lists, one read.
  expect(requests.length).toBeLessThanOrEqual(9);
});

test("a certificate that an authority withholds is read from the next one", async () => {
  let first: number | undefined;
  everyNodeSays(({ path, body }, number) => {
    if (path !== READ) return undefined;
    first ??= number;
    return first === number ? { status: 200, body: { certificates: [], lookedUp: JSON.parse(body).names.length } } : undefined;
  });
  expect(await amountsOf(scene.bob.account, "received")).toEqual(EXPECTED);
  expect(requests.filter(({ path }) => path === READ)).toHaveLength(2);
});

test("a partial answer is followed by a request for the rest", async () => {
  everyNodeSays((request, number) => {
    if (request.path !== READ) return undefined;
    const names = JSON.parse(request.body).names.slice(0, 5);
    return scene.node(number).honest({ ...request, body: JSON.stringify({ names }) });
  });
  expect(await amountsOf(scene.bob.account, "received")).toEqual(EXPECTED);
  expect(requests.filter(({ path }) => path === READ)).toHaveLength(3);
});

test("after forged certificates or endless empty pages, the other authorities are asked", async () => {
  everyNodeSays((request, number) => {
    if (request.path !== READ || number > 1) return undefined;
    if (number === 0) return { status: 200, body: { certificates: [], lookedUp: 0 } };
    const honest = scene.node(number).honest(request) as { body: { certificates: { votes: { signature: string }[] }[] } };
    for (const { votes } of honest.body.certificates) for (const vote of votes) vote.signature = `0x${"11".repeat(64)}`;
    return { status: 200, body: honest.body };
  });
  expect(await amountsOf(scene.bob.account, "received")).toEqual(EXPECTED);
});

test("if no authority answers bulk reads, each certificate is requested separately", async () => {
  everyNodeSays(({ path }) => (path === READ ? { status: 404, body: { code: "not-found" } } : undefined));
  expect(await amountsOf(scene.bob.account, "received")).toEqual(EXPECTED);
});
