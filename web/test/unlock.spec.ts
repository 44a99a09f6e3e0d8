/** An account with two orders for one number: nothing can be paid from it until the contract has decided. */

import type { Page } from "@playwright/test";
import { accountFromEthereum, encodeOrder, ethereumSigner, ETHER, NO_MEMO, signOrder } from "@fastpay/sdk";
import { parseEther } from "viem";

import { isAccessible } from "./support/axe";
import { network, walletOf } from "./support/net";
import { activity, expect, goTo, inFastPay, pay, picture, test } from "./support/people";
import type { TestWallet } from "./support/wallet";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/** Two devices pay with the same number, and each finds two of the four authorities. */
async function payTwice({ key }: TestWallet): Promise<void> {
  const { chainId, contract, authorities } = network();
  const signer = ethereumSigner(walletOf(key));
  const domain = { chainId: BigInt(chainId), contract };
  const recipient = accountFromEthereum(BOB);
  for (const [number, { http }] of authorities.entries()) {
    const amount = parseEther(number < 2 ? "1" : "2");
    const transfer = { type: "payment", sender: signer.account, recipient, asset: ETHER, amount, sequence: 0n, memo: NO_MEMO } as const;
    const body = encodeOrder(await signOrder(signer, domain, transfer));
    const order = { method: "POST", headers: { "content-type": "application/json" }, body };
    // It may not have read the deposit yet.
    await expect.poll(async () => (await fetch(`${http}/v1/orders`, order)).status).toBe(200);
  }
}

const stuck = (page: Page) => page.getByRole("alert").filter({ hasText: "This account is stuck" });

test("a stuck account is unlocked by a button, also after a reload, and pays again", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "3" });
  await payTwice(wallet);
  await page.reload();
  await expect(stuck(page)).toContainText("neither can get enough votes any more");
  await expect(stuck(page)).toContainText("a bond of 0.005 ETH");
  await isAccessible(page);
  await picture(page, "stuck");

  // The request is agreed to, and the votes are not brought yet.
  wallet.declinesAfter = 1;
  await stuck(page).getByRole("button", { name: "Unlock this account" }).click();
  const work = activity(page, "Unlock this account");
  await expect(work.getByText("Ethereum is asked to unlock the account: done")).toBeVisible();
  await expect(work.getByText("4 of 4 say that no payment with this number was finished")).toBeVisible();
  await expect(work.getByRole("alert")).toContainText("You declined");
  await picture(page, "unlock-declined");

  wallet.declinesAfter = undefined;
  await page.reload();
  await expect(stuck(page)).toContainText("Ethereum was asked to unlock it.");
  await stuck(page).getByRole("button", { name: "Continue unlocking" }).click();
  await expect(work.getByText(/none of the orders holds, and nothing was paid: done/)).toBeVisible();
  await expect(stuck(page)).toBeHidden();
  await picture(page, "unlocked");
  expect(wallet.sent).toHaveLength(2);

  await expect(inFastPay(page, "ETH")).toHaveText("3");
  await goTo(page, "Pay");
  await pay(page, BOB, "0.5");
  await expect(activity(page, /^Pay 0.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("2.5");
});
