/** Errors of invalid transfers say what was expected, with amounts in whole units. */

import { expect, test } from "vitest";

import { accountFromEthereum, ETHER, FastPayError, formatAccount, parseAmount, type PayIntent, type RedeemIntent } from "../../src/index.js";
import { paymentIntent, redemptionIntent } from "../../src/wallet/intents.js";
import { worded } from "../../src/wallet/wording.js";
import { TestChain } from "../support/chain.js";
import { person } from "../support/committee.js";

const [alice, bob] = [person("alice"), person("bob")];
const pay = (intent: object) => paymentIntent(alice, intent as PayIntent)(7n);
const redeem = (intent: object) => redemptionIntent(alice, intent as RedeemIntent)(7n);
const payment = { recipient: bob.account, asset: ETHER, amount: 1n };
const OUT = "0x00000000000000000000000000000000000000AA";

test.each([
  ["another library's names", () => pay({ to: bob.account, asset: ETHER, value: 1n }), [/recipient is missing: give an account/, /amount is missing: give a bigint/, /nothing is known of to, value/]],
  ["a number for an amount", () => pay({ ...payment, amount: 1 }), [/amount is not a bigint in the asset's smallest unit, such as parseAmount/]],
  ["an amount as a text", () => pay({ ...payment, amount: "1.5" }), [/amount is not a bigint/]],
  ["a recipient that is mistyped", () => pay({ ...payment, recipient: "0x70997970C51812dc3A010C7d01b50e0d17dc79c8" }), [/recipient is not an account: 0x…, with a right checksum/]],
  ["a recipient that is no text", () => pay({ ...payment, recipient: 7n }), [/recipient is not an account/]],
  ["an asset by its symbol", () => pay({ ...payment, asset: "ETH" }), [/asset is not ETHER, or the address of a token/]],
  ["a memo as a text", () => pay({ ...payment, memo: "rent" }), [/memo is not the 32 bytes of encodeMemo/]],
  ["a date for an end", () => pay({ ...payment, expires: new Date() }), [/expires is not a bigint of seconds/]],
  ["nothing at all", () => pay(undefined as never), [/recipient is missing/, /asset is missing/, /amount is missing/]],
  ["an account to redeem to", () => redeem({ ...payment }), [/recipient is not an Ethereum address/]],
  ["a fee that is a number", () => redeem({ ...payment, recipient: OUT, fee: 0 }), [/fee is not a bigint/]],
])("%s: an invalid argument", (_name, ask, expected) => {
  let error: unknown;
  try {
    ask();
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toMatchObject({ code: "invalid-argument" });
  for (const text of expected) expect((error as FastPayError).message).toMatch(text);
  expect((error as FastPayError).message).not.toContain("undefined");
});

test("a valid transfer is accepted", () => {
  expect(pay({ ...payment, asset: "0x70707070707070707070707070707070707070aB" })).toMatchObject({
    type: "payment",
    sender: alice.account,
    sequence: 7n,
    asset: "0x70707070707070707070707070707070707070ab",
  });
  for (const [recipient, account] of [
    [OUT, accountFromEthereum(OUT)],
    [formatAccount(bob.account), bob.account],
  ] as const) {
    expect(pay({ ...payment, recipient })).toMatchObject({ recipient: account });
  }
  expect(redeem({ ...payment, recipient: OUT, fee: 1n })).toMatchObject({ type: "redemption", fee: 1n, recipient: OUT.toLowerCase() });
});

test("insufficient funds are reported with readable names", async () => {
  const details = { account: bob.account, asset: ETHER, needed: parseAmount("2", 18), available: parseAmount("1.5", 18) };
  const { contract } = new TestChain(bob.account, 1n);
  const failing = Promise.reject(new FastPayError("insufficient-funds", "too little", "deposit", { details }));
  const error = await worded(contract, failing).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "insufficient-funds", action: "deposit", details });
  expect((error as FastPayError).message).toMatch(/^account fp1\S+ has 1.5 ETH and needs 2 ETH$/);
  const other = new FastPayError("no-quorum", "too few", "resume");
  await expect(worded(contract, Promise.reject(other))).rejects.toBe(other);
});
