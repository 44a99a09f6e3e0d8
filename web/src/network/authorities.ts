/** The names of authorities on the page. */

import type { AuthorityName, AuthorityRef } from "@fastpay/sdk";

import type { NetworkConfig } from "./config";
import { shorten } from "../ui/words";
import { useNetwork, useNetworkIfLoaded } from "./NetworkProvider";

/** An authority's label in network.json, otherwise the host of its address. */
export function authorityLabel({ labels }: Pick<NetworkConfig, "labels">, { url }: Pick<AuthorityRef, "url">): string {
  return labels.get(url) ?? (URL.canParse(url) ? new URL(url).host : url);
}

/** Names members of the committee by their voting keys. A member without a known address gets its key as a name. */
export function useMemberLabel(): (votingKey: AuthorityName) => string {
  const { config, client } = useNetwork();
  return (votingKey) => {
    const known = client.authorities.find(({ name }) => name === votingKey);
    return known === undefined ? shorten(votingKey, 10, 4) : authorityLabel(config, known);
  };
}

/** Names authorities of the page's deployment. Until it is loaded, their names are their hosts. */
export function useAuthorityLabel(): (authority: Pick<AuthorityRef, "url">) => string {
  const labels = useNetworkIfLoaded()?.config.labels ?? NONE;
  return (authority) => authorityLabel({ labels }, authority);
}

const NONE: NetworkConfig["labels"] = new Map();
