/**
 * Reads pruned entries of accounts from the authorities' archives. Every returned entry is proven. An authority whose
 * answer is late, malformed or unproven is left, and another one is asked.
 */

import type { AccountId } from "../accounts.js";
import type { AuthorityClient } from "../authority.js";
import { goodAnswers, memberAnswers, type Network } from "../network.js";
import { sleep, throwIfAborted } from "../waiting.js";
import { verifyArchivePage, type ArchivedNumber, type ArchiveList, type VerifiedArchivePage } from "./page.js";

/** The timeout for a page, after which the next authority is asked. */
const PAGE_MS = 5_000;
/** The time for one list, whatever authorities do. */
const LIST_MS = 20_000;
/** After this time, the next authority is asked for the same list too. */
const NEXT_MS = 500;
/** The maximum number of pages of one authority's list. */
const PAGES_MAX = 200;

/** Received payments of some checkpoints, newest first. */
export interface ReceivedBack {
  /** The transfers that paid the account. */
  readonly numbers: readonly ArchivedNumber[];
  /** The position of older ones; undefined if there are none. */
  readonly older: BackPosition | undefined;
  /** True if no authority answers about what is older. */
  readonly isCutOff: boolean;
}

/** Received payments up to some checkpoint. */
export interface ReceivedUpTo {
  /** The transfers that paid the account, newest first. */
  readonly numbers: ArchivedNumber[];
  /** True if they were read down to the first checkpoint. */
  readonly isWhole: boolean;
  /** True if none is missing in what was read: f + 1 members answered about every part of it. */
  readonly isComplete: boolean;
  /** True if no authority answers about what is older, and `count` was not reached or nothing further was read. */
  readonly isCutOff: boolean;
}

/** A position in a list that is read from its newest entry: the entries up to a checkpoint, without its newest ones. */
export interface BackPosition {
  readonly checkpoint: bigint;
  /** The number of entries of this checkpoint that were read. */
  readonly read: number;
}

/** Reads the authorities' archives. */
export class ArchiveReader {
  readonly #network: Network;
  /** The authority that last returned all that was missing when it was asked. It is asked first. */
  #last: AuthorityClient | undefined;

  constructor(network: Network) {
    this.#network = network;
  }

  /** The number of an account; undefined if no authority proves it. Asks all at once: none can delay the answer. */
  async number(account: AccountId, sequence: bigint, signal?: AbortSignal): Promise<ArchivedNumber | undefined> {
    const list = { type: "sent", from: sequence } as const;
    const ask = (authority: AuthorityClient, until: AbortSignal) => this.#page(authority, account, list, until, 1);
    const pages = goodAnswers(await this.#network.askAll(ask, { signal }));
    return pages.map(({ answer }) => answer.entries[0]).find((entry) => entry !== undefined);
  }

  /**
   * The numbers of an account from `from` up to `to` (exclusive) that archives have: all before the first one that is
   * missing. Asks one authority after another for those that are still missing. One that is slow goes on while the next
   * one is asked.
   */
  async sent(account: AccountId, from: bigint, to: bigint, signal?: AbortSignal): Promise<Map<bigint, ArchivedNumber>> {
    const found = new Map<bigint, ArchivedNumber>();
    const wanted = Number(to - from);
    const end = new AbortController();
    const until = AbortSignal.any([this.#until(signal), end.signal]);
    const read = async (authority: AuthorityClient): Promise<void> => {
      const missing = wanted - found.size;
      let own = 0;
      for (let page = 0; page < PAGES_MAX && found.size < wanted; page += 1) {
        const list = { type: "sent", from: from + BigInt(found.size) } as const;
        const { entries } = await this.#page(authority, account, list, until);
        if (entries.length === 0 || until.aborted) return;
        const asked = entries.filter(({ sequence }) => sequence < to);
        for (const entry of asked) found.set(entry.sequence, entry);
        own += asked.length;
      }
      if (found.size < wanted) return;
      if (own >= missing) this.#last = authority;
      end.abort();
    };
    const isLast = (authority: AuthorityClient): number => Number(authority === this.#last);
    const reads: Promise<void>[] = [];
    for (const authority of [...this.#network.authorities].sort((a, b) => isLast(b) - isLast(a))) {
      if (until.aborted || found.size === wanted) break;
      // A failure leaves its entries to the next authority.
      const reading = read(authority).catch(() => undefined);
      reads.push(reading);
      await Promise.race([reading, sleep(NEXT_MS, until)]);
    }
    await Promise.race([Promise.all(reads), sleep(LIST_MS, until)]);
    end.abort();
    throwIfAborted(signal);
    return found;
  }

  /**
   * The transfers of the checkpoints from `low` to `high` that paid an account, oldest first: those that any authority
   * has, because a list of received payments is not proven to be complete. It is if f + 1 members answer: one of them is
   * honest. Undefined if no authority answers.
   */
  async received(
    account: AccountId,
    low: bigint,
    high: bigint,
    signal?: AbortSignal,
  ): Promise<{ numbers: ArchivedNumber[]; isComplete: boolean } | undefined> {
    const ask = async (authority: AuthorityClient, until: AbortSignal): Promise<ArchivedNumber[]> => {
      const found: ArchivedNumber[] = [];
      let from = { checkpoint: low, entry: 0n };
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const { entries, next } = await this.#page(authority, account, { type: "received", from }, until);
        found.push(...entries.filter(({ checkpoint }) => checkpoint <= high));
        if (next === undefined || next.checkpoint > high) return found;
        from = next;
      }
      throw new RangeError("the list is too long");
    };
    const answers = await this.#network.askAll(ask, { signal });
    const lists = goodAnswers(answers);
    if (lists.length === 0) return undefined;
    const all = lists.flatMap(({ answer }) => answer).sort(order);
    const numbers = [...new Map(all.map((number) => [`${number.account}/${number.sequence}`, number])).values()];
    return { numbers, isComplete: memberAnswers(answers, this.#network.committee).length >= this.#network.trusted };
  }

  /**
   * The newest transfers of the checkpoints up to `checkpoint` that paid an account: whole checkpoints, with at least
   * `count` transfers if there are as many, and then `further` checkpoints before the one with the last of these.
   * Undefined if no authority answers.
   */
  async receivedUpTo(
    account: AccountId,
    checkpoint: bigint,
    count: number,
    { further = 0n, signal }: { further?: bigint; signal?: AbortSignal } = {},
  ): Promise<ReceivedUpTo | undefined> {
    const numbers: ArchivedNumber[] = [];
    let isComplete = true;
    let high = checkpoint;
    let step = 1n;
    while (high > 0n) {
      const last = numbers[count - 1];
      if (last !== undefined && high < last.checkpoint - further) break;
      const low = high > step ? high - step + 1n : 1n;
      const found = await this.received(account, low, high, signal);
      if (found !== undefined) {
        numbers.push(...found.numbers.reverse());
        isComplete &&= found.isComplete;
        high = low - 1n;
        // Checkpoints without a payment to the account are passed in few steps.
        step *= 2n;
      } else if (step > 1n) {
        // Archives may reach less far back than the step.
        step = 1n;
      } else {
        return numbers.length === 0 ? undefined : { numbers, isWhole: false, isComplete: false, isCutOff: true };
      }
    }
    return { numbers, isWhole: high === 0n, isComplete, isCutOff: false };
  }

  /** The next `count` of these transfers, from a position on. Undefined if no authority answers. */
  async receivedBack(account: AccountId, from: BackPosition, count: number): Promise<ReceivedBack | undefined> {
    const end = from.read + count;
    const found = await this.receivedUpTo(account, from.checkpoint, end);
    if (found === undefined) return undefined;
    const { isCutOff } = found;
    const numbers = found.numbers.slice(from.read, end);
    if (numbers.length === 0 && isCutOff) return undefined;
    if (found.isWhole && found.numbers.length <= end) return { numbers, older: undefined, isCutOff };
    const checkpoint = numbers.at(-1)?.checkpoint ?? from.checkpoint;
    const read = found.numbers.slice(0, end).filter((number) => number.checkpoint === checkpoint).length;
    return { numbers, older: { checkpoint, read }, isCutOff };
  }

  async #page(
    authority: AuthorityClient,
    account: AccountId,
    list: ArchiveList,
    signal: AbortSignal,
    limit?: number,
  ): Promise<VerifiedArchivePage> {
    const until = AbortSignal.any([signal, AbortSignal.timeout(PAGE_MS)]);
    const page = await authority.archived(account, list, until, limit);
    const counting = await this.#network.committees.counting();
    return verifyArchivePage(page, account, list, counting, this.#network.domain);
  }

  #until(signal: AbortSignal | undefined): AbortSignal {
    const limits = [this.#network.closed, AbortSignal.timeout(LIST_MS)];
    return AbortSignal.any(signal === undefined ? limits : [...limits, signal]);
  }
}

function order(a: ArchivedNumber, b: ArchivedNumber): number {
  if (a.checkpoint !== b.checkpoint) return a.checkpoint < b.checkpoint ? -1 : 1;
  if (a.account !== b.account) return a.account < b.account ? -1 : 1;
  return a.sequence < b.sequence ? -1 : Number(a.sequence > b.sequence);
}
