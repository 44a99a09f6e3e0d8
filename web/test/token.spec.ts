/** A token of which the Ethereum node says nothing for a while: nobody knows how many of its units an amount is. */

import { isAccessible } from "./support/axe";
import { network } from "./support/net";
import { activity, agree, expect, goTo, picture, test } from "./support/people";

test("an unreadable token is reported, cannot be used, and is retried", async ({ page, person }) => {
  await person({ tokens: "40" });
  const { chainId, contract, token, rpc } = network();
  await goTo(page, "Deposit");
  await page.getByLabel("Asset").selectOption("DEMO");
  await page.getByLabel("Amount", { exact: true }).fill("25");
  await page.getByRole("button", { name: "Deposit 25 DEMO" }).click();
  await agree(page);
  await expect(activity(page, "Deposit 25 DEMO").getByText("Done", { exact: true })).toBeVisible();

  // As in a browser that has never read the token.
  await page.evaluate(() => {
    for (const key of Object.keys(localStorage).filter((name) => name.startsWith("fastpay.tokens."))) localStorage.removeItem(key);
  });
  let isAway = true;
  const isOfIt = (body: string | null): boolean => body?.toLowerCase().includes(token.slice(2).toLowerCase()) === true;
  await page.route(rpc, (route) => (isAway && isOfIt(route.request().postData()) ? route.abort() : route.continue()));
  const unknown = page.getByRole("alert").filter({ hasText: "This token cannot be read" });

  // A link gives units, so that only their name is missing.
  await page.goto(`/pay#fastpay:0x70997970C51812dc3A010C7d01b50e0d17dc79C8@${chainId}/${contract}?asset=${token}&amount=5000000`);
  await expect(page.getByText("Payment link")).toBeVisible();
  await expect(unknown).toBeVisible();
  await expect(page.getByRole("button", { name: "Pay", exact: true })).toBeDisabled();
  await isAccessible(page);
  await picture(page, "token-not-known");
  await page.getByRole("button", { name: "Clear" }).click();
  for (const place of ["Pay", "Redeem"]) {
    await goTo(page, place);
    await page.getByLabel("Asset").selectOption({ value: token.toLowerCase() });
    await page.getByLabel("Amount", { exact: true }).fill("5");
    await expect(unknown).toBeVisible();
    await expect(page.getByText("Your balance cannot be read")).toBeVisible();
    await expect(page.getByRole("button", { name: place, exact: true })).toBeDisabled();
  }
  await goTo(page, "Receive");
  await page.getByLabel("Asset").selectOption({ value: token.toLowerCase() });
  await page.getByLabel("Amount (optional)").fill("5");
  await expect(unknown).toBeVisible();
  await expect(page.getByText("No code or link can be shown. ")).toBeVisible();
  await expect(page.getByTestId("payment-link")).toBeHidden();
  await isAccessible(page);

  isAway = false;
  await expect(page.getByRole("img", { name: "QR code that asks for 5 DEMO" })).toBeVisible();
  await expect(unknown).toBeHidden();
  await goTo(page, "Pay");
  await page.getByLabel("Asset").selectOption("DEMO");
  await expect(page.getByText("You have 25 DEMO in FastPay")).toBeVisible();
});
