/**
 * Objects and proofs of private payments, from docs/PRIVATE.md alone and on other libraries than the Rust crates: so
 * that the page suffices to implement them, and the vectors do not repeat a mistake of one library.
 */

import { createDecipheriv } from "node:crypto";

import { grainGenConstants, poseidon } from "@noble/curves/abstract/poseidon.js";
import { bls12_381 } from "@noble/curves/bls12-381.js";
import { x25519 } from "@noble/curves/ed25519.js";
import { jubjub } from "@noble/curves/misc.js";
import { sha256, sha512 } from "@noble/hashes/sha2.js";
import { bech32m } from "@scure/base";
import { bytesToBigInt, bytesToHex, concat, concatBytes, hexToBytes, keccak256, stringToBytes, toBytes } from "viem";

import type { Hex } from "../../src/index.js";

const Fr = bls12_381.fields.Fr;
const { G1, G2 } = bls12_381;

export const fieldToHex = (element: bigint): Hex => bytesToHex(toBytes(Fr.create(element), { size: 32 }));

/** Poseidon of two, four or eight elements. */
export function hash(...elements: bigint[]): bigint {
  let permute = permutations.get(elements.length);
  if (permute === undefined) {
    permute = permutation(elements.length);
    permutations.set(elements.length, permute);
  }
  const [, output] = permute([BigInt(elements.length) << 64n, ...elements]);
  return output as bigint;
}

const permutations = new Map<number, (state: bigint[]) => bigint[]>();
const PARTIAL_ROUNDS: Record<number, number> = { 2: 55, 4: 56, 8: 57 };

function permutation(arity: number): (state: bigint[]) => bigint[] {
  const t = arity + 1;
  const shape = { Fp: Fr, t, roundsFull: 8, roundsPartial: PARTIAL_ROUNDS[arity] as number };
  // The flag by which the generator of constants tells S-boxes apart is 1 for the fifth power, too.
  const { roundConstants } = grainGenConstants({ ...shape, isSboxInverse: true });
  const indices = Array.from({ length: t }, (_, index) => BigInt(index));
  const mds = indices.map((row) => indices.map((column) => Fr.inv(row + column + BigInt(t))));
  return poseidon({ ...shape, sboxPower: 5, roundConstants, mds });
}

/** D(label, parts…): the low 253 bits of SHA-256 of all, each after its length. */
export function derive(label: string, ...parts: Hex[]): bigint {
  const all = [stringToBytes(label), ...parts.map((part) => hexToBytes(part))];
  const framed = all.flatMap((part) => [toBytes(part.length, { size: 8 }), part]);
  return lowBits(sha256(concatBytes(framed)));
}

export const lowBits = (digest: Uint8Array): bigint => bytesToBigInt(digest) & ((1n << 253n) - 1n);

const LABELS = { pk: 0x706bn, nf: 0x6e66n, cc: 0x6363n };
export const ownerOf = (key: bigint) => hash(key, LABELS.pk);
export const coinNullifier = (key: bigint, rho: bigint) => hash(Fr.add(key, LABELS.nf), rho);
export const accountNullifier = (key: bigint, rho: bigint) => hash(Fr.add(key, LABELS.cc), rho);

/** A signature of 48 bytes by a Jubjub key of 32. */
export function verifySignature(key: Hex, generator: Hex, message: bigint, domainAndKind: bigint, signature: Hex) {
  const bytes = hexToBytes(signature);
  const [challenge, response] = [bytesToBigInt(bytes.slice(0, 16)), bytesToBigInt(bytes.slice(16))];
  const point = jubjub.Point.fromBytes(hexToBytes(key));
  const by = 2n * challenge + 1n - (1n << 128n);
  const times = by < 0n ? point.negate().multiply(-by) : point.multiply(by);
  const nonce = jubjub.Point.fromBytes(hexToBytes(generator)).multiply(response).subtract(times);
  const expected = hash(nonce.x, point.x, message, domainAndKind) & ((1n << 128n) - 1n);
  return point.isTorsionFree() && expected === challenge;
}

/** The generator of signatures: the first hash that is a point, times 8. */
export function findGenerator(): Hex {
  const label = stringToBytes("fastpay/private/generator");
  for (let counter = 0; ; counter += 1) {
    const digest = sha256(concatBytes([toBytes(label.length, { size: 8 }), label, toBytes(counter, { size: 4 })]));
    try {
      const point = jubjub.Point.fromBytes(digest).clearCofactor();
      if (!point.is0()) return bytesToHex(point.toBytes());
    } catch {
      // Not a point.
    }
  }
}

/** The root of the list of these tags. */
export function sanctionsRoot(tags: bigint[]): bigint {
  const bounds = [0n, ...tags.toSorted((a, b) => (a < b ? -1 : 1)), (1n << 120n) - 1n];
  let level = bounds.slice(1).map((high, index) => hash(bounds[index] as bigint, high));
  let empty = hash(0n, 0n);
  for (let depth = 0; depth < 5; depth += 1) {
    const nodes = Array.from({ length: Math.ceil(level.length / 8) }, (_, node) =>
      hash(...Array.from({ length: 8 }, (_, child) => level[8 * node + child] ?? empty)),
    );
    empty = hash(...Array.from({ length: 8 }, () => empty));
    level = nodes;
  }
  return level[0] as bigint;
}

export const addressOf = (owner: bigint, notes: Hex): string =>
  bech32m.encode("fpp", bech32m.toWords(hexToBytes(concat([fieldToHex(owner), notes]))), 200);

/** What a note of this purpose holds, opened with the seed. */
export function openNote(purpose: "received" | "own", seed: Hex, note: Hex, nullifier: Hex): Uint8Array {
  const label = stringToBytes(`fastpay/private/note-${purpose}`);
  const secret = sha512(concatBytes([label, hexToBytes(seed)])).slice(0, 32);
  const recipient = x25519.getPublicKey(secret);
  const bytes = hexToBytes(note);
  const [ephemeral, viewTag, sealed] = [bytes.slice(0, 32), bytes[32], bytes.slice(33)];
  const shared = x25519.getSharedSecret(secret, ephemeral);
  const start = stringToBytes("fastpay/private/note-key");
  const key = sha512(concatBytes([start, label, shared, ephemeral, recipient, hexToBytes(nullifier)]));
  if (key[63] !== viewTag) throw new Error("the note is for another key");
  const cipher = createDecipheriv("chacha20-poly1305", key.slice(0, 32), new Uint8Array(12), { authTagLength: 16 });
  cipher.setAAD(hexToBytes(nullifier), { plaintextLength: sealed.length - 16 });
  cipher.setAuthTag(sealed.slice(-16));
  return Uint8Array.from([...cipher.update(sealed.slice(0, -16)), ...cipher.final()]);
}

export const noteKey = (seed: Hex): Hex =>
  bytesToHex(
    x25519.getPublicKey(
      sha512(concatBytes([stringToBytes("fastpay/private/note-received"), hexToBytes(seed)])).slice(0, 32),
    ),
  );

export const notesHash = (payment: Hex, own: Hex): Hex => keccak256(concat([payment, own]));

/** Groth16: e(A, B) = e(α, β) · e(inputs, γ) · e(C, δ). */
export function verifyProof(key: Hex, inputs: Hex[], proof: Hex): boolean {
  const g1 = (bytes: Uint8Array) => {
    const point = G1.Point.fromBytes(bytes);
    point.assertValidity();
    return point;
  };
  const g2 = (bytes: Uint8Array) => {
    const point = G2.Point.fromBytes(bytes);
    point.assertValidity();
    return point;
  };
  const bytes = hexToBytes(key).slice(2);
  const alpha = g1(bytes.slice(0, 96));
  const [beta, gamma, delta] = [96, 288, 480].map((start) => g2(bytes.slice(start, start + 192))) as [
    ReturnType<typeof g2>,
    ReturnType<typeof g2>,
    ReturnType<typeof g2>,
  ];
  const points = Array.from({ length: (bytes.length - 672) / 96 }, (_, index) =>
    g1(bytes.slice(672 + 96 * index, 768 + 96 * index)),
  );
  const scalars = [1n, ...inputs.map((input) => BigInt(input))];
  if (scalars.length !== points.length) return false;
  const sum = points.reduce(
    (total, point, index) => total.add(point.multiplyUnsafe(scalars[index] as bigint)),
    G1.Point.ZERO,
  );
  const proofBytes = hexToBytes(proof);
  const [a, b, c] = [g1(proofBytes.slice(0, 96)), g2(proofBytes.slice(96, 288)), g1(proofBytes.slice(288))];
  const product = bls12_381.pairingBatch([
    { g1: a, g2: b },
    { g1: alpha.negate(), g2: beta },
    { g1: sum.negate(), g2: gamma },
    { g1: c.negate(), g2: delta },
  ]);
  return bls12_381.fields.Fp12.eql(product, bls12_381.fields.Fp12.ONE);
}
