/** A browser whose camera shows a picture. */

import { chromium, type Page } from "@playwright/test";
import { mkdirSync, writeFileSync } from "node:fs";

import config from "../../playwright.config";
import { PICTURES } from "./people";

/** Runs `task` in a page of a separate browser, whose camera films the picture at `source`. */
export async function withCamera(page: Page, source: string, task: (seeing: Page) => Promise<void>): Promise<void> {
  // Chromium's fake camera plays a film. This one has a single frame, the picture as on a screen.
  const easel = await page.context().newPage();
  await easel.setViewportSize({ width: 640, height: 480 });
  await easel.setContent(`<body style="margin:0;background:#ddd;display:grid;place-items:center;height:100vh"><img width="400">`);
  await easel.locator("img").evaluate(async (img: HTMLImageElement, src) => {
    img.src = src;
    await img.decode();
  }, source);
  const film = `${PICTURES}/camera.mjpeg`;
  mkdirSync(PICTURES, { recursive: true });
  writeFileSync(film, await easel.screenshot({ type: "jpeg", quality: 90 }));
  await easel.close();

  const { launchOptions } = config.use ?? {};
  const seeing = await chromium.launch({
    ...launchOptions,
    args: [
      ...(launchOptions?.args ?? []),
      "--use-fake-ui-for-media-stream",
      "--use-fake-device-for-media-stream",
      `--use-file-for-fake-video-capture=${film}`,
    ],
  });
  try {
    await task(await seeing.newPage({ baseURL: process.env.WEB_URL ?? "" }));
  } finally {
    await seeing.close();
  }
}
