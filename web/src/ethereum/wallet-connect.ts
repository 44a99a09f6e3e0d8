/**
 * A wallet on another device, by WalletConnect. This module alone imports its library, and is loaded when somebody
 * chooses it, or comes back to it.
 */

import type { Address } from "@fastpay/sdk";
import { UniversalProvider } from "@walletconnect/universal-provider";
import { toHex, type Chain } from "viem";

/** What the page asks a wallet for. */
const METHODS = ["eth_sendTransaction", "eth_signTypedData_v4"];

/** The part of a wallet's provider that the page uses. */
export interface RemoteProvider {
  readonly request: (args: { method: string; params?: unknown }) => Promise<unknown>;
  /** Calls back when the other device ends the connection. */
  readonly onEnd: (listener: () => void) => void;
  readonly disconnect: () => Promise<void>;
}

/** Opens the connection of an earlier visit, or none. `onUri` takes what the other device reads as a QR code. */
export async function openRemote(projectId: string, chain: Chain, onUri: (uri: string) => void): Promise<RemoteProvider> {
  const { origin } = window.location;
  const metadata = { name: "FastPay", description: "Deposit, pay and redeem with FastPay on Ethereum", url: origin, icons: [`${origin}/icon-192.png`] };
  const universal = await UniversalProvider.init({ projectId, metadata });
  universal.on("display_uri", onUri);
  const name = `eip155:${chain.id}`;
  const accounts = (): Address[] => {
    const listed = universal.session?.namespaces.eip155?.accounts ?? [];
    return listed.filter((account) => account.startsWith(`${name}:`)).map((account) => account.slice(name.length + 1) as Address);
  };
  const connect = async (): Promise<Address[]> => {
    const [url = ""] = chain.rpcUrls.default.http;
    const namespace = { chains: [name], methods: METHODS, events: [], rpcMap: { [chain.id]: url } };
    if (universal.session === undefined) await universal.connect({ optionalNamespaces: { eip155: namespace } });
    return accounts();
  };
  return {
    request: async ({ method, params }) => {
      switch (method) {
        case "eth_requestAccounts":
          return connect();
        case "eth_accounts":
          return accounts();
        // A session is of the deployment's chain alone.
        case "eth_chainId":
          return toHex(chain.id);
        case "wallet_switchEthereumChain":
          return null;
        default:
          return universal.request({ method, params: params as unknown[] }, name);
      }
    },
    onEnd: (listener) => universal.on("session_delete", listener),
    disconnect: () => universal.disconnect(),
  };
}
