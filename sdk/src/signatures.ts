/** Signatures: verification of Ed25519 (ZIP-215), and recovery of secp256k1 signers as on Ethereum (low s only). */

import { ed25519 } from "@noble/curves/ed25519.js";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { keccak_256 } from "@noble/hashes/sha3.js";

import { isHex, toBytes, toHex, type Address, type Hex } from "./bytes.js";

/** Whether an Ed25519 signature is valid under the ZIP-215 rules. Never throws. */
export function isEd25519Signature(signature: Hex, digest: Hex, key: Hex): boolean {
  if (!isHex(signature, 64) || !isHex(key, 32)) return false;
  try {
    return ed25519.verify(toBytes(signature), toBytes(digest), toBytes(key), { zip215: true });
  } catch {
    return false;
  }
}

/**
 * The lower-case address whose key signed `digest`; undefined if the signature is invalid: not 65 bytes, v not 27 or
 * 28, s high (a second form of the same signature), or r not a point.
 */
export function recoverSigner(signature: Hex, digest: Hex): Address | undefined {
  if (!isHex(signature, 65)) return undefined;
  const bytes = toBytes(signature);
  const v = bytes[64];
  if (v !== 27 && v !== 28) return undefined;
  try {
    const parsed = secp256k1.Signature.fromBytes(bytes.subarray(0, 64), "compact");
    if (parsed.hasHighS()) return undefined;
    const key = parsed
      .addRecoveryBit(v - 27)
      .recoverPublicKey(toBytes(digest))
      .toBytes(false);
    return toHex(keccak_256(key.subarray(1)).subarray(12));
  } catch {
    return undefined;
  }
}

/**
 * Converts a wallet's secp256k1 signature to the only form that authorities accept: v 27 or 28 and low s. Undefined if
 * it is no such signature: contract wallets sign in forms of their own, and have no key that could own an account.
 */
export function normalizeSignature(signature: Hex): Hex | undefined {
  if (isHex(signature, 64)) return normalizeSignature(expandCompact(signature));
  if (!isHex(signature, 65)) return undefined;
  const bytes = toBytes(signature);
  const v = bytes[64] ?? 0;
  if (v === 0 || v === 1) bytes[64] = v + 27;
  try {
    const parsed = secp256k1.Signature.fromBytes(bytes.subarray(0, 64), "compact");
    if (parsed.hasHighS()) {
      const low = new secp256k1.Signature(parsed.r, secp256k1.Point.Fn.neg(parsed.s));
      bytes.set(low.toBytes("compact"));
      bytes[64] = 27 + 28 - (bytes[64] ?? 0);
    }
  } catch {
    return undefined;
  }
  return bytes[64] === 27 || bytes[64] === 28 ? toHex(bytes) : undefined;
}

/** Expands a compact signature (ERC-2098), in which v is the highest bit of s. */
function expandCompact(signature: Hex): Hex {
  const bytes = toBytes(signature);
  const top = bytes[32] ?? 0;
  bytes[32] = top & 0x7f;
  return `${toHex(bytes)}${top >= 0x80 ? "1c" : "1b"}`;
}
