import assert from "node:assert/strict";
import { test } from "node:test";

import { Orders, ether } from "./orders.mjs";

const invoice = (change) => ({
  id: "inv_1",
  state: "open",
  amount: "10000000000000000",
  received: "0",
  paymentCount: 0,
  link: "fastpay:a?amount=10",
  webLink: null,
  expiresAt: Date.now() / 1000 + 900,
  ...change,
});
const withOne = () => {
  const orders = new Orders((link) => `qr of ${link}`);
  orders.add(invoice(), "1 × Cake");
  return orders;
};

test("events that come twice, too late or for nobody change nothing", () => {
  const orders = withOne();
  const paid = invoice({ state: "paid", received: "10000000000000000", paymentCount: 2 });
  const part = invoice({ state: "underpaid", received: "4000000000000000", paymentCount: 1, link: "fastpay:a?amount=6" });
  assert.deepEqual([orders.hear(part), orders.hear(part)], [true, false]);
  const shown = orders.show("inv_1");
  assert.deepEqual([shown.state, shown.received, shown.missing, shown.qr], ["underpaid", "0.004", "0.006", "qr of fastpay:a?amount=6"]);
  assert.deepEqual([orders.hear(paid), orders.hear(part), orders.hear(invoice({ id: "inv_2" }))], [true, false, false]);
  assert.equal(orders.show("inv_1").state, "paid");
  assert.equal(orders.show("inv_2"), undefined);
});

test("an order expires without a payment, and is late with one", () => {
  const orders = withOne();
  assert.equal(orders.hear(invoice({ state: "expired" })), true);
  assert.equal(orders.hear(invoice({ state: "late", paymentCount: 1, received: "10000000000000000" })), true);
  assert.equal(orders.hear(invoice({ state: "expired" })), false);
  assert.equal(orders.show("inv_1").state, "late");
});

test("wei are written as ETH", () => {
  assert.deepEqual([0n, 1n, 10n ** 18n, 12_500_000_000_000_000n].map(ether), ["0", "0.000000000000000001", "1", "0.0125"]);
});
