/** Starts a real ledger for tests: a cluster of four members, and four authorities of a FastPay committee on it. */

import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import type { AuthorityEndpoint, Hex } from "../../src/index.js";
import type { LedgerDescription } from "../../src/ledger.js";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

/** The content of network.json. */
interface LedgerFile {
  readonly ledger: LedgerDescription;
  readonly authorities: readonly AuthorityEndpoint[];
}

/** A ledger that was started for tests. */
export interface StartedLedger extends LedgerFile {
  /** The path of its network.json. */
  readonly file: string;
  /**
   * A bank deposits an amount of the native asset, such as 1.5, from its reserve into an account, given as text. Resolves
   * when it is credited.
   */
  readonly fund: (account: string, amount: string) => Promise<void>;
  /** The bank redeems an amount of its own account. Resolves when the ledger has paid it. */
  readonly redeem: (amount: string, recipient: Hex) => Promise<void>;
  /** The same members begin the next epoch. */
  readonly rotate: () => Promise<void>;
  /** Stops it, and removes its files. */
  readonly stop: () => Promise<void>;
}

/** Starts a ledger with files in `target/ledger-NAME`, and waits until all of it runs. */
export async function startLedger(name: string): Promise<StartedLedger> {
  const program = `${ROOT}ledger/member/target/debug/fastpay-ledger-localnet`;
  if (!existsSync(program)) throw new Error(`${program} is not built: run make test-ledger`);
  const folder = `${ROOT}target/ledger-${name}`;
  rmSync(folder, { recursive: true, force: true });
  const localnet = spawn(program, [folder], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: localnet.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<void> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error("the ledger ended");
    const { error } = JSON.parse(value) as { error?: string };
    if (error !== undefined) throw new Error(error);
  };
  const ended = new Promise<void>((resolve) => localnet.once("exit", () => resolve()));
  const tell = (line: string): Promise<void> => {
    localnet.stdin.write(`${line}\n`);
    return next();
  };
  await next();
  const file = `${folder}/network.json`;
  return {
    ...(JSON.parse(readFileSync(file, "utf8")) as LedgerFile),
    file,
    fund: (account, amount) => tell(`fund ${account} ${amount}`),
    redeem: (amount, recipient) => tell(`redeem ${amount} ${recipient}`),
    rotate: () => tell("rotate"),
    stop: async () => {
      localnet.stdin.end();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** In front of a member: passes everything on, and alters the answers as `lie` says. */
export class LyingProxy {
  lie: (proof: Hex) => Hex = (proof) => proof;
  /** The number of answers that were altered. */
  lies = 0;
  readonly #server: Server;

  private constructor(member: string) {
    this.#server = createServer(async (request, response) => {
      const answer = await fetch(`${member}${request.url}`);
      const text = await answer.text();
      const { proof } = JSON.parse(text) as { proof?: Hex };
      const told = proof && this.lie(proof);
      if (told !== proof) this.lies += 1;
      response.writeHead(answer.status, { "content-type": "application/json", "access-control-allow-origin": "*" });
      response.end(told === undefined ? text : JSON.stringify({ proof: told }));
    });
  }

  static async start(member: string): Promise<LyingProxy> {
    const proxy = new LyingProxy(member);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
