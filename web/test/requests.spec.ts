/** How often the page asks: when somebody comes back to it with a history, and while nothing happens. */

import type { Page } from "@playwright/test";

import { activity, expect, goTo, pay, test } from "./support/people";

const ORDERS = 6;
const LOAD_MAX = 15;
const IDLE_MS = 20_000;
const IDLE_MAX = 5;

/** What is asked of authorities, relayers and the Ethereum node; the page's own files are another test's. */
function asked(page: Page): string[] {
  const requests: string[] = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(process.env.WEB_URL ?? "")) requests.push(`${request.method()} ${request.url()}`);
  });
  return requests;
}

test("a wallet with six orders sends few requests, and an idle page almost none", async ({ person }) => {
  test.slow();
  const { page } = await person({ deposit: "2" });
  await goTo(page, "Pay");
  for (let number = 1; number <= ORDERS; number += 1) {
    await pay(page, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", `0.0${number}`);
    await expect(activity(page, `Pay 0.0${number} ETH`).getByText("Done", { exact: true })).toBeVisible();
  }
  // The page after the last payment still reads what it changed.
  await page.goto("about:blank");
  const requests = asked(page);
  await page.goto("/");
  await expect(page.getByRole("region", { name: "History entries" }).getByRole("listitem")).toHaveCount(5);
  await page.waitForTimeout(3_000);
  console.log(`${requests.length} requests with a history of ${ORDERS} orders`);
  expect(requests.length, requests.join("\n")).toBeLessThanOrEqual(LOAD_MAX);
  requests.length = 0;
  await page.waitForTimeout(IDLE_MS);
  console.log(`${requests.length} requests in ${IDLE_MS / 1_000} idle seconds`);
  expect(requests.length, requests.join("\n")).toBeLessThanOrEqual(IDLE_MAX);
});
