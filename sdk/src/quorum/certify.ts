/**
 * Drives an order to its certificate.
 *
 * ```text
 *  VerifiedOrder ─► ask every authority ─► Tally (pure) ─► VerifiedCertificate ─► settle.ts
 *                     │  ▲ refused: bring it up to date (catch-up), wait, ask again
 *                     └──┘
 * ```
 * One loop per authority talks to it; the tally decides. A quorum's answers are enough, so f authorities may be silent,
 * slow or lying. Nothing that an authority says is acted on before it is verified.
 */

import type { AccountId } from "../accounts.js";
import type { Certificate, VerifiedCertificate } from "../certificate.js";
import type { Contract } from "../chain/contract.js";
import type { Network } from "../network.js";
import type { TransferStep } from "../progress.js";
import type { VerifiedOrder } from "../verify.js";
import { aborted, throwIfAborted } from "../waiting.js";
import { ask } from "./ask.js";
import { newEpoch, superseded } from "./failures.js";
import { Tally, type PeerAnswer } from "./tally.js";

/** Deadlines and delays, in milliseconds. */
export interface Timing {
  /** For a certificate, and again for its settlement. */
  readonly deadlineMs: number;
  /** How long to retry after `insufficient-balance`, while deposits and payments may be on their way. */
  readonly fundsPatienceMs: number;
  /** The time for bringing authorities beyond a quorum up to date after settlement. */
  readonly backgroundMs: number;
  /** One request to one authority. */
  readonly requestMs: number;
  /** Reads from all authorities. */
  readonly readMs: number;
  /** Before the first repetition; each later one waits twice as long, up to `backoffMaxMs`. */
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
  /** Says which numbers are void. */
  readonly contract: Pick<Contract, "unlockStatus">;
  readonly timing: Timing;
  /** A certificate of one's own storage, asked before authorities are. What comes out is verified. */
  readonly stored: (account: AccountId, sequence: bigint) => Promise<Certificate | undefined>;
  /** Receives progress. */
  readonly report: (step: TransferStep) => void;
  readonly signal: AbortSignal | undefined;
}

/** A signal that aborts after this many milliseconds, with `other`, or on `end`. */
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
 * `conflict`, `superseded`, `voided`, `frozen`, `insufficient-funds`, `no-primary`, `new-epoch`, `no-quorum` or `aborted`.
 */
export function certify(operation: Operation, order: VerifiedOrder): Promise<VerifiedCertificate> {
  throwIfAborted(operation.signal);
  const { network, timing, report } = operation;
  // One epoch's committee throughout: votes of two epochs do not add up.
  const committee = network.committee;
  const tally = new Tally(
    committee,
    order,
    network.authorities.map(({ url }) => url),
  );
  return new Promise((resolve, reject) => {
    const { signal, end } = limited(timing.deadlineMs, operation.signal);
    // The first to resolve or reject counts, and then all loops end.
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
        if (verdict.type === "certified") return finish(() => resolve(verdict.certificate));
        if (verdict.type === "superseded") return finish(() => reject(superseded(verdict.certificate)));
        if (verdict.type === "new-epoch") return finish(() => reject(newEpoch(verdict.epoch, committee.epoch)));
        if (verdict.type === "impossible") finish(() => reject(tally.failure(false)));
      };
      void ask(operation, authority, committee, order, take, signal);
    }
  });
}
