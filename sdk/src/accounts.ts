/**
 * Accounts: 32 bytes, the hash of the owner's verification key [FP §3.2]. There are two kinds, which cannot collide:
 * 12 zero bytes and an Ethereum address, or a Keccak-256 hash with a FastPay prefix.
 */

import { bech32m } from "@scure/base";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { checksumAddress } from "viem";

import { concat, isHex, toBytes, toHex, type Address, type Hex } from "./bytes.js";
import { FastPayError } from "./errors.js";

declare const accountId: unique symbol;

/** An account's identifier: 32 bytes in lower-case hexadecimal. Only the functions of this module create one. */
export type AccountId = Hex & { readonly [accountId]: true };

const PREFIX = "fp";
const ETHEREUM_PREFIX = `0x${"0".repeat(24)}`;

/** The account of the zero address. Nobody can hold its key. */
export const ZERO_ACCOUNT = `0x${"0".repeat(64)}` as AccountId;

/** The pool of private payments, keccak256 of `fastpay/private-pool`: no output of a payout may go there. */
export const PRIVATE_POOL = "0xfde8602a28dbca793f6faee4af64cd449f0096f5219dd57c09802b155be12873" as AccountId;

/** The account owned by an Ed25519 verification key of 32 bytes. */
export function accountFromEd25519(verificationKey: Uint8Array | Hex): AccountId {
  const key = typeof verificationKey === "string" ? toBytes(verificationKey) : verificationKey;
  if (key.length !== 32) {
    throw new FastPayError("invalid-argument", "an Ed25519 key has 32 bytes", "give the verification key");
  }
  return toHex(keccak_256(concat(new TextEncoder().encode("fastpay/ed25519"), key))) as AccountId;
}

/** The account owned by the secp256k1 key of an Ethereum address. */
export function accountFromEthereum(address: Address): AccountId {
  if (!isHex(address, 20)) throw notAnAccount(address);
  return `${ETHEREUM_PREFIX}${address.slice(2).toLowerCase()}` as AccountId;
}

/** The account with these 32 bytes, the form in contracts and signed statements. */
export function accountFromBytes32(bytes: Hex): AccountId {
  if (!isHex(bytes, 32)) throw notAnAccount(bytes);
  return bytes.toLowerCase() as AccountId;
}

/** The checksummed Ethereum address that owns an account; undefined for an Ed25519 account. */
export function ethereumAddressOf(account: AccountId): Address | undefined {
  if (!account.startsWith(ETHEREUM_PREFIX)) return undefined;
  return checksumAddress(`0x${account.slice(ETHEREUM_PREFIX.length)}`);
}

/** The text form: the checksummed address of an Ethereum account, otherwise bech32m with the prefix `fp`. */
export function formatAccount(account: AccountId): string {
  return ethereumAddressOf(account) ?? bech32m.encode(PREFIX, bech32m.toWords(toBytes(account)));
}

/**
 * Parses both text forms. An Ethereum address in mixed case must have a valid checksum (EIP-55); an address in a single
 * case has no checksum and is accepted. Throws `invalid-account`.
 */
export function parseAccount(text: string): AccountId {
  if (text.startsWith("0x")) return parseEthereum(text);
  let bytes: Uint8Array;
  try {
    const { prefix, words } = bech32m.decode(text as `${string}1${string}`);
    if (prefix !== PREFIX) throw notAnAccount(text);
    bytes = bech32m.fromWords(words);
  } catch (error) {
    throw notAnAccount(text, error);
  }
  const account = toHex(bytes) as AccountId;
  // An Ethereum account has one text form, its address.
  if (bytes.length !== 32 || account.startsWith(ETHEREUM_PREFIX)) throw notAnAccount(text);
  return account;
}

/** The account of an identifier, or of a text that `parseAccount` accepts. Throws `invalid-account`. */
export function accountOf(name: string): AccountId {
  if (typeof name !== "string") throw notAnAccount(String(name));
  return isHex(name, 32) ? accountFromBytes32(name) : parseAccount(name);
}

function parseEthereum(text: string): AccountId {
  if (!isHex(text, 20)) throw notAnAccount(text);
  const digits = text.slice(2);
  const isSingleCase = digits === digits.toLowerCase() || digits === digits.toUpperCase();
  if (!isSingleCase && checksumAddress(text) !== text) {
    throw new FastPayError(
      "invalid-account",
      `${text} has an invalid checksum`,
      "a character was mistyped; copy the address again",
    );
  }
  return accountFromEthereum(text);
}

function notAnAccount(text: string, cause?: unknown): FastPayError {
  return new FastPayError(
    "invalid-account",
    `${JSON.stringify(text.slice(0, 128))} is not an account`,
    "give a complete address that starts with fp1 or 0x",
    { cause },
  );
}
