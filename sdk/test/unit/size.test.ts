/** Unused code is not in the bundle. The limits are minified, uncompressed sizes with a margin. */

import { fileURLToPath } from "node:url";
import { build, type Rolldown } from "vite";
import { expect, test } from "vitest";

const source = (name: string): string => JSON.stringify(fileURLToPath(new URL(`../../src/${name}.ts`, import.meta.url)));

async function bundle(code: string): Promise<string> {
  const entry = "\0entry";
  const outputs = await build({
    configFile: false,
    logLevel: "error",
    plugins: [
      {
        name: "entry",
        enforce: "pre",
        resolveId: (id) => (id.endsWith("entry-of-the-test") ? entry : undefined),
        load: (id) => (id === entry ? code.replaceAll("SDK/ledger", source("ledger")).replaceAll("SDK", source("index")) : undefined),
      },
    ],
    build: { write: false, minify: true, lib: { entry: "entry-of-the-test", formats: ["es"], fileName: "bundle" } },
  });
  const [output] = outputs as Rolldown.RolldownOutput[];
  return (output?.output ?? []).map((chunk) => (chunk.type === "chunk" ? chunk.code : "")).join("");
}

test("an unused import adds no code", async () => {
  expect((await bundle("import SDK; export {}")).trim()).toBe("");
});

test("amounts alone add no cryptography and no network code", async () => {
  const code = await bundle("export { parseAmount, formatAmount } from SDK");
  expect(code.length).toBeLessThan(2_000);
});

test("verifying offline adds no client", async () => {
  const code = await bundle("export { verifyCertificate, makeCommittee, parseCertificate } from SDK");
  expect(code).not.toContain("eth_sendRawTransaction");
  expect(code).not.toContain("indexedDB");
  expect(code.length).toBeLessThan(140_000);
});

test("the whole client adds no viem client: callers bring their own", async () => {
  const code = await bundle("export { FastPay, ethereumSigner, browserStore } from SDK");
  // A tenth of it reads lists, and is loaded when one is read.
  expect(code.length).toBeLessThan(422_000);
  expect(code).not.toContain("fastpay ledger");
});

test("a ledger is verified by an entry of its own, which adds little", async () => {
  const code = await bundle("export { FastPay, ethereumSigner, browserStore } from SDK; export { openLedger } from SDK/ledger");
  expect(code).toContain("fastpay ledger");
  expect(code.length).toBeLessThan(436_000);
});
