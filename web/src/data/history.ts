/** An account's proven history, newest first, page by page. */

import type { AccountId, DepositEntry, History, HistoryCursor, ReceivedEntry, SentEntry } from "@fastpay/sdk";
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

import { useKnownAssets } from "./assets";
import { readAccount, refreshHistory, useExtent } from "./queries";
import { useNetwork } from "../network/NetworkProvider";

/** All pages read so far, joined. */
export interface AccountHistory {
  readonly sent: readonly SentEntry[];
  readonly received: readonly ReceivedEntry[];
  readonly deposits: readonly DepositEntry[];
  /** The lists that lack pruned entries. */
  readonly incomplete: History["incomplete"];
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly hasOlder: boolean;
  readonly isLoadingOlder: boolean;
  readonly loadOlder: () => void;
}

/** The history of an account, with `limit` entries of each list on a page. */
export function useHistory(account: AccountId, limit: number): AccountHistory {
  const { client } = useNetwork();
  const { assets } = useKnownAssets();
  const queries = useQueryClient();
  const query = useInfiniteQuery({
    queryKey: ["history", account, limit],
    queryFn: async ({ pageParam: cursor }) => {
      const view = await readAccount(queries, client, account, assets);
      return client.history(account, { limit, view, ...(cursor === undefined ? {} : { cursor }) });
    },
    initialPageParam: undefined as HistoryCursor | undefined,
    getNextPageParam: (page: History) => page.older,
  });
  const extent = useExtent(account, assets);
  const known = useRef(extent);
  useEffect(() => {
    // The first read of the history has the first state of the account.
    if (known.current !== undefined && known.current !== extent) void refreshHistory(queries, account);
    known.current = extent;
  }, [account, extent, queries]);
  const pages = query.data?.pages ?? [];
  return {
    sent: pages.flatMap(({ sent }) => sent),
    received: pages.flatMap(({ received }) => received),
    deposits: pages.flatMap(({ deposits }) => deposits),
    incomplete: [...new Set(pages.flatMap(({ incomplete }) => incomplete))],
    isLoading: query.isPending,
    error: query.error ?? undefined,
    hasOlder: query.hasNextPage,
    isLoadingOlder: query.isFetchingNextPage,
    loadOlder: () => void query.fetchNextPage(),
  };
}
