/** A token that calls itself as a known one does: wherever its amounts stand, they are marked. */

import { deployToken } from "./support/net";
import { activity, agree, expect, goTo, pay, picture, test } from "./support/people";

test("an unknown token is marked in notices, history, selection and explorer, whatever its name", async ({ person }) => {
  const bob = await person({ deposit: "1" });
  const mallory = await person();
  const token = (await deployToken(mallory.wallet.key, "DEMO")).toLowerCase();
  const name = `DEMO (unknown ${token.slice(0, 6)}…${token.slice(-4)})`;

  // Who adds a token knows it; a deposit and a payment are made with it like with any other.
  await mallory.page.getByRole("button", { name: "Add a token" }).click();
  const dialog = mallory.page.getByRole("dialog");
  await dialog.getByLabel("The token's address").fill(token);
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await expect(dialog).toBeHidden();
  await goTo(mallory.page, "Deposit");
  await mallory.page.getByLabel("Asset").selectOption({ value: token });
  await mallory.page.getByLabel("Amount", { exact: true }).fill("100");
  await mallory.page.getByRole("button", { name: "Deposit 100 DEMO" }).click();
  await agree(mallory.page);
  await expect(activity(mallory.page, "Deposit 100 DEMO").getByText("Done", { exact: true })).toBeVisible();
  await goTo(mallory.page, "Pay");
  await mallory.page.getByLabel("Asset").selectOption({ value: token });
  await pay(mallory.page, bob.wallet.key.address, "100", "for the bicycle");

  // What bob sees.
  await expect(bob.page.getByText(`Received 100 ${name} from 0x`)).toBeVisible();
  const received = bob.page.getByRole("region", { name: "History entries" });
  await expect(received).toContainText(`+100 ${name}`);
  await picture(bob.page, "impostor");
  await goTo(bob.page, "Pay");
  await expect(bob.page.getByLabel("Asset").getByRole("option")).toHaveText(["ETH", "DEMO", name]);
  await bob.page.getByLabel("Asset").selectOption({ value: token });
  await expect(bob.page.getByText(`You have 100 ${name} in FastPay`)).toBeVisible();
  await goTo(bob.page, "History");
  await received.getByRole("link", { name: /^\+100 .*show the proof/ }).click();
  await expect(bob.page.getByRole("heading", { name: `Payment of 100 ${name}` })).toBeVisible();
  await expect(bob.page.getByRole("region", { name: "Transfer" })).toContainText(`DEMO (unknown ${token})`);
});
