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
          include: ["test/unit/**/*.test.ts"],
          testTimeout: PATIENCE_MS,
          hookTimeout: PATIENCE_MS,
        },
      },
      {
        resolve: { alias },
        test: {
          name: "live",
          include: ["test/live/**/*.test.ts"],
          globalSetup: ["test/support/localnet.ts"],
          testTimeout: PATIENCE_MS,
          hookTimeout: PATIENCE_MS,
        },
      },
    ],
  },
});
