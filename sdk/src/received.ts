/** Received payments: names and proofs. */

import type { AccountId } from "./accounts.js";
import type { AuthorityClient } from "./authority.js";
import type { VerifiedCertificate } from "./certificate.js";
import { provenBy, type Network } from "./network.js";
import { paymentIn } from "./transfer.js";
import type { PaymentName, ProvenTransfer, ReceivedEntry } from "./views.js";
import type { OrderName, ReceivedItem } from "./wire.js";

/** The name of a received payment. */
export function nameOf({ payment: { sender, sequence }, output }: Pick<ReceivedItem, "payment" | "output">): PaymentName {
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
  readonly #fetched: Map<string, ProvenTransfer>;

  /** `fetched` has certificates that are known already, by their names' texts. */
  constructor(network: Network, account: AccountId, fetched: ReadonlyMap<string, VerifiedCertificate> = new Map()) {
    this.#network = network;
    this.#account = account;
    this.#fetched = new Map([...fetched].map(([name, certificate]) => [name, provenBy(certificate)]));
  }

  /** The payment that `lister` lists under a name; undefined if no authority can prove it. */
  async find(lister: AuthorityClient, name: PaymentName, signal?: AbortSignal): Promise<ReceivedEntry | undefined> {
    const order = orderText(name);
    const { sender, sequence, output } = name;
    const known = this.#fetched.get(order) ?? (await this.#network.findNumber(sender, sequence, { first: lister, signal }));
    if (known === undefined || known === "void") return undefined;
    this.#fetched.set(order, known);
    return entryOf(known, this.#account, output);
  }
}
