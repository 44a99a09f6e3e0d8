import type { Address } from "@fastpay/sdk";
import { createWalletClient, custom, type Chain, type EIP1193Provider, type WalletClient } from "viem";

/** A viem client for a wallet's transactions. */
export function walletClient(provider: EIP1193Provider, account: Address, chain: Chain): WalletClient {
  return createWalletClient({ account, chain, transport: custom(provider) });
}
