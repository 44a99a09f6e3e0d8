import { isAccessible } from "./support/axe";
import { activity, agree, expect, goTo, inFastPay, picture, test } from "./support/people";
import { deployToken, network } from "./support/net";
import { withCamera } from "./support/camera";

test("a link with amount and memo, as text and as a QR code, is paid unchanged", async ({ person }) => {
  const bob = await person();
  const alice = await person({ deposit: "3" });
  await goTo(bob.page, "Receive");
  await bob.page.getByLabel("Amount (optional)").fill("1.5");
  await bob.page.getByLabel("Memo (optional)").fill("coffee & cake");
  await bob.page.getByLabel("Your name (optional)").fill("Bob's café");
  const code = bob.page.getByRole("img", { name: "QR code that asks for 1.5 ETH" });
  await expect(code).toBeVisible();
  await picture(bob.page, "receive");
  const link = (await bob.page.getByTestId("payment-link").textContent()) ?? "";
  expect(link).toContain(`/pay#fastpay:${bob.wallet.key.address}@${network().chainId}/`);

  // As a picture of what bob's screen shows.
  await bob.page.evaluate(() => window.scrollTo(0, 0));
  const shot = await code.screenshot();
  await goTo(alice.page, "Pay");
  await alice.page.getByLabel("Picture of a QR code").setInputFiles({ name: "code.png", mimeType: "image/png", buffer: shot });
  const form = alice.page.getByRole("form", { name: "Payment" });
  await expect(form).toContainText("1.5 ETH");
  await expect(form).toContainText("coffee & cake");
  await expect(form).toContainText("Bob's café (not verified)");
  await picture(alice.page, "pay-by-link");
  await form.getByRole("button", { name: "Clear" }).click();

  // As a link that is opened.
  await goTo(alice.page, "Wallet");
  await alice.page.goto(link);
  await expect(form).toContainText(bob.wallet.key.address);
  expect(new URL(alice.page.url()).hash).toBe("");
  await form.getByRole("button", { name: "Pay 1.5 ETH" }).click();
  await expect(alice.page.getByRole("region", { name: "Review" })).toContainText("Bob's café (not verified)");
  await agree(alice.page);
  await expect(activity(alice.page, /^Pay 1.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await goTo(bob.page, "Wallet");
  await expect(inFastPay(bob.page, "ETH")).toHaveText("1.5");
  await expect(bob.page.getByRole("region", { name: "History entries" })).toContainText("“coffee & cake”");
});

test("a link for more than the balance is reported and cannot be paid", async ({ page, person }) => {
  await person({ deposit: "1" });
  const { chainId, contract } = network();
  await goTo(page, "Pay");
  const link = `fastpay:0x70997970C51812dc3A010C7d01b50e0d17dc79C8@${chainId}/${contract}?amount=2000000000000000000`;
  await page.getByLabel("To", { exact: true }).fill(link);
  await expect(page.getByRole("alert").filter({ hasText: "Not enough money" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Pay 2 ETH" })).toBeDisabled();
});

test("a link that expires while it is shown is not paid, also on a second attempt", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "1" });
  await goTo(page, "Pay");
  const { chainId, contract } = network();
  const expires = Math.floor(Date.now() / 1_000) + 3_600;
  const bob = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
  const link = `fastpay:${bob}@${chainId}/${contract}?amount=500000000000000000&expires=${expires}`;
  const open = async (): Promise<void> => page.getByLabel("To", { exact: true }).fill(link);
  const work = activity(page, /^Pay 0.5 ETH/);

  // In time, but declined.
  await open();
  wallet.declines = true;
  await page.getByRole("button", { name: "Pay 0.5 ETH" }).click();
  await agree(page);
  await expect(work.getByRole("alert")).toContainText("You declined");
  wallet.declines = false;
  await page.clock.setFixedTime((expires + 1) * 1_000);
  const askedBefore = wallet.asked.length;
  for (const isAgain of [true, false]) {
    if (isAgain) await work.getByRole("button", { name: "Try again" }).click();
    else {
      await page.getByRole("button", { name: "Pay 0.5 ETH" }).click();
      await agree(page);
    }
    await expect(work.getByRole("alert")).toContainText("This link has expired");
    await expect(work.getByRole("button", { name: "Try again" })).toBeHidden();
    await work.getByRole("button", { name: "Close" }).click();
    await expect(work).toBeHidden();
  }
  expect(wallet.asked).toHaveLength(askedBefore);
});

test("a link that expires while the wallet asks is not paid: nothing is sent or left to finish", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "1" });
  const sent: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().endsWith("/v1/orders")) sent.push(request.url());
  });
  await goTo(page, "Pay");
  const { chainId, contract } = network();
  const expires = Math.floor(Date.now() / 1_000) + 3_600;
  const bob = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
  await page
    .getByLabel("To", { exact: true })
    .fill(`fastpay:${bob}@${chainId}/${contract}?amount=500000000000000000&expires=${expires}`);
  let sign = (): void => undefined;
  wallet.thinks = new Promise((resolve) => (sign = resolve));
  await page.getByRole("button", { name: "Pay 0.5 ETH" }).click();
  await agree(page);
  await expect.poll(() => wallet.asked).toContain("eth_signTypedData_v4");
  await page.clock.setFixedTime((expires + 1) * 1_000);
  sign();
  const work = activity(page, /^Pay 0.5 ETH/);
  await expect(work.getByRole("alert")).toContainText("This link has expired");
  await expect(work.getByRole("button", { name: "Try again" })).toBeHidden();

  await page.reload();
  await expect(page.getByText("You have 1 ETH in FastPay")).toBeVisible();
  await expect(activity(page, "Finish an earlier order")).toBeHidden();
  expect(sent).toEqual([]);
});

test("the skip link keeps the payment link in the address", async ({ page, person }) => {
  await person({ deposit: "1" });
  const { chainId, contract } = network();
  const link = `fastpay:0x70997970C51812dc3A010C7d01b50e0d17dc79C8@${chainId}/${contract}?amount=500000000000000000`;
  await goTo(page, "Pay");
  await page.getByLabel("To", { exact: true }).fill(link);
  await page.getByRole("link", { name: "Skip to content" }).press("Enter");
  await expect(page.getByRole("main")).toBeFocused();
  await expect(page.getByText("This link cannot be used")).toBeHidden();
  await expect(page.getByRole("button", { name: "Pay 0.5 ETH" })).toBeEnabled();
});

test("a link opened while another is shown, or after a payment, waits until the user accepts it", async ({ page, person }) => {
  await person({ deposit: "3" });
  const { chainId, contract } = network();
  const linkTo = (account: string, ether: string): string =>
    `fastpay:${account}@${chainId}/${contract}?amount=${ether}000000000000000000`;
  const mallory = "0x7777777777777777777777777777777777777777";
  // As a page can do that has opened this one and keeps its window.
  const change = (): Promise<void> => page.evaluate((link) => void (location.hash = link), linkTo(mallory, "2"));
  await page.goto(`/pay#${linkTo("0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "1")}`);
  const form = page.getByRole("form", { name: "Payment" });
  await expect(form.getByRole("button", { name: "Pay 1 ETH" })).toBeEnabled();
  const notice = form.getByRole("alert").filter({ hasText: "A payment link was opened" });

  await change();
  await expect(notice).toBeVisible();
  expect(new URL(page.url()).hash).toBe("");
  await expect(form).not.toContainText(mallory);
  await isAccessible(page);
  await picture(page, "link-opened-meanwhile");
  await form.getByRole("button", { name: "Pay 1 ETH" }).click();
  // Also while it is reviewed nothing comes in its place.
  await change();
  await expect(page.getByRole("region", { name: "Review" })).not.toContainText(mallory);
  await agree(page);
  await expect(activity(page, /^Pay 1 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await change();
  // The page has read it, so that it does not come once more after the button.
  await expect.poll(() => new URL(page.url()).hash).toBe("");
  await expect(form.getByLabel("To", { exact: true })).toBeVisible();

  await notice.getByRole("button", { name: "Use the link" }).press("Enter");
  await expect(notice).toBeHidden();
  await expect(form).toContainText(mallory);
  await expect(form.getByRole("button", { name: "Pay 2 ETH" })).toBeEnabled();
});

test("an invalid amount yields no code and no link", async ({ page, person }) => {
  await person();
  await goTo(page, "Receive");
  const amount = page.getByLabel("Amount (optional)");
  const codes = page.getByRole("img", { name: /^QR code/ });
  await expect(codes).toBeVisible();
  for (const text of ["1,500", "0", "one"]) {
    await amount.fill(text);
    await expect(page.getByText(/^No code or link can be shown\. /)).toBeVisible();
    await expect(codes).toBeHidden();
    await expect(page.getByTestId("payment-link")).toBeHidden();
    await expect(page.getByRole("button", { name: /^Copy (fastpay: )?link$/ })).toHaveCount(0);
  }
  await isAccessible(page);
  await picture(page, "receive-unread");
  await amount.fill("1500");
  await expect(page.getByRole("img", { name: "QR code that asks for 1,500 ETH" })).toBeVisible();
});

test("a link for an unknown token says so", async ({ page, person }) => {
  const { wallet } = await person();
  const token = await deployToken(wallet.key);
  const { chainId, contract } = network();
  await goTo(page, "Pay");
  const link = `fastpay:0x70997970C51812dc3A010C7d01b50e0d17dc79C8@${chainId}/${contract}?asset=${token}&amount=5000000`;
  await page.getByLabel("To", { exact: true }).fill(link);
  const form = page.getByRole("form", { name: "Payment" });
  await expect(form.getByRole("alert").filter({ hasText: "does not know this token" })).toBeVisible();
  await expect(form).toContainText(`NEW at ${token.toLowerCase()}`);
  await expect(page.getByRole("button", { name: "Pay 5 NEW" })).toBeDisabled();
});

test("a QR code is read by the camera", async ({ page, person }) => {
  const { wallet } = await person();
  await goTo(page, "Receive");
  await page.getByLabel("Amount (optional)").fill("0.75");
  const source = await page.getByRole("img", { name: "QR code that asks for 0.75 ETH" }).getAttribute("src");
  await withCamera(page, source ?? "", async (seeing) => {
    await person({ page: seeing });
    await goTo(seeing, "Pay");
    await seeing.getByRole("button", { name: "Scan with the camera" }).click();
    const form = seeing.getByRole("form", { name: "Payment" });
    await expect(form).toContainText(wallet.key.address);
    await expect(form).toContainText("0.75 ETH");
  });
});

test("links of another deployment, expired or damaged ones, and pictures without a code are refused", async ({ page, person }) => {
  await person();
  await goTo(page, "Pay");
  const { chainId, contract } = network();
  const bob = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
  const to = page.getByLabel("To", { exact: true });
  const alert = page.getByRole("alert").filter({ hasText: "This link cannot be used" });
  await to.fill(`fastpay:${bob}@1/${contract}`);
  await expect(alert).toContainText("and this page is for");
  await to.fill(`fastpay:${bob}@${chainId}/${contract}?expires=1600000000`);
  await expect(alert).toContainText("This link has expired");
  await to.fill(`fastpay:${bob}@${chainId}/${contract}?amount=1.5`);
  await expect(alert).toContainText("amount is not a number in range");
  const picture = await page.getByRole("banner").screenshot();
  await page.getByLabel("Picture of a QR code").setInputFiles({ name: "x.png", mimeType: "image/png", buffer: picture });
  await expect(page.getByRole("alert").filter({ hasText: "No QR code was found" })).toBeVisible();
});
