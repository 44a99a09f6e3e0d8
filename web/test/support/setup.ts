/**
 * Starts what the tests run against: the real localnet (four authorities, a relayer, a chain), unless FASTPAY_NETWORK
 * names the network.json of a running one, and the built page.
 */

import { resolve } from "node:path";

import { preview } from "vite";

import { startNetwork } from "../../../sdk/test/support/network";

export default async function setup(): Promise<() => Promise<void>> {
  const started = process.env.FASTPAY_NETWORK === undefined ? await startNetwork(`web-${process.pid}`) : undefined;
  if (started !== undefined) process.env.FASTPAY_NETWORK = started.file;
  const root = resolve(import.meta.dirname, "../..");
  const server = await preview({ root, preview: { port: 4_173, strictPort: false, host: "127.0.0.1" } });
  process.env.WEB_URL = server.resolvedUrls?.local[0] ?? "";
  return async () => {
    await server.close();
    await started?.stop();
  };
}
