/** While no Ethereum node answers, a page that was here before starts with the committees that it stored, and pays. */

import { network } from "./support/net";
import { activity, agree, expect, goTo, inFastPay, pay, test } from "./support/people";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

for (const state of ["refuses connections", "never answers"] as const) {
  test(`the Ethereum node ${state}: the page starts, shows balances in FastPay, and pays`, async ({ page, person }) => {
    await person({ deposit: "3" });
    await page.route(network().rpc, (route) => (state === "never answers" ? undefined : route.abort()));
    await page.reload();
    await expect(inFastPay(page, "ETH")).toHaveText("3");
    await goTo(page, "Pay");
    await pay(page, BOB, "1.25");
    const work = activity(page, /^Pay 1.25 ETH/);
    await expect(work.getByText("Settled and final: the money has arrived: done")).toBeVisible();
    await goTo(page, "Wallet");
    await expect(inFastPay(page, "ETH")).toHaveText("1.75");
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });
}

test("a known token can be paid while the Ethereum node never answers", async ({ page, person }) => {
  await person({ tokens: "40" });
  await goTo(page, "Deposit");
  await page.getByLabel("Asset").selectOption("DEMO");
  await page.getByLabel("Amount", { exact: true }).fill("25");
  await page.getByRole("button", { name: "Deposit 25 DEMO" }).click();
  await agree(page);
  await expect(activity(page, "Deposit 25 DEMO").getByText("Done", { exact: true })).toBeVisible();
  await page.route(network().rpc, () => undefined);
  await page.goto("/pay");
  await page.getByLabel("Asset").selectOption("DEMO");
  await pay(page, BOB, "5");
  await expect(activity(page, /^Pay 5 DEMO/).getByText("Done", { exact: true })).toBeVisible();
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a browser without stored committees reports that Ethereum does not answer", async ({ page }) => {
  await page.route(network().rpc, (route) => route.abort());
  await page.goto("/");
  await expect(page.getByText("This page cannot reach its network")).toBeVisible();
  await page.unrouteAll({ behavior: "ignoreErrors" });
});
