/** What axe finds in a page. */

import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";

import { expect } from "./people";

/** Waits until nothing moves: what fades in cannot be judged yet, and what fades out is still there. */
async function isAtRest(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const moves = (): boolean =>
      document.getAnimations().some(({ playState, effect }) => playState === "running" && effect?.getComputedTiming().endTime !== Infinity);
    // A movement begins a frame or two after what it belongs to.
    for (let still = 0; still < 4; still = moves() ? 0 : still + 1) await new Promise(requestAnimationFrame);
  });
}

async function faults(page: Page): Promise<string[]> {
  await isAtRest(page);
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.flatMap(({ id, impact, nodes }) => nodes.map(({ html, failureSummary }) => `${impact}: ${id}: ${html.slice(0, 200)}: ${failureSummary}`));
}

/** Axe finds nothing in `page`: now, or once what is on its way out has gone. */
export async function isAccessible(page: Page): Promise<void> {
  await expect.poll(() => faults(page), { message: page.url() }).toEqual([]);
}
