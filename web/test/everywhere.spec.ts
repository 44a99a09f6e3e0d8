/** What holds on every page: axe finds nothing, in both colour schemes, and a phone's screen suffices. */

import type { Page } from "@playwright/test";

import { isAccessible } from "./support/axe";
import { activity, expect, goTo, pay, picture, test } from "./support/people";

const PLACES = ["/", "/pay", "/pay/list", "/receive", "/deposit", "/redeem", "/history", "/explore", "/network", "/help", "/contacts"];

async function isQuiet(page: Page): Promise<void> {
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.getByText(/^(Asking|Gathering)/)).toHaveCount(0);
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`axe reports no violation in the ${colorScheme} theme`, async ({ page, person }) => {
    test.slow();
    const refused: string[] = [];
    page.on("console", (message) => {
      if (/content security policy/i.test(message.text())) refused.push(message.text());
    });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.goto("/");
    await isQuiet(page);
    await isAccessible(page);
    await picture(page, `welcome-${colorScheme}`);
    const { wallet } = await person({ deposit: "2" });
    await goTo(page, "Pay");
    await pay(page, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0.5", "all of them");
    const work = activity(page, /^Pay 0.5 ETH/);
    await expect(work.getByText("Done", { exact: true })).toBeVisible();
    await isAccessible(page);
    await work.getByRole("link", { name: "Show its certificate" }).click();
    await page.getByRole("button", { name: /valid votes/ }).first().click();
    const transfer = new URL(page.url()).pathname;
    const history = ["/", "/history", `/explore/account/${wallet.key.address}`];
    for (const place of [...new Set([...PLACES, transfer, ...history, "/explore/deposit/1", "/nowhere"])]) {
      await page.goto(place);
      await isQuiet(page);
      // Also where there is none.
      await expect(page.getByRole("navigation", { name: "Places" })).toBeVisible();
      // With what it has gathered, and not before it has begun to.
      if (history.includes(place)) await expect(page.getByRole("region", { name: "History entries" })).toBeVisible();
      await isAccessible(page);
      await picture(page, `page-${place.replace(/[^a-z]+/g, "-").slice(0, 20)}-${colorScheme}`);
    }
    // The page needs nothing that it forbids itself.
    expect(refused).toEqual([]);
  });
}

test.describe("on a phone", () => {
  test.use({ viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true });

  test("every page fits the screen, and a payment is made", async ({ page, person }) => {
    test.slow();
    const { wallet } = await person({ deposit: "2" });
    await goTo(page, "Pay");
    await pay(page, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0.123456789012345678", "on the way");
    const work = activity(page, /^Pay 0.12/);
    await expect(work.getByText("Done", { exact: true })).toBeVisible();
    await picture(page, "phone-paid");
    await work.getByRole("link", { name: "Show its certificate" }).click();
    await expect(page.getByRole("heading", { name: /^Payment of/ })).toBeVisible();
    const transfer = new URL(page.url()).pathname;
    const others = [transfer, `/explore/account/${wallet.key.address}`, "/explore/deposit/1", `/explore/transaction/0x${"12".repeat(32)}`, "/nowhere"];
    for (const place of [...PLACES, ...others]) {
      await page.goto(place);
      await isQuiet(page);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(width, `${place} is wider than the screen`).toBeLessThanOrEqual(375);
      await isAccessible(page);
      await picture(page, `phone-${place.replace(/[^a-z]+/g, "-").slice(0, 20)}`);
    }
  });
});
