/**
 * Collects one authority's vote on one order: requests it, handles a refusal, and repeats the request, until the tally
 * has decided.
 */

import type { AuthorityClient } from "../authority.js";
import type { Committee } from "../committee.js";
import { messageOf } from "../errors.js";
import { ProblemError } from "../problem.js";
import type { PeerFailure } from "../progress.js";
import type { TransferOrder } from "../transfer.js";
import { mayVoteFor, verifyOrder, voteFault, type VerifiedOrder, type Vote } from "../verify.js";
import { Backoff } from "../waiting.js";
import { failureOf, isSilence, pushReceived, pushSent } from "./catch-up.js";
import type { Operation } from "./certify.js";
import type { PeerAnswer } from "./tally.js";

/**
 * The next step after an answer: report and stop, report and ask again later, or ask again at once after bringing the
 * authority up to date.
 */
type Next = { readonly answer: PeerAnswer; readonly isLast: boolean } | "again";

/** The progress with an authority that answers `insufficient-balance`. */
interface Shortfall {
  readonly sinceMs: number;
  /** Payments that were sent to the authority or that it lists. They are not sent again, even if the authority lies. */
  readonly known: Set<string>;
}

function last(answer: PeerAnswer): Next {
  return { answer, isLast: true };
}

function later(answer: PeerAnswer): Next {
  return { answer, isLast: false };
}

function misbehaved(message: string): PeerAnswer {
  return { type: "out", failure: { kind: "misbehaved", message } };
}

/** Runs until `signal` aborts, or until the authority's answer is final. Never rejects. */
export async function ask(
  operation: Operation,
  authority: AuthorityClient,
  committee: Committee,
  order: VerifiedOrder,
  take: (answer: PeerAnswer) => void,
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff(operation.timing.backoffMinMs, operation.timing.backoffMaxMs);
  const conversation = new Conversation(operation, authority, committee, order, signal);
  while (!signal.aborted) {
    const next = await conversation.turn(backoff);
    if (signal.aborted) return;
    if (next === "again") {
      backoff.reset();
    } else {
      take(next.answer);
      if (next.isLast) return;
    }
    // Wait even after progress: an authority that only pretends progress must not make this loop spin.
    await backoff.wait(signal);
  }
}

class Conversation {
  readonly #operation: Operation;
  readonly #authority: AuthorityClient;
  readonly #committee: Committee;
  readonly #order: VerifiedOrder;
  readonly #signal: AbortSignal;
  #shortfall: Shortfall | undefined;

  constructor(
    operation: Operation,
    authority: AuthorityClient,
    committee: Committee,
    order: VerifiedOrder,
    signal: AbortSignal,
  ) {
    this.#operation = operation;
    this.#authority = authority;
    this.#committee = committee;
    this.#order = order;
    this.#signal = signal;
  }

  async turn(backoff: Backoff): Promise<Next> {
    try {
      const { epoch, vote } = await this.#authority.order(this.#order, this.#signal);
      return epoch === this.#committee.epoch ? last(this.#checkVote(vote)) : later(this.#otherEpoch(epoch));
    } catch (error) {
      if (error instanceof ProblemError) {
        backoff.waitAtLeast(error.facts.retryAfterMs);
        return this.#afterRefusal(error);
      }
      return later({ type: "later", failure: failureOf(error) });
    }
  }

  /** It votes in another epoch than this committee's. If its epoch is older, it may still vote in ours later. */
  #otherEpoch(epoch: bigint): PeerAnswer {
    if (epoch > this.#committee.epoch) return { type: "ahead", epoch };
    return { type: "later", failure: { kind: "other-epoch", epoch } };
  }

  #checkVote(vote: Vote): PeerAnswer {
    const { digest, transfer } = this.#order;
    const fault = voteFault(vote, this.#committee, this.#operation.network.domain, { digest, transfer });
    if (fault !== undefined) return misbehaved(`a vote that does not count (${fault})`);
    const isItsOwn = mayVoteFor(this.#committee, this.#authority.name, vote.authority);
    return isItsOwn ? { type: "vote", vote } : misbehaved("the vote of another authority");
  }

  async #afterRefusal(error: ProblemError): Promise<Next> {
    const { facts } = error;
    switch (error.problem) {
      case "order-pending":
        return facts.pending === undefined ? last(misbehaved("no pending order")) : this.#afterPending(facts.pending);
      case "sequence-too-high":
      case "missing-certificate":
        return facts.expectedSequence === undefined
          ? last(misbehaved("no expected number"))
          : this.#afterGap(facts.expectedSequence);
      case "already-confirmed":
        return this.#afterConfirmed();
      case "insufficient-balance":
        return this.#afterPoverty(facts.balance ?? 0n);
      case "disk-low":
        return this.#afterFull("disk", facts.retryAfterMs);
      case "account-budget":
        return this.#afterFull("account", facts.retryAfterMs);
      case "address-budget":
        return this.#afterFull("address", facts.retryAfterMs);
      case "not-voting":
        if (facts.epoch !== undefined && facts.epoch !== this.#committee.epoch) {
          return later(this.#otherEpoch(facts.epoch));
        }
        return last({ type: "out", failure: { kind: "refused", message: error.message } });
      default: {
        const failure = failureOf(error);
        return isSilence(failure) ? later({ type: "later", failure }) : last({ type: "out", failure });
      }
    }
  }

  #afterFull(whose: "disk" | "account" | "address", retryAfterMs: number): Next {
    return later({ type: "later", failure: { kind: "no-room", whose, retryAfterMs } });
  }

  /** It is locked on an earlier order, so it lags; or on another order of this number, so there are two. */
  async #afterPending(shown: TransferOrder): Promise<Next> {
    let pending: VerifiedOrder;
    try {
      pending = verifyOrder(shown, this.#operation.network.domain);
    } catch (error) {
      return last(misbehaved(`an invalid pending order: ${messageOf(error)}`));
    }
    const { sender, sequence } = this.#order.transfer;
    if (pending.transfer.sender !== sender) return last(misbehaved("a pending order of another account"));
    if (pending.transfer.sequence < sequence) return this.#afterGap(pending.transfer.sequence);
    if (pending.transfer.sequence > sequence) return this.#afterConfirmed();
    if (pending.digest === this.#order.digest) return last(misbehaved("a refusal because of the same order"));
    return later({ type: "locked", order: pending });
  }

  async #afterGap(expected: bigint): Promise<Next> {
    const { sender, sequence } = this.#order.transfer;
    if (expected >= sequence) return last(misbehaved("a gap where there is none"));
    const failure = await this.#bringing(() =>
      pushSent(this.#operation, this.#authority, sender, expected, sequence, this.#signal),
    );
    return failure === undefined ? "again" : later({ type: "later", failure });
  }

  /** It claims that the number is used. Only a certificate of the number proves that. */
  async #afterConfirmed(): Promise<Next> {
    const { sender, sequence } = this.#order.transfer;
    const certificate = await this.#operation.network
      .findCertificate(sender, sequence, { signal: this.#signal })
      .catch(() => undefined);
    if (certificate !== undefined) return last({ type: "finished", certificate });
    const message = "the number is reported as used, but no authority returned its certificate";
    return later({ type: "later", failure: { kind: "misbehaved", message } });
  }

  async #afterPoverty(balance: bigint): Promise<Next> {
    const shortfall = (this.#shortfall ??= { sinceMs: Date.now(), known: new Set() });
    const failure: PeerFailure = { kind: "insufficient-balance", balance };
    if (Date.now() - shortfall.sinceMs >= this.#operation.timing.fundsPatienceMs) return last({ type: "out", failure });
    let brought = 0;
    await this.#bringing(async () => {
      const { sender } = this.#order.transfer;
      brought = await pushReceived(this.#operation, this.#authority, sender, shortfall.known, this.#signal);
    });
    return brought > 0 ? "again" : later({ type: "later", failure });
  }

  /**
   * Runs `act`, which sends certificates to the authority. Resolves to the failure, or to undefined if there is none.
   */
  async #bringing(act: () => Promise<void>): Promise<PeerFailure | undefined> {
    try {
      await act();
      return undefined;
    } catch (error) {
      return failureOf(error);
    }
  }
}
