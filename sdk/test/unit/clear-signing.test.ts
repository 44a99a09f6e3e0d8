/** The descriptor by which wallets show what owners sign (ERC-7730) has each signed field, once. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { ETHER, STATEMENTS } from "../../src/index.js";
import { transferTypedData } from "../../src/eip712.js";
import { DOMAIN } from "../support/committee.js";

type Types = Readonly<Record<string, readonly { readonly name: string; readonly type: string }[]>>;
interface Field {
  readonly path: string;
  readonly label: string;
  readonly format: string;
  readonly params?: { readonly tokenPath?: string; readonly nativeCurrencyAddress?: readonly string[] };
}
/** The fields of each struct in a list. */
interface Group {
  readonly path: string;
  readonly fields: readonly Field[];
}
interface Descriptor {
  readonly context: {
    readonly eip712: {
      readonly domain: Readonly<Record<string, string>>;
      readonly schemas: readonly { readonly primaryType: string; readonly types: Types }[];
    };
  };
  readonly display: { readonly formats: Readonly<Record<string, { readonly intent: string; readonly fields: readonly (Field | Group)[]; readonly required: readonly string[] }>> };
}

const FILE = new URL("../../../docs/erc7730/eip712-fastpay.json", import.meta.url);
const { context, display } = JSON.parse(readFileSync(FILE, "utf8")) as Descriptor;
/** What owners sign: orders, and requests to unlock. */
const SIGNED = ["Payment", "Redemption", "Payout", "UnlockRequest"] as const;

/** The paths of a struct's fields, with those of the structs in its lists. */
function pathsOf(types: Types, name: string, prefix = ""): string[] {
  return (types[name] ?? []).flatMap(({ name: field, type }) =>
    type.endsWith("[]") ? pathsOf(types, type.slice(0, -2), `${prefix}${field}.[].`) : [`${prefix}${field}`],
  );
}

test("the domain is the one that is signed", () => {
  const asset = ETHER;
  const payment = { type: "payment", sender: `0x${"00".repeat(32)}`, recipient: `0x${"00".repeat(32)}`, asset, amount: 1n, sequence: 0n, memo: `0x${"00".repeat(32)}` };
  const { domain } = transferTypedData(DOMAIN, payment as never);
  expect(domain).toMatchObject(context.eip712.domain);
  const [schema] = context.eip712.schemas;
  expect(schema?.types["EIP712Domain"]?.map(({ name }) => name)).toEqual(Object.keys(domain ?? {}));
});

test.each(SIGNED)("%s: its types are those that are signed, and each field is shown once", (name) => {
  const schema = context.eip712.schemas.find(({ primaryType }) => primaryType === name);
  const { EIP712Domain: _, ...types } = schema?.types ?? {};
  const signed = name === "Payout" ? { Payout: STATEMENTS.Payout, Output: STATEMENTS.Output } : { [name]: STATEMENTS[name] };
  expect(types).toEqual(signed);
  const { fields: entries = [], required = [] } = display.formats[name] ?? {};
  const fields = entries.flatMap((entry) =>
    "fields" in entry ? entry.fields.map((field) => ({ ...field, path: `${entry.path}.${field.path}` })) : [entry],
  );
  const paths = fields.map(({ path }) => path);
  expect([...paths].sort()).toEqual(pathsOf(types, name).sort());
  expect([...required].sort()).toEqual([...paths].sort());
  expect(new Set(fields.map(({ label }) => label)).size).toBe(fields.length);
  // Amounts are of the order's asset, in whole units; the zero address is ETH.
  const amounts = fields.filter(({ path }) => /(amount|fee)$/.test(path));
  for (const { format, params } of amounts) {
    expect(format).toBe("tokenAmount");
    expect(params?.tokenPath).toMatch(/^(#\.)?asset$/);
    expect(params?.nativeCurrencyAddress).toEqual([ETHER]);
  }
});

test("nothing else is described", () => {
  expect(Object.keys(display.formats)).toEqual([...SIGNED]);
});
