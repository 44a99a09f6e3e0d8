/** The page can be installed: its manifest has no errors, and icons of the sizes that it names. */

import { expect, test } from "./support/people";

/** Width and height stand at a fixed place in a PNG (its chunk IHDR). */
function sizeOf(png: Buffer): string {
  return `${png.readUInt32BE(16)}x${png.readUInt32BE(20)}`;
}

test("the page is installable", async ({ page }) => {
  await page.goto("/");
  await expect(page.getByRole("banner")).toBeVisible();
  const devtools = await page.context().newCDPSession(page);
  const { data, errors } = await devtools.send("Page.getAppManifest");
  expect(errors).toEqual([]);
  const manifest = JSON.parse(data ?? "{}") as { start_url: string; display: string; icons: { src: string; sizes: string; purpose?: string }[] };
  expect(manifest).toMatchObject({ start_url: "/", display: "standalone" });
  expect(manifest.icons.map(({ sizes, purpose }) => `${sizes} ${purpose ?? "any"}`)).toEqual(["192x192 any", "512x512 any", "512x512 maskable"]);
  for (const { src, sizes } of manifest.icons) expect(sizeOf(await (await page.request.get(src)).body())).toBe(sizes);
});
