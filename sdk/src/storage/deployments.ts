/**
 * Separates the entries of a store by deployment. A chain that began anew, such as a localnet, may have a contract at
 * the same address. Its accounts have other histories, so no earlier entry may be used or sent there.
 *
 * ```text
 *  deployments/0, deployments/1 …     the digest of the first committee of each, written once
 * ```
 * Keys of the first deployment have no prefix; keys of later ones begin with the deployment's number. Nothing is ever
 * removed, so after a return to an earlier deployment its entries are found again.
 */

import { keccak_256 } from "@noble/hashes/sha3.js";

import { concat, lower, toBytes, toHex, type Hex } from "../bytes.js";
import type { Committee } from "../committee.js";
import { hex, object, smallNumber } from "../decode.js";
import { FastPayError } from "../errors.js";
import type { Domain } from "../transfer.js";
import { parseJson } from "../wire.js";
import type { OrderStore } from "./store.js";

/** The maximum number of deployments at one address in one store. */
const DEPLOYMENTS_MAX = 1_000;

const entry = object({ atMs: smallNumber(Number.MAX_SAFE_INTEGER), committee: hex(32) });

/** A digest of the first committee's members, which identifies a deployment among those at one address. */
export function deploymentDigest(first: Committee): Hex {
  const keys = first.members.flatMap(({ votingKey, redemptionKey }) => [toBytes(votingKey), toBytes(redemptionKey)]);
  return toHex(keccak_256(concat(...keys)));
}

/**
 * The part of a store that belongs to the deployment with this first committee. Throws `other-deployment` if the store
 * was used only with other deployments at this address and `setAside` is false.
 */
export async function deploymentStore(
  store: OrderStore,
  domain: Domain,
  first: Committee,
  setAside: boolean,
): Promise<OrderStore> {
  const prefix = placeOf(domain, "deployments");
  const own = deploymentDigest(first);
  for (let number = 0; number < DEPLOYMENTS_MAX; number += 1) {
    const key = `${prefix}${number}`;
    let found = await store.get(key);
    if (found === undefined) {
      if (number > 0 && !setAside) throw otherDeployment();
      await store.create(key, JSON.stringify({ atMs: Date.now(), committee: own }));
      // Another page may have written this entry first, for another deployment.
      found = await store.get(key);
    }
    if (found !== undefined && entry(parseJson(found, key), key).committee === own) return number === 0 ? store : under(store, `${number}:`);
  }
  throw new FastPayError("storage", "the storage contains too many deployments at one address", "clear it");
}

/** True if the store was used with this deployment, and with no other one at its address. */
export async function soleDeployment(store: OrderStore, domain: Domain, first: Committee): Promise<boolean> {
  const prefix = placeOf(domain, "deployments");
  const [own, other] = await Promise.all([store.get(`${prefix}0`), store.get(`${prefix}1`)]);
  return own !== undefined && other === undefined && entry(parseJson(own, "a deployment"), "a deployment").committee === deploymentDigest(first);
}

/** The beginning of all keys under a name, such as an account, of the deployments at one address. */
export function placeOf({ chainId, contract }: Domain, name: string): string {
  return `${chainId}/${lower(contract)}/${name}/`;
}

function otherDeployment(): FastPayError {
  const message = "the storage belongs to another deployment at the same address, with another first committee";
  const action =
    "check the Ethereum node. If the network was restarted, set the old data aside; it may contain unfinished orders of the old network";
  return new FastPayError("other-deployment", message, action);
}

function under(store: OrderStore, name: string): OrderStore {
  return {
    get: (key) => store.get(name + key),
    create: (key, value) => store.create(name + key, value),
    keys: async (prefix) => (await store.keys(name + prefix)).map((key) => key.slice(name.length)),
    exclusively: (lock, patienceMs, task) => store.exclusively(name + lock, patienceMs, task),
  };
}
