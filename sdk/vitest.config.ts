import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Tests wait for what they wait for, on a machine that may be busy with other things. */
const PATIENCE_MS = 360_000;

/** The quick start imports the package by its name; here that is its source. */
const alias = { "@fastpay/sdk": fileURLToPath(new URL("./src/index.ts", import.meta.url)) };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          // The modules keep no state, so that all files of a worker share them.
          isolate: false,
          // Half of their time is waiting. The live tests, which come afterwards, share one network.
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
          include: ["test/unit/**/*.test.ts"],
          testTimeout: PATIENCE_MS,
          hookTimeout: PATIENCE_MS,
          expect: { poll: { timeout: PATIENCE_MS } },
        },
      },
      {
        resolve: { alias },
        test: {
          name: "live",
          include: ["test/live/**/*.test.ts"],
          globalSetup: ["test/support/localnet.ts"],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
          testTimeout: PATIENCE_MS,
          hookTimeout: PATIENCE_MS,
          expect: { poll: { timeout: PATIENCE_MS } },
        },
      },
    ],
  },
});
