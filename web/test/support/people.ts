/** People with a wallet, money and a page. */

import { expect, test as base, type Locator, type Page } from "@playwright/test";
import { resolve } from "node:path";

import { depositEther, giveOnChain, network } from "./net";
import { openSite } from "./site";
import { TestWallet } from "./wallet";

/** Somebody in front of the page. */
export interface Person {
  readonly wallet: TestWallet;
  readonly page: Page;
}

/** Where pictures of the page are kept. */
export const PICTURES = resolve(import.meta.dirname, "../../../target/web");

interface Fixtures {
  /** Makes a person with 100 ETH on the chain, connected to the page; `deposit` of it, in ETH, are in FastPay. */
  readonly person: (options?: { deposit?: string; tokens?: string; page?: Page }) => Promise<Person>;
}

interface WorkerFixtures {
  /** Where the page is served to the tests of this worker. */
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

/** Connects the test wallet by the page's own dialogue. */
export async function connect(page: Page): Promise<void> {
  await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
  await page.getByRole("dialog").getByRole("button", { name: /Test wallet|Browser wallet/ }).click();
  await expect(page.getByRole("banner").getByRole("button", { name: /^Account 0x/ })).toBeVisible();
}

/** What the wallet's page says of an asset in FastPay. */
export function inFastPay(page: Page, symbol: string): Locator {
  return page.locator(`tr[data-asset=${symbol}]`).getByTestId("in-fastpay");
}

/** Goes to a place by its link. */
export async function goTo(page: Page, place: string): Promise<void> {
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: place, exact: true }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(place);
}

/** Work under way, by a part of its title. */
export function activity(page: Page, title: string | RegExp): Locator {
  return page.getByRole("region", { name: title });
}

/** Fills the form of a payment in and sends it. */
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

/** Has a token shown that the page does not know, and deposits some of it. */
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

/** Redeems a token by a transaction of one's own. */
export async function redeemAlone(page: Page, symbol: string, amount: string): Promise<void> {
  await goTo(page, "Redeem");
  await page.getByLabel("Asset").selectOption(symbol);
  await page.getByLabel("Amount", { exact: true }).fill(amount);
  await page.getByLabel("I do, with a transaction from my wallet").check();
  await page.getByRole("button", { name: `Redeem ${amount} ${symbol}` }).click();
  await agree(page);
}

/** Keeps a picture of what is seen. */
export async function picture(page: Page, name: string): Promise<void> {
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true, animations: "disabled" });
}

/** The addresses of requests to one authority, for `page.route`. */
export function authority(number: number): RegExp {
  const url = network().authorities[number]?.http ?? "";
  return new RegExp(`^${url.replace(/[.\\/]/g, "\\$&")}/`);
}
