/** Who comes with an empty wallet is told what to do first; a localnet gives ETH to try it with. */

import { isAccessible } from "./support/axe";
import { activity, agree, connect, expect, goTo, inFastPay, picture, test } from "./support/people";
import { TestWallet } from "./support/wallet";

test("an empty wallet gets test ETH and deposits; then the first steps disappear", async ({ page }) => {
  const wallet = new TestWallet();
  await wallet.inject(page);
  await page.goto("/");
  await connect(page);
  const steps = page.getByRole("region", { name: "First steps" });
  await expect(steps).toContainText("Your wallet is empty on Localnet");
  await isAccessible(page);
  await picture(page, "first-steps");
  await steps.getByRole("button", { name: "Give me 10 ETH on this localnet" }).click();
  await expect(steps).toContainText("Your wallet has money on Localnet.");
  await expect(page.getByTestId("on-chain").first()).toHaveText("10");
  await steps.getByRole("link", { name: "Deposit" }).click();
  await page.getByLabel("Amount", { exact: true }).fill("1");
  await page.getByRole("button", { name: "Deposit 1 ETH" }).click();
  await agree(page);
  await expect(activity(page, "Deposit 1 ETH").getByText("Done", { exact: true })).toBeVisible();
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("1");
  await expect(steps).toBeHidden();
});
