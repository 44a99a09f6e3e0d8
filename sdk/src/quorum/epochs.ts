/** Work that starts under one committee and continues under the next. */

import type { Committee } from "../committee.js";
import { isFastPayError } from "../errors.js";
import { Backoff, sleep } from "../waiting.js";
import type { Operation } from "./certify.js";
import { newEpoch } from "./failures.js";

/** Collects the newer epochs in which members answer. */
export class Ahead {
  readonly #committee: Committee;
  readonly #epochs = new Map<string, bigint>();

  constructor(committee: Committee) {
    this.#committee = committee;
  }

  /** Adds the newer epoch of a member. Throws `new-epoch` at f + 1 members, one of which is honest. */
  enter(epoch: bigint, member: string): void {
    this.#epochs.set(member, epoch);
    if (this.#epochs.size <= this.#committee.faultsTolerated) return;
    // One of f + 1 members is honest, so the lowest of these epochs has begun.
    const reached = [...this.#epochs.values()].reduce((a, b) => (a < b ? a : b));
    throw newEpoch(reached, this.#committee.epoch);
  }
}

/**
 * Runs work under the current committee, and again under the next one if the committee changes meanwhile: once f + 1
 * authorities answer in a newer epoch, or one does and the contract has it. The others may have answered before the change,
 * and are not asked again. Also once again if too few authorities answer and other members are found.
 */
export async function throughEpochs<T>(operation: Operation, act: (operation: Operation) => Promise<T>): Promise<T> {
  const { network, timing, signal } = operation;
  const until = Date.now() + timing.deadlineMs;
  const backoff = new Backoff(timing.backoffMinMs, timing.backoffMaxMs);
  let isSought = false;
  for (;;) {
    const attempt = new Attempt(operation);
    try {
      return await act(attempt.operation);
    } catch (error) {
      if (attempt.isOvertaken && isFastPayError(error, "aborted") && !signal?.aborted) {
        await network.findMembers();
        continue;
      }
      if (isFastPayError(error, "no-quorum") && !isSought && (await network.seekMembers())) {
        isSought = true;
        continue;
      }
      if (!isFastPayError(error, "new-epoch") || Date.now() >= until) throw error;
      // The Ethereum node may be unreachable, or its final block may not have the new committee yet.
      const isNew = await network.committees.refresh().catch(() => false);
      if (isNew) await network.findMembers();
      else await backoff.wait(signal);
    } finally {
      attempt.end();
    }
  }
}

/** Work under one committee. It is aborted once an authority names a newer epoch and the contract has it. */
class Attempt {
  /** For the work. */
  readonly operation: Operation;
  readonly #ended = new AbortController();
  readonly #overtaken = new AbortController();
  #isWatching = false;

  constructor(operation: Operation) {
    const { network, report, signal, timing } = operation;
    const { epoch } = network.committee;
    const overtaken = this.#overtaken.signal;
    // The authority may have read the rotation before this client's node, so the contract is read again after each pause.
    const watch = async (): Promise<void> => {
      this.#isWatching = true;
      while (!this.#ended.signal.aborted && network.committee.epoch === epoch) {
        await sleep(timing.backoffMaxMs, this.#ended.signal);
        await network.committees.refresh().catch(() => false);
      }
      if (!this.#ended.signal.aborted) this.#overtaken.abort();
    };
    this.operation = {
      ...operation,
      signal: signal === undefined ? overtaken : AbortSignal.any([signal, overtaken]),
      report: (step) => {
        const isAhead = step.type === "waiting" && step.failure.kind === "other-epoch" && step.failure.epoch > epoch;
        if (isAhead && !this.#isWatching && !this.#ended.signal.aborted) void watch();
        report(step);
      },
    };
  }

  get isOvertaken(): boolean {
    return this.#overtaken.signal.aborted;
  }

  end(): void {
    this.#ended.abort();
  }
}
