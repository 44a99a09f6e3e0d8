/**
 * A read of a cluster's state: a value, or its absence, with the path to the state root of a header that a quorum of the
 * cluster has certified (docs/LEDGER.md). Nothing is taken on the word of the member that answers.
 *
 * ```text
 *  value ─► leaf ─► siblings ─► state root ─► header ─► id ─► precommits of a quorum
 * ```
 */

import { concat, toBytes, toHex, type Hex } from "../bytes.js";
import { malformed } from "../decode.js";
import { FastPayError } from "../errors.js";
import { merkleHash } from "../merkle.js";
import { isEd25519Signature } from "../signatures.js";
import { BorshReader, byteList, integer } from "./borsh.js";
import { digestOf } from "./digests.js";
import type { Cluster } from "./genesis.js";

/** The longest encoding of a read: the longest value and path, and 171 votes. */
export const READ_BYTES_MAX = 128 * 1024;
const VERSION = 1;
/** The longest path: a hash has this many bits. */
const PATH_LENGTH_MAX = 256;
const NOTHING = new Uint8Array(32);
const PRECOMMIT = 1;

/** What a cluster's state had at a key, proven. */
export interface Reading {
  /** The height after which it was there. */
  readonly height: bigint;
  /** The height's time, in milliseconds since 1970. */
  readonly timeMs: bigint;
  /** The encoded value; undefined if there was none. */
  readonly value: Uint8Array | undefined;
}

/** What a path leads to: a value, its absence, or another entry (the hashes of its key and value). */
type Evidence = { readonly value: Uint8Array } | { readonly other: readonly [Uint8Array, Uint8Array] } | undefined;

interface Header {
  readonly deployment: Hex;
  readonly cluster: number;
  readonly height: bigint;
  readonly timeMs: bigint;
  readonly state: Hex;
  readonly id: Uint8Array;
}

interface Certificate {
  readonly round: number;
  readonly votes: readonly { readonly member: number; readonly signature: Hex }[];
}

/** The maximum number of headers that are known to be certified. */
const CERTIFIED_MAX = 64;

/**
 * Verifies what a member answered about the entry with this encoded key. `certified` has the ids of headers whose
 * certificate was verified, so that of each this is done once. Throws `malformed-answer` if it is no read, and
 * `invalid-certificate` if it proves nothing about that entry of this cluster.
 */
export function verifyRead(encoding: Uint8Array, key: Uint8Array, cluster: Cluster, certified = new Set<string>()): Reading {
  if (encoding.length > READ_BYTES_MAX) throw malformed("the read", `at most ${READ_BYTES_MAX} bytes long`);
  const read = new BorshReader(encoding, "the read");
  if (read.u8() !== VERSION) throw malformed("the read", `of version ${VERSION}`);
  const header = readHeader(read);
  const certificate = readCertificate(read);
  const evidence = readEvidence(read);
  const siblings = read.list(() => read.bytes(32));
  read.end();
  checkPlace(header, cluster);
  const id = toHex(header.id);
  if (!certified.has(id)) checkCertificate(header, certificate, cluster);
  if (certified.size >= CERTIFIED_MAX) certified.clear();
  certified.add(id);
  const root = rootOf(digestOf("state key", key), evidence, siblings);
  if (root === undefined || toHex(root) !== header.state) throw unproven("the value is not under the header's state root");
  const { height, timeMs } = header;
  return { height, timeMs, value: evidence !== undefined && "value" in evidence ? evidence.value : undefined };
}

function readHeader(read: BorshReader): Header {
  // The parent and what was executed; the messages, the maker and its signature: the votes cover them with the id.
  const start = read.bytes(32 + 4 + 8 + 8);
  const [parents, state, rest] = [read.bytes(64), read.bytes(32), read.bytes(32 + 1 + 64)];
  const fields = new BorshReader(start, "the header");
  const [deployment, cluster, height, timeMs] = [fields.hex(32), fields.u32(), fields.u64(), fields.u64()];
  const id = digestOf("header", concat(start, parents, state, rest));
  return { deployment, cluster, height, timeMs, state: toHex(state), id };
}

function readCertificate(read: BorshReader): Certificate {
  const round = read.u32();
  return { round, votes: read.list(() => ({ member: read.u8(), signature: read.hex(64) })) };
}

function readEvidence(read: BorshReader): Evidence {
  switch (read.u8()) {
    case 0:
      return { value: read.bytes(read.u32()) };
    case 1:
      return undefined;
    case 2:
      return { other: [read.bytes(32), read.bytes(32)] };
    default:
      throw malformed("the read", "of a known kind");
  }
}

function checkPlace(header: Header, { deployment, id }: Cluster): void {
  if (header.deployment !== deployment) throw unproven("the header is of another ledger");
  if (header.cluster !== id) throw unproven("the header is of a cluster that does not keep this entry");
}

/** Checks that a quorum of the cluster precommitted the header in the certificate's round. */
function checkCertificate(header: Header, { round, votes }: Certificate, cluster: Cluster): void {
  const { deployment, members, quorum } = cluster;
  if (votes.length !== quorum) throw unproven(`the certificate has ${votes.length} votes, not ${quorum}`);
  const place = concat(toBytes(deployment), integer(cluster.id, 4), integer(header.height, 8), integer(round, 4));
  const value = concat(Uint8Array.of(1), header.id);
  const digest = toHex(digestOf("vote", concat(place, Uint8Array.of(PRECOMMIT), value)));
  votes.forEach(({ member, signature }, at) => {
    const key = members[member];
    const before = votes[at - 1];
    if (key === undefined) throw unproven("a voter is no member");
    if (before !== undefined && before.member >= member) throw unproven("a vote is repeated, or not in order");
    if (!isEd25519Signature(signature, digest, key)) throw unproven("a vote is not valid for this header");
  });
}

/** The root of the state in which this is at a key; undefined if it is nothing about that key. */
function rootOf(key: Uint8Array, evidence: Evidence, siblings: readonly Uint8Array[]): Uint8Array | undefined {
  if (siblings.length > PATH_LENGTH_MAX) return undefined;
  const end = endOf(key, evidence, siblings.length);
  return (
    end &&
    siblings.reduceRight((hash, sibling, depth) => {
      const [left, right] = bitOf(key, depth) ? [sibling, hash] : [hash, sibling];
      return merkleHash(1, left, right);
    }, end)
  );
}

function endOf(key: Uint8Array, evidence: Evidence, depth: number): Uint8Array | undefined {
  if (evidence === undefined) return NOTHING;
  if ("value" in evidence) return merkleHash(0, key, digestOf("state value", byteList(evidence.value)));
  const [other, value] = evidence.other;
  const isOnPath = Array.from({ length: depth }, (_, at) => bitOf(key, at) === bitOf(other, at)).every(Boolean);
  return isOnPath && toHex(other) !== toHex(key) ? merkleHash(0, other, value) : undefined;
}

/** The bit of a hash at this depth, from the most significant. */
function bitOf(hash: Uint8Array, depth: number): boolean {
  return (((hash[depth >> 3] ?? 0) >> (7 - (depth & 7))) & 1) === 1;
}

function unproven(why: string): FastPayError {
  return new FastPayError("invalid-certificate", `the member's answer proves nothing: ${why}`, "ask the other members");
}
