/**
 * An example shop, a bakery. It creates an invoice for the basket at `fastpay-merchant`, shows the invoice's link as a
 * QR code, and delivers once a verified webhook reports that the invoice is paid. `make shop` starts it.
 */

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import encodeQR from "qr";

import { Orders } from "./orders.mjs";
import { isGenuine } from "./webhook.mjs";

const { SHOP_PORT = "3000", MERCHANT_URL = "http://127.0.0.1:7080", MERCHANT_SECRETS, SHOP_EXPIRES_IN = "900" } = process.env;
const { SHOP_URL = `http://127.0.0.1:${SHOP_PORT}` } = process.env;
const token = readFileSync(`${MERCHANT_SECRETS}/token`, "utf8").trim();
const secret = readFileSync(`${MERCHANT_SECRETS}/webhook`, "utf8").trim();

/** The goods. The server sets the prices, because a page can send any request. */
const GOODS = [
  { id: "croissant", name: "Butter croissant", thousandths: 2 },
  { id: "bread", name: "Sourdough loaf", thousandths: 5 },
  { id: "cake", name: "Birthday cake", thousandths: 10 },
];
const WEI_IN_A_THOUSANDTH = 10n ** 15n;
const wei = (thousandths) => String(BigInt(thousandths) * WEI_IN_A_THOUSANDTH);
const BODY_BYTES_MAX = 256 * 1024;
// A screen is neither torn nor dirty, so use low error correction: fewer and larger squares are easier to scan.
const orders = new Orders((link) => encodeQR(link, "svg", { ecc: "low" }));

const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};
const file = (name, type) => [200, type, readFileSync(new URL(`public/${name}`, import.meta.url))];
const FILES = {
  "GET /": file("index.html", "text/html; charset=utf-8"),
  "GET /shop.css": file("shop.css", "text/css; charset=utf-8"),
  "GET /shop.js": file("shop.js", "text/javascript; charset=utf-8"),
  "GET /goods": [200, "application/json", JSON.stringify(GOODS)],
};
const json = (status, value) => [status, "application/json", JSON.stringify(value)];

/** The goods in a basket, with their counts; undefined if the basket is empty or invalid. */
function bill(basket) {
  const lines = GOODS.map((good) => ({ ...good, count: basket[good.id] ?? 0 })).filter(({ count }) => count !== 0);
  if (lines.length === 0 || lines.some(({ count }) => !Number.isInteger(count) || count < 0 || count > 9)) return undefined;
  return lines;
}

async function order(basket) {
  const lines = bill(basket);
  if (lines === undefined) return [400, "text/plain", "There is nothing in the basket that can be sold."];
  const thousandths = lines.reduce((sum, line) => sum + line.thousandths * line.count, 0);
  const answer = await fetch(`${MERCHANT_URL}/v1/invoices`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({
      reference: `order ${randomUUID()}`,
      amount: wei(thousandths),
      expiresIn: Number(SHOP_EXPIRES_IN),
      // For the checkout page, to which this shop's page links.
      items: lines.map(({ name, count, thousandths: each }) => ({ name, quantity: count, amount: wei(each * count) })),
      returnUrl: `${SHOP_URL}/`,
    }),
  });
  if (!answer.ok) throw new Error(`the merchant service answered ${answer.status}: ${await answer.text()}`);
  const invoice = await answer.json();
  orders.add(invoice, lines.map(({ count, name }) => `${count} × ${name}`).join(", "));
  return json(201, orders.show(invoice.id));
}

async function read(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) throw new Error("the body is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function answer(request) {
  const { pathname } = new URL(request.url, "http://shop");
  const route = `${request.method} ${pathname}`;
  if (route in FILES) return FILES[route];
  if (route === "POST /orders") return order(JSON.parse(await read(request)));
  if (route === "POST /webhook") {
    const body = await read(request);
    if (!isGenuine(secret, request.headers, body, Date.now() / 1000)) return [401, "text/plain", "not genuine"];
    const { type, data } = JSON.parse(body);
    if (orders.hear(data)) console.log(`${type}: ${data.reference}`);
    return [204, "text/plain", ""];
  }
  const found = request.method === "GET" && orders.show(pathname.replace("/orders/", ""));
  return found ? json(200, found) : [404, "text/plain", "There is nothing here."];
}

const server = createServer(async (request, response) => {
  const [status, type, body] = await answer(request).catch((error) => {
    console.error(error.message);
    return [502, "text/plain", "The shop cannot take orders now. Please try again."];
  });
  response.writeHead(status, { ...HEADERS, "content-type": type }).end(body);
});
server.listen(Number(SHOP_PORT), "127.0.0.1", () => console.log(`the shop is open: http://127.0.0.1:${server.address().port}`));
