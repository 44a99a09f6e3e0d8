/**
 * Watches an account at all authorities at once. A transfer is reported once, when a quorum of authorities has reported
 * it, with its certificate: then it is settled. A deposit is reported once f + 1 authorities have. Because a lying
 * authority could report an old event, f + 1 reports prove that it is new. A stream that ends is opened again at its
 * last position.
 *
 * ```text
 *  a stream for each authority ─► reported by few ─► by enough, and proven ─► queue ─► the caller
 *                                     └─ a payment that is not settled is sent to all authorities, which then report it
 * ```
 * If an authority has pruned events behind the position of its stream, they come from the archives (`pruned-events.ts`).
 */

import type { AccountId } from "../accounts.js";
import type { AuthorityClient } from "../authority.js";
import type { AccountWatch } from "../client.js";
import { malformed } from "../decode.js";
import { membersAmong, type Network } from "../network.js";
import { ProblemError, prunedOf } from "../problem.js";
import { listedOf, textOf } from "../received.js";
import { readEvents, type ServerEvent } from "../sse.js";
import { positionOf } from "../agreement.js";
import type { AccountEvent, WatchCursor } from "../views.js";
import { Backoff, sleep } from "../waiting.js";
import { decodeDepositItem, decodeReceivedItem, decodeSentItem, parseJson } from "../wire.js";
import type { Context } from "./context.js";
import { nameOfEvent, prunedEvents } from "./pruned-events.js";
import { spreadReceived } from "./receive.js";

const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 15_000;
/** A stream that lasted this long resets the backoff. */
const GOOD_MS = 10_000;
/** The maximum number of events in the queue. While it is full, no stream is read. */
const QUEUE_MAX = 256;
/** The number of reported events that are remembered, so that each is reported once. */
const REMEMBERED_MAX = 10_000;
/**
 * The maximum number of events of one authority that wait for confirmation, so that invented events cannot fill the
 * memory.
 */
const UNCONFIRMED_MAX = 1_000;
/** After this time, a payment that too few authorities report is sent to all of them. */
const UNCONFIRMED_MS = 2_000;
/** After this time, an event that too few authorities report is old or invented. */
const OLD_MS = 60_000;
/** The longest delay between two attempts to send such payments to all authorities. */
const SPREAD_MAX_MS = 60_000;

/** Watches an account from now on, or from the cursor of an earlier watch. */
export function watchAccount(
  context: Context,
  account: AccountId,
  from: WatchCursor | undefined,
  signal: AbortSignal | undefined,
): AccountWatch {
  const watch = new Watch(context, account, from);
  return {
    cursor: () => watch.cursor(),
    [Symbol.asyncIterator]: () => watch.events(signal),
  };
}

/** An event as reported by an authority. */
interface Report {
  /** Identifies the event across authorities. */
  readonly name: string;
  readonly type: AccountEvent["type"];
  /** Builds the event from this many reports. Throws if it cannot be proven now. */
  readonly prove: (reporters: number) => Promise<AccountEvent> | AccountEvent;
}

/** An event with its reports and its state. */
interface Candidate {
  readonly name: string;
  readonly type: AccountEvent["type"];
  readonly sinceMs: number;
  /** The URLs of the streams in which it is reported. */
  readonly reporters: Set<string>;
  state: "pending" | "reported" | "taken";
  /** The event, if a checkpoint proves it. */
  archived: AccountEvent | undefined;
}

/** A position in one authority's stream, the event there, and the event to report to the caller, if any. */
interface Passage {
  readonly url: string;
  readonly position: string;
  readonly candidate: Candidate | undefined;
  readonly event: AccountEvent | undefined;
}

/** The positions in one authority's stream. */
interface Stream {
  /** The position up to which the stream was read. */
  read: string | undefined;
  /** The position up to which the caller has taken the events. Later events are reported again after a crash. */
  taken: string | undefined;
  /** Passages after `taken` that have left the queue. */
  readonly open: Passage[];
}

class Watch {
  readonly #network: Network;
  readonly #context: Context;
  readonly #account: AccountId;
  readonly #streams: Map<string, Stream>;
  readonly #pending = new Map<string, Candidate>();
  readonly #reported = new Map<string, Candidate>();
  /** One queue for all streams: a position counts as taken only after every event before it. */
  readonly #queue: Passage[] = [];
  #wake = (): void => undefined;

  constructor(context: Context, account: AccountId, from: WatchCursor = {}) {
    const { network } = context;
    this.#network = network;
    this.#context = context;
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
        // It was restored from an older copy, and will report other events under the same numbers.
        if (error instanceof ProblemError && error.problem === "cursor-ahead") {
          this.#pass({ url: authority.url, position: "0.0.0", candidate: undefined, event: undefined });
        }
        // If the archives cannot be read now, the position stays, and the stream is opened there again.
        if (prunedOf(error) !== undefined) await this.#readPruned(authority, signal).catch(() => undefined);
        await this.#network.seekMembers();
        this.#followNew(signal);
      }
      if (Date.now() - openedMs > GOOD_MS) backoff.reset();
      await backoff.wait(signal);
    }
  }

  /** Follows the authorities that were found since, from their present positions on. */
  #followNew(signal: AbortSignal): void {
    for (const authority of this.#network.authorities) {
      if (this.#streams.has(authority.url)) continue;
      this.#streams.set(authority.url, { read: undefined, taken: undefined, open: [] });
      void this.#follow(authority, signal);
    }
  }

  /** Reports the events that an authority has pruned, and moves its stream behind them. */
  async #readPruned(authority: AuthorityClient, signal: AbortSignal): Promise<void> {
    const { url } = authority;
    const { read = "0.0.0" } = this.#stream(url);
    const { events, position } = await prunedEvents(this.#network, authority, this.#account, read, signal);
    for (const event of events) {
      const candidate = this.#record(authority, { name: nameOfEvent(event), type: event.type });
      candidate.archived = event;
      await this.#space(signal);
      if (signal.aborted) return;
      // A checkpoint proves that it is settled, and f + 1 reports that it is new.
      const isNew = candidate.state === "pending" && reportersOf(candidate, this.#network) >= this.#network.trusted;
      if (isNew) this.#markReported(candidate);
      this.#pass({ url, position: read, candidate, event: isNew ? event : undefined });
    }
    this.#pass({ url, position, candidate: undefined, event: undefined });
  }

  async #space(signal: AbortSignal): Promise<void> {
    while (this.#queue.length >= QUEUE_MAX && !signal.aborted) await sleep(50, signal);
  }

  async #readOn(authority: AuthorityClient, signal: AbortSignal): Promise<void> {
    const { url } = authority;
    const stream = this.#stream(url);
    if (stream.read === undefined) {
      // A stream without a cursor begins now, and each reconnection would skip events. So begin at the current
      // position.
      const position = positionOf(await authority.account(this.#account, undefined, signal));
      this.#pass({ url, position, candidate: undefined, event: undefined });
    }
    for await (const event of readEvents(authority.eventsUrl(this.#account, stream.read), signal)) {
      // Its keys may have changed meanwhile.
      await this.#network.authorities.find((one) => one.url === url)?.identify();
      const report = this.#decode(authority, event, signal);
      const candidate = report && this.#record(authority, report);
      const { trusted, committee } = this.#network;
      const isSettled = report?.type === "deposited" || candidate?.archived !== undefined;
      const needed = isSettled ? trusted : committee.quorum;
      const isEnough = candidate?.state === "pending" && reportersOf(candidate, this.#network) >= needed;
      // If it cannot be proven now, the stream is reopened here and reports it again.
      const found = isEnough ? (candidate.archived ?? (await report?.prove(reportersOf(candidate, this.#network)))) : undefined;
      await this.#space(signal);
      if (signal.aborted) return;
      // Two streams may have proven it at once.
      const isNew = found !== undefined && candidate?.state === "pending";
      if (isNew) this.#markReported(candidate);
      this.#pass({ url, position: event.id, candidate, event: isNew ? found : undefined });
    }
  }

  #stream(url: string): Stream {
    return this.#streams.get(url) as Stream;
  }

  /** Records that an authority reports an event. */
  #record({ url }: AuthorityClient, { name, type }: Pick<Report, "name" | "type">): Candidate {
    const reported = this.#reported.get(name);
    if (reported !== undefined) return reported;
    const known = this.#pending.get(name);
    const candidate: Candidate = known ?? { name, type, sinceMs: Date.now(), reporters: new Set(), state: "pending", archived: undefined };
    this.#pending.set(name, candidate);
    candidate.reporters.add(url);
    return candidate;
  }

  #markReported(candidate: Candidate): void {
    candidate.state = "reported";
    this.#pending.delete(candidate.name);
    this.#reported.set(candidate.name, candidate);
    // A map keeps insertion order, so the first key is the oldest.
    const oldest = this.#reported.size > REMEMBERED_MAX ? this.#reported.keys().next() : undefined;
    if (oldest?.done === false) this.#reported.delete(oldest.value);
  }

  #pass(passage: Passage): void {
    this.#stream(passage.url).read = passage.position;
    this.#queue.push(passage);
    this.#wake();
  }

  /** Marks a passage as taken from the queue. */
  #take(passage: Passage): void {
    if (passage.candidate !== undefined && passage.event !== undefined) passage.candidate.state = "taken";
    this.#stream(passage.url).open.push(passage);
    this.#advance();
  }

  /** Advances each stream's cursor up to the first event that may still be reported. */
  #advance(): void {
    for (const [url, { open }] of this.#streams) {
      for (let next = open[0]; next !== undefined; next = open[0]) {
        if (mayBeReported(next.candidate, this.#network) && open.length <= UNCONFIRMED_MAX) break;
        this.#withdraw(url, next.candidate);
        this.#stream(url).taken = next.position;
        open.shift();
      }
    }
  }

  /** Removes an authority's report of an event that too few authorities report. */
  #withdraw(url: string, candidate: Candidate | undefined): void {
    if (candidate?.state !== "pending") return;
    candidate.reporters.delete(url);
    if (candidate.reporters.size === 0) this.#pending.delete(candidate.name);
  }

  /** Sends payments that too few authorities report to all of them, so that all report them. Never rejects. */
  async #spread(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(UNCONFIRMED_MS, SPREAD_MAX_MS);
    const seen = new WeakSet<Candidate>();
    while (!signal.aborted) {
      await backoff.wait(signal);
      // Send a payment that an honest authority has until a quorum has it; send one that may be invented only once.
      const unconfirmed = [...this.#pending.values()].filter(
        (one) =>
          one.type === "received" &&
          Date.now() - one.sinceMs >= UNCONFIRMED_MS &&
          (!seen.has(one) || reportersOf(one, this.#network) >= this.#network.trusted),
      );
      if (unconfirmed.length === 0) {
        backoff.reset();
        continue;
      }
      for (const one of unconfirmed) seen.add(one);
      const nothing = (): undefined => undefined;
      const operation = { ...this.#context, stored: async () => undefined, report: nothing, signal };
      await spreadReceived(operation, this.#account).catch(nothing);
    }
  }

  /** Decodes an event of a stream; undefined for an unknown kind. Throws `malformed-answer`. */
  #decode(authority: AuthorityClient, { event, data }: ServerEvent, signal: AbortSignal): Report | undefined {
    const value = parseJson(data, "the event");
    if (event === "received") return this.#received(authority, value, signal);
    if (event === "confirmed") return this.#confirmed(authority, value, signal);
    if (event === "deposited") return this.#deposited(value);
    return undefined;
  }

  #received(authority: AuthorityClient, value: unknown, signal: AbortSignal): Report {
    const listed = listedOf(decodeReceivedItem(value, "the event"));
    const type = "received" as const;
    const prove = async (): Promise<AccountEvent> => {
      const entry = await this.#network.findReceived(this.#account, authority, listed, signal);
      if (entry === undefined) throw malformed("a received payment", "proven");
      return { type, ...entry };
    };
    return { name: `${type}/${textOf(listed)}`, type, prove };
  }

  #confirmed(first: AuthorityClient, value: unknown, signal: AbortSignal): Report {
    const { sequence, digest } = decodeSentItem(value, "the event");
    const type = "confirmed" as const;
    const prove = async (): Promise<AccountEvent> => {
      const found = await this.#network.findNumber(this.#account, sequence, { first, digest, signal });
      if (found === undefined || found === "void") throw malformed("a confirmed transfer", "proven");
      return { type, ...found };
    };
    return { name: `${type}/${sequence}/${digest}`, type, prove };
  }

  #deposited(value: unknown): Report {
    const deposit = decodeDepositItem(value, "the event");
    if (deposit.recipient !== this.#account) throw malformed("a deposit", "of this account");
    const type = "deposited" as const;
    const prove = (authorities: number): AccountEvent => ({ type, ...deposit, authorities });
    return { name: `${type}/${deposit.index}/${deposit.asset}/${deposit.amount}`, type, prove };
  }
}

/** The number of present members that report it. */
function reportersOf({ reporters }: Candidate, { authorities, committee }: Network): number {
  return membersAmong(authorities.filter(({ url }) => reporters.has(url)), committee);
}

/**
 * True if the event was not taken and may still be reported. A received payment that at least f + 1 authorities report
 * never gets old, because one of them is honest.
 */
function mayBeReported(candidate: Candidate | undefined, network: Network): boolean {
  if (candidate === undefined || candidate.state === "taken") return false;
  const isDoubted = candidate.type === "received" && reportersOf(candidate, network) < network.trusted;
  const isOld = isDoubted && Date.now() - candidate.sinceMs >= OLD_MS;
  return candidate.state === "reported" || !isOld;
}
