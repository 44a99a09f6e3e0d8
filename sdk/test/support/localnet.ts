/**
 * The real network of the live tests. If FASTPAY_NETWORK has the path of a running network's network.json, uses that
 * network; otherwise starts one, and stops it after the tests.
 */

import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { TestProject } from "vitest/node";

import { startNetwork, type NetworkFile } from "./network.js";

declare module "vitest" {
  interface ProvidedContext {
    network: NetworkFile;
    /** The network's folder. */
    folder: string;
  }
}

function read(path: string): NetworkFile {
  return JSON.parse(readFileSync(path, "utf8")) as NetworkFile;
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const running = process.env["FASTPAY_NETWORK"];
  if (running !== undefined) {
    project.provide("network", read(running));
    project.provide("folder", dirname(running));
    return async () => undefined;
  }
  const { file, stop } = await startNetwork(`sdk-${process.pid}`);
  project.provide("network", read(file));
  project.provide("folder", dirname(file));
  return stop;
}
