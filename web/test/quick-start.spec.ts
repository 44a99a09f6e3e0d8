/** The shop that docs/MERCHANT.md shows, as it stands there: the real service, its webhook, and a payment. */

import { readFileSync } from "node:fs";

import { privateKeyToAccount } from "viem/accounts";

import { depositEther, network } from "./support/net";
import { expect, test } from "./support/people";
import { fastpay, openShop, ROOT, type OpenShop } from "./support/shop";

/** The program, with the two ports that are written into it changed to free ones. */
function quickStart(service: number, shop: number): string {
  const page = readFileSync(`${ROOT}/docs/MERCHANT.md`, "utf8");
  const program = /## A shop in Express\n[^]*?```js\n([^]*?)```/.exec(page)?.[1] ?? "";
  const parts = program.split(/127\.0\.0\.1:7080|listen\(3000\)/);
  if (parts.length !== 3) throw new Error("the program names each of its two ports once");
  return program.replace("127.0.0.1:7080", `127.0.0.1:${service}`).replace("listen(3000)", `listen(${shop})`);
}

let shop: OpenShop;
test.beforeAll(async () => {
  shop = await openShop(900, quickStart);
  const [alice] = network().accounts;
  if (alice === undefined) throw new Error("the localnet names nobody");
  await depositEther(privateKeyToAccount(alice.privateKey), "1");
  await expect.poll(async () => JSON.parse(await fastpay("--json", "balance", "--from", "alice")).balances.length).toBe(1);
});
test.afterAll(() => shop.stop());

test("the quick start opens the checkout page, verifies the webhook, and delivers once", async () => {
  const bought = await fetch(`${shop.url}/buy`, { method: "POST", redirect: "manual" });
  expect(bought.status).toBe(302);
  const page = bought.headers.get("location") ?? "";
  const { reference, id, payment } = await (await fetch(`${page}/state`)).json();
  const body = JSON.stringify({ type: "invoice.paid", data: { reference } });
  const headers = { "content-type": "application/json", "webhook-id": "evt_1", "webhook-timestamp": String(Math.floor(Date.now() / 1_000)) };
  const forged = await fetch(`${shop.url}/webhook`, { method: "POST", headers: { ...headers, "webhook-signature": `v1,${"A".repeat(43)}=` }, body });
  expect(forged.status).toBe(401);
  expect(shop.said()).not.toContain("deliver");
  await fastpay("pay", payment.link, "--from", "alice", "--yes");
  await expect.poll(async () => JSON.parse(await shop.command("--json", "invoice", "show", id)).webhooks[0]?.delivery).toBe("delivered");
  expect(shop.said().split("\n").filter((line) => line === `deliver ${reference}`)).toHaveLength(1);
});
