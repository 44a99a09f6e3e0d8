/** What the page does where the browser's storage fails, in the browser's own IndexedDB. */

import type { Page } from "@playwright/test";

import { activity, agree, expect, goTo, inFastPay, pay, picture, test } from "./support/people";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/** The orders that a page sends, as they were sent. */
function ordersOf(page: Page): string[] {
  const sent: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().endsWith("/v1/orders")) sent.push(request.postData() ?? "");
  });
  return sent;
}

/** The number of an order, and the order. */
const numbered = (body: string): [string, string] => [JSON.parse(body).transfer.sequence, body];

async function isRefused(page: Page): Promise<void> {
  const alert = activity(page, /^Pay 1 ETH/).getByRole("alert");
  await expect(alert).toContainText("This browser cannot store data");
  await expect(alert).toContainText("storage cannot be used");
  await expect(alert).toContainText("Nothing was sent");
}

test("with a full storage a signed order is not sent; once there is room it is paid", async ({ page, person }) => {
  await person({ deposit: "2" });
  const sent = ordersOf(page);
  await goTo(page, "Pay");
  const devtools = await page.context().newCDPSession(page);
  const origin = new URL(page.url()).origin;
  await devtools.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 1 });
  // Chromium remembers for 30 s how much room a page's database had.
  await page.waitForTimeout(31_000);
  await pay(page, BOB, "1");
  await isRefused(page);
  await expect(activity(page, /^Pay 1 ETH/).getByRole("alert")).toContainText("it is full");
  await picture(page, "no-room");
  expect(sent).toEqual([]);
  await devtools.send("Storage.overrideQuotaForOrigin", { origin });
  await activity(page, /^Pay 1 ETH/).getByRole("button", { name: "Try again" }).click();
  await expect(activity(page, /^Pay 1 ETH/).getByText("Done", { exact: true })).toBeVisible();
  expect(new Set(sent).size).toBe(1);
});

test("an order whose database transaction aborts is not sent", async ({ page, person }) => {
  await page.addInitScript(() => {
    const add = IDBObjectStore.prototype.add;
    IDBObjectStore.prototype.add = function (value, key) {
      const request = add.call(this, value, key);
      if (sessionStorage.getItem("gives-up") !== null) this.transaction.abort();
      return request;
    };
  });
  await person({ deposit: "2" });
  const sent = ordersOf(page);
  await goTo(page, "Pay");
  await page.evaluate(() => sessionStorage.setItem("gives-up", ""));
  await pay(page, BOB, "1");
  await isRefused(page);
  expect(sent).toEqual([]);
  await page.evaluate(() => sessionStorage.removeItem("gives-up"));
  await activity(page, /^Pay 1 ETH/).getByRole("button", { name: "Try again" }).click();
  await expect(activity(page, /^Pay 1 ETH/).getByText("Done", { exact: true })).toBeVisible();
});

test("an older page lets a newer version upgrade the storage, and asks to be reloaded", async ({ page, person }) => {
  await person({ deposit: "2" });
  const sent = ordersOf(page);
  const newer = await page.context().newPage();
  await newer.goto("/network.json");
  // It waits for the older page to make way: for ever, if that did not.
  const version = await newer.evaluate(
    () =>
      new Promise<number>((resolve, reject) => {
        const request = indexedDB.open("fastpay", 2);
        request.onsuccess = () => resolve(request.result.version);
        request.onerror = () => reject(request.error);
      }),
  );
  expect(version).toBe(2);
  await goTo(page, "Pay");
  await pay(page, BOB, "1");
  const alert = activity(page, /^Pay 1 ETH/).getByRole("alert");
  await expect(alert).toContainText("A newer version of this page changed the browser's storage");
  await expect(alert).toContainText("Reload this page.");
  expect(sent).toEqual([]);
});

test("a storage that is cleared meanwhile starts empty, and the next order has the next number", async ({ page, person }) => {
  await person({ deposit: "2" });
  await goTo(page, "Pay");
  await pay(page, BOB, "0.5");
  await expect(activity(page, /^Pay 0.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Storage.clearDataForOrigin", { origin: new URL(page.url()).origin, storageTypes: "indexeddb" });
  const sent = ordersOf(page);
  await pay(page, BOB, "1");
  await expect(activity(page, /^Pay 1 ETH/).getByText("Done", { exact: true })).toBeVisible();
  expect(new Set(sent.map((body) => numbered(body)[0]))).toEqual(new Set(["1"]));
});

test("a lock that another tab steals does not stop a running payment", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "2" });
  const sent = ordersOf(page);
  await goTo(page, "Pay");
  let sign = (): void => undefined;
  wallet.thinks = new Promise((resolve) => (sign = resolve));
  await pay(page, BOB, "1");
  await expect.poll(() => wallet.asked).toContain("eth_signTypedData_v4");
  const other = await page.context().newPage();
  await other.goto("/network.json");
  const stolen = await other.evaluate(async () => {
    const { held = [] } = await navigator.locks.query();
    const names = held.flatMap(({ name }) => (name?.startsWith("fastpay:") ? [name] : []));
    await Promise.all(names.map((name) => navigator.locks.request(name, { steal: true }, () => undefined)));
    return names.length;
  });
  expect(stolen).toBe(1);
  sign();
  await expect(activity(page, /^Pay 1 ETH/).getByText("Done", { exact: true })).toBeVisible();
  expect(new Set(sent).size).toBe(1);
});

test("if the browser refuses locks, no order is signed, and the page says why", async ({ page, person }) => {
  await page.addInitScript(() => {
    const request = LockManager.prototype.request as (...of: unknown[]) => Promise<unknown>;
    LockManager.prototype.request = function (this: LockManager, ...of: unknown[]): Promise<unknown> {
      if (sessionStorage.getItem("no-locks") === null) return request.apply(this, of);
      return Promise.reject(new DOMException("access to the locks is denied", "SecurityError"));
    } as typeof LockManager.prototype.request;
  });
  const { wallet } = await person({ deposit: "2" });
  await goTo(page, "Pay");
  await page.evaluate(() => sessionStorage.setItem("no-locks", ""));
  await pay(page, BOB, "1");
  const alert = activity(page, /^Pay 1 ETH/).getByRole("alert");
  await expect(alert).toContainText("This browser cannot store data");
  await expect(alert).toContainText("its locks fail: access to the locks is denied");
  expect(wallet.asked).toEqual(["eth_requestAccounts"]);
  await page.evaluate(() => sessionStorage.removeItem("no-locks"));
  await activity(page, /^Pay 1 ETH/).getByRole("button", { name: "Try again" }).click();
  await expect(activity(page, /^Pay 1 ETH/).getByText("Done", { exact: true })).toBeVisible();
});

for (const withLocks of [true, false]) {
  test(`two tabs that pay at the same moment ${withLocks ? "pay one after the other" : "never send two orders with one number without shared locks"}`, async ({ page, person }) => {
    const { wallet } = await person({ deposit: "3" });
    const context = page.context();
    // Pages that are not served securely have no Web Locks.
    if (!withLocks) await context.addInitScript(() => Object.defineProperty(Navigator.prototype, "locks", { value: undefined }));
    const second = await context.newPage();
    await wallet.inject(second);
    await second.goto("/");
    await page.reload();
    for (const tab of [page, second]) {
      await expect(tab.getByRole("banner").getByRole("button", { name: /^Account 0x/ })).toBeVisible();
    }
    const sent = [ordersOf(page), ordersOf(second)];
    const amounts = ["1", "0.5"];
    for (const [number, tab] of [page, second].entries()) {
      await goTo(tab, "Pay");
      await expect(tab.getByText("You have 3 ETH in FastPay")).toBeVisible();
      await tab.getByLabel("To", { exact: true }).fill(BOB);
      await tab.getByLabel("Amount", { exact: true }).fill(amounts[number] ?? "");
    }
    await Promise.all([page, second].map((tab) => tab.getByRole("button", { name: /^Pay \d/ }).click()));
    await Promise.all([page, second].map(agree));
    for (const [number, tab] of [page, second].entries()) {
      const work = activity(tab, new RegExp(`^Pay ${amounts[number]} ETH`));
      // Without locks the one that comes second may be told so; then it goes on.
      await expect(async () => {
        const again = work.getByRole("button", { name: "Try again" });
        if (await again.isVisible()) await again.click();
        await expect(work.getByText("Done", { exact: true })).toBeVisible({ timeout: 2_000 });
      }).toPass();
    }
    const byNumber = new Map<string, Set<string>>();
    for (const [sequence, body] of sent.flat().map(numbered)) {
      byNumber.set(sequence, (byNumber.get(sequence) ?? new Set()).add(body));
    }
    expect([...byNumber.values()].map((bodies) => bodies.size)).toEqual([1, 1]);
    await goTo(page, "Wallet");
    await expect(inFastPay(page, "ETH")).toHaveText("1.5");
  });
}
