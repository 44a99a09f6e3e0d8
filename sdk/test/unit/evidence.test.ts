/** Certificates are checked against the committee that voted, and no other. */

import { afterEach, beforeEach, expect, test } from "vitest";

import type { Context } from "../../src/wallet/context.js";
import { gatherEvidence } from "../../src/wallet/evidence.js";
import { encodeCertificate } from "../../src/wire.js";
import { Scene } from "../support/scene.js";

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

/** What everybody shows for one of Alice's transfers, and whether it holds. */
async function shown(context: Context, sequence: bigint) {
  const { certificate, answers } = await gatherEvidence(context, { account: scene.alice.account, sequence });
  const epochs = answers.map(({ answer }) => answer?.certificate.epoch);
  return { certificate, epochs, verdicts: answers.map(({ answer }) => answer?.report?.isValid) };
}

test("a certificate of an epoch that the Ethereum node does not show yet is not reported as forged", async () => {
  const next = scene.rotate();
  await scene.context.network.committees.refresh();
  await (await scene.pay(8n)).rest;
  // A page whose Ethereum node has not seen the rotation.
  scene.chain.epochs.pop();
  const late = await scene.later();
  const early = await shown(late, 0n);
  expect(early).toMatchObject({ certificate: undefined, epochs: [1n, 1n, 1n, 1n] });
  expect(early.verdicts).toEqual([undefined, undefined, undefined, undefined]);

  scene.chain.epochs.push(next);
  await late.network.committees.refresh();
  expect((await shown(late, 0n)).verdicts).toEqual([true, true, true, true]);
});

test("a certificate of another transfer is forged, whatever its epoch", async () => {
  await (await scene.pay(7n)).rest;
  scene.rotate();
  await scene.context.network.committees.refresh();
  await (await scene.pay(8n)).rest;
  scene.chain.epochs.pop();
  const other = scene.node(0).account(scene.alice.account).sent[1];
  if (other === undefined) throw new Error("there is no second certificate");
  scene.node(0).lie = ({ path }) =>
    path.endsWith("/certificates/0") ? { status: 200, body: encodeCertificate(other) } : undefined;
  const { certificate, verdicts } = await shown(await scene.later(), 0n);
  expect(certificate?.order.transfer).toMatchObject({ amount: 7n });
  expect(verdicts.filter((isValid) => isValid === false)).toHaveLength(1);
});

test("an authority that lists a payment and withholds its certificate delays nobody", async () => {
  const { certificate, rest } = await scene.pay(7n);
  await rest;
  scene.node(0).lie = ({ path }) => (path.includes("/certificates/") ? "hang" : undefined);
  const { network } = scene.patient();
  const [alice, bob] = [scene.alice.account, scene.bob.account];
  const lister = network.authorities.find(({ url }) => url === scene.node(0).url);
  if (lister === undefined) throw new Error("there is nobody to ask");
  const listed = { sender: alice, sequence: 0n, output: undefined, digest: certificate.digest };
  expect((await network.findReceived(bob, lister, listed))?.payment.amount).toBe(7n);
});
