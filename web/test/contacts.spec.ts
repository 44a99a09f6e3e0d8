/** Names for accounts, and accounts that were paid recently. */

import { isAccessible } from "./support/axe";
import { activity, agree, expect, goTo, pay, picture, test } from "./support/people";

const BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const CAROL = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";

test("a contact name can be typed, chosen, reviewed and shown; recent recipients are suggested", async ({ person }) => {
  const { page } = await person({ deposit: "2" });
  await goTo(page, "Pay");
  await pay(page, CAROL, "0.1");
  await expect(activity(page, /^Pay 0.1 ETH/).getByText("Done", { exact: true })).toBeVisible();

  await page.goto(`/explore/account/${BOB}`);
  const name = page.getByLabel("Contact name for this account");
  await name.fill("Bob of the bakery");
  await page.getByRole("button", { name: "Save contact" }).click();
  await isAccessible(page);
  // No two accounts have one name.
  await page.goto(`/explore/account/${CAROL}`);
  await name.fill("bob OF the bakery ");
  await page.getByRole("button", { name: "Save contact" }).click();
  await expect(page.getByText("Another account has this name.")).toBeVisible();

  await page.goto("/pay");
  const offered = page.locator("datalist option");
  await expect(offered).toHaveCount(2);
  expect(await offered.evaluateAll((all) => all.map((one) => (one as HTMLOptionElement).value))).toEqual(["Bob of the bakery", CAROL]);
  await page.getByLabel("To", { exact: true }).fill("bob of the bakery");
  await page.getByLabel("Amount", { exact: true }).fill("0.2");
  await page.getByRole("button", { name: "Pay 0.2 ETH" }).click();
  const review = page.getByRole("region", { name: "Review" });
  await expect(review).toContainText(BOB);
  await expect(review).toContainText("Bob of the bakery");
  await picture(page, "contact-review");
  await agree(page);
  await expect(activity(page, /^Pay 0.2 ETH/).getByText("Done", { exact: true })).toBeVisible();
  await goTo(page, "History");
  await expect(page.getByRole("region", { name: "History entries" }).getByRole("listitem").first()).toContainText("To Bob of the bakery 0x7099");

  // All of them stand on a page of their own, and are named and removed there.
  await goTo(page, "Pay");
  await page.getByRole("link", { name: "Contacts" }).click();
  const listed = page.getByRole("region", { name: "Names" }).getByRole("listitem");
  await expect(listed).toHaveText([new RegExp(`Bob of the bakery ${BOB}`)]);
  await page.getByLabel("Account", { exact: true }).fill(CAROL);
  await page.getByLabel("Name", { exact: true }).fill("bob of the bakery");
  await page.getByRole("button", { name: "Save contact" }).click();
  await expect(page.getByText("Another account has this name.")).toBeVisible();
  await page.getByLabel("Name", { exact: true }).fill("Ada");
  await page.getByRole("button", { name: "Save contact" }).click();
  await expect(listed).toHaveText([new RegExp(`Ada ${CAROL}`), new RegExp(`Bob of the bakery ${BOB}`)]);
  await isAccessible(page);
  await picture(page, "contacts");
  await page.getByRole("button", { name: "Remove Ada" }).click();
  await expect(listed).toHaveCount(1);

  await page.goto(`/explore/account/${BOB}`);
  await expect(name).toHaveValue("Bob of the bakery");
  await name.fill("");
  await page.getByRole("button", { name: "Remove contact" }).click();
  await page.goto("/pay");
  await page.getByLabel("To", { exact: true }).fill("Bob of the bakery");
  await expect(page.getByRole("button", { name: "Pay", exact: true })).toBeDisabled();
});
