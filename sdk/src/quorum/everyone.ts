/** Repeats a task at every authority until a quorum has completed it. */

import { memberIn, type AuthorityClient } from "../authority.js";
import type { AuthorityName } from "../committee.js";
import type { FastPayError } from "../errors.js";
import { ProblemError } from "../problem.js";
import type { PeerFailure } from "../progress.js";
import { aborted, Backoff, throwIfAborted } from "../waiting.js";
import { failureOf } from "./catch-up.js";
import { limited, type Operation } from "./certify.js";
import { decidedBy, noQuorum } from "./failures.js";

/** After such a failure, asking again is useless. */
const FINAL: readonly PeerFailure["kind"][] = ["refused", "no-primary", "voided", "epoch-ended", "unattested"];

/** An answer counts once its authority gives a member's name. Its keys, or the committee, may be about to change. */
const NO_MEMBER: PeerFailure = { kind: "silent", message: "it gives no name of a present member" };

/** A task for every authority. */
export interface Task<T> {
  /** The name of the result, for people. */
  readonly what: "votes" | "confirmations";
  /** The number of results needed. */
  readonly quorum: number;
  /** The time for the other authorities after that, in milliseconds. */
  readonly backgroundMs: number;
  /** Asks one authority once. `failureOf` converts the errors that it throws. */
  readonly act: (authority: AuthorityClient, signal: AbortSignal) => Promise<T>;
  /** Adds a member's result and returns the number of results so far. An error that it throws ends the task. */
  readonly take: (result: T, authority: AuthorityClient) => number;
}

/**
 * Resolves when a quorum has completed the task. `rest` resolves when the work on the other authorities ends. Throws
 * `no-quorum`, `voided`, `frozen`, `epoch-ended`, `aborted`, or an error of `take`.
 */
export function untilQuorum<T>(operation: Operation, task: Task<T>): Promise<{ rest: Promise<void> }> {
  throwIfAborted(operation.signal);
  const { network, timing } = operation;
  const { committee } = network;
  const trusted = committee.faultsTolerated + 1;
  const { what, quorum } = task;
  const failures = new Map<string, PeerFailure>();
  /** The failures by member. */
  const byMember = new Map<string, PeerFailure>();
  const done = new Set<string>();
  let count = 0;
  return new Promise((resolve, reject) => {
    const limit = limited(timing.deadlineMs, operation.signal);
    const background = new AbortController();
    const close = (): void => background.abort();
    network.closed.addEventListener("abort", close, { once: true });
    const tooFew = (timedOut: boolean): FastPayError => {
      const decided = decidedBy(byMember.values(), trusted);
      const since = endedBefore(byMember.values(), trusted);
      if (since !== undefined) network.countSince(since);
      return decided ?? noQuorum(what, count, quorum, timedOut, failures);
    };
    const fail = (error: unknown): void => {
      background.abort();
      reject(error);
      limit.end();
    };
    limit.signal.addEventListener("abort", () => {
      if (count < quorum) fail(operation.signal?.aborted ? aborted() : tooFew(true));
    });
    const all = network.authorities.map(async (authority) => {
      const memberNow = (): AuthorityName | undefined => memberIn(committee, authority);
      const note = (failure: PeerFailure): void => {
        failures.set(authority.url, failure);
        const member = memberNow();
        if (member !== undefined) byMember.set(member, failure);
      };
      const isOpen = (): boolean => count < quorum && decidedBy(byMember.values(), trusted) === undefined;
      const isNameless = (): boolean => memberNow() === undefined && isOpen();
      const taken = await patiently(operation, authority, task, note, isNameless, background.signal);
      const member = memberNow();
      // A member's result counts once, even if several addresses are listed for it. A result that does not count must
      // not exclude the member: an address that is listed without a name may report another member's name.
      if (taken === undefined || background.signal.aborted || member === undefined || done.has(member)) return;
      const before = count;
      try {
        count = task.take(taken.result, authority);
      } catch (error) {
        return fail(error);
      }
      if (count > before) done.add(member);
      if (before >= quorum || count < quorum) return;
      limit.end();
      const late = setTimeout(() => background.abort(), task.backgroundMs);
      resolve({ rest: Promise.all(all).then(() => clearTimeout(late)) });
      background.signal.addEventListener("abort", () => clearTimeout(late));
    });
    void Promise.all(all).then(() => {
      network.closed.removeEventListener("abort", close);
      if (count < quorum) fail(tooFew(false));
    });
  });
}

/** The epoch before which a recovery has ended all, as all say that say so; undefined if they are fewer than f + 1. */
function endedBefore(failures: Iterable<PeerFailure>, trusted: number): bigint | undefined {
  const epochs = [...failures].flatMap((failure) => (failure.kind === "epoch-ended" ? [failure.epoch] : []));
  return epochs.length < trusted ? undefined : epochs.reduce((lowest, epoch) => (epoch < lowest ? epoch : lowest));
}

/**
 * Asks one authority until it has completed the task; undefined if it refuses, or `signal` ends. Asks again while the
 * authority gives no name of a member and the task is open (`isNameless`).
 */
async function patiently<T>(
  operation: Operation,
  authority: AuthorityClient,
  { act }: Task<T>,
  note: (failure: PeerFailure) => void,
  isNameless: () => boolean,
  signal: AbortSignal,
): Promise<{ result: T } | undefined> {
  const backoff = new Backoff(operation.timing.backoffMinMs, operation.timing.backoffMaxMs);
  while (!signal.aborted) {
    try {
      const result = await act(authority, signal);
      if (!isNameless()) return { result };
      note(NO_MEMBER);
    } catch (error) {
      if (signal.aborted) return undefined;
      if (error instanceof ProblemError) backoff.waitAtLeast(error.facts.retryAfterMs);
      const failure = failureOf(error);
      operation.report({ type: "waiting", authority, failure });
      note(failure);
      if (FINAL.includes(failure.kind)) return undefined;
    }
    await backoff.wait(signal);
  }
  return undefined;
}
