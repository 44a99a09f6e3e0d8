import { describe, expect, test } from "vitest";

import { accountFromEd25519, accountFromEthereum } from "../../src/accounts.js";
import { isFastPayError } from "../../src/errors.js";
import { formatPaymentLink, formatWebLink, isPaymentLink, parsePaymentLink, type PaymentLink } from "../../src/link.js";
import { encodeMemo } from "../../src/memo.js";
import { ETHER } from "../../src/transfer.js";

const CONTRACT = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const domain = { chainId: 31337n, contract: CONTRACT.toLowerCase() as `0x${string}` };
const bob = accountFromEthereum(BOB);
const carol = accountFromEd25519(new Uint8Array(32).fill(7));
const token = `0x${"ab".repeat(20)}` as const;
const bare = `fastpay:${BOB}@31337/${CONTRACT}`;

describe("a link", () => {
  const cases: [string, PaymentLink, string][] = [
    ["of nothing but the account", { account: bob, domain, asset: ETHER }, bare],
    [
      "of a token with a text",
      { account: bob, domain, asset: token, amount: 25_000_000n, memo: encodeMemo("invoice 7 & 8") },
      `${bare}?asset=0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB&amount=25000000&text=invoice%207%20%26%208`,
    ],
    [
      "of bytes, with a label and an end",
      { account: bob, domain, asset: ETHER, memo: `0x${"c0".repeat(32)}`, label: "Café ☕", expires: 1_800_000_000n },
      `${bare}?memo=0x${"c0".repeat(32)}&label=Caf%C3%A9%20%E2%98%95&expires=1800000000`,
    ],
  ];
  test.each(cases)("%s is written and read", (_, link, text) => {
    expect(formatPaymentLink(link)).toBe(text);
    expect(parsePaymentLink(text)).toEqual(link);
  });

  test("to an Ed25519 account, within a page's URL, is read without the page", () => {
    const link = { account: carol, domain, asset: ETHER, amount: 1n };
    const web = formatWebLink("https://wallet.example/pay", link);
    expect(web).toMatch(/^https:\/\/wallet\.example\/pay#fastpay:fp1/);
    expect(parsePaymentLink(web)).toEqual(link);
    expect(isPaymentLink(web)).toBe(true);
    expect(isPaymentLink(BOB)).toBe(false);
  });

  test("is read with its scheme in capitals and with unknown parameters", () => {
    const link = parsePaymentLink(`FASTPAY:${BOB}@31337/${CONTRACT.toLowerCase()}?colour=red&amount=5`);
    expect(link).toEqual({ account: bob, domain, asset: ETHER, amount: 5n });
  });

  test("with a memo that only looks like text keeps its bytes", () => {
    // A BOM, a lone continuation byte, text that is itself 0x and 64 digits long, and a zero in the middle.
    for (const hex of ["efbbbf41", "80", "410042", "0a"]) {
      const memo = `0x${hex.padEnd(64, "0")}` as const;
      expect(parsePaymentLink(formatPaymentLink({ account: bob, domain, asset: ETHER, memo })).memo).toBe(memo);
    }
  });

  test("does not let its label change the direction of the text around it", () => {
    expect(parsePaymentLink(`${bare}?label=a%E2%80%AEb%0Ac`).label).toBe("a b c");
    expect(parsePaymentLink(`${bare}?label=${"x".repeat(80)}`).label).toHaveLength(64);
  });
});

describe("a link is refused:", () => {
  const wrong: [string, string][] = [
    ["another scheme", `ethereum:${BOB}@31337/${CONTRACT}`],
    ["no chain", `fastpay:${BOB}/${CONTRACT}`],
    ["no contract", `fastpay:${BOB}@31337`],
    ["a mistyped contract", `fastpay:${BOB}@31337/${CONTRACT.replace("5FbDB", "5fbDB")}`],
    ["a chain id beyond all", `fastpay:${BOB}@9999999999999999/${CONTRACT}`],
    ["a mistyped account", `fastpay:${BOB.replace("70997970C", "70997970c")}@31337/${CONTRACT}`],
    ["an amount in whole units", `${bare}?amount=1.5`],
    ["an amount in exponents", `${bare}?amount=1e18`],
    ["an amount below nothing", `${bare}?amount=-1`],
    ["an amount of nothing", `${bare}?amount=0`],
    ["an amount beyond 128 bits", `${bare}?amount=${1n << 128n}`],
    ["an asset that is no address", `${bare}?asset=USDC`],
    ["a memo that is too short", `${bare}?memo=0x01`],
    ["a text that is too long", `${bare}?text=${"x".repeat(33)}`],
    ["two memos", `${bare}?text=a&memo=0x${"00".repeat(32)}`],
    ["an amount said twice", `${bare}?amount=1&amount=2`],
    ["a parameter without a value", `${bare}?amount`],
    ["a damaged escape", `${bare}?text=%E`],
    ["what must be understood and is not", `${bare}?req-escrow=1`],
    ["an end that no clock shows", `${bare}?expires=4503599627370476`],
    ["what is too long", `${bare}?label=${"x".repeat(1_024)}`],
    ["nothing", ""],
  ];
  test.each(wrong)("%s", (_, text) => {
    let thrown: unknown;
    try {
      parsePaymentLink(text);
    } catch (error) {
      thrown = error;
    }
    expect(isFastPayError(thrown)).toBe(true);
  });

  test("a request that could not be read back", () => {
    expect(() => formatPaymentLink({ account: bob, domain, asset: ETHER, amount: 0n })).toThrow();
    const withLabel = (length: number): PaymentLink => ({ account: bob, domain, asset: ETHER, label: "☕".repeat(length) });
    expect(parsePaymentLink(formatPaymentLink(withLabel(64)))).toEqual(withLabel(64));
    expect(() => formatPaymentLink(withLabel(65))).toThrow("at most 64 are shown");
    const expires = 10n ** 30n;
    expect(() => formatPaymentLink({ ...withLabel(0), expires })).toThrow();
  });
});
