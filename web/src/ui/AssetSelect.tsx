import { NativeSelect } from "@mantine/core";
import type { Address } from "@fastpay/sdk";
import type { JSX } from "react";

import { useNamings } from "../data/queries";
import { shorten } from "./words";

interface Props {
  readonly assets: readonly Address[];
  readonly value: Address;
  readonly onChange: (asset: Address) => void;
  readonly disabled?: boolean;
}

/** Selects an asset with the system's native control, which every phone and screen reader supports. */
export function AssetSelect({ assets, value, onChange, disabled = false }: Props): JSX.Element {
  const namings = useNamings(assets);
  const data = assets.map((asset, index) => ({ value: asset, label: namings[index]?.info?.label ?? shorten(asset) }));
  return (
    <NativeSelect
      label="Asset"
      data={data}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value as Address)}
      disabled={disabled}
    />
  );
}
