import { defineConfig } from "vitest/config";

/** What `make test-ledger` runs: the SDK on a real ledger, whose programs `make test` does not build. */
export default defineConfig({
  test: {
    include: ["test/ledger/**/*.test.ts"],
    maxWorkers: 1,
    testTimeout: 360_000,
    hookTimeout: 360_000,
    expect: { poll: { timeout: 360_000 } },
  },
});
