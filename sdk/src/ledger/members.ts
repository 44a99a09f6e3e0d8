/**
 * Reads a settlement cluster's state from its members. All are asked, and the newest state that enough of them prove
 * counts: one of these is honest, so no liar can show an older state than that one has. No read shows an older state
 * than a read that ended before it began.
 */

import { toBytes, toHex } from "../bytes.js";
import { object, text } from "../decode.js";
import { FastPayError, messageOf } from "../errors.js";
import { requestJson } from "../http.js";
import { sleep, throwIfAborted } from "../waiting.js";
import type { Cluster } from "./genesis.js";
import { READ_BYTES_MAX, verifyRead, type Reading } from "./read-proof.js";

/** The time for which a member may take to read an entry. */
const READ_TIMEOUT_MS = 5_000;
/**
 * The greatest age of a state that counts, by this machine's clock. The same as `STATE_AGE_MS_MAX` in
 * `ledger/client/src/committee.rs`.
 */
const STATE_AGE_MS_MAX = 600_000;

/** The time after which members that are behind are asked once more: others decide a height within less. */
const BEHIND_MS = 500;
/** The longest answer: a read in hexadecimal digits, and the JSON around it. */
const ANSWER_BYTES_MAX = 2 * READ_BYTES_MAX + 1_024;

const answer = object({ proof: text });

/** The members of a settlement cluster, by the bases of their HTTP APIs. */
export class ClusterMembers {
  readonly #cluster: Cluster;
  readonly #urls: readonly string[];
  /** The ids of headers that a quorum has certified. */
  readonly #certified = new Set<string>();
  /** The greatest height that was read. */
  #height = 0n;

  constructor(cluster: Cluster, urls: readonly string[]) {
    this.#cluster = cluster;
    this.#urls = urls;
  }

  /** n − quorum + 1, which is f + 1 for n = 3f + 1: of so many members, one is honest. */
  static needed({ members, quorum }: Cluster): number {
    return members.length - quorum + 1;
  }

  /** Reads the entry with this encoded key. Throws `chain-unreachable`. */
  async read(key: Uint8Array): Promise<Reading> {
    const floor = this.#height;
    let newest = await this.#newest(key, floor);
    if (newest.height < floor) {
      // A height was decided before the others knew of it, and whoever showed it is silent now.
      await sleep(BEHIND_MS);
      newest = await this.#newest(key, floor);
    }
    if (newest.height < floor) throw unreachable(new Error(`they are behind height ${floor}, which was read before`));
    if (newest.height > this.#height) this.#height = newest.height;
    return newest;
  }

  async #newest(key: Uint8Array, floor: bigint): Promise<Reading> {
    const enough = new AbortController();
    const asked = this.#urls.map((url) => this.#ask(url, key, enough.signal));
    try {
      return await newestOf(asked, ClusterMembers.needed(this.#cluster), floor);
    } catch (cause) {
      throw unreachable(cause);
    } finally {
      enough.abort();
    }
  }

  async #ask(url: string, key: Uint8Array, signal: AbortSignal): Promise<Reading> {
    const address = `${url}/v1/state/${toHex(key).slice(2)}`;
    const limits = { timeoutMs: READ_TIMEOUT_MS, bytesMax: ANSWER_BYTES_MAX, signal };
    const { proof } = answer(await requestJson({ method: "GET", url: address, ...limits }), "the member's answer");
    // Enough others have answered, so their votes are not verified for nothing.
    throwIfAborted(signal);
    const reading = verifyRead(toBytes(proof), key, this.#cluster, this.#certified);
    if (Number(reading.timeMs) >= Date.now() - STATE_AGE_MS_MAX) return reading;
    const message = `${new URL(url).origin} has only a state of ${new Date(Number(reading.timeMs)).toISOString()}`;
    throw new FastPayError("malformed-answer", message, "ask the other members");
  }
}

/** Too few members prove a state that counts. */
function unreachable(cause: unknown): FastPayError {
  const action = "try again later; if that does not help, check this machine's clock, and ask the ledger's operators";
  const message = `too few members of the ledger prove what it has: ${messageOf(cause)}`;
  return new FastPayError("chain-unreachable", message, action, { cause, details: { primary: "ledger" } });
}

/**
 * The newest of the first `count` readings, or of more, until one is of the height `floor` at least or all have ended.
 * Rejects when too few can come, with the latest error.
 */
function newestOf(asked: readonly Promise<Reading>[], count: number, floor: bigint): Promise<Reading> {
  return new Promise((resolve, reject) => {
    let newest: Reading | undefined;
    let [came, failed] = [0, 0];
    const end = (error?: unknown): void => {
      const isNew = newest !== undefined && newest.height >= floor;
      if (newest !== undefined && came >= count && (isNew || came + failed === asked.length)) resolve(newest);
      else if (asked.length - failed < count) reject(error);
    };
    for (const one of asked) {
      one.then(
        (reading) => {
          came += 1;
          if (newest === undefined || reading.height > newest.height) newest = reading;
          end();
        },
        (error: unknown) => {
          failed += 1;
          end(error);
        },
      );
    }
  });
}
