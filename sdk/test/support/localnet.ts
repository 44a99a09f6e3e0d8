/**
 * A real network for the live tests: four authorities and a relayer on a chain of their own. One that runs already is
 * used where FASTPAY_NETWORK names its network.json; else one is started, and ended with the tests.
 */

import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestProject } from "vitest/node";

import type { Hex } from "../../src/index.js";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const START_PATIENCE_MS = 300_000;

/** What network.json says. */
export interface NetworkFile {
  readonly chainId: number;
  readonly rpc: string;
  readonly contract: Hex;
  readonly token: Hex;
  readonly authorities: readonly { readonly name: Hex; readonly http: string }[];
  readonly accounts: readonly { readonly name: string; readonly account: string; readonly privateKey: Hex }[];
}

declare module "vitest" {
  interface ProvidedContext {
    network: NetworkFile;
  }
}

function read(path: string): NetworkFile {
  return JSON.parse(readFileSync(path, "utf8")) as NetworkFile;
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const running = process.env["FASTPAY_NETWORK"];
  if (running !== undefined) {
    project.provide("network", read(running));
    return async () => undefined;
  }
  const program = `${ROOT}target/debug/fastpay-localnet`;
  if (!existsSync(program)) throw new Error(`${program} is not built: run make test-sdk`);
  const name = `sdk-${process.pid}`;
  const folder = `${ROOT}target/localnet-${name}`;
  const localnet = spawn(program, ["--name", name], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  localnet.stdout.on("data", (piece) => (said += String(piece)));
  localnet.stderr.on("data", (piece) => (said += String(piece)));
  const ended = new Promise<void>((resolve) => localnet.once("exit", () => resolve()));
  const file = `${folder}/network.json`;
  const until = Date.now() + START_PATIENCE_MS;
  while (!existsSync(file)) {
    if (localnet.exitCode !== null || Date.now() > until) throw new Error(`the network did not come up: ${said}`);
    await sleep(100);
  }
  project.provide("network", read(file));
  return async () => {
    localnet.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
}
