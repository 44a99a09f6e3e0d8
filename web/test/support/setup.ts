/**
 * Starts what the tests run against: the real localnet (four authorities, a relayer, a chain), unless NETWORK_FILE
 * names the file of a running one, and the built page.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { resolve } from "node:path";

import { preview } from "vite";

const ROOT = resolve(import.meta.dirname, "../../..");
const PROGRAM = resolve(ROOT, process.env.LOCALNET ?? "target/debug/fastpay-localnet");
const NAME = "web-tests";
const PATIENCE_MS = 180_000;

export default async function setup(): Promise<() => Promise<void>> {
  const localnet = process.env.NETWORK_FILE === undefined ? await startLocalnet() : undefined;
  const server = await preview({ root: resolve(import.meta.dirname, "../.."), preview: { port: 4_173, strictPort: false, host: "127.0.0.1" } });
  process.env.WEB_URL = server.resolvedUrls?.local[0] ?? "";
  return async () => {
    await server.close();
    if (localnet !== undefined) await stop(localnet);
  };
}

async function startLocalnet(): Promise<ChildProcess> {
  const file = resolve(PROGRAM, `../../localnet-${NAME}/network.json`);
  // An old one must not be taken for the new one.
  rmSync(file, { force: true });
  const child = spawn(PROGRAM, ["--name", NAME], { stdio: ["ignore", "ignore", "inherit"], cwd: ROOT });
  const until = Date.now() + PATIENCE_MS;
  while (!existsSync(file)) {
    if (child.exitCode !== null) throw new Error(`${PROGRAM} ended with ${child.exitCode} before the network was up`);
    if (Date.now() > until) {
      await stop(child);
      throw new Error(`${PROGRAM}: no ${file} after ${PATIENCE_MS} ms`);
    }
    await new Promise((wake) => setTimeout(wake, 200));
  }
  process.env.NETWORK_FILE = file;
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise((done) => child.once("exit", done));
  child.kill("SIGTERM");
  await ended;
}
