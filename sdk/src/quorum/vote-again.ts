/**
 * Collects the current committee's votes for a redemption whose certificate belongs to an ended epoch. An authority
 * votes for each redemption that it has confirmed, under every epoch and as often as it is asked.
 */

import type { AuthorityClient } from "../authority.js";
import type { Hex } from "../bytes.js";
import { packVotes, type VerifiedCertificate } from "../certificate.js";
import type { AuthorityName } from "../committee.js";
import { redemptionBatchVoteDigest } from "../eip712.js";
import { ProblemError } from "../problem.js";
import type { Redemption } from "../transfer.js";
import { batchVoteFault, firstVotes, mayVoteFor, type BatchVote } from "../verify.js";
import { confirm } from "./catch-up.js";
import type { Operation } from "./certify.js";
import { Ahead, throughEpochs } from "./epochs.js";
import { untilQuorum } from "./everyone.js";
import { misbehaved, PeerFailureError } from "./failures.js";

/** Votes of a quorum for a batch of redemptions, in the contract's encoding. */
export interface BatchVotes {
  readonly epoch: bigint;
  readonly votes: Hex;
}

/** A verified vote, or the newer epoch that an authority votes in. */
type Answer = { readonly vote: BatchVote } | { readonly ahead: bigint };

/** Collects the votes. Throws `no-quorum`, `new-epoch` or `aborted`. The call may be repeated. */
export async function voteAgain(
  operation: Operation,
  certificate: VerifiedCertificate,
  redemption: Redemption,
): Promise<BatchVotes> {
  await operation.network.committees.refresh();
  return throughEpochs(operation, (attempt) => gather(attempt, certificate, redemption));
}

async function gather(operation: Operation, certificate: VerifiedCertificate, redemption: Redemption): Promise<BatchVotes> {
  const { committee, domain } = operation.network;
  const { epoch, quorum } = committee;
  const digest = redemptionBatchVoteDigest(domain, epoch, [redemption]);
  const votes = new Map<AuthorityName, BatchVote>();
  const ahead = new Ahead(committee);
  const act = async (authority: AuthorityClient, signal: AbortSignal): Promise<Answer> => {
    const answer = await ask(operation, authority, certificate, signal);
    if (answer.epoch > epoch) {
      operation.report({ type: "waiting", authority, failure: { kind: "other-epoch", epoch: answer.epoch } });
      return { ahead: answer.epoch };
    }
    if (answer.epoch < epoch) throw new PeerFailureError({ kind: "other-epoch", epoch: answer.epoch });
    const fault = batchVoteFault(answer, committee, digest);
    if (fault !== undefined) throw misbehaved(`a vote that does not count (${fault})`);
    if (!mayVoteFor(committee, authority.name, answer.authority)) throw misbehaved("the vote of another authority");
    return { vote: answer };
  };
  const take = (answer: Answer, authority: AuthorityClient): number => {
    if ("ahead" in answer) {
      ahead.enter(answer.ahead, authority.member);
    } else {
      // Counted by signer, so a repeated vote of another authority adds nothing.
      votes.set(answer.vote.authority, answer.vote);
      if (votes.size <= quorum) operation.report({ type: "vote", authority, votes: votes.size, quorum });
    }
    return votes.size;
  };
  await untilQuorum(operation, { what: "votes", quorum, backgroundMs: 0, act, take });
  return { epoch, votes: packVotes(committee, firstVotes(votes, quorum)) };
}

/** Requests the authority's vote. If it lacks the certificate, submits that first. */
async function ask(operation: Operation, authority: AuthorityClient, certificate: VerifiedCertificate, signal: AbortSignal) {
  const { sender, sequence } = certificate.order.transfer;
  try {
    return await authority.voteForRedemptions([{ sender, sequence }], signal);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { problem, facts } = error;
    // Its operator may not have given it the new keys yet, or it has not read the rotation.
    if (problem === "not-voting") throw new PeerFailureError({ kind: "other-epoch", epoch: facts.epoch ?? 0n });
    if (problem !== "redemptions-missing") throw error;
    operation.report({ type: "catching-up", authority, account: sender, sequence });
    await confirm(operation, authority, certificate, signal);
    // Ask again only after a pause: an authority that lies about it must not make this loop spin.
    throw new PeerFailureError({ kind: "behind", sequence });
  }
}
