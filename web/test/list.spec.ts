/** Paying a list: checked whole, every line reviewed, followed to its end, gone on with after a reload, and nobody paid twice. */

import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { pad } from "viem";

import { isAccessible } from "./support/axe";
import { activity, expect, goTo, inFastPay, picture, test } from "./support/people";
import type { TestWallet } from "./support/wallet";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/** As many accounts as wanted, none of anybody. */
function nobodies(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `0x${(0x1000 + i).toString(16).padStart(40, "5")}`);
}

async function check(page: Page, text: string): Promise<void> {
  await page.getByLabel("Payments", { exact: true }).fill(text);
  await page.getByRole("button", { name: "Check the list" }).click();
}

async function openLists(page: Page): Promise<void> {
  await goTo(page, "Pay");
  await page.getByRole("link", { name: "Pay a list" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Pay a list");
}

const signatures = ({ asked }: TestWallet): number => asked.filter((method) => method === "eth_signTypedData_v4").length;

async function saved(page: Page, button: string): Promise<string> {
  const waiting = page.waitForEvent("download");
  await page.getByRole("button", { name: button }).click();
  return readFileSync(await (await waiting).path(), "utf8");
}

test("all errors of a list are shown at once with their lines, and nothing is signed", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "1" });
  await openLists(page);
  await check(page, `recipient,amount,memo\n${BOB},0.1\n${BOB},0\nnobody,1\n\n# a comment\n${BOB},1,${"m".repeat(33)}`);
  const mistakes = page.getByRole("region", { name: "Mistakes in the list" });
  await expect(mistakes.getByRole("listitem")).toHaveCount(3);
  await expect(mistakes).toContainText("Line 3: The amount is zero");
  await expect(mistakes).toContainText(/Line 4: .*is not an account/);
  await expect(mistakes).toContainText("Line 7: The memo has 33 bytes");
  await isAccessible(page);
  await picture(page, "list-mistakes");
  // What was typed stands, to be corrected; then it is too much.
  await check(page, `${BOB},0.7\n${BOB},0.7`);
  const review = page.getByRole("region", { name: "Review" });
  await expect(review.getByRole("alert", { name: "Not enough money" })).toContainText("You have 1 ETH in FastPay, and 1.4 ETH are needed.");
  await expect(review.getByRole("button", { name: "Yes, pay 2 payments" })).toBeDisabled();
  await review.getByRole("button", { name: "Back to the list" }).click();
  await expect(page.getByLabel("Payments", { exact: true })).toHaveValue(`${BOB},0.7\n${BOB},0.7`);
  expect(signatures(wallet)).toBe(0);
});

test("a list from a file is reviewed by line, paid with one signature, saved, and paid only once", async ({ person }) => {
  const bob = await person();
  const alice = await person({ deposit: "5" });
  const [someone = ""] = nobodies(1);
  const text = `recipient,amount,memo\n${bob.wallet.key.address},1.25,"wages, May"\n${someone},0.5,\n${bob.wallet.key.address},0.25,bonus\n`;
  await alice.page.evaluate((account) => localStorage.setItem("fastpay.contacts", JSON.stringify([[account, "Bob"]])), pad(bob.wallet.key.address).toLowerCase());
  await alice.page.reload();
  await openLists(alice.page);
  await alice.page
    .getByLabel("File with a list of payments")
    .setInputFiles({ name: "wages.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  await expect(alice.page.getByLabel("Payments", { exact: true })).toHaveValue(text);
  // Twice in one place, as people do: that pays nothing.
  await alice.page.getByRole("button", { name: "Check the list" }).dblclick();
  const review = alice.page.getByRole("region", { name: "Review" });
  await expect(review.getByRole("heading")).toHaveText("Pay 3 payments?");
  await expect(review).toContainText("2 ETH in 3 payments");
  await expect(review).toContainText("3 ETH");
  const lines = review.getByRole("region", { name: "Every line" });
  await expect(lines.getByRole("row")).toHaveCount(4);
  await expect(lines).toContainText(bob.wallet.key.address);
  await expect(lines).toContainText("wages, May");
  await expect(review).toContainText("First payment to 2 accounts");
  await expect(lines.getByRole("row", { name: "wages, May" })).toContainText(`Bob ${bob.wallet.key.address} first payment`);
  // The fields that the wallet shows besides the lines.
  const order = review.getByRole("region", { name: "Order 1 to sign" });
  await expect(order).toContainText(alice.wallet.key.address);
  await expect(order).toContainText("Order number0");
  const list = await order.getByText(/^0x[0-9a-f]{64}$/).first().textContent();
  await isAccessible(alice.page);
  await picture(alice.page, "list-review");
  expect(signatures(alice.wallet)).toBe(0);
  let sign = (): void => undefined;
  alice.wallet.thinks = new Promise((resolve) => {
    sign = resolve;
  });
  await review.getByRole("button", { name: "Yes, pay 3 payments" }).click();
  const work = activity(alice.page, "Pay a list of 3 payments");
  const asked = work.getByRole("region", { name: "To be signed" });
  await expect(asked).toContainText(`List${list}`);
  await expect(asked.getByRole("region", { name: "Outputs to sign" }).getByRole("row")).toHaveCount(3);
  await expect(asked).toContainText(`signed as ${pad(bob.wallet.key.address).toLowerCase()}`);
  sign();
  await expect(work.getByText("3 of 3 payments certified, 3 settled")).toBeVisible();
  await expect(work.getByText("Done", { exact: true })).toBeVisible();
  expect(signatures(alice.wallet)).toBe(1);
  await isAccessible(alice.page);
  await picture(alice.page, "list-paid");
  const result = (await saved(alice.page, "Save the result")).trim().split("\n");
  expect(result[0]).toBe("line,recipient,asset,units,memo,status,sequence,output,digest");
  expect(result[1]).toMatch(new RegExp(`^2,${bob.wallet.key.address},0x0{40},1250000000000000000,"wages, May",settled,0,0,0x[0-9a-f]{64}$`));
  expect(result).toHaveLength(4);

  // Bob sees two payments come, each with its own memo, and the output that it is.
  const received = bob.page.getByRole("region", { name: "History entries" });
  await expect(inFastPay(bob.page, "ETH")).toHaveText("1.5");
  await expect(received).toContainText("“wages, May”, their order #0, output 0");
  await expect(received).toContainText("“bonus”, their order #0, output 2");
  await picture(bob.page, "list-received");
  await received.getByRole("link", { name: /^\+0.25 ETH/ }).click();
  await expect(bob.page.getByRole("heading", { name: "Payout of 2 ETH" })).toBeVisible();
  const output = bob.page.getByRole("region", { name: "Output 2" });
  await expect(output).toContainText("0.25 ETH");
  await expect(output).toContainText("bonus");
  await expect(bob.page.getByRole("table", { name: "Outputs" }).getByRole("row")).toHaveCount(4);
  await isAccessible(bob.page);
  await picture(bob.page, "explorer-payout");
  const proof = JSON.parse(await saved(bob.page, "Save the proof"));
  expect(proof).toMatchObject({ position: 2, output: { amount: "250000000000000000" } });
  expect(JSON.stringify(proof)).not.toContain("1250000000000000000");

  await goTo(alice.page, "History");
  const sent = alice.page.getByRole("region", { name: "History entries" });
  await expect(sent).toContainText("−2 ETH");
  await expect(sent).toContainText("To 2 accounts");
  await expect(sent).toContainText("3 outputs, order #0");
  const rows = (await saved(alice.page, "Save as CSV")).trim().split("\n");
  expect(rows[0]).toBe("kind,date,account,asset,units,fee,memo,sequence,output,digest");
  expect(rows.filter((row) => row.startsWith("sent,"))).toHaveLength(3);
  expect(rows.find((row) => row.includes("wages, May"))).toMatch(new RegExp(`^sent,20[^,]+Z,${bob.wallet.key.address},`));
  await openLists(alice.page);
  await check(alice.page, text);
  await expect(review.getByRole("heading")).toHaveText("This list is paid");
  await expect(review.getByRole("button", { name: /^Yes, pay / })).toBeHidden();
});

test("a partly paid list continues after a reload, and nobody is paid twice", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "1" });
  const people = nobodies(300);
  await openLists(page);
  await check(page, people.map((account) => `${account},0.001`).join("\n"));
  const review = page.getByRole("region", { name: "Review" });
  await expect(review).toContainText("2, for up to 256 payments each");
  await expect(review.getByRole("button", { name: "Page 3" })).toBeVisible();
  // The second signature is declined.
  let release = (): void => undefined;
  wallet.thinks = new Promise((resolve) => {
    release = resolve;
  });
  await review.getByRole("button", { name: "Yes, pay 300 payments" }).click();
  const work = activity(page, "Pay a list of 300 payments");
  await expect(work.getByText("Waiting for your signature of order 1 of 2.")).toBeVisible();
  wallet.declinesAfter = 1;
  release();
  await expect(work.getByRole("alert")).toContainText("You declined");
  await expect(work.getByText("256 of 300 payments certified, 256 settled")).toBeVisible();
  await picture(page, "list-half");
  wallet.declinesAfter = undefined;
  await page.reload();
  await expect(page.getByText("A list is partly paid")).toBeVisible();
  await isAccessible(page);
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("0.744");
  await page.getByRole("link", { name: "Show it" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await expect(work.getByText("300 of 300 payments certified, 300 settled")).toBeVisible();
  await expect(work.getByText("Done", { exact: true })).toBeVisible();
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("0.7");
  expect(signatures(wallet)).toBe(3);
  await page.reload();
  await expect(inFastPay(page, "ETH")).toHaveText("0.7");
  await expect(page.getByText("A list is partly paid")).toBeHidden();
});

test.describe("on a phone", () => {
  test.use({ viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true });

  test("a list is reviewed and paid, and no page scrolls sideways", async ({ page, person }) => {
    const { wallet } = await person({ deposit: "1" });
    const fits = async (): Promise<void> => {
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    };
    await openLists(page);
    await fits();
    await check(page, `${BOB},0.1,a memo of some length here\n${BOB},0.123456789012345678\n${BOB},x`);
    await expect(page.getByRole("region", { name: "Mistakes in the list" })).toBeVisible();
    await fits();
    await check(page, `${BOB},0.1,a memo of some length here\n${BOB},0.123456789012345678`);
    const review = page.getByRole("region", { name: "Review" });
    await expect(review.getByRole("heading")).toHaveText("Pay 2 payments?");
    await expect(review.getByRole("heading")).toBeFocused();
    await expect(review.getByRole("heading")).toBeInViewport();
    await fits();
    await isAccessible(page);
    await picture(page, "phone-list");
    await review.getByRole("button", { name: "Yes, pay 2 payments" }).click();
    const work = activity(page, "Pay a list of 2 payments");
    await expect(work.getByText("Done", { exact: true })).toBeVisible();
    await fits();
    await page.goto(`/explore/transfer/${wallet.key.address}/0?output=1`);
    await expect(page.getByRole("region", { name: "Output 1" })).toBeVisible();
    await fits();
    await isAccessible(page);
    await picture(page, "phone-payout");
  });
});
