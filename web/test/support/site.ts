/**
 * The built page and a network for the tests of one worker. The network is a localnet of four authorities, a relayer
 * and a chain, unless FASTPAY_NETWORK has the path of a running network's network.json.
 */

import { resolve } from "node:path";

import { preview } from "vite";

import { startNetwork } from "../../../sdk/test/support/network";

export interface Site {
  readonly url: string;
  readonly close: () => Promise<void>;
}

/** Starts both, and puts their locations into the environment: FASTPAY_NETWORK and WEB_URL. */
export async function openSite(): Promise<Site> {
  const started = process.env.FASTPAY_NETWORK === undefined ? await startNetwork(`web-${process.pid}`) : undefined;
  if (started !== undefined) process.env.FASTPAY_NETWORK = started.file;
  const root = resolve(import.meta.dirname, "../..");
  const server = await preview({ root, logLevel: "error", preview: { port: 4_173, strictPort: false, host: "127.0.0.1" } });
  const url = server.resolvedUrls?.local[0] ?? "";
  process.env.WEB_URL = url;
  const close = async (): Promise<void> => {
    await server.close();
    await started?.stop();
  };
  return { url, close };
}
