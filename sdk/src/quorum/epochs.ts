/** Work that starts under one committee and continues under the next. */

import { isFastPayError } from "../errors.js";
import { Backoff } from "../waiting.js";
import type { Operation } from "./certify.js";

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
