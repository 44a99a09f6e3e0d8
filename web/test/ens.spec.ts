/** ENS names as recipients, on a chain with ENS's registry and on one without. */

import { isAccessible } from "./support/axe";
import { balanceOnChain, network, removeEns, setEnsName } from "./support/net";
import { activity, agree, expect, goTo, picture, test } from "./support/people";
import { parseEther } from "viem";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

test.beforeAll(() => setEnsName("bob.eth", BOB));
test.afterAll(() => removeEns());

test("an ENS name is resolved, shown with its whole address in field and review, and paid", async ({ page, person }) => {
  await person({ deposit: "2" });
  await goTo(page, "Pay");
  await page.getByLabel("To", { exact: true }).fill("Bob.eth");
  await expect(page.getByText(`bob.eth is ${BOB}`)).toBeVisible();
  await page.getByLabel("Amount", { exact: true }).fill("0.5");
  await isAccessible(page);
  await page.getByRole("button", { name: "Pay 0.5 ETH" }).click();
  const review = page.getByRole("region", { name: "Review" });
  await expect(review).toContainText(BOB);
  await expect(review).toContainText("bob.eth");
  await picture(page, "ens-review");
  await agree(page);
  await expect(activity(page, /^Pay 0.5 ETH to 0x7099/).getByText("Done", { exact: true })).toBeVisible();
});

test("a redemption goes to an ENS name's address", async ({ page, person }) => {
  const { wallet } = await person({ deposit: "2" });
  await setEnsName("vault.eth", wallet.key.address);
  await goTo(page, "Redeem");
  const before = await balanceOnChain(wallet.key.address);
  await page.getByLabel("Amount", { exact: true }).fill("1");
  await page.getByLabel("To (an Ethereum address)").fill("vault.eth");
  await expect(page.getByText(`vault.eth is ${wallet.key.address}`)).toBeVisible();
  await page.getByLabel("Fee for the relayer").fill("0.01");
  await page.getByRole("button", { name: "Redeem 1 ETH" }).click();
  await expect(page.getByRole("region", { name: "Review" })).toContainText("vault.eth");
  await agree(page);
  await expect(page.getByRole("region", { name: "Your redemptions" }).getByText("Paid on Ethereum")).toBeVisible();
  expect((await balanceOnChain(wallet.key.address)) - before).toBe(parseEther("0.99"));
});

test("a name without an address, an invalid name and a chain without ENS are reported, and cannot be paid", async ({ page, person }) => {
  await person({ deposit: "2" });
  await goTo(page, "Pay");
  await page.getByLabel("Amount", { exact: true }).fill("0.5");
  const pay = page.getByRole("button", { name: "Pay 0.5 ETH" });
  const to = page.getByLabel("To", { exact: true });
  await to.fill("nobody.eth");
  await expect(page.getByText("This ENS name has no address.")).toBeVisible();
  await expect(pay).toBeDisabled();
  await to.fill("bo_b\u200b.eth");
  await expect(page.getByText("This is not a valid ENS name.")).toBeVisible();
  await page.route(network().rpc, (route) => (route.request().postData()?.includes("eth_getCode") ? route.abort() : route.continue()));
  await to.fill("carol.eth");
  await expect(page.getByText("The ENS name cannot be read from Ethereum now.")).toBeVisible();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await removeEns();
  await to.fill("dave.eth");
  await expect(page.getByText("This chain has no ENS. Give an address or an account.")).toBeVisible();
  await expect(pay).toBeDisabled();
  await to.fill(BOB);
  await expect(pay).toBeEnabled();
});
