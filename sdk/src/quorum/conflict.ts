/**
 * Orders of one account that compete for one number, because two copies of a wallet signed one each. Counts which
 * authorities are locked on which order, and which order can still get its quorum. Pure.
 *
 * An authority that voted for an order votes for no other one with that number [FP §4.2]. So an order can get the votes
 * of the authorities that hold it, and of those that hold none yet. If no order can get a quorum that way, the account
 * is stuck [FP §5] until the contract has decided. `fastpay unlock` requests that decision.
 */

import type { Hex } from "../bytes.js";
import { memberOf, type AuthorityName, type Committee } from "../committee.js";
import type { VerifiedOrder } from "../verify.js";

/** One of the competing orders. */
export interface Contender {
  readonly order: VerifiedOrder;
  /** The members that are locked on it, by name. */
  readonly holders: readonly string[];
  /** The maximum number of votes that it can still get. */
  readonly reach: number;
}

/** The conflicting orders of a number, as reported by authorities. */
export class OrderConflict {
  readonly #committee: Committee;
  readonly #rivals = new Map<Hex, { readonly order: VerifiedOrder; readonly holders: Set<string> }>();

  /** Starts without orders. */
  constructor(committee: Committee) {
    this.#committee = committee;
  }

  /** Adds an order, even if no member is locked on it yet. */
  enter(order: VerifiedOrder): void {
    if (!this.#rivals.has(order.digest)) this.#rivals.set(order.digest, { order, holders: new Set() });
  }

  /** Adds an order on which an authority is locked. If it has left the committee, it holds nothing. */
  hold(order: VerifiedOrder, member: string): void {
    this.enter(order);
    if (memberOf(this.#committee, member as AuthorityName) !== undefined) this.#rivals.get(order.digest)?.holders.add(member);
  }

  /** Adds the orders and holders of another record of the same number. */
  merge(other: OrderConflict): void {
    for (const { order, holders } of other.#rivals.values()) {
      this.enter(order);
      for (const holder of holders) this.hold(order, holder);
    }
  }

  /** All orders, by the number of their holders, most first; then by digest, lowest first. */
  contenders(): Contender[] {
    const contenders = [...this.#rivals.values()].map(({ order, holders }) => {
      const lost = new Set<string>();
      for (const rival of this.#rivals.values()) {
        if (rival.order.digest === order.digest) continue;
        for (const holder of rival.holders) if (!holders.has(holder)) lost.add(holder);
      }
      return { order, holders: [...holders].sort(), reach: this.#committee.members.length - lost.size };
    });
    return contenders.sort((a, b) => b.holders.length - a.holders.length || (a.order.digest < b.order.digest ? -1 : 1));
  }

  /**
   * The order to finish: the one with the most holders among those that can still get a quorum. All copies of the
   * wallet choose the same one. Undefined if no order can get a quorum any more.
   */
  leader(): VerifiedOrder | undefined {
    return this.contenders().find(({ reach }) => reach >= this.#committee.quorum)?.order;
  }

  /** The first of `contenders`; undefined if there is no order. */
  any(): VerifiedOrder | undefined {
    return this.contenders()[0]?.order;
  }
}
