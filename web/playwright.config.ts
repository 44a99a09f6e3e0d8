import { defineConfig } from "@playwright/test";

/** The browser that is tested in; make's set-up finds or installs one. */
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Money, and what can be lost: `make test` has these. The others are tested by `make test-all`. */
const MONEY = [
  "alone",
  "anew",
  "deposit",
  "impostor",
  "keys",
  "liar",
  "link",
  "list",
  "nodes",
  "pay",
  "recovery",
  "redeem",
  "sent",
  "storage",
  "unlock",
  "without-ethereum",
].map((name) => `**/${name}.spec.ts`);

export default defineConfig({
  testDir: "test",
  projects: [
    { name: "money", testMatch: MONEY },
    { name: "rest", testIgnore: MONEY },
  ],
  outputDir: "../target/web/failures",
  globalSetup: "./test/support/setup.ts",
  // One network, one chain: pauses and the clock are everybody's.
  workers: 1,
  // Nothing takes this long, however busy the machine is.
  timeout: 300_000,
  expect: { timeout: 60_000 },
  reporter: [["list"]],
  use: {
    ...(process.env.WEB_URL === undefined ? {} : { baseURL: process.env.WEB_URL }),
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
