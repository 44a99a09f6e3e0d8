/** Key files go from here to the command line and back. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";

import { decryptKeyFile, ed25519Signer, encryptKeyFile, formatAccount, readKeyFile } from "../../src/index.js";

const PROGRAM = fileURLToPath(new URL("../../../target/debug/fastpay", import.meta.url));
const PASSPHRASE = "correct horse battery staple";
const home = mkdtempSync(`${tmpdir()}/fastpay-keys-`);

afterAll(() => rmSync(home, { recursive: true, force: true }));

function fastpay(...args: string[]): void {
  const env = { ...process.env, FASTPAY_HOME: home, FASTPAY_PASSPHRASE: PASSPHRASE };
  execFileSync(PROGRAM, args, { env, stdio: "pipe" });
}

test("the command line and this library read each other's key files", async () => {
  const secret = crypto.getRandomValues(new Uint8Array(32));
  const mine = await encryptKeyFile(secret, PASSPHRASE);
  writeFileSync(`${home}/mine.json`, mine.text);
  fastpay("keys", "import", "mine", "--ed25519", "--keystore", `${home}/mine.json`);
  const imported = readFileSync(`${home}/keys/mine.json`, "utf8");
  expect(readKeyFile(imported).account).toBe(mine.account);
  expect(await decryptKeyFile(imported, PASSPHRASE)).toEqual(secret);

  fastpay("keys", "new", "theirs", "--ed25519");
  const theirs = readFileSync(`${home}/keys/theirs.json`, "utf8");
  const signer = ed25519Signer(await decryptKeyFile(theirs, PASSPHRASE));
  expect(formatAccount(signer.account)).toBe(formatAccount(readKeyFile(theirs).account));
  await expect(decryptKeyFile(theirs, "another")).rejects.toMatchObject({ code: "wrong-passphrase" });
});
