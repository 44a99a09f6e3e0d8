/**
 * Reads a settlement cluster's state from its members. All are asked, and the newest state that f + 1 of them prove
 * counts: one of these is honest, so no liar can show an older state than that one has.
 */

import { toBytes, toHex } from "../bytes.js";
import { object, text } from "../decode.js";
import { FastPayError, messageOf } from "../errors.js";
import { requestJson } from "../http.js";
import type { Cluster } from "./genesis.js";
import { READ_BYTES_MAX, verifyRead, type Reading } from "./read-proof.js";

/** The time for which a member may take to read an entry. */
const READ_TIMEOUT_MS = 5_000;
/** The greatest age of a state that counts, by this machine's clock: as of the command line. */
const STATE_AGE_MS_MAX = 600_000;

const answer = object({ proof: text });

/** The members of a settlement cluster, by the bases of their HTTP APIs. */
export class ClusterMembers {
  readonly #cluster: Cluster;
  readonly #urls: readonly string[];

  constructor(cluster: Cluster, urls: readonly string[]) {
    this.#cluster = cluster;
    this.#urls = urls;
  }

  /** f + 1: of so many members, one is honest. */
  static needed({ members, quorum }: Cluster): number {
    return members.length - quorum + 1;
  }

  /** Reads the entry with this encoded key. Throws `chain-unreachable`. */
  async read(key: Uint8Array): Promise<Reading> {
    const enough = new AbortController();
    const asked = this.#urls.map((url) => this.#ask(url, key, enough.signal));
    try {
      const readings = await firstOf(asked, ClusterMembers.needed(this.#cluster));
      return readings.reduce((a, b) => (b.height > a.height ? b : a));
    } catch (cause) {
      const action = "try again later; if that does not help, check this machine's clock, and ask the ledger's operators";
      const message = `too few members of the ledger prove what it has: ${messageOf(cause)}`;
      throw new FastPayError("chain-unreachable", message, action, { cause, details: { primary: "ledger" } });
    } finally {
      enough.abort();
    }
  }

  async #ask(url: string, key: Uint8Array, signal: AbortSignal): Promise<Reading> {
    const request = { method: "GET", url: `${url}/v1/state/${toHex(key).slice(2)}`, timeoutMs: READ_TIMEOUT_MS, signal } as const;
    const { proof } = answer(await requestJson(request), "the member's answer");
    if (proof.length > 2 + 2 * READ_BYTES_MAX) throw new FastPayError("malformed-answer", "the proof is too long", "");
    const reading = verifyRead(toBytes(proof), key, this.#cluster);
    if (Number(reading.timeMs) >= Date.now() - STATE_AGE_MS_MAX) return reading;
    const message = `${new URL(url).origin} has only a state of ${new Date(Number(reading.timeMs)).toISOString()}`;
    throw new FastPayError("malformed-answer", message, "ask the other members");
  }
}

/** The first `count` values. Rejects with the latest error when too few can come. */
function firstOf<T>(asked: readonly Promise<T>[], count: number): Promise<readonly T[]> {
  return new Promise((resolve, reject) => {
    const values: T[] = [];
    let left = asked.length;
    for (const one of asked) {
      one.then(
        (value) => {
          if (values.push(value) === count) resolve(values);
        },
        (error: unknown) => {
          left -= 1;
          if (left < count) reject(error);
        },
      );
    }
  });
}
