/** One output of a payout is proven without the contents of the others, and nothing else is. */

import { expect, test } from "vitest";

import {
  AMOUNT_MAX,
  encodeOutputProof,
  parseOutputProof,
  proveOutput,
  verifyCertificate,
  verifyOutputProof,
  type OutputProof,
  type VerifiedCertificate,
} from "../../src/index.js";
import { authorizationOf, committeeOf, domainOf, payments, payouts, transferOf, voteOf } from "../support/vectors.js";

const domain = domainOf(payouts.domain);
const committee = committeeOf(payouts);

function certificate(name: string, from: Pick<typeof payouts, "certificates"> = payouts): VerifiedCertificate {
  const vector = from.certificates.find((one) => one.name === name);
  if (vector === undefined) throw new Error("the vector is gone");
  const order = { transfer: transferOf(vector.transfer), authorization: authorizationOf(vector.authorization) };
  return verifyCertificate({ order, epoch: BigInt(vector.epoch), votes: vector.votes.map(voteOf) }, committee, domain);
}

test.each(["a payout", "a payout voted for in a batch with a payment"])("%s: each output is proven separately", (name) => {
  const of = certificate(name);
  const { transfer } = of.order;
  if (transfer.type !== "payout") throw new Error("it is no payout");
  for (const [position, output] of transfer.outputs.entries()) {
    const text = encodeOutputProof(proveOutput(of, position));
    for (const other of transfer.outputs) {
      // Who is paid what stands there of one output alone.
      if (other.amount !== output.amount) expect(text).not.toContain(`"${other.amount}"`);
    }
    const { sender, asset, sequence } = transfer;
    const payment = { type: "payment", sender, asset, sequence, ...output };
    expect(verifyOutputProof(parseOutputProof(text), committee, domain)).toEqual({ payment, digest: of.digest });
  }
});

test("a proof with any change is invalid", () => {
  const proof = proveOutput(certificate("a payout"), 1);
  const [first, second, third] = proof.hashes as [`0x${string}`, `0x${string}`, `0x${string}`];
  const [vote, ...others] = proof.votes;
  if (vote === undefined) throw new Error("there is no vote");
  const other = "0x1111111111111111111111111111111111111111111111111111111111111111";
  const altered: [string, Partial<OutputProof>][] = [
    ["amount", { output: { ...proof.output, amount: proof.output.amount + 1n } }],
    ["an amount that is none", { output: { ...proof.output, amount: AMOUNT_MAX + 1n } }],
    ["recipient", { output: { ...proof.output, recipient: proof.sender } }],
    ["memo of the output", { output: { ...proof.output, memo: other } }],
    ["position", { position: 0 }],
    ["a position that is none", { position: 3 }],
    ["another output's hash", { hashes: [other, second, third] }],
    ["an output less", { hashes: [first, second] }],
    ["an output more", { hashes: [first, second, third, other] }],
    ["outputs in another order", { hashes: [third, second, first] }],
    ["sender", { sender: proof.output.recipient }],
    ["asset", { asset: "0x1111111111111111111111111111111111111111" }],
    ["sequence", { sequence: proof.sequence + 1n }],
    ["memo", { memo: other }],
    ["epoch", { epoch: 1n }],
    ["a vote too few", { votes: others }],
    ["a vote twice", { votes: [vote, vote, ...others.slice(1)] }],
    ["a false vote", { votes: [{ ...vote, signature: `0x${"11".repeat(64)}` }, ...others] }],
  ];
  for (const [what, change] of altered) {
    const check = (): unknown => verifyOutputProof({ ...proof, ...change }, committee, domain);
    expect(check, what).toThrow(expect.objectContaining({ code: "invalid-certificate" }));
  }
});

test("an output that does not exist has no proof", () => {
  const payment = payments.certificates.find(({ valid, transfer }) => valid && "payment" in transfer)?.name ?? "";
  for (const [of, position] of [[certificate("a payout"), 3], [certificate(payment, payments), 0]] as const) {
    expect(() => proveOutput(of, position)).toThrow(expect.objectContaining({ code: "invalid-argument" }));
  }
});
