/** Reads of a ledger are believed exactly where Rust believes them: the vectors are those of both. */

import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { toBytes, toHex } from "../../src/bytes.js";
import { FastPayError, type Hex } from "../../src/index.js";
import { BorshReader, byteList, integer } from "../../src/ledger/borsh.js";
import { digestOf } from "../../src/ledger/digests.js";
import { readGenesis, type Cluster } from "../../src/ledger/genesis.js";
import { READ_BYTES_MAX, verifyRead } from "../../src/ledger/read-proof.js";
import { openLedger } from "../../src/ledger.js";
import { authorities } from "../support/committee.js";
import { VECTORS } from "../support/ledger.js";

const { description, deployment, states, refused } = VECTORS;
const { settlement, first, domain } = readGenesis(toBytes(description.genesis), description.committee);

test("the genesis names the deployment, the cluster, the first committee, and the domain", () => {
  const members = description.members.map(({ key }) => key);
  expect(settlement).toEqual({ deployment, id: 1, members, quorum: 3 });
  const keys = authorities(4).map(({ votingKey, redemptionKey }) => ({ votingKey, redemptionKey }));
  expect(first).toMatchObject({ epoch: 0n, members: keys, quorum: 3 });
  expect(domain).toEqual({ chainId: 0n, contract: description.contract });
});

for (const { name, height, time, reads } of states) {
  test(`what the ledger has after "${name}" is proven, and so is what it has not`, () => {
    expect(reads).toHaveLength(8);
    for (const { key, encoding, value } of reads) {
      const reading = verifyRead(toBytes(encoding), toBytes(key), settlement);
      expect(reading).toMatchObject({ height: BigInt(height), timeMs: BigInt(time) });
      expect(reading.value && toHex(reading.value)).toEqual(value ?? undefined);
    }
  });
}

test.each(refused)("$name is refused, as by Rust ($error)", ({ key, encoding }) => {
  expect(() => verifyRead(toBytes(encoding), toBytes(key), settlement)).toThrow(
    expect.objectContaining({ code: expect.stringMatching(/^(?:invalid-certificate|malformed-answer)$/) }),
  );
});

test("nothing is read beyond the bounds of a statement", () => {
  expect(() => verifyRead(new Uint8Array(READ_BYTES_MAX + 1), new Uint8Array(), settlement)).toThrow(/at most 131072 bytes/);
  // A list of items without bytes would be read four billion times.
  expect(() => new BorshReader(Uint8Array.of(255, 255, 255, 255, 0), "it").list(() => 0)).toThrow(/complete/);
  expect(() => new BorshReader(Uint8Array.of(2, 0), "it").option(() => 0)).toThrow(/one encoding/);
  expect(() => new BorshReader(Uint8Array.of(0), "it").end()).toThrow(/without a rest/);
});

/** A read that proves a value. */
const PROOF = states.flatMap(({ reads }) => reads).find(({ value }) => value !== null) ?? { key: "0x", encoding: "0x" };

test("what is known to be certified proves nothing else", () => {
  const [honest, key, certified] = [toBytes(PROOF.encoding), toBytes(PROOF.key), new Set<string>()];
  const reading = verifyRead(honest, key, settlement, certified);
  let accepted = 0;
  for (let at = 0; at < honest.length; at += 1) {
    const altered = honest.slice();
    altered[at] = (altered[at] ?? 0) ^ 1;
    try {
      expect(verifyRead(altered, key, settlement, certified), `byte ${at}`).toEqual(reading);
      accepted += 1;
    } catch (error) {
      expect(error, `byte ${at}`).toBeInstanceOf(FastPayError);
    }
  }
  // The round, and each vote's member and signature.
  expect(accepted).toBe(4 + settlement.quorum * 65);
});

test("a change of any byte of a read is refused", () => {
  const { key, encoding } = PROOF;
  const honest = toBytes(encoding);
  for (let at = 0; at < honest.length; at += 1) {
    const altered = honest.slice();
    altered[at] = (altered[at] ?? 0) ^ 1;
    expect(() => verifyRead(altered, toBytes(key), settlement), `byte ${at}`).toThrow(FastPayError);
  }
});

interface LedgerVectors {
  readonly deployment: Hex;
  readonly contractOfCommittee7: Hex;
  readonly cluster: number;
  readonly members: readonly Hex[];
  readonly votes: readonly { height: number; round: number; precommit: boolean; value: Hex | null; digest: Hex }[];
  readonly header: { readonly encoding: Hex; readonly id: Hex };
  readonly reads: readonly { name: string; about: Hex; encoding: Hex; verdict: { Ok: Hex | null } | { Err: string } }[];
}

test("the statements of vectors/ledger.json have the same hashes and verdicts", () => {
  const url = new URL("../../../vectors/ledger.json", import.meta.url);
  const vectors: LedgerVectors = JSON.parse(readFileSync(url, "utf8"));
  expect(toHex(digestOf("header", toBytes(vectors.header.encoding).subarray(1)))).toBe(vectors.header.id);
  for (const { height, round, precommit, value, digest } of vectors.votes) {
    const fields = [toBytes(vectors.deployment), integer(vectors.cluster, 4), integer(height, 8), integer(round, 4)];
    const about = value === null ? Uint8Array.of(0) : Uint8Array.of(1, ...toBytes(value));
    const statement = Uint8Array.from([...fields, Uint8Array.of(Number(precommit)), about].flatMap((part) => [...part]));
    expect(toHex(digestOf("vote", statement))).toBe(digest);
  }
  const cluster: Cluster = { deployment: vectors.deployment, id: vectors.cluster, members: vectors.members, quorum: 3 };
  for (const { name, about, encoding, verdict } of vectors.reads) {
    const judge = () => verifyRead(toBytes(encoding), toBytes(about), cluster).value;
    if ("Err" in verdict) expect(judge, name).toThrow(expect.objectContaining({ code: "invalid-certificate" }));
    else expect(judge(), name).toEqual(verdict.Ok === null ? undefined : toBytes(verdict.Ok));
  }
  expect(vectors.reads.filter(({ verdict }) => "Ok" in verdict)).toHaveLength(2);
});

/** The genesis with one text in place of another, both hexadecimal. */
function genesisWith(from: string, to: string): Uint8Array {
  expect(description.genesis).toContain(from);
  return toBytes(description.genesis.replace(from, to));
}

const [member = "", other = ""] = description.members.map(({ key }) => key.slice(2));

test.each([
  ["a member twice", genesisWith(member, other)],
  ["a key with which anybody could sign", genesisWith(member, `01${"00".repeat(31)}`)],
  ["a key that is no point", genesisWith(member, "02".repeat(32))],
  ["too few members", genesisWith(`04000000${member}`, `03000000${member}`)],
  ["a byte more", toBytes(`${description.genesis}00`)],
  ["a byte less", toBytes(description.genesis.slice(0, -2))],
  ["nothing", new Uint8Array()],
])("a genesis with %s is refused", (_, genesis) => {
  expect(() => readGenesis(genesis, 0)).toThrow(expect.objectContaining({ code: "invalid-argument" }));
});

test("the deployment is the hash of the whole genesis, to its last byte", () => {
  const genesis = toBytes(description.genesis);
  expect(toHex(digestOf("genesis", byteList(genesis)))).toBe(deployment);
  genesis[genesis.length - 1] = 1;
  expect(readGenesis(genesis, 0).domain.contract).not.toBe(description.contract);
});

const STRANGER = `0x${"11".repeat(32)}` as const;

test.each([
  ["another contract", { contract: `0x${"ee".repeat(20)}` as const }, /genesis and committee give 0x/],
  ["another genesis", { genesis: `0x${description.genesis.slice(2, -2)}01` as const }, /genesis and committee give 0x/],
  ["a committee that is not there", { committee: 1 }, /has no committee 1/],
  ["half a committee", { committee: 0.5 }, /missing or malformed/],
  ["no genesis", { genesis: undefined as never }, /missing or malformed/],
  ["a member that is none", { members: [...description.members.slice(1), { key: STRANGER, http: "http://x.example" }] }, /no member of the settlement cluster/],
  ["a member listed twice", { members: [...description.members, ...description.members] }, /listed twice/],
  ["one address for two members", { members: description.members.map(({ key }) => ({ key, http: "http://x.example" })) }, /listed twice/],
  ["too few members", { members: description.members.slice(0, 1) }, /lists 1 members; 2 must agree/],
  ["what is no address", { members: description.members.map(({ key }) => ({ key, http: "ledger" })) }, /not the base/],
])("a description with %s is refused", (_, change, message) => {
  const open = () => openLedger({ ...description, ...change });
  expect(open).toThrow(expect.objectContaining({ code: "invalid-argument" }));
  expect(open).toThrow(message);
});

test("a description is taken with the fields of later versions, and with two of four members", () => {
  const later = { ...description, members: description.members.slice(2), color: "blue" };
  expect(openLedger(later)).toMatchObject({ kind: "ledger", domain });
});
