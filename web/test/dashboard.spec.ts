/** The page that an authority serves to its operator: it shows what the authority says, and axe finds nothing. */

import { isAccessible } from "./support/axe";
import { network } from "./support/net";
import { expect, picture, test } from "./support/people";

for (const colorScheme of ["light", "dark"] as const) {
  test(`an authority's own page shows its state, in the ${colorScheme} theme`, async ({ page }) => {
    const authority = network().authorities[0];
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const faults: string[] = [];
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    await page.goto(`${authority?.http}/`);
    await expect(page.getByRole("status")).toHaveText("Votes.");
    const facts = page.locator("#facts");
    await expect(facts).toContainText(network().contract, { ignoreCase: true });
    await expect(facts).toContainText("atHead");
    await expect(page.locator("#members tr")).toHaveCount(network().authorities.length);
    await expect(page.locator("#members")).toContainText("(this one)");
    for (const row of await page.locator("#assets tr").all()) await expect(row).toContainText("yes");
    await expect(page.locator("#waiting-caption")).toContainText("as of final block");
    expect(await page.locator("#shard-rows tr").count()).toBeGreaterThan(0);
    await isAccessible(page);
    expect(faults).toEqual([]);
    await picture(page, `dashboard-${colorScheme}`);
  });
}
