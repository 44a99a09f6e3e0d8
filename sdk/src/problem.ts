/** An authority's refusal (RFC 9457) as an error. */

import { FastPayError } from "./errors.js";
import type { TransferOrder } from "./transfer.js";
import { decodeProblem } from "./wire.js";

/** The codes of the HTTP API (docs/API.md). */
export type ProblemCode =
  | "malformed"
  | "invalid"
  | "order-pending"
  | "sequence-too-high"
  | "already-confirmed"
  | "insufficient-balance"
  | "missing-certificate"
  | "redemptions-missing"
  | "no-primary"
  | "busy"
  | "stopping"
  | "not-voting"
  | "unknown-epoch"
  | "epoch-ended"
  | "unattested"
  | "catching-up"
  | "disk-low"
  | "account-budget"
  | "address-budget"
  | "frozen"
  | "overruled"
  | "voided"
  | "not-requested"
  | "window-open"
  | "primary-too-old"
  | "not-found"
  | "method-not-allowed"
  | "request-timeout"
  | "too-large"
  | "unsupported-media-type"
  | "cursor-ahead"
  | "too-many-streams"
  | "history-unreadable"
  | "pruned"
  | "not-archived";

/** The facts of a refusal. All are untrusted. */
export interface ProblemFacts {
  /** The waiting time that it requests, in milliseconds. */
  readonly retryAfterMs: number;
  /** The order that the account is locked on. */
  readonly pending: TransferOrder | undefined;
  readonly expectedSequence: bigint | undefined;
  readonly balance: bigint | undefined;
  readonly epoch: bigint | undefined;
  /** The part of a list that the authority has pruned. */
  readonly pruned: Pruned | undefined;
}

/** The part of a list that an authority no longer keeps. The committee's archive has it. */
export interface Pruned {
  /** The number of the first entry that the authority keeps. */
  readonly first: bigint;
  /** The checkpoint up to which the archive has the entries before it. */
  readonly checkpoint: bigint;
}

/** A refusal of one authority. As a `FastPayError`, its `code` is `refused`. */
export class ProblemError extends FastPayError {
  /** The authority's own code, which this version may not know. */
  readonly problem: ProblemCode | (string & {});
  readonly status: number;
  /** True if the same request may succeed later. */
  readonly isTransient: boolean;
  readonly facts: ProblemFacts;

  constructor(status: number, body: unknown) {
    const read = decodeProblem(body, "the problem");
    const message = (read.detail ?? read.title ?? read.code).slice(0, 500);
    super("refused", message, (read.action ?? "").slice(0, 500), { details: { status, problem: read.code } });
    this.name = "ProblemError";
    this.problem = read.code.slice(0, 100);
    this.status = status;
    this.isTransient = read.retry === "later";
    const { pending, expectedSequence, balance, epoch, first, checkpoint } = read;
    const pruned = first === undefined || checkpoint === undefined ? undefined : { first, checkpoint };
    this.facts = { retryAfterMs: read.retryAfterMs ?? 0, pending, expectedSequence, balance, epoch, pruned };
  }
}

/** The pruned part of a list, if that is the reason of an error. */
export function prunedOf(error: unknown): Pruned | undefined {
  return error instanceof ProblemError && error.problem === "pruned" ? error.facts.pruned : undefined;
}
