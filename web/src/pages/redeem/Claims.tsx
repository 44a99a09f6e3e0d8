import { Button, Card, Group, Stack, Text, Title } from "@mantine/core";
import { accountFromEthereum, type Address } from "@fastpay/sdk";
import { useQueries } from "@tanstack/react-query";
import type { JSX } from "react";

import { useActivityActions } from "../../activity/ActivityProvider";
import { useKnownAssets } from "../../data/assets";
import { useAssetInfo, usePausedUntil } from "../../data/queries";
import type { ConnectedWallet } from "../../ethereum/WalletProvider";
import { useNetwork } from "../../network/NetworkProvider";
import { money } from "../../ui/words";

/** Payouts that the recipient or the token refused once, to be collected. */
export function Claims({ wallet }: { wallet: ConnectedWallet }): JSX.Element | null {
  const { client } = useNetwork();
  const { assets } = useKnownAssets();
  const claims = useQueries({
    queries: assets.map((asset) => ({
      queryKey: ["chain", "claim", wallet.address, asset],
      queryFn: () => client.claimable(wallet.address, asset),
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
          <Claim key={claim.asset} wallet={wallet} {...claim} />
        ))}
      </Stack>
    </Card>
  );
}

interface ClaimProps {
  readonly wallet: ConnectedWallet;
  readonly asset: Address;
  readonly amount: bigint;
}

function Claim({ wallet, asset, amount }: ClaimProps): JSX.Element {
  const { address, walletClient, isOnChain } = wallet;
  const { client } = useNetwork();
  const { start } = useActivityActions();
  const info = useAssetInfo(asset);
  const isPaused = usePausedUntil() !== undefined;
  const text = info === undefined ? asset : money(amount, info);
  const collect = (): void => {
    start({
      kind: "claim",
      account: accountFromEthereum(address),
      title: `Collect ${text}`,
      work: ({ report, signal }) => client.claim(walletClient, asset, undefined, { onProgress: report, signal }),
    });
  };
  return (
    <Group justify="space-between">
      <Text>{text}</Text>
      <Button size="xs" onClick={collect} disabled={!isOnChain || isPaused}>
        Collect
      </Button>
    </Group>
  );
}
