/** One authority that lies, differently each time that it is asked. */

import type { Page } from "@playwright/test";
import { zeroAddress, zeroHash } from "viem";

import { authority, expect, goTo, pay, test } from "./support/people";

const LIAR = 0;
/** So many entries the page asks for at once: who tells them at once is not too late to be heard. */
const PAGE = 20;
const SOMEBODY = `0x${"77".repeat(20)}`;
const ACCOUNT = /\/v1\/accounts\/[^/?]+$/;

const isHonestLook = (url: string): boolean => authority(LIAR + 1).test(url) && ACCOUNT.test(url);

/** Has one authority tell of payments that nobody made, of one more at each look, and never show a certificate. */
async function haveItLie(page: Page): Promise<void> {
  let looks = 0;
  const count = (): string => String(1 + looks);
  const invented = (number: number) => {
    const parties = { sender: SOMEBODY, recipient: SOMEBODY };
    const sequence = String(number % 2);
    const payment = { type: "payment", ...parties, asset: zeroAddress, amount: "1", sequence, memo: zeroHash };
    return { number: String(number), payment, digest: zeroHash };
  };
  await page.route(authority(LIAR), async (route) => {
    const path = new URL(route.request().url()).pathname;
    if (path.includes("/certificates/")) return;
    if (path.endsWith("/received")) {
      // As authorities do: else the page would not get to see the lie.
      const headers = { "access-control-allow-origin": "*" };
      return route.fulfill({ headers, json: { total: count(), payments: [...Array(PAGE).keys()].map(invented) } });
    }
    if (!ACCOUNT.test(path)) return route.continue();
    looks += 1;
    const answer = await route.fetch();
    return route.fulfill({ response: answer, json: { ...(await answer.json()), received: count() } });
  });
}

test("a history is reread only when it has grown, and to its end, whatever one authority claims", async ({ person }) => {
  const alice = await person({ deposit: "1" });
  const bob = await person();
  let looks = 0;
  let readings = 0;
  bob.page.on("request", (request) => {
    if (isHonestLook(request.url())) looks += 1;
    // What the liar invented first is asked for once in each reading.
    if (request.url().endsWith(`${SOMEBODY}/certificates/0`) && authority(LIAR).test(request.url())) readings += 1;
  });
  await haveItLie(bob.page);
  await goTo(bob.page, "History");
  await expect(bob.page.getByText("Nothing yet.")).toBeVisible();
  await goTo(alice.page, "Pay");
  await pay(alice.page, bob.wallet.key.address, "0.5", "at last");
  await expect(bob.page.getByRole("region", { name: "History entries" })).toContainText("“at last”");
  const looksBefore = looks;
  await expect.poll(() => looks, { timeout: 180_000 }).toBeGreaterThan(looksBefore + 10);
  // As often as there was more, and not at each look.
  expect(readings).toBeLessThan(8);
  await bob.page.unrouteAll({ behavior: "ignoreErrors" });
});

test("one authority that always answers differently does not make the page poll every second forever", async ({ page, person }) => {
  await person();
  await haveItLie(page);
  await goTo(page, "Pay");
  const looksMs: number[] = [];
  page.on("request", (request) => {
    if (isHonestLook(request.url())) looksMs.push(Date.now());
  });
  const pauseMs = (): number => (looksMs.at(-1) ?? 0) - (looksMs.at(-2) ?? Number.POSITIVE_INFINITY);
  await expect.poll(pauseMs, { timeout: 180_000 }).toBeGreaterThan(8_000);
  await page.unrouteAll({ behavior: "ignoreErrors" });
});
