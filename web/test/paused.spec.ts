import { activity, expect, goTo, pay, picture, test } from "./support/people";
import { guardianDoes, passTime } from "./support/net";

test("while the contract is paused, deposits and redemptions stop and payments continue", async ({ page, person }) => {
  await page.clock.install();
  await person({ deposit: "2" });
  // The guardian may not pause again for a while after an earlier run.
  await passTime(3_700);
  await guardianDoes("pause");
  try {
    // The page that stands open looks at the contract twice a minute.
    await page.clock.fastForward("00:31");
    const notice = page.getByRole("alert").filter({ hasText: "The contract is paused" });
    await expect(notice).toContainText("the pause ends by itself");
    await picture(page, "paused");
    await goTo(page, "Deposit");
    await page.getByLabel("Amount", { exact: true }).fill("1");
    await expect(page.getByRole("button", { name: "Deposit 1 ETH" })).toBeDisabled();
    await goTo(page, "Redeem");
    await expect(notice).toBeVisible();
    await page.getByLabel("Amount", { exact: true }).fill("1");
    await expect(page.getByRole("button", { name: "Redeem 1 ETH" })).toBeDisabled();
    await goTo(page, "Pay");
    await pay(page, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0.5");
    await expect(activity(page, /^Pay 0.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
  } finally {
    await guardianDoes("unpause");
  }
  await goTo(page, "Deposit");
  await page.getByLabel("Amount", { exact: true }).fill("1");
  await expect(page.getByRole("button", { name: "Deposit 1 ETH" })).toBeEnabled();
});
