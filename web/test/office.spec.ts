/** The page of a shop's owner, served by fastpay-merchant: the real service, payments and a refund that a wallet pays. */

import { readFileSync } from "node:fs";

import type { Page } from "@playwright/test";
import { privateKeyToAccount } from "viem/accounts";

import { isAccessible } from "./support/axe";
import { depositEther, network } from "./support/net";
import { expect, picture, test } from "./support/people";
import { fastpay, openShop, type OpenShop } from "./support/shop";

let shop: OpenShop;
test.beforeAll(async () => {
  // The owner's wallet knows the deployment's token, and so does a service that is set up from it.
  await fastpay("link", "--account", "alice", "--asset", network().token, "--amount", "1");
  shop = await openShop();
  for (const { privateKey } of network().accounts.slice(0, 2)) await depositEther(privateKeyToAccount(privateKey), "1");
  for (const name of ["alice", "bob"]) {
    await expect.poll(async () => JSON.parse(await fastpay("--json", "balance", "--from", name)).balances.length).toBe(1);
  }
});
test.afterAll(() => shop.stop());

async function open(page: Page): Promise<void> {
  await page.goto(shop.merchant);
  await page.getByLabel(/^Token \(/).fill(shop.token);
  await page.getByRole("button", { name: "Open" }).click();
  await expect(page.getByRole("heading", { name: "Invoices" })).toBeVisible();
}

async function create(page: Page, reference: string, amount: string): Promise<string> {
  const form = page.getByRole("form", { name: "New invoice" });
  if (!(await form.isVisible())) await page.getByText("New invoice", { exact: true }).click();
  await form.getByLabel("Reference").fill(reference);
  await form.getByLabel("Amount", { exact: true }).fill(amount);
  await form.getByRole("button", { name: "Create" }).click();
  const invoice = page.getByRole("region", { name: "Invoice", exact: true });
  await expect(invoice.getByRole("heading")).toHaveText(reference);
  return (await invoice.getByText(/^fastpay:fp1/).textContent()) ?? "";
}

const rows = (page: Page) => page.getByRole("group", { name: "List of invoices" }).getByRole("row");

test("nothing is shown without the token or with a wrong one", async ({ page }) => {
  await page.goto(shop.merchant);
  await expect(page.getByRole("heading", { name: "Invoices" })).toBeHidden();
  await page.getByLabel(/^Token \(/).fill("0123456789abcdef");
  await page.getByRole("button", { name: "Open" }).click();
  await expect(page.getByRole("alert")).toHaveText("This is not the token of this service.");
  await expect(page.getByRole("heading", { name: "Invoices" })).toBeHidden();
  await isAccessible(page);
});

test("invoices are created, found by reference and state, paid, and exported", async ({ page }) => {
  await open(page);
  await create(page, "order 1", "0.01");
  const link = await create(page, "order 2", "0.02");
  await expect(rows(page).nth(1)).toContainText("order 2");
  await expect(rows(page).nth(2)).toContainText("order 1");
  await fastpay("pay", link, "--from", "alice", "--yes");
  await expect(rows(page).nth(1)).toContainText("paid");
  await page.getByLabel("State").selectOption("paid");
  await expect(rows(page)).toHaveCount(2);
  await page.getByLabel("State").selectOption("");
  await page.getByLabel("Reference or id").fill("order 1");
  await page.getByRole("button", { name: "Find" }).click();
  await expect(rows(page)).toHaveCount(2);
  await expect(rows(page).nth(1)).toContainText("order 1");
  await expect(rows(page).nth(1)).toContainText("0.01 ETH");
  await page.getByLabel("Reference or id").fill("order 9");
  await page.getByRole("button", { name: "Find" }).click();
  await expect(page.getByText("No invoice.")).toBeVisible();
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save all as CSV" }).click();
  const text = readFileSync(await (await downloading).path(), "utf8");
  expect(text.split("\n").filter((line) => line.includes("order "))).toHaveLength(2);
  // A reload keeps the token, another tab has none.
  await page.reload();
  await expect(rows(page)).toHaveCount(3);
  await page.getByRole("button", { name: "Forget the token" }).click();
  await page.reload();
  await expect(page.getByLabel(/^Token \(/)).toBeVisible();
});

test("a double payment is refunded: prepared here, paid by the owner's wallet, and matched", async ({ page }, info) => {
  await open(page);
  const link = await create(page, "order 3", "0.015");
  await fastpay("pay", link, "--from", "alice", "--yes");
  await fastpay("pay", link, "--from", "bob", "--yes");
  await expect(rows(page).nth(1)).toContainText("paid twice");
  await rows(page).nth(1).getByRole("button", { name: "order 3" }).click();
  await expect(page.getByRole("group", { name: "Payments" }).getByRole("row")).toHaveCount(3);
  await page.getByLabel("Name of the list").fill("monday");
  await page.getByRole("button", { name: "Prepare", exact: true }).click();
  const list = page.getByRole("region", { name: "List of refunds" });
  await expect(list).toContainText("0.015 ETH");
  await expect(list).toContainText("not paid yet");
  await expect(list.getByRole("link", { name: "Pay a list in the web wallet" })).toHaveAttribute("href", /\/pay\/list$/);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await isAccessible(page);
  }
  await picture(page, "office");
  const downloading = page.waitForEvent("download");
  await list.getByRole("button", { name: "Save the list for the wallet" }).click();
  const file = info.outputPath("monday.csv");
  await (await downloading).saveAs(file);
  // The same bytes as the command's, so that wallets take both for one list.
  expect(readFileSync(file, "utf8").trim()).toBe(await shop.command("refunds", "csv", "monday"));
  await fastpay("pay", "--csv", file, "--from", "carol", "--yes");
  await expect(async () => {
    await page.getByRole("group", { name: "Lists of refunds" }).getByRole("button", { name: "monday" }).click();
    await expect(list).toContainText("paid by order #0", { timeout: 1_000 });
  }).toPass();
  await page.getByLabel("Name of the list").fill("tuesday");
  await page.getByRole("button", { name: "Prepare", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("refund");
});

test("an invoice in a token is created and shown in whole units, with a description for the checkout page", async ({ page, context }) => {
  await open(page);
  await page.getByText("New invoice", { exact: true }).click();
  const form = page.getByRole("form", { name: "New invoice" });
  const symbol = (await form.getByLabel("Asset").locator("option").nth(1).textContent()) ?? "";
  await form.getByLabel("Asset").selectOption({ index: 1 });
  await form.getByLabel("Reference").fill("order 4");
  await form.getByLabel("Description").fill("A wedding cake");
  await form.getByLabel("Amount", { exact: true }).fill("1.1234567");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("alert")).toContainText("at most 6 decimals");
  await form.getByLabel("Amount", { exact: true }).fill("12.5");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(rows(page).nth(1)).toContainText(`12.5 ${symbol}`);
  const invoice = page.getByRole("region", { name: "Invoice", exact: true });
  await expect(invoice.getByText(/asset=0x\w+&amount=12500000/)).toBeVisible();
  const [checkout] = await Promise.all([context.waitForEvent("page"), invoice.getByRole("link", { name: /\/checkout\// }).click()]);
  await expect(checkout.getByRole("heading", { name: `12.5 ${symbol}` })).toBeVisible();
  await expect(checkout.getByText("A wedding cake")).toBeVisible();
});

test("a payout is prepared here, signed by the owner's wallet, and followed to Ethereum", async ({ page }) => {
  await open(page);
  await fastpay("pay", "carol", "0.5", "--from", "alice");
  const to = "0x000000000000000000000000000000000000bEEF";
  const form = page.getByRole("form", { name: "Prepare a payout" });
  await form.getByLabel("Name of the payout").fill("november");
  await form.getByLabel("Amount to pay out").fill("0.4");
  await form.getByLabel("To (an Ethereum address)").fill(to);
  await form.getByRole("button", { name: "Prepare the payout" }).click();
  const payout = page.getByRole("region", { name: "Payout", exact: true });
  await expect(payout).toContainText("prepared");
  await expect(payout).toContainText("0.4 ETH");
  // What the localnet's relayer takes.
  await expect(payout.getByText(/^0\.0\d* ETH$/)).toBeVisible();
  await expect(payout.getByRole("link", { name: "Sign it in the web wallet" })).toHaveAttribute("href", /\/redeem#from=fp1.*&to=0x0{36}bEEF&.*&memo=0x[0-9a-f]{64}$/i);
  await isAccessible(page);
  await picture(page, "office-payout");
  const command = (await payout.getByText(/^fastpay redeem /).textContent()) ?? "";
  await fastpay(...command.split(" ").slice(1), "--from", "carol");
  await expect(page.getByRole("group", { name: "List of payouts" }).getByRole("row").nth(1)).toContainText("paid", { timeout: 120_000 });
});

test("on a phone no page scrolls sideways", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await picture(page, "office-phone");
});
