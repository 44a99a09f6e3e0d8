/** The shop's orders, by the id of their invoice. A real shop stores them in its database. */

/** The maximum number of orders. Above it, the oldest one is removed. */
const ORDERS_MAX = 10_000;
const WEI_IN_ETHER = 10n ** 18n;

/** An amount in wei as ETH: `0.0125`. */
export function ether(wei) {
  const digits = (wei % WEI_IN_ETHER).toString().padStart(18, "0").replace(/0+$/, "");
  return `${wei / WEI_IN_ETHER}${digits && "."}${digits}`;
}

export class Orders {
  #orders = new Map();
  #encodeQR;

  constructor(encodeQR) {
    this.#encodeQR = encodeQR;
  }

  add(invoice, bill) {
    this.#orders.set(invoice.id, { invoice, bill, qr: this.#encodeQR(invoice.link) });
    if (this.#orders.size > ORDERS_MAX) this.#orders.delete(this.#orders.keys().next().value);
  }

  /**
   * Updates an order with the invoice of a webhook. Returns false if the event has nothing new. An event may arrive
   * twice, and events may arrive out of order: the one with the most payments counts. `expired` has as many payments as
   * `open`.
   */
  hear(invoice) {
    const order = this.#orders.get(invoice.id);
    if (order === undefined) return false;
    const { paymentCount, state } = order.invoice;
    if (invoice.paymentCount < paymentCount || (invoice.paymentCount === paymentCount && invoice.state === state)) return false;
    // After a partial payment, the invoice has another link, for the rest.
    const qr = invoice.link === order.invoice.link ? order.qr : this.#encodeQR(invoice.link);
    this.#orders.set(invoice.id, { ...order, invoice, qr });
    return true;
  }

  /** The public part of an order, for the page; undefined if there is no such order. */
  show(id) {
    const order = this.#orders.get(id);
    if (order === undefined) return undefined;
    const { state, link, webLink, checkoutUrl, expiresAt } = order.invoice;
    const [amount, received] = [order.invoice.amount, order.invoice.received].map(BigInt);
    return {
      id,
      state,
      bill: order.bill,
      amount: ether(amount),
      received: ether(received),
      missing: ether(amount > received ? amount - received : 0n),
      excess: ether(received > amount ? received - amount : 0n),
      link,
      webLink,
      checkoutUrl,
      qr: order.qr,
      // The visitor's clock may be wrong.
      secondsLeft: Math.max(0, expiresAt - Date.now() / 1000),
    };
  }
}
