/** The authorities' own status reports. */

import { AuthorityClient } from "@fastpay/sdk";
import { useQueries, type UseQueryResult } from "@tanstack/react-query";

import { useNetwork } from "../../network/NetworkProvider";

const STATUS_TIMEOUT_MS = 5_000;
const STATUS_INTERVAL_MS = 30_000;

/** An authority's status. */
export type AuthorityStatus = Awaited<ReturnType<AuthorityClient["status"]>>;

/** Requests the status of one authority. */
export function askStatus({ http, name }: { http: string; name?: `0x${string}` }): Promise<AuthorityStatus> {
  return new AuthorityClient(http, name, STATUS_TIMEOUT_MS).status();
}

/** The status of each authority of the page, in their order. */
export function useStatuses(): UseQueryResult<AuthorityStatus>[] {
  const { config } = useNetwork();
  return useQueries({
    queries: config.authorities.map((authority) => ({
      queryKey: ["status", authority.http],
      queryFn: () => askStatus(authority),
      refetchInterval: STATUS_INTERVAL_MS,
      retry: false,
    })),
  });
}
