/**
 * The Merkle tree over the payments that an authority votes for with one signature: leaf = H(0x00 ‖ digest), node =
 * H(0x01 ‖ left ‖ right), H = BLAKE3. A node without a right sibling is carried up.
 */

import { blake3 } from "@noble/hashes/blake3.js";

import { concat, toBytes, toHex, type Hex } from "./bytes.js";

/** The longest path in a tree of 1,024 leaves. */
export const MERKLE_PATH_LENGTH_MAX = 10;

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

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
export function merkleRoot(digest: Hex, path: MerklePath): Hex | undefined {
  const { directions, siblings } = path;
  if (siblings.length > MERKLE_PATH_LENGTH_MAX || directions >>> siblings.length !== 0) return undefined;
  let hash = blake3(concat(LEAF, toBytes(digest)));
  siblings.forEach((sibling, level) => {
    const other = toBytes(sibling);
    const siblingIsLeft = ((directions >>> level) & 1) === 1;
    hash = blake3(siblingIsLeft ? concat(NODE, other, hash) : concat(NODE, hash, other));
  });
  return toHex(hash);
}
