/**
 * The votes of f + 1 members of the current committee that a certificate of an earlier epoch exists. One of them is
 * honest, and executed it, or kept it while it counted. With them, it counts at an authority after its epoch ended long
 * ago, and its confirmations are of no other order.
 */

import { memberIn, type AuthorityClient } from "../authority.js";
import type { VerifiedCertificate } from "../certificate.js";
import type { AuthorityName, Committee } from "../committee.js";
import { certificateVoteDigest } from "../eip712.js";
import type { Network } from "../network.js";
import { ProblemError, prunedOf } from "../problem.js";
import type { PeerFailure } from "../progress.js";
import { batchVoteFault, firstVotes, mayVoteFor, type BatchVote } from "../verify.js";
import type { Confirmed } from "../wire.js";
import { failureOf } from "./catch-up.js";
import type { Operation } from "./certify.js";
import { noQuorum, onlyArchived } from "./failures.js";

/** The refusals that say that an authority has no vote for a certificate. Others say nothing about it. */
const DENIALS: readonly string[] = [
  "not-requested",
  "sequence-too-high",
  "window-open",
  "catching-up",
  "frozen",
  "overruled",
  "voided",
];

/** Whether an authority refuses a certificate because its epoch ended too long ago. */
export function isUnattested(error: unknown): error is ProblemError {
  return error instanceof ProblemError && error.problem === "unattested";
}

/**
 * Submits a certificate, with the votes of others that it exists if it does not count by itself at this authority.
 * Throws what the authority answers: `unattested` if so many members do not know the certificate that it cannot get the
 * votes, and then no search finds it again, if its epoch has ended; if others have not answered, a failure after which it
 * is tried again.
 */
export async function submit(
  operation: Operation,
  authority: AuthorityClient,
  certificate: VerifiedCertificate,
  signal: AbortSignal,
): Promise<Confirmed> {
  const { network } = operation;
  const { committee } = network;
  try {
    return await authority.confirm(certificate, signal);
  } catch (error) {
    if (!isUnattested(error)) throw error;
    const votes = await attest(network, committee, certificate, signal);
    if (votes !== undefined) return authority.confirmAttested(certificate, committee.epoch, votes, signal);
    // Members that have not executed one of this epoch yet deny it, too.
    if (certificate.epoch < committee.epoch) network.outdate(certificate);
    throw error;
  }
}

/**
 * The votes of f + 1 members of this committee that exactly the order of this certificate is certified, in the order of
 * their names; undefined if it cannot get them, because others deny it. Throws `no-quorum` if these have not answered, or
 * if f + 1 have pruned the number: then archives decide.
 */
export async function attest(
  network: Network,
  committee: Committee,
  certificate: VerifiedCertificate,
  signal: AbortSignal | undefined,
): Promise<readonly BatchVote[] | undefined> {
  const trusted = committee.faultsTolerated + 1;
  const { sender, sequence } = certificate.order.transfer;
  const digest = certificateVoteDigest(network.domain, committee.epoch, sender, sequence, certificate.digest);
  const found = new Map<AuthorityName, BatchVote>();
  const denied = new Set<string>();
  const pruned = new Set<string>();
  const failures = new Map<string, PeerFailure>();
  const isLost = (): boolean => committee.members.length - denied.size < trusted;
  const enough = new AbortController();
  const ask = async (authority: AuthorityClient, until: AbortSignal): Promise<void> => {
    const deny = (): void => {
      const member = memberIn(committee, authority);
      if (member !== undefined) denied.add(member);
      if (isLost()) enough.abort();
    };
    // A vote to void the number would count only with those of all members.
    const asked = authority.voteForUnlock({ sender, sequence }, true, AbortSignal.any([until, enough.signal]));
    const vote = await asked.catch((error: unknown) => {
      if (error instanceof ProblemError && DENIALS.includes(error.problem)) deny();
      const member = memberIn(committee, authority);
      if (prunedOf(error) !== undefined && member !== undefined) pruned.add(member);
      failures.set(authority.url, failureOf(error));
      throw error;
    });
    if (vote.epoch !== committee.epoch) return void failures.set(authority.url, { kind: "other-epoch", epoch: vote.epoch });
    if (vote.type === "void") return deny();
    if (!mayVoteFor(committee, authority.name, vote.authority) || batchVoteFault(vote, committee, digest) !== undefined) {
      return deny();
    }
    found.set(vote.authority, vote);
    if (found.size >= trusted) enough.abort();
  };
  await network.askAll(ask, { signal, graceMs: Number.POSITIVE_INFINITY });
  if (found.size >= trusted) return firstVotes(found, trusted);
  if (isLost()) return undefined;
  // One of them is honest: it executed an order under this number, and an archive proves which.
  if (pruned.size >= trusted) throw onlyArchived(sequence);
  throw noQuorum("confirmations", found.size, trusted, true, failures);
}
