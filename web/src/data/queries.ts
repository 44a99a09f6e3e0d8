/** The page's queries, each with one key. */

import type { AccountId, AccountState, AccountView, Address, AssetInfo, AssetStatus, Committee, ContractStatus, FastPayClient, ListStatus, OrderEntry, Redemption, RedemptionStatus, RelayerFees, UnlockCost, UnlockStatus, VerifiedCertificate } from "@fastpay/sdk";
import { ETHER, transferDigest } from "@fastpay/sdk";
import { QueryClient, useQueries, useQuery, type QueryFunctionContext, type UseQueryResult } from "@tanstack/react-query";

import { useNetwork } from "../network/NetworkProvider";
import { shorten } from "../ui/words";
import { useKnownAssets } from "./assets";
import { tokenInfo, type TokenAnswer } from "./tokens";

/** The interval between two reads of an account, in milliseconds. The event stream reports changes earlier. */
const ACCOUNT_INTERVAL_MS = 30_000;
/** The interval while some authorities report more than others, to show the new state as soon as all have it. */
const UNEVEN_INTERVAL_MS = 1_000;
/** The longest time for that interval. By then, all working authorities have an event that f + 1 reported. */
const UNEVEN_MAX_MS = 30_000;
const CHAIN_INTERVAL_MS = 30_000;
/** The interval for reading the newest transfers. */
const LATEST_INTERVAL_MS = 5_000;
/** The interval for reading a token's decimals again. */
const SILENT_INTERVAL_MS = 6_000;

/** ETH needs no query. */
const ETHER_INFO: AssetInfo = { asset: ETHER, symbol: "ETH", decimals: 18, hasPermit: false };

/** The page's cache of answers. Amounts are bigints, which the library cannot compare by structure. */
export function makeQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: { queries: { retry: 1, staleTime: 2_000, structuralSharing: false } },
  });
}

/**
 * Reads an account again; resolves when the authorities have answered, without waiting for the chain. Its history is
 * read again if it has grown.
 */
export async function refreshAccount(queries: QueryClient, account: AccountId): Promise<void> {
  // A running read may have begun too early, and would not be repeated.
  await queries.cancelQueries({ queryKey: ["account", account] });
  void queries.invalidateQueries({ queryKey: ["chain"] });
  await Promise.all([
    queries.invalidateQueries({ queryKey: ["account", account] }),
    queries.invalidateQueries({ queryKey: ["orders", account] }),
  ]);
}

/**
 * Reads an account's history again. A running read, which may take long, is completed first, so that frequent calls
 * cannot prevent it from ever being shown. It may have begun too early, so another read follows.
 */
export async function refreshHistory(queries: QueryClient, account: AccountId): Promise<void> {
  const queryKey = ["history", account];
  await queries.refetchQueries({ queryKey, fetchStatus: "fetching" }, { cancelRefetch: false });
  await queries.invalidateQueries({ queryKey }, { cancelRefetch: false });
}

/** An account as it was last read. */
interface AccountRead {
  readonly view: AccountView;
  /**
   * A fingerprint of the account's history: its proven number, and the counts that f + 1 authorities report, one of
   * which is honest.
   */
  readonly extent: string;
  /** The time since which the extent has been the same, in milliseconds since 1970. */
  readonly sinceMs: number;
}

/** The query for an account. */
function accountQuery(client: FastPayClient, account: AccountId | undefined, assets: readonly Address[]) {
  return {
    queryKey: ["account", account, assets],
    queryFn: async ({ client: queries, queryKey }: QueryFunctionContext): Promise<AccountRead> => {
      const view = await client.account(account as AccountId, assets);
      const extent = extentOf(view, await client.committee());
      const before = queries.getQueryData<AccountRead>(queryKey);
      return { view, extent, sinceMs: before?.extent === extent ? before.sinceMs : Date.now() };
    },
    enabled: account !== undefined,
    refetchInterval: ({ state }: { state: { data: AccountRead | undefined } }) =>
      state.data !== undefined && isUneven(state.data) ? UNEVEN_INTERVAL_MS : ACCOUNT_INTERVAL_MS,
    placeholderData: (before: AccountRead | undefined) => before,
  };
}

function useAccountQuery(account: AccountId | undefined, assets: readonly Address[]) {
  return accountQuery(useNetwork().client, account, assets);
}

/** The cached state of an account, or a new read if that is outdated. */
export async function readAccount(
  queries: QueryClient,
  client: FastPayClient,
  account: AccountId,
  assets: readonly Address[],
): Promise<AccountView> {
  const { queryKey, queryFn } = accountQuery(client, account, assets);
  return (await queries.fetchQuery({ queryKey, queryFn, staleTime: ACCOUNT_INTERVAL_MS })).view;
}

function extentOf({ nextSequence, states }: AccountView, { faultsTolerated }: Committee): string {
  const confirmed = (of: (state: AccountState) => bigint): bigint | undefined => {
    const counts = states.flatMap(({ answer }) => (answer === undefined ? [] : [of(answer)]));
    return counts.sort((a, b) => (a < b ? 1 : -1))[faultsTolerated];
  };
  return [nextSequence, confirmed(({ received }) => received), confirmed(({ deposits }) => deposits)].join(".");
}

/** True if some authorities report more than others, and the others still have time to catch up. */
function isUneven({ view, sinceMs }: AccountRead): boolean {
  return new Set(Object.values(view.cursor)).size > 1 && Date.now() - sinceMs < UNEVEN_MAX_MS;
}

/** An account as the committee agrees on it. */
export function useAccount(account: AccountId | undefined, assets: readonly Address[]): UseQueryResult<AccountView> {
  return useQuery({ ...useAccountQuery(account, assets), select: ({ view }) => view });
}

/** The fingerprint of an account's history, which changes when the history grows; undefined until it is known. */
export function useExtent(account: AccountId | undefined, assets: readonly Address[]): string | undefined {
  return useQuery({ ...useAccountQuery(account, assets), select: ({ extent }) => extent }).data;
}

/**
 * Each authority's answer about an account. Waits for each for the whole time for reads, to show which ones answer.
 */
export function useAuthorities(account: AccountId): UseQueryResult<AccountView["states"]> {
  const { client } = useNetwork();
  return useQuery({
    queryKey: ["account", account, "authorities"],
    queryFn: async () => (await client.account(account, [], { graceMs: Number.POSITIVE_INFINITY })).states,
    refetchInterval: ACCOUNT_INTERVAL_MS,
  });
}

/** The balances of an address on the chain, by asset; undefined until they are known. */
export function useChainBalances(owner: Address | undefined, assets: readonly Address[]): UseQueryResult<bigint>[] {
  const { client } = useNetwork();
  return useQueries({
    queries: assets.map((asset) => ({
      queryKey: ["chain", "balance", owner, asset],
      queryFn: () => client.balanceOnChain(owner as Address, asset),
      enabled: owner !== undefined,
      refetchInterval: CHAIN_INTERVAL_MS,
    })),
  });
}

/** An asset with its displayed name. */
export interface ShownAsset extends AssetInfo {
  /** True if the asset is neither the deployment's nor added here: anyone can send a token with any name. */
  readonly isUnknown: boolean;
  /** The token's name; for an unknown token, the word "unknown" and its address. */
  readonly label: string;
}

/** Names an asset. Assets outside `known` are marked as unknown. */
export function shown(info: AssetInfo, known: readonly Address[]): ShownAsset {
  const isUnknown = !known.includes(info.asset);
  return { ...info, isUnknown, label: isUnknown ? `${info.symbol} (unknown ${shorten(info.asset, 6, 4)})` : info.symbol };
}

/** An asset's name, or the error of reading it; neither during the first request. */
export interface Naming {
  readonly info?: ShownAsset;
  readonly error?: unknown;
}

/** The names of assets. Reads a token again until it answers, because a payment needs its decimals. */
export function useNamings(assets: readonly Address[]): Naming[] {
  const { client, config } = useNetwork();
  const { assets: known } = useKnownAssets();
  const place = `fastpay.tokens.${config.chainId}.${config.contract}`;
  const infos = useQueries({
    queries: assets.map((asset) => ({
      queryKey: ["asset", asset],
      // Return the error as data, so that it stays visible while the asset is read again.
      queryFn: async (): Promise<Partial<TokenAnswer> & { error?: unknown }> => {
        try {
          return asset === ETHER && config.ledger === undefined ? { info: ETHER_INFO, isStored: false } : await tokenInfo(client, place, asset);
        } catch (error) {
          return { error };
        }
      },
      staleTime: Number.POSITIVE_INFINITY,
      refetchInterval: ({ state }: { state: { data: Partial<TokenAnswer> | undefined } }) =>
        state.data?.isStored === false ? false : SILENT_INTERVAL_MS,
    })),
  });
  return infos.map(({ data: { info, error } = {} }) => (info === undefined ? { error } : { info: shown(info, known) }));
}

/** The name of one asset. */
export function useNaming(asset: Address): Naming {
  const [naming = {}] = useNamings([asset]);
  return naming;
}

/** The contract's status. */
export function useContractStatus(): UseQueryResult<ContractStatus> {
  const { client } = useNetwork();
  return useQuery({
    queryKey: ["chain", "contract"],
    queryFn: () => client.contractStatus(),
    refetchInterval: CHAIN_INTERVAL_MS,
  });
}

/** The time at which the contract's pause ends, in seconds since 1970; undefined if it is not paused. */
export function usePausedUntil(): bigint | undefined {
  const status = useContractStatus().data;
  return status !== undefined && status.pausedUntil > status.timestamp ? status.pausedUntil : undefined;
}

/** The newest transfers of all accounts, newest first. */
export function useLatestTransfers(): UseQueryResult<readonly VerifiedCertificate[]> {
  const { client } = useNetwork();
  return useQuery({
    queryKey: ["latest"],
    queryFn: () => client.latestTransfers(),
    refetchInterval: LATEST_INTERVAL_MS,
  });
}

/** The contract's state of one asset. */
export function useAssetStatus(asset: Address): UseQueryResult<AssetStatus> {
  const { client } = useNetwork();
  return useQuery({
    queryKey: ["chain", "asset", asset],
    queryFn: () => client.assetStatus(asset),
    refetchInterval: CHAIN_INTERVAL_MS,
  });
}

/** The orders stored in this browser, newest first. */
export function useOrders(account: AccountId | undefined): UseQueryResult<OrderEntry[]> {
  const { client } = useNetwork();
  return useQuery({
    queryKey: ["orders", account],
    queryFn: () => client.orders(account as AccountId),
    enabled: account !== undefined,
  });
}

/** The relayers' fees for redeeming an asset; undefined during the first request. */
export function useRelayerFees(asset: Address): RelayerFees | undefined {
  const { client } = useNetwork();
  return useQuery({
    queryKey: ["relayers", asset],
    queryFn: () => client.relayerFees(asset),
    refetchInterval: CHAIN_INTERVAL_MS,
  }).data;
}

/** The lists of payments that were started in this browser and are not settled, oldest first. */
export function useUnfinishedLists(account: AccountId): UseQueryResult<ListStatus[]> {
  const { client } = useNetwork();
  return useQuery({ queryKey: ["orders", account, "lists"], queryFn: () => client.unfinishedLists(account) });
}

/** The contract's state of a number to unlock; undefined until it is known. */
export function useUnlockStatus(account: AccountId, sequence: bigint): UnlockStatus | undefined {
  const { client } = useNetwork();
  return useQuery({
    queryKey: ["chain", "unlock", account, sequence.toString()],
    queryFn: () => client.unlockStatus(account, sequence),
    refetchInterval: CHAIN_INTERVAL_MS,
  }).data;
}

/** The present cost of unlocking a number; undefined until it is known. */
export function useUnlockCost(): UnlockCost | undefined {
  const { client, config } = useNetwork();
  const enabled = config.ledger === undefined;
  return useQuery({ queryKey: ["chain", "unlock-cost"], queryFn: () => client.unlockCost(), enabled, refetchInterval: CHAIN_INTERVAL_MS }).data;
}

/**
 * The interval for reading a redemption's state again; false for final states. A node without a log may serve it later.
 */
const STATUS_INTERVALS_MS: Record<RedemptionStatus["state"], number | false> = {
  open: 2_000,
  queued: 2_000,
  spent: CHAIN_INTERVAL_MS,
  paid: false,
  displaced: false,
  released: false,
  voided: false,
};
/** The same for an open one on a ledger. */
const LEDGER_OPEN_MS = 10_000;

/** The status of redemptions at the contract. */
export function useRedemptionStatuses(redemptions: readonly Redemption[]): UseQueryResult<RedemptionStatus>[] {
  const { client, config } = useNetwork();
  // Every member of a ledger is asked.
  const intervals = config.ledger === undefined ? STATUS_INTERVALS_MS : { ...STATUS_INTERVALS_MS, open: LEDGER_OPEN_MS };
  return useQueries({
    queries: redemptions.map((redemption) => ({
      queryKey: ["chain", "redemption", transferDigest(client.domain, redemption)],
      queryFn: () => client.redemptionStatus(redemption),
      refetchInterval: ({ state }: { state: { data: RedemptionStatus | undefined } }) => intervals[state.data?.state ?? "open"],
    })),
  });
}

/** The status of one redemption; undefined until it is known. */
export function useRedemptionStatus(redemption: Redemption): RedemptionStatus | undefined {
  const [query] = useRedemptionStatuses([redemption]);
  return query?.data;
}
