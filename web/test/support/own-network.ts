/** For the tests of one file that need a network to themselves: nobody relays there, and it may stand still or change its keys. */

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

  return () => started;
}
