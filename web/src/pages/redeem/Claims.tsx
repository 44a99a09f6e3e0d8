import { Button, Card, Group, Stack, Text, TextInput, Title } from "@mantine/core";
import type { Address } from "@fastpay/sdk";
import { useQueries } from "@tanstack/react-query";
import { useState, type JSX } from "react";

import type { Owner } from "../../account/OwnerProvider";
import { ChainButton } from "../../activity/ChainButton";
import { useKnownAssets } from "../../data/assets";
import { useNaming } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { AmountInput, readAmount } from "../../ui/AmountInput";
import { money } from "../../ui/words";
import { useRecipient } from "./useRecipient";

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
          These payouts were refused. The contract keeps them for you.
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

/** Collects everything to the wallet's address, unless the user enters an amount or another address. */
function Claim({ owner, asset, amount }: ClaimProps): JSX.Element {
  const { client } = useNetwork();
  const { info } = useNaming(asset);
  const [typed, setTyped] = useState<{ amount: string; to: string }>();
  const part = typed === undefined || typed.amount === "" ? { units: amount, fault: undefined } : readAmount(typed.amount, info, amount);
  const recipient = useRecipient(typed?.to ?? "");
  const text = info === undefined ? asset : money(part.units ?? amount, info);
  const intent = {
    asset,
    amount: part.units ?? amount,
    ...(recipient.address !== undefined && { to: recipient.address }),
  };
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Text>{info === undefined ? asset : money(amount, info)}</Text>
        <Group gap="xs">
          {typed === undefined && (
            <Button size="xs" variant="subtle" onClick={() => setTyped({ amount: "", to: "" })}>
              Part of it, or to another address
            </Button>
          )}
          <ChainButton
            owner={owner}
            kind="claim"
            title={`Collect ${text}`}
            disabled={part.units === undefined || recipient.fault !== undefined}
            work={(wallet, { report, signal }) => client.claim(wallet, intent, { onProgress: report, signal })}
          >
            Collect
          </ChainButton>
        </Group>
      </Group>
      {typed !== undefined && (
        <>
          <AmountInput
            label="Amount to collect"
            text={typed.amount}
            onChange={(text) => setTyped({ ...typed, amount: text })}
            info={info}
            fault={part.fault}
            most={amount}
            required={false}
            description="Leave empty for all of it. Some tokens pay only a part at once."
          />
          <TextInput
            label="Collect to (an Ethereum address)"
            description="Leave empty for your wallet's address."
            value={typed.to}
            onChange={(event) => setTyped({ ...typed, to: event.currentTarget.value.trim() })}
            error={recipient.fault}
            autoComplete="off"
            spellCheck={false}
          />
        </>
      )}
    </Stack>
  );
}
