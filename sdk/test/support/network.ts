/** Starts a real network for tests: four authorities and a relayer on a chain of their own. */

import { spawn } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";

import type { Hex } from "../../src/index.js";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const START_PATIENCE_MS = 300_000;

/** The content of network.json. */
export interface NetworkFile {
  readonly chainId: number;
  readonly rpc: string;
  readonly contract: Hex;
  readonly token: Hex;
  readonly relayers: readonly string[];
  readonly authorities: readonly { readonly name: Hex; readonly http: string }[];
  readonly accounts: readonly { readonly name: string; readonly account: string; readonly privateKey: Hex }[];
}

/** A network that was started for tests. */
export interface StartedNetwork {
  /** The path of its network.json. */
  readonly file: string;
  /** Stops it, and removes its files. */
  readonly stop: () => Promise<void>;
  /** Rotates the committee's keys, once. The authorities adopt them as soon as the rotation is final. */
  readonly rotate: () => void;
  /** Replaces a member by a new authority, once, after the keys were rotated. It joins as soon as that is final. */
  readonly replace: () => void;
}

/**
 * Starts a network with files in `target/localnet-NAME`, and waits until all of it runs. Without a relayer, tests
 * submit redemptions themselves.
 */
export async function startNetwork(name: string, withRelayer = true): Promise<StartedNetwork> {
  const program = `${ROOT}target/debug/fastpay-localnet`;
  if (!existsSync(program)) throw new Error(`${program} is not built: run make test-sdk or make test-web`);
  const folder = `${ROOT}target/localnet-${name}`;
  const file = `${folder}/network.json`;
  // Remove the file of an earlier network, so that it is not mistaken for the new one's.
  rmSync(file, { force: true });
  const localnet = spawn(program, ["--name", name, ...(withRelayer ? [] : ["--without-relayer"])], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  localnet.stdout.on("data", (piece) => (said += String(piece)));
  localnet.stderr.on("data", (piece) => (said += String(piece)));
  const ended = new Promise<void>((resolve) => localnet.once("exit", () => resolve()));
  const stop = async (): Promise<void> => {
    localnet.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const until = Date.now() + START_PATIENCE_MS;
  while (!existsSync(file)) {
    if (localnet.exitCode !== null) throw new Error(`the network ended: ${said}`);
    if (Date.now() > until) {
      await stop();
      throw new Error(`the network did not come up: ${said}`);
    }
    await sleep(100);
  }
  const send = (signal: NodeJS.Signals) => (): void => void localnet.kill(signal);
  return { file, stop, rotate: send("SIGUSR1"), replace: send("SIGUSR2") };
}
