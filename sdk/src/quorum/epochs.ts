/** Work that starts under one committee and continues under the next. */

import type { Committee } from "../committee.js";
import { isFastPayError } from "../errors.js";
import { Backoff } from "../waiting.js";
import type { Operation } from "./certify.js";
import { newEpoch } from "./failures.js";

/** Collects the newer epochs in which authorities answer. */
export class Ahead {
  readonly #committee: Committee;
  readonly #epochs: bigint[] = [];

  constructor(committee: Committee) {
    this.#committee = committee;
  }

  /** Adds the newer epoch of another authority. Throws `new-epoch` at f + 1 authorities, one of which is honest. */
  enter(epoch: bigint): void {
    this.#epochs.push(epoch);
    if (this.#epochs.length <= this.#committee.faultsTolerated) return;
    // One of f + 1 authorities is honest, so the lowest of these epochs has begun.
    const reached = this.#epochs.reduce((a, b) => (a < b ? a : b));
    throw newEpoch(reached, this.#committee.epoch);
  }
}

/**
 * Runs work under the current committee, and again under the next one if the committee changes meanwhile. Also once again
 * if too few authorities answer and other members are found.
 */
export async function throughEpochs<T>(operation: Operation, act: () => Promise<T>): Promise<T> {
  const { network, timing, signal } = operation;
  const until = Date.now() + timing.deadlineMs;
  const backoff = new Backoff(timing.backoffMinMs, timing.backoffMaxMs);
  let isSought = false;
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (isFastPayError(error, "no-quorum") && !isSought && (await network.seekMembers())) {
        isSought = true;
        continue;
      }
      if (!isFastPayError(error, "new-epoch") || Date.now() >= until) throw error;
      // The Ethereum node may be unreachable, or its final block may not have the new committee yet.
      const isNew = await network.committees.refresh().catch(() => false);
      if (isNew) await network.findMembers();
      else await backoff.wait(signal);
    }
  }
}
