/** Accessibility checks with axe. */

import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";

import { expect } from "./people";

/**
 * Waits until no animation runs: an element that fades in cannot be judged yet, and one that fades out is still there.
 */
async function isAtRest(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const moves = (): boolean =>
      document.getAnimations().some(({ playState, effect }) => playState === "running" && effect?.getComputedTiming().endTime !== Infinity);
    // An animation begins a frame or two after the change that causes it.
    for (let still = 0; still < 4; still = moves() ? 0 : still + 1) await new Promise(requestAnimationFrame);
  });
}

async function faults(page: Page): Promise<string[]> {
  await isAtRest(page);
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.flatMap(({ id, impact, nodes }) => nodes.map(({ html, failureSummary }) => `${impact}: ${id}: ${html.slice(0, 200)}: ${failureSummary}`));
}

/** Expects that axe finds no fault in `page`. Polls, because an element may still be leaving. */
export async function isAccessible(page: Page): Promise<void> {
  await expect.poll(() => faults(page), { message: page.url() }).toEqual([]);
}
