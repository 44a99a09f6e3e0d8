/**
 * Requests and counts the current committee's votes about a number that its owner asked the contract to unlock
 * (docs/PROTOCOL.md, unlocking). The counting is pure.
 */

import type { AccountId } from "../accounts.js";
import type { AuthorityClient } from "../authority.js";
import type { Hex } from "../bytes.js";
import { packVotes, type VerifiedCertificate } from "../certificate.js";
import type { AuthorityName, Committee } from "../committee.js";
import { certificateVoteDigest, voidVoteDigest } from "../eip712.js";
import { messageOf } from "../errors.js";
import { membersAmong, type Network } from "../network.js";
import type { PeerFailure } from "../progress.js";
import type { Domain } from "../transfer.js";
import { batchVoteFault, firstVotes, mayVoteFor, type BatchVote } from "../verify.js";
import type { OrderName, UnlockVote } from "../wire.js";
import { failureOf } from "./catch-up.js";
import type { Operation } from "./certify.js";
import { misbehaved } from "./failures.js";

/** A decision for the contract, with the votes that prove it. */
export type UnlockDecision =
  /** The order with this digest is certified. */
  | { readonly type: "uphold"; readonly digest: Hex; readonly votes: Hex }
  /** No order of the number is certified. */
  | { readonly type: "void"; readonly unanimous: boolean; readonly votes: Hex };

/** The votes about one number. They count by signer. */
export class UnlockBallot {
  readonly committee: Committee;
  readonly #domain: Domain;
  readonly #account: AccountId;
  readonly #sequence: bigint;
  readonly #unanimous: boolean;
  readonly #attesting = new Map<AuthorityName, BatchVote>();
  readonly #voiding = new Map<AuthorityName, BatchVote>();
  readonly #failures = new Map<string, { readonly authority: AuthorityClient; readonly failure: PeerFailure }>();
  #certificate: VerifiedCertificate | undefined;

  /** Starts without votes. If `unanimous`, voiding the number needs the votes of all members. */
  constructor(domain: Domain, committee: Committee, { sender, sequence }: OrderName, unanimous: boolean) {
    this.#domain = domain;
    this.committee = committee;
    this.#account = sender;
    this.#sequence = sequence;
    this.#unanimous = unanimous;
  }

  /** Adds an authority's answer. `certificate` is the answer's certificate, verified for this number, if it has one. */
  take(authority: AuthorityClient, vote: UnlockVote, certificate: VerifiedCertificate | undefined): void {
    const { epoch } = this.committee;
    if (vote.epoch !== epoch) return this.fail(authority, { kind: "other-epoch", epoch: vote.epoch });
    const digest =
      certificate === undefined
        ? voidVoteDigest(this.#domain, epoch, this.#account, this.#sequence, this.#unanimous)
        : certificateVoteDigest(this.#domain, epoch, this.#account, this.#sequence, certificate.digest);
    const fault = batchVoteFault(vote, this.committee, digest);
    if (fault !== undefined) return this.#misbehaved(authority, `a vote that does not count (${fault})`);
    if (!mayVoteFor(this.committee, authority.name, vote.authority)) {
      return this.#misbehaved(authority, "the vote of another authority");
    }
    this.#failures.delete(authority.url);
    if (certificate === undefined) {
      this.#voiding.set(vote.authority, vote);
    } else {
      this.#certificate ??= certificate;
      this.#attesting.set(vote.authority, vote);
    }
  }

  /** Adds the failure of an authority that gave no vote. */
  fail(authority: AuthorityClient, failure: PeerFailure): void {
    this.#failures.set(authority.url, { authority, failure });
  }

  #misbehaved(authority: AuthorityClient, message: string): void {
    this.fail(authority, { kind: "misbehaved", message });
  }

  /** The certificate of the number, if an authority returned it. */
  get certificate(): VerifiedCertificate | undefined {
    return this.#certificate;
  }

  /** The number of members that attest the certificate, and of those that vote to void the number. */
  get counts(): { readonly attesting: number; readonly voiding: number } {
    return { attesting: this.#attesting.size, voiding: this.#voiding.size };
  }

  /** The failures of authorities that gave no vote, by address. */
  get failures(): ReadonlyMap<string, PeerFailure> {
    return new Map([...this.#failures].map(([url, { failure }]) => [url, failure]));
  }

  /** The number of members that gave no vote for this reason. */
  refusals(kind: PeerFailure["kind"]): number {
    const refusing = [...this.#failures.values()].filter(({ failure }) => failure.kind === kind);
    return membersAmong(refusing.map(({ authority }) => authority), this.committee);
  }

  /** The decision that the votes suffice for; undefined if there is none. */
  decision(): UnlockDecision | undefined {
    const { quorum, members } = this.committee;
    const attested = this.#certificate && this.#packed(this.#attesting, quorum);
    if (this.#certificate !== undefined && attested !== undefined) {
      return { type: "uphold", digest: this.#certificate.digest, votes: attested };
    }
    const votes = this.#packed(this.#voiding, this.#unanimous ? members.length : quorum);
    return votes && { type: "void", unanimous: this.#unanimous, votes };
  }

  #packed(votes: ReadonlyMap<AuthorityName, BatchVote>, needed: number): Hex | undefined {
    if (votes.size < needed) return undefined;
    return packVotes(this.committee, firstVotes(votes, needed));
  }
}

/**
 * Requests every authority's vote about a number. If one returns a certificate, sends it to all, and requests the votes
 * again: an authority that keeps the certificate attests it, and no longer votes to void the number. Throws `aborted`.
 */
export async function voteUnlock(operation: Operation, number: OrderName, unanimous: boolean): Promise<UnlockBallot> {
  const { network, signal } = operation;
  const ballot = new UnlockBallot(network.domain, network.committee, number, unanimous);
  await askUnlock(operation, ballot, number, unanimous);
  const { certificate } = ballot;
  if (certificate === undefined) return ballot;
  // While the number is frozen, an authority refuses the certificate, but keeps it.
  await askEverybody(network, (authority, until) => authority.confirm(certificate, until), signal);
  await askUnlock(operation, ballot, number, unanimous);
  return ballot;
}

async function askUnlock({ network, signal }: Operation, ballot: UnlockBallot, number: OrderName, unanimous: boolean): Promise<void> {
  await askEverybody(
    network,
    async (authority, until) => {
      try {
        const vote = await authority.voteForUnlock(number, unanimous, until);
        ballot.take(authority, vote, await verified(network, number, vote));
      } catch (error) {
        ballot.fail(authority, failureOf(error));
      }
    },
    signal,
  );
}

async function verified(network: Network, { sender, sequence }: OrderName, vote: UnlockVote): Promise<VerifiedCertificate | undefined> {
  if (vote.type === "void") return undefined;
  try {
    return await network.verifyCounting(vote.certificate, sender, sequence);
  } catch (error) {
    throw misbehaved(messageOf(error));
  }
}

/** Asks all authorities, and waits for each for the whole time for reads: the decision may need every vote. */
async function askEverybody(
  network: Network,
  act: (authority: AuthorityClient, until: AbortSignal) => Promise<unknown>,
  signal: AbortSignal | undefined,
): Promise<void> {
  await network.askAll(act, { signal, graceMs: Number.POSITIVE_INFINITY });
}
