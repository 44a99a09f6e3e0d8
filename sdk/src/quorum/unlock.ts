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
  /** By signer, each with its order's digest. */
  readonly #attesting = new Map<AuthorityName, BatchVote & { readonly digest: Hex }>();
  /**
   * The first that each authority showed: an honest one has one of a number. Retired keys can make others, also of the
   * same order.
   */
  readonly #shown = new Map<string, VerifiedCertificate>();
  readonly #voiding = new Map<AuthorityName, BatchVote>();
  readonly #failures = new Map<string, { readonly authority: AuthorityClient; readonly failure: PeerFailure }>();
  /** The certificates that were sent to all authorities. */
  readonly #brought = new Set<string>();

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
      if (!this.#attesting.has(vote.authority)) this.#attesting.set(vote.authority, { ...vote, digest: certificate.digest });
      if (!this.#shown.has(authority.url)) this.#shown.set(authority.url, certificate);
    }
  }

  /** Adds the failure of an authority that gave no vote. */
  fail(authority: AuthorityClient, failure: PeerFailure): void {
    this.#failures.set(authority.url, { authority, failure });
  }

  #misbehaved(authority: AuthorityClient, message: string): void {
    this.fail(authority, { kind: "misbehaved", message });
  }

  /** The newest certificate of the order that most members attest; undefined if no authority returned one. */
  get certificate(): VerifiedCertificate | undefined {
    const votes = ({ digest }: VerifiedCertificate): number => this.#votesFor(digest).size;
    return [...this.#shown.values()].sort((a, b) => votes(b) - votes(a) || Number(b.epoch - a.epoch))[0];
  }

  /** The certificates that were not sent to all authorities yet, one of each epoch and order. */
  get unbrought(): readonly VerifiedCertificate[] {
    const shown = [...this.#shown.values()].map((certificate) => [keyOf(certificate), certificate] as const);
    return [...new Map(shown.filter(([key]) => !this.#brought.has(key))).values()];
  }

  /** Notes that a certificate was sent to all authorities. */
  bring(certificate: VerifiedCertificate): void {
    this.#brought.add(keyOf(certificate));
  }

  /** The number of members that attest a certificate, and of those that vote to void the number. */
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

  /** The decision that the votes suffice for, if any. Nothing is void while a certificate was not sent to all. */
  decision(): UnlockDecision | undefined {
    const { quorum, members } = this.committee;
    const { certificate } = this;
    const attested = certificate && this.#packed(this.#votesFor(certificate.digest), quorum);
    if (attested) return { type: "uphold", digest: certificate.digest, votes: attested };
    if (this.unbrought.length > 0) return undefined;
    const votes = this.#packed(this.#voiding, this.#unanimous ? members.length : quorum);
    return votes && { type: "void", unanimous: this.#unanimous, votes };
  }

  #votesFor(digest: Hex): Map<AuthorityName, BatchVote> {
    return new Map([...this.#attesting].filter(([, vote]) => vote.digest === digest));
  }

  #packed(votes: ReadonlyMap<AuthorityName, BatchVote>, needed: number): Hex | undefined {
    if (votes.size < needed) return undefined;
    return packVotes(this.committee, firstVotes(votes, needed));
  }
}

function keyOf({ epoch, digest }: VerifiedCertificate): string {
  return `${epoch}/${digest}`;
}

/**
 * Requests every authority's vote about a number. If some return certificates, sends each to all, and requests the
 * votes again, until none returns another one: an authority that keeps a certificate attests it, and no longer votes to
 * void the number. There are at most as many rounds as authorities. Throws `aborted`.
 */
export async function voteUnlock(operation: Operation, number: OrderName, unanimous: boolean): Promise<UnlockBallot> {
  const { network, signal } = operation;
  const ballot = new UnlockBallot(network.domain, network.committee, number, unanimous);
  await askUnlock(operation, ballot, number, unanimous);
  for (;;) {
    const certificates = ballot.unbrought;
    if (certificates.length === 0) return ballot;
    // While the number is frozen, an authority refuses a certificate, but keeps it. All are sent at the same time: a
    // forged one may take the whole time.
    const bring = (certificate: VerifiedCertificate): Promise<void> =>
      askEverybody(network, (authority, until) => authority.confirm(certificate, until), signal);
    await Promise.all(certificates.map(bring));
    for (const certificate of certificates) ballot.bring(certificate);
    await askUnlock(operation, ballot, number, unanimous);
  }
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
