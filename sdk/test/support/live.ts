/** Clients and users of the real network. */

import { createPublicClient, createWalletClient, http, type PublicClient, type WalletClient } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { inject } from "vitest";

import {
  ethereumSigner,
  FastPay,
  memoryStore,
  type FastPayClient,
  type ContractOptions,
  type Hex,
  type Signer,
} from "../../src/index.js";

export const network = inject("network");
const POLL_MS = 200;

export const publicClient: PublicClient = createPublicClient({
  chain: foundry,
  transport: http(network.rpc),
  pollingInterval: POLL_MS,
});

export const options: ContractOptions = {
  publicClient,
  contract: network.contract,
  chainId: network.chainId,
  authorities: network.authorities,
  storage: memoryStore(),
};

export function connect(changed: Partial<ContractOptions> = {}): Promise<FastPayClient> {
  return FastPay.create({ ...options, ...changed });
}

/** A wallet with a key of its own. */
export function walletOf(key: Hex): WalletClient {
  const account = privateKeyToAccount(key);
  return createWalletClient({ account, chain: foundry, transport: http(network.rpc), pollingInterval: POLL_MS });
}

/** The wallet of Alice or Bob, who have money on the chain. */
export function rich(name: string): { wallet: WalletClient; signer: Signer; address: Hex } {
  const key = network.accounts.find((account) => account.name === name)?.privateKey;
  if (key === undefined) throw new Error(`${name} has no key`);
  const wallet = walletOf(key);
  const address = wallet.account?.address as Hex;
  return { wallet, signer: ethereumSigner(wallet), address };
}

/** Polls until the answer is defined. */
export async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await ask();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
