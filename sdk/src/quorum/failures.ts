/**
 * Failures of certification and settlement. In every case the order may have been sent, and the call may be repeated.
 */

import { formatAccount } from "../accounts.js";
import type { VerifiedCertificate } from "../certificate.js";
import { FastPayError } from "../errors.js";
import type { PeerFailure } from "../progress.js";
import type { OrderConflict } from "./conflict.js";

/** Carries a peer's failure to the loop that asks the authority again. */
export class PeerFailureError extends Error {
  readonly failure: PeerFailure;
  constructor(failure: PeerFailure) {
    super(failure.kind);
    this.failure = failure;
  }
}

/** A peer's answer that no correct authority gives. */
export function misbehaved(message: string): PeerFailureError {
  return new PeerFailureError({ kind: "misbehaved", message });
}

/** f + 1 authorities have pruned what they executed under a number: only an archive proves which order that was. */
export function onlyArchived(sequence: bigint): FastPayError {
  const message = `authorities have pruned number ${sequence}, and no archive answers`;
  return new FastPayError("no-quorum", message, "list an authority with an archive, then resume");
}

/** The reason of a peer's failure, for people. */
export function describePeerFailure(failure: PeerFailure): string {
  switch (failure.kind) {
    case "silent":
      return failure.message;
    case "restored":
      return "it was restored, and first reads its earlier votes";
    case "insufficient-balance":
      return "the balance there is too low: deposits or payments are on their way";
    case "no-room":
      return NO_ROOM[failure.whose];
    case "behind":
      return `it waits for the certificate of number ${failure.sequence}`;
    case "locked":
      return `it is locked on another order (${failure.digest})`;
    case "other-epoch":
      return `it votes in epoch ${failure.epoch}`;
    case "no-primary":
      return "it has no Primary";
    case "frozen":
      return "it waits for a decision on this number";
    case "not-requested":
      return "it knows of no final unlock request";
    case "voided":
      return "this number was voided";
    case "epoch-ended":
      return `a recovery has installed epoch ${failure.epoch} and ended earlier ones`;
    case "unattested":
      return `its epoch ${failure.epoch} has ended, and too few authorities know this certificate`;
    case "refused":
      return `it refused: ${failure.message}`;
    case "misbehaved":
      return `it sent an invalid answer: ${failure.message}`;
  }
}

/** What has no space for a new order. */
const NO_ROOM = {
  disk: "the disk is nearly full for new orders",
  account: "this account has reached its limit of orders for now",
  address: "this network address has reached its limit of orders for now",
};

/** More than f authorities report that they have no space for a new order. */
export function noRoom(whose: keyof typeof NO_ROOM, retryAfterMs: number): FastPayError {
  const wait = `wait ${Math.max(1, Math.ceil(retryAfterMs / 60_000))} min`;
  const elsewhere = whose === "address" ? ", or use another network" : "";
  const action = `nothing is lost, and the order keeps its number: ${wait}${elsewhere}, then resume`;
  return new FastPayError("no-room", `at the authorities: ${NO_ROOM[whose]}`, action, { details: { whose, retryAfterMs } });
}

/** Too few good answers. */
export function noQuorum(
  what: "votes" | "confirmations",
  count: number,
  quorum: number,
  timedOut: boolean,
  failures: ReadonlyMap<string, PeerFailure>,
): FastPayError {
  const why = timedOut ? "in time" : "and no more can come";
  const reasons = [...failures].map(([authority, failure]) => `${authority}: ${describePeerFailure(failure)}`);
  const message = [`${count} of ${quorum} ${what} arrived ${why}`, ...reasons].join("; ");
  return new FastPayError("no-quorum", message, "nothing is lost: resume to continue", {
    details: { what, count, quorum, timedOut, failures: Object.fromEntries(failures) },
  });
}

/** Authorities are locked on different orders of the same account and number. */
export function conflictError(conflict: OrderConflict): FastPayError {
  const contenders = conflict.contenders();
  const transfer = contenders[0]?.order.transfer;
  const whose =
    transfer &&
    `account ${formatAccount(transfer.sender)} has ${contenders.length} orders with number ${transfer.sequence}`;
  const message = `${whose ?? "there are several orders"}, signed with the same key by copies of this wallet`;
  const canEnd = conflict.leader() !== undefined;
  const action = canEnd
    ? "one can be finished once silent authorities answer: stop the other copy, then resume"
    : "none can be certified any more, but the account can receive. To send, stop the other copy, and unlock the account";
  return new FastPayError("conflict", message, action, { details: { conflict, contenders, canEnd } });
}

/** Another order with this number is certified. */
export function superseded(certificate: VerifiedCertificate): FastPayError {
  const { sender, sequence } = certificate.order.transfer;
  const message =
    `another copy of this wallet used number ${sequence} of account ${formatAccount(sender)} for another transfer; ` +
    "this one is never executed";
  return new FastPayError("superseded", message, "check the history, then order it again", {
    details: { certificate },
  });
}

/** f + 1 authorities report that the number was voided. */
export function voided(): FastPayError {
  const message = "this number was voided: nothing is ever paid with it";
  return new FastPayError("voided", message, "resume to record it, then order it again");
}

/** f + 1 authorities wait for a decision on the number. */
export function frozen(): FastPayError {
  const message = "whether this number is void is not decided yet";
  const action = "nothing is lost: unlock the account to continue";
  return new FastPayError("frozen", message, action);
}

/** The error on which f + 1 authorities agree, one of which is honest; undefined if there is none. */
export function decidedBy(failures: Iterable<PeerFailure>, trusted: number): FastPayError | undefined {
  const kinds = [...failures].map(({ kind }) => kind);
  const agree = (on: PeerFailure["kind"]): boolean => kinds.filter((kind) => kind === on).length >= trusted;
  if (agree("voided")) return voided();
  if (agree("epoch-ended")) {
    return uncounted("a recovery ended the epoch of this certificate");
  }
  if (agree("unattested")) return unattested();
  return agree("frozen") ? frozen() : undefined;
}

/** Too few authorities know a certificate of an earlier epoch. */
export function unattested(): FastPayError {
  return uncounted("too few authorities know this certificate of an earlier epoch");
}

/** f + 1 authorities refuse a certificate for its epoch. */
function uncounted(message: string): FastPayError {
  return new FastPayError("epoch-ended", message, "resume: the same order is certified again under its number");
}

/** f + 1 authorities vote in a newer epoch than the Primary shows. */
export function newEpoch(epoch: bigint, known: bigint): FastPayError {
  const message = `the authorities vote in epoch ${epoch}, and the newest final epoch is ${known}`;
  return new FastPayError("new-epoch", message, "nothing is lost: resume in a while", { details: { epoch, known } });
}
