/** An account's proven history, newest first, page by page. */

import type { AccountId, DepositEntry, History, HistoryCursor, ReceivedEntry, SentEntry } from "@fastpay/sdk";
import { useInfiniteQuery } from "@tanstack/react-query";

import { useNetwork } from "../network/NetworkProvider";

/** All pages read so far, joined. */
export interface AccountHistory {
  readonly sent: readonly SentEntry[];
  readonly received: readonly ReceivedEntry[];
  readonly deposits: readonly DepositEntry[];
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly hasOlder: boolean;
  readonly isLoadingOlder: boolean;
  readonly loadOlder: () => void;
}

/** The history of an account; `limit` entries of each list a page. */
export function useHistory(account: AccountId, limit: number): AccountHistory {
  const { client } = useNetwork();
  const query = useInfiniteQuery({
    queryKey: ["history", account, limit],
    queryFn: ({ pageParam }) => client.history(account, pageParam === undefined ? { limit } : { limit, cursor: pageParam }),
    initialPageParam: undefined as HistoryCursor | undefined,
    getNextPageParam: (page: History) => page.older,
  });
  const pages = query.data?.pages ?? [];
  return {
    sent: pages.flatMap(({ sent }) => sent),
    received: pages.flatMap(({ received }) => received),
    deposits: pages.flatMap(({ deposits }) => deposits),
    isLoading: query.isPending,
    error: query.error ?? undefined,
    hasOlder: query.hasNextPage,
    isLoadingOlder: query.isFetchingNextPage,
    loadOlder: () => void query.fetchNextPage(),
  };
}
