/** Ways to use a page: with a finger on a phone, or with the keyboard alone. */

import type { Locator, Page } from "@playwright/test";

import { expect } from "./people";

/** A way to use the page. Each function resolves when the page has handled the input. */
export interface Hand {
  /** Presses a button or a link. */
  readonly press: (target: Locator) => Promise<void>;
  /** Replaces the text of a field. */
  readonly write: (field: Locator, text: string) => Promise<void>;
  /** Chooses an option of a native list by its label. */
  readonly choose: (list: Locator, label: string) => Promise<void>;
  /** Ticks a checkbox. */
  readonly tick: (box: Locator) => Promise<void>;
  /** Checks, between the steps of a flow, that everything is within reach. */
  readonly look: () => Promise<void>;
}

const WIDTH = 390;
/** The context options of a phone. */
export const PHONE = { viewport: { width: WIDTH, height: 780 }, hasTouch: true, isMobile: true } as const;

/** A finger on a phone's screen. Expects that the page is not wider than the screen. */
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

/** The maximum number of tab stops, more than any page has. */
const TABS_MAX = 120;

/** The keyboard alone: reaches every control by Tab. */
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
