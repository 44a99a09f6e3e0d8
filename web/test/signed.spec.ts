/** What the page shows beside a wallet's dialog is what docs/erc7730 has the wallet show: the same labels in the same order. */

import { readFileSync } from "node:fs";
import { expect, test } from "@playwright/test";
import { encodeMemo, ETHER, ZERO_ACCOUNT, type Hex, type Transfer } from "@fastpay/sdk";

import { orderFields, outputFields, unlockFields, type SignedField } from "../src/ui/signed";

interface Field {
  readonly label: string;
  readonly fields?: readonly Field[];
}
const FILE = new URL("../../docs/erc7730/eip712-fastpay.json", import.meta.url);
const formats = (JSON.parse(readFileSync(FILE, "utf8")) as { display: { formats: Record<string, { fields: Field[] }> } }).display.formats;

const ALICE = `0x${"00".repeat(12)}${"ab".repeat(20)}` as typeof ZERO_ACCOUNT;
const OUT: Hex = `0x${"cd".repeat(20)}`;
const INFO = { asset: ETHER, symbol: "ETH", decimals: 18, hasPermit: false, isUnknown: false, label: "ETH" };
const OUTPUT = { recipient: ALICE, amount: 10n ** 18n, memo: encodeMemo("rent") };
const COMMON = { sender: ALICE, asset: ETHER, sequence: 7n };

const labels = (fields: readonly SignedField[]): string[] => fields.map(({ label }) => label);
const described = (name: string): string[] => formats[name]?.fields.flatMap(({ label, fields }) => fields?.map((one) => one.label) ?? [label]) ?? [];

const ORDERS: Record<string, Transfer> = {
  Payment: { type: "payment", ...COMMON, ...OUTPUT },
  Redemption: { type: "redemption", ...COMMON, ...OUTPUT, recipient: OUT, fee: 1n },
  Payout: { type: "payout", ...COMMON, outputs: [OUTPUT], memo: encodeMemo("list") },
};

for (const [name, transfer] of Object.entries(ORDERS)) {
  test(`${name}: the labels are the descriptor's`, () => {
    const outputs = transfer.type === "payout" ? transfer.outputs.flatMap((output) => outputFields(output, INFO)) : [];
    expect(labels([...outputs, ...orderFields(transfer, INFO)])).toEqual(described(name));
  });
}

test("an unlock request: the labels are the descriptor's, and nothing else is described", () => {
  expect(labels(unlockFields(ALICE, 7n))).toEqual(described("UnlockRequest"));
  expect(Object.keys(formats)).toEqual([...Object.keys(ORDERS), "UnlockRequest"]);
});

test("accounts, memos and the token are shown both readably and as signed", () => {
  const payment = ORDERS.Payment as Transfer;
  expect(orderFields(payment, INFO).filter(({ raw }) => raw !== undefined)).toEqual([
    { label: "To", text: "0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB", raw: ALICE },
    { label: "Token", text: "ETH", raw: ETHER },
    { label: "Memo", text: "rent (public)", raw: encodeMemo("rent") },
    { label: "From", text: "0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB", raw: ALICE },
  ]);
});
