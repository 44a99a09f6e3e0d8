/** Texts: accounts, amounts, memos, and signatures as wallets return them. */

import { describe, expect, test } from "vitest";

import {
  accountFromEthereum,
  AMOUNT_MAX,
  checkTransfer,
  decodeMemo,
  encodeMemo,
  ETHER,
  formatAmount,
  makeCommittee,
  NO_MEMO,
  normalizeSignature,
  parseAccount,
  parseAmount,
  recoverSigner,
  SEQUENCE_MAX,
  type Hex,
} from "../../src/index.js";
import { isPlainText, plainText } from "../../src/plain-text.js";
import { DOMAIN, Keys, paymentOf, person } from "../support/committee.js";

describe("amounts", () => {
  test.each([
    ["0", 18, 0n],
    ["1", 18, 10n ** 18n],
    ["0.000000000000000001", 18, 1n],
    ["007.50", 2, 750n],
    ["1.500000", 1, 15n],
    ["12.0", 0, 12n],
    ["9007199254740993", 0, 9_007_199_254_740_993n],
    [AMOUNT_MAX.toString(), 0, AMOUNT_MAX],
  ])("%s with %i decimals", (text, decimals, units) => {
    expect(parseAmount(text, decimals)).toBe(units);
    expect(parseAmount(formatAmount(units, decimals), decimals)).toBe(units);
  });

  test.each(["", ".", "1.", ".5", "-1", "+1", "1e3", "1,000", "1_000", " 1", "1 ", "0x10", "1.2.3", "٣", "NaN"])(
    "%j is none",
    (text) => expect(() => parseAmount(text, 18)).toThrow(expect.objectContaining({ code: "invalid-amount" })),
  );

  test.each([
    ["0.001", 2],
    [(AMOUNT_MAX + 1n).toString(), 0],
    ["1", 39],
    ["1".repeat(1_000), 0],
  ])("%s with %i decimals is refused", (text, decimals) =>
    expect(() => parseAmount(text, decimals)).toThrow(expect.objectContaining({ code: "invalid-amount" })),
  );

  test("are shown without superfluous zeros, negative ones with a sign", () => {
    expect(formatAmount(1_500_000n, 6)).toBe("1.5");
    expect(formatAmount(-1_050n, 3)).toBe("-1.05");
    expect(formatAmount(100n, 0)).toBe("100");
  });
});

describe("memos", () => {
  test("are encoded as the command line does", () => {
    expect(encodeMemo("")).toBe(NO_MEMO);
    expect(encodeMemo("invoice 7")).toBe(`0x696e766f6963652037${"00".repeat(23)}`);
    expect(encodeMemo(`0x${"AB".repeat(32)}`)).toBe(`0x${"ab".repeat(32)}`);
    expect(encodeMemo("é".repeat(16))).toBe(`0x${"c3a9".repeat(16)}`);
  });

  test.each(["x".repeat(33), "é".repeat(17), `0x${"zz".repeat(32)}`])("%s is refused", (text) =>
    expect(() => encodeMemo(text)).toThrow(expect.objectContaining({ code: "invalid-argument" })),
  );

  test("are shown as text if they are text", () => {
    expect(decodeMemo(encodeMemo("invoice 7"))).toBe("invoice 7");
    expect(decodeMemo(NO_MEMO)).toBe("");
    expect(decodeMemo(encodeMemo("a\u2028b"))).toBe(encodeMemo("a\u2028b"));
    for (const memo of [`0x${"ff".repeat(32)}`, `0x0a${"00".repeat(31)}`, `0x610062${"00".repeat(29)}`, `0x61e280ae62${"00".repeat(27)}`] as Hex[]) {
      expect(decodeMemo(memo)).toBe(memo);
    }
  });
});

test("untrusted text is shown on one line without direction changes; a memo is shown as text if that changes nothing", () => {
  for (const hidden of ["\n", "\0", "\u200d", "\u202e", "\u2028", "\u2029", "\ufeff"]) {
    expect(plainText(`${hidden}US${hidden}${hidden} DC${hidden}`, 16)).toBe("US DC");
    expect(isPlainText(`US${hidden}DC`)).toBe(false);
  }
  expect(isPlainText("café ☕ 100 %")).toBe(true);
  expect(plainText("café ☕ 100 %", 6)).toBe("café ☕");
  expect(plainText("😀".repeat(9), 2)).toBe("😀😀");
});

test("mistyped addresses are refused, and those in a single case accepted", () => {
  const right = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045";
  const account = accountFromEthereum(right);
  expect(parseAccount(right.toLowerCase())).toBe(account);
  expect(parseAccount(`0x${right.slice(2).toUpperCase()}`)).toBe(account);
  for (const wrong of [
    "0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045",
    "0x",
    "0x12",
    `${right}00`,
    "fp1",
    right.slice(2),
  ]) {
    expect(() => parseAccount(wrong)).toThrow(expect.objectContaining({ code: "invalid-account" }));
  }
});

describe("signatures of wallets", () => {
  const transfer = {
    ...paymentOf(person("a").account, person("b").account, 5n, 0n),
    type: "redemption" as const,
    recipient: ETHER,
    fee: 0n,
  };
  const keys = new Keys("a wallet");
  const { signature } = keys.vote(0n, transfer);
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const [r, s, v] = [signature.slice(2, 66), BigInt(`0x${signature.slice(66, 130)}`), signature.slice(130)];
  const hex = (value: bigint): string => value.toString(16).padStart(64, "0");
  const otherV = v === "1b" ? "1c" : "1b";

  test.each([
    ["as it is", signature],
    ["v counted from 0", `0x${r}${hex(s)}${v === "1b" ? "00" : "01"}`],
    ["s high", `0x${r}${hex(order - s)}${otherV}`],
    ["s high and v counted from 0", `0x${r}${hex(order - s)}${otherV === "1b" ? "00" : "01"}`],
    ["64 bytes (ERC-2098)", `0x${r}${hex(s | (v === "1c" ? 1n << 255n : 0n))}`],
  ])("%s", (_name, given) => expect(normalizeSignature(given as Hex)).toBe(signature));

  test.each(["0x", `0x${"11".repeat(66)}`, `0x${r}${hex(s)}1d`, `0x${"00".repeat(64)}1b`, `0x${r}${hex(order)}1b`])(
    "%s is none",
    (given) => expect(normalizeSignature(given as Hex)).toBeUndefined(),
  );

  test("only one form of each is recovered", () => {
    const digest: Hex = `0x${"11".repeat(32)}`;
    expect(recoverSigner(`0x${r}${hex(s)}${v}`, digest)).toBeDefined();
    expect(recoverSigner(`0x${r}${hex(order - s)}${otherV}`, digest)).toBeUndefined();
    expect(recoverSigner(`0x${r}${hex(s)}00`, digest)).toBeUndefined();
  });
});

describe("transfers that are never allowed", () => {
  const payment = paymentOf(person("a").account, person("b").account, 5n, 0n);
  test.each([
    ["nothing", { amount: 0n }],
    ["less than nothing", { amount: -1n }],
    ["more than fits", { amount: AMOUNT_MAX + 1n }],
    ["the last number", { sequence: SEQUENCE_MAX + 1n }],
    ["to nobody", { recipient: accountFromEthereum(ETHER) }],
    ["to the contract", { recipient: accountFromEthereum(DOMAIN.contract) }],
    ["of no asset", { asset: "0x12" }],
    ["with no memo's bytes", { memo: "0x" }],
    ["with a fee above the amount", { type: "redemption", recipient: `0x${"be".repeat(20)}`, fee: 6n }],
  ])("%s", (_name, changed) =>
    expect(() => checkTransfer({ ...payment, ...changed } as never, DOMAIN)).toThrow(
      expect.objectContaining({ code: "invalid-transfer" }),
    ),
  );
});

describe("committees", () => {
  const keys = (count: number) => Array.from({ length: count }, (_, i) => new Keys(`member ${i}`));

  test("any two quorums share an honest authority, and the honest ones are a quorum", () => {
    const many = Array.from({ length: 255 }, (_, i) => {
      const byte = (i + 1).toString(16).padStart(2, "0");
      return { votingKey: `0x${byte.repeat(32)}` as Hex, redemptionKey: `0x${byte.repeat(20)}` as Hex };
    });
    for (let n = 4; n <= 255; n += 1) {
      const { faultsTolerated: f, quorum } = makeCommittee(0n, many.slice(0, n));
      expect(f).toBe(Math.floor((n - 1) / 3));
      expect(2 * quorum - n).toBeGreaterThan(f);
      expect(quorum).toBeLessThanOrEqual(n - f);
      if (n === 3 * f + 1) expect(quorum).toBe(2 * f + 1);
    }
  });

  test.each([
    ["three", () => keys(3)],
    ["one twice", () => [...keys(4), ...keys(1)]],
    [
      "a zero key",
      () => [...keys(3), { votingKey: `0x${"0".repeat(64)}` as Hex, redemptionKey: `0x${"1".repeat(40)}` as Hex }],
    ],
    [
      "a redemption key twice",
      () => keys(4).map(({ votingKey }) => ({ votingKey, redemptionKey: `0x${"1".repeat(40)}` as Hex })),
    ],
  ])("%s is none", (_name, members) =>
    expect(() => makeCommittee(0n, members())).toThrow(expect.objectContaining({ code: "invalid-committee" })),
  );
});
