/** WalletConnect among the wallets of this browser. Its library is loaded on demand. */

import type { Chain, EIP1193Provider } from "viem";

import type { FoundWallet } from "./discovery";
import type { RemoteProvider } from "./wallet-connect";

type Listener = (value: never) => void;

/** A wallet on another device. */
export function remoteWallet(projectId: string, chain: Chain): FoundWallet {
  const uris = new Set<(uri: string) => void>();
  const listeners = new Map<string, Set<Listener>>();
  let opening: Promise<RemoteProvider> | undefined;
  const open = (): Promise<RemoteProvider> => {
    opening ??= import("./wallet-connect").then(async ({ openRemote }) => {
      const remote = await openRemote(projectId, chain, (uri) => uris.forEach((take) => take(uri)));
      remote.onEnd(() => listeners.get("accountsChanged")?.forEach((listener) => listener([] as never)));
      return remote;
    });
    // After a failure, the next call tries again.
    opening.catch(() => (opening = undefined));
    return opening;
  };
  const provider = {
    request: async (args: { method: string; params?: unknown }) => (await open()).request(args),
    on: (event: string, listener: Listener) => void listeners.set(event, (listeners.get(event) ?? new Set()).add(listener)),
    removeListener: (event: string, listener: Listener) => void listeners.get(event)?.delete(listener),
  };
  return {
    id: "walletconnect",
    name: "WalletConnect",
    icon: undefined,
    provider: provider as unknown as EIP1193Provider,
    remote: {
      onUri: (take) => {
        uris.add(take);
        return () => uris.delete(take);
      },
      disconnect: async () => (await open()).disconnect(),
    },
  };
}
