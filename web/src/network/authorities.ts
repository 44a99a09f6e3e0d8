/** What authorities are called on the page. */

import type { AuthorityRef } from "@fastpay/sdk";

import type { NetworkConfig } from "./config";
import { useNetwork } from "./NetworkProvider";

/** An authority's label in network.json, otherwise the host of its address. */
export function authorityLabel({ labels }: Pick<NetworkConfig, "labels">, { url }: Pick<AuthorityRef, "url">): string {
  return labels.get(url) ?? (URL.canParse(url) ? new URL(url).host : url);
}

/** Names authorities of the page's deployment. */
export function useAuthorityLabel(): (authority: Pick<AuthorityRef, "url">) => string {
  const { config } = useNetwork();
  return (authority) => authorityLabel(config, authority);
}
