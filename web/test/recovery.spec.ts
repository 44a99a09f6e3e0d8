import type { Page } from "@playwright/test";

import { isAccessible } from "./support/axe";
import { activity, authority, connect, expect, goTo, inFastPay, pay, picture, test } from "./support/people";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/** Pays 1 ETH, of which two authorities hear: they vote for it and are locked; a quorum would be three. */
async function payHalf(page: Page): Promise<void> {
  await goTo(page, "Pay");
  await expect(page.getByText("You have 3 ETH in FastPay")).toBeVisible();
  for (const number of [2, 3]) {
    await page.route(authority(number), (route) =>
      route.request().method() === "POST" ? route.abort() : route.continue(),
    );
  }
  await pay(page, BOB, "1");
  await expect(activity(page, /^Pay 1 ETH/).getByText("2 of 3 votes")).toBeVisible();
}

test("a payment interrupted by a reload is finished without a second signature, and paid once", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "3" });
  await payHalf(page);
  await picture(page, "half-done");

  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.reload();
  const finish = activity(page, "Finish an earlier order");
  await expect(finish.getByText("Settled and final: the money has arrived: done")).toBeVisible();
  await picture(page, "resumed");
  expect(wallet.asked.filter((method) => method === "eth_signTypedData_v4")).toHaveLength(1);
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("2");

  // The next one has the next number: nothing is locked.
  await goTo(page, "Pay");
  await pay(page, BOB, "0.5");
  await expect(activity(page, /^Pay 0.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await goTo(page, "History");
  await expect(page.getByRole("region", { name: "History entries" }).getByRole("listitem").filter({ hasText: "−" })).toHaveCount(2);
});

test("a payment whose number another device took is shown as not done, without the other order's steps", async ({ page, browser, person }) => {
  const { wallet } = await person({ deposit: "3" });
  await goTo(page, "Pay");
  let sign = (): void => undefined;
  wallet.thinks = new Promise((resolve) => (sign = resolve));
  await pay(page, BOB, "1");
  await expect.poll(() => wallet.asked).toContain("eth_signTypedData_v4");

  const context = await browser.newContext({ baseURL: process.env.WEB_URL ?? "" });
  const other = await context.newPage();
  await wallet.inject(other);
  await other.goto("/");
  await connect(other);
  await goTo(other, "Pay");
  await pay(other, BOB, "0.5");
  await expect(activity(other, /^Pay 0.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await context.close();

  sign();
  const work = activity(page, /^Pay 1 ETH/);
  await expect(work.getByRole("alert")).toContainText("Another order took its place");
  await expect(work.getByText(/^Signed.*: done$/)).toBeVisible();
  await expect(work.getByText("Certified: a quorum of authorities voted for it: done")).toBeHidden();
  await expect(work.getByText("Settled and final: the money has arrived: done")).toBeHidden();
  await expect(work.getByText(/votes/)).toBeHidden();
  await expect(work.getByRole("link", { name: "Show its certificate" })).toBeHidden();
  await picture(page, "superseded");
});

test("an order of another device is found and finished before the next one is made", async ({ page, browser, person }) => {
  const { wallet } = await person({ deposit: "3" });
  await payHalf(page);
  // This device is gone for good, with what it had stored.
  await page.close();

  const context = await browser.newContext({ baseURL: process.env.WEB_URL ?? "" });
  const other = await context.newPage();
  await wallet.inject(other);
  await other.goto("/");
  await connect(other);
  const notice = other.getByRole("alert").filter({ hasText: "Unfinished order" });
  await expect(notice).toContainText("Order #0 pays 1 ETH");
  await isAccessible(other);
  await picture(other, "other-device");
  await notice.getByRole("button", { name: "Finish it now" }).click();
  await expect(inFastPay(other, "ETH")).toHaveText("2");
  await expect(notice).toBeHidden();
  await context.close();
});
