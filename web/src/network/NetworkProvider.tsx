import { FastPay, isFastPayError, type FastPayClient } from "@fastpay/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useRef, type JSX, type ReactNode } from "react";
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

/** Between two looks at whether the network is the one that it was. */
const CHECK_INTERVAL_MS = 20_000;

async function connect(signal: AbortSignal, setAside: boolean): Promise<Network> {
  const config = await loadConfig(signal);
  const chain = defineChain({
    id: config.chainId,
    name: config.chainName,
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [config.rpc] } },
  });
  const publicClient = createPublicClient({ chain, transport: http(config.rpc), pollingInterval: 1_000 });
  const { contract, chainId, authorities, relayers } = config;
  const client = await FastPay.create({ publicClient, contract, chainId, authorities, relayers, setAside });
  return { config, chain, client };
}

/** Loads the deployment and shows why where that fails; nothing below it is there without one. */
export function NetworkProvider({ children }: { children: ReactNode }): JSX.Element {
  const setAside = useRef(false);
  const queries = useQueryClient();
  const query = useQuery({
    queryKey: ["network"],
    queryFn: ({ signal }) => connect(signal, setAside.current),
    staleTime: Number.POSITIVE_INFINITY,
    retry: (failures, error) => failures < 2 && !isFastPayError(error, "other-deployment"),
    // A client is no JSON: it must stay the very same one.
    structuralSharing: false,
  });
  const client = query.data?.client;
  const isCurrent = useQuery({
    queryKey: ["is-current", query.dataUpdatedAt],
    queryFn: () => (client as FastPayClient).isCurrent(),
    enabled: client !== undefined,
    refetchInterval: CHECK_INTERVAL_MS,
  });
  useEffect(() => {
    if (isCurrent.data !== false || client === undefined) return;
    // What this client knows is of a network that is gone: nothing more is asked or sent with it.
    client.close();
    void queries.resetQueries();
  }, [isCurrent.data, client, queries]);
  if (query.data === undefined) {
    const begin = (isAside: boolean): void => {
      setAside.current = isAside;
      void query.refetch();
    };
    return <Starting error={query.error} isBusy={query.isFetching} onRetry={() => begin(false)} onSetAside={() => begin(true)} />;
  }
  return <NetworkContext value={query.data}>{children}</NetworkContext>;
}
