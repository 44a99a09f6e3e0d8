/** The displayed assets: ETH, the deployment's tokens, and those that the user added. */

import { ETHER, type Address } from "@fastpay/sdk";
import { useLocalStorage } from "@mantine/hooks";
import { useCallback, useMemo } from "react";
import { isAddress } from "viem";

import { useNetwork } from "../network/NetworkProvider";

/** A longer list would make every read of an account slow. */
export const ASSETS_ADDED_MAX = 30;

/** The displayed assets, and functions to add and remove one. */
export interface KnownAssets {
  readonly assets: readonly Address[];
  readonly isAdded: (asset: Address) => boolean;
  readonly add: (asset: Address) => void;
  readonly remove: (asset: Address) => void;
}

/** The displayed assets. Added ones are stored in this browser, for this deployment. */
export function useKnownAssets(): KnownAssets {
  const { config } = useNetwork();
  const [added, setAdded] = useLocalStorage<readonly Address[]>({
    key: `fastpay.assets.${config.chainId}.${config.contract}`,
    defaultValue: [],
    deserialize: readList,
    // Read before the first rendering, so that an asset in the page's URL is not taken for an unknown one.
    getInitialValueInEffect: false,
  });
  // The hook returns a new list each time. Compare by text, so that an equal list does not repeat all queries.
  const text = added.join();
  const assets = useMemo(() => [...new Set([ETHER, ...config.tokens, ...added])], [config.tokens, text]);
  const isAdded = useCallback((asset: Address) => added.includes(asset), [added]);
  const add = useCallback(
    (asset: Address) => setAdded((list) => [...new Set([...list, asset])].slice(0, ASSETS_ADDED_MAX)),
    [setAdded],
  );
  const remove = useCallback((asset: Address) => setAdded((list) => list.filter((one) => one !== asset)), [setAdded]);
  return { assets, isAdded, add, remove };
}

function readList(text: string | undefined): readonly Address[] {
  try {
    const list: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(list)) return [];
    return list.filter((one): one is Address => typeof one === "string" && isAddress(one)).slice(0, ASSETS_ADDED_MAX);
  } catch {
    return [];
  }
}
