/** The page on which a customer pays an invoice: the real service, and payments from a terminal. */

import type { Page } from "@playwright/test";
import { privateKeyToAccount } from "viem/accounts";

import { isAccessible } from "./support/axe";
import { depositEther, network } from "./support/net";
import { expect, picture, test } from "./support/people";
import { fastpay, openShop, type OpenShop } from "./support/shop";

let shop: OpenShop;
test.beforeAll(async () => {
  shop = await openShop();
  const [alice] = network().accounts;
  if (alice === undefined) throw new Error("the localnet names nobody");
  await depositEther(privateKeyToAccount(alice.privateKey), "1");
  await expect.poll(async () => JSON.parse(await fastpay("--json", "balance", "--from", "alice")).balances.length).toBe(1);
});
test.afterAll(() => shop.stop());

interface Invoice {
  readonly id: string;
  readonly checkoutUrl: string;
}

async function create(request: object): Promise<Invoice> {
  const answer = await fetch(`${shop.merchant}v1/invoices`, {
    method: "POST",
    headers: { authorization: `Bearer ${shop.token}`, "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  expect(answer.status).toBe(201);
  return (await answer.json()) as Invoice;
}

async function isNarrow(page: Page): Promise<void> {
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
}

test("a customer pays in two parts, follows the progress, prints the receipt and returns to the shop", async ({ page }) => {
  const evil = "<img src=x onerror='window.owned = true'> & friends";
  const { checkoutUrl, id } = await create({
    reference: "order 7",
    amount: "12000000000000000",
    expiresIn: 900,
    description: evil,
    items: [
      { name: evil, amount: "2000000000000000" },
      { name: "Birthday cake", quantity: 2, amount: "10000000000000000" },
    ],
    returnUrl: `${shop.url}/`,
  });
  await page.goto(checkoutUrl);
  await expect(page.getByRole("heading", { name: "0.012 ETH" })).toBeVisible();
  await expect(page.getByText("The corner bakery")).toBeVisible();
  await expect(page.getByText(evil)).toHaveCount(2);
  expect(await page.evaluate(() => "owned" in window)).toBe(false);
  await expect(page.getByRole("row", { name: "Birthday cake 2 0.01 ETH" })).toBeVisible();
  await expect(page.getByRole("status")).toHaveText("Waiting for the payment");
  const left = page.getByText(/^Pay 0\.012 ETH within 00:1[45]:\d\d\.$/);
  await expect(left).toBeVisible();
  const before = await left.textContent();
  await expect(left).not.toHaveText(before ?? "");
  await expect(page.getByRole("img", { name: "QR code of the payment link" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Pay in the web wallet" })).toHaveAttribute("href", /\/pay#fastpay:fp1/);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await isAccessible(page);
  }
  await picture(page, "checkout");
  const link = (await page.getByRole("link", { name: "Open in a wallet" }).getAttribute("href")) ?? "";
  await expect(page.getByText(`fastpay pay '${link}'`)).toBeVisible();
  const account = /^fastpay:(fp1\w+)/.exec(link)?.[1] ?? "";
  await fastpay("pay", account, "0.004", "--memo", id, "--from", "alice");
  await expect(page.getByRole("status")).toHaveText("A part is paid; the rest is missing");
  await expect(page.getByText(/^Pay 0\.008 ETH within/)).toBeVisible();
  await fastpay("pay", account, "0.008", "--memo", id, "--from", "alice");
  await expect(page.getByRole("status")).toHaveText("Paid. Thank you!");
  await expect(page.getByRole("heading", { name: "Pay", exact: true })).toBeHidden();
  await expect(page.getByRole("listitem").filter({ hasText: /^0\.00[48] ETH from / })).toHaveCount(2);
  await page.evaluate(() => (window.print = () => Object.assign(window, { printed: true })));
  await page.getByRole("button", { name: "Print the receipt" }).click();
  expect(await page.evaluate(() => "printed" in window)).toBe(true);
  await isAccessible(page);
  await picture(page, "checkout-paid");
  await isNarrow(page);
  await page.getByRole("link", { name: "Back to the shop" }).click();
  await expect(page).toHaveURL(`${shop.url}/`);
});

test("an invoice that expires while it is open asks for nothing any more", async ({ page }) => {
  const { checkoutUrl } = await create({ reference: "order 8", amount: "1", expiresIn: 8 });
  await page.goto(checkoutUrl);
  await isNarrow(page);
  await expect(page.getByRole("status")).toContainText("This invoice has expired. Do not pay it any more.");
  await expect(page.getByRole("link", { name: "Open in a wallet" })).toBeHidden();
  await expect(page.getByRole("link", { name: "Back to the shop" })).toBeHidden();
});

test("an invoice opens only with its key: neither with its public ID nor with another key", async ({ page }) => {
  const { checkoutUrl, id } = await create({ reference: "order 9", amount: "1", expiresIn: 900 });
  for (const other of [id, "0".repeat(32)]) {
    await page.goto(checkoutUrl.replace(/[^/]+$/, other));
    await expect(page.getByRole("alert")).toHaveText("There is no such invoice. Ask the shop for the address again.");
    await expect(page.getByText("order 9")).toBeHidden();
  }
});
