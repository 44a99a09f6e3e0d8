/** HTTP requests to an authority, with bounded time and size. */

import { malformed } from "./decode.js";
import { FastPayError, messageOf } from "./errors.js";
import { ProblemError } from "./problem.js";
import { aborted } from "./waiting.js";
import { parseJson } from "./wire.js";

/** The base of an API's address. */
export const HTTP_BASE = /^https?:\/\/[^/?#]+[^?#]*$/;
/** The longest answer of an honest authority: a page of certificates of the largest committee. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

/** A request. */
export interface HttpRequest {
  readonly method: "GET" | "POST";
  readonly url: string;
  /** JSON. */
  readonly body?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** The longest answer; `ANSWER_BYTES_MAX` unless it is given. */
  readonly bytesMax?: number;
}

/** An authority's JSON answer. Throws `unreachable`, `timed-out`, `malformed-answer`, `aborted` or a `ProblemError`. */
export async function requestJson(request: HttpRequest): Promise<unknown> {
  const limit = AbortSignal.timeout(request.timeoutMs);
  const signal = request.signal === undefined ? limit : AbortSignal.any([limit, request.signal]);
  try {
    const response = await fetch(request.url, { ...fetchOptions(request), signal });
    const body = await readText(response, request.bytesMax);
    if (response.ok) return parseJson(body, "the answer");
    throw new ProblemError(response.status, parseJson(body, `the answer of status ${response.status}`));
  } catch (error) {
    throw requestError(error, request, limit);
  }
}

function fetchOptions({ method, body }: HttpRequest): RequestInit {
  const accept = { accept: "application/json, application/problem+json" };
  const common: RequestInit = { method, credentials: "omit", redirect: "error", cache: "no-store" };
  if (body === undefined) return { ...common, headers: accept };
  return { ...common, headers: { ...accept, "content-type": "application/json" }, body };
}

/** Converts the error of a failed fetch to a `FastPayError`. */
export function requestError(
  error: unknown,
  request: { url: string; signal?: AbortSignal | undefined },
  limit: AbortSignal,
): FastPayError {
  if (error instanceof FastPayError) return error;
  if (request.signal?.aborted) return aborted();
  const { origin } = new URL(request.url);
  const action = "another authority may answer; otherwise try again later";
  if (limit.aborted) return new FastPayError("timed-out", `${origin} did not answer in time`, action, { cause: error });
  return new FastPayError("unreachable", `${origin} cannot be reached: ${messageOf(error)}`, action, { cause: error });
}

/** The body as text. Throws `malformed-answer` if it is longer than any honest answer. */
export async function readText(response: Response, bytesMax = ANSWER_BYTES_MAX): Promise<string> {
  if (response.body === null) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let read = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return read + decoder.decode();
    bytes += value.length;
    if (bytes > bytesMax) {
      await reader.cancel();
      throw malformed("the answer", `at most ${bytesMax} bytes long`);
    }
    read += decoder.decode(value, { stream: true });
  }
}
