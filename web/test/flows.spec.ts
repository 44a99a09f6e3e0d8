/** What people do, done twice: by the keyboard alone, and on a phone's screen. */

import type { Page } from "@playwright/test";

import { isAccessible } from "./support/axe";
import { finger, keyboard, PHONE, type Hand } from "./support/hands";
import { deployMoodyToken, setMood } from "./support/net";
import { activity, addAndDeposit, expect, inFastPay, picture, redeemAlone, test } from "./support/people";
import type { TestWallet } from "./support/wallet";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const OUT = "0x000000000000000000000000000000000000bEEF";
const PASSPHRASE = "correct horse battery staple";

const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name, exact: typeof name === "string" });
const isDone = (page: Page, title: string | RegExp): Promise<void> =>
  expect(activity(page, title).getByText("Done", { exact: true })).toBeVisible();

/** Deposits, pays a list, redeems, filters the history, looks a transfer up, and names an account. */
async function everything(page: Page, hand: Hand): Promise<void> {
  const place = async (name: string): Promise<void> => {
    await hand.press(page.getByRole("navigation", { name: "Places" }).getByRole("link", { name, exact: true }));
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(name);
  };
  await hand.press(page.getByRole("main").getByRole("link", { name: "Deposit" }).first());
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Deposit");
  await hand.write(page.getByLabel("Amount", { exact: true }), "2");
  await hand.press(button(page, "Deposit 2 ETH"));
  await hand.look();
  await hand.press(button(page, "Yes, deposit 2 ETH"));
  await isDone(page, "Deposit 2 ETH");
  await hand.look();

  await place("Pay");
  await hand.press(page.getByRole("link", { name: "Pay a list" }));
  await hand.write(page.getByLabel("Payments", { exact: true }), `${BOB},0.25,wages\n${BOB},0.5`);
  await hand.press(button(page, "Check the list"));
  await hand.look();
  await hand.press(button(page, "Yes, pay 2 payments"));
  await isDone(page, "Pay a list of 2 payments");
  await hand.look();

  await page.goto("/redeem");
  await hand.write(page.getByLabel("Amount", { exact: true }), "0.5");
  await hand.write(page.getByLabel("To (an Ethereum address)"), OUT);
  await hand.press(button(page, "Redeem 0.5 ETH"));
  await hand.look();
  await hand.press(button(page, "Yes, redeem 0.5 ETH"));
  await expect(page.getByRole("region", { name: "Your redemptions" }).getByText("Paid on Ethereum")).toBeVisible();
  await hand.look();

  await place("History");
  const entries = page.getByRole("region", { name: "History entries" }).getByRole("listitem");
  await expect(entries).toHaveCount(3);
  await hand.choose(page.getByLabel("Kind"), "Redeemed");
  await expect(entries).toHaveCount(1);
  await hand.choose(page.getByLabel("Kind"), "Everything");
  await hand.write(page.getByLabel("Account, memo or digest"), "wages");
  await expect(entries).toHaveCount(1);
  await hand.look();
  await hand.press(entries.getByRole("link", { name: /show the proof/ }));
  await expect(page.getByRole("heading", { name: "Payout of 0.75 ETH" })).toBeVisible();
  // The receipt of what was paid; printing itself is the browser's.
  await page.evaluate(() => (window.print = () => document.body.setAttribute("data-printed", "")));
  await hand.press(button(page, "Print a receipt"));
  await expect(page.locator("body[data-printed]")).toBeAttached();
  await hand.press(button(page, /valid votes/).first());
  await hand.look();

  await place("Explore");
  await hand.write(page.getByLabel("Look up"), BOB);
  await hand.press(page.getByRole("search").getByRole("button", { name: "Look up" }));
  await expect(page.getByRole("region", { name: "Account", exact: true })).toContainText(BOB);
  await hand.look();

  await place("Pay");
  await hand.press(page.getByRole("link", { name: "Contacts" }));
  await hand.write(page.getByLabel("Account", { exact: true }), BOB);
  await hand.write(page.getByLabel("Name", { exact: true }), "Bob of the bakery");
  await hand.press(button(page, "Save contact"));
  await expect(page.getByRole("region", { name: "Names" })).toContainText(BOB);
  await hand.look();
  await hand.press(button(page, "Remove Bob of the bakery"));
  await expect(page.getByText("No contacts yet")).toBeVisible();
}

/** Makes a key, unlocks it after a reload, and imports it where it is not. */
async function keys(page: Page, hand: Hand): Promise<void> {
  await page.goto("/");
  const dialog = page.getByRole("dialog");
  await hand.press(page.getByRole("banner").getByRole("button", { name: "Connect wallet" }));
  await hand.press(dialog.getByRole("button", { name: "Create a key" }));
  await hand.write(dialog.getByLabel("Passphrase", { exact: true }), PASSPHRASE);
  await hand.write(dialog.getByLabel("Passphrase once more"), PASSPHRASE);
  await hand.press(dialog.getByRole("button", { name: "Create the key" }));
  const saving = page.waitForEvent("download");
  await hand.press(dialog.getByRole("button", { name: "Save the key file" }));
  const file = await (await saving).path();
  await hand.tick(dialog.getByLabel(/I have saved the file/));
  await hand.look();
  await hand.press(dialog.getByRole("button", { name: "Use this account" }));
  const owner = page.getByRole("banner").getByRole("button", { name: /^Account fp1/ });
  await expect(owner).toBeVisible();

  // Forgotten here, it comes back from its file.
  await page.evaluate(() => localStorage.clear());
  await page.evaluate(async () => {
    for (const { name = "" } of await indexedDB.databases()) indexedDB.deleteDatabase(name);
  });
  await page.reload();
  await hand.press(page.getByRole("banner").getByRole("button", { name: "Connect wallet" }));
  await hand.press(dialog.getByRole("button", { name: "Import a key file" }));
  const choosing = page.waitForEvent("filechooser");
  await hand.press(dialog.getByRole("button", { name: "Key file" }));
  await (await choosing).setFiles(file);
  await hand.write(dialog.getByLabel("Passphrase", { exact: true }), PASSPHRASE);
  await hand.look();
  await hand.press(dialog.getByRole("button", { name: "Import the key" }));
  await expect(owner).toBeVisible();
}

/** Collects a payout that its token refused: a part of it to another address, which is reviewed. */
async function collects(page: Page, wallet: TestWallet, hand: Hand): Promise<void> {
  const token = await deployMoodyToken(wallet.key);
  await page.goto("/");
  await addAndDeposit(page, token, "ZOO", "4");
  await setMood(wallet.key, token, "reverts");
  await page.goto("/redeem");
  await redeemAlone(page, "ZOO", "3");
  const claims = page.getByRole("region", { name: "Claims" });
  await expect(claims).toContainText("3 ZOO");
  await setMood(wallet.key, token, "good");
  await hand.press(claims.getByRole("button", { name: "Part of it, or to another address" }));
  await hand.write(page.getByLabel("Amount to claim"), "1");
  await hand.write(page.getByLabel("Claim to (an Ethereum address)"), OUT);
  await hand.press(claims.getByRole("button", { name: "Claim", exact: true }));
  await hand.look();
  await hand.press(button(page, "Yes, claim 1 ZOO"));
  await isDone(page, "Claim 1 ZOO");
  await hand.look();
}

test("with the keyboard alone", async ({ page, person, browser }) => {
  test.slow();
  const { wallet } = await person();
  await page.reload();
  await expect(inFastPay(page, "ETH")).toHaveText("0");
  await everything(page, keyboard(page));
  await collects(page, wallet, keyboard(page));
  const other = await browser.newContext({ baseURL: process.env.WEB_URL ?? "" });
  const own = await other.newPage();
  await keys(own, keyboard(own));
  await other.close();
});

test.describe("on a phone", () => {
  test.use(PHONE);

  test("with touch", async ({ page, person, browser }) => {
    test.slow();
    await person();
    await page.reload();
    await expect(inFastPay(page, "ETH")).toHaveText("0");
    await everything(page, finger(page));
    await isAccessible(page);
    await picture(page, "phone-contacts");
    const other = await browser.newContext({ ...PHONE, baseURL: process.env.WEB_URL ?? "" });
    const own = await other.newPage();
    await keys(own, finger(own));
    await other.close();
  });
});
