/** Work that starts under one committee and continues under the next. */

import type { Committee } from "../committee.js";
import { isFastPayError } from "../errors.js";
import { Backoff } from "../waiting.js";
import type { Operation } from "./certify.js";
import { newEpoch } from "./failures.js";

/** Collects the newer epochs that authorities answer from. */
export class Ahead {
  readonly #committee: Committee;
  readonly #epochs: bigint[] = [];

  constructor(committee: Committee) {
    this.#committee = committee;
  }

  /** Another authority answers in this newer epoch. Throws `new-epoch` once one of them is honest. */
  enter(epoch: bigint): void {
    this.#epochs.push(epoch);
    if (this.#epochs.length <= this.#committee.faultsTolerated) return;
    // One of f + 1 is honest, so the lowest of these epochs is reached.
    const reached = this.#epochs.reduce((a, b) => (a < b ? a : b));
    throw newEpoch(reached, this.#committee.epoch);
  }
}

/** Runs work under the current committee, and again under the next one if the committee changes meanwhile. */
export async function throughEpochs<T>(operation: Operation, act: () => Promise<T>): Promise<T> {
  const { network, timing, signal } = operation;
  const until = Date.now() + timing.deadlineMs;
  const backoff = new Backoff(timing.backoffMinMs, timing.backoffMaxMs);
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (!isFastPayError(error, "new-epoch") || Date.now() >= until) throw error;
      // The Ethereum node may be away, or not show the new committee in a final block yet.
      const isNew = await network.committees.refresh().catch(() => false);
      if (!isNew) await backoff.wait(signal);
    }
  }
}
