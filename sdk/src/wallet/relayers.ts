/**
 * Relayers' services (docs/API.md): fees of redemptions (`GET /v1/fees`), requests to unlock (`POST /v1/unlocks`).
 */

import { formatAccount } from "../accounts.js";
import type { Address, Hex } from "../bytes.js";
import { hex, list, object, unsigned } from "../decode.js";
import { FastPayError, isFastPayError, messageOf } from "../errors.js";
import { requestJson } from "../http.js";
import type { Domain } from "../transfer.js";
import type { RelayerFees, RelayerOffer } from "../views.js";
import { throwIfAborted } from "../waiting.js";
import type { OrderName } from "../wire.js";
import type { Context } from "./context.js";

/** The maximum number of relayers, as in the endpoints file. */
export const RELAYERS_MAX = 16;
/** The maximum number of assets of one relayer. */
const ASSETS_MAX = 1_000;
/** The timeout of a request to unlock, before whose answer a relayer reads the chain and asks the authorities. */
const UNLOCK_MS = 60_000;

const fees = object({
  chainId: unsigned(64),
  contract: hex(20),
  relayer: hex(20),
  fees: list(object({ asset: hex(20), fee: unsigned(128) }), ASSETS_MAX),
});

/** Requests all relayers' fees for an asset at once. Throws `chain-unreachable`. */
export async function relayerFees(context: Context, asset: Address): Promise<RelayerFees> {
  const { relayers, network, primary, timing } = context;
  const asked = relayers.map(async (url): Promise<{ url: string; offer?: RelayerOffer; error?: FastPayError }> => {
    try {
      return { url, ...(await offerOf(url, network.domain, asset, timing.requestMs)) };
    } catch (error) {
      return { url, error: isFastPayError(error) ? error : new FastPayError("unreachable", messageOf(error), "ask the others") };
    }
  });
  const [answers, usualMs] = await Promise.all([Promise.all(asked), primary.payoutMs()]);
  const offers = answers.flatMap(({ offer }) => offer ?? []).sort((a, b) => (a.fee < b.fee ? -1 : Number(a.fee > b.fee)));
  const silent = answers.flatMap(({ url, error }) => (error === undefined ? [] : [{ url, error }]));
  // The median: a single relayer cannot raise or lower it at will.
  const proposed = offers[Math.floor(offers.length / 2)]?.fee;
  return { asset, offers, silent, proposed, usualMs };
}

async function offerOf(url: string, domain: Domain, asset: Address, timeoutMs: number): Promise<{ offer?: RelayerOffer }> {
  const read = fees(await requestJson({ method: "GET", url: `${url}/v1/fees`, timeoutMs }), "the relayer's answer");
  if (read.chainId !== domain.chainId || read.contract !== domain.contract.toLowerCase()) {
    const message = `${url} relays for contract ${read.contract} on chain ${read.chainId}`;
    throw new FastPayError("malformed-answer", message, "it belongs to another deployment; remove it from the list");
  }
  const served = read.fees.find((one) => one.asset === asset);
  return served === undefined ? {} : { offer: { url, relayer: read.relayer as Hex, fee: served.fee } };
}

/**
 * Asks one relayer after another to submit and pay for an owner's request to unlock a number, until one accepts. The
 * call may be repeated. Returns that relayer's URL. Throws `no-relayer`, with the answer of each.
 */
export async function haveRequested(
  { relayers }: Context,
  { sender, sequence }: OrderName,
  authorization: Hex,
  signal: AbortSignal | undefined,
): Promise<string> {
  const body = JSON.stringify({ account: formatAccount(sender), sequence: String(sequence), authorization });
  const answers: string[] = [];
  for (const url of relayers) {
    try {
      await requestJson({ method: "POST", url: `${url}/v1/unlocks`, body, timeoutMs: UNLOCK_MS, signal });
      return url;
    } catch (error) {
      throwIfAborted(signal);
      answers.push(`${url}: ${messageOf(error)}`);
    }
  }
  const message = answers.length > 0 ? answers.join("; ") : "no relayer is known";
  throw new FastPayError("no-relayer", `no relayer submits the request: ${message}`, "try again later, or pay with a wallet that has ETH");
}
