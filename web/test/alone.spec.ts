/**
 * Out of the contract without anybody's help: on a network of its own, where nobody relays. Its committee changes keys, and
 * then a member.
 */

import type { Page } from "@playwright/test";
import { parseEther } from "viem";

import { balanceOnChain, deployToken, epochHasBegun, epochIsFinal, network, OUTFLOW_DELAY_S, passTime, postpone } from "./support/net";
import { useOwnNetwork } from "./support/own-network";
import { activity, addAndDeposit, agree, authority, expect, goTo, pay, picture, test } from "./support/people";

const OUT = "0x000000000000000000000000000000000000bEEF";
/** How long the deployment takes votes of an epoch that has ended. */
const VOTES_VALIDITY_S = 6 * 86_400;

const ownNetwork = useOwnNetwork("alone");

/** Redeems for a relayer, of which there is none. */
async function redeem(page: Page, amount: string): Promise<void> {
  await goTo(page, "Redeem");
  await page.getByLabel("Amount", { exact: true }).fill(amount);
  await page.getByLabel("To (an Ethereum address)").fill(OUT);
  await page.getByRole("button", { name: `Redeem ${amount} ETH` }).click();
  await agree(page);
  await expect(activity(page, /^Redeem/).getByText("Waiting for a relayer", { exact: true })).toBeVisible();
}

const redemptions = (page: Page) => page.getByRole("region", { name: "Your redemptions" });

test("a redemption that no relayer takes is submitted by a button", async ({ page, person }) => {
  await person({ deposit: "2" });
  const before = await balanceOnChain(OUT);
  await redeem(page, "1.5");
  await expect(redemptions(page).getByText("Waiting for a relayer")).toBeVisible();
  await picture(page, "waits-for-a-relayer");
  await redemptions(page).getByRole("button", { name: "Submit it myself" }).click();
  await expect(activity(page, "Submit redemption #0 to Ethereum").getByText("Done", { exact: true })).toBeVisible();
  await expect(redemptions(page).getByText("Paid on Ethereum")).toBeVisible();
  expect((await balanceOnChain(OUT)) - before).toBe(parseEther("1.5"));
});

test("a queued redemption is paid out by a button once its time has come, and not before", async ({ page, person }) => {
  const { wallet } = await person();
  const token = await deployToken(wallet.key);
  await addAndDeposit(page, token, "NEW", "500");
  await goTo(page, "Redeem");
  for (const [amount, state] of [["300", "Paid on Ethereum"], ["200", "Queued"]] as const) {
    await page.getByLabel("Asset").selectOption("NEW");
    await page.getByLabel("Amount", { exact: true }).fill(amount);
    await page.getByLabel("To (an Ethereum address)").fill(OUT);
    await page.getByLabel("I do, with a transaction from my wallet").check();
    await page.getByRole("button", { name: `Redeem ${amount} NEW` }).click();
    await agree(page);
    await expect(redemptions(page).getByText(state)).toBeVisible();
  }
  await expect(page.getByRole("button", { name: "Pay it out" })).toHaveCount(0);
  const until = redemptions(page).getByText(/^It waits in the contract until/);
  const before = await until.textContent();
  await postpone(86_400);
  await expect(until).not.toHaveText(before ?? "");
  await passTime(OUTFLOW_DELAY_S + 100);
  await expect(page.getByRole("button", { name: "Pay it out" })).toHaveCount(0);
  await passTime(86_400);
  await expect(redemptions(page).getByText("It can be paid out now.")).toBeVisible();
  await picture(page, "due");
  await redemptions(page).getByRole("button", { name: "Pay it out" }).click();
  await expect(activity(page, "Pay out redemption #1").getByText("Done", { exact: true })).toBeVisible();
  await expect(redemptions(page).getByText("Paid on Ethereum")).toHaveCount(2);
  expect(await balanceOnChain(OUT, token)).toBe(500_000_000n);
});

test("a redemption certified under earlier keys is certified again and paid", async ({ page, person }) => {
  await person({ deposit: "2" });
  const before = await balanceOnChain(OUT);
  await redeem(page, "1");
  ownNetwork().rotate();
  await epochIsFinal(network(), 1n);
  await passTime(VOTES_VALIDITY_S + 1);
  await redemptions(page).getByRole("button", { name: "Submit it myself" }).click();
  const bringing = activity(page, "Submit redemption #0 to Ethereum");
  await expect(bringing.getByText("3 of 3 votes")).toBeVisible();
  await expect(bringing.getByText("Done", { exact: true })).toBeVisible();
  await picture(page, "voted-again");
  await expect(redemptions(page).getByText("Paid on Ethereum")).toBeVisible();
  expect((await balanceOnChain(OUT)) - before).toBe(parseEther("1"));
});

test("a page that runs pays and explores with a new member that no list names", async ({ page, person }) => {
  await person({ deposit: "2" });
  ownNetwork().replace();
  await epochHasBegun(network(), 2n);
  // One has left and one is away: without the new one there is no quorum.
  for (const number of [0, 3]) await page.route(authority(number), (route) => route.abort());
  await goTo(page, "Pay");
  await pay(page, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0.5");
  const paying = activity(page, /^Pay 0.5 ETH/);
  // It votes, and says where it is, some seconds later. Until then the page offers to try again.
  await expect(async () => {
    const again = paying.getByRole("button", { name: "Try again" });
    if (await again.isVisible()) await again.click();
    await expect(paying.getByText("Done", { exact: true })).toBeVisible({ timeout: 5_000 });
  }).toPass();
  await paying.getByRole("link", { name: "Show its certificate" }).click();
  const answers = page.getByRole("region", { name: "What each authority shows" });
  await answers.getByRole("button", { name: /3 valid votes/ }).first().click();
  await expect(answers.getByText(/^Vote of .* is valid$/).filter({ visible: true })).toHaveCount(3);
});
