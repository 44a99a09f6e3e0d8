/**
 * Stores where members of the committee said that they can be reached, so that a client finds them again when those that
 * told it are gone.
 *
 * ```text
 *  endpoints/NAME/NUMBER     what the member signed, written once
 * ```
 * What is read is checked like an authority's answer.
 */

import { decodeEndpoint, encodeEndpoint, type MemberEndpoint } from "../member-endpoints.js";
import type { Domain } from "../transfer.js";
import { parseJson } from "../wire.js";
import { placeOf } from "./deployments.js";
import type { OrderStore } from "./store.js";

/** Stores an endpoint. Ignores errors: without the entry, a client only has to ask again. */
export async function rememberEndpoint(store: OrderStore, domain: Domain, endpoint: MemberEndpoint): Promise<void> {
  const key = `${placeOf(domain, "endpoints")}${endpoint.authority}/${endpoint.number}`;
  await store.create(key, encodeEndpoint(endpoint)).catch(() => false);
}

/** The stored endpoints of all members, of each the one with the highest number. */
export async function storedEndpoints(store: OrderStore, domain: Domain): Promise<readonly MemberEndpoint[]> {
  const prefix = placeOf(domain, "endpoints");
  const newest = new Map<string, bigint>();
  for (const key of await store.keys(prefix)) {
    const [name = "", number = ""] = key.slice(prefix.length).split("/");
    const known = newest.get(name);
    if (/^[0-9]+$/.test(number) && (known === undefined || BigInt(number) > known)) newest.set(name, BigInt(number));
  }
  const read = [...newest].map(async ([name, number]) => {
    const text = await store.get(`${prefix}${name}/${number}`);
    return text === undefined ? [] : [decodeEndpoint(parseJson(text, "an endpoint"), "an endpoint")];
  });
  return (await Promise.all(read)).flat();
}
