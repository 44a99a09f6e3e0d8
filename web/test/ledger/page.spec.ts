/** The page on a ledger in place of Ethereum: real members and authorities, and one member that lies. */

import { test as base, expect, type Page } from "@playwright/test";

import { LyingProxy, startLedger, type StartedLedger } from "../../../sdk/test/support/ledger-network";
import { isAccessible } from "../support/axe";
import { activity, agree, connect, goTo, inFastPay, pay, picture } from "../support/people";
import { openSite } from "../support/site";
import { TestWallet } from "../support/wallet";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const PASSPHRASE = "correct horse battery staple";

interface Network {
  readonly url: string;
  readonly ledger: StartedLedger;
  /** In front of member 0. */
  readonly proxy: LyingProxy;
}

const test = base.extend<object, { network: Network }>({
  network: [
    async ({}, use) => {
      const ledger = await startLedger(`web-${process.pid}`);
      process.env.FASTPAY_NETWORK = ledger.file;
      const { url, close } = await openSite();
      const [first] = ledger.ledger.members;
      const proxy = await LyingProxy.start(first?.http ?? "");
      await use({ url, ledger, proxy });
      await proxy.stop();
      await close();
      await ledger.stop();
    },
    { scope: "worker", timeout: 300_000 },
  ],
  baseURL: ({ network }, use) => use(network.url),
});

/** Creates a key in the browser. Returns its account. */
async function createKey(page: Page): Promise<string> {
  await page.goto("/");
  await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByText(/Deposits need an Ethereum wallet/)).toBeHidden();
  await dialog.getByRole("button", { name: "Create a key" }).click();
  await dialog.getByLabel("Passphrase", { exact: true }).fill(PASSPHRASE);
  await dialog.getByLabel("Passphrase once more").fill(PASSPHRASE);
  await dialog.getByRole("button", { name: "Create the key" }).click();
  const saved = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Save the key file" }).click();
  await saved;
  await dialog.getByLabel(/I have saved the file/).check();
  await dialog.getByRole("button", { name: "Use this account" }).click();
  await goTo(page, "Deposit");
  const command = await page.getByText(/^fastpay deposit AMOUNT --to fp1/).textContent();
  return command?.split(" ").at(-1) ?? "";
}

/** The page's network.json, changed. */
async function serveNetwork(page: Page, change: (file: { ledger: StartedLedger["ledger"] }) => unknown): Promise<void> {
  await page.route("**/network.json", async (route) => {
    const file = await (await route.fetch()).json();
    await route.fulfill({ json: change(file) });
  });
}

const done = (page: Page, title: RegExp): Promise<void> =>
  expect(activity(page, title).getByText("Done", { exact: true })).toBeVisible();

test("a key is funded from a reserve, pays across a rotation, and redeems to a reserve", async ({ page, network }) => {
  const { ledger, proxy } = network;
  // Member 0 lies in every answer from now on.
  proxy.lie = (proof) => `0x${proof.slice(2, 700)}${proof[700] === "0" ? "1" : "0"}${proof.slice(701)}`;
  await serveNetwork(page, (file) => {
    const members = file.ledger.members.map((member, at) => (at === 0 ? { ...member, http: proxy.url } : member));
    return { ...file, ledger: { ...file.ledger, members } };
  });
  const hosts = new Set<string>();
  page.on("request", (request) => hosts.add(new URL(request.url()).host));

  const account = await createKey(page);
  await expect(page.getByText("The owner of a reserve deposits for you")).toBeVisible();
  await isAccessible(page);
  await picture(page, "ledger-deposit");
  await ledger.fund(account, "5");
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "native")).toHaveText("5");
  await expect(page.getByTestId("on-chain")).toHaveCount(0);
  await expect(page.locator("footer")).toContainText("Committee 0 on a ledger · domain 0x");

  await goTo(page, "Pay");
  await pay(page, BOB, "1.25", "rent");
  await done(page, /^Pay 1.25 native/);
  await ledger.rotate();
  await pay(page, BOB, "0.75");
  await done(page, /^Pay 0.75 native/);
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "native")).toHaveText("3");
  await isAccessible(page);
  await picture(page, "ledger-wallet");

  await goTo(page, "Redeem");
  await expect(page.getByText("Who submits it to Ethereum")).toBeHidden();
  await page.getByLabel("Amount", { exact: true }).fill("0.5");
  await page.getByLabel("To (an Ethereum address)").fill(BOB);
  await expect(page.getByText("The ledger pays into the reserve of this address")).toBeVisible();
  await page.getByRole("button", { name: "Redeem 0.5 native" }).click();
  await expect(page.getByRole("region", { name: "Review" })).toContainText("the reserve of this address, which its key opens");
  await agree(page);
  await expect(page.locator("[data-redemption]").getByText("Waiting for a relayer")).toBeVisible();
  await expect(page.getByRole("button", { name: "Submit it myself" })).toBeHidden();
  await isAccessible(page);
  await picture(page, "ledger-redeem");

  // The page asks its own host, the authorities and the members alone.
  const known = [network.url, proxy.url, ...ledger.authorities.map(({ http }) => http), ...ledger.ledger.members.map(({ http }) => http)];
  expect([...hosts].filter((host) => !known.some((url) => new URL(url).host === host))).toEqual([]);
  expect(proxy.lies).toBeGreaterThan(0);
});

test("a wallet of Ethereum pays on a ledger, whatever chain it is on", async ({ page, network }) => {
  const wallet = new TestWallet();
  wallet.chainId = 10;
  await network.ledger.fund(wallet.key.address, "2");
  await wallet.inject(page);
  await page.goto("/");
  await connect(page);
  await expect(page.getByText("Wrong network")).toBeHidden();
  await expect(inFastPay(page, "native")).toHaveText("2");
  await goTo(page, "Pay");
  await pay(page, BOB, "0.5");
  await done(page, /^Pay 0.5 native/);
  expect(wallet.asked).toContain("eth_signTypedData_v4");
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "native")).toHaveText("1.5");
});

test("everybody sees what the ledger holds for accounts, and what the page trusts", async ({ page, network }) => {
  await network.ledger.fund(BOB, "1");
  await page.goto("/explore");
  await expect(page.getByRole("region", { name: "Assets" }).locator("tr[data-asset=native]")).toContainText("yes");
  await expect(page.getByRole("region", { name: "This deployment" })).toContainText("Events of the committee so far");
  await expect(page.getByText(/^epoch \d+, follows the ledger to group \d+$/)).toHaveCount(4);
  await isAccessible(page);
  await picture(page, "ledger-explore");
  await page.goto("/network");
  await expect(page.getByRole("region", { name: "Deployment" })).toContainText(network.ledger.ledger.contract);
  await expect(page.getByRole("region", { name: "Committee" })).toContainText("From the ledger.");
  await page.goto("/help");
  await expect(page.getByRole("button", { name: "How do I get my money back to the ledger?" })).toBeVisible();
  await page.goto(`/explore/transaction/0x${"11".repeat(32)}`);
  await expect(page.getByText("A ledger has no Ethereum transactions.")).toBeVisible();
});

test("a description that was altered, and a ledger that is away, are said to be", async ({ page }) => {
  await serveNetwork(page, (file) => ({ ...file, ledger: { ...file.ledger, contract: BOB } }));
  await page.goto("/");
  await expect(page.getByText(/its genesis and committee give 0x/)).toBeVisible();
  await page.unrouteAll();
  await serveNetwork(page, (file) => ({ ...file, rpc: "http://127.0.0.1:1" }));
  await page.reload();
  await expect(page.getByText(/a ledger has no chain, node or contract on Ethereum/)).toBeVisible();
  await page.unrouteAll();
  await page.route("**/v1/state/**", (route) => route.abort());
  await page.reload();
  await expect(page.getByText("Too few members of the ledger prove what it has", { exact: false })).toBeVisible();
});
