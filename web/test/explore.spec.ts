import type { Page } from "@playwright/test";
import { parseEther } from "viem";

import { activity, authority, expect, goTo, pay, picture, test, type Person } from "./support/people";
import { isAccessible } from "./support/axe";
import { chainClient, depositEther, network } from "./support/net";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/** A payment with a memo; its page is opened. */
async function paid(person: Person): Promise<void> {
  const { page } = person;
  await goTo(page, "Pay");
  await pay(page, BOB, "0.5", "for the explorer");
  await activity(page, /^Pay 0.5 ETH/).getByRole("link", { name: "Show its certificate" }).click();
  await expect(page.getByRole("heading", { name: "Payment of 0.5 ETH" })).toBeVisible();
}

async function lookUp(page: Page, text: string): Promise<void> {
  await page.getByLabel("Look up").fill(text);
  await page.getByRole("search").getByRole("button", { name: "Look up" }).click();
}

test("the explorer's first page shows the contract's balances and debts, and each authority's state", async ({ page, person }) => {
  const { wallet } = await person();
  const index = await depositEther(wallet.key, "1");
  await page.goto("/explore");
  const row = page.getByRole("region", { name: "Assets" }).locator("tr[data-asset=ETH]");
  await expect(row).toContainText("yes");
  await expect(row.getByRole("cell").first()).toHaveText(/^\d/);
  // One authority that says that accounts hold more than the contract has is not believed; f + 1 are.
  const covered = row.getByRole("cell").last();
  const exaggerates = async (number: number): Promise<void> => {
    await page.route(authority(number), async (route) => {
      if (!route.request().url().endsWith("/v1/status")) return route.continue();
      const answer = await route.fetch();
      const status = await answer.json();
      // Whichever shard has the account of the deposit, once it is credited here.
      for (const held of status.shards.flatMap((shard: { totals: object[] }) => shard.totals).slice(0, 1)) {
        held.accounts = parseEther("1000000").toString();
      }
      await route.fulfill({ response: answer, json: status });
    });
  };
  await exaggerates(0);
  await page.reload();
  await expect(covered).toHaveText("yes");
  await exaggerates(1);
  await page.reload();
  await expect(covered).toHaveText("no");
  await expect(row).toContainText(/1,000,0\d\d/);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.reload();
  await expect(covered).toHaveText("yes");

  const authorities = page.getByRole("region", { name: "Authorities" }).getByRole("listitem");
  await expect(authorities.getByText("votes", { exact: true })).toHaveCount(network().authorities.length);
  await expect(authorities.first()).toContainText(/epoch \d+, follows Ethereum to block \d+/);
  await page.route(authority(1), (route) => route.abort());
  // Restored from a copy, an authority does not vote for every payment.
  await page.route(authority(2), async (route) => {
    const answer = await route.fetch();
    const json = await answer.json();
    await route.fulfill({ response: answer, json: "votes" in json ? { ...json, votes: false, restored: true } : json });
  });
  await page.reload();
  await expect(authorities.getByText("does not answer")).toHaveCount(1);
  await expect(authorities.getByText("restored, votes for some")).toHaveCount(1);
  await isAccessible(page);
  await picture(page, "explore");

  await page.goto("/network");
  await expect(page.getByText("answers, restored", { exact: true })).toHaveCount(1);
  await page.unrouteAll({ behavior: "ignoreErrors" });

  // A deposit is found by its transaction, and shows it.
  const logs = await chainClient().getLogs({ address: network().contract, fromBlock: 0n });
  const hash = logs.at(-1)?.transactionHash ?? "";
  await page.goto("/explore");
  await lookUp(page, hash);
  await page.getByRole("link", { name: `deposit ${index}` }).click();
  await expect(page).toHaveURL(new RegExp(`/explore/deposit/${index}$`));
  await expect(page.getByText("1 ETH").first()).toBeVisible();
  await page.getByRole("link", { name: hash }).click();
  await expect(page.getByRole("region", { name: "Transaction" })).toContainText(`It made deposit ${index} of 1 ETH`);
  await isAccessible(page);
});

test("the explorer's first page links the latest transfers, and hides one without a proof", async ({ page, person }) => {
  const alice = await person({ deposit: "1" });
  await paid(alice);
  const digest = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  // Of a number that no order has.
  const made = { sender: alice.wallet.key.address, sequence: "7", digest: `0x${"07".repeat(32)}` };
  for (const number of [0, 1, 2]) {
    await page.route(authority(number), async (route) => {
      if (!route.request().url().endsWith("/v1/transfers")) return route.continue();
      const answer = await route.fetch();
      const { transfers } = await answer.json();
      await route.fulfill({ response: answer, json: { transfers: [made, ...transfers] } });
    });
  }
  await goTo(page, "Explore");
  const latest = page.getByRole("region", { name: "Latest transfers" });
  const first = latest.getByRole("listitem").first();
  await expect(first).toHaveAttribute("data-digest", digest);
  await expect(first).toContainText("0.5 ETH");
  await isAccessible(page);
  await picture(page, "explore-latest");
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await first.getByTitle(digest).click();
  await expect(page.getByRole("heading", { name: "Payment of 0.5 ETH" })).toBeVisible();

  // A payment of somebody else appears by itself.
  await goTo(page, "Explore");
  await paid(await person({ deposit: "1" }));
  await expect(latest.getByRole("listitem").filter({ hasText: "0.5 ETH" }).first()).not.toHaveAttribute("data-digest", digest);
});

test("a payment is found by digest, by account and by number, and each vote is checked here", async ({ browser, person }) => {
  const alice = await person({ deposit: "1" });
  await paid(alice);
  const digest = new URL(alice.page.url()).pathname.split("/").at(-1) ?? "";

  // Somebody else, without a wallet.
  const context = await browser.newContext({ baseURL: process.env.WEB_URL ?? "" });
  const page = await context.newPage();
  await page.goto("/explore");
  await lookUp(page, digest);
  await expect(page.getByRole("heading", { name: "Payment of 0.5 ETH" })).toBeVisible();
  await expect(page.getByText("for the explorer")).toBeVisible();
  await expect(page.getByText(alice.wallet.key.address)).toBeVisible();
  const answers = page.getByRole("region", { name: "What each authority shows" });
  await expect(answers.getByText("3 valid votes").first()).toBeVisible();
  await answers.getByRole("button", { name: /3 valid votes/ }).first().click();
  // By the names of the authorities, as everywhere on the page.
  await expect(answers.getByText(/^Vote of 127\.0\.0\.1:\d+ is valid$/).filter({ visible: true })).toHaveCount(3);
  await expect(answers.getByText("The sender signed this order").first()).toBeVisible();
  await picture(page, "explorer-payment");

  await lookUp(page, `${alice.wallet.key.address}#0`);
  await expect(page).toHaveURL(/\/explore\/transfer\/0x[0-9a-fA-F]{40}\/0$/);
  await expect(page.getByRole("heading", { name: "Payment of 0.5 ETH" })).toBeVisible();

  await lookUp(page, alice.wallet.key.address);
  await expect(page.getByTestId("holding")).toContainText("0.5 ETH");
  await expect(page.getByRole("region", { name: "History entries" })).toContainText("−0.5 ETH");
  await expect(page.getByRole("region", { name: "What each authority reports" }).getByRole("row")).toHaveCount(5);
  await picture(page, "explorer-account");
  await context.close();
});

test("a vote that an authority altered is detected and reported", async ({ page, person }) => {
  const alice = await person({ deposit: "1" });
  const liar = network().authorities[1]?.http ?? "";
  await page.route(authority(1), async (route) => {
    const answer = await route.fetch();
    const text = await answer.text();
    // One digit of the first vote's signature.
    const forged = text.replace(/("votes":\[\{[^}]*?"signature":"0x)(.)/, (_, start, digit) => start + (digit === "0" ? "1" : "0"));
    await route.fulfill({ response: answer, body: forged });
  });
  await paid(alice);
  const answers = page.getByRole("region", { name: "What each authority shows" });
  await expect(answers.getByRole("alert")).toContainText("One authority shows a certificate that is not valid");
  await answers.getByRole("button", { name: /forged/ }).click();
  await expect(answers.getByText(liar)).toBeVisible();
  await expect(answers.locator("[data-good=false]").filter({ visible: true })).toHaveText(/has an invalid signature/);
  await expect(page.getByText("Certified", { exact: true })).toBeVisible();
  await picture(page, "explorer-forged");
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a deposit is found by its number; an unknown one is reported as not found", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "1" });
  const index = await depositEther(wallet.key, "0.25");
  await goTo(page, "Explore");
  // Not final yet, it is not found at first; the page goes on asking.
  await lookUp(page, index.toString());
  await expect(page.getByRole("region", { name: "Deposit" })).toContainText("0.25 ETH");
  await expect(page.getByRole("region", { name: "Deposit" })).toContainText(wallet.key.address);
  await picture(page, "explorer-deposit");
  await lookUp(page, "999999999");
  await expect(page.getByRole("alert", { name: "Not found" })).toContainText("Too few authorities report this deposit");
  await lookUp(page, `0x${"12".repeat(32)}`);
  await expect(page.getByRole("alert", { name: "No valid certificate" })).toContainText("No authority has one");
  await lookUp(page, "0x12");
  await expect(page.getByText("complete address that starts with fp1 or 0x")).toBeVisible();
});
