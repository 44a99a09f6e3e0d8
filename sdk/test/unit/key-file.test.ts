/** Key files: what is written is read, and what is none is refused before anything is derived from it. */

import { describe, expect, test } from "vitest";

import {
  decryptKeyFile,
  ed25519Signer,
  encryptKeyFile,
  readKeyFile,
  sealedSigner,
  signOrder,
  verifyOrder,
} from "../../src/index.js";
import { DOMAIN, paymentOf, person } from "../support/committee.js";

const PASSPHRASE = "correct horse battery staple";
const secret = Uint8Array.from({ length: 32 }, (_, i) => i + 1);
const file = await encryptKeyFile(secret, PASSPHRASE);

/** The file with one part of it changed. */
function changed(change: (file: Record<string, any>) => void): string {
  const copy = JSON.parse(file.text);
  change(copy);
  return JSON.stringify(copy);
}

describe("a key file", () => {
  test("returns its secret only with its passphrase", async () => {
    expect(file.account).toBe(ed25519Signer(secret).account);
    expect(readKeyFile(file.text)).toEqual(file);
    expect(await decryptKeyFile(file.text, PASSPHRASE)).toEqual(secret);
    await expect(decryptKeyFile(file.text, `${PASSPHRASE} `)).rejects.toMatchObject({ code: "wrong-passphrase" });
  });

  test("never contains the secret, nor the same bytes twice", async () => {
    const again = await encryptKeyFile(secret, PASSPHRASE);
    const parts = ({ text }: { text: string }): string[] => {
      const { ciphertext, mac, kdfparams, cipherparams } = JSON.parse(text).crypto;
      return [ciphertext, mac, kdfparams.salt, cipherparams.iv];
    };
    const all = [...parts(file), ...parts(again)];
    expect(new Set(all).size).toBe(all.length);
    expect(file.text).not.toContain(Buffer.from(secret).toString("hex"));
  });

  test("with another account than its key is refused", async () => {
    const other = await encryptKeyFile(new Uint8Array(32).fill(9), PASSPHRASE);
    const swapped = changed((copy) => (copy.fastpay = JSON.parse(other.text).fastpay));
    await expect(decryptKeyFile(swapped, PASSPHRASE)).rejects.toMatchObject({ code: "invalid-key-file" });
  });

  test.each<[string, string]>([
    ["nothing", ""],
    ["no JSON", "{"],
    ["a list", "[]"],
    ["too long", `${file.text}${" ".repeat(1 << 16)}`],
    ["of another version", changed((copy) => (copy.version = 1))],
    ["of an Ethereum key", changed((copy) => (copy.fastpay.kind = "ethereum"))],
    ["without its account", changed((copy) => delete copy.fastpay)],
    ["of an account that is none", changed((copy) => (copy.fastpay.account = "fp1"))],
    ["of another cipher", changed((copy) => (copy.crypto.cipher = "aes-256-gcm"))],
    ["of another derivation", changed((copy) => (copy.crypto.kdf = "pbkdf2"))],
    ["with an n that is no power of two", changed((copy) => (copy.crypto.kdfparams.n = 1000))],
    ["with an n of one", changed((copy) => (copy.crypto.kdfparams.n = 1))],
    ["that would fill the memory", changed((copy) => (copy.crypto.kdfparams.n = 1 << 24))],
    ["with an r of zero", changed((copy) => (copy.crypto.kdfparams.r = 0))],
    ["with too many lanes", changed((copy) => (copy.crypto.kdfparams.p = 1000))],
    ["with a short derived key", changed((copy) => (copy.crypto.kdfparams.dklen = 16))],
    ["with a short counter", changed((copy) => (copy.crypto.cipherparams.iv = "00"))],
    ["with a short MAC", changed((copy) => (copy.crypto.mac = "00"))],
    ["with a long secret", changed((copy) => (copy.crypto.ciphertext = "00".repeat(64)))],
  ])("that is %s is refused", async (_what, text) => {
    expect(() => readKeyFile(text)).toThrow(expect.objectContaining({ code: "invalid-key-file" }));
    await expect(decryptKeyFile(text, PASSPHRASE)).rejects.toMatchObject({ code: "invalid-key-file" });
  });
});

test("a sealed key signs as an open one does, and its secret is erased", async () => {
  const open = ed25519Signer(secret);
  const bytes = Uint8Array.from(secret);
  const sealed = await sealedSigner(bytes);
  expect(bytes).toEqual(new Uint8Array(32));
  expect(sealed.account).toBe(open.account);
  const transfer = paymentOf(open.account, person("bob").account, 5n, 0n);
  const order = await signOrder(sealed, DOMAIN, transfer);
  expect(order).toEqual(await signOrder(open, DOMAIN, transfer));
  verifyOrder(order, DOMAIN);
});
