import { ETHER } from "@fastpay/sdk";
import { parseEther, stringToHex } from "viem";

import { isAccessible } from "./support/axe";
import { activity, addAndDeposit, agree, expect, goTo, inFastPay, picture, redeemAlone, test } from "./support/people";
import { balanceOnChain, contracts, network, deployMoodyToken, deployToken, OUTFLOW_DELAY_S, passTime, setMood, steal } from "./support/net";

const OUT = "0x000000000000000000000000000000000000bEEF";

test("a relayer submits a redemption to Ethereum for its fee", async ({ page, person }) => {
  await person({ deposit: "4" });
  await goTo(page, "Redeem");
  const before = await balanceOnChain(OUT);
  await page.getByLabel("Amount", { exact: true }).fill("1.5");
  await page.getByLabel("To (an Ethereum address)").fill(OUT);
  await page.getByLabel("Fee for the relayer").fill("0.01");
  await expect(page.getByText("1.49 ETH will arrive.")).toBeVisible();
  await picture(page, "redeem");
  await page.getByRole("button", { name: "Redeem 1.5 ETH" }).click();
  await agree(page);
  await expect(activity(page, /^Redeem 1.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await expect(page.getByRole("region", { name: "Your redemptions" }).getByText("Paid on Ethereum")).toBeVisible();
  // With its checksum everywhere, so that nobody compares it with another text.
  const short = `${OUT.slice(0, 8)}…${OUT.slice(-6)}`;
  await expect(page.getByRole("region", { name: "Your redemptions" })).toContainText(short);
  await expect(activity(page, /^Redeem 1.5 ETH/).getByRole("heading")).toContainText(short);
  await picture(page, "redeemed");
  expect((await balanceOnChain(OUT)) - before).toBe(parseEther("1.49"));
  await activity(page, /^Redeem 1.5 ETH/).getByRole("link", { name: "Show its certificate" }).click();
  await expect(page.getByRole("heading", { name: "Redemption of 1.5 ETH" })).toBeVisible();
  await expect(page.getByText("3 valid votes").first()).toBeVisible();
  // Its transaction on Ethereum leads to what it did there, and back.
  await page.getByText("paid, or kept as a claim").getByRole("link").click();
  await expect(page.getByRole("region", { name: "Transaction" })).toContainText("It paid redemption 0 of");
  const hash = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  await isAccessible(page);
  await page.getByLabel("Look up").fill(hash);
  await page.getByRole("search").getByRole("button", { name: "Look up" }).click();
  await page.getByRole("region", { name: "Transaction" }).getByRole("link", { name: "redemption 0" }).click();
  await expect(page.getByRole("heading", { name: "Redemption of 1.5 ETH" })).toBeVisible();
  await expect(page.getByRole("region", { name: "Transfer" })).toContainText(`${OUT} on Ethereum`);
  await picture(page, "explorer-redemption");
  await goTo(page, "Explore");
  await expect(page.getByRole("region", { name: "Latest transfers" })).toContainText(`${short} on Ethereum`);
  await goTo(page, "History");
  await expect(page.getByRole("region", { name: "History entries" })).toContainText(`Redeemed to ${short}`);
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("2.5");
});

test("a merchant's prepared payout fills the form, and its memo is reviewed and signed", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "4" });
  const { chainId, contract } = network();
  const memo = `pyt_${"7".repeat(28)}`;
  const fields = { chain: String(chainId), contract, to: OUT, asset: ETHER, amount: "1500000000000000000", fee: "10000000000000000" };
  const open = (from: string, more = {}): Promise<unknown> =>
    page.goto(`/nowhere`).then(() => page.goto(`/redeem#${new URLSearchParams({ from, ...fields, memo: stringToHex(memo, { size: 32 }), ...more })}`));
  await open(wallet.key.address, { chain: "5" });
  await expect(page.getByText("This payout cannot be used")).toBeVisible();
  await open("0x70997970C51812dc3A010C7d01b50e0d17dc79C8");
  await expect(page.getByText("A payout needs your signature")).toBeVisible();
  await expect(page.getByLabel("Amount", { exact: true })).toHaveValue("");
  await open(wallet.key.address);
  await expect(page.getByLabel("Amount", { exact: true })).toHaveValue("1.5");
  await expect(page.getByLabel("To (an Ethereum address)")).toHaveValue(OUT);
  await expect(page.getByText("Prepared by a merchant's service")).toBeVisible();
  expect(new URL(page.url()).hash).toBe("");
  await isAccessible(page);
  await page.getByRole("button", { name: "Redeem 1.5 ETH" }).click();
  const review = page.getByRole("region", { name: "Review" });
  for (const fact of [OUT, memo, "Fee0.01 ETH"]) await expect(review).toContainText(fact);
  await agree(page);
  await expect(activity(page, /^Redeem 1.5 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await activity(page, /^Redeem 1.5 ETH/).getByRole("link", { name: "Show its certificate" }).click();
  await expect(page.getByText(memo)).toBeVisible();
});

test("a redemption is reviewed; a declined one stays in the form", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "4" });
  await goTo(page, "Redeem");
  await page.getByLabel("Amount", { exact: true }).fill("1.5");
  await page.getByLabel("To (an Ethereum address)").fill(OUT);
  await page.getByLabel("Fee for the relayer").fill("0.01");
  await page.getByRole("button", { name: "Redeem 1.5 ETH" }).click();
  const review = page.getByRole("region", { name: "Review" });
  for (const fact of [`To${OUT}`, "Fee0.01 ETH", "1.49 ETH", "2.5 ETH", "Memonone", `From${wallet.key.address}`, "Order number0", "First redemption to this address"]) {
    await expect(review).toContainText(fact);
  }
  await expect(review.getByRole("heading")).toBeFocused();
  await isAccessible(page);
  await picture(page, "redeem-review");
  await review.getByRole("button", { name: "Back" }).click();
  expect(wallet.asked).not.toContain("eth_signTypedData_v4");
  await page.getByLabel("To (an Ethereum address)").fill(wallet.key.address);
  await page.getByRole("button", { name: "Redeem 1.5 ETH" }).click();
  await expect(review).toContainText("the connected wallet");
  await expect(review).not.toContainText("First redemption");
  wallet.declines = true;
  await agree(page);
  await expect(activity(page, /^Redeem 1.5 ETH/).getByRole("alert")).toContainText("You declined");
  await expect(page.getByLabel("Amount", { exact: true })).toHaveValue("1.5");
});

test("the proposed fee and the usual time are those that the relayers announce", async ({ page, person }) => {
  await person({ deposit: "2" });
  await goTo(page, "Redeem");
  const before = await balanceOnChain(OUT);
  await page.getByLabel("To (an Ethereum address)").fill(OUT);
  await page.getByLabel("Amount", { exact: true }).fill("1");
  const fee = page.getByLabel("Fee for the relayer");
  await expect(fee).toHaveValue(/^0\.0*[1-9]/);
  const proposed = await fee.inputValue();
  await expect(page.getByText(/1 relayer takes 0\.\d+ ETH or more/)).toBeVisible();
  await expect(page.getByText(/^Usually within 1 min$/)).toBeVisible();
  await expect(page.getByText("1 of 1 relayer takes this fee.")).toBeVisible();
  await isAccessible(page);
  await picture(page, "redeem-fee");
  await fee.fill("0");
  await expect(page.getByText("No known relayer takes this fee")).toBeVisible();
  await isAccessible(page);
  await page.getByRole("button", { name: "Suggest" }).click();
  await expect(fee).toHaveValue(proposed);
  await page.getByRole("button", { name: "Redeem 1 ETH" }).click();
  await agree(page);
  await expect(page.getByRole("region", { name: "Your redemptions" }).getByText("Paid on Ethereum")).toBeVisible();
  expect((await balanceOnChain(OUT)) - before).toBe(parseEther("1") - parseEther(proposed));
});

test("a redemption is submitted without a relayer", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "2" });
  await goTo(page, "Redeem");
  const before = await balanceOnChain(OUT);
  await page.getByLabel("Amount", { exact: true }).fill("2");
  await page.getByLabel("To (an Ethereum address)").fill(OUT);
  await page.getByLabel("I do, with a transaction from my wallet").check();
  await page.getByRole("button", { name: "Redeem 2 ETH" }).click();
  await agree(page);
  await expect(activity(page, /^Submit redemption #0/).getByText("Done", { exact: true })).toBeVisible();
  await expect(page.getByRole("region", { name: "Your redemptions" }).getByText("Paid on Ethereum")).toBeVisible();
  expect((await balanceOnChain(OUT)) - before).toBe(parseEther("2"));
  expect(wallet.asked).toContain("eth_signTypedData_v4");
});

test("a redemption whose number a thief spent is never shown as paid", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "2" });
  await goTo(page, "Redeem");
  await page.getByLabel("Amount", { exact: true }).fill("1");
  await page.getByLabel("To (an Ethereum address)").fill(OUT);
  // No relayer brings it.
  await page.getByLabel("Fee for the relayer").fill("0");
  await page.getByRole("button", { name: "Redeem 1 ETH" }).click();
  await agree(page);
  const ordered = activity(page, /^Redeem 1 ETH/);
  await expect(ordered.getByText("Waiting for a relayer")).toBeVisible();
  const hash = await steal(wallet.key.address, 0n, "1.5");
  await expect(ordered.getByRole("status")).toHaveText("Not paid");
  await expect(ordered).toContainText("its number was spent on another order");
  await expect(page.getByRole("region", { name: "Your redemptions" }).getByText("Not paid: number spent on another order")).toBeVisible();
  await isAccessible(page);
  await picture(page, "redeem-displaced");
  await ordered.getByRole("link", { name: "Show its certificate" }).click();
  await expect(page.getByText(`not paid: transaction ${hash} spent its number on another order`)).toBeVisible();
  // The authorities give the amount back.
  await goTo(page, "Wallet");
  await expect(inFastPay(page, "ETH")).toHaveText("2");
});

test("an unknown token is added; a redemption above its outflow limit waits and is then paid out", async ({ page, person }) => {
  const { wallet } = await person();
  const token = await deployToken(wallet.key);
  await addAndDeposit(page, token, "NEW", "500");

  await goTo(page, "Redeem");
  for (const [amount, state] of [["300", "Paid on Ethereum"], ["200", "Queued"]] as const) {
    await page.getByLabel("Asset").selectOption("NEW");
    await page.getByLabel("Amount", { exact: true }).fill(amount);
    await page.getByLabel("To (an Ethereum address)").fill(OUT);
    if (state === "Queued") {
      await expect(page.getByText("This will wait 3 days on Ethereum")).toBeVisible();
      await picture(page, "redeem-queue");
    }
    // No relayer serves a token that its operator does not know.
    await page.getByLabel("I do, with a transaction from my wallet").check();
    await page.getByRole("button", { name: `Redeem ${amount} NEW` }).click();
    await agree(page);
    await expect(page.getByRole("region", { name: "Your redemptions" }).getByText(state)).toBeVisible();
  }
  await picture(page, "queued");
  await passTime(OUTFLOW_DELAY_S + 100);
  await page.getByRole("button", { name: "Pay it out" }).click();
  await expect(page.getByRole("region", { name: "Your redemptions" }).getByText("Paid on Ethereum")).toHaveCount(2);
  // Each of the three transactions is found: two that paid, and one that queued.
  const did = page.getByRole("region", { name: "Transaction" });
  for (const [index, text] of [[-3, "It paid redemption 0"], [-2, "It queued redemption 1"], [-1, "It paid redemption 1"]] as const) {
    await page.goto(`/explore/transfer/${wallet.sent.at(index)}`);
    await expect(did).toContainText(text);
  }
  expect(await balanceOnChain(OUT, token)).toBe(500_000_000n);
});

test("a token without permits is deposited after an approval; a refused payout is kept and claimed", async ({ page, person }) => {
  const { wallet } = await person();
  const token = await deployMoodyToken(wallet.key);
  await addAndDeposit(page, token, "ZOO", "4");
  expect(wallet.asked.slice(1)).toEqual(["eth_sendTransaction", "eth_sendTransaction"]);
  await setMood(wallet.key, token, "reverts");

  await redeemAlone(page, "ZOO", "3");
  const claims = page.getByRole("region", { name: "Claims" });
  await expect(claims).toContainText("3 ZOO");
  await picture(page, "claim");
  await setMood(wallet.key, token, "good");
  // A part of it goes elsewhere, the rest to the wallet's own address.
  await claims.getByRole("button", { name: "Part of it, or to another address" }).click();
  await page.getByLabel("Amount to claim").fill("4");
  await expect(claims).toContainText("Not enough money");
  await page.getByLabel("Amount to claim").fill("1");
  const collect = claims.getByRole("button", { name: "Claim", exact: true });
  for (const lost of await contracts()) {
    await page.getByLabel("Claim to (an Ethereum address)").fill(lost);
    await expect(claims).toContainText("This is a FastPay contract");
    await expect(collect).toBeDisabled();
  }
  await page.getByLabel("Claim to (an Ethereum address)").fill(OUT);
  await picture(page, "claim-part");
  await collect.dblclick();
  const review = claims.getByRole("region", { name: "Review" });
  for (const fact of [`To${OUT}`, "Amount1 ZOO", "Remaining2 ZOO", "This is not the connected wallet"]) {
    await expect(review).toContainText(fact);
  }
  await isAccessible(page);
  await picture(page, "claim-review");
  const sent = wallet.sent.length;
  await review.getByRole("button", { name: "Back" }).click();
  await expect(page.getByLabel("Amount to claim")).toHaveValue("1");
  expect(wallet.sent).toHaveLength(sent);
  await collect.click();
  await review.getByRole("button", { name: "Yes, claim 1 ZOO" }).click();
  await expect(activity(page, "Claim 1 ZOO").getByText("Done", { exact: true })).toBeVisible();
  await expect(claims).toContainText("2 ZOO");
  expect(await balanceOnChain(OUT, token)).toBe(parseEther("1"));
  await page.getByLabel("Amount to claim").fill("");
  await page.getByLabel("Claim to (an Ethereum address)").fill("");
  await collect.click();
  await expect(activity(page, "Claim 2 ZOO").getByText("Done", { exact: true })).toBeVisible();
  await expect(claims).toBeHidden();
  expect(await balanceOnChain(wallet.key.address, token)).toBe(parseEther("8"));
  await activity(page, "Claim 1 ZOO").getByRole("link", { name: /^as 0x/ }).click();
  await expect(page.getByRole("region", { name: "Transaction" })).toContainText(`It collected 1 ZOO for ${wallet.key.address}`);
  await expect(page.getByRole("region", { name: "Transaction" })).toContainText(`paid to ${OUT}`);
});

test("nothing is redeemed to a contract of FastPay", async ({ page, person }) => {
  await person({ deposit: "1" });
  await goTo(page, "Redeem");
  await page.getByLabel("Amount", { exact: true }).fill("1");
  const order = page.getByRole("button", { name: "Redeem 1 ETH" });
  for (const lost of await contracts()) {
    await page.getByLabel("To (an Ethereum address)").fill(lost);
    await expect(page.getByText("This is a FastPay contract")).toBeVisible();
    await expect(order).toBeDisabled();
  }
  await picture(page, "redeem-to-fastpay");
  await page.getByLabel("To (an Ethereum address)").fill(OUT);
  await expect(order).toBeEnabled();
});
