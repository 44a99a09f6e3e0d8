/**
 * The genesis of a ledger, as far as a client of a FastPay committee needs it: the members of the settlement cluster and
 * the committee of epoch 0. Its hash is the deployment, which every signature covers.
 */

import { ed25519 } from "@noble/curves/ed25519.js";
import { keccak_256 } from "@noble/hashes/sha3.js";

import { concat, toBytes, toHex, type Hex } from "../bytes.js";
import { COMMITTEE_SIZE_MAX, COMMITTEE_SIZE_MIN, makeCommittee, thresholdsOf, type Committee } from "../committee.js";
import { FastPayError } from "../errors.js";
import type { Domain } from "../transfer.js";
import { BorshReader, byteList } from "./borsh.js";
import { digestOf } from "./digests.js";

/** The members of a cluster, which the genesis fixes. */
export interface Cluster {
  /** The hash of the genesis. */
  readonly deployment: Hex;
  /** Its number in the genesis. */
  readonly id: number;
  /** Ed25519 keys in their order, lower case. */
  readonly members: readonly Hex[];
  /** Exactly so many votes certify. */
  readonly quorum: number;
}

/** A FastPay committee on a ledger. */
export interface LedgerFacts {
  /** The cluster that keeps the committee. */
  readonly settlement: Cluster;
  /** The committee of epoch 0. */
  readonly first: Committee;
  /** The domain of all signatures of the committee: chain id 0, and an address that no contract has. */
  readonly domain: Domain;
}

/** Reads an encoded genesis. Throws `invalid-argument` if it is none, or has no such FastPay committee. */
export function readGenesis(encoding: Uint8Array, committee: number): LedgerFacts {
  const deployment = digestOf("genesis", byteList(encoding));
  const { clusters, settlement, committees } = decode(encoding);
  const members = clusters.get(settlement);
  const first = committees.get(committee);
  if (members === undefined) throw unfit("its settlement cluster has no members");
  if (first === undefined) throw unfit(`it has no committee ${committee}`);
  const number = Uint8Array.of(committee >>> 24, committee >>> 16, committee >>> 8, committee);
  const contract = toHex(keccak_256(concat(deployment, number)).subarray(12));
  return { settlement: clusterOf(toHex(deployment), settlement, members), first, domain: { chainId: 0n, contract } };
}

function decode(encoding: Uint8Array) {
  const read = new BorshReader(encoding, "the genesis");
  try {
    const clusters = new Map(read.list(() => [read.u32(), read.list(() => read.hex(32))] as const));
    const settlement = read.u32();
    // The shards: one, and others.
    read.u32();
    read.list(() => read.u32());
    // Each namespace with its writer.
    read.list(() => [read.bytes(read.u32()), read.bytes(32)]);
    const committees = new Map(read.list(() => [read.u32(), readFounded(read)] as const));
    // All money: owner, asset and amount.
    read.list(() => read.bytes(32 + 20 + 16));
    read.end();
    return { clusters, settlement, committees };
  } catch (cause) {
    throw unfit("it is malformed", cause);
  }
}

/** The committee of epoch 0, without its guardian, the five delays in milliseconds, and the bond of an unlock. */
function readFounded(read: BorshReader): Committee {
  const first = readCommittee(read);
  read.bytes(20 + 5 * 8 + 20 + 16);
  return first;
}

/** A committee as the ledger encodes it. Throws `malformed-answer` or `invalid-committee`. */
export function readCommittee(read: BorshReader): Committee {
  const epoch = read.u64();
  return makeCommittee(epoch, read.list(() => ({ votingKey: read.hex(32), redemptionKey: read.hex(20) })));
}

function clusterOf(deployment: Hex, id: number, keys: readonly Hex[]): Cluster {
  const size = keys.length;
  const members = [...new Set(keys)].sort();
  const isSize = size >= COMMITTEE_SIZE_MIN && size <= COMMITTEE_SIZE_MAX;
  if (!isSize || members.length < size || !members.every(isSafe)) {
    throw unfit("the keys of its settlement cluster are not those of one");
  }
  return { deployment, id, members, quorum: thresholdsOf(size).quorum };
}

/** Whether only the owner of a key can sign with it. */
function isSafe(key: Hex): boolean {
  try {
    return !ed25519.Point.fromBytes(toBytes(key), true).isSmallOrder();
  } catch {
    return false;
  }
}

function unfit(why: string, cause?: unknown): FastPayError {
  const action = "ask the operator for the description of the right ledger";
  return new FastPayError("invalid-argument", `the ledger's genesis cannot be used: ${why}`, action, { cause });
}
