/** The sample shop (merchant/shop) as a buyer with a phone meets it: the real service, webhooks and payments. */

import type { Page } from "@playwright/test";
import { formatAccount, parsePaymentLink } from "@fastpay/sdk";
import { privateKeyToAccount } from "viem/accounts";

import { isAccessible } from "./support/axe";
import { activity, agree, expect, picture, test } from "./support/people";
import { depositEther, network } from "./support/net";
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
test.use({ viewport: { width: 390, height: 844 } });

/** Puts something into the basket and goes to pay for it. */
async function order(page: Page, good: string, url = shop.url): Promise<void> {
  await page.goto(url);
  await page.getByRole("button", { name: `More ${good}` }).click();
  await page.getByRole("button", { name: "Pay with FastPay" }).click();
}

async function isPayable(page: Page): Promise<void> {
  await expect(page.getByRole("img", { name: "QR code of the payment link" }).locator("svg")).toBeVisible();
}

async function linkOf(page: Page): Promise<string> {
  return (await page.getByTestId("payment-link").textContent()) ?? "";
}

async function isNotLoadedAgain(page: Page): Promise<() => Promise<void>> {
  await page.evaluate(() => Object.assign(window, { isTheSame: true }));
  return async () => expect(await page.evaluate(() => "isTheSame" in window)).toBe(true);
}

test("a basket is paid from the command line, and the page shows it without a reload", async ({ page }) => {
  await page.goto(shop.url);
  const pay = page.getByRole("button", { name: "Pay with FastPay" });
  await expect(pay).toBeDisabled();
  for (let loaf = 0; loaf < 2; loaf++) await page.getByRole("button", { name: "More Sourdough loaf" }).click();
  await page.getByRole("button", { name: "More Butter croissant" }).click();
  await expect(page.getByRole("form", { name: "Basket" })).toContainText("3 in your basket0.012 ETH");
  await picture(page, "shop-shelf");
  await pay.click();

  const state = page.getByTestId("state");
  await expect(state).toHaveText("Waiting for your payment …");
  await expect(page.getByRole("heading", { level: 2 })).toHaveText("0.012 ETH");
  await expect(page.getByText("1 × Butter croissant, 2 × Sourdough loaf")).toBeVisible();
  await expect(page.getByRole("timer")).toHaveText(/^(15:00|14:\d\d) left to pay$/);
  await picture(page, "shop-invoice");
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await isAccessible(page);
  }
  await picture(page, "shop-invoice-dark");

  const isSame = await isNotLoadedAgain(page);
  await fastpay("pay", await linkOf(page), "--yes", "--from", "alice");
  await expect(state).toHaveText("✓ Paid. Thank you! It is on its way.");
  await isSame();
  await expect(page.getByRole("region", { name: "Payment" })).toBeHidden();
  await page.emulateMedia({ colorScheme: "light" });
  await picture(page, "shop-paid");

  // The order is found again where the page is loaded anew.
  await page.reload();
  await expect(state).toHaveText("✓ Paid. Thank you! It is on its way.");
  await page.getByRole("button", { name: "Back to the shop" }).click();
  await expect(pay).toBeDisabled();
});

test("an order is paid in the web wallet that its link opens", async ({ page, person, browser }) => {
  const context = await browser.newContext({ baseURL: process.env.WEB_URL ?? "" });
  const buyer = await person({ deposit: "1", page: await context.newPage() });
  await order(page, "Birthday cake");
  await isPayable(page);
  const isSame = await isNotLoadedAgain(page);
  const href = await page.getByRole("link", { name: "Pay in the web wallet" }).getAttribute("href");
  await buyer.page.goto(href ?? "");
  const form = buyer.page.getByRole("form", { name: "Payment" });
  await expect(form).toContainText("The corner bakery (not verified)");
  await form.getByRole("button", { name: "Pay 0.01 ETH" }).click();
  await agree(buyer.page);
  await expect(activity(buyer.page, /^Pay 0.01 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await expect(page.getByTestId("state")).toHaveText("✓ Paid. Thank you! It is on its way.");
  await isSame();
  await context.close();
});

test("an order is paid on the hosted checkout page, which lists the basket and leads back", async ({ page }) => {
  await page.goto(shop.url);
  for (const good of ["Sourdough loaf", "Sourdough loaf", "Butter croissant"]) {
    await page.getByRole("button", { name: `More ${good}` }).click();
  }
  await page.getByRole("button", { name: "Pay with FastPay" }).click();
  await isPayable(page);
  const link = await linkOf(page);
  await page.getByRole("link", { name: "Pay on the checkout page" }).click();
  await expect(page.getByRole("heading", { name: "0.012 ETH" })).toBeVisible();
  await expect(page.getByRole("row", { name: "Sourdough loaf 2 0.01 ETH" })).toBeVisible();
  await expect(page.getByRole("row", { name: "Butter croissant 1 0.002 ETH" })).toBeVisible();
  await fastpay("pay", link, "--yes", "--from", "alice");
  await expect(page.getByRole("status")).toHaveText("Paid. Thank you!");
  await page.getByRole("link", { name: "Back to the shop" }).click();
  await expect(page).toHaveURL(`${shop.url}/`);
  await expect(page.getByRole("form", { name: "Basket" })).toBeVisible();
});

test("a partial payment is followed by a request for the rest", async ({ page }) => {
  await order(page, "Birthday cake");
  await isPayable(page);
  const link = await linkOf(page);
  const { account, memo } = parsePaymentLink(link);
  await fastpay("pay", formatAccount(account), "0.004", "--memo", memo ?? "", "--from", "alice");
  await expect(page.getByTestId("state")).toHaveText("0.004 ETH has come. Please pay the other 0.006 ETH.");
  await picture(page, "shop-underpaid");
  const rest = await linkOf(page);
  expect(parsePaymentLink(rest).amount).toBe(6_000_000_000_000_000n);
  await fastpay("pay", rest, "--yes", "--from", "alice");
  await expect(page.getByTestId("state")).toHaveText("✓ Paid. Thank you! It is on its way.");
  // Once more, with the link of the beginning.
  await fastpay("pay", link, "--yes", "--from", "alice");
  await expect(page.getByTestId("state")).toHaveText("✓ Paid, and 0.01 ETH too much: we send that back.");
});

test("an order expires, and a payment after that counts as late", async ({ page }) => {
  const hasty = await openShop(3);
  try {
    await order(page, "Butter croissant", hasty.url);
    // It may be over before anybody could look at its code.
    await expect(page.getByTestId("state")).toHaveText("This order has expired. Nothing was paid.");
    const { account, memo } = parsePaymentLink(await linkOf(page));
    await expect(page.getByRole("region", { name: "Payment" })).toBeHidden();
    await picture(page, "shop-expired");
    await fastpay("pay", formatAccount(account), "0.002", "--memo", memo ?? "", "--from", "alice");
    await expect(page.getByTestId("state")).toHaveText("Your payment came after the order had ended. We will write to you.");
  } finally {
    await hasty.stop();
  }
});

test("the shop sells only what it has in stock, at its own prices", async ({ request }) => {
  for (const basket of [{}, { gold: 1 }, { cake: 0.1 }, { cake: -1 }, { cake: "1" }, { cake: 10 }]) {
    expect((await request.post(`${shop.url}/orders`, { data: basket })).status(), JSON.stringify(basket)).toBe(400);
  }
  const forged = await request.post(`${shop.url}/webhook`, { data: { type: "invoice.paid", data: {} } });
  expect(forged.status()).toBe(401);
});
