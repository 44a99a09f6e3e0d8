import { defineConfig } from "@playwright/test";

import base from "./playwright.config";

/** The page on a real ledger. */
const { projects: _, ...common } = base;

export default defineConfig({ ...common, testDir: "test/ledger", workers: 1 });
