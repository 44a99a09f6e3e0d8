/**
 * A wallet on another device, by WalletConnect. Only this module imports the library. It is loaded when a user chooses
 * WalletConnect, or used it at an earlier visit.
 */

import type { Address } from "@fastpay/sdk";
import { UniversalProvider } from "@walletconnect/universal-provider";
import { toHex, type Chain } from "viem";

/** The methods that the page requests from a wallet. */
const METHODS = ["eth_sendTransaction", "eth_signTypedData_v4"];

/** The part of a wallet's provider that the page uses. */
export interface RemoteProvider {
  readonly request: (args: { method: string; params?: unknown }) => Promise<unknown>;
  /** Calls back when the other device ends the connection. */
  readonly onEnd: (listener: () => void) => void;
  readonly disconnect: () => Promise<void>;
}

/**
 * Restores the connection of an earlier visit, if any. `onUri` gets the URI that the other device reads as a QR code.
 */
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
        // A session has only the deployment's chain.
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
