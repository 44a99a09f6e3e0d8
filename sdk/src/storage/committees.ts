/**
 * Stores the committees of a deployment, as read from the contract, so that a client can start and pay while no
 * Ethereum node answers.
 *
 * ```text
 *  committees/EPOCH     the members, written once
 * ```
 * The client takes the authorities' keys from these entries, so it trusts the store as far as the browser protects it.
 */

import { makeCommittee, type Committee } from "../committee.js";
import { hex, list, object } from "../decode.js";
import type { Domain } from "../transfer.js";
import { parseJson } from "../wire.js";
import { placeOf, soleDeployment } from "./deployments.js";
import type { OrderStore } from "./store.js";

const MEMBERS_MAX = 255;

const entry = list(object({ votingKey: hex(32), redemptionKey: hex(20) }), MEMBERS_MAX);

/** The first and the newest committee in a store. */
export interface StoredCommittees {
  readonly first: Committee;
  readonly newest: Committee;
}

/** Stores a committee. Ignores errors: without the entry, a client only cannot start without an Ethereum node. */
export async function rememberCommittee(store: OrderStore, domain: Domain, { epoch, members }: Committee): Promise<void> {
  await store.create(`${placeOf(domain, "committees")}${epoch}`, JSON.stringify(members)).catch(() => false);
}

/**
 * The stored committees; undefined if there are none, or if the store was used with several deployments at this
 * address, because only the contract identifies the current one.
 */
export async function storedCommittees(store: OrderStore, domain: Domain): Promise<StoredCommittees | undefined> {
  const prefix = placeOf(domain, "committees");
  const read = async (epoch: bigint): Promise<Committee | undefined> => {
    const text = await store.get(`${prefix}${epoch}`);
    return text === undefined ? undefined : makeCommittee(epoch, entry(parseJson(text, "a committee"), "a committee"));
  };
  const epochs = (await store.keys(prefix)).map((key) => BigInt(key.slice(prefix.length)));
  const newest = await read(epochs.reduce((a, b) => (a > b ? a : b), 0n));
  const first = newest?.epoch === 0n ? newest : await read(0n);
  if (first === undefined || newest === undefined) return undefined;
  return (await soleDeployment(store, domain, first)) ? { first, newest } : undefined;
}
