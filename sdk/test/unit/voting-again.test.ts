/**
 * A redemption of an ended epoch is voted for again, while authorities are silent or lie. `dialogues.test.ts` has what a
 * client concludes from their answers.
 */

import { decodeFunctionData } from "viem";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import {
  recoverSigner,
  redemptionBatchVoteDigest,
  type Committee,
  type Hex,
  type Redemption,
  type Timing,
  type VerifiedCertificate,
} from "../../src/index.js";
import { FASTPAY_ABI } from "../../src/chain/abi.js";
import { voteAgain, type BatchVotes } from "../../src/quorum/vote-again.js";
import { redemptionCall } from "../../src/wallet/payouts.js";
import { DOMAIN } from "../support/committee.js";
import { problem, type Answer, type Request } from "../support/node.js";
import { onContract, Scene } from "../support/scene.js";

let scene: Scene;
let certificate: VerifiedCertificate;
let redemption: Redemption;

beforeEach(async () => {
  scene = await Scene.open();
  const receipt = await scene.redeem(30n);
  await receipt.rest;
  certificate = receipt.certificate;
  redemption = certificate.order.transfer as Redemption;
});

afterEach(() => scene.close());

function gather(timing: Partial<Timing> = {}, signal?: AbortSignal): Promise<BatchVotes> {
  const { network, primary } = scene.context;
  const report = (step: (typeof scene.steps)[number]): void => void scene.steps.push(step);
  const operation = { network, primary, timing: { ...scene.context.timing, ...timing }, report, signal };
  return voteAgain({ ...operation, stored: async () => undefined }, certificate, redemption);
}

/** Who signed votes as the contract reads them: members of the committee, ascending, exactly a quorum. */
function signers({ epoch, votes }: BatchVotes, committee: Committee): number[] {
  expect(epoch).toBe(committee.epoch);
  const digest = redemptionBatchVoteDigest(DOMAIN, epoch, [redemption]);
  const items = votes.slice(2).match(/.{132}/g) ?? [];
  expect(`0x${items.join("")}`).toBe(votes);
  const indices = items.map((item) => {
    const index = Number.parseInt(item.slice(0, 2), 16);
    const signer = recoverSigner(`0x${item.slice(2)}` as Hex, digest);
    expect(signer).toBe(committee.members[index]?.redemptionKey);
    return index;
  });
  expect(indices).toEqual([...new Set(indices)].sort((a, b) => a - b));
  expect(indices).toHaveLength(committee.quorum);
  return indices;
}

const toVotes =
  (answer: () => Answer | undefined) =>
  ({ path }: Request): Answer | undefined =>
    path === "/v1/redemptions/votes" ? answer() : undefined;

test("the new committee certifies what the old one certified", async () => {
  const committee = scene.rotate();
  signers(await gather(), committee);
  expect(certificate.epoch).toBe(0n);
  const votes = scene.steps.filter(({ type }) => type === "vote");
  expect(votes.at(-1)).toMatchObject({ votes: 3, quorum: 3 });
});

test("the certificate's own votes are used while the contract accepts them for long enough", async () => {
  const committee = scene.rotate();
  const callWhen = async (validUntil: bigint) => {
    const contract = { epochValidUntil: async () => validUntil, block: async () => ({ timestamp: 1_000n }) };
    const context = { ...scene.context, ...onContract(contract as never) };
    const data = await redemptionCall(context, certificate, redemption, () => undefined, undefined);
    return decodeFunctionData({ abi: FASTPAY_ABI, data });
  };
  const own = await callWhen(10_000n);
  expect(own).toMatchObject({ functionName: "redeem", args: [{ sequence: 0n }, 0n, expect.any(String)] });
  for (const validUntil of [0n, 999n, 1_100n]) {
    const { functionName, args } = await callWhen(validUntil);
    expect(functionName).toBe("redeemBatch");
    signers({ epoch: args[1] as bigint, votes: args[2] as Hex }, committee);
  }
});

describe("one authority of four", () => {
  const faults: Record<string, () => Answer> = {
    "is silent": () => "hang",
    "signs for another epoch than it says": () => ({
      status: 200,
      body: { epoch: "1", ...scene.node(0).keys.batchVote(2n, [redemption]) },
    }),
    "is no member": () => ({
      status: 200,
      body: { epoch: "1", authority: `0x${"7".repeat(64)}`, signature: `0x${"7".repeat(130)}` },
    }),
    "says for ever that it lacks the redemption": () => problem(409, "redemptions-missing", { positions: [0] }),
    "says that it does not vote": () => problem(503, "not-voting", { epoch: "1" }),
    "refuses": () => problem(400, "malformed", {}, "never"),
    "answers what is no vote": () => ({ status: 200, body: { epoch: "1" } }),
  };
  test.each(Object.keys(faults))("%s: the others suffice", async (fault) => {
    const committee = scene.rotate();
    const answer = faults[fault] ?? (() => "hang" as const);
    scene.node(0).lie = toVotes(answer);
    const own = committee.members.findIndex(({ votingKey }) => votingKey === scene.node(0).keys.votingKey);
    expect(signers(await gather(), committee)).not.toContain(own);
  });
});

test("if the committee changes meanwhile, the next one votes", async () => {
  scene.rotate();
  const second = scene.rotate(false);
  setTimeout(() => scene.chain.epochs.push(second), 200);
  signers(await gather(), second);
});

test("with two silent authorities there is no quorum; a retry once one is back collects it", async () => {
  const committee = scene.rotate();
  for (const node of scene.nodes.slice(2)) node.lie = toVotes(() => "hang");
  await expect(gather({ deadlineMs: 5_000 })).rejects.toMatchObject({
    code: "no-quorum",
    details: { what: "votes", count: 2, quorum: 3, timedOut: true },
  });
  scene.node(2).lie = () => undefined;
  signers(await gather(), committee);
});

test("with two that refuse, the error is reported at once", async () => {
  scene.rotate();
  for (const node of scene.nodes.slice(2)) node.lie = toVotes(() => problem(400, "malformed", {}, "never"));
  await expect(gather()).rejects.toMatchObject({ code: "no-quorum", details: { count: 2, timedOut: false } });
});

test("an aborted call rejects with `aborted`", async () => {
  scene.rotate();
  for (const node of scene.nodes) node.lie = toVotes(() => "hang");
  const controller = new AbortController();
  const gathering = gather({}, controller.signal);
  setTimeout(() => controller.abort(), 20);
  await expect(gathering).rejects.toMatchObject({ code: "aborted" });
});
