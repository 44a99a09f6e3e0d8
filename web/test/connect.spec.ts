import { isAccessible } from "./support/axe";
import { authority, connect, expect, picture, test } from "./support/people";
import { giveOnChain, network } from "./support/net";
import { TestWallet } from "./support/wallet";

test("without a wallet the page explains itself and what to trust", async ({ page }) => {
  await page.goto("/");
  await expect(page.getByRole("heading", { level: 1 })).toContainText("final after two round trips");
  await expect(page.getByText(`chain ${network().chainId}`).first()).toBeVisible();
  await page.getByRole("link", { name: "What this page trusts" }).click();
  await expect(page.getByText(network().contract)).toBeVisible();
  await expect(page.getByText("3 of 4 votes are a quorum")).toBeVisible();
  await expect(page.getByText("answers", { exact: true })).toHaveCount(4);
  await picture(page, "network");
  await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
  await expect(page.getByText("No wallet was found")).toBeVisible();
});

test("each page links to the help, and its answers open with the keyboard", async ({ page }) => {
  await page.goto("/");
  await page.locator("footer").getByRole("link", { name: "Help" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Help");
  const question = page.getByRole("button", { name: "When is a payment final?" });
  await question.focus();
  await page.keyboard.press("Enter");
  await expect(page.getByText("Settled is final: nobody can undo it.")).toBeVisible();
  await isAccessible(page);
});

test("on a phone without a wallet, links open this page in a wallet's own browser, without a payment link", async ({ browser }) => {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const page = await context.newPage();
  const base = new URL(process.env.WEB_URL ?? "");
  await page.goto(`${base.origin}/receive#fastpay:0x70997970C51812dc3A010C7d01b50e0d17dc79C8@1/${network().contract}`);
  await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
  const dialog = page.getByRole("dialog");
  const target = encodeURIComponent(`${base.origin}/receive`);
  for (const [name, href] of [
    ["MetaMask", `https://metamask.app.link/dapp/${base.host}/receive`],
    ["Coinbase Wallet", `https://go.cb-w.com/dapp?cb_url=${target}`],
    ["Trust Wallet", `https://link.trustwallet.com/open_url?coin_id=60&url=${target}`],
  ] as const) {
    await expect(dialog.getByRole("link", { name })).toHaveAttribute("href", href);
  }
  await isAccessible(page);
  await context.close();
});

test("a desktop browser without a wallet gets no links to apps", async ({ page }) => {
  await page.goto("/");
  await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
  await expect(page.getByText("No wallet was found")).toBeVisible();
  await expect(page.getByRole("link", { name: "MetaMask" })).toBeHidden();
});

test("authorities have the labels of network.json, or the hosts of their addresses", async ({ page }) => {
  const { authorities, ...rest } = network();
  const named = authorities.map((one, i) => (i === 0 ? { ...one, label: "Ada's bakery" } : one));
  await page.route("**/network.json", (route) => route.fulfill({ json: { ...rest, authorities: named } }));
  await page.goto("/network");
  const host = new URL(authorities[1]?.http ?? "").host;
  const committee = page.getByRole("region", { name: "Committee" });
  await expect(committee.getByText("Ada's bakery", { exact: true })).toBeVisible();
  await expect(committee.getByText(host, { exact: true })).toBeVisible();
  await page.goto("/explore");
  await expect(page.getByRole("region", { name: "Authorities" }).getByText("Ada's bakery", { exact: true })).toBeVisible();
  await page.route("**/network.json", (route) => route.fulfill({ json: { ...rest, authorities: [{ ...authorities[0], label: "" }] } }));
  await page.reload();
  await expect(page.getByText("an authority's label must have 1 to 40 characters")).toBeVisible();
});

test("an authority that is a little slower than the others is not shown as silent", async ({ page }) => {
  await page.route(authority(0), async (route) => {
    await new Promise((wake) => setTimeout(wake, 1_000));
    await route.continue().catch(() => undefined);
  });
  await page.goto("/network");
  await expect(page.getByText("answers", { exact: true })).toHaveCount(4);
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a wallet that announces itself is connected, and found again after a reload", async ({ page, person }) => {
  const { wallet } = await person();
  await expect(page.getByRole("banner").getByTitle(wallet.key.address)).toBeVisible();
  await expect(page.locator("tr[data-asset=ETH]").getByTestId("on-chain")).toHaveText("100");
  await expect(page.locator("tr[data-asset=DEMO]").getByTestId("in-fastpay")).toHaveText("0");
  await expect(page.getByText("4 of 4 authorities answer.")).toBeVisible();
  await page.reload();
  await expect(page.getByRole("banner").getByTitle(wallet.key.address)).toBeVisible();
  expect(wallet.asked).toEqual(["eth_requestAccounts"]);
  await page.getByRole("banner").getByRole("button", { name: /^Account/ }).click();
  await page.getByRole("menuitem", { name: "Disconnect" }).click();
  await expect(page.getByRole("banner").getByRole("button", { name: "Connect wallet" })).toBeVisible();
});

test("a wallet that exists only as window.ethereum is connected", async ({ page }) => {
  const wallet = new TestWallet();
  await giveOnChain(wallet.key.address, "7");
  await wallet.inject(page, "window.ethereum");
  await page.goto("/");
  await connect(page);
  await expect(page.locator("tr[data-asset=ETH]").getByTestId("on-chain")).toHaveText("7");
});

test("declining to connect is reported, and nothing else happens", async ({ page }) => {
  const wallet = new TestWallet();
  wallet.declines = true;
  await wallet.inject(page);
  await page.goto("/");
  await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Test wallet" }).click();
  await expect(page.getByRole("alert")).toContainText("You declined");
});

test("on a wrong network nothing can be signed until the wallet has switched", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "2" });
  wallet.chainId = 1;
  await page.reload();
  const wrong = page.getByRole("alert").filter({ hasText: "Wrong network" });
  await expect(wrong).toContainText("Your wallet is on Ethereum (chain 1). This page works with Localnet (chain 31337)");
  await isAccessible(page);
  await picture(page, "wrong-network");
  await page.getByRole("navigation", { name: "Actions" }).getByRole("link", { name: "Pay" }).click();
  await page.getByLabel("To", { exact: true }).fill("0x70997970C51812dc3A010C7d01b50e0d17dc79C8");
  await page.getByLabel("Amount", { exact: true }).fill("1");
  await expect(page.getByRole("button", { name: "Pay 1 ETH" })).toBeDisabled();
  await page.getByRole("button", { name: "Switch to Localnet" }).click();
  await expect(page.getByText("Wrong network")).toBeHidden();
  await expect(page.getByRole("button", { name: "Pay 1 ETH" })).toBeEnabled();
});

test("WalletConnect is offered if the host has a project ID, and its code is loaded only on use", async ({ page }) => {
  const { chainId, rpc, contract, token, authorities } = network();
  let walletConnectProjectId: string | undefined = "0123456789abcdef0123456789abcdef";
  await page.route("**/network.json", (route) => route.fulfill({ json: { chainId, rpc, contract, token, authorities, walletConnectProjectId } }));
  const loaded: string[] = [];
  page.on("request", (request) => loaded.push(request.url()));
  const isLoaded = (): boolean => loaded.some((url) => /wallet-connect-/.test(url));
  const dialog = page.getByRole("dialog");
  const open = async (): Promise<void> => {
    await page.goto("/");
    await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
    await expect(dialog.getByText("No wallet was found")).toBeVisible();
  };
  await open();
  const choice = dialog.getByRole("button", { name: "WalletConnect" });
  await expect(choice).toBeVisible();
  expect(isLoaded()).toBe(false);
  await choice.click();
  await expect.poll(isLoaded).toBe(true);

  walletConnectProjectId = undefined;
  await open();
  await expect(choice).toBeHidden();
  walletConnectProjectId = "a project";
  await page.goto("/");
  await expect(page.getByRole("alert")).toContainText("walletConnectProjectId is not 32 hexadecimal digits");
});
