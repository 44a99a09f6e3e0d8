/** Received payments: names and proofs. */

import type { AccountId } from "./accounts.js";
import type { AuthorityClient } from "./authority.js";
import type { VerifiedCertificate } from "./certificate.js";
import type { Network } from "./network.js";
import { paymentIn } from "./transfer.js";
import type { PaymentName, ReceivedEntry } from "./views.js";
import type { OrderName, ReceivedItem } from "./wire.js";

/** The name of a received payment. */
export function nameOf({ payment: { sender, sequence }, output }: ReceivedItem): PaymentName {
  return { sender, sequence, output };
}

/** A name as a unique text. */
export function textOf({ sender, sequence, output }: PaymentName): string {
  return `${sender}/${sequence}/${output ?? ""}`;
}

/** The name of an order as a unique text. */
export function orderText({ sender, sequence }: OrderName): string {
  return `${sender}/${sequence}`;
}

/**
 * The payment to `account` that a certificate proves, as a single payment or as this output; undefined if there is
 * none.
 */
export function entryOf(
  certificate: VerifiedCertificate,
  account: AccountId,
  output: number | undefined,
): ReceivedEntry | undefined {
  const payment = paymentIn(certificate.order.transfer, output);
  return payment?.recipient === account ? { payment, output, certificate } : undefined;
}

/** Proves listed payments by their certificates. A payout's certificate is fetched once. */
export class ReceivedProofs {
  readonly #network: Network;
  readonly #account: AccountId;
  readonly #fetched: Map<string, VerifiedCertificate>;

  /** `fetched` has certificates that are known already, by their names' texts. */
  constructor(network: Network, account: AccountId, fetched: ReadonlyMap<string, VerifiedCertificate> = new Map()) {
    this.#network = network;
    this.#account = account;
    this.#fetched = new Map(fetched);
  }

  /** The payment that `lister` lists under a name; undefined if no authority can prove it. */
  async find(lister: AuthorityClient, name: PaymentName, signal?: AbortSignal): Promise<ReceivedEntry | undefined> {
    const order = orderText(name);
    const known = this.#fetched.get(order);
    if (known !== undefined) return entryOf(known, this.#account, name.output);
    const found = await this.#network.findReceived(this.#account, lister, name, signal);
    if (found !== undefined) this.#fetched.set(order, found.certificate);
    return found;
  }
}
