/** What the wallet has sent and no block has yet: followed over reloads, never offered again, found where it was replaced. */

import type { Page } from "@playwright/test";
import { parseEther, type Hex } from "viem";

import { balanceOnChain, chainClient, deployMoodyToken, numberIsTaken, replaceTransaction, setMood, withoutBlocks } from "./support/net";
import { useOwnNetwork } from "./support/own-network";
import { activity, addAndDeposit, agree, expect, goTo, inFastPay, picture, redeemAlone, test } from "./support/people";
import type { TestWallet } from "./support/wallet";

const OUT = "0x000000000000000000000000000000000000bEEF";

// It stands still for a while.
useOwnNetwork("sent");

const sendings = ({ asked }: TestWallet): number => asked.filter((method) => method === "eth_sendTransaction").length;

/** The work's transaction was sent and is followed, before a reload and after it, and when it was aborted and taken up. */
async function isFollowed(page: Page, title: string, button: string, warning: string): Promise<void> {
  const work = activity(page, title);
  await expect(work.getByText("Submitted to Ethereum: done")).toBeVisible();
  await page.reload();
  await expect(work.getByText("Submitted to Ethereum: done")).toBeVisible();
  await expect(work.getByText("On its way", { exact: true })).toBeVisible();
  const offered = page.getByRole("button", { name: button });
  await expect(offered).toBeDisabled();
  await work.getByRole("button", { name: "Stop waiting" }).click();
  await expect(work.getByRole("alert")).toContainText(warning);
  await expect(offered).toBeDisabled();
  await picture(page, `left-${title.split(" ")[0]?.toLowerCase()}`);
  await work.getByRole("button", { name: "Continue" }).click();
  await expect(work.getByText("On its way", { exact: true })).toBeVisible();
  await expect(offered).toBeDisabled();
}

test("a redemption that its owner submits is followed over a reload, not offered again, and paid once", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "2" });
  const before = await balanceOnChain(OUT);
  await goTo(page, "Redeem");
  await page.getByLabel("Amount", { exact: true }).fill("1.5");
  await page.getByLabel("To (an Ethereum address)").fill(OUT);
  await page.getByRole("button", { name: "Redeem 1.5 ETH" }).click();
  await agree(page);
  await expect(activity(page, /^Redeem/).getByText("Waiting for a relayer", { exact: true })).toBeVisible();
  await withoutBlocks(async () => {
    await page.getByRole("button", { name: "Submit it myself" }).click();
    await isFollowed(page, "Submit redemption #0 to Ethereum", "Submit it myself", "do not submit it again");
  });
  await expect(activity(page, "Submit redemption #0 to Ethereum").getByText("Done", { exact: true })).toBeVisible();
  await expect(page.getByRole("region", { name: "Your redemptions" }).getByText("Paid on Ethereum")).toBeVisible();
  expect((await balanceOnChain(OUT)) - before).toBe(parseEther("1.5"));
  expect(sendings(wallet)).toBe(1);
  await page.reload();
  await expect(page.getByRole("region", { name: "Your redemptions" }).getByText("Paid on Ethereum")).toBeVisible();
  await expect(activity(page, "Submit redemption #0 to Ethereum")).toBeHidden();
});

test("a claim is followed over a reload, not offered again, and paid once", async ({ page, person }) => {
  const { wallet } = await person();
  const token = await deployMoodyToken(wallet.key);
  await addAndDeposit(page, token, "ZOO", "4");
  await setMood(wallet.key, token, "reverts");
  await redeemAlone(page, "ZOO", "3");
  const claims = page.getByRole("region", { name: "Claims" });
  await expect(claims).toContainText("3 ZOO");
  await expect(activity(page, /^Submit redemption/).getByText("Done", { exact: true })).toBeVisible();
  await setMood(wallet.key, token, "good");
  const sentBefore = sendings(wallet);
  await withoutBlocks(async () => {
    await claims.getByRole("button", { name: "Claim" }).click();
    await expect(activity(page, "Claim 3 ZOO").getByText("Submitted to Ethereum: done")).toBeVisible();
    await isFollowed(page, "Claim ", "Claim", "do not claim it again");
  });
  await expect(activity(page, "Claim ZOO").getByText("Done", { exact: true })).toBeVisible();
  await expect(claims).toBeHidden();
  expect(await balanceOnChain(wallet.key.address, token)).toBe(parseEther("9"));
  expect(sendings(wallet)).toBe(sentBefore + 1);
});

/** Deposits, and goes away as soon as the node has told the page which of the wallet's transactions that is. */
async function depositAndLeave(page: Page, wallet: TestWallet, amount: string): Promise<{ hash: Hex; nonce: number }> {
  await page.getByLabel("Amount", { exact: true }).fill(amount);
  await page.getByRole("button", { name: `Deposit ${amount} ETH` }).click();
  await agree(page);
  await expect(activity(page, `Deposit ${amount} ETH`).getByText("Submitted to Ethereum: done")).toBeVisible();
  const hash = wallet.sent.at(-1) as Hex;
  await expect
    .poll(() =>
      page.evaluate(async () => {
        const database = await new Promise<IDBDatabase>((resolve) => {
          const request = indexedDB.open("fastpay");
          request.onsuccess = () => resolve(request.result);
        });
        const keys = await new Promise<IDBValidKey[]>((resolve) => {
          const request = database.transaction("entries").objectStore("entries").getAllKeys();
          request.onsuccess = () => resolve(request.result);
        });
        database.close();
        return keys.map(String).join(" ");
      }),
    )
    .toContain(`deposit-${hash}.placed`);
  const { nonce } = await chainClient().getTransaction({ hash });
  await page.goto("about:blank");
  return { hash, nonce };
}

test("a deposit sped up in the wallet while no page was open is found; a cancelled one is reported", async ({ page, person }) => {
  test.slow();
  const { wallet } = await person();
  for (const [how, amount] of [["sped up", "1.5"], ["cancelled", "0.5"]] as const) {
    await page.goto("/");
    await goTo(page, "Deposit");
    let nonce = 0;
    await withoutBlocks(async () => {
      const left = await depositAndLeave(page, wallet, amount);
      await replaceTransaction(wallet.key, left.hash, how);
      nonce = left.nonce;
    });
    await numberIsTaken(wallet.key.address, nonce);
    await page.goto("/deposit");
    const work = activity(page, `Deposit ${amount} ETH`);
    if (how === "sped up") {
      await expect(work.getByText("Credited in FastPay: done")).toBeVisible();
      await expect(work.getByText("Done", { exact: true })).toBeVisible();
    } else {
      await expect(work.getByRole("alert")).toContainText("made no deposit");
      await expect(work.getByRole("alert")).toContainText("It was cancelled in the wallet");
      await expect(work.getByRole("button", { name: "Continue" })).toBeHidden();
      await picture(page, "deposit-cancelled");
    }
  }
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("1.5");
  await page.reload();
  await expect(inFastPay(page, "ETH")).toHaveText("1.5");
  await expect(activity(page, /^Deposit \d/)).toBeHidden();
  expect(sendings(wallet)).toBe(2);
});
