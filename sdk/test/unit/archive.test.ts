/** Pages of an archive are judged as Rust judges them: good ones, and one lie of each kind. */

import { describe, expect, test } from "vitest";

import { accountFromBytes32, FastPayError, makeCommittee } from "../../src/index.js";
import { verifyArchivePage, type ArchiveList } from "../../src/archive/page.js";
import { decodeArchivePage, placeText } from "../../src/archive/wire.js";
import { archive, domainOf, type ArchiveVectors } from "../support/vectors.js";

const domain = domainOf(archive.domain);
const committees = archive.committees.map((members, epoch) => makeCommittee(BigInt(epoch), members));

type Case = ArchiveVectors["cases"][number];

function listOf({ list }: Case): ArchiveList {
  if ("sent" in list) return { type: "sent", from: BigInt(list.sent) };
  const [checkpoint = "", entry = ""] = list.received.split(".");
  return { type: "received", from: { checkpoint: BigInt(checkpoint), entry: BigInt(entry) } };
}

function verify(of: Case) {
  const counting = committees.filter(({ epoch }) => of.counting.includes(Number(epoch)));
  return verifyArchivePage(decodeArchivePage(of.page, "the page"), accountFromBytes32(of.account), listOf(of), counting, domain);
}

function faultOf(of: Case): unknown {
  try {
    verify(of);
    return null;
  } catch (error) {
    return error instanceof FastPayError ? error.details["fault"] : error;
  }
}

test.each(archive.cases)("$name: $refused", (of) => {
  expect(faultOf(of)).toBe(of.refused);
});

test("there is a lie for each fault, but for a page that is too long to be decoded", () => {
  const faults = new Set(archive.cases.map(({ refused }) => refused).filter((refused) => refused !== null));
  const all = ["certificate", "gap", "no-header", "no-headers", "not-proven", "other-account", "other-leaf", "unlinked", "unordered"];
  expect([...faults].sort()).toEqual(all);
});

test("more checkpoints than a page may have are refused before they are hashed", () => {
  const page = decodeArchivePage(caseOf("all that an account sent").page, "the page");
  const headers = Array.from({ length: 2_049 }, () => page.headers[0] as (typeof page.headers)[number]);
  const verified = (): unknown => verifyArchivePage({ ...page, headers }, accountFromBytes32(caseOf("all that an account sent").account), { type: "sent", from: 0n }, committees, domain);
  expect(verified).toThrow(expect.objectContaining({ details: { fault: "too-many-headers" } }));
});

describe("what a page proves", () => {
  test("executed transfers and void numbers, with their checkpoints", () => {
    const { entries, next } = verify(caseOf("all that an account sent"));
    const kinds = entries.map(({ sequence, executed, checkpoint }) => [sequence, executed?.transfer.type, checkpoint]);
    expect(kinds).toEqual([
      [0n, "payment", 1n],
      [1n, "payment", 1n],
      [2n, "payout", 2n],
      [3n, undefined, 2n],
      [4n, "payment", 3n],
    ]);
    expect(next).toBeUndefined();
  });

  test("the place at which the list continues", () => {
    const { next } = verify(caseOf("a page of what it received"));
    expect(next && placeText(next)).toBe("1.2");
  });
});

describe("pages that are not decoded", () => {
  const good = caseOf("all that an account sent").page as Record<string, Record<string, unknown>[]>;
  const entry = (change: object) => ({ ...good, entries: [{ ...good["entries"]?.[0], ...change }] });
  test.each([
    ["a leaf that is not hexadecimal", entry({ leaf: "0x2" })],
    ["a leaf that is too long", entry({ leaf: `0x${"22".repeat(32_769)}` })],
    ["a path that is too long", entry({ siblings: Array(65).fill(`0x${"00".repeat(32)}`) })],
    ["directions of more than 64 bits", entry({ directions: (1n << 64n).toString() })],
    ["too many entries", { ...good, entries: Array(101).fill(good["entries"]?.[0]) }],
    ["too many headers", { ...good, headers: Array(2_049).fill(good["headers"]?.[0]) }],
    ["a place that is none", { ...good, next: "1.2.3" }],
    ["a place without an entry", { ...good, next: "1" }],
  ])("%s", (_, page) => {
    expect(() => decodeArchivePage(page, "the page")).toThrow(expect.objectContaining({ code: "malformed-answer" }));
  });
});

function caseOf(name: string): Case {
  const found = archive.cases.find((one) => one.name === name);
  if (found === undefined) throw new Error(`the vectors lack "${name}"`);
  return found;
}
