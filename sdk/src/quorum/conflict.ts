/**
 * Orders of one account that compete for one number, because two copies of a wallet signed one each: who holds which,
 * and which of them can still get its quorum. Pure counting.
 *
 * An authority that voted for an order votes for no other one with that number [FP §4.2]. So an order can count on
 * those that hold it and on those that hold none yet. If no order can come to a quorum that way, the account is
 * stuck [FP §5] until the contract has decided, which `fastpay unlock` asks for.
 */

import type { Hex } from "../bytes.js";
import type { Committee } from "../committee.js";
import type { VerifiedOrder } from "../verify.js";

/** One of the orders that compete. */
export interface Contender {
  readonly order: VerifiedOrder;
  /** The members that are locked on it: their names, or addresses where names are not known. */
  readonly holders: readonly string[];
  /** How many votes it can still come to. */
  readonly reach: number;
}

/** The conflicting orders of a number, as reported by authorities. */
export class OrderConflict {
  readonly #size: number;
  readonly #quorum: number;
  readonly #rivals = new Map<Hex, { readonly order: VerifiedOrder; readonly holders: Set<string> }>();

  /** No order yet, before this committee. */
  constructor(committee: Committee) {
    this.#size = committee.members.length;
    this.#quorum = committee.quorum;
  }

  /** An order that nobody need hold yet. */
  enter(order: VerifiedOrder): void {
    if (!this.#rivals.has(order.digest)) this.#rivals.set(order.digest, { order, holders: new Set() });
  }

  /** A member is locked on an order. */
  hold(order: VerifiedOrder, member: string): void {
    this.enter(order);
    this.#rivals.get(order.digest)?.holders.add(member);
  }

  /** Adds what else is known of the same number. */
  merge(other: OrderConflict): void {
    for (const { order, holders } of other.#rivals.values()) {
      this.enter(order);
      for (const holder of holders) this.hold(order, holder);
    }
  }

  /** All orders, the one that most authorities hold first; of equals the one with the lowest digest. */
  contenders(): Contender[] {
    const contenders = [...this.#rivals.values()].map(({ order, holders }) => {
      const lost = new Set<string>();
      for (const rival of this.#rivals.values()) {
        if (rival.order.digest === order.digest) continue;
        for (const holder of rival.holders) if (!holders.has(holder)) lost.add(holder);
      }
      return { order, holders: [...holders].sort(), reach: this.#size - lost.size };
    });
    return contenders.sort((a, b) => b.holders.length - a.holders.length || (a.order.digest < b.order.digest ? -1 : 1));
  }

  /**
   * The order to finish: of those that can still get a quorum the one that most authorities hold; all copies of the
   * wallet choose the same. Undefined if it is too late for every one of them.
   */
  leader(): VerifiedOrder | undefined {
    return this.contenders().find(({ reach }) => reach >= this.#quorum)?.order;
  }

  /** Any of the orders. */
  any(): VerifiedOrder | undefined {
    return this.contenders()[0]?.order;
  }
}
