import type { Address } from "@fastpay/sdk";
import type { JSX } from "react";

import { useNaming } from "../data/queries";
import { money } from "./words";

/** An amount of an asset as text; dots until the asset is known. */
export function useMoney(units: bigint, asset: Address): string {
  const { info } = useNaming(asset);
  return info === undefined ? "…" : money(units, info);
}

/** An amount of an asset. */
export function Money({ units, asset }: { units: bigint; asset: Address }): JSX.Element {
  return <>{useMoney(units, asset)}</>;
}
