/** An account without an Ethereum wallet: a key that the page makes, keeps encrypted, and signs with. */

import type { Locator, Page } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { parseEther } from "viem";
import { parseAccount } from "@fastpay/sdk";

import { balanceOnChain, depositEther, giveOnChain } from "./support/net";
import { isAccessible } from "./support/axe";
import { activity, agree, expect, goTo, inFastPay, pay, picture, test } from "./support/people";
import { TestWallet } from "./support/wallet";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const OUT = "0x000000000000000000000000000000000000dEaD";
const PASSPHRASE = "correct horse battery staple";
const PROGRAM = resolve(import.meta.dirname, "../../target/debug/fastpay");

const ownerButton = (page: Page): Locator => page.getByRole("banner").getByRole("button", { name: /^Account fp1/ });

/** Makes a key by the page's dialogue, and saves its file. */
async function makeKey(page: Page, file: string): Promise<void> {
  await page.goto("/");
  await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
  const dialog = page.getByRole("dialog");
  await picture(page, "key-choose");
  await dialog.getByRole("button", { name: "Create a key" }).click();
  await expect(dialog).toContainText("nobody can restore it");
  await dialog.getByLabel("Passphrase", { exact: true }).fill("short");
  await expect(dialog.getByText("This is too short.")).toBeVisible();
  await dialog.getByLabel("Passphrase", { exact: true }).fill(PASSPHRASE);
  await dialog.getByLabel("Passphrase once more").fill(`${PASSPHRASE}r`);
  await expect(dialog.getByText("The passphrases differ.")).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Create the key" })).toBeDisabled();
  await dialog.getByLabel("Passphrase once more").fill(PASSPHRASE);
  await isAccessible(page);
  await picture(page, "key-make");
  await dialog.getByRole("button", { name: "Create the key" }).click();
  const saved = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Save the key file" }).click();
  await (await saved).saveAs(file);
  await expect(dialog.getByRole("button", { name: "Use this account" })).toBeDisabled();
  await dialog.getByLabel(/I have saved the file/).check();
  await picture(page, "key-keep");
  await dialog.getByRole("button", { name: "Use this account" }).click();
  await expect(ownerButton(page)).toBeVisible();
}

/** Answers the page's question for the passphrase. */
async function unlock(page: Page, passphrase: string): Promise<void> {
  const dialog = page.getByRole("dialog", { name: "Unlock your key" });
  await dialog.getByLabel("Passphrase", { exact: true }).fill(passphrase);
  await dialog.getByRole("button", { name: "Unlock" }).click();
}

/** Has 2 ETH deposited into the account of a key file. */
async function fund(page: Page, file: string): Promise<void> {
  const { account } = JSON.parse(readFileSync(file, "utf8")).fastpay;
  const giver = new TestWallet();
  await giveOnChain(giver.key.address, "10");
  await depositEther(giver.key, "2", parseAccount(account));
  await expect(inFastPay(page, "ETH")).toHaveText("2");
}

/** Closes the menu of one of its items, and waits until it has gone: until then a click on its button is one to close it. */
async function closeMenu(item: Locator): Promise<void> {
  await item.press("Escape");
  await expect(item).toBeHidden();
}

const isDone = (page: Page, title: RegExp): Promise<void> =>
  expect(activity(page, title).getByText("Done", { exact: true })).toBeVisible();

test("a key is created, funded, used, unlocked after a reload, redeemed from, and moved to another device", async ({ page, browser }) => {
  test.slow();
  const folder = mkdtempSync(`${tmpdir()}/fastpay-web-keys-`);
  const file = `${folder}/key.json`;
  try {
    const wallet = new TestWallet();
    await giveOnChain(wallet.key.address, "10");
    await wallet.inject(page);
    await makeKey(page, file);

    // Deposits come from an Ethereum wallet beside it.
    await goTo(page, "Deposit");
    await expect(page.getByText("A deposit is a transaction on Ethereum")).toBeVisible();
    await picture(page, "key-deposit");
    await page.getByRole("button", { name: "Connect an Ethereum wallet" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Test wallet" }).click();
    await page.getByLabel("Amount", { exact: true }).fill("3");
    await page.getByRole("button", { name: "Deposit 3 ETH" }).click();
    await agree(page);
    await isDone(page, /^Deposit 3 ETH/);
    await expect(ownerButton(page)).toBeVisible();

    // Just made, it is unlocked.
    await goTo(page, "Pay");
    await pay(page, BOB, "0.5");
    await isDone(page, /^Pay 0.5 ETH/);

    // A reload locks it: who declines signs nothing, a wrong passphrase opens nothing.
    await page.reload();
    await expect(ownerButton(page)).toBeVisible();
    await pay(page, BOB, "0.25");
    const unlocking = page.getByRole("dialog", { name: "Unlock your key" });
    await expect(unlocking).toContainText(/Order #1 pays 0.25 ETH to 0x/);
    await unlocking.getByRole("button", { name: "Close" }).click();
    await expect(activity(page, /^Pay 0.25 ETH/).getByRole("alert")).toContainText("Nothing was signed");
    await activity(page, /^Pay 0.25 ETH/).getByRole("button", { name: "Try again" }).click();
    await unlock(page, "not the passphrase");
    await expect(page.getByRole("dialog").getByRole("alert")).toContainText("does not open this key");
    await isAccessible(page);
    await picture(page, "key-unlock");
    await unlock(page, PASSPHRASE);
    await isDone(page, /^Pay 0.25 ETH/);

    // Locked by hand, it asks again; then a redemption to where the key has no power.
    await ownerButton(page).click();
    await page.getByRole("menuitem", { name: "Lock" }).click();
    await goTo(page, "Redeem");
    const before = await balanceOnChain(OUT);
    await page.getByLabel("Amount", { exact: true }).fill("1");
    await page.getByLabel("To (an Ethereum address)").fill(OUT);
    await page.getByLabel("Fee for the relayer").fill("0.01");
    await page.getByRole("button", { name: "Redeem 1 ETH" }).click();
    await agree(page);
    await unlock(page, PASSPHRASE);
    await expect(page.getByRole("region", { name: "Your redemptions" }).getByText("Paid on Ethereum")).toBeVisible();
    expect((await balanceOnChain(OUT)) - before).toBe(parseEther("0.99"));
    await goTo(page, "History");
    await expect(page.getByRole("region", { name: "History entries" }).getByRole("listitem").filter({ hasText: "−" })).toHaveCount(3);
    await goTo(page, "Wallet");
    await expect(inFastPay(page, "ETH")).toHaveText("1.25");
    await picture(page, "key-wallet");
    // The wallet beside it was asked for its address and the deposit, and for no order.
    expect(wallet.asked).toEqual(["eth_requestAccounts", "eth_sendTransaction"]);

    await importElsewhere(page, await browser.newContext({ baseURL: process.env.WEB_URL ?? "" }).then((context) => context.newPage()), file);
    importByCommand(file, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a key is locked after 15 minutes without a signature", async ({ page }) => {
  const folder = mkdtempSync(`${tmpdir()}/fastpay-web-keys-`);
  try {
    await page.clock.install();
    await makeKey(page, `${folder}/key.json`);
    await fund(page, `${folder}/key.json`);
    await goTo(page, "Pay");

    // Each signature gives it another quarter of an hour.
    const isUnlocked = async (): Promise<void> => {
      await ownerButton(page).click();
      await closeMenu(page.getByRole("menuitem", { name: "Lock" }));
    };
    await page.clock.fastForward("10:00");
    await isUnlocked();
    await pay(page, BOB, "0.5");
    await isDone(page, /^Pay 0.5 ETH/);
    // The clock goes on by itself, too: the more, the slower the machine is.
    await page.clock.fastForward("12:00");
    await isUnlocked();
    await page.clock.fastForward("03:01");
    await ownerButton(page).click();
    const save = page.getByRole("menuitem", { name: "Save the key file" });
    await expect(save).toBeVisible();
    await expect(page.getByRole("menuitem", { name: "Lock" })).toBeHidden();
    await closeMenu(save);
    await pay(page, BOB, "0.25");
    await unlock(page, PASSPHRASE);
    await isDone(page, /^Pay 0.25 ETH/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a browser without Ed25519 in WebCrypto says so and creates no key; a wallet works", async ({ page, person }) => {
  const folder = mkdtempSync(`${tmpdir()}/fastpay-web-keys-`);
  const says = "This browser cannot sign with a key of its own";
  try {
    // A key that it made when it still could; or that another program put there.
    await makeKey(page, `${folder}/key.json`);
    await fund(page, `${folder}/key.json`);
    await page.addInitScript(() => {
      const refuse = (): Promise<never> => Promise.reject(new DOMException("Unrecognized name.", "NotSupportedError"));
      const { importKey } = SubtleCrypto.prototype;
      SubtleCrypto.prototype.importKey = function (this: SubtleCrypto, ...of: unknown[]): Promise<CryptoKey> {
        return of[2] === "Ed25519" ? refuse() : (importKey as (...of: unknown[]) => Promise<CryptoKey>).apply(this, of);
      } as typeof importKey;
    });
    await page.reload();
    // It can be looked at, and paid to.
    await goTo(page, "Receive");
    await expect(page.getByRole("img", { name: /^QR code/ })).toBeVisible();
    // But not paid from: its owner is told before they type a passphrase.
    await goTo(page, "Pay");
    await pay(page, BOB, "0.5");
    const unlocking = page.getByRole("dialog", { name: "Unlock your key" });
    await expect(unlocking.getByRole("alert")).toContainText(says);
    await unlocking.getByLabel("Passphrase", { exact: true }).fill(PASSPHRASE);
    await expect(unlocking.getByRole("button", { name: "Unlock" })).toBeDisabled();
    await unlocking.getByRole("button", { name: "Close" }).click();
    await ownerButton(page).click();
    await page.getByRole("menuitem", { name: "Switch account" }).click();
    const dialog = page.getByRole("dialog");
    await expect(dialog.getByRole("alert")).toContainText(says);
    for (const name of ["Create a key", "Import a key file"]) await expect(dialog.getByRole("button", { name })).toBeDisabled();
    await isAccessible(page);
    await picture(page, "key-not-here");
    await dialog.getByRole("button", { name: "Close" }).click();

    // What works: an Ethereum wallet.
    await ownerButton(page).click();
    await page.getByRole("menuitem", { name: "Disconnect" }).click();
    await person({ deposit: "1" });
    await goTo(page, "Pay");
    await pay(page, BOB, "0.5");
    await isDone(page, /^Pay 0.5 ETH/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

async function importElsewhere(page: Page, other: Page, file: string): Promise<void> {
  await other.goto("/");
  await other.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
  const dialog = other.getByRole("dialog");
  await dialog.getByRole("button", { name: "Import a key file" }).click();
  const choose = async (content: string): Promise<void> => {
    const chooser = other.waitForEvent("filechooser");
    await dialog.getByRole("button", { name: "Key file" }).click();
    await (await chooser).setFiles({ name: "key.json", mimeType: "application/json", buffer: Buffer.from(content) });
  };
  await choose("{}");
  await dialog.getByLabel("Passphrase", { exact: true }).fill(PASSPHRASE);
  await dialog.getByRole("button", { name: "Import the key" }).click();
  await expect(dialog.getByRole("alert")).toContainText("This key file cannot be used");
  await choose(readFileSync(file, "utf8"));
  await picture(other, "key-import");
  // What stands there and is not understood is never overwritten.
  const keep = (text: string): Promise<void> => other.evaluate((kept) => localStorage.setItem("fastpay.keys", kept), text);
  await keep("{}");
  await dialog.getByRole("button", { name: "Import the key" }).click();
  await expect(dialog.getByRole("alert")).toContainText("the stored key differs");
  await keep('["of a later version"]');
  await dialog.getByRole("button", { name: "Import the key" }).click();
  await expect(ownerButton(other)).toHaveAccessibleName(await ownerButton(page).innerText().then((text) => new RegExp(text.slice(-4))));
  await expect(inFastPay(other, "ETH")).toHaveText("1.25");

  // What was redeemed elsewhere is followed here, too.
  await goTo(other, "Redeem");
  await expect(other.getByRole("region", { name: "Your redemptions" }).getByText("Paid on Ethereum")).toBeVisible();

  // Removed from there, it is gone from there.
  await ownerButton(other).click();
  await other.getByRole("menuitem", { name: "Remove the key from this browser" }).click();
  await expect(other.getByRole("button", { name: "Remove the key" })).toBeDisabled();
  await other.getByLabel(/I have the key file/).check();
  await other.getByRole("button", { name: "Remove the key" }).click();
  await expect(other.getByRole("banner").getByRole("button", { name: "Connect wallet" })).toBeVisible();
  expect(await other.evaluate(() => localStorage.getItem("fastpay.keys"))).toBe('["of a later version"]');
  await other.reload();
  await other.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
  await expect(other.getByRole("dialog").getByRole("button", { name: /^fp1/ })).toHaveCount(0);
  await other.context().close();
}

/** The file is the command line's own form. */
function importByCommand(file: string, home: string): void {
  const env = { ...process.env, FASTPAY_HOME: `${home}/home`, FASTPAY_PASSPHRASE: PASSPHRASE };
  execFileSync(PROGRAM, ["keys", "import", "mine", "--ed25519", "--keystore", file], { env, stdio: "pipe" });
  const account = JSON.parse(readFileSync(file, "utf8")).fastpay.account;
  expect(JSON.parse(readFileSync(`${home}/home/keys/mine.json`, "utf8")).fastpay.account).toBe(account);
}
