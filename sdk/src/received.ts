/** Received payments: names and proofs. */

import type { AccountId } from "./accounts.js";
import type { AuthorityClient } from "./authority.js";
import type { Hex } from "./bytes.js";
import type { VerifiedCertificate } from "./certificate.js";
import { provenBy, type Network } from "./network.js";
import { paymentIn } from "./transfer.js";
import type { PaymentName, ProvenTransfer, ReceivedEntry } from "./views.js";
import type { OrderName, ReceivedItem } from "./wire.js";

/**
 * A listed payment: its name, and the digest of the order that makes it. After a recovery, the same name may be that of
 * an order that was certified before and counts for nothing, and that of the order that took its number.
 */
export interface Listed extends PaymentName {
  readonly digest: Hex;
}

/** What an entry says of a received payment. */
export function listedOf({ payment: { sender, sequence }, output, digest }: Omit<ReceivedItem, "number">): Listed {
  return { sender, sequence, output, digest };
}

/** A listed payment as a unique text. */
export function textOf({ sender, sequence, output, digest }: Listed): string {
  return `${sender}/${sequence}/${output ?? ""}/${digest}`;
}

/** The name of an order as a unique text. */
export function orderText({ sender, sequence }: OrderName): string {
  return `${sender}/${sequence}`;
}

/** The payment to `account` in a proven transfer, as a single payment or as this output; undefined if there is none. */
export function entryOf(
  { transfer, digest, proof }: ProvenTransfer,
  account: AccountId,
  output: number | undefined,
): ReceivedEntry | undefined {
  const payment = paymentIn(transfer, output);
  return payment?.recipient === account ? { payment, output, digest, proof } : undefined;
}

/** Proves listed payments. A payout's proof is fetched once. */
export class ReceivedProofs {
  readonly #network: Network;
  readonly #account: AccountId;
  /** By the orders' names and digests. */
  readonly #fetched: Map<string, ProvenTransfer>;

  /** `fetched` has certificates that are known already. */
  constructor(network: Network, account: AccountId, fetched: Iterable<VerifiedCertificate> = []) {
    this.#network = network;
    this.#account = account;
    this.#fetched = new Map(
      [...fetched].map((certificate) => [`${orderText(certificate.order.transfer)}/${certificate.digest}`, provenBy(certificate)]),
    );
  }

  /** The payment that `lister` lists; undefined if no authority can prove it. */
  async find(lister: AuthorityClient, listed: Listed, signal?: AbortSignal): Promise<ReceivedEntry | undefined> {
    const { sender, sequence, output, digest } = listed;
    const order = `${orderText(listed)}/${digest}`;
    const options = { first: lister, digest, signal };
    const known = this.#fetched.get(order) ?? (await this.#network.findNumber(sender, sequence, options));
    if (known === undefined || known === "void") return undefined;
    this.#fetched.set(order, known);
    return entryOf(known, this.#account, output);
  }
}
