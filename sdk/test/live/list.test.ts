/** A list is the same for this library and the command line: paying it a second time pays nobody again. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { afterAll, expect, inject, test } from "vitest";

import { ed25519Signer, ETHER, formatAccount, formatListResult, memoryStore, parseAmount, type Signer } from "../../src/index.js";
import { connect, rich } from "../support/live.js";

const PROGRAM = fileURLToPath(new URL("../../../target/debug/fastpay", import.meta.url));
const folder = mkdtempSync(`${tmpdir()}/fastpay-list-`);
const alice = rich("alice");

afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Result {
  readonly lines: readonly { readonly status: string; readonly digest: string }[];
}

function payByCommand(file: string): Result {
  const net = inject("folder");
  const passphrase = readFileSync(`${net}/passphrase`, "utf8").trim();
  const env = { ...process.env, FASTPAY_HOME: `${net}/wallets/wallet`, FASTPAY_PASSPHRASE: passphrase };
  const args = ["pay", "--csv", file, "--from", "alice", "--yes", "--json"];
  return JSON.parse(execFileSync(PROGRAM, args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })) as Result;
}

test("a page that one of them has paid is found paid by the other", async () => {
  const people = Array.from({ length: 260 }, () => ed25519Signer(crypto.getRandomValues(new Uint8Array(32))).account);
  const text = (what: string): string =>
    `# ${what}\n\nAmount,Recipient,Memo\n${people.map((person, i) => `0.00001, ${formatAccount(person)} ,"${what}, ${i}"`).join("\r\n")}\n`;
  const fastpay = await connect({ storage: memoryStore() });
  await fastpay.deposit(alice.wallet, { asset: ETHER, amount: parseAmount("0.1", 18) });
  let asked = 0;
  const signer: Signer = {
    ...alice.signer,
    authorize: (...of) => {
      asked += 1;
      return alice.signer.authorize(...of);
    },
  };

  writeFileSync(`${folder}/here.csv`, text("paid here"));
  const here = await fastpay.readList(readFileSync(`${folder}/here.csv`));
  const paid = await fastpay.payMany(signer, here.lines, { name: here.name });
  expect(asked).toBe(2);
  const said = payByCommand(`${folder}/here.csv`);
  const result = (await formatListResult(paid)).trim().split("\n");
  // Line by line the same: its number, its status, its order.
  expect(readFileSync(`${folder}/here.csv.result.csv`, "utf8").trim().split("\n").sort()).toEqual([...result].sort());
  expect(said.lines.map(({ digest }) => digest)).toEqual(paid.payments.map(({ page }) => paid.orders[page]?.digest));
  const { nextSequence } = await fastpay.account(signer.account);

  writeFileSync(`${folder}/there.csv`, text("paid there"));
  const there = payByCommand(`${folder}/there.csv`);
  const list = await fastpay.readList(readFileSync(`${folder}/there.csv`));
  const found = await fastpay.payMany(signer, list.lines, { name: list.name });
  expect(found.payments.map(({ page }) => found.orders[page]?.digest)).toEqual(there.lines.map(({ digest }) => digest));
  expect(asked).toBe(2);
  expect((await fastpay.account(signer.account)).nextSequence).toBe(nextSequence + 2n);
});
