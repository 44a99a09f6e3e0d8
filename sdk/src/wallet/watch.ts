/**
 * Watches an account at all authorities at once. An event is told, once, when f + 1 of them tell it, with its
 * certificate where it has one: a certificate proves a payment, and one honest authority that it is new, which a liar
 * may say of any old one. Streams that end are opened again where they stood.
 *
 * ```text
 *  a stream for each authority ─► said by few ─► f + 1, proven ─► queue ─► whoever reads
 *                                     └─ a payment, for long: it is brought to all authorities, which then tell it
 * ```
 */

import type { AccountId } from "../accounts.js";
import type { AuthorityClient } from "../authority.js";
import type { AccountWatch } from "../client.js";
import { malformed } from "../decode.js";
import type { Timing } from "../quorum/certify.js";
import type { Network } from "../network.js";
import { ProblemError } from "../problem.js";
import { nameOf, textOf } from "../received.js";
import { readEvents, type ServerEvent } from "../sse.js";
import { positionOf } from "../agreement.js";
import type { AccountEvent, WatchCursor } from "../views.js";
import { Backoff, sleep } from "../waiting.js";
import { decodeDepositItem, decodeReceivedItem, decodeSentItem, parseJson } from "../wire.js";
import type { Context } from "./context.js";
import { spreadReceived } from "./receive.js";

const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 15_000;
/** A stream that lasted so long was a good one. */
const GOOD_MS = 10_000;
/** So many events may wait for whoever reads them, before streams are no longer read. */
const QUEUE_MAX = 256;
/** So many events that were told are remembered, to tell each once. */
const REMEMBERED_MAX = 10_000;
/** So many events of one authority may wait for others to tell them, too: it must not fill the memory with inventions. */
const ALONE_MAX = 1_000;
/** A payment that too few tell for so long may have been brought to them only. */
const ALONE_MS = 2_000;
/** One that too few tell for so long, though it was brought to all then, is old or invented: all others tell it by now. */
const OLD_MS = 60_000;
/** The longest time between two attempts to bring such payments to all: inventions cause some, too. */
const SPREAD_MAX_MS = 60_000;

/** Watches from now on, or from where an earlier watch stood. */
export function watchAccount(
  { network, timing }: Context,
  account: AccountId,
  from: WatchCursor | undefined,
  signal: AbortSignal | undefined,
): AccountWatch {
  const watch = new Watch(network, timing, account, from);
  return {
    cursor: () => watch.cursor(),
    [Symbol.asyncIterator]: () => watch.events(signal),
  };
}

/** What authorities say has happened. */
interface Claim {
  /** The same for all that say the same. */
  readonly name: string;
  readonly type: AccountEvent["type"];
  /** What is told of it when so many say so. Throws where that cannot be proven now. */
  readonly prove: (voices: number) => Promise<AccountEvent> | AccountEvent;
}

/** A claim, and what became of it. */
interface Happening {
  readonly name: string;
  readonly type: AccountEvent["type"];
  readonly sinceMs: number;
  /** The addresses of those who say so. */
  readonly voices: Set<string>;
  state: "said" | "told" | "taken";
}

/** A place that was read in one authority's stream, what it tells there, and the event where that is to be told. */
interface Passage {
  readonly url: string;
  readonly position: string;
  readonly happening: Happening | undefined;
  readonly event: AccountEvent | undefined;
}

/** How far one authority's stream is. */
interface Stream {
  /** Up to where it was read. */
  read: string | undefined;
  /** Up to where whoever reads the events has taken them: what is open behind it is told again after a crash. */
  taken: string | undefined;
  /** What it told behind that, as far as it has come out of the queue. */
  readonly open: Passage[];
}

class Watch {
  readonly #network: Network;
  readonly #timing: Timing;
  readonly #account: AccountId;
  readonly #streams: ReadonlyMap<string, Stream>;
  readonly #said = new Map<string, Happening>();
  readonly #told = new Map<string, Happening>();
  /** One queue for all streams: a place counts as taken only after every event that was told before it. */
  readonly #queue: Passage[] = [];
  #wake = (): void => undefined;

  constructor(network: Network, timing: Timing, account: AccountId, from: WatchCursor = {}) {
    this.#network = network;
    this.#timing = timing;
    this.#account = account;
    const position = (url: string): string | undefined => (Object.hasOwn(from, url) ? from[url] : undefined);
    this.#streams = new Map(
      network.authorities.map(({ url }) => [url, { read: position(url), taken: position(url), open: [] }]),
    );
  }

  cursor(): WatchCursor {
    this.#advance();
    const taken = [...this.#streams].flatMap(([url, stream]) => (stream.taken === undefined ? [] : [[url, stream.taken]]));
    return Object.fromEntries(taken) as WatchCursor;
  }

  async *events(signal: AbortSignal | undefined): AsyncGenerator<AccountEvent, void> {
    const end = new AbortController();
    const until = signal === undefined ? end.signal : AbortSignal.any([end.signal, signal]);
    until.addEventListener("abort", () => this.#wake());
    for (const authority of this.#network.authorities) void this.#follow(authority, until);
    void this.#spread(until);
    try {
      while (!until.aborted) {
        const passage = this.#queue.shift();
        if (passage !== undefined) {
          this.#take(passage);
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
          this.#pass({ url: authority.url, position: "0.0.0", happening: undefined, event: undefined });
        }
      }
      if (Date.now() - openedMs > GOOD_MS) backoff.reset();
      await backoff.wait(signal);
    }
  }

  async #readOn(authority: AuthorityClient, signal: AbortSignal): Promise<void> {
    const { url } = authority;
    const stream = this.#stream(url);
    if (stream.read === undefined) {
      // A stream that begins "now" would begin later each time that it is opened again.
      const position = positionOf(await authority.account(this.#account, undefined, signal));
      this.#pass({ url, position, happening: undefined, event: undefined });
    }
    for await (const event of readEvents(authority.eventsUrl(this.#account, stream.read), signal)) {
      const claim = this.#claim(authority, event, signal);
      const happening = claim && this.#accept(url, claim);
      const isEnough = happening?.state === "said" && happening.voices.size >= this.#network.trusted;
      // Where it cannot be proven now, the stream is opened again here, and tells it again.
      const found = isEnough ? await claim?.prove(happening.voices.size) : undefined;
      while (this.#queue.length >= QUEUE_MAX && !signal.aborted) await sleep(50, signal);
      if (signal.aborted) return;
      // Two streams may have proven it at once.
      const isNew = found !== undefined && happening?.state === "said";
      if (isNew) this.#report(happening);
      this.#pass({ url, position: event.id, happening, event: isNew ? found : undefined });
    }
  }

  #stream(url: string): Stream {
    return this.#streams.get(url) as Stream;
  }

  /** An authority says so. */
  #accept(url: string, { name, type }: Claim): Happening {
    const told = this.#told.get(name);
    if (told !== undefined) return told;
    const known = this.#said.get(name);
    const happening: Happening = known ?? { name, type, sinceMs: Date.now(), voices: new Set(), state: "said" };
    this.#said.set(name, happening);
    happening.voices.add(url);
    return happening;
  }

  #report(happening: Happening): void {
    happening.state = "told";
    this.#said.delete(happening.name);
    this.#told.set(happening.name, happening);
    // It keeps the order in which things came.
    const oldest = this.#told.size > REMEMBERED_MAX ? this.#told.keys().next() : undefined;
    if (oldest?.done === false) this.#told.delete(oldest.value);
  }

  #pass(passage: Passage): void {
    this.#stream(passage.url).read = passage.position;
    this.#queue.push(passage);
    this.#wake();
  }

  /** A passage leaves the queue. */
  #take(passage: Passage): void {
    if (passage.happening !== undefined && passage.event !== undefined) passage.happening.state = "taken";
    this.#stream(passage.url).open.push(passage);
    this.#advance();
  }

  /** A stream counts as taken up to the first thing that was not taken itself, and is waited for. */
  #advance(): void {
    for (const [url, { open }] of this.#streams) {
      for (let next = open[0]; next !== undefined; next = open[0]) {
        if (isWaitedFor(next.happening) && open.length <= ALONE_MAX) break;
        this.#unhear(url, next.happening);
        this.#stream(url).taken = next.position;
        open.shift();
      }
    }
  }

  /** Where too few say the same, an authority's word on it counts no more. */
  #unhear(url: string, happening: Happening | undefined): void {
    if (happening?.state !== "said") return;
    happening.voices.delete(url);
    if (happening.voices.size === 0) this.#said.delete(happening.name);
  }

  /** Brings payments to all authorities that too few of them report: then they tell them, too. Never rejects. */
  async #spread(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(ALONE_MS, SPREAD_MAX_MS);
    const seen = new WeakSet<Happening>();
    while (!signal.aborted) {
      await backoff.wait(signal);
      const alone = [...this.#said.values()].filter(
        (one) => one.type === "received" && Date.now() - one.sinceMs >= ALONE_MS && !seen.has(one),
      );
      if (alone.length === 0) {
        backoff.reset();
        continue;
      }
      for (const one of alone) seen.add(one);
      const nothing = (): undefined => undefined;
      const operation = { network: this.#network, timing: this.#timing, stored: async () => undefined, report: nothing, signal };
      await spreadReceived(operation, this.#account).catch(nothing);
    }
  }

  /** What an event of a stream says; none where it is of no kind that is known here. Throws `malformed-answer`. */
  #claim(authority: AuthorityClient, { event, data }: ServerEvent, signal: AbortSignal): Claim | undefined {
    const value = parseJson(data, "the event");
    if (event === "received") return this.#received(authority, value, signal);
    if (event === "confirmed") return this.#confirmed(authority, value, signal);
    if (event === "deposited") return this.#deposited(value);
    return undefined;
  }

  #received(authority: AuthorityClient, value: unknown, signal: AbortSignal): Claim {
    const name = nameOf(decodeReceivedItem(value, "the event"));
    const type = "received" as const;
    const prove = async (): Promise<AccountEvent> => {
      const entry = await this.#network.findReceived(this.#account, authority, name, signal);
      if (entry === undefined) throw malformed("a received payment", "proven");
      return { type, ...entry };
    };
    return { name: `${type}/${textOf(name)}`, type, prove };
  }

  #confirmed(first: AuthorityClient, value: unknown, signal: AbortSignal): Claim {
    const { sequence } = decodeSentItem(value, "the event");
    const type = "confirmed" as const;
    const prove = async (): Promise<AccountEvent> => {
      const certificate = await this.#network.findCertificate(this.#account, sequence, { first, signal });
      if (certificate === undefined) throw malformed("a confirmed transfer", "proven");
      return { type, certificate };
    };
    return { name: `${type}/${sequence}`, type, prove };
  }

  #deposited(value: unknown): Claim {
    const deposit = decodeDepositItem(value, "the event");
    if (deposit.recipient !== this.#account) throw malformed("a deposit", "of this account");
    const type = "deposited" as const;
    const prove = (authorities: number): AccountEvent => ({ type, ...deposit, authorities });
    return { name: `${type}/${deposit.index}/${deposit.asset}/${deposit.amount}`, type, prove };
  }
}

/** It is not taken, and may be told yet. */
function isWaitedFor(happening: Happening | undefined): boolean {
  if (happening === undefined || happening.state === "taken") return false;
  const isOld = happening.type === "received" && Date.now() - happening.sinceMs >= OLD_MS;
  return happening.state === "told" || !isOld;
}
