/** The page's Ethereum client: of viem's public client only what the SDK uses, which is a sixth of its code. */

import type { EthereumClient } from "@fastpay/sdk";
import { createClient, http, type Chain } from "viem";
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

/** What the page asks at the same time goes to the node in one request. */
export function ethereumClient(chain: Chain): EthereumClient {
  const [url] = chain.rpcUrls.default.http;
  const client = createClient({ chain, transport: http(url, { batch: true }), pollingInterval: 1_000 });
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
    waitForTransactionReceipt: (args) => waitForTransactionReceipt(client, args),
  };
  return Object.assign(client, reads);
}
