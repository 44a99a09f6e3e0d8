/** Takes what `early.ts` asked for while this code was loaded: each answer once. */

import type { Early } from "../early";

function take<K extends keyof Early>(what: K): Early[K] | undefined {
  const early = window.fastpayEarly;
  const taken = early?.[what];
  if (early !== undefined) delete early[what];
  return taken;
}

/** network.json; undefined if it was taken or not asked for. */
export function fileAhead(): Promise<unknown> | undefined {
  return take("file");
}

/** `fetch`, which takes the answer to this very request if it was asked for ahead. */
export async function fetchAhead(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const ahead = await take("node")?.catch(() => undefined);
  const isIt = typeof input === "string" && ahead !== undefined && new URL(input).href === new URL(ahead.url).href && init?.body === ahead.body;
  if (isIt) {
    // One that failed is asked again, as any other.
    const answer = await ahead.answer.catch(() => undefined);
    if (answer !== undefined) return answer;
  }
  return fetch(input, init);
}
