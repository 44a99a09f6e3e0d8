import { deployToken, mineReverting, network, withoutBlocks } from "./support/net";
import { activity, addAndDeposit, agree, expect, goTo, inFastPay, picture, test } from "./support/people";

test("ETH is deposited: submitted, in a block, final, credited", async ({ page, person }) => {
  const { wallet } = await person();
  await goTo(page, "Deposit");
  await page.getByLabel("Amount", { exact: true }).fill("2.5");
  await page.getByRole("button", { name: "Deposit 2.5 ETH" }).click();
  await agree(page);
  const work = activity(page, "Deposit 2.5 ETH");
  await expect(work.getByText("Submitted to Ethereum: done")).toBeVisible();
  // What was sent is not offered again.
  await expect(page.getByLabel("Amount", { exact: true })).toHaveValue("");
  await expect(work.getByText("Credited in FastPay: done")).toBeVisible();
  await expect(work.getByText(/[34] authorities, 3 are needed/)).toBeVisible();
  await picture(page, "deposit");
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("2.5");
  expect(wallet.asked.filter((method) => method === "eth_sendTransaction")).toHaveLength(1);
});

test("a submitted deposit survives a silent Ethereum node and a reload, and is sent once", async ({ page, person }) => {
  const { wallet } = await person();
  await goTo(page, "Deposit");
  await page.getByLabel("Amount", { exact: true }).fill("1.5");
  // From the wallet's transaction on the page hears nothing of the chain.
  let isAway = true;
  const isSent = (): boolean => wallet.asked.includes("eth_sendTransaction");
  await page.route(network().rpc, (route) => (isAway && isSent() ? route.abort() : route.continue()));
  await page.getByRole("button", { name: "Deposit 1.5 ETH" }).click();
  await agree(page);
  const work = activity(page, "Deposit 1.5 ETH");
  await expect(work.getByText("Submitted to Ethereum: done")).toBeVisible();
  await expect(work.getByText("The Ethereum node does not answer; retrying")).toBeVisible();
  await expect(work.getByRole("alert")).toBeHidden();

  await work.getByRole("button", { name: "Stop waiting" }).click();
  await expect(work.getByRole("alert")).toContainText("do not deposit it again");
  await work.getByRole("button", { name: "Continue" }).click();
  await expect(work.getByText("On its way", { exact: true })).toBeVisible();

  isAway = false;
  await page.reload();
  await expect(work.getByText("Credited in FastPay: done")).toBeVisible();
  await expect(work.getByText("Done", { exact: true })).toBeVisible();
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("1.5");
  expect(wallet.asked.filter((method) => method === "eth_sendTransaction")).toHaveLength(1);
  // What is credited is not followed again.
  await page.reload();
  await expect(inFastPay(page, "ETH")).toHaveText("1.5");
  await expect(work).toBeHidden();
});

test("before the wallet is asked, the review shows a deposit's sender, recipient, contract, amount and remaining balance", async ({ page, person }) => {
  const { wallet } = await person();
  await goTo(page, "Deposit");
  await page.getByLabel("Amount", { exact: true }).fill("2.5");
  await page.getByRole("button", { name: "Deposit 2.5 ETH" }).click();
  const review = page.getByRole("region", { name: "Review" });
  await expect(review.getByRole("heading")).toHaveText("Deposit 2.5 ETH?");
  await expect(review.getByRole("heading")).toBeFocused();
  for (const text of [wallet.key.address, network().contract, "97.5 ETH, less gas", "one transaction"]) {
    await expect(review).toContainText(text, { ignoreCase: true });
  }
  await picture(page, "deposit-review");
  await review.getByRole("button", { name: "Back" }).click();
  await expect(page.getByLabel("Amount", { exact: true })).toHaveValue("2.5");
  expect(wallet.asked).not.toContain("eth_sendTransaction");
});

test("nothing can be deposited before the balance is known", async ({ page, person }) => {
  await page.clock.install();
  await person();
  let isAway = true;
  const asksForIt = (body: string | null): boolean => body?.includes("eth_getBalance") === true;
  await page.route(network().rpc, (route) => (isAway && asksForIt(route.request().postData()) ? route.abort() : route.continue()));
  await page.goto("/deposit");
  await page.getByLabel("Amount", { exact: true }).fill("101");
  await expect(page.getByRole("alert").filter({ hasText: "Your balance on Ethereum cannot be read" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Deposit 101 ETH" })).toBeDisabled();
  isAway = false;
  // The node is asked again twice a minute.
  await page.clock.fastForward("00:31");
  await expect(page.getByText("Not enough money: 100 ETH available.")).toBeVisible();
  await page.getByLabel("Amount", { exact: true }).fill("1");
  await expect(page.getByRole("button", { name: "Deposit 1 ETH" })).toBeEnabled();
});

test("a token is deposited by a permit, in one transaction", async ({ page, person }) => {
  const { wallet } = await person({ tokens: "40" });
  await goTo(page, "Deposit");
  await page.getByLabel("Asset").selectOption("DEMO");
  await expect(page.getByText("You have 40 DEMO on Localnet")).toBeVisible();
  await page.getByLabel("Amount", { exact: true }).fill("25");
  await page.getByRole("button", { name: "Deposit 25 DEMO" }).click();
  await agree(page);
  await expect(activity(page, "Deposit 25 DEMO").getByText("Done", { exact: true })).toBeVisible();
  expect(wallet.asked.slice(1)).toEqual(["eth_signTypedData_v4", "eth_sendTransaction"]);
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "DEMO")).toHaveText("25");
});

test("a declined deposit is reported, moves nothing, and can be retried from the form", async ({ page, person }) => {
  const { wallet } = await person();
  wallet.declines = true;
  let decide = (): void => undefined;
  wallet.thinks = new Promise((resolve) => {
    decide = resolve;
  });
  await goTo(page, "Deposit");
  await page.getByLabel("Amount", { exact: true }).fill("1");
  await page.getByRole("button", { name: "Deposit 1 ETH" }).click();
  await agree(page);
  const work = activity(page, "Deposit 1 ETH");
  // What was reviewed stays in sight while the wallet asks.
  const asked = work.getByRole("region", { name: "To be signed" });
  for (const text of [wallet.key.address, network().contract]) await expect(asked).toContainText(text, { ignoreCase: true });
  decide();
  await expect(work.getByRole("alert")).toContainText("You declined");
  await expect(asked).toBeHidden();
  await expect(page.getByLabel("Amount", { exact: true })).toHaveValue("1");
});

test("a reverted deposit is reported, moves nothing, and can be retried from the form", async ({ page, person }) => {
  const { wallet } = await person();
  const token = await deployToken(wallet.key);
  await addAndDeposit(page, token, "NEW", "4");
  const amount = page.getByLabel("Amount", { exact: true });
  const work = activity(page, "Deposit 3 NEW");
  const deposit = async (): Promise<void> => {
    await page.getByRole("button", { name: "Deposit 3 NEW" }).click();
    await agree(page);
    await expect(work.getByText("Submitted to Ethereum: done")).toBeVisible();
    await expect(amount).toHaveValue("");
  };
  await amount.fill("3");
  await withoutBlocks(async () => {
    await deposit();
    await mineReverting(token);
  });
  await expect(work.getByRole("alert")).toContainText("was reverted");
  await expect(work.getByRole("alert")).toContainText("Nothing happened, but the gas is spent");
  await expect(work.getByRole("button", { name: "Try again" })).toBeHidden();
  await expect(page.getByLabel("Asset").locator("option:checked")).toContainText("NEW");
  await expect(amount).toHaveValue("3");
  await picture(page, "deposit-reverted");
  await work.getByRole("button", { name: "Close" }).click();

  await deposit();
  await expect(work.getByText("Done", { exact: true })).toBeVisible();
  await expect(amount).toHaveValue("");
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "NEW")).toHaveText("7");
});

test("a declined deposit is not offered again after another one was made", async ({ page, person }) => {
  const { wallet } = await person();
  await goTo(page, "Deposit");
  wallet.declines = true;
  await page.getByLabel("Amount", { exact: true }).fill("1");
  await page.getByRole("button", { name: "Deposit 1 ETH" }).click();
  await agree(page);
  const declined = activity(page, "Deposit 1 ETH");
  await expect(declined.getByRole("button", { name: "Try again" })).toBeVisible();
  wallet.declines = false;
  await page.getByLabel("Amount", { exact: true }).fill("2");
  await page.getByRole("button", { name: "Deposit 2 ETH" }).click();
  await agree(page);
  await expect(activity(page, "Deposit 2 ETH").getByText("Done", { exact: true })).toBeVisible();
  await expect(declined.getByRole("button", { name: "Try again" })).toBeHidden();
});

test("the form refuses amounts above the balance and text that is not an amount", async ({ page, person }) => {
  await person();
  await goTo(page, "Deposit");
  const amount = page.getByLabel("Amount", { exact: true });
  await amount.fill("101");
  await expect(page.getByText("Not enough money: 100 ETH available.")).toBeVisible();
  await amount.fill("1e3");
  await expect(page.getByText("Write digits with at most one decimal point")).toBeVisible();
  await expect(page.getByRole("button", { name: "Deposit", exact: true })).toBeDisabled();
});
