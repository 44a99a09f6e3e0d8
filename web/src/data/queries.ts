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
/** While some authorities know more of it than others: what all are about to know is shown at once. */
const UNEVEN_INTERVAL_MS = 1_000;
/** The delay after f + 1 authorities reported an event. By then, all working authorities know it. */
const UNEVEN_MAX_MS = 30_000;
const CHAIN_INTERVAL_MS = 30_000;
/** The interval for reading the newest transfers. */
const LATEST_INTERVAL_MS = 5_000;
/** The interval for reading a token's decimals again. */
const SILENT_INTERVAL_MS = 6_000;

/** ETH is known without a query. */
const ETHER_INFO: AssetInfo = { asset: ETHER, symbol: "ETH", decimals: 18, hasPermit: false };

/** The page's memory of answers. Amounts are bigints, which the library cannot compare by structure. */
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
  // A read under way may be too early, and would not be repeated.
  await queries.cancelQueries({ queryKey: ["account", account] });
  void queries.invalidateQueries({ queryKey: ["chain"] });
  await Promise.all([
    queries.invalidateQueries({ queryKey: ["account", account] }),
    queries.invalidateQueries({ queryKey: ["orders", account] }),
  ]);
}

/**
 * Has an account's history read again. What is being read is read to its end, which may be long: whoever has it asked for
 * again and again must not keep it from ever being shown. As it may have been too early, it is read once more then.
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
  /** Since when it has been that. */
  readonly sinceMs: number;
}

/** How an account is read. */
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
  const said = (of: (state: AccountState) => bigint): bigint | undefined => {
    const counts = states.flatMap(({ answer }) => (answer === undefined ? [] : [of(answer)]));
    return counts.sort((a, b) => (a < b ? 1 : -1))[faultsTolerated];
  };
  return [nextSequence, said(({ received }) => received), said(({ deposits }) => deposits)].join(".");
}

/** Some authorities know more than others, and have not had the time that they need. */
function isUneven({ view, sinceMs }: AccountRead): boolean {
  return new Set(Object.values(view.cursor)).size > 1 && Date.now() - sinceMs < UNEVEN_MAX_MS;
}

/** An account as the committee agrees on it. */
export function useAccount(account: AccountId | undefined, assets: readonly Address[]): UseQueryResult<AccountView> {
  return useQuery({ ...useAccountQuery(account, assets), select: ({ view }) => view });
}

/** How much has happened to an account, as a text that differs where more has; undefined if it is not known yet. */
export function useExtent(account: AccountId | undefined, assets: readonly Address[]): string | undefined {
  return useQuery({ ...useAccountQuery(account, assets), select: ({ extent }) => extent }).data;
}

/**
 * Each authority's answer about an account. Each has all the time that reads have, because it matters which ones
 * answer.
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

/** An asset as the page names it. */
export interface ShownAsset extends AssetInfo {
  /** Neither of the deployment nor added here: anyone can send a token that calls itself as it likes. */
  readonly isUnknown: boolean;
  /** The token's name; for an unknown token, the word "unknown" and its address. */
  readonly label: string;
}

/** An asset as the page names it, which knows those. */
export function shown(info: AssetInfo, known: readonly Address[]): ShownAsset {
  const isUnknown = !known.includes(info.asset);
  return { ...info, isUnknown, label: isUnknown ? `${info.symbol} (unknown ${shorten(info.asset, 6, 4)})` : info.symbol };
}

/** An asset's name, or why it is not known; neither during the first request. */
export interface Naming {
  readonly info?: ShownAsset;
  readonly error?: unknown;
}

/** The names of assets. A token that has not answered is asked again: without its decimals, it cannot be paid with. */
export function useNamings(assets: readonly Address[]): Naming[] {
  const { client, config } = useNetwork();
  const { assets: known } = useKnownAssets();
  const place = `fastpay.tokens.${config.chainId}.${config.contract}`;
  const infos = useQueries({
    queries: assets.map((asset) => ({
      queryKey: ["asset", asset],
      // The error is an answer as well: it stands while the asset is asked again.
      queryFn: async (): Promise<Partial<TokenAnswer> & { error?: unknown }> => {
        try {
          return asset === ETHER ? { info: ETHER_INFO, isStored: false } : await tokenInfo(client, place, asset);
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

/** Until when the contract is paused, in seconds since 1970; none while it is not. */
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

/** The orders that this browser has written down, newest first. */
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
  const { client } = useNetwork();
  return useQuery({ queryKey: ["chain", "unlock-cost"], queryFn: () => client.unlockCost(), refetchInterval: CHAIN_INTERVAL_MS }).data;
}

/** The interval for reading a redemption's state again; none once it stays. A node that gave no log may give it later. */
const STATUS_INTERVALS_MS: Record<RedemptionStatus["state"], number | false> = {
  open: 2_000,
  queued: 2_000,
  spent: CHAIN_INTERVAL_MS,
  paid: false,
  displaced: false,
  released: false,
  voided: false,
};

/** The status of redemptions at the contract. */
export function useRedemptionStatuses(redemptions: readonly Redemption[]): UseQueryResult<RedemptionStatus>[] {
  const { client } = useNetwork();
  return useQueries({
    queries: redemptions.map((redemption) => ({
      queryKey: ["chain", "redemption", transferDigest(client.domain, redemption)],
      queryFn: () => client.redemptionStatus(redemption),
      refetchInterval: ({ state }: { state: { data: RedemptionStatus | undefined } }) => STATUS_INTERVALS_MS[state.data?.state ?? "open"],
    })),
  });
}

/** The status of one redemption; undefined until it is known. */
export function useRedemptionStatus(redemption: Redemption): RedemptionStatus | undefined {
  const [query] = useRedemptionStatuses([redemption]);
  return query?.data;
}
