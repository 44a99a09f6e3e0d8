/** Delays, cancellation, and backoff. */

import { FastPayError } from "./errors.js";

/** Resolves after this many milliseconds, or at once when `signal` aborts. Never rejects. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** The error of an aborted call. */
export function aborted(): FastPayError {
  return new FastPayError("aborted", "it was aborted", "resume to continue");
}

/** Throws `aborted` if `signal` has ended. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw aborted();
}

/** Waits before repetitions: twice as long each time, with jitter so that clients do not repeat in step. */
export class Backoff {
  readonly #minMs: number;
  readonly #maxMs: number;
  #nextMs: number;

  constructor(minMs: number, maxMs: number) {
    this.#minMs = minMs;
    this.#maxMs = maxMs;
    this.#nextMs = minMs;
  }

  /** Starts again with the shortest wait. */
  reset(): void {
    this.#nextMs = this.#minMs;
  }

  /** Makes the next wait about `ms` long, as an authority requests, if it is shorter and `maxMs` allows. */
  waitAtLeast(ms: number): void {
    this.#nextMs = Math.min(Math.max(this.#nextMs, ms), this.#maxMs);
  }

  /** Waits; ends early with `signal`. */
  async wait(signal?: AbortSignal): Promise<void> {
    const ms = this.#nextMs * (0.5 + Math.random() / 2);
    this.#nextMs = Math.min(this.#nextMs * 2, this.#maxMs);
    await sleep(ms, signal);
  }
}
