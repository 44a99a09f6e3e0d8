/** Lists of payments: read as the command line reads them, checked whole, and split into as few orders as can be. */

import { describe, expect, test } from "vitest";

import {
  accountFromEthereum,
  AMOUNT_MAX,
  decodeMemo,
  ETHER,
  formatAccount,
  formatListResult,
  NO_MEMO,
  planList,
  readPayList,
  ZERO_ACCOUNT,
  type FastPayError,
  type ListError,
  type ListStatus,
  type PayListLine,
} from "../../src/index.js";
import { PRIVATE_POOL } from "../../src/accounts.js";
import { pageName } from "../../src/pay-list.js";
import { DOMAIN, person } from "../support/committee.js";

const [bob, carol] = [person("bob").account, person("carol").account];
const TOKEN = "0x7070707070707070707070707070707070707070";
const options = {
  domain: DOMAIN,
  asset: ETHER,
  decimals: async (asset: string) => (asset === ETHER ? 18 : 6),
};

async function errorsOf(asked: Promise<unknown>): Promise<readonly ListError[]> {
  const error = await asked.then(
    () => undefined,
    (thrown: FastPayError) => thrown,
  );
  expect(error).toMatchObject({ code: "invalid-list" });
  return error?.details["errors"] as ListError[];
}

function line(change: Partial<PayListLine> = {}): PayListLine {
  return { recipient: bob, asset: ETHER, amount: 1n, ...change };
}

test("recipients are accounts or their texts, which make the same list", () => {
  const texts = planList([line({ recipient: formatAccount(bob) }), line({ recipient: TOKEN })], 256, DOMAIN, carol);
  const accounts = planList([line(), line({ recipient: accountFromEthereum(TOKEN) })], 256, DOMAIN, carol);
  expect(texts).toEqual(accounts);
  const faults = (recipient: string) => errorsOf(Promise.resolve().then(() => planList([line({ recipient })], 256, DOMAIN, carol)));
  return Promise.all([
    expect(faults(formatAccount(carol))).resolves.toMatchObject([{ line: 1, fault: "own-account" }]),
    expect(faults("0x7099")).resolves.toMatchObject([{ line: 1, fault: "recipient" }]),
  ]);
});

describe("reading", () => {
  test("recipient, amount and memo, with comments, empty lines, quotes and spaces", async () => {
    const text = `\ufeff# people\r\n\r\n${formatAccount(bob)}, 1.5 ,"wages, ""May"""\r\n# more\n${formatAccount(carol)},2\n`;
    const { lines } = await readPayList(text, options);
    expect(lines.map(({ memo = "0x", ...rest }) => ({ ...rest, memo: decodeMemo(memo) }))).toEqual([
      { recipient: bob, asset: ETHER, amount: 15n * 10n ** 17n, memo: 'wages, "May"', line: 3 },
      { recipient: carol, asset: ETHER, amount: 2n * 10n ** 18n, memo: "", line: 5 },
    ]);
  });

  test("the columns that the first line names", async () => {
    const text = `Memo,ASSET,Amount,recipient\nrent,${TOKEN},1.25,${formatAccount(bob)}\n,eth,3,${formatAccount(bob)}\n,,4,${formatAccount(bob)}`;
    const { lines } = await readPayList(text, { ...options, asset: TOKEN });
    expect(lines.map(({ asset, amount, line: number }) => [asset, amount, number])).toEqual([
      [TOKEN, 1_250_000n, 2],
      [ETHER, 3n * 10n ** 18n, 3],
      [TOKEN, 4_000_000n, 4],
    ]);
  });

  test("all errors are reported at once, with line numbers", async () => {
    const good = formatAccount(bob);
    const text = [
      `${good},1`,
      "",
      "# a comment",
      "nobody,1",
      `${good},`,
      `,1`,
      `${good},0`,
      `${good},1.0000000000000000001`,
      `${good},1e3`,
      `${DOMAIN.contract},1`,
      `0x0000000000000000000000000000000000000000,1`,
      `${good},1,${"m".repeat(33)}`,
      `${good},1,m,,x`,
      `0x70997970c51812dc3A010C7d01b50e0d17dc79C8,1`,
      `${good},1,"open`,
    ].join("\n");
    const errors = await errorsOf(readPayList(text, options));
    expect(errors.map(({ line: number, fault }) => [number, fault])).toEqual([
      [4, "recipient"],
      [5, "amount"],
      [6, "recipient"],
      [7, "zero-amount"],
      [8, "amount"],
      [9, "amount"],
      [10, "forbidden-recipient"],
      [11, "forbidden-recipient"],
      [12, "memo"],
      [13, "unreadable"],
      [14, "recipient"],
      [15, "unreadable"],
    ]);
    const named = await errorsOf(readPayList(`recipient,amount,asset\n${good},1,DOGE\n${good},1,0x12`, options));
    expect(named.map(({ line: number, fault }) => [number, fault])).toEqual([[2, "asset"], [3, "asset"]]);
  });

  test.each(["", "# nobody\n\n", "recipient,amount\n"])("an empty list is refused: %j", async (text) => {
    expect(await errorsOf(readPayList(text, options))).toMatchObject([{ line: undefined, fault: "no-outputs" }]);
  });

  test("its name is the hash of the file, as in the command line", async () => {
    const text = `${formatAccount(bob)},1\n`;
    const { name } = await readPayList(text, options);
    expect((await readPayList(new TextEncoder().encode(text), options)).name).toBe(name);
    expect((await readPayList(`${text}# again\n`, options)).name).not.toBe(name);
  });
});

describe("checking", () => {
  test.each([
    ["no payment", [], [[undefined, "no-outputs"]]],
    ["an amount of zero", [line(), line({ amount: 0n })], [[2, "zero-amount"]]],
    ["an amount below zero", [line({ amount: -1n, line: 7 })], [[7, "zero-amount"]]],
    ["an amount of more than 128 bits", [line({ amount: AMOUNT_MAX + 1n })], [[1, "amount-too-large"]]],
    ["a number for an amount", [line({ amount: 1 as never })], [[1, "malformed"]]],
    ["an asset that is none", [line({ asset: "0x12" })], [[1, "malformed"]]],
    ["a memo that is none", [line({ memo: "0x12" })], [[1, "malformed"]]],
    ["a recipient that is none", [line({ recipient: "bob" as never })], [[1, "recipient"]]],
    ["the zero account", [line({ recipient: ZERO_ACCOUNT })], [[1, "forbidden-recipient"]]],
    ["the contract", [line({ recipient: accountFromEthereum(DOMAIN.contract) })], [[1, "forbidden-recipient"]]],
    ["the private pool", [line({ recipient: PRIVATE_POOL })], [[1, "forbidden-recipient"]]],
    ["a sum of more than 128 bits", [line({ amount: AMOUNT_MAX }), line(), line({ asset: TOKEN })], [[undefined, "sum-too-large"]]],
    ["all of it at once", [line({ amount: 0n }), line(), line({ memo: "0x" })], [[1, "zero-amount"], [3, "malformed"]]],
  ])("%s", async (_name, lines, expected) => {
    const errors = await errorsOf((async () => planList(lines as PayListLine[], 256, DOMAIN))());
    expect(errors.map(({ line: number, fault }) => [number, fault])).toEqual(expected);
  });

  test.each([0, 257, 1.5, Number.NaN])("%s outputs in one order are refused", (maxOutputs) => {
    expect(() => planList([line()], maxOutputs, DOMAIN)).toThrow(expect.objectContaining({ code: "invalid-argument" }));
  });

  test("too many lines are refused", async () => {
    const errors = await errorsOf((async () => planList(Array.from({ length: 100_001 }, () => line()), 256, DOMAIN))());
    expect(errors).toMatchObject([{ fault: "too-many-lines" }]);
  });
});

describe("splitting", () => {
  test("the fewest orders possible: by asset, in the order of the lines", () => {
    const lines = Array.from({ length: 600 }, (_, i) => line({ amount: BigInt(i + 1), asset: i % 3 === 0 ? TOKEN : ETHER }));
    const { pages, payments } = planList(lines, 256, DOMAIN);
    expect(pages.map(({ asset, outputs }) => [asset, outputs.length])).toEqual([
      [ETHER, 256],
      [ETHER, 144],
      [TOKEN, 200],
    ]);
    for (const [i, { page, output, amount, asset, line: number }] of payments.entries()) {
      expect(number).toBe(i + 1);
      expect(pages[page]).toMatchObject({ asset });
      expect(pages[page]?.outputs[output]).toMatchObject({ amount });
    }
    expect(pages.reduce((sum, { total }) => sum + total, 0n)).toBe(lines.reduce((sum, { amount }) => sum + amount, 0n));
  });

  test("the longest list is split, too", () => {
    const { pages } = planList(Array.from({ length: 100_000 }, () => line()), 256, DOMAIN);
    expect(pages.map(({ outputs }) => outputs.length)).toEqual([...Array.from({ length: 390 }, () => 256), 160]);
  });

  test("two lists are equal if they pay the same in the same order", () => {
    const digest = (...lines: PayListLine[]) => planList(lines, 256, DOMAIN).digest;
    expect(digest(line({ line: 9 }))).toBe(digest(line({ memo: `0x${"0".repeat(64)}` })));
    expect(digest(line(), line({ recipient: carol }))).not.toBe(digest(line({ recipient: carol }), line()));
    expect(digest(line())).not.toBe(digest(line({ amount: 2n })));
  });

  test("pages are named as the command line names them", () => {
    // `name_of` in wallet/src/many.rs: keccak256("fastpay/payout" ‖ list ‖ page as 64 bits).
    expect(pageName(`0x${"4d".repeat(32)}`, 258)).toBe("0x6c28a3fedcddfa2091eff1fe5f47bbf2a7ba644f6488e9cbacec86afab7532e5");
  });
});

test("the result of each line is written as CSV", async () => {
  const { payments, pages } = planList([line({ memo: `0x${Buffer.from('a, "b"').toString("hex").padEnd(64, "0")}` as never }), line({ recipient: carol })], 1, DOMAIN);
  const [first, second] = pages.map((page) => ({ ...page, memo: NO_MEMO, sequence: undefined, digest: undefined, state: "open" as const }));
  if (first === undefined || second === undefined) throw new Error("there are no pages");
  const digest = `0x${"ab".repeat(32)}` as const;
  const status: ListStatus = {
    name: digest,
    account: bob,
    maxOutputs: 1,
    begunAtMs: undefined,
    payments,
    orders: [{ ...first, state: "settled", sequence: 7n, digest }, second],
  };
  expect((await formatListResult(status)).split("\n")).toEqual([
    "line,recipient,asset,units,memo,status,sequence,output,digest",
    `1,${formatAccount(bob)},${ETHER},1,"a, ""b""",settled,7,0,${digest}`,
    `2,${formatAccount(carol)},${ETHER},1,,open,,0,`,
    "",
  ]);
});
