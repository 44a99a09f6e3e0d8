/** The sample shop and the service beside it, on the tests' network. */

import { execFile, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

export const ROOT = resolve(import.meta.dirname, "../../..");
const PATIENCE_MS = 60_000;
const run = promisify(execFile);

/** Runs `fastpay` with the localnet's wallet. Returns its output. */
export async function fastpay(...args: readonly string[]): Promise<string> {
  const network = dirname(process.env.FASTPAY_NETWORK ?? "");
  const wallet = ["--home", `${network}/wallets/wallet`, "--passphrase-file", `${network}/passphrase`];
  const { stdout } = await run(`${ROOT}/target/debug/fastpay`, [...wallet, ...args]);
  return stdout.trim();
}

let nextPort = 7_000 + 200 * (Number(process.env.TEST_PARALLEL_INDEX ?? 0) % 10);

/**
 * A free port, each returned once. It is below the range that the system gives to connections, so it is still free when
 * a program listens on it.
 */
async function freePort(): Promise<number> {
  for (;;) {
    const port = nextPort++;
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((done) => server.close(done));
    return port;
  }
}

/** Starts a process, and collects its output in `said`, for the error if it ends too early. */
function start(program: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess & { said: string } {
  const child = Object.assign(spawn(program, args, { env: { ...process.env, ...env } }), { said: "" });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (child.said += String(piece)));
  return child;
}

/** A running shop. */
export interface OpenShop {
  readonly url: string;
  /** The address of fastpay-merchant, with the owner's page, and its token. */
  readonly merchant: string;
  readonly token: string;
  /** Runs fastpay-merchant on its folder. Returns its output. */
  readonly command: (...args: readonly string[]) => Promise<string>;
  /** The shop's output so far. */
  readonly said: () => string;
  readonly stop: () => Promise<void>;
}

/**
 * Starts fastpay-merchant with carol's account of the localnet, and a shop: the program that `make` returns for the
 * ports of the service and the shop, or else the sample shop. Orders expire after `expiresIn` seconds.
 */
export async function openShop(expiresIn = 900, make?: (service: number, shop: number) => string): Promise<OpenShop> {
  const network = dirname(process.env.FASTPAY_NETWORK ?? "");
  const folder = mkdtempSync(`${network}/merchant-`);
  const home = `${folder}/home`;
  const [port, shopPort] = [await freePort(), await freePort()];
  const listen = `127.0.0.1:${port}`;
  const url = `http://127.0.0.1:${shopPort}`;
  const program = `${ROOT}/target/debug/fastpay-merchant`;
  await run(program, [
    ...["--home", home, "init", "--wallet", `${network}/wallets/wallet`],
    ...["--account", await fastpay("address", "--from", "carol"), "--label", "The corner bakery", "--listen", listen],
    ...["--webhook-url", `${url}/webhook`, "--web-wallet", `${process.env.WEB_URL ?? ""}pay`],
  ]);
  const shopEnv = {
    SHOP_PORT: String(shopPort),
    SHOP_EXPIRES_IN: String(expiresIn),
    MERCHANT_URL: `http://${listen}`,
    MERCHANT_SECRETS: `${home}/secrets`,
  };
  // The program must be in a folder from which its imports resolve.
  const own = `${ROOT}/target/web/shop-${shopPort}.mjs`;
  if (make !== undefined) writeFileSync(own, make(port, shopPort));
  const children = [
    start(program, ["--home", home, "run"]),
    start("node", [make === undefined ? `${ROOT}/merchant/shop/server.mjs` : own], shopEnv),
  ] as const;
  const stop = async (): Promise<void> => {
    for (const child of children) {
      const ended = new Promise((done) => child.once("exit", done));
      if (child.exitCode === null && child.kill("SIGTERM")) await ended;
    }
    rmSync(folder, { recursive: true, force: true });
    rmSync(own, { force: true });
  };
  const until = Date.now() + PATIENCE_MS;
  for (const address of [`http://${listen}`, url]) {
    while ((await fetch(address).catch(() => undefined)) === undefined) {
      const ended = children.find((child) => child.exitCode !== null);
      if (ended !== undefined || Date.now() > until) {
        await stop();
        throw new Error(`the shop did not open: ${children.map((child) => child.said).join("\n")}`);
      }
      await sleep(100);
    }
  }
  const token = readFileSync(`${home}/secrets/token`, "utf8").trim();
  const command = async (...args: readonly string[]): Promise<string> => (await run(program, ["--home", home, ...args])).stdout.trim();
  return { url, merchant: `http://${listen}/`, token, command, said: () => children[1].said, stop };
}
