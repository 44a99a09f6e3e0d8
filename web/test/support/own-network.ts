/** A separate network for the tests of one file. It has no relayer, and tests may stop its chain or rotate its keys. */

import { startNetwork, type StartedNetwork } from "../../../sdk/test/support/network";
import { test } from "./people";

/** Makes the tests of a file, and their pages, use a separate network. `name` is part of the names of its files. */
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
