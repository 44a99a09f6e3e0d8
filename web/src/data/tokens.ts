/**
 * Symbols and decimals of tokens, stored in this browser, so that tokens can be paid while no Ethereum node answers.
 */

import type { Address, AssetInfo, FastPayClient } from "@fastpay/sdk";

/** The number of stored tokens. Bounded, because anyone can send tokens; the oldest are forgotten. */
const TOKENS_MAX = 100;
/** The time for the node to answer, if this browser has a stored answer, in milliseconds. */
const PATIENCE_MS = 3_000;

/** A token's symbol and decimals. `isStored` means that the node did not answer, and they are the stored ones. */
export interface TokenAnswer {
  readonly info: AssetInfo;
  readonly isStored: boolean;
}

/**
 * Reads a token from the chain and stores the answer at `place` of this browser's storage. Falls back to the stored
 * answer if the node fails or does not answer in time. Throws the node's error if there is none.
 */
export async function tokenInfo(client: FastPayClient, place: string, asset: Address): Promise<TokenAnswer> {
  const stored = readTokens(place).find((info) => info.asset === asset);
  const reading = client.assetInfo(asset).then((info) => {
    store(place, info);
    return { info, isStored: false };
  });
  if (stored === undefined) return reading;
  const fallback = { info: stored, isStored: true };
  const patience = new Promise<TokenAnswer>((resolve) => setTimeout(() => resolve(fallback), PATIENCE_MS));
  return Promise.race([reading.catch(() => fallback), patience]);
}

function readTokens(place: string): AssetInfo[] {
  try {
    const tokens: unknown = JSON.parse(localStorage.getItem(place) ?? "[]");
    return Array.isArray(tokens) ? tokens.filter(isInfo) : [];
  } catch {
    return [];
  }
}

function isInfo(value: AssetInfo | null): value is AssetInfo {
  const { asset, symbol, decimals, hasPermit } = value ?? {};
  return typeof asset === "string" && typeof symbol === "string" && Number.isInteger(decimals) && typeof hasPermit === "boolean";
}

function store(place: string, info: AssetInfo): void {
  const others = readTokens(place).filter(({ asset }) => asset !== info.asset);
  try {
    localStorage.setItem(place, JSON.stringify([...others, info].slice(-TOKENS_MAX)));
  } catch {
    // No space: the token is read from the chain at the next visit.
  }
}
