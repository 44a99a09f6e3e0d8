/** The hashes of the ledger's statements: BLAKE3 in key-derivation mode, with a context for each kind (docs/LEDGER.md). */

import { blake3 } from "@noble/hashes/blake3.js";

const text = new TextEncoder();

/** The kinds of statements that are hashed here. */
type Kind = "genesis" | "header" | "vote" | "state key" | "state value";

/** The hash of an encoded value, in the domain of its kind. */
export function digestOf(kind: Kind, encoding: Uint8Array): Uint8Array {
  return blake3(encoding, { context: text.encode(`fastpay ledger ${kind} v1`) });
}
