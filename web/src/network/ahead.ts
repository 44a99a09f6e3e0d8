/** Takes the answers that `early.ts` requested while this code was loading, each once. */

import type { Early } from "../early";

function take<K extends keyof Early>(what: K): Early[K] | undefined {
  const early = window.fastpayEarly;
  const taken = early?.[what];
  if (early !== undefined) delete early[what];
  return taken;
}

/** The content of network.json; undefined if it was taken already or not requested. */
export function fileAhead(): Promise<unknown> | undefined {
  return take("file");
}

/** Like `fetch`, but takes the answer that was requested ahead if URL and body are the same. */
export async function fetchAhead(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const ahead = await take("node")?.catch(() => undefined);
  const isIt = typeof input === "string" && ahead !== undefined && new URL(input).href === new URL(ahead.url).href && init?.body === ahead.body;
  if (isIt) {
    // If the early request failed, send it again like any other.
    const answer = await ahead.answer.catch(() => undefined);
    if (answer !== undefined) return answer;
  }
  return fetch(input, init);
}
