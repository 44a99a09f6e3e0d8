/** The page's Ethereum client: the functions of viem's public client that the SDK uses, a sixth of its code. */

import type { EthereumClient } from "@fastpay/sdk";
import { BaseError, createClient, createTransport, http, HttpRequestError, TimeoutError, type Chain, type EIP1193RequestFn, type Transport } from "viem";
import {
  call,
  getBalance,
  getBlock,
  getChainId,
  getCode,
  getGasPrice,
  getTransaction,
  getTransactionCount,
  getTransactionReceipt,
  readContract,
  waitForTransactionReceipt,
} from "viem/actions";

import { fetchAhead } from "./ahead";

/** The time-out of a node, if there is another one, in milliseconds. */
const NODE_TIMEOUT_MS = 4_000;

/** Requests within this time, in milliseconds, are sent as one batch: a page renders in several steps. */
const BATCH = { wait: 10 };

/**
 * Asks the node that answered last. If it is unreachable, switches to the next one. An error in an answer does not
 * switch.
 */
function failover(urls: readonly string[]): Transport {
  const [only] = urls;
  if (urls.length === 1) return http(only, { batch: BATCH, fetchFn: fetchAhead });
  return (config) => {
    const nodes = urls.map((url) => http(url, { batch: BATCH, fetchFn: fetchAhead, retryCount: 0, timeout: NODE_TIMEOUT_MS })(config));
    let current = 0;
    const request: EIP1193RequestFn = async (args) => {
      for (let left = nodes.length; ; left -= 1) {
        const asked = current;
        try {
          return await (nodes[asked] as ReturnType<Transport>).request(args as never);
        } catch (error) {
          if (left === 1 || !isUnreachable(error)) throw error;
          // If many requests fail at once, only the first one switches to the next node.
          if (current === asked) current = (asked + 1) % nodes.length;
        }
      }
    };
    return createTransport({ key: "failover", name: "Several nodes", type: "failover", request, retryCount: 1 });
  };
}

function isUnreachable(error: unknown): boolean {
  const isIt = (inner: unknown): boolean => inner instanceof HttpRequestError || inner instanceof TimeoutError;
  return isIt(error) || (error instanceof BaseError && error.walk(isIt) !== null);
}

/** An Ethereum client that batches simultaneous requests. */
export function ethereumClient(chain: Chain): EthereumClient {
  const client = createClient({ chain, transport: failover(chain.rpcUrls.default.http), pollingInterval: 1_000 });
  const reads: Omit<EthereumClient, "chain" | "pollingInterval"> = {
    call: (args) => call(client, args),
    getBalance: (args) => getBalance(client, args),
    getBlock: (args) => getBlock(client, args),
    getChainId: () => getChainId(client),
    getCode: (args) => getCode(client, args),
    getGasPrice: () => getGasPrice(client),
    getTransaction: (args) => getTransaction(client, args),
    getTransactionCount: (args) => getTransactionCount(client, args),
    getTransactionReceipt: (args) => getTransactionReceipt(client, args),
    readContract: (args) => readContract(client, args),
    request: client.request as EthereumClient["request"],
    waitForTransactionReceipt: (args) => waitForTransactionReceipt(client, args),
  };
  return Object.assign(client, reads);
}
