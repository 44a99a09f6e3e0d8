/**
 * A bakery that sells one cake, to show what a shop does: it asks `fastpay-merchant` for an invoice, shows its link as a
 * QR code, and delivers when a webhook that it verified says that the invoice is paid. Started by `make shop`.
 */

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import encodeQR from "qr";

import { isGenuine } from "./webhook.mjs";

const { SHOP_PORT = "3000", MERCHANT_URL = "http://127.0.0.1:7080", MERCHANT_SECRETS } = process.env;
const token = readFileSync(`${MERCHANT_SECRETS}/token`, "utf8").trim();
const secret = readFileSync(`${MERCHANT_SECRETS}/webhook`, "utf8").trim();
const page = readFileSync(new URL("index.html", import.meta.url));

/** 0.01 ETH, for a quarter of an hour. */
const CAKE = { amount: "10000000000000000", expiresIn: 900 };
const BODY_BYTES_MAX = 64 * 1024;
/** Orders by the id of their invoice. A real shop keeps them in its database. */
const orders = new Map();

async function order() {
  const answer = await fetch(`${MERCHANT_URL}/v1/invoices`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ ...CAKE, reference: `cake ${randomUUID()}` }),
  });
  if (!answer.ok) throw new Error(`the merchant service answered ${answer.status}`);
  const { id, link, state } = await answer.json();
  orders.set(id, { state, payments: 0 });
  return { id, link, qr: encodeQR(link, "svg"), state };
}

/** The same event may come twice and events may overtake one another: the one with the most payments holds. */
function hear({ type, data }) {
  const known = orders.get(data.id);
  if (known === undefined || data.payments.length < known.payments) return;
  orders.set(data.id, { state: data.state, payments: data.payments.length });
  console.log(`${type}: ${data.reference}`);
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
  if (route === "GET /") return [200, "text/html; charset=utf-8", page];
  if (route === "POST /orders") return [201, "application/json", JSON.stringify(await order())];
  if (route === "POST /webhook") {
    const body = await read(request);
    if (!isGenuine(secret, request.headers, body, Date.now() / 1000)) return [401, "text/plain", "not genuine"];
    hear(JSON.parse(body));
    return [204, "text/plain", ""];
  }
  const found = request.method === "GET" && orders.get(pathname.replace("/orders/", ""));
  return found ? [200, "application/json", JSON.stringify(found)] : [404, "text/plain", "there is nothing here"];
}

const server = createServer(async (request, response) => {
  const [status, type, body] = await answer(request).catch((error) => {
    console.error(error.message);
    return [502, "text/plain", "the shop cannot do this now"];
  });
  response.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(body);
});
server.listen(Number(SHOP_PORT), "127.0.0.1", () => console.log(`the shop is open: http://127.0.0.1:${SHOP_PORT}`));
