/**
 * Brings one authority up to date with certificates that it lacks: of the sender's own earlier orders, and of payments
 * that the sender received. Executing a certificate requires only the same sender's earlier certificates, no balance,
 * so no step here recurses into other senders.
 */

import type { AccountId } from "../accounts.js";
import { memberIn, type AuthorityClient } from "../authority.js";
import type { Hex } from "../bytes.js";
import type { VerifiedCertificate } from "../certificate.js";
import { isFastPayError, messageOf } from "../errors.js";
import { ProblemError } from "../problem.js";
import type { PeerFailure } from "../progress.js";
import { readNewest } from "../lists.js";
import { listedOf, ReceivedProofs, textOf } from "../received.js";
import { sleep } from "../waiting.js";
import type { ReceivedItem } from "../wire.js";
import { isUnattested, submit } from "./attest.js";
import type { Operation } from "./certify.js";
import { misbehaved, PeerFailureError } from "./failures.js";

/** The number of newest received payments that are compared. */
const RECEIVED_MAX = 2_000;
/**
 * The extra time for the other lists after those of a quorum: a distant authority may be the only one with a payment.
 */
const LATE_LIST_MS = 1_000;
/** The maximum number of attempts to confirm a certificate, with earlier certificates sent in between. */
const CONFIRM_ROUNDS_MAX = 4;
/** Once certificates of a list were refused for so long, the rest of it is left out: other lists may have the same. */
const REFUSED_MAX_MS = 3_000;

/** Refusals that have no facts. */
const PLAIN = ["no-primary", "frozen", "voided", "not-requested"] as const;

/** Converts an error to a peer failure. */
export function failureOf(error: unknown): PeerFailure {
  if (error instanceof PeerFailureError) return error.failure;
  if (error instanceof ProblemError) {
    const { expectedSequence } = error.facts;
    const isGap = error.problem === "missing-certificate" || error.problem === "sequence-too-high";
    if (isGap && expectedSequence !== undefined) return { kind: "behind", sequence: expectedSequence };
    if (error.problem === "epoch-ended") return { kind: "epoch-ended", epoch: error.facts.epoch ?? 0n };
    if (error.problem === "unattested") return { kind: "unattested", epoch: error.facts.epoch ?? 0n };
    if (error.problem === "catching-up" && expectedSequence === undefined) return { kind: "restored" };
    const plain = PLAIN.find((kind) => kind === error.problem);
    if (plain !== undefined) return { kind: plain };
    return { kind: error.isTransient ? "silent" : "refused", message: error.message };
  }
  const isMalformed = error instanceof Error && "code" in error && error.code === "malformed-answer";
  return { kind: isMalformed ? "misbehaved" : "silent", message: messageOf(error) };
}

/** Whether an authority gives no answer to a request for now. */
export function isSilence({ kind }: PeerFailure): boolean {
  return kind === "silent" || kind === "restored";
}

/** Whether an authority refuses a certificate because a recovery has ended the epoch of it. */
export function isEpochEnded(error: unknown): error is ProblemError {
  return error instanceof ProblemError && error.problem === "epoch-ended";
}

/** A verified certificate, from this client's storage or else from any authority that has it. */
async function certificateOf(
  operation: Operation,
  account: AccountId,
  sequence: bigint,
  signal: AbortSignal,
): Promise<VerifiedCertificate | undefined> {
  const stored = await operation.stored(account, sequence).catch(() => undefined);
  const own = stored && (await operation.network.verify(stored, account, sequence).catch(() => undefined));
  return own ?? operation.network.findCertificate(account, sequence, { signal });
}

/** Submits the certificates of `account` from one number up to another (exclusive). */
export async function pushSent(
  operation: Operation,
  authority: AuthorityClient,
  account: AccountId,
  from: bigint,
  to: bigint,
  signal: AbortSignal,
): Promise<void> {
  let sequence = from;
  while (sequence < to) {
    const certificate = await certificateOf(operation, account, sequence, signal);
    if (certificate === undefined) throw new PeerFailureError({ kind: "behind", sequence });
    operation.report({ type: "catching-up", authority, account, sequence });
    const { nextSequence: next } = await submit(operation, authority, certificate, signal).catch(async (error: unknown) => {
      // The stored certificate may be of an ended epoch, while another authority has one of the present epoch.
      const isOver = isEpochEnded(error) || isUnattested(error);
      const newer = isOver ? await operation.network.findCertificate(account, sequence, { signal }) : undefined;
      if (newer === undefined) throw error;
      return submit(operation, authority, newer, signal);
    }).catch((error: unknown) => {
      // That says nothing of the order that follows.
      throw isUnattested(error) || failureOf(error).kind === "voided" ? new PeerFailureError({ kind: "behind", sequence }) : error;
    });
    if (next <= sequence) throw misbehaved(`it confirmed ${sequence} and expects ${next}`);
    // It may be further than it reported before. Numbers from `to` on do not matter here.
    sequence = next;
  }
}

/**
 * Submits a certificate, after the missing earlier certificates of the same sender. Returns the authority's epoch, if
 * it reports one. Throws errors that `failureOf` converts.
 */
export async function confirm(
  operation: Operation,
  authority: AuthorityClient,
  certificate: VerifiedCertificate,
  signal: AbortSignal,
): Promise<bigint | undefined> {
  const { sender, sequence } = certificate.order.transfer;
  let lastMissing = -1n;
  for (let round = 0; round < CONFIRM_ROUNDS_MAX; round += 1) {
    try {
      const { nextSequence: next, epoch } = await submit(operation, authority, certificate, signal);
      if (next > sequence) return epoch;
      throw misbehaved(`it confirmed ${sequence} and expects ${next}`);
    } catch (error) {
      const missing = missingBefore(error, sequence);
      if (missing === undefined) throw error;
      if (missing <= lastMissing) throw misbehaved(`it repeatedly asks for certificate ${missing}`);
      lastMissing = missing;
      await pushSent(operation, authority, sender, missing, sequence, signal);
    }
  }
  throw misbehaved("it asks for certificates without end");
}

function missingBefore(error: unknown, sequence: bigint): bigint | undefined {
  if (!(error instanceof ProblemError) || error.problem !== "missing-certificate") return undefined;
  const missing = error.facts.expectedSequence;
  return missing !== undefined && missing < sequence ? missing : undefined;
}

/**
 * Sends the authority the certificates of payments to `account` that other authorities list and this one does not,
 * except those in `known`. Returns the number of certificates confirmed. One that it refuses ends nothing else: its number
 * may be frozen or void there. Throws if it does not answer.
 */
export async function pushReceived(
  operation: Operation,
  authority: AuthorityClient,
  account: AccountId,
  known: Set<string>,
  signal: AbortSignal,
): Promise<number> {
  for (const entry of await newestReceived(authority, account, signal)) known.add(textOf(listedOf(entry)));
  // All at once: an authority that does not answer, or answers each page just in time, must not delay the other lists.
  const enough = new AbortController();
  const patience = AbortSignal.timeout(operation.timing.fundsPatienceMs);
  const until = AbortSignal.any([signal, enough.signal, patience]);
  const others = operation.network.authorities.filter((other) => other !== authority);
  const lists = new Map(
    others.map((other) => {
      const list = newestReceived(other, account, until).catch(() => undefined);
      return [other, list.then((entries) => ({ other, entries }))];
    }),
  );
  const proofs = new ReceivedProofs(operation.network, account);
  const brought = new Set<Hex>();
  let listed = 0;
  while (lists.size > 0) {
    const { other, entries } = await Promise.race(lists.values());
    lists.delete(other);
    if (entries === undefined) continue;
    let refused = 0;
    for (const entry of entries) {
      const begun = Date.now();
      const listed = listedOf(entry);
      const { sender, sequence } = listed;
      if (known.has(textOf(listed))) continue;
      const proof = (await proofs.find(other, listed, signal))?.proof;
      // An honest authority can prove every entry that it lists. Without this `break`, a liar with a long invented list
      // would delay us until the deadline.
      if (proof === undefined) break;
      // What a checkpoint proves cannot be sent: its certificate is pruned.
      if (proof.type === "certificate" && !brought.has(proof.certificate.digest)) {
        operation.report({ type: "catching-up", authority, account: sender, sequence });
        try {
          await confirm(operation, authority, proof.certificate, signal);
          brought.add(proof.certificate.digest);
        } catch (error) {
          // Other members may be silent about a certificate that needs their votes: that is not its silence.
          if (isSilence(failureOf(error)) && !isFastPayError(error, "no-quorum")) throw error;
          refused += Date.now() - begun;
          if (refused < REFUSED_MAX_MS) continue;
          break;
        }
      }
      known.add(textOf(listed));
    }
    // With this authority, these lists are a quorum. The others get a little more time.
    if (memberIn(operation.network.committee, other) !== undefined) listed += 1;
    if (listed === operation.network.committee.quorum - 1) void sleep(LATE_LIST_MS, until).then(() => enough.abort());
  }
  return brought.size;
}

/** The newest payments that an authority lists as received. */
async function newestReceived(
  authority: AuthorityClient,
  account: AccountId,
  signal: AbortSignal,
): Promise<readonly ReceivedItem[]> {
  const { received } = await authority.account(account, undefined, signal);
  return readNewest((start) => authority.received(account, start, signal), received, RECEIVED_MAX);
}
