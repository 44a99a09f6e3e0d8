import { Card, Group, Stack, Text, Title } from "@mantine/core";
import type { Address } from "@fastpay/sdk";
import { useQueries } from "@tanstack/react-query";
import type { JSX } from "react";

import type { Owner } from "../../account/OwnerProvider";
import { ChainButton } from "../../activity/ChainButton";
import { useKnownAssets } from "../../data/assets";
import { useNaming } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { money } from "../../ui/words";

/** Payouts to the connected wallet that it or the token refused once, to be collected. */
export function Claims({ owner }: { owner: Owner }): JSX.Element | null {
  const { client } = useNetwork();
  const { assets } = useKnownAssets();
  const address = owner.ethereum?.address;
  const claims = useQueries({
    queries: assets.map((asset) => ({
      queryKey: ["chain", "claim", address, asset],
      queryFn: () => client.claimable(address as Address, asset),
      enabled: address !== undefined,
      refetchInterval: 12_000,
    })),
  });
  const open = assets.flatMap((asset, index) => {
    const amount = claims[index]?.data ?? 0n;
    return amount > 0n ? [{ asset, amount }] : [];
  });
  if (open.length === 0) return null;
  return (
    <Card withBorder component="section" aria-label="Claims">
      <Stack>
        <Title order={2} size="h4">
          To be collected
        </Title>
        <Text size="sm" c="dimmed">
          These payouts did not go through. The contract keeps them for you.
        </Text>
        {open.map((claim) => (
          <Claim key={claim.asset} owner={owner} {...claim} />
        ))}
      </Stack>
    </Card>
  );
}

interface ClaimProps {
  readonly owner: Owner;
  readonly asset: Address;
  readonly amount: bigint;
}

function Claim({ owner, asset, amount }: ClaimProps): JSX.Element {
  const { client } = useNetwork();
  const { info } = useNaming(asset);
  const text = info === undefined ? asset : money(amount, info);
  return (
    <Group justify="space-between">
      <Text>{text}</Text>
      <ChainButton
        owner={owner}
        kind="claim"
        title={`Collect ${text}`}
        work={(wallet, { report, signal }) => client.claim(wallet, asset, undefined, { onProgress: report, signal })}
      >
        Collect
      </ChainButton>
    </Group>
  );
}
