import { FastPay, isFastPayError, type EthereumClient, type FastPayClient } from "@fastpay/sdk";
import { useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useRef, type JSX, type ReactNode } from "react";
import { defineChain, type Chain } from "viem";

import { Arrival } from "../app/Arrival";
import { loadConfig, type NetworkConfig } from "./config";
import { ethereumClient } from "./ethereum-client";
import { Unreachable } from "./Unreachable";

/** The deployment and its client. */
export interface Network {
  readonly config: NetworkConfig;
  readonly chain: Chain;
  readonly client: FastPayClient;
  /** The page's Ethereum nodes; undefined on a ledger. */
  readonly ethereum: EthereumClient | undefined;
}

const NetworkContext = createContext<Network | undefined>(undefined);

/** The page's deployment. */
export function useNetwork(): Network {
  const network = useContext(NetworkContext);
  if (network === undefined) throw new Error("useNetwork outside of NetworkProvider");
  return network;
}

/** The page's deployment; undefined while it is not loaded. */
export function useNetworkIfLoaded(): Network | undefined {
  return useContext(NetworkContext);
}

/** The interval between two checks that the network is still the same, in milliseconds. */
const CHECK_INTERVAL_MS = 30_000;

async function connect(signal: AbortSignal, setAside: boolean): Promise<Network> {
  const config = await loadConfig(signal);
  const chain = defineChain({
    id: config.chainId,
    name: config.chainName,
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: config.rpc } },
  });
  const { contract, chainId, authorities, relayers } = config;
  const common = { authorities, relayers, setAside };
  if (config.ledger !== undefined) {
    // Loaded on demand: pages on Ethereum verify no ledger.
    const { openLedger } = await import("@fastpay/sdk/ledger");
    const client = await FastPay.create({ ledger: openLedger(config.ledger), ...common });
    return { config, chain, client, ethereum: undefined };
  }
  const ethereum = ethereumClient(chain);
  const client = await FastPay.create({ publicClient: ethereum, contract, chainId, ...common });
  return { config, chain, client, ethereum };
}

function networkQuery(setAside: () => boolean) {
  return {
    queryKey: ["network"],
    queryFn: ({ signal }: { signal: AbortSignal }) => connect(signal, setAside()),
    staleTime: Number.POSITIVE_INFINITY,
    // A client is not JSON, so it must not be compared or merged.
    structuralSharing: false,
  };
}

/** Loads the deployment before its pages are rendered. Resolves when it is loaded, or when loading it has failed. */
export function prefetchNetwork(queries: QueryClient): Promise<void> {
  return queries.prefetchQuery(networkQuery(() => false));
}

/** Loads the deployment. If that fails, shows the reason instead of its children. */
export function NetworkProvider({ children }: { children: ReactNode }): JSX.Element {
  const setAside = useRef(false);
  const queries = useQueryClient();
  const query = useQuery({
    ...networkQuery(() => setAside.current),
    retry: (failures, error) => failures < 2 && !isFastPayError(error, "other-deployment"),
    // If the prefetch failed, show its error, and retry on request only.
    retryOnMount: false,
  });
  const client = query.data?.client;
  const isCurrent = useQuery({
    queryKey: ["is-current", query.dataUpdatedAt],
    queryFn: () => (client as FastPayClient).isCurrent(),
    enabled: client !== undefined,
    initialData: true,
    // Committees from the storage are compared with the contract at once, others after the interval.
    ...(client?.committeesFrom === "storage" ? { initialDataUpdatedAt: 0 } : {}),
    staleTime: CHECK_INTERVAL_MS,
    refetchInterval: CHECK_INTERVAL_MS,
  });
  useEffect(() => {
    if (isCurrent.data !== false || client === undefined) return;
    // This client belongs to a network that is gone, so it sends no more requests.
    client.close();
    void queries.resetQueries();
  }, [isCurrent.data, client, queries]);
  if (query.data === undefined) {
    if (query.isFetching) return <Arrival />;
    const begin = (isAside: boolean): void => {
      setAside.current = isAside;
      void query.refetch();
    };
    return <Unreachable error={query.error} onRetry={() => begin(false)} onSetAside={() => begin(true)} />;
  }
  return <NetworkContext value={query.data}>{children}</NetworkContext>;
}
