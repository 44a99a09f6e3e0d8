/** Checkpoints of the committee and the leaves of their segments are read as Rust writes them, on every vector. */

import { describe, expect, test } from "vitest";

import { checkpointDigest, checkpointFault, leafRoot, makeCommittee, type Hex } from "../../src/index.js";
import { decodeLeaf } from "../../src/archive/leaf.js";
import { toBytes, toHex } from "../../src/bytes.js";
import { checkpointOf, checkpoints, domainOf } from "../support/vectors.js";

const domain = domainOf(checkpoints.domain);
const committee = makeCommittee(0n, checkpoints.committee);

test.each([checkpoints.first, checkpoints.checkpoint])("the digest of checkpoint $number", (checkpoint) => {
  expect(checkpointDigest(domain, checkpointOf(checkpoint))).toBe(checkpoint.digest);
});

describe("certificates", () => {
  test.each(checkpoints.certificates)("$name", ({ checkpoint, votes, valid }) => {
    expect(checkpointFault(checkpointOf(checkpoint), votes, committee, domain) === undefined).toBe(valid);
  });

  test("a vote of somebody else, in place of a member's", () => {
    const [{ checkpoint, votes } = never()] = checkpoints.certificates;
    const others = makeCommittee(0n, checkpoints.committee.map((member, i) => (i === 0 ? { ...member, votingKey: `0x${"15".repeat(32)}` } : member)));
    expect(checkpointFault(checkpointOf(checkpoint), votes, others, domain)).toMatch(/is not a member/);
  });
});

describe("paths", () => {
  test.each(checkpoints.leaves)("$name", ({ leaf, directions, siblings, root }) => {
    const path = { directions: BigInt(directions), siblings };
    expect(leafRoot(toBytes(leaf), path)).toBe(root);
    for (let bit = 0n; bit < 64n; bit += 1n) {
      expect(leafRoot(toBytes(leaf), { siblings, directions: path.directions ^ (1n << bit) })).not.toBe(root);
    }
    const sibling = siblings[0] as Hex;
    expect(leafRoot(toBytes(leaf), { directions: 0n, siblings: Array(64).fill(sibling) as Hex[] })).toBeDefined();
    expect(leafRoot(toBytes(leaf), { directions: 0n, siblings: Array(65).fill(sibling) as Hex[] })).toBeUndefined();
  });
});

/** The leaves of the segment's stream, in which an order has its authorization behind its leaf. */
function leavesOfStream(): Uint8Array[] {
  const stream = toBytes(checkpoints.segment);
  const leaves: Uint8Array[] = [];
  for (let at = 8; at < stream.length; ) {
    const length = new DataView(stream.buffer).getUint32(at, true);
    const item = stream.subarray(at + 4, at + 4 + length);
    const authorizations = item[0] === 0x22 ? [1 + 32 + 64, 1 + 65] : [0];
    const cuts = authorizations.map((behind) => item.subarray(0, length - behind));
    leaves.push(...cuts.filter((cut) => item[0] === 0x21 || decodeLeaf(cut) !== undefined));
    at += 4 + length;
  }
  return leaves;
}

describe("leaves", () => {
  const leaves = leavesOfStream();
  const numbers = leaves.map(decodeLeaf);

  test("each order and each void number of the segment is read, and nothing else", () => {
    const kinds = numbers.map((leaf) => (leaf?.type === "executed" ? leaf.transfer.type : leaf?.type));
    expect(kinds).toEqual([...Array(13).fill(undefined), "payment", "void", "redemption", "redemption", "redemption", "payout"]);
  });

  test("the order whose path is known is one of them, with its fields", () => {
    const known = checkpoints.leaves.find(({ name }) => name === "an order, in the segment") ?? never();
    expect(leaves.map(toHex)).toContain(known.leaf);
    expect(decodeLeaf(toBytes(known.leaf))).toEqual({ type: "executed", transfer: expect.objectContaining({ type: "payout", sequence: 4n }) });
  });

  test("a leaf has one encoding", () => {
    for (const [i, leaf] of leaves.entries()) {
      if (numbers[i] === undefined) continue;
      expect(decodeLeaf(leaf.subarray(0, -1))).toBeUndefined();
      expect(decodeLeaf(Uint8Array.of(...leaf, 0))).toBeUndefined();
      expect(decodeLeaf(Uint8Array.of(0x24, ...leaf.subarray(1)))).toBeUndefined();
      if (numbers[i]?.type === "executed") expect(decodeLeaf(Uint8Array.of(0x22, 3, ...leaf.subarray(2)))).toBeUndefined();
    }
    expect(decodeLeaf(new Uint8Array())).toBeUndefined();
  });

  test("a payout of no output or of too many is none", () => {
    const leaf = toBytes((checkpoints.leaves.find(({ name }) => name === "an order, in the segment") ?? never()).leaf);
    const [head, tail] = [leaf.subarray(0, 54), leaf.subarray(-40)];
    const output = leaf.subarray(58, 58 + 80);
    const payout = (count: number): Uint8Array =>
      Uint8Array.of(...head, count & 0xff, count >> 8, 0, 0, ...Array.from({ length: count }, () => [...output]).flat(), ...tail);
    expect([0, 1, 256, 257].map((count) => decodeLeaf(payout(count)) !== undefined)).toEqual([false, true, true, false]);
  });
});

function never(): never {
  throw new Error("the vectors lack an entry");
}
