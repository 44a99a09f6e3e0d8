/**
 * Finds the order on which an account's number was spent: that of the contract's newest event for the number. A set bit
 * does not prove that the owner was paid: the contract does not check the owner's signature, so a thief with redemption
 * keys may have spent the number on another order.
 *
 * The search goes back from the newest block. It reads final blocks once for each account, and later blocks, which may
 * be undone, every time.
 */

import { encodeEventTopics, parseEventLogs } from "viem";

import type { AccountId } from "../accounts.js";
import { lower, type Hex } from "../bytes.js";
import type { RedemptionStatus } from "../views.js";
import { FASTPAY_ABI } from "./abi.js";
import { oldestSearched, type Chain, type ContractLogs } from "./logs.js";

/** The number of accounts whose logs are cached, the most recently used ones: more than a page shows. */
const ACCOUNTS_MAX = 200;

const EVENTS = ["Redeemed", "RedemptionQueued", "RedemptionReleased"] as const;

/** The order on which a number was spent, according to the Primary. */
export interface Spending {
  readonly event: (typeof EVENTS)[number];
  /** The digest of the order. */
  readonly digest: Hex;
}

/** A spending in the contract's log. */
export interface LoggedSpending extends Spending {
  /** The transaction that emitted the event. */
  readonly hash: Hex;
}

/** The status of a redemption according to the contract's views. Its number is not void. */
export type RedemptionView = Extract<RedemptionStatus, { state: "open" | "queued" | "spent" }>;

/** The state of the redemption with this digest, according to the contract's views and log. */
export function redemptionStatusOf(digest: Hex, view: RedemptionView, logged: LoggedSpending | undefined): RedemptionStatus {
  if (view.state === "open" || logged === undefined) return view;
  const { event, hash } = logged;
  if (logged.digest !== digest) return { state: "displaced", hash };
  if (view.state === "queued") return view;
  if (event === "Redeemed") return { state: "paid", hash };
  // The log may be a moment older than the views.
  return event === "RedemptionReleased" ? { state: "released", hash } : view;
}

/** The part of one account's log that was read. */
interface AccountLog {
  /** The final blocks that were read, both included; none if `first` is above `last`. */
  first: bigint;
  last: bigint;
  /** By sequence number, from final blocks. */
  readonly found: Map<bigint, LoggedSpending>;
  /** Resolves when the current search ends. Searches for one account run one after another, and reuse its results. */
  turn: Promise<unknown>;
}

/** The contract's log of spent numbers. */
export class SpendingLog {
  readonly #logs: ContractLogs;
  readonly #accounts = new Map<AccountId, AccountLog>();

  constructor(logs: ContractLogs) {
    this.#logs = logs;
  }

  /**
   * The redemption on which a number was spent; undefined if the newest blocks do not contain it. Throws if the node
   * serves no log.
   */
  find(sender: AccountId, sequence: bigint, readChain: () => Promise<Chain>): Promise<LoggedSpending | undefined> {
    const log = this.#accounts.get(sender) ?? { first: 0n, last: -1n, found: new Map(), turn: Promise.resolve() };
    // A map keeps insertion order, so the most recently used account is the last one.
    this.#accounts.delete(sender);
    this.#accounts.set(sender, log);
    const [oldest] = this.#accounts.keys();
    if (oldest !== undefined && this.#accounts.size > ACCOUNTS_MAX) this.#accounts.delete(oldest);
    const look = log.turn.then(async () => this.#look(log, sender, sequence, await readChain()));
    log.turn = look.catch(() => undefined);
    return look;
  }

  async #look(log: AccountLog, sender: AccountId, sequence: bigint, chain: Chain): Promise<LoggedSpending | undefined> {
    const { newest, final } = chain;
    const oldest = oldestSearched(chain);
    // Start anew if nothing was read, or if all of it is older than the searched blocks.
    if (log.last < log.first || log.last < oldest) [log.first, log.last] = [final + 1n, final];
    const recent = new Map<bigint, LoggedSpending>();
    while (log.last < final) {
      const to = lesser(log.last + this.#logs.range, final);
      const read = await this.#read(sender, log.last + 1n, to);
      if (read === undefined) continue;
      for (const [number, spending] of read) log.found.set(number, spending);
      log.last = to;
    }
    for (let from = final + 1n; from <= newest; ) {
      const to = lesser(from + this.#logs.range - 1n, newest);
      const read = await this.#read(sender, from, to);
      if (read === undefined) continue;
      for (const [number, spending] of read) recent.set(number, spending);
      from = to + 1n;
    }
    while (!recent.has(sequence) && !log.found.has(sequence) && log.first > oldest) {
      const from = log.first - this.#logs.range > oldest ? log.first - this.#logs.range : oldest;
      const read = await this.#read(sender, from, log.first - 1n);
      if (read === undefined) continue;
      // If a number was queued and then paid, the newest event counts.
      for (const [number, spending] of read) if (!log.found.has(number)) log.found.set(number, spending);
      log.first = from;
    }
    return recent.get(sequence) ?? log.found.get(sequence);
  }

  /** The newest event of each number in a range of blocks; undefined if the node needs a smaller range. */
  async #read(sender: AccountId, from: bigint, to: bigint): Promise<Map<bigint, LoggedSpending> | undefined> {
    const kinds = EVENTS.flatMap((eventName) => encodeEventTopics({ abi: FASTPAY_ABI, eventName }) as Hex[]);
    const logs = await this.#logs.read([kinds, sender], from, to);
    if (logs === undefined) return undefined;
    const events = parseEventLogs({ abi: FASTPAY_ABI, eventName: [...EVENTS], logs });
    const own = events.filter(({ args, transactionHash }) => args.sender.toLowerCase() === sender && transactionHash !== null);
    return new Map(
      own.map(({ eventName: event, args, transactionHash }) => [
        args.sequence,
        { event, digest: lower(args.digest), hash: transactionHash as Hex },
      ]),
    );
  }
}

function lesser(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
