/**
 * Finishes stored orders, and orders of other copies of this wallet: the same key in another browser, or on another
 * device.
 *
 * ```text
 *  numbers that others used ─► store their certificates
 *  an order that authorities are locked on ─► adopt: store it like our own, and finish it
 *  two orders for one number ─► OrderConflict ─► finish the one that still can be ─► the other is superseded
 *  the contract voided the number ─► store that: its order is never executed
 *  all authorities have pruned the number ─► store what a checkpoint proves of it
 *  a recovery ended the certificate's epoch ─► certify its order again, under the same number
 *  a recovery debited what the contract had paid ─► store that, once authorities have stepped over the number
 * ```
 * This module signs nothing. It verifies that every order that it sends was signed with this account's key. Our own
 * order, or an adopted one, is stored before it is sent. If a competitor of our order wins, its certificate is stored
 * before it is settled.
 */

import type { AccountId } from "../accounts.js";
import type { ArchivedNumber } from "../archive/page.js";
import type { Hex } from "../bytes.js";
import type { VerifiedCertificate } from "../certificate.js";
import { OrderConflict } from "../quorum/conflict.js";
import { certify, type Operation } from "../quorum/certify.js";
import { throughEpochs } from "../quorum/epochs.js";
import { conflictError } from "../quorum/failures.js";
import { settle } from "../quorum/settle.js";
import { transferDigest } from "../eip712.js";
import { FastPayError, isFastPayError, messageOf } from "../errors.js";
import { goodAnswers, provenByArchive, type Answers, type Network } from "../network.js";
import { claimsAbove } from "../agreement.js";
import type { OrderJournal, Stored } from "../storage/journal.js";
import type { Transfer } from "../transfer.js";
import { verifyOrder, type VerifiedOrder } from "../verify.js";
import type { AccountState, ProvenTransfer, Receipt, Resumed } from "../views.js";
import { conflictOf, readConflict } from "./conflicts.js";
import { isPassed, isSpentUnexecuted, isVoid, noteSpent } from "./voids.js";

/**
 * The number of newest certificates of another copy that are stored here. Older ones stay at the authorities until
 * something depends on them.
 */
const LEARNED_MAX = 256n;
/** The number of certificates of one number that are tried: retired keys can make several. */
const CERTIFICATES_MAX = 8;
/** The number of learnt certificates that are settled at a time. */
const SETTLED_AT_ONCE = 8;

/** Finishes a stored order. */
export async function finish(operation: Operation, journal: OrderJournal, entry: Stored): Promise<Resumed> {
  const { network, timing, signal } = operation;
  const { account } = journal;
  const { sequence } = entry;
  const ask = () => network.askAll((authority, until) => authority.account(account, undefined, until), { signal });
  /** What else became of the number. Throws `error` if that is not known. */
  const otherwise = async (order: Transfer, error: unknown): Promise<Resumed> => {
    if (isFastPayError(error, "voided") && (await noteVoid(operation, journal, sequence))) return { type: "voided", order };
    // Authorities step over a number that a recovery debited when they are asked for something about it. They do not
    // attest an order that they have pruned.
    const passed = await ask().then((answers) => finishPassed(operation, journal, order, answers)).catch(() => undefined);
    if (passed === undefined) throw error;
    return passed;
  };
  let toCertify = entry.order;
  if (entry.certificate !== undefined) {
    const certificate = await network.verify(entry.certificate, account, sequence).catch(() => undefined);
    if (certificate !== undefined) {
      const ordered = entry.order?.transfer;
      const digest = ordered && transferDigest(network.domain, ordered);
      announce(operation, digest, certificate.order.transfer, certificate.digest);
      try {
        return resumedOf(ordered, digest, await settleStored(operation, journal, certificate));
      } catch (error) {
        if (!isFastPayError(error, "epoch-ended")) return otherwise(ordered ?? certificate.order.transfer, error);
        // Not our own order if this one had superseded it: its owner may have ordered that again.
        toCertify = certificate.order;
      }
    }
  }
  if (toCertify === undefined) {
    const message = `the stored certificate of number ${sequence} is not valid, and there is no order`;
    throw new FastPayError("storage", message, "was the storage altered, or the Ethereum node changed?");
  }
  const order = verifyOrder(toCertify, network.domain);
  const ordered = entry.order?.transfer ?? order.transfer;
  announce(operation, order.digest, order.transfer, order.digest);
  // Another copy may have more votes for another order. Then send that one, not ours, to authorities that hold none.
  const { committee } = network;
  let answers = await ask();
  const passed = await finishPassed(operation, journal, ordered, answers);
  if (passed !== undefined) return passed;
  // Answers count for the members of their time.
  if (network.committee !== committee) answers = await ask();
  // Authorities execute nothing under this number before they have executed the numbers below it.
  await renew(operation, journal, sequence, answers);
  const conflict = conflictOf(network, account, sequence, answers);
  conflict.enter(order);
  if (conflict.contenders().length > 1) {
    // A single vote for the wrong order may make the account stuck, so read the state of all authorities first.
    conflict.merge(await readConflict(network, account, sequence, timing.readMs, signal));
  }
  try {
    return await bringHome(operation, journal, order, conflict.leader() ?? order, true, ordered);
  } catch (error) {
    return otherwise(ordered, error);
  }
}

/**
 * Finishes again what was certified under numbers below `next` and is not executed by f + 1 of the authorities that
 * answer. A settled transfer is among it only if a recovery left it out, or if authorities lie or are slow; then this does
 * no harm. Without this, nothing can be certified under a later number.
 */
export async function renew(
  operation: Operation,
  journal: OrderJournal,
  next: bigint,
  answers: Answers<AccountState>,
): Promise<Resumed[]> {
  const renewed: Resumed[] = [];
  for (const entry of await leftOut(operation, journal, next, answers)) renewed.push(await finish(operation, journal, entry));
  return renewed;
}

/**
 * What was certified under numbers below `next`, as a certificate here shows or a checkpoint proved of an order of this
 * storage, and is not executed by f + 1 of the authorities that answer, oldest first.
 */
export async function leftOut(
  { network }: Pick<Operation, "network">,
  journal: OrderJournal,
  next: bigint,
  answers: Answers<AccountState>,
): Promise<Stored[]> {
  const open: Stored[] = [];
  for (let sequence = next - 1n; sequence >= 0n && !isPassed(network, sequence, answers); sequence -= 1n) {
    const entry = await journal.entry(sequence);
    if (entry === undefined || entry.state === "voided") continue;
    if (entry.certificate !== undefined || (entry.state === "settled" && entry.order !== undefined)) open.unshift(entry);
  }
  return open;
}

/**
 * The outcome of an order whose number authorities are beyond, without a certificate of it: they have pruned that, or
 * stepped over the number.
 */
async function finishPassed(
  operation: Operation,
  journal: OrderJournal,
  order: Transfer,
  answers: Answers<AccountState>,
): Promise<Resumed | undefined> {
  const { sender, sequence } = order;
  if (!goodAnswers(answers).some(({ answer }) => answer.nextSequence > sequence)) return undefined;
  const found = await findCounting(operation, sender, sequence, answers);
  if (found === undefined) return noteSpent(operation, journal, order, answers);
  if (found === "void") {
    await journal.void(sequence);
    return { type: "voided", order };
  }
  if (found.proof.type !== "checkpoint" || !isTaken(operation.network, found, answers)) return undefined;
  await journal.archive(found);
  return { type: "archived", order, executed: found };
}

/** Stores that a number is void, if it is. Returns whether it is. */
export async function noteVoid(operation: Operation, journal: OrderJournal, sequence: bigint): Promise<boolean> {
  const { account } = journal;
  const { network, signal } = operation;
  const answers = await network.accountStates(account, undefined, signal);
  if (!(await isVoid(operation, account, sequence, answers))) return false;
  const found = await findCounting(operation, account, sequence, answers);
  if (found !== undefined && found !== "void") return false;
  await journal.void(sequence);
  return true;
}

/**
 * What is proven of a number, without a certificate that authorities refuse: of an epoch that a recovery has ended, or
 * of a void number, which one authority may have kept back, or of another order than was executed. That is only known
 * once it was sent to the authorities. As long as it is not known, the certificate counts, unless a checkpoint proves
 * what was executed.
 */
async function findCounting(
  operation: Operation,
  account: AccountId,
  sequence: bigint,
  answers: Answers<AccountState>,
): Promise<ProvenTransfer | "void" | undefined> {
  const { network, timing, signal } = operation;
  const options = { isPassed: isPassed(network, sequence, answers), signal };
  for (let tried = 1; ; tried += 1) {
    const found = await network.findNumber(account, sequence, options);
    const certificate = found === undefined || found === "void" || found.proof.type !== "certificate" ? undefined : found.proof.certificate;
    if (certificate === undefined) return found;
    try {
      await settle({ ...operation, timing: { ...timing, deadlineMs: timing.readMs }, report: () => undefined }, certificate);
      return found;
    } catch (error) {
      if (isFastPayError(error, "voided")) return undefined;
      // It is not found again.
      if (isFastPayError(error, "epoch-ended") && tried < CERTIFICATES_MAX) continue;
      const isOld = certificate.epoch < network.committee.epoch;
      const archived = isOld ? await network.findArchived(account, sequence, options) : undefined;
      return archived ?? (isFastPayError(error, "epoch-ended") ? undefined : found);
    }
  }
}

/**
 * True if what is proven of a number shows that authorities are beyond it. What a recovery debited may stand behind
 * numbers that are free: then f + 1 authorities must have stepped over it, too.
 */
function isTaken(network: Network, { transfer, proof }: ProvenTransfer, answers: Answers<AccountState>): boolean {
  const isBehindGap = proof.type === "checkpoint" && proof.isPaid;
  return !isBehindGap || isPassed(network, transfer.sequence, answers);
}

/** The outcome of a number with a certificate. */
type Certified = Extract<Resumed, { type: "settled" | "superseded" }>;

/** Reports the order whose steps follow: our own, if its digest is `own`, or another copy's. */
function announce(operation: Operation, own: Hex | undefined, transfer: Transfer, digest: Hex): void {
  if (digest === own) operation.report({ type: "ordered", transfer, digest, resumed: true });
  else operation.report({ type: "adopted", transfer });
}

/**
 * Certifies and settles an order, or the order that takes its number. Sends `first` first: this order or a competing
 * one. `ordered` is this storage's order.
 */
export async function bringHome(
  operation: Operation,
  journal: OrderJournal,
  order: VerifiedOrder,
  first: VerifiedOrder,
  resumed: boolean,
  ordered: Transfer = order.transfer,
): Promise<Certified> {
  const start = performance.now();
  for (let tried = 1; ; tried += 1) {
    const certificate = await certifyOne(operation, order, first);
    const certifiedAfterMs = performance.now() - start;
    // If the storage fails, settle the payment all the same: `settleStored` reports the failure.
    await journal.certify(certificate).catch(() => undefined);
    try {
      const receipt = await settleStored(operation, journal, certificate);
      return resumedOf(ordered, transferDigest(operation.network.domain, ordered), { ...receipt, resumed, certifiedAfterMs });
    } catch (error) {
      // A liar showed what retired keys may have made. It is not found again.
      if (!isFastPayError(error, "epoch-ended") || tried >= CERTIFICATES_MAX) throw error;
    }
  }
}

/** The outcome of our order, given the certificate of its number. */
function resumedOf(ordered: Transfer | undefined, digest: Hex | undefined, receipt: Receipt): Certified {
  const { certificate } = receipt;
  if (ordered === undefined || digest === certificate.digest) return { type: "settled", receipt };
  return { type: "superseded", order: ordered, certificate };
}

/**
 * Obtains a certificate for the number of `order`: of this order, or of any competitor that can still get one. The
 * result is not settled yet.
 */
export async function certifyOne(operation: Operation, order: VerifiedOrder, first: VerifiedOrder): Promise<VerifiedCertificate> {
  const tried = new Set<string>();
  let next = first;
  let announced = order.digest;
  const follow = ({ transfer, digest }: { transfer: Transfer; digest: Hex }): void => {
    if (digest !== announced) announce(operation, order.digest, transfer, digest);
    announced = digest;
  };
  for (;;) {
    tried.add(next.digest);
    follow(next);
    try {
      // Locks survive a rotation: authorities vote for the same order under their new keys.
      return await throughEpochs(operation, (attempt) => certify(attempt, next));
    } catch (error) {
      const certificate = isFastPayError(error, "superseded") ? error.details["certificate"] : undefined;
      if (certificate !== undefined) {
        const { digest, order: winner } = certificate as VerifiedCertificate;
        follow({ transfer: winner.transfer, digest });
        return certificate as VerifiedCertificate;
      }
      const failure = await withAllAnswers(operation, order, error);
      const conflict = isFastPayError(failure, "conflict") ? failure.details["conflict"] : undefined;
      const leader = conflict instanceof OrderConflict ? conflict.leader() : undefined;
      if (leader !== undefined && !tried.has(leader.digest)) next = leader;
      // A liar may have reported a competitor that nobody can finish. Ours may still get its certificate.
      else if (!tried.has(order.digest)) next = order;
      else throw failure;
    }
  }
}

/** Completes a conflict, which is thrown once too many authorities are locked, with the answers of the others. */
async function withAllAnswers(operation: Operation, order: VerifiedOrder, error: unknown): Promise<unknown> {
  const conflict = isFastPayError(error, "conflict") ? error.details["conflict"] : undefined;
  if (!(conflict instanceof OrderConflict)) return error;
  const { sender, sequence } = order.transfer;
  conflict.merge(await readConflict(operation.network, sender, sequence, operation.timing.readMs, operation.signal));
  return conflictError(conflict);
}

/** Settles a certificate, and stores it and that it is settled. */
export async function settleStored(operation: Operation, journal: OrderJournal, certificate: VerifiedCertificate): Promise<Receipt> {
  operation.report({ type: "certified", certificate });
  const start = performance.now();
  const { rest } = await settle(operation, certificate);
  operation.report({ type: "settled" });
  try {
    await journal.certify(certificate, true);
    await journal.settle(certificate.order.transfer.sequence);
  } catch (cause) {
    const message = `the transfer is settled, but that cannot be stored here: ${messageOf(cause)}`;
    const action = "free storage space, then resume: nothing is paid twice";
    throw new FastPayError("storage", message, action, { details: { certificate }, cause });
  }
  return { certificate, resumed: true, certifiedAfterMs: 0, settledAfterMs: performance.now() - start, rest };
}

/**
 * The first unused number. Of the newest numbers that were used without this storage, stores the certificate, or the
 * transfer if authorities have pruned the certificate, or that the number is void. Ends at a number that nobody proves
 * now; the next call asks for it again. What may be of another order than was executed stays unfinished.
 */
export async function catchUp(operation: Operation, journal: OrderJournal, answers: Answers<AccountState>): Promise<bigint> {
  const next = await provenNext(operation, journal, await journal.nextSequence(), answers);
  await learn(operation, journal, answers, next > LEARNED_MAX ? next - LEARNED_MAX : 0n, next);
  return next;
}

/**
 * Stores what became of every number before `next`, for a caller that is about to sign an order unless there was one.
 * Throws `too-few-answers` if nobody proves one of them now.
 */
export async function learnAll(operation: Operation, journal: OrderJournal, next: bigint): Promise<void> {
  if ((await journal.missing(0n, next)).length === 0) return;
  await learn(operation, journal, await operation.network.accountStates(journal.account, undefined, operation.signal), 0n, next);
  const missing = await journal.missing(0n, next);
  if (missing.length === 0) return;
  const message = `no authority proves what became of number ${missing[0]} of the account`;
  const action = "nothing was signed; try again when more authorities can be reached";
  throw new FastPayError("too-few-answers", message, action, { details: { missing } });
}

async function learn(
  operation: Operation,
  journal: OrderJournal,
  answers: Answers<AccountState>,
  from: bigint,
  next: bigint,
): Promise<void> {
  const { network, signal } = operation;
  const { account } = journal;
  // Newest first, so that the storage has the next number even if this is interrupted.
  const missing = await journal.missing(from, next);
  const oldest = missing.at(-1);
  let archived: Map<bigint, ArchivedNumber> | undefined;
  const doubted: VerifiedCertificate[] = [];
  for (const sequence of missing) {
    const known = archived?.get(sequence);
    const options = { isPassed: isPassed(network, sequence, answers), signal };
    const found = known === undefined ? await network.findNumber(account, sequence, options) : (provenByArchive(known) ?? "void");
    if (found === undefined || found === "void") {
      const isEmpty = found === "void" || (await isVoid(operation, account, sequence, answers).catch(() => false));
      if (!isEmpty) break;
      await journal.void(sequence);
    } else if (found.proof.type === "checkpoint") {
      await journal.archive(found);
      // Authorities have pruned the older ones too. The list may lack some: each of them is asked for alone.
      archived ??= await network.archive.sent(account, oldest ?? sequence, sequence, signal);
    } else {
      const { certificate } = found.proof;
      await journal.certify(certificate);
      // A later number proves nothing of this one: it may be void, and its certificate one that was kept back.
      if (sequence + 1n < next) doubted.push(certificate);
    }
  }
  const quietly = { ...operation, report: () => undefined };
  for (let first = 0; first < doubted.length; first += SETTLED_AT_ONCE) {
    const settling = doubted.slice(first, first + SETTLED_AT_ONCE).map((certificate) => settleStored(quietly, journal, certificate));
    // They stay unfinished.
    if ((await Promise.allSettled(settling)).some(({ status }) => status === "rejected")) return;
  }
}

/**
 * The highest next number that is proven, at least `known`. The proof is the certificate of the number before it, or a
 * checkpoint if authorities have pruned that, or the contract if the number is void, or spent and stepped over.
 */
export async function provenNext(
  operation: Pick<Operation, "network" | "primary" | "signal">,
  { account }: Pick<OrderJournal, "account">,
  known: bigint,
  answers: Answers<AccountState>,
): Promise<bigint> {
  const { network, signal } = operation;
  const states = goodAnswers(answers).map(({ answer }) => answer);
  // All at once: it takes a while to establish that nobody can prove a lie.
  const claims = claimsAbove(states, known);
  const proofs = await Promise.all(
    claims.map(async (claim) => {
      const sequence = claim - 1n;
      const found = await network.findNumber(account, sequence, { isPassed: isPassed(network, sequence, answers), signal });
      if (found === "void" || (found !== undefined && isTaken(network, found, answers))) return true;
      // Without the Ethereum node a void number is not proven. The authorities then refuse an order of that number.
      if (await isVoid(operation, account, sequence, answers).catch(() => false)) return true;
      return isSpentUnexecuted(operation, account, sequence, answers);
    }),
  );
  return claims.find((_, number) => proofs[number]) ?? known;
}

/**
 * Stores an order of this account that authorities are locked on and that is not in this storage. False if there is
 * none.
 */
export async function adopt(
  operation: Operation,
  journal: OrderJournal,
  next: bigint,
  answers: Answers<AccountState>,
): Promise<boolean> {
  const conflict = conflictOf(operation.network, journal.account, next, answers);
  // If no order can be finished any more, trying one yields the error that explains why.
  const order = conflict.leader() ?? conflict.any();
  if (order === undefined) return false;
  operation.report({ type: "adopted", transfer: order.transfer });
  await journal.create(order);
  return true;
}
