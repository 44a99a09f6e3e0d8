/** A history is one list, the newest first, with a time in each row; it is filtered, saved as a file and printed. */

import { readFile } from "node:fs/promises";

import type { Page } from "@playwright/test";

import { activity, expect, goTo, pay, picture, test } from "./support/people";

async function paid(page: Page, to: string, amount: string, memo: string): Promise<void> {
  await goTo(page, "Pay");
  await pay(page, to, amount, memo);
  await expect(activity(page, `Pay ${amount} ETH`).getByText("Done", { exact: true })).toBeVisible();
}

test("a history is ordered, can be filtered, saved and printed", async ({ person }) => {
  test.slow();
  const bob = await person();
  const alice = await person({ deposit: "2" });
  const [a, b] = [alice.wallet.key.address, bob.wallet.key.address];
  // What has no time of its own gets that of the first look.
  await goTo(alice.page, "History");
  const rows = alice.page.getByRole("region", { name: "History entries" }).getByRole("listitem");
  await expect(rows).toHaveCount(1);
  await paid(alice.page, b, "0.5", "rent");
  await goTo(bob.page, "History");
  await expect(bob.page.getByRole("region", { name: "History entries" })).toContainText("“rent”");
  await paid(bob.page, a, "0.1", "change");
  await goTo(alice.page, "History");
  await expect(rows).toHaveCount(3);
  await paid(alice.page, b, "0.2", "food");

  await goTo(alice.page, "History");
  await expect(rows).toHaveCount(4);
  await expect(rows.getByRole("link", { name: /show the proof/ })).toHaveText(["−0.2 ETH", "+0.1 ETH", "−0.5 ETH", "+2 ETH"]);
  await expect(rows.locator("time")).toHaveText([/, ordered /, /, by /, /, ordered /, /, by /]);
  const times = await rows.locator("time").evaluateAll((all) => all.map((one) => Date.parse((one as HTMLTimeElement).dateTime)));
  expect(times).toEqual([...times].sort((one, other) => other - one));
  await picture(alice.page, "history-list");
  // Also after a reload, and not with the times of that.
  await alice.page.reload();
  await expect(rows).toHaveCount(4);
  await expect
    .poll(() => rows.locator("time").evaluateAll((all) => all.map((one) => Date.parse((one as HTMLTimeElement).dateTime))))
    .toEqual(times);

  await alice.page.getByLabel("Kind").selectOption("Sent");
  await expect(rows).toHaveCount(2);
  await alice.page.getByLabel("Account, memo or digest").fill("RENT");
  await expect(rows.getByRole("link", { name: /show the proof/ })).toHaveText(["−0.5 ETH"]);
  const download = alice.page.waitForEvent("download");
  await alice.page.getByRole("button", { name: "Save as CSV" }).click();
  const csv = (await readFile(await (await download).path(), "utf8")).trim().split("\n");
  expect(csv).toHaveLength(2);
  expect(csv[1]).toContain(`,${b},`);
  await alice.page.getByLabel("Account, memo or digest").fill("nobody");
  await expect(alice.page.getByText("No loaded entry matches.")).toBeVisible();
  await alice.page.getByLabel("Kind").selectOption("Everything");
  await alice.page.getByLabel("Account, memo or digest").fill("");
  await expect(rows).toHaveCount(4);

  await rows.getByRole("link", { name: /^−0.5 ETH/ }).click();
  await alice.page.evaluate(() => Object.assign(window, { print: () => (document.title = "printed") }));
  await alice.page.getByRole("button", { name: "Print a receipt" }).click();
  await expect(alice.page).toHaveTitle("printed");
  await alice.page.emulateMedia({ media: "print" });
  await expect(alice.page.getByRole("region", { name: "Transfer" })).toContainText("rent");
  await expect(alice.page.getByText(/^Ordered in this browser/)).toBeVisible();
  await expect(alice.page.getByRole("banner")).toBeHidden();
  await expect(alice.page.getByRole("button", { name: "Print a receipt" })).toBeHidden();
  await picture(alice.page, "receipt");
});
