/**
 * Server-sent events (WHATWG HTML, "Server-sent events") over fetch, with bounds on an event's length and on silence.
 */

import { malformed } from "./decode.js";
import { readText, requestError } from "./http.js";
import { ProblemError } from "./problem.js";
import { parseJson } from "./wire.js";

/** A stream that is silent for longer is closed. Authorities send a comment every 15 s. */
const SILENCE_MAX_MS = 45_000;
/** The maximum length of an event. No event of an honest authority is longer. */
const EVENT_CHARACTERS_MAX = 1024 * 1024;

/** One event. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  /** The cursor after this event. */
  readonly id: string;
}

/**
 * The events of a stream until it ends. Throws like `requestJson`, with `timed-out` after `SILENCE_MAX_MS` of silence.
 */
export async function* readEvents(url: string, signal: AbortSignal): AsyncGenerator<ServerEvent, void> {
  const silence = new AbortController();
  const until = AbortSignal.any([signal, silence.signal]);
  let timer = setTimeout(() => silence.abort(), SILENCE_MAX_MS);
  try {
    const headers = { accept: "text/event-stream, application/problem+json" };
    const response = await fetch(url, {
      headers,
      signal: until,
      credentials: "omit",
      redirect: "error",
      cache: "no-store",
    });
    if (!response.ok) throw new ProblemError(response.status, parseJson(await readText(response), "the answer"));
    const parser = new EventParser();
    const decoder = new TextDecoder();
    const reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MAX_MS);
      yield* parser.feed(decoder.decode(value, { stream: true }));
    }
  } catch (error) {
    throw requestError(error, { url, signal }, silence.signal);
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

/** Assembles events from pieces of text of any length. */
export class EventParser {
  #rest = "";
  #event = "";
  #data: string[] = [];
  #id = "";
  #length = 0;

  /** Adds a piece. Returns the events that it completes. Throws `malformed-answer` if an event is too long. */
  feed(piece: string): ServerEvent[] {
    const lines = `${this.#rest}${piece}`.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    this.#length += piece.length;
    const events: ServerEvent[] = [];
    for (const line of lines) {
      const event = this.#line(line);
      if (event !== undefined) events.push(event);
    }
    if (this.#length > EVENT_CHARACTERS_MAX)
      throw malformed("an event", `at most ${EVENT_CHARACTERS_MAX} characters long`);
    return events;
  }

  #line(line: string): ServerEvent | undefined {
    if (line === "") return this.#dispatch();
    if (line.startsWith(":")) {
      // A comment between events does not count toward the length of the next event.
      if (this.#data.length === 0) this.#length = this.#rest.length;
      return undefined;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.#event = value;
    if (name === "data") this.#data.push(value);
    if (name === "id" && !value.includes("\0")) this.#id = value;
    return undefined;
  }

  #dispatch(): ServerEvent | undefined {
    const [event, data] = [this.#event, this.#data];
    this.#event = "";
    this.#data = [];
    this.#length = this.#rest.length;
    return data.length === 0 ? undefined : { event: event || "message", data: data.join("\n"), id: this.#id };
  }
}
