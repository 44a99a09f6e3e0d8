import { FastPay, type FastPayClient } from "@fastpay/sdk";
import { useQuery } from "@tanstack/react-query";
import { createContext, useContext, type JSX, type ReactNode } from "react";
import { createPublicClient, defineChain, http, type Chain } from "viem";

import { loadConfig, type NetworkConfig } from "./config";
import { Starting } from "./Starting";

/** The deployment, and the client that speaks with it. */
export interface Network {
  readonly config: NetworkConfig;
  readonly chain: Chain;
  readonly client: FastPayClient;
}

const NetworkContext = createContext<Network | undefined>(undefined);

/** The deployment that this page is for. */
export function useNetwork(): Network {
  const network = useContext(NetworkContext);
  if (network === undefined) throw new Error("useNetwork outside of NetworkProvider");
  return network;
}

async function connect(signal: AbortSignal): Promise<Network> {
  const config = await loadConfig(signal);
  const chain = defineChain({
    id: config.chainId,
    name: config.chainName,
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [config.rpc] } },
  });
  const publicClient = createPublicClient({ chain, transport: http(config.rpc), pollingInterval: 1_000 });
  const { contract, chainId, authorities, relayers } = config;
  const client = await FastPay.create({ publicClient, contract, chainId, authorities, relayers });
  return { config, chain, client };
}

/** Loads the deployment and shows why where that fails; nothing below it is there without one. */
export function NetworkProvider({ children }: { children: ReactNode }): JSX.Element {
  const query = useQuery({
    queryKey: ["network"],
    queryFn: ({ signal }) => connect(signal),
    staleTime: Number.POSITIVE_INFINITY,
    retry: 2,
    // A client is no JSON: it must stay the very same one.
    structuralSharing: false,
  });
  if (query.data === undefined) {
    return <Starting error={query.error} isBusy={query.isFetching} onRetry={() => void query.refetch()} />;
  }
  return <NetworkContext value={query.data}>{children}</NetworkContext>;
}
