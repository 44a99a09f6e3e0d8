import { encodeMemo } from "@fastpay/sdk";
import { pad } from "viem";

import { isAccessible } from "./support/axe";
import { keyboard } from "./support/hands";
import { network } from "./support/net";
import { activity, agree, authority, expect, goTo, inFastPay, pay, picture, test } from "./support/people";

test("alice pays bob: certified, then settled; bob sees it arrive", async ({ person }) => {
  const alice = await person({ deposit: "5" });
  const bob = await person();
  await goTo(alice.page, "Pay");
  await picture(alice.page, "pay");
  await pay(alice.page, bob.wallet.key.address, "1.25", "invoice 7");
  const work = activity(alice.page, /^Pay 1.25 ETH/);
  await expect(work.getByText("Certified: a quorum of authorities voted for it: done")).toBeVisible();
  await expect(work.getByText("Settled and final: the money has arrived: done")).toBeVisible();
  await expect(work.getByText(/[34] of 3 votes, in/)).toBeVisible();
  await picture(alice.page, "paid");

  await expect(inFastPay(bob.page, "ETH")).toHaveText("1.25");
  await expect(bob.page.getByRole("region", { name: "History entries" })).toContainText("“invoice 7”");
  await picture(bob.page, "received");
  await goTo(alice.page, "Wallet");
  await expect(inFastPay(alice.page, "ETH")).toHaveText("3.75");

  await goTo(alice.page, "History");
  const sent = alice.page.getByRole("region", { name: "History entries" });
  await expect(sent).toContainText("−1.25 ETH");
  await expect(sent).toContainText(/ordered .*, certified after .*, settled after/);
  await picture(alice.page, "history");
});

test("the recipient is notified of a payment without a reload", async ({ person }) => {
  const bob = await person();
  // While her deposit becomes final, his page has long begun to listen.
  const alice = await person({ deposit: "1" });
  await goTo(alice.page, "Pay");
  await pay(alice.page, bob.wallet.key.address, "0.5", "thanks");
  await expect(bob.page.getByText(/^Received 0.5 ETH from 0x/)).toBeVisible();
});

test("before signing, the review shows recipient, amount, remaining balance, and whether it is a first payment", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "2" });
  const bob = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8" as const;
  await goTo(page, "Pay");
  await page.getByLabel("To", { exact: true }).fill(bob.toLowerCase());
  await page.getByLabel("Amount", { exact: true }).fill("0.5");
  await page.getByLabel("Memo (optional)").fill("rent");
  // Twice in one place, as people do.
  await page.getByRole("button", { name: "Pay 0.5 ETH" }).dblclick();
  const review = page.getByRole("region", { name: "Review" });
  await expect(review.getByRole("heading", { name: "Pay 0.5 ETH?" })).toBeVisible();
  await expect(review).toContainText(bob);
  await expect(review).toContainText("1.5 ETH");
  await expect(review).toContainText("rent (public)");
  await expect(review).toContainText("First payment to this account");
  await isAccessible(page);
  await picture(page, "pay-review");
  expect(wallet.asked).toEqual(["eth_requestAccounts"]);
  await review.getByRole("button", { name: "Back" }).click();
  await expect(page.getByLabel("Amount", { exact: true })).toHaveValue("0.5");
  await page.getByRole("button", { name: "Pay 0.5 ETH" }).click();
  await expect(review.getByRole("heading", { name: "Pay 0.5 ETH?" })).toBeFocused();
  // The wallet shows these as well, some of them as they are signed.
  const signed = [`To${bob}`, `signed as ${pad(bob).toLowerCase()}`, `signed as ${encodeMemo("rent")}`, `From${wallet.key.address}`, "Order number0"];
  for (const text of signed) await expect(review).toContainText(text);
  let sign = (): void => undefined;
  wallet.thinks = new Promise((resolve) => {
    sign = resolve;
  });
  await agree(page);
  const asked = page.getByRole("region", { name: "To be signed" });
  for (const text of signed) await expect(asked).toContainText(text);
  await isAccessible(page);
  await picture(page, "pay-signing");
  sign();
  await expect(activity(page, /^Pay 0.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await expect(page.getByLabel("Amount", { exact: true })).toHaveValue("");
  await page.getByLabel("To", { exact: true }).fill(bob);
  await page.getByLabel("Amount", { exact: true }).fill("0.25");
  await page.getByRole("button", { name: "Pay 0.25 ETH" }).click();
  await expect(review.getByRole("heading", { name: "Pay 0.25 ETH?" })).toBeVisible();
  await expect(review).not.toContainText("First payment to this account");
});

test("a declined payment scrolls into view, has a title, and can be retried from the form", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "2" });
  const bob = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
  await page.setViewportSize({ width: 390, height: 560 });
  await goTo(page, "Pay");
  await pay(page, bob, "0.5");
  await expect(activity(page, /^Pay 0.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
  wallet.declines = true;
  await pay(page, bob, "0.25", "again");
  const work = activity(page, /^Pay 0.25 ETH/);
  await expect(work.getByRole("alert")).toContainText("You declined");
  await expect(work.getByRole("heading")).toBeInViewport();
  await expect(work.getByRole("alert")).toBeInViewport();
  await expect(activity(page, /^Pay 0.5 ETH/)).toBeHidden();
  await picture(page, "declined-phone");
  await expect(page.getByLabel("To", { exact: true })).toHaveValue(bob);
  await expect(page.getByLabel("Amount", { exact: true })).toHaveValue("0.25");
  await expect(page.getByLabel("Memo (optional)")).toHaveValue("again");
});

test("declining the signature is reported, and no order is stored", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "1" });
  await goTo(page, "Pay");
  wallet.declines = true;
  await pay(page, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0.5");
  const work = activity(page, /^Pay 0.5 ETH/);
  await expect(work.getByRole("alert")).toContainText("You declined");
  await picture(page, "rejected-signature");
  await expect(work.getByRole("button", { name: "Continue" })).toBeHidden();
  wallet.declines = false;
  await pay(page, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0.25");
  await expect(activity(page, /^Pay 0.25 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("0.75");
});

test("the form refuses amounts above the balance, the own account and an empty recipient", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "1" });
  await goTo(page, "Pay");
  await page.getByLabel("Amount", { exact: true }).fill("1.5");
  await expect(page.getByText("Not enough money: 1 ETH available.")).toBeVisible();
  await picture(page, "insufficient-funds");
  await page.getByLabel("To", { exact: true }).fill("0x70997970c51812dc3A010C7d01b50e0d17dc79C8");
  await expect(page.getByText("A character was mistyped; copy the address again.")).toBeVisible();
  await page.getByLabel("To", { exact: true }).fill(wallet.key.address);
  await expect(page.getByText("This is your own account.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Pay", exact: true })).toBeDisabled();
  expect(wallet.asked).toEqual(["eth_requestAccounts"]);
});

test("a comma groups thousands and is never a decimal point", async ({ page, person }) => {
  await person({ deposit: "3" });
  await goTo(page, "Pay");
  await page.getByLabel("To", { exact: true }).fill("0x70997970C51812dc3A010C7d01b50e0d17dc79C8");
  const amount = page.getByLabel("Amount", { exact: true });
  for (const text of ["1,000", "1,000.5", "1,234,567", "1.000,5", "0,125", ",5", "1,", "1,5"]) {
    await amount.fill(text);
    await expect(page.getByText("Use no comma between thousands, and a point before decimals")).toBeVisible();
    await expect(page.getByRole("button", { name: "Pay", exact: true })).toBeDisabled();
    await amount.fill("");
  }
  await amount.fill("1.5");
  await expect(page.getByRole("button", { name: "Pay 1.5 ETH" })).toBeEnabled();
});

test("one slow authority of four delays no payment, and is shown", async ({ page, person }) => {
  await person({ deposit: "1" });
  // Answers after everything is over, as far as this page is concerned.
  await page.route(authority(0), async (route) => {
    await new Promise((wake) => setTimeout(wake, 30_000));
    await route.continue().catch(() => undefined);
  });
  await goTo(page, "Pay");
  await pay(page, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0.5");
  const work = activity(page, /^Pay 0.5 ETH/);
  await expect(work.getByText("Certified: a quorum of authorities voted for it: done")).toBeVisible();
  await expect(work.getByText("Done", { exact: true })).toBeVisible();
  await goTo(page, "Wallet");
  await expect(page.getByText("3 of 4 authorities answered at once; a quorum is enough")).toBeVisible();
  await picture(page, "slow-authority");
  await page.getByRole("link", { name: "Show them" }).click();
  await expect(page.getByText("does not answer", { exact: true })).toHaveCount(1);
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("with too few authorities reachable, the page says so and retries", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "1" });
  await goTo(page, "Pay");
  await expect(page.getByText("You have 1 ETH in FastPay")).toBeVisible();
  for (const number of [0, 1]) await page.route(authority(number), (route) => route.abort());
  await pay(page, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0.5");
  const work = activity(page, /^Pay 0.5 ETH/);
  const alert = work.getByRole("alert");
  await expect(alert).toContainText("Too few authorities answer");
  await expect(alert).toContainText("2 of the 3 authorities that are needed answered");
  const hosts = [0, 1].map((number) => new URL(network().authorities[number]?.http ?? "").host);
  await expect(alert.getByRole("listitem")).toHaveText(hosts.map((host) => `${host} does not answer yet`));
  await picture(page, "unreachable");
  expect(wallet.asked).toEqual(["eth_requestAccounts"]);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await work.getByRole("button", { name: "Try again" }).click();
  await expect(work.getByText("Done", { exact: true })).toBeVisible();
});

test("a payment without a quorum names silent and refusing authorities, and is finished later", async ({ page, person }) => {
  const { authorities, ...rest } = network();
  const labels = ["Ada's bakery", "Grace's garage", "Mary's mill", "Hedy's harbour"];
  const named = authorities.map((one, i) => ({ ...one, label: labels[i] }));
  await page.route("**/network.json", (route) => route.fulfill({ json: { ...rest, authorities: named } }));
  await page.clock.install();
  await person({ deposit: "1" });
  const isOrder = (number: number) => (url: URL): boolean => authority(number).test(url.href) && url.pathname === "/v1/orders";
  await page.route(isOrder(0), (route) => route.abort());
  const refusal = { status: 403, code: "invalid", detail: "this authority is closed today", retry: "never" };
  await page.route(isOrder(1), (route) =>
    route.fulfill({ status: 403, headers: { "access-control-allow-origin": "*" }, contentType: "application/problem+json", json: refusal }),
  );
  await goTo(page, "Pay");
  await pay(page, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0.5");
  const work = activity(page, /^Pay 0.5 ETH/);
  await expect(work.getByText("2 of 3 votes")).toBeVisible();
  // The wallet waits half a minute for votes.
  await page.clock.fastForward("00:31");
  const alert = work.getByRole("alert");
  await expect(alert).toContainText("Too few authorities answered");
  await expect(alert).toContainText("2 of 3 votes arrived in time");
  await expect(alert.getByRole("listitem")).toHaveCount(2);
  await expect(alert.getByText("Ada's bakery does not answer yet", { exact: true })).toBeVisible();
  await expect(alert.getByText("Grace's garage refuses: this authority is closed today", { exact: true })).toBeVisible();
  await isAccessible(page);
  await picture(page, "no-quorum");
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await work.getByRole("button", { name: "Continue" }).click();
  await expect(activity(page, /order/).getByText("Done", { exact: true })).toBeVisible();
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("0.5");
});

test("a payment is made with the keyboard alone", async ({ page, person }) => {
  await person({ deposit: "1" });
  await page.reload();
  await expect(inFastPay(page, "ETH")).toHaveText("1");
  const { press, write } = keyboard(page);
  await press(page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Pay", exact: true }));
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Pay");
  await expect(page.getByText("You have 1 ETH in FastPay")).toBeVisible();
  await write(page.getByLabel("To", { exact: true }), "0x70997970C51812dc3A010C7d01b50e0d17dc79C8");
  await write(page.getByLabel("Amount", { exact: true }), "0.5");
  await picture(page, "keyboard");
  await press(page.getByRole("button", { name: "Pay 0.5 ETH" }));
  await press(page.getByRole("button", { name: "Yes, pay 0.5 ETH" }));
  await expect(activity(page, /^Pay 0.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
});
