/**
 * Drives an order to its certificate.
 *
 * ```text
 *  VerifiedOrder ─► ask every authority ─► Tally (pure) ─► VerifiedCertificate ─► settle.ts
 *                     │  ▲ refused: bring it up to date (catch-up), wait, ask again
 *                     └──┘
 * ```
 * One loop for each authority exchanges requests with it; the tally decides. The answers of a quorum suffice, so f
 * authorities may be silent, slow or lying. Every answer is verified before it has an effect.
 */

import type { AccountId } from "../accounts.js";
import type { Certificate, VerifiedCertificate } from "../certificate.js";
import type { Primary } from "../primary.js";
import type { Network } from "../network.js";
import type { TransferStep } from "../progress.js";
import type { VerifiedOrder } from "../verify.js";
import { aborted, throwIfAborted } from "../waiting.js";
import { ask } from "./ask.js";
import { newEpoch, superseded } from "./failures.js";
import { Tally, type PeerAnswer } from "./tally.js";

/** Deadlines and delays, in milliseconds. */
export interface Timing {
  /** The time for a certificate, and again for its settlement. */
  readonly deadlineMs: number;
  /** The time for retries after `insufficient-balance`, while deposits and payments may be on their way. */
  readonly fundsPatienceMs: number;
  /** The time for bringing authorities beyond a quorum up to date after settlement. */
  readonly backgroundMs: number;
  /** The timeout of one request to one authority. */
  readonly requestMs: number;
  /** The time for a read from all authorities. */
  readonly readMs: number;
  /** The delay before the first repetition. It doubles with each repetition, up to `backoffMaxMs`. */
  readonly backoffMinMs: number;
  readonly backoffMaxMs: number;
}

/** The defaults. */
export const DEFAULT_TIMING: Timing = {
  deadlineMs: 30_000,
  fundsPatienceMs: 10_000,
  backgroundMs: 10_000,
  requestMs: 5_000,
  readMs: 5_000,
  backoffMinMs: 20,
  backoffMaxMs: 1_000,
};

/** The environment for certifying and settling an order. */
export interface Operation {
  readonly network: Network;
  /** Reports which numbers are void, and which are spent on which order. */
  readonly primary: Pick<Primary, "unlockStatus" | "isSpent" | "finalSpending">;
  readonly timing: Timing;
  /** Reads a certificate from this client's storage, before authorities are asked. Its result is verified. */
  readonly stored: (account: AccountId, sequence: bigint) => Promise<Certificate | undefined>;
  /** Receives progress. */
  readonly report: (step: TransferStep) => void;
  readonly signal: AbortSignal | undefined;
}

/** A signal that aborts after `ms` milliseconds, when `other` aborts, or when `end` is called. */
export function limited(ms: number, other: AbortSignal | undefined): { signal: AbortSignal; end: () => void } {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), ms);
  const end = (): void => {
    clearTimeout(timer);
    over.abort();
  };
  return { signal: other === undefined ? over.signal : AbortSignal.any([over.signal, other]), end };
}

/**
 * Collects votes until there is a certificate. The order must be stored before the call, which may be repeated. Throws
 * `conflict`, `superseded`, `voided`, `frozen`, `insufficient-funds`, `no-primary`, `new-epoch`, `no-quorum` or
 * `aborted`.
 */
export function certify(operation: Operation, order: VerifiedOrder): Promise<VerifiedCertificate> {
  throwIfAborted(operation.signal);
  const { network, timing, report } = operation;
  // Use one epoch's committee throughout: votes of two epochs do not add up.
  const committee = network.committee;
  const tally = new Tally(
    committee,
    order,
    network.authorities.map(({ url }) => url),
  );
  return new Promise((resolve, reject) => {
    const { signal, end } = limited(timing.deadlineMs, operation.signal);
    // The first resolution or rejection counts, and ends all loops.
    const finish = (decide: () => void): void => {
      decide();
      end();
    };
    signal.addEventListener("abort", () => reject(operation.signal?.aborted ? aborted() : tally.failure(true)));
    for (const authority of network.authorities) {
      const take = (answer: PeerAnswer): void => {
        if (signal.aborted) return;
        const verdict = tally.take(authority.url, answer, authority.member);
        if (answer.type === "vote") report({ type: "vote", authority, votes: tally.votes, quorum: committee.quorum });
        if (answer.type === "later" || answer.type === "out")
          report({ type: "waiting", authority, failure: answer.failure });
        if (answer.type === "ahead") report({ type: "waiting", authority, failure: { kind: "other-epoch", epoch: answer.epoch } });
        if (verdict.type === "certified") return finish(() => resolve(verdict.certificate));
        if (verdict.type === "superseded") return finish(() => reject(superseded(verdict.certificate)));
        if (verdict.type === "new-epoch") return finish(() => reject(newEpoch(verdict.epoch, committee.epoch)));
        if (verdict.type === "impossible") finish(() => reject(tally.failure(false)));
      };
      void ask(operation, authority, committee, order, take, signal);
    }
  });
}
