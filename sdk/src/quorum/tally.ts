/**
 * Evaluates the answers to an order. Pure, so tests cover every mixture of honest and lying answers without a network.
 * Votes count by signer, all other answers by member: those of authorities that have left the committee do not count.
 */

import { certificateOf, type VerifiedCertificate } from "../certificate.js";
import { memberOf, type AuthorityName, type Committee } from "../committee.js";
import { FastPayError } from "../errors.js";
import type { PeerFailure } from "../progress.js";
import { amountOf } from "../transfer.js";
import type { VerifiedOrder, Vote } from "../verify.js";
import { OrderConflict } from "./conflict.js";
import { conflictError, decidedBy, noQuorum, noRoom } from "./failures.js";

/** A verified answer, or the lack of one. */
export type PeerAnswer =
  /** A valid vote for this order. */
  | { readonly type: "vote"; readonly vote: Vote }
  /** The number has a certificate already, of this order or another. */
  | { readonly type: "finished"; readonly certificate: VerifiedCertificate }
  /** It is locked on another order that the sender did sign. */
  | { readonly type: "locked"; readonly order: VerifiedOrder }
  /** It votes in this newer epoch, and will be asked again. */
  | { readonly type: "ahead"; readonly epoch: bigint }
  /** It will be asked again. */
  | { readonly type: "later"; readonly failure: PeerFailure }
  /** It will not be asked again. */
  | { readonly type: "out"; readonly failure: PeerFailure };

/** The verdict on all answers so far. */
export type Verdict =
  | { readonly type: "wait" }
  | { readonly type: "certified"; readonly certificate: VerifiedCertificate }
  /** Another order with this number is certified. */
  | { readonly type: "superseded"; readonly certificate: VerifiedCertificate }
  /** An honest authority votes in this epoch, or a newer one. */
  | { readonly type: "new-epoch"; readonly epoch: bigint }
  /** No quorum is possible any more. */
  | { readonly type: "impossible" };

const WAIT: Verdict = { type: "wait" };

/** The answers to one order. */
export class Tally {
  readonly #committee: Committee;
  readonly #order: VerifiedOrder;
  readonly #authorities: readonly string[];
  readonly #votes = new Map<AuthorityName, Vote>();
  readonly #voted = new Set<string>();
  readonly #ahead = new Map<string, bigint>();
  readonly #locked = new Map<string, VerifiedOrder>();
  readonly #out = new Set<string>();
  readonly #failures = new Map<string, PeerFailure>();
  /** The member at each address. */
  readonly #members = new Map<string, string>();

  /** `authorities` are the addresses of the authorities that are asked. */
  constructor(committee: Committee, order: VerifiedOrder, authorities: readonly string[]) {
    this.#committee = committee;
    this.#order = order;
    this.#authorities = authorities;
  }

  /** The number of members that have voted. */
  get votes(): number {
    return this.#votes.size;
  }

  /** Adds an answer. `authority` is the address that it came from, `member` the member at that address. */
  take(authority: string, answer: PeerAnswer, member: string): Verdict {
    this.#members.set(authority, member);
    switch (answer.type) {
      case "vote": {
        this.#locked.delete(authority);
        this.#failures.delete(authority);
        this.#voted.add(authority);
        this.#votes.set(answer.vote.authority, answer.vote);
        const certificate = certificateOf(this.#order, this.#committee, [...this.#votes.values()]);
        if (certificate !== undefined) return { type: "certified", certificate };
        break;
      }
      case "finished": {
        const isOurs = answer.certificate.digest === this.#order.digest;
        return { type: isOurs ? "certified" : "superseded", certificate: answer.certificate };
      }
      case "locked":
        this.#failures.set(authority, { kind: "locked", digest: answer.order.digest });
        this.#locked.set(authority, answer.order);
        break;
      case "ahead": {
        this.#locked.delete(authority);
        this.#failures.set(authority, { kind: "other-epoch", epoch: answer.epoch });
        this.#ahead.set(authority, answer.epoch);
        // One of f + 1 members is honest, so the lowest of the f + 1 highest epochs has begun.
        const epochs = this.#perMember(this.#ahead).sort((a, b) => (a < b ? 1 : -1));
        const epoch = epochs[this.#committee.faultsTolerated];
        if (epoch !== undefined) return { type: "new-epoch", epoch };
        break;
      }
      case "later":
        this.#locked.delete(authority);
        this.#failures.set(authority, answer.failure);
        break;
      case "out":
        this.#failures.set(authority, answer.failure);
        this.#out.add(authority);
        break;
    }
    return this.#reachable() < this.#committee.quorum ? { type: "impossible" } : WAIT;
  }

  /** The entries of a map by address, reduced to one for each member of the committee. */
  #perMember<T>(results: ReadonlyMap<string, T>): T[] {
    const named = [...results].map(([authority, one]) => [this.#members.get(authority) as AuthorityName, one] as const);
    return [...new Map(named.filter(([member]) => memberOf(this.#committee, member) !== undefined)).values()];
  }

  /**
   * The maximum number of votes. An authority that is locked on another order does not vote for this one until the
   * other is finished, and then this order is superseded.
   */
  #reachable(): number {
    const mayVote = (authority: string): boolean => !this.#locked.has(authority) && !this.#out.has(authority);
    const reachable = this.#authorities.filter((authority) => this.#voted.has(authority) || mayVote(authority));
    const members = new Set(reachable.map((authority) => this.#members.get(authority) ?? authority));
    // Addresses may be those of former members, so what present members have said counts, too.
    const answered = new Set(this.#members.values());
    const lost = this.#committee.members.filter(({ votingKey }) => answered.has(votingKey) && !members.has(votingKey));
    return Math.min(members.size, this.#committee.members.length - lost.length);
  }

  /** The orders of this number, with the authorities locked on each. */
  orderConflict(): OrderConflict {
    const conflict = new OrderConflict(this.#committee);
    conflict.enter(this.#order);
    const memberOf = (authority: string): string => this.#members.get(authority) ?? authority;
    for (const authority of this.#voted) conflict.hold(this.#order, memberOf(authority));
    for (const [authority, other] of this.#locked) conflict.hold(other, memberOf(authority));
    return conflict;
  }

  /** The error that explains why there is no certificate. */
  failure(timedOut: boolean): FastPayError {
    const { members, quorum, faultsTolerated } = this.#committee;
    const blocking = members.length - quorum;
    if (this.#perMember(this.#locked).length > blocking || (timedOut && this.#locked.size > 0)) return conflictError(this.orderConflict());
    const failures = this.#perMember(this.#failures);
    const decided = decidedBy(failures, faultsTolerated + 1);
    if (decided !== undefined) return decided;
    // f + 1 reports contain an honest one.
    if (failures.filter(({ kind }) => kind === "no-primary").length > faultsTolerated) {
      const action = "redeem with a committee that has a contract";
      return new FastPayError("no-primary", "this committee runs without a Primary: nothing can be redeemed", action);
    }
    const full = failures.flatMap((failure) => (failure.kind === "no-room" ? [failure] : []));
    for (const whose of ["account", "address", "disk"] as const) {
      const waits = full.filter((failure) => failure.whose === whose).map(({ retryAfterMs }) => retryAfterMs);
      // The (f + 1)-highest wait, so that f liars cannot raise it above the longest wait that an honest authority
      // reports.
      const wait = waits.sort((a, b) => b - a)[faultsTolerated];
      if (wait !== undefined && waits.length > blocking) return noRoom(whose, wait);
    }
    const balances = failures.flatMap((failure) => (failure.kind === "insufficient-balance" ? [failure.balance] : []));
    const balance = balances.sort((a, b) => (a < b ? 1 : -1))[faultsTolerated];
    if (balance !== undefined && balances.length > blocking) {
      const message = "the account's balance does not cover this";
      const action = "the order keeps its number; add funds and resume";
      const { transfer } = this.#order;
      const facts = { account: transfer.sender, asset: transfer.asset, needed: amountOf(transfer), available: balance };
      return new FastPayError("insufficient-funds", message, action, { details: { balance, ...facts } });
    }
    return noQuorum("votes", this.#votes.size, quorum, timedOut, this.#failures);
  }
}
