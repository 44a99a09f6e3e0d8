import { Alert, Button, Card, Group, Stack, Text, TextInput, Title } from "@mantine/core";
import { ETHER, type Address } from "@fastpay/sdk";
import { useQueries } from "@tanstack/react-query";
import { useState, type JSX } from "react";
import { getAddress } from "viem";

import type { Owner } from "../../account/OwnerProvider";
import { ChainButton, useChainAction } from "../../activity/ChainButton";
import { useKnownAssets } from "../../data/assets";
import { useNaming, type ShownAsset } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { AmountInput, readAmount } from "../../ui/AmountInput";
import { IconArrowBarToUp } from "../../ui/icons";
import { ReviewCard } from "../../ui/ReviewCard";
import { money, shortAddress } from "../../ui/words";
import { useRecipient } from "./useRecipient";

/** The claims of the connected wallet: payouts that the wallet or the token refused. */
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
          Unclaimed
        </Title>
        <Text size="sm" c="dimmed">
          These payouts could not be delivered. The contract holds them for you.
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

/** The reviewed claim. It does not change with the form. */
interface ReviewedClaim {
  readonly asset: Address;
  readonly amount: bigint;
  readonly to: Address;
}

function claimFacts({ asset, amount, to }: ReviewedClaim, kept: bigint, ens: string | undefined, info: ShownAsset, chain: string) {
  return [
    ["To", <Text key="to" span size="sm" ff="monospace">{getAddress(to)}</Text>],
    ["On", chain],
    ["ENS name", ens],
    ["Amount", money(amount, info)],
    ["Token", asset !== ETHER && `${getAddress(asset)}${info.isUnknown ? ", not on this page's list" : ""}`],
    ["Remaining", kept >= amount && money(kept - amount, info)],
    ["Your wallet asks for", "one transaction"],
  ] as const;
}

/** Claims everything to the wallet's address, unless the user enters an amount or another address. */
function Claim({ owner, asset, amount }: ClaimProps): JSX.Element {
  const { client, config } = useNetwork();
  const { info } = useNaming(asset);
  const [typed, setTyped] = useState<{ amount: string; to: string }>();
  const part = typed === undefined || typed.amount === "" ? { units: amount, fault: undefined } : readAmount(typed.amount, info, amount);
  const recipient = useRecipient(typed?.to ?? "");
  const [reviewed, setReviewed] = useState<ReviewedClaim>();
  const action = useChainAction(owner, "claim");
  const text = info === undefined ? asset : money(part.units ?? amount, info);
  const collect = (claim: ReviewedClaim | { asset: Address; amount: bigint }): Parameters<typeof ChainButton>[0]["work"] =>
    (wallet, { report, signal }) => client.claim(wallet, claim, { onProgress: report, signal });
  if (reviewed !== undefined && info !== undefined) {
    const facts = claimFacts(reviewed, amount, recipient.ens, info, config.chainName);
    return (
      <ReviewCard
        title={`Claim ${money(reviewed.amount, info)} to another address?`}
        facts={facts}
        confirm={`Yes, claim ${money(reviewed.amount, info)}`}
        icon={<IconArrowBarToUp size={18} aria-hidden />}
        canConfirm={action?.canBegin === true}
        onConfirm={() => {
          setReviewed(undefined);
          action?.begin(`Claim ${money(reviewed.amount, info)} to ${shortAddress(reviewed.to)}`, collect(reviewed), facts);
        }}
        onBack={() => setReviewed(undefined)}
      >
        <Alert color="orange" title="This is not the connected wallet">
          Compare the whole address; nobody can undo it.
        </Alert>
      </ReviewCard>
    );
  }
  const { address: to } = recipient;
  const isOther = to !== undefined && to.toLowerCase() !== owner.ethereum?.address.toLowerCase();
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
            title={`Claim ${text}`}
            disabled={part.units === undefined || recipient.fault !== undefined}
            work={collect({ asset, amount: part.units ?? amount })}
            onReview={isOther ? () => setReviewed({ asset, amount: part.units ?? amount, to }) : undefined}
          >
            Claim
          </ChainButton>
        </Group>
      </Group>
      {typed !== undefined && (
        <>
          <AmountInput
            label="Amount to claim"
            text={typed.amount}
            onChange={(text) => setTyped({ ...typed, amount: text })}
            info={info}
            fault={part.fault}
            most={amount}
            required={false}
            description="Leave empty to claim all of it. Claim part of it if the token refuses the whole amount."
          />
          <TextInput
            label="Claim to (an Ethereum address)"
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
