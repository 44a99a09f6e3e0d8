/** How a person uses a page: with a finger on a phone, or with the keyboard alone. */

import type { Locator, Page } from "@playwright/test";

import { expect } from "./people";

/** A way to use the page. Each function ends when the page has taken the input. */
export interface Hand {
  /** A button or a link. */
  readonly press: (target: Locator) => Promise<void>;
  /** A text, in place of the one that stands there. */
  readonly write: (field: Locator, text: string) => Promise<void>;
  /** An option of a native list, by its label. */
  readonly choose: (list: Locator, label: string) => Promise<void>;
  /** A box to tick. */
  readonly tick: (box: Locator) => Promise<void>;
  /** Called where a flow stands still: everything is within reach. */
  readonly look: () => Promise<void>;
}

const WIDTH = 390;
/** As a phone's screen. */
export const PHONE = { viewport: { width: WIDTH, height: 780 }, hasTouch: true, isMobile: true } as const;

/** A finger on a screen that nothing is wider than. */
export function finger(page: Page): Hand {
  const look = async (): Promise<void> => {
    expect(await page.evaluate(() => document.documentElement.scrollWidth), page.url()).toBeLessThanOrEqual(WIDTH);
  };
  return {
    press: async (target) => {
      await look();
      await target.tap();
    },
    write: (field, text) => field.fill(text),
    choose: async (list, label) => void (await list.selectOption(label)),
    tick: (box) => box.check(),
    look,
  };
}

/** More places than any page has. */
const TABS_MAX = 120;

/** The keyboard alone: whatever is used is reached by Tab. */
export function keyboard(page: Page): Hand {
  const reach = async (target: Locator): Promise<void> => {
    await expect(target).toBeEnabled();
    const isThere = (): Promise<boolean> => target.evaluate((one) => one === document.activeElement);
    for (let tabs = 0; tabs < TABS_MAX; tabs += 1) {
      if (await isThere()) return;
      await page.keyboard.press("Tab");
    }
    throw new Error(`${target} is not reached by Tab`);
  };
  return {
    press: async (target) => {
      await reach(target);
      await page.keyboard.press("Enter");
    },
    write: async (field, text) => {
      await reach(field);
      await page.keyboard.press("Control+A");
      await page.keyboard.type(text);
    },
    choose: async (list, label) => {
      await reach(list);
      await page.keyboard.press("Home");
      const chosen = list.locator("option:checked");
      for (let left = await list.locator("option").count(); (await chosen.innerText()) !== label; left -= 1) {
        if (left === 0) throw new Error(`${list} has no ${label}`);
        await page.keyboard.press("ArrowDown");
      }
    },
    tick: async (box) => {
      await reach(box);
      await page.keyboard.press("Space");
    },
    look: async () => undefined,
  };
}
