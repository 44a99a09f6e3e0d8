/** Private payments are what docs/PRIVATE.md says: its objects, messages, notes and proofs, computed anew. */

import { readFileSync } from "node:fs";

import { bytesToHex, concat, hashStruct, hexToBytes, keccak256, numberToHex, sha256, slice, toHex } from "viem";
import { expect, test } from "vitest";

import type { Hex } from "../../src/index.js";
import {
  accountNullifier,
  addressOf,
  coinNullifier,
  derive,
  fieldToHex,
  findGenerator,
  hash,
  lowBits,
  noteKey,
  notesHash,
  openNote,
  ownerOf,
  sanctionsRoot,
  verifyProof,
  verifySignature,
} from "../support/private.js";

const read = (name: string) => JSON.parse(readFileSync(new URL(`../../../vectors/${name}`, import.meta.url), "utf8"));
const objects = read("private-objects.json");
const proved = read("private-proof.json") as { key: Hex; "key hash": Hex; inputs: Hex[]; proof: Hex };

const key = derive("fastpay/private/spending-key", objects.owner.seed);
const domain = derive("fastpay/private/domain", objects.domain.separator);
const asset = BigInt(objects.coin.asset);
const owner = ownerOf(key);

const TYPES: Record<string, string> = {
  PrivateTransfer:
    "uint64 committee,uint64 rules,address asset,bytes32 accountSpent,uint64 sequence,bytes32 coinSpent," +
    "bytes32 account,bytes32 coin,uint128 amountOut,bytes32 recipient,bytes32 memo,bytes32 notesHash",
  PrivateCommittee:
    "uint64 version,uint64 epoch,bytes32[] coinKeys,bytes32 verifyingKeyHash,bytes32 provingKeyHash",
  PrivateRules:
    "uint64 version,bytes32 registrar,bytes32 sanctionsRoot,bytes32 listHash,uint32 period,uint64 oldestAccepted",
  NullifierStatus: "uint64 epoch,bytes32 nullifier,uint8 status,bytes32 digest,bytes32 context",
};

test.each(Object.entries(TYPES))("the digest of %s", (primaryType, fields) => {
  const message = objects.messages[primaryType];
  const digest: Hex = message.digest;
  // The message has a field of that name itself, which the vectors keep apart from what it hashes to.
  const data = primaryType === "NullifierStatus" ? { ...message, digest: message["digest of transfer"] } : message;
  const types = {
    [primaryType]: fields.split(",").map((field) => {
      const [type, name] = field.split(" ") as [string, string];
      return { type, name };
    }),
  };
  const struct = hashStruct({ data, primaryType, types });
  expect(keccak256(concat(["0x1901", objects.messages.separator, struct]))).toBe(digest);
});

test("a digest as an element", () => {
  const { digest, "digest as an element": element } = objects.messages.PrivateTransfer;
  expect(fieldToHex(lowBits(hexToBytes(digest)))).toBe(element);
});

test("the account whose numbers a nullifier takes", () => {
  const { nullifier, account } = objects.messages["nullifier's account"];
  const hash = keccak256(concat([toHex("fastpay/nullifier"), nullifier]));
  const pool = keccak256(toHex("fastpay/private-pool"));
  expect(concat([slice(hash, 0, 28), slice(pool, 28)])).toBe(account);
});

test("Poseidon of two, four and eight", () => {
  const { "h2 of 1, 2": two, "h4 of 1 to 4": four, "h8 of 1 to 8": eight } = objects.poseidon;
  expect(fieldToHex(hash(1n, 2n))).toBe(two);
  expect(fieldToHex(hash(1n, 2n, 3n, 4n))).toBe(four);
  expect(fieldToHex(hash(1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n))).toBe(eight);
});

test("owner, tag and address", () => {
  expect(fieldToHex(domain)).toBe(objects.domain.element);
  expect(fieldToHex(owner)).toBe(objects.owner.owner);
  expect(numberToHex(owner & ((1n << 120n) - 1n), { size: 15 })).toBe(objects.owner.tag);
  expect(addressOf(owner, objects.address.notes)).toBe(objects.address.text);
});

test("coin and nullifier", () => {
  const { value, payment, rho, r, inner, commitment, nullifier } = objects.coin;
  expect(fieldToHex(derive("fastpay/private/deposit", payment))).toBe(rho);
  expect(fieldToHex(hash(owner, BigInt(r)))).toBe(inner);
  expect(fieldToHex(hash(BigInt(value), asset, BigInt(rho), BigInt(inner)))).toBe(commitment);
  expect(fieldToHex(coinNullifier(key, BigInt(rho)))).toBe(nullifier);
});

test("accounts, the first and a later one", () => {
  const commit = (fields: Record<string, string | number>, rho: bigint, r: bigint) => {
    const [balance, spent, total, period, received, history] = (
      ["balance", "spent", "total", "period", "received", "history"] as const
    ).map((name) => BigInt(fields[name] ?? 0)) as [bigint, bigint, bigint, bigint, bigint, bigint];
    return hash(owner, asset, balance, spent, total, hash(period, received, history, 0n), rho, r);
  };
  const { rho, commitment, nullifier } = objects["first account"];
  expect(fieldToHex(hash(owner, asset, domain, 0n))).toBe(rho);
  expect(fieldToHex(commit({}, BigInt(rho), 0n))).toBe(commitment);
  expect(fieldToHex(accountNullifier(key, BigInt(rho)))).toBe(nullifier);
  const { account } = objects;
  expect(account.rho).toBe(nullifier);
  expect(fieldToHex(hash(0n, BigInt(objects.coin.commitment), 5n, 12n))).toBe(account.history);
  expect(fieldToHex(commit(account, BigInt(account.rho), BigInt(account.r)))).toBe(account.commitment);
});

test("a credential", () => {
  const { transaction, period, total, hold, receive, expiry, attributes, message } = objects.credential;
  const rest = hash(BigInt(hold), BigInt(receive), BigInt(expiry), BigInt(attributes));
  const all = hash(owner, asset, BigInt(transaction), BigInt(period), BigInt(total), rest, 0n, 0n);
  expect(fieldToHex(all)).toBe(message);
});

test("the sanctions list", () => {
  const { listed, root, low, high } = objects.sanctions;
  const tags = listed.map(BigInt) as bigint[];
  expect(fieldToHex(sanctionsRoot(tags))).toBe(root);
  const tag = BigInt(objects.owner.tag);
  const around = [0n, ...tags, (1n << 120n) - 1n];
  expect(fieldToHex(around.filter((bound) => bound < tag).reduce((a, b) => (a > b ? a : b)))).toBe(low);
  expect(fieldToHex(around.filter((bound) => bound > tag).reduce((a, b) => (a < b ? a : b)))).toBe(high);
});

test("signatures are for one kind, message and key", () => {
  expect(findGenerator()).toBe(objects.generator);
  const { key: signer, made } = objects.signatures;
  const kinds = ["coin", "account", "credential"];
  for (const { kind, message, signature } of made) {
    const number = BigInt(kinds.indexOf(kind) + 1);
    const verify = (element: bigint, of: bigint, by: Hex) =>
      verifySignature(by, objects.generator, element, domain + of, signature);
    expect(verify(BigInt(message), number, signer)).toBe(true);
    expect(verify(BigInt(message) + 1n, number, signer)).toBe(false);
    expect(verify(BigInt(message), number + 1n, signer)).toBe(false);
    expect(verify(BigInt(message), number, objects["absent member"])).toBe(false);
  }
});

test("notes open with the seed, and are bound to the transaction", () => {
  const { seed, memo, "payment of the coin": payment, "own, with the account": own } = objects.notes;
  const nullifier: Hex = objects.notes["account nullifier"];
  expect(noteKey(seed)).toBe(objects.notes["received key"]);
  const amount = (value: string) => numberToHex(BigInt(value), { size: 16 });
  const { coin, account } = objects;
  expect(bytesToHex(openNote("received", seed, payment, nullifier))).toBe(concat([amount(coin.value), coin.r, memo]));
  const numbers = [account.balance, account.spent, account.total, account.received, coin.value].map(amount);
  const period = numberToHex(account.period, { size: 4 });
  expect(bytesToHex(openNote("own", seed, own, nullifier))).toBe(
    concat([...numbers, period, account.history, account.r, objects.owner.owner, coin.r]),
  );
  expect(() => openNote("own", seed, own, coin.rho)).toThrow();
  expect(() => openNote("own", seed, payment, nullifier)).toThrow();
  expect(notesHash(payment, own)).toBe(objects.notes["hash of both"]);
});

test("a proof verifies, and for nothing else", () => {
  const { inputs, proof } = proved;
  expect(sha256(proved.key)).toBe(proved["key hash"]);
  expect(verifyProof(proved.key, inputs, proof)).toBe(true);
  const altered = inputs.map((input, index) => (index === 7 ? fieldToHex(BigInt(input) + 1n) : input));
  expect(verifyProof(proved.key, altered, proof)).toBe(false);
  expect(verifyProof(proved.key, inputs.slice(1), proof)).toBe(false);
});
