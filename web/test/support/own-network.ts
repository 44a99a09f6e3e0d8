/** For the tests of one file that need a network to themselves: nobody relays there, and it may stand still or change its keys. */

import { readFileSync } from "node:fs";

import { startNetwork, type StartedNetwork } from "../../../sdk/test/support/network";
import { test } from "./people";

/** Has the tests of this file, and the pages in them, use a network of their own; `name` is in the names of its files. */
export function useOwnNetwork(name: string): () => StartedNetwork {
  let started: StartedNetwork;
  let everybodys: string | undefined;

  test.beforeAll(async () => {
    test.setTimeout(300_000);
    started = await startNetwork(`web-${name}-${process.pid}`, false);
    everybodys = process.env.FASTPAY_NETWORK;
    process.env.FASTPAY_NETWORK = started.file;
  });

  test.afterAll(async () => {
    if (everybodys !== undefined) process.env.FASTPAY_NETWORK = everybodys;
    await started.stop();
  });

  test.beforeEach(async ({ page }) => {
    const { chainId, rpc, contract, token, authorities, relayers } = JSON.parse(readFileSync(started.file, "utf8"));
    await page.route("**/network.json", (route) => route.fulfill({ json: { chainId, rpc, contract, token, authorities, relayers } }));
  });

  return () => started;
}
