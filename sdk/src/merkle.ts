/**
 * The Merkle trees over the payments that an authority votes for with one signature, and over the leaves of a segment:
 * leaf = H(0x00 ‖ digest or leaf), node = H(0x01 ‖ left ‖ right), H = BLAKE3. A node without a right sibling is carried
 * up.
 */

import { blake3 } from "@noble/hashes/blake3.js";

import { concat, toBytes, toHex, type Hex } from "./bytes.js";

/** The longest path in a tree of 1,024 leaves. */
export const MERKLE_PATH_LENGTH_MAX = 10;

/** The path from a leaf to the root. */
export interface MerklePath {
  /** One bit for each sibling, from the leaf up: set if the sibling is on the left. */
  readonly directions: number;
  /** The siblings, from the leaf up. */
  readonly siblings: readonly Hex[];
}

/**
 * The root of the tree in which `digest` has this path. Undefined if the path is too long, or if a bit without a
 * sibling is set: a path has one encoding.
 */
export function merkleRoot(digest: Hex, { directions, siblings }: MerklePath): Hex | undefined {
  if (siblings.length > MERKLE_PATH_LENGTH_MAX) return undefined;
  return rootOf(toBytes(digest), BigInt(directions), siblings);
}

/** The longest path to the root of a segment. */
export const LEAF_PATH_LENGTH_MAX = 64;

/** The path from a leaf of a segment to its root, as in `MerklePath`. */
export interface LeafPath {
  readonly directions: bigint;
  readonly siblings: readonly Hex[];
}

/** The root of the tree in which a leaf has this path; undefined as for `merkleRoot`. */
export function leafRoot(leaf: Uint8Array, { directions, siblings }: LeafPath): Hex | undefined {
  return siblings.length > LEAF_PATH_LENGTH_MAX ? undefined : rootOf(leaf, directions, siblings);
}

function rootOf(leaf: Uint8Array, directions: bigint, siblings: readonly Hex[]): Hex | undefined {
  if (directions >> BigInt(siblings.length) !== 0n) return undefined;
  let hash = merkleHash(0, leaf);
  siblings.forEach((sibling, level) => {
    const other = toBytes(sibling);
    const siblingIsLeft = ((directions >> BigInt(level)) & 1n) === 1n;
    hash = siblingIsLeft ? merkleHash(1, other, hash) : merkleHash(1, hash, other);
  });
  return toHex(hash);
}

/** The hash of a leaf (kind 0), or of the node above two others (kind 1). */
export function merkleHash(kind: 0 | 1, ...parts: readonly Uint8Array[]): Uint8Array {
  return blake3(concat(Uint8Array.of(kind), ...parts));
}
