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

/** A look at an account. */
interface Look {
  readonly view: AccountView;
  /** How much has happened to it: by what is proven, and by what f + 1 authorities say, of whom one is honest. */
  readonly extent: string;
  /** Since when it has been that. */
  readonly sinceMs: number;
}

/** How accounts are looked at. */
function lookQuery(client: FastPayClient, account: AccountId | undefined, assets: readonly Address[]) {
  return {
    queryKey: ["account", account, assets],
    queryFn: async ({ client: queries, queryKey }: QueryFunctionContext): Promise<Look> => {
      const view = await client.account(account as AccountId, assets);
      const extent = extentOf(view, await client.committee());
      const before = queries.getQueryData<Look>(queryKey);
      return { view, extent, sinceMs: before?.extent === extent ? before.sinceMs : Date.now() };
    },
    enabled: account !== undefined,
    refetchInterval: ({ state }: { state: { data: Look | undefined } }) =>
      state.data !== undefined && isUneven(state.data) ? UNEVEN_INTERVAL_MS : ACCOUNT_INTERVAL_MS,
    placeholderData: (before: Look | undefined) => before,
  };
}

function useLook(account: AccountId | undefined, assets: readonly Address[]) {
  return lookQuery(useNetwork().client, account, assets);
}

/** The newest look at an account, or a new one where that is outdated. */
export async function lookAt(
  queries: QueryClient,
  client: FastPayClient,
  account: AccountId,
  assets: readonly Address[],
): Promise<AccountView> {
  const { queryKey, queryFn } = lookQuery(client, account, assets);
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
function isUneven({ view, sinceMs }: Look): boolean {
  return new Set(Object.values(view.cursor)).size > 1 && Date.now() - sinceMs < UNEVEN_MAX_MS;
}

/** What the committee says of an account. */
export function useAccount(account: AccountId | undefined, assets: readonly Address[]): UseQueryResult<AccountView> {
  return useQuery({ ...useLook(account, assets), select: ({ view }) => view });
}

/** How much has happened to an account, as a text that differs where more has; undefined if it is not known yet. */
export function useExtent(account: AccountId | undefined, assets: readonly Address[]): string | undefined {
  return useQuery({ ...useLook(account, assets), select: ({ extent }) => extent }).data;
}

/** What each authority reports of an account, where it matters who answers at all: each has all the time that reads have. */
export function useAuthorities(account: AccountId): UseQueryResult<AccountView["states"]> {
  const { client } = useNetwork();
  return useQuery({
    queryKey: ["account", account, "authorities"],
    queryFn: async () => (await client.account(account, [], { graceMs: Number.POSITIVE_INFINITY })).states,
    refetchInterval: ACCOUNT_INTERVAL_MS,
  });
}

/** What an address holds on the chain, by asset; undefined where it is not known yet. */
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
  /** What it calls itself; where it is unknown, with that word and its address. */
  readonly label: string;
}

/** An asset as the page names it, which knows those. */
export function shown(info: AssetInfo, known: readonly Address[]): ShownAsset {
  const isUnknown = !known.includes(info.asset);
  return { ...info, isUnknown, label: isUnknown ? `${info.symbol} (unknown ${shorten(info.asset, 6, 4)})` : info.symbol };
}

/** What an asset is called, or why that is not known; neither while it is asked for the first time. */
export interface Naming {
  readonly info?: ShownAsset;
  readonly error?: unknown;
}

/** What assets are called. One that has not said so is asked again and again: without its decimals nothing is paid with it. */
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

/** What one asset is called. */
export function useNaming(asset: Address): Naming {
  const [naming = {}] = useNamings([asset]);
  return naming;
}

/** What the contract says of itself. */
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

/** What the contract says of one asset. */
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

/** What relayers take for a redemption of an asset; none while they are asked for the first time. */
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

/** What the contract says of a number that is to be unlocked; undefined while it is not known. */
export function useUnlockStatus(account: AccountId, sequence: bigint): UnlockStatus | undefined {
  const { client } = useNetwork();
  return useQuery({
    queryKey: ["chain", "unlock", account, sequence.toString()],
    queryFn: () => client.unlockStatus(account, sequence),
    refetchInterval: CHAIN_INTERVAL_MS,
  }).data;
}

/** What unlocking a number costs now; undefined while it is not known. */
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

/** Where redemptions stand on the contract. */
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

/** Where one redemption stands; undefined if it is not known yet. */
export function useRedemptionStatus(redemption: Redemption): RedemptionStatus | undefined {
  const [query] = useRedemptionStatuses([redemption]);
  return query?.data;
}
