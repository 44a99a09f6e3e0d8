/**
 * Ed25519 key files in the command line's format: Web3 secret storage, version 3 (scrypt, AES-128-CTR, a Keccak-256
 * MAC), with the key's account. `fastpay keys import --ed25519 --keystore FILE` reads these files, and this module
 * reads the files of `fastpay`.
 */

import { ed25519 } from "@noble/curves/ed25519.js";
import { scryptAsync } from "@noble/hashes/scrypt.js";
import { keccak_256 } from "@noble/hashes/sha3.js";

import { accountFromEd25519, formatAccount, parseAccount, type AccountId } from "./accounts.js";
import { concat, toBytes, toHex, type Hex } from "./bytes.js";
import { hex, literal, object, smallNumber, text, type Decoder } from "./decode.js";
import { FastPayError, messageOf } from "./errors.js";

/** The scrypt cost: 128 MiB and about a second for each guess of a passphrase. */
const COST = { n: 1 << 17, r: 8, p: 1 };
const DERIVED_BYTES = 32;
/** The maximum memory, in bytes, for which a file's scrypt parameters may ask: 128 · n · r. */
const MEMORY_MAX = 1 << 30;
const PARALLELISM_MAX = 16;
/** The maximum length of a key file. */
const TEXT_LENGTH_MAX = 1 << 16;

/** The unencrypted part of a key file. */
export interface KeyFile {
  /** The claimed account of its key. `decryptKeyFile` verifies it. */
  readonly account: AccountId;
  /** The file. */
  readonly text: string;
}

/** Bytes as hexadecimal digits without `0x`, as in the format. */
const digits =
  (length: number): Decoder<Hex> =>
  (value, at) =>
    hex(length)(`0x${text(value, at)}`, at);

const decodeFile = object({
  version: smallNumber(3),
  fastpay: object({ kind: literal("ed25519"), account: text }),
  crypto: object({
    cipher: literal("aes-128-ctr"),
    cipherparams: object({ iv: digits(16) }),
    ciphertext: digits(DERIVED_BYTES),
    kdf: literal("scrypt"),
    kdfparams: object({
      dklen: smallNumber(DERIVED_BYTES),
      n: smallNumber(MEMORY_MAX),
      r: smallNumber(MEMORY_MAX),
      p: smallNumber(PARALLELISM_MAX),
      salt: digits(32),
    }),
    mac: digits(32),
  }),
});

/** Encrypts the secret of an Ed25519 key under a passphrase. */
export async function encryptKeyFile(secret: Uint8Array, passphrase: string): Promise<KeyFile> {
  const account = accountFromEd25519(ed25519.getPublicKey(secret));
  const [salt, iv] = [random(32), random(16)];
  const derived = await derive(passphrase, salt, COST);
  const ciphertext = await aes(derived, iv, secret);
  const file = {
    crypto: {
      cipher: "aes-128-ctr",
      cipherparams: { iv: bare(iv) },
      ciphertext: bare(ciphertext),
      kdf: "scrypt",
      kdfparams: { dklen: DERIVED_BYTES, ...COST, salt: bare(salt) },
      mac: bare(macOf(derived, ciphertext)),
    },
    id: crypto.randomUUID(),
    version: 3,
    fastpay: { kind: "ed25519", account: formatAccount(account) },
  };
  return { account, text: JSON.stringify(file) };
}

/** Parses the unencrypted part of a key file. Throws `invalid-key-file`. */
export function readKeyFile(content: string): KeyFile {
  return { account: decode(content).account, text: content };
}

/** The secret of a key file. Throws `wrong-passphrase` or `invalid-key-file`. */
export async function decryptKeyFile(content: string, passphrase: string): Promise<Uint8Array> {
  const { account, storage } = decode(content);
  const { kdfparams, cipherparams, ciphertext, mac } = storage;
  const derived = await derive(passphrase, toBytes(kdfparams.salt), kdfparams);
  const encrypted = toBytes(ciphertext);
  if (toHex(macOf(derived, encrypted)) !== mac) {
    throw new FastPayError("wrong-passphrase", "the passphrase does not open this key", "try again");
  }
  const secret = await aes(derived, toBytes(cipherparams.iv), encrypted);
  if (accountFromEd25519(ed25519.getPublicKey(secret)) !== account) throw unusable("it contains the key of another account");
  return secret;
}

function decode(content: string) {
  if (content.length > TEXT_LENGTH_MAX) throw unusable("it is too long");
  try {
    const { version, fastpay, crypto: storage } = decodeFile(JSON.parse(content), "the file");
    const { dklen, n, r, p } = storage.kdfparams;
    if (version !== 3) throw new Error("its version is not 3");
    // An untrusted file must not make the key derivation exhaust the memory.
    const isPowerOfTwo = n > 1 && Number.isInteger(Math.log2(n));
    const isBounded = isPowerOfTwo && r > 0 && p > 0 && 128 * n * r <= MEMORY_MAX;
    if (dklen !== DERIVED_BYTES || !isBounded) throw new Error("its key derivation parameters are out of bounds");
    return { account: parseAccount(fastpay.account), storage };
  } catch (error) {
    throw unusable(messageOf(error));
  }
}

function derive(passphrase: string, salt: Uint8Array, { n, r, p }: typeof COST): Promise<Uint8Array> {
  return scryptAsync(new TextEncoder().encode(passphrase), salt, { N: n, r, p, dkLen: DERIVED_BYTES, maxmem: 2 * MEMORY_MAX });
}

/** Encrypts or decrypts: in counter mode these are the same. */
async function aes(derived: Uint8Array, iv: Uint8Array, bytes: Uint8Array): Promise<Uint8Array> {
  const raw = Uint8Array.from(derived.subarray(0, 16));
  const key = await crypto.subtle.importKey("raw", raw, "AES-CTR", false, ["encrypt"]);
  const counter = { name: "AES-CTR", counter: Uint8Array.from(iv), length: 128 };
  return new Uint8Array(await crypto.subtle.encrypt(counter, key, Uint8Array.from(bytes)));
}

function macOf(derived: Uint8Array, ciphertext: Uint8Array): Uint8Array {
  return keccak_256(concat(derived.subarray(16), ciphertext));
}

function random(length: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(length));
}

function bare(bytes: Uint8Array): string {
  return toHex(bytes).slice(2);
}

function unusable(why: string): FastPayError {
  const action = "give the key file of an Ed25519 key, as this wallet or `fastpay keys new --ed25519` writes it";
  return new FastPayError("invalid-key-file", `this key file cannot be used: ${why}`, action);
}
