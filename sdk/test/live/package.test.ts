/** The package of `npm pack` is installed in an empty project, compiled against its types, and pays on a real network. */

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, inject, test } from "vitest";

import { network } from "../support/live.js";

const SDK = fileURLToPath(new URL("../..", import.meta.url));
const NPM = ["--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"];

let project: string;

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), "fastpay-sdk-"));
  const run = (program: string, ...args: string[]): string => execFileSync(program, args, { cwd: project, encoding: "utf8" });
  // What `make test-sdk` has built is packed as it is.
  const [packed] = JSON.parse(run("npm", "pack", SDK, "--json", "--ignore-scripts")) as { filename: string; files: { path: string }[] }[];
  if (packed === undefined) throw new Error("nothing was packed");
  // Neither sources nor tests are published, and no file of another build is left. The reference may have been written.
  const others = packed.files.map(({ path }) => path).filter((path) => !/^(dist\/.*\.(js|d\.ts)|reference\/.*|package\.json|README\.md)$/.test(path));
  if (others.length > 0) throw new Error(`the package has ${others.join(", ")}`);
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "empty", private: true, type: "module" }));
  run("npm", "install", ...NPM, packed.filename);
  copyFileSync(join(SDK, "test/live/quickstart.ts"), join(project, "quickstart.ts"));
  const compiler = fileURLToPath(new URL("../../../node_modules/.bin/tsc", import.meta.url));
  // The package's README has no file but the package's, and a program that compiles.
  const readme = readFileSync(join(project, "node_modules/@fastpay/sdk/README.md"), "utf8");
  const [, program] = /```ts\n([^]*?)```/.exec(readme) ?? [];
  if (program === undefined || readme.includes("docs/")) throw new Error("the package's README has no quick start of its own");
  writeFileSync(join(project, "readme.ts"), program);
  const options = ["--module", "nodenext", "--target", "es2022", "--strict", "--types", "", "--lib", "es2023,dom"];
  run(compiler, ...options, "quickstart.ts", "readme.ts");
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

test("the quick start runs with the installed package, and ends", () => {
  const main = `import { readFileSync } from "node:fs";
import { folderStore } from "@fastpay/sdk/node";
import { quickstart } from "./quickstart.js";
await folderStore("store");
const { payout } = await quickstart(JSON.parse(readFileSync(process.argv[2], "utf8")), process.argv[3]);
console.log("paid out", payout.hash);
`;
  writeFileSync(join(project, "main.mjs"), main);
  const said = execFileSync("node", ["main.mjs", join(inject("folder"), "network.json"), keyOf("alice")], {
    cwd: project,
    encoding: "utf8",
    timeout: 120_000,
  });
  expect(said).toMatch(/fp1\S+ is paid; certified after/);
  expect(said).toMatch(/paid out (0x[0-9a-f]{64}|undefined)/);
});

function keyOf(name: string): string {
  const found = network.accounts.find((account) => account.name === name);
  if (found === undefined) throw new Error(`the localnet has no ${name}`);
  return found.privateKey;
}
