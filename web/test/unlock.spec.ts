/** An account with two orders for one number: nothing can be paid from it until the contract has decided. */

import type { Page } from "@playwright/test";
import {
  accountFromEthereum,
  ed25519Signer,
  encodeOrder,
  encryptKeyFile,
  ethereumSigner,
  ETHER,
  NO_MEMO,
  signOrder,
  type Signer,
} from "@fastpay/sdk";
import { parseEther } from "viem";

import { isAccessible } from "./support/axe";
import { depositEther, giveOnChain, network, walletOf } from "./support/net";
import { finger, keyboard, PHONE, type Hand } from "./support/hands";
import { activity, expect, goTo, inFastPay, pay, picture, test } from "./support/people";
import { TestWallet } from "./support/wallet";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const PASSPHRASE = "correct horse battery staple";

/** Two devices pay with the same number, and each finds two of the four authorities. */
async function payTwice(signer: Signer): Promise<void> {
  const { chainId, contract, authorities } = network();
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

test("a stuck account is unlocked with the keyboard alone, also after a reload, and pays again", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "3" });
  await payTwice(ethereumSigner(walletOf(wallet.key)));
  await page.reload();
  await expect(stuck(page)).toContainText("neither can get enough votes any more");
  await expect(stuck(page)).toContainText("a bond of 0.005 ETH");
  await isAccessible(page);
  await picture(page, "stuck");

  // The request is agreed to, and the votes are not brought yet.
  wallet.declinesAfter = 1;
  await keyboard(page).press(stuck(page).getByRole("button", { name: "Unlock this account" }));
  const work = activity(page, "Unlock this account");
  await expect(work.getByText("Unlock requested on Ethereum: done")).toBeVisible();
  await expect(work.getByText("4 of 4 authorities know of no certified payment with this number")).toBeVisible();
  await expect(work.getByRole("alert")).toContainText("You declined");
  await picture(page, "unlock-declined");

  wallet.declinesAfter = undefined;
  await page.reload();
  await expect(stuck(page)).toContainText("The unlock was requested.");
  await keyboard(page).press(stuck(page).getByRole("button", { name: "Continue unlocking" }));
  await expect(work.getByText(/the number is void, and nothing was paid: done/)).toBeVisible();
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

/** Opens the page with a browser key that holds 2 ETH in FastPay, and whose account is stuck. */
async function withStuckKey(page: Page): Promise<TestWallet> {
  const secret = crypto.getRandomValues(new Uint8Array(32));
  const signer = ed25519Signer(secret);
  const file = await encryptKeyFile(secret, PASSPHRASE);
  const wallet = new TestWallet();
  await giveOnChain(wallet.key.address, "10");
  await depositEther(wallet.key, "2", signer.account);
  await wallet.inject(page);
  await page.goto("/");
  await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Import a key file" }).click();
  const chooser = page.waitForEvent("filechooser");
  await dialog.getByRole("button", { name: "Key file" }).click();
  await (await chooser).setFiles({ name: "key.json", mimeType: "application/json", buffer: Buffer.from(file.text) });
  await dialog.getByLabel("Passphrase", { exact: true }).fill(PASSPHRASE);
  await dialog.getByRole("button", { name: "Import the key" }).click();
  await expect(inFastPay(page, "ETH")).toHaveText("2");
  await payTwice(signer);
  // A reload locks the key.
  await page.reload();
  return wallet;
}

/** The key is unlocked and signs the request, the number is void, and the account pays. */
async function unlocksAndPays(page: Page, hand: Hand): Promise<void> {
  const unlocking = page.getByRole("dialog", { name: "Unlock your key" });
  await expect(unlocking).toContainText("Request that Ethereum unlock this account at order #0.");
  await hand.look();
  await hand.write(unlocking.getByLabel("Passphrase", { exact: true }), "not the passphrase");
  await hand.press(unlocking.getByRole("button", { name: "Unlock" }));
  await expect(unlocking.getByRole("alert")).toContainText("Wrong passphrase");
  await hand.write(unlocking.getByLabel("Passphrase", { exact: true }), PASSPHRASE);
  await hand.press(unlocking.getByRole("button", { name: "Unlock" }));
  await expect(activity(page, "Unlock this account").getByText(/the number is void, and nothing was paid: done/)).toBeVisible();
  await hand.look();
  await goTo(page, "Pay");
  await pay(page, BOB, "0.5");
  await expect(activity(page, /^Pay 0.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
}

test.describe("on a phone", () => {
  test.use(PHONE);

  test("a browser key signs the unlock request, and a connected wallet pays", async ({ page }) => {
    const wallet = await withStuckKey(page);
    const hand = finger(page);
    await hand.press(stuck(page).getByRole("button", { name: "Connect a wallet to do it yourself" }));
    await hand.press(page.getByRole("dialog").getByRole("button", { name: "Test wallet" }));
    await hand.press(stuck(page).getByRole("button", { name: "Unlock this account" }));
    await unlocksAndPays(page, hand);
    expect(wallet.asked).toEqual(["eth_requestAccounts", "eth_sendTransaction", "eth_sendTransaction"]);
  });
});

test("a relayer unlocks the account of a browser key without a wallet, with the keyboard alone", async ({ page }) => {
  const wallet = await withStuckKey(page);
  const hand = keyboard(page);
  await hand.press(stuck(page).getByRole("button", { name: "Let a relayer unlock it" }));
  await unlocksAndPays(page, hand);
  expect(wallet.asked).toEqual([]);
});
