import { defineConfig } from "@playwright/test";

/** The browser that is tested in; make's set-up finds or installs one. */
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** From deposit to redemption: `make test` has these. The others are tested by `make test-all`. */
const MONEY = ["deposit", "pay", "recovery", "redeem"].map((name) => `**/${name}.spec.ts`);

/** On a ledger: `make test-ledger` has these, which builds one (playwright.ledger.config.ts). */
const LEDGER = "**/ledger/**";

export default defineConfig({
  testDir: "test",
  projects: [
    { name: "money", testMatch: MONEY },
    { name: "rest", testIgnore: [...MONEY, LEDGER] },
  ],
  outputDir: "../target/web/failures",
  // Each worker has a network and a chain of its own: pauses and the clock are everybody's there.
  workers: process.env.FASTPAY_NETWORK === undefined ? 2 : 1,
  // Nothing takes this long, however busy the machine is.
  timeout: 300_000,
  expect: { timeout: 60_000 },
  reporter: [["list"]],
  use: {
    viewport: { width: 1280, height: 860 },
    locale: "en-GB",
    colorScheme: "light",
    screenshot: "only-on-failure",
    launchOptions: {
      executablePath: CHROMIUM,
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
