/**
 * Watches an account at all authorities at once: each event is proven, by a certificate or by the word of f + 1
 * authorities, and told once, whoever has it first. Streams that end are opened again where they stood.
 */

import type { AccountId } from "../accounts.js";
import type { AuthorityClient } from "../authority.js";
import type { AccountWatch } from "../client.js";
import { malformed } from "../decode.js";
import type { Network } from "../network.js";
import { ProblemError } from "../problem.js";
import { readEvents, type ServerEvent } from "../sse.js";
import { positionOf } from "../standing.js";
import type { AccountEvent, DepositEntry, WatchCursor } from "../views.js";
import { Backoff, sleep } from "../waiting.js";
import { decodeDepositItem, decodeReceivedItem, decodeSentItem, parseJson } from "../wire.js";
import type { Context } from "./context.js";

const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 15_000;
/** A stream that lasted so long was a good one. */
const GOOD_MS = 10_000;
/** So many events may wait for whoever reads them, before streams are no longer read. */
const QUEUE_MAX = 256;
/** So many events are remembered, to tell each once; an authority must not fill the memory with inventions. */
const REMEMBERED_MAX = 10_000;

/** Watches from now on, or from where an earlier watch stood. */
export function watchAccount(
  { network }: Context,
  account: AccountId,
  from: WatchCursor | undefined,
  signal: AbortSignal | undefined,
): AccountWatch {
  const watch = new Watch(network, account, from);
  return {
    cursor: () => watch.cursor(),
    [Symbol.asyncIterator]: () => watch.events(signal),
  };
}

/** A place that was read in one authority's stream, with the event there where it is to be told. */
interface Passage {
  readonly url: string;
  readonly position: string;
  readonly event: AccountEvent | undefined;
}

class Watch {
  readonly #network: Network;
  readonly #account: AccountId;
  /** Up to where each stream was read. */
  readonly #read: Map<string, string>;
  /** Up to where whoever reads the events has taken them: what still waits in the queue is told again after a crash. */
  readonly #taken: Map<string, string>;
  readonly #told = new Set<string>();
  readonly #deposits = new Map<string, Set<string>>();
  /** One queue for all streams: a place counts as taken only after every event that was told before it. */
  readonly #queue: Passage[] = [];
  #wake = (): void => undefined;

  constructor(network: Network, account: AccountId, from: WatchCursor | undefined) {
    this.#network = network;
    this.#account = account;
    this.#read = new Map(Object.entries(from ?? {}));
    this.#taken = new Map(this.#read);
  }

  cursor(): WatchCursor {
    return Object.fromEntries(this.#taken);
  }

  async *events(signal: AbortSignal | undefined): AsyncGenerator<AccountEvent, void> {
    const end = new AbortController();
    const until = signal === undefined ? end.signal : AbortSignal.any([end.signal, signal]);
    until.addEventListener("abort", () => this.#wake());
    for (const authority of this.#network.authorities) void this.#follow(authority, until);
    try {
      while (!until.aborted) {
        const passage = this.#queue.shift();
        if (passage !== undefined) {
          this.#taken.set(passage.url, passage.position);
          if (passage.event !== undefined) yield passage.event;
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      end.abort();
    }
  }

  /** Reads one authority's stream for as long as the watch lasts. Never rejects. */
  async #follow(authority: AuthorityClient, signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(RETRY_MIN_MS, RETRY_MAX_MS);
    while (!signal.aborted) {
      const openedMs = Date.now();
      try {
        await this.#readOn(authority, signal);
      } catch (error) {
        if (error instanceof ProblemError) backoff.waitAtLeast(error.facts.retryAfterMs);
        // It was restored from an older copy, and will tell other events under the same numbers.
        if (error instanceof ProblemError && error.problem === "cursor-ahead") {
          this.#pass(authority.url, "0.0.0", undefined);
        }
      }
      if (Date.now() - openedMs > GOOD_MS) backoff.reset();
      await backoff.wait(signal);
    }
  }

  async #readOn(authority: AuthorityClient, signal: AbortSignal): Promise<void> {
    const { url } = authority;
    if (!this.#read.has(url)) {
      // A stream that begins "now" would begin later each time that it is opened again.
      this.#pass(url, positionOf(await authority.account(this.#account, undefined, signal)), undefined);
    }
    for await (const event of readEvents(authority.eventsUrl(this.#account, this.#read.get(url)), signal)) {
      const found = await this.#prove(authority, event, signal);
      while (this.#queue.length >= QUEUE_MAX && !signal.aborted) await sleep(50, signal);
      if (signal.aborted) return;
      const isNew = found !== undefined && !this.#told.has(found.name);
      if (isNew) this.#told.add(found.name);
      forgetOldest(this.#told);
      this.#pass(url, event.id, isNew ? found.event : undefined);
    }
  }

  #pass(url: string, position: string, event: AccountEvent | undefined): void {
    this.#read.set(url, position);
    this.#queue.push({ url, position, event });
    this.#wake();
  }

  /** What an event comes to: none where it is told already or not enough authorities say so yet. */
  async #prove(
    authority: AuthorityClient,
    { event, data }: ServerEvent,
    signal: AbortSignal,
  ): Promise<{ name: string; event: AccountEvent } | undefined> {
    const value = parseJson(data, "the event");
    if (event === "received") return this.#received(authority, value, signal);
    if (event === "confirmed") return this.#confirmed(authority, value, signal);
    if (event === "deposited") return this.#deposited(authority, value);
    return undefined;
  }

  async #received(authority: AuthorityClient, value: unknown, signal: AbortSignal) {
    const { sender, sequence } = decodeReceivedItem(value, "the event").payment;
    const name = `received/${sender}/${sequence}`;
    if (this.#told.has(name)) return undefined;
    const certificate = await this.#network.findReceived(this.#account, authority, sender, sequence, signal);
    const payment = certificate?.order.transfer;
    // Told again when the stream is opened again: it may be a lie, or its certificate out of reach now.
    if (certificate === undefined || payment?.type !== "payment") throw malformed("a received payment", "proven");
    return { name, event: { type: "received", payment, certificate } as const };
  }

  async #confirmed(authority: AuthorityClient, value: unknown, signal: AbortSignal) {
    const { sequence } = decodeSentItem(value, "the event");
    const name = `confirmed/${sequence}`;
    if (this.#told.has(name)) return undefined;
    const certificate = await this.#network.findCertificate(this.#account, sequence, { first: authority, signal });
    if (certificate === undefined) throw malformed("a confirmed transfer", "proven");
    return { name, event: { type: "confirmed", certificate } as const };
  }

  #deposited(authority: AuthorityClient, value: unknown) {
    const deposit = decodeDepositItem(value, "the event");
    if (deposit.recipient !== this.#account) throw malformed("a deposit", "of this account");
    const name = `deposited/${deposit.index}`;
    const said = `${name}/${deposit.asset}/${deposit.amount}`;
    const authorities = this.#deposits.get(said) ?? new Set<string>();
    authorities.add(authority.url);
    this.#deposits.set(said, authorities);
    forgetOldest(this.#deposits);
    if (authorities.size < this.#network.trusted) return undefined;
    const entry: DepositEntry = { ...deposit, authorities: authorities.size };
    return { name, event: { type: "deposited", ...entry } as const };
  }
}

/** Both kinds of collection keep the order in which things came. */
function forgetOldest(memory: { readonly size: number; keys(): Iterator<string>; delete(key: string): boolean }): void {
  const oldest = memory.size > REMEMBERED_MAX ? memory.keys().next() : undefined;
  if (oldest !== undefined && oldest.done !== true) memory.delete(oldest.value);
}
