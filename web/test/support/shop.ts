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

/** Runs the wallet's command as people of the localnet do; gives what it says. */
export async function fastpay(...args: readonly string[]): Promise<string> {
  const network = dirname(process.env.FASTPAY_NETWORK ?? "");
  const wallet = ["--home", `${network}/wallets/wallet`, "--passphrase-file", `${network}/passphrase`];
  const { stdout } = await run(`${ROOT}/target/debug/fastpay`, [...wallet, ...args]);
  return stdout.trim();
}

let nextPort = 7_000 + (process.pid % 2_000);

/** One below those that the system gives to connections, and to nobody twice: it is still free when a program comes to listen. */
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

/** A process that runs until it is told to end; what it said is in the error of one that ended before. */
function start(program: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess & { said: string } {
  const child = Object.assign(spawn(program, args, { env: { ...process.env, ...env } }), { said: "" });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (child.said += String(piece)));
  return child;
}

/** A shop that is open. */
export interface OpenShop {
  readonly url: string;
  /** The address of fastpay-merchant, with the owner's page, and its token. */
  readonly merchant: string;
  readonly token: string;
  /** Runs fastpay-merchant on its folder; gives what it prints. */
  readonly command: (...args: readonly string[]) => Promise<string>;
  /** What the shop has printed. */
  readonly said: () => string;
  readonly stop: () => Promise<void>;
}

/**
 * Opens the sample shop, whose orders expire after so many seconds, or the program that is made for these ports of the
 * service and the shop; carol of the localnet is paid.
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
  // Beside the packages that it imports.
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
