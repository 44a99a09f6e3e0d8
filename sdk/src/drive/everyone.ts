/** Has every authority do one thing, each asked again and again, until a quorum has. */

import type { AuthorityClient } from "../authority.js";
import { ProblemError } from "../problem.js";
import type { Trouble } from "../progress.js";
import { aborted, Backoff, throwIfAborted } from "../waiting.js";
import { troubleOf } from "./catch-up.js";
import { limited, type Drive } from "./driver.js";
import { noQuorum } from "./failures.js";

/** What every authority is to do. */
export interface Task<T> {
  /** What comes of it, for people. */
  readonly what: "votes" | "confirmations";
  /** How many of them are enough. */
  readonly quorum: number;
  /** How long the other authorities are still asked when these have come. */
  readonly backgroundMs: number;
  /** Asks one authority once. What it throws is read by `troubleOf`. */
  readonly act: (authority: AuthorityClient, signal: AbortSignal) => Promise<T>;
  /** Takes in what came of it; says how many count now. What it throws ends everything. */
  readonly hear: (result: T, authority: AuthorityClient) => number;
}

/**
 * Resolves when a quorum has done it, with the end of the work on the others. Throws `no-quorum`, `aborted`, or what
 * `hear` throws.
 */
export function untilQuorum<T>(drive: Drive, task: Task<T>): Promise<{ rest: Promise<void> }> {
  throwIfAborted(drive.signal);
  const { network, timing } = drive;
  const { what, quorum } = task;
  const troubles = new Map<string, Trouble>();
  let heard = 0;
  return new Promise((resolve, reject) => {
    const limit = limited(timing.deadlineMs, drive.signal);
    const background = new AbortController();
    const close = (): void => background.abort();
    network.closed.addEventListener("abort", close, { once: true });
    const fail = (error: unknown): void => {
      background.abort();
      reject(error);
      limit.end();
    };
    limit.signal.addEventListener("abort", () => {
      if (heard < quorum) fail(drive.signal?.aborted ? aborted() : noQuorum(what, heard, quorum, true, troubles));
    });
    const all = network.authorities.map(async (authority) => {
      const done = await patiently(drive, authority, task, troubles, background.signal);
      if (done === undefined || background.signal.aborted) return;
      const before = heard;
      try {
        heard = task.hear(done.result, authority);
      } catch (error) {
        return fail(error);
      }
      if (before >= quorum || heard < quorum) return;
      limit.end();
      const late = setTimeout(() => background.abort(), task.backgroundMs);
      resolve({ rest: Promise.all(all).then(() => clearTimeout(late)) });
      background.signal.addEventListener("abort", () => clearTimeout(late));
    });
    void Promise.all(all).then(() => {
      network.closed.removeEventListener("abort", close);
      if (heard < quorum) fail(noQuorum(what, heard, quorum, false, troubles));
    });
  });
}

/** What one authority does in the end; none where it will not, or `signal` ends. */
async function patiently<T>(
  drive: Drive,
  authority: AuthorityClient,
  { act }: Task<T>,
  troubles: Map<string, Trouble>,
  signal: AbortSignal,
): Promise<{ result: T } | undefined> {
  const backoff = new Backoff(drive.timing.backoffMinMs, drive.timing.backoffMaxMs);
  while (!signal.aborted) {
    try {
      return { result: await act(authority, signal) };
    } catch (error) {
      if (signal.aborted) return undefined;
      if (error instanceof ProblemError) backoff.waitAtLeast(error.facts.retryAfterMs);
      const trouble = troubleOf(error);
      drive.tell({ type: "waiting", authority, trouble });
      troubles.set(authority.url, trouble);
      if (trouble.kind === "refused" || trouble.kind === "no-primary") return undefined;
    }
    await backoff.wait(signal);
  }
  return undefined;
}
