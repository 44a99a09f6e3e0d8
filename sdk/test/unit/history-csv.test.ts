/** A history as a file has a row for each payment, and its amounts add up. */

import { afterEach, beforeEach, expect, test } from "vitest";

import { encodeMemo, ETHER, formatAccount, formatHistory } from "../../src/index.js";
import { payMany } from "../../src/wallet/many.js";
import { readHistory } from "../../src/wallet/history.js";
import { person } from "../support/committee.js";
import { Scene } from "../support/scene.js";

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});

afterEach(() => scene.close());

test("payments, outputs, redemptions and deposits, each in a row", async () => {
  await scene.pay(7n);
  await scene.redeem(5n);
  const carol = person("carol").account;
  const lines = [
    { recipient: scene.bob.account, asset: ETHER, amount: 2n, memo: encodeMemo('wages, "May"') },
    { recipient: carol, asset: ETHER, amount: 3n },
    { recipient: person("dave").account, asset: ETHER, amount: 4n },
  ];
  await payMany(scene.context, scene.alice, lines, {}, () => undefined);
  const history = await readHistory(scene.context, scene.alice.account, 25, undefined);
  const deposit = { index: 9n, recipient: scene.alice.account, asset: ETHER, amount: 100n, authorities: 3 };
  const times = new Map([[deposit, 0]]);
  const [head, ...rows] = (await formatHistory({ ...history, deposits: [deposit] }, times)).trim().split("\n");
  expect(head).toBe("kind,date,account,asset,units,fee,memo,sequence,output,digest");
  const [alice, bob] = [formatAccount(scene.alice.account), formatAccount(scene.bob.account)];
  const [payout, redemption, payment] = history.sent.map(({ digest }) => digest);
  const day = /\d{4}-\d\d-\d\dT[0-9:.]+Z/;
  expect(rows.map((row) => row.replace(day, "DATE"))).toEqual([
    `sent,DATE,${bob},${ETHER},2,,"wages, ""May""",2,0,${payout}`,
    `sent,DATE,${formatAccount(carol)},${ETHER},3,,,2,1,${payout}`,
    `sent,DATE,${formatAccount(person("dave").account)},${ETHER},4,,,2,2,${payout}`,
    `redeemed,DATE,0x00000000000000000000000000000000000000AA,${ETHER},5,0,,1,,${redemption}`,
    `sent,DATE,${bob},${ETHER},7,,,0,,${payment}`,
    `deposit,DATE,,${ETHER},100,,,9,,`,
  ]);
  const theirs = await readHistory(scene.context, carol, 25, undefined);
  const [, received] = (await formatHistory(theirs)).trim().split("\n");
  expect(received).toBe(`received,,${alice},${ETHER},3,,,2,1,${payout}`);

  // The newest first, also across kinds; what has no date comes last.
  const mixed = { sent: history.sent.slice(0, 1), received: theirs.received, deposits: [deposit] };
  const kinds = async (ms: number) =>
    (await formatHistory(mixed, new Map([[deposit, ms]]))).trim().split("\n").slice(1).map((row) => row.split(",")[0]);
  expect(await kinds(0)).toEqual(["sent", "sent", "sent", "deposit", "received"]);
  expect(await kinds(Date.now() + 60_000)).toEqual(["deposit", "sent", "sent", "sent", "received"]);
});
