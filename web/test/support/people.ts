/** Test users with a wallet, money and a page. */

import { expect, test as base, type Locator, type Page } from "@playwright/test";
import { resolve } from "node:path";

import { depositEther, giveOnChain, network } from "./net";
import { openSite } from "./site";
import { TestWallet } from "./wallet";

/** A user of the page. */
export interface Person {
  readonly wallet: TestWallet;
  readonly page: Page;
}

/** The folder for pictures of the page. */
export const PICTURES = resolve(import.meta.dirname, "../../../target/web");

interface Fixtures {
  /** Creates a user with 100 ETH on the chain, connected to the page. `deposit`, in ETH, is deposited in FastPay. */
  readonly person: (options?: { deposit?: string; tokens?: string; page?: Page }) => Promise<Person>;
}

interface WorkerFixtures {
  /** The page's URL for the tests of this worker. */
  readonly site: string;
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  site: [
    async ({}, use) => {
      const { url, close } = await openSite();
      await use(url);
      await close();
    },
    { scope: "worker", auto: true, timeout: 300_000 },
  ],
  baseURL: ({ site }, use) => use(site),
  person: async ({ page, browser }, use) => {
    const contexts: { close: () => Promise<void> }[] = [];
    let isFirst = true;
    await use(async ({ deposit, tokens, page: own } = {}) => {
      const wallet = new TestWallet();
      await giveOnChain(wallet.key.address, "100", tokens);
      if (deposit !== undefined) await depositEther(wallet.key, deposit);
      let its = own ?? page;
      if (own === undefined && !isFirst) {
        const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, baseURL: process.env.WEB_URL ?? "" });
        contexts.push(context);
        its = await context.newPage();
      }
      isFirst = false;
      await wallet.inject(its);
      await its.goto("/");
      await connect(its);
      if (deposit !== undefined) await expect(inFastPay(its, "ETH")).toHaveText(deposit);
      return { wallet, page: its };
    });
    for (const context of contexts) await context.close();
  },
});

export { expect };

/** Connects the test wallet through the page's dialog. */
export async function connect(page: Page): Promise<void> {
  await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
  await page.getByRole("dialog").getByRole("button", { name: /Test wallet|Browser wallet/ }).click();
  await expect(page.getByRole("banner").getByRole("button", { name: /^Account 0x/ })).toBeVisible();
}

/** The balance of an asset in FastPay on the wallet's page. */
export function inFastPay(page: Page, symbol: string): Locator {
  return page.locator(`tr[data-asset=${symbol}]`).getByTestId("in-fastpay");
}

/** Navigates to a page by its link. */
export async function goTo(page: Page, place: string): Promise<void> {
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: place, exact: true }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(place);
}

/** An activity, by a part of its title. */
export function activity(page: Page, title: string | RegExp): Locator {
  return page.getByRole("region", { name: title });
}

/** Fills in the payment form and submits it. */
export async function pay(page: Page, to: string, amount: string, memo = ""): Promise<void> {
  await page.getByLabel("To", { exact: true }).fill(to);
  await page.getByLabel("Amount", { exact: true }).fill(amount);
  if (memo !== "") await page.getByLabel("Memo (optional)").fill(memo);
  await page.getByRole("button", { name: /^Pay \d/ }).click();
  await agree(page);
}

/** Confirms the review of a payment, a redemption or a deposit. */
export async function agree(page: Page): Promise<void> {
  await page.getByRole("region", { name: "Review" }).getByRole("button", { name: /^Yes, (pay|redeem|deposit) \d/ }).click();
}

/** Adds a token that the page does not know, and deposits some of it. */
export async function addAndDeposit(page: Page, token: string, symbol: string, amount: string): Promise<void> {
  await page.getByRole("button", { name: "Add a token" }).click();
  await page.getByLabel("The token's address").fill(token);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await expect(inFastPay(page, symbol)).toHaveText("0");
  await goTo(page, "Deposit");
  await page.getByLabel("Asset").selectOption(symbol);
  await page.getByLabel("Amount", { exact: true }).fill(amount);
  await page.getByRole("button", { name: `Deposit ${amount} ${symbol}` }).click();
  await agree(page);
  await expect(activity(page, `Deposit ${amount} ${symbol}`).getByText("Done", { exact: true })).toBeVisible();
}

/** Redeems a token with the user's own transaction. */
export async function redeemAlone(page: Page, symbol: string, amount: string): Promise<void> {
  await goTo(page, "Redeem");
  await page.getByLabel("Asset").selectOption(symbol);
  await page.getByLabel("Amount", { exact: true }).fill(amount);
  await page.getByLabel("I do, with a transaction from my wallet").check();
  await page.getByRole("button", { name: `Redeem ${amount} ${symbol}` }).click();
  await agree(page);
}

/** Saves a picture of the page. */
export async function picture(page: Page, name: string): Promise<void> {
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true, animations: "disabled" });
}

/** The addresses of requests to one authority, for `page.route`. */
export function authority(number: number): RegExp {
  const url = network().authorities[number]?.http ?? "";
  return new RegExp(`^${url.replace(/[.\\/]/g, "\\$&")}/`);
}
