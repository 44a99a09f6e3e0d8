import { Badge, Card, Group, Stack, Text, Title } from "@mantine/core";
import type { OrderEntry, Redemption } from "@fastpay/sdk";
import type { JSX } from "react";
import type { WalletClient } from "viem";

import type { Owner } from "../../account/OwnerProvider";
import type { ActivityControl } from "../../activity/activities";
import { ChainButton } from "../../activity/ChainButton";
import { useContractStatus, useOrders, useRedemptionStatus } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { timeText } from "../../ui/words";
import { TransferText } from "../../ui/TransferText";

/** The newest redemptions of this browser; older ones are in the history. */
const SHOWN_MAX = 3;

/** Where the newest redemptions stand on Ethereum, and what can be done for them. */
export function OpenRedemptions({ owner }: { owner: Owner }): JSX.Element | null {
  const orders = useOrders(owner.account).data ?? [];
  const isFinal = ({ state }: OrderEntry): boolean => state === "certified" || state === "settled";
  const redemptions = orders
    .filter(isFinal)
    .map(({ transfer }) => transfer)
    .filter((transfer): transfer is Redemption => transfer.type === "redemption");
  if (redemptions.length === 0) return null;
  return (
    <Card withBorder component="section" aria-label="Your redemptions">
      <Stack>
        <Title order={2} size="h4">
          Your redemptions
        </Title>
        {redemptions.slice(0, SHOWN_MAX).map((redemption) => (
          <Standing key={redemption.sequence.toString()} redemption={redemption} owner={owner} />
        ))}
      </Stack>
    </Card>
  );
}

function Standing({ redemption, owner }: { redemption: Redemption; owner: Owner }): JSX.Element {
  const { sender, sequence } = redemption;
  const status = useRedemptionStatus(sender, sequence).data;
  const now = useContractStatus().data?.timestamp ?? 0n;
  const isDue = status?.state === "queued" && status.executableAt <= now;
  return (
    <Group justify="space-between" data-redemption={sequence.toString()}>
      <Stack gap={2} style={{ flex: "1 1 220px" }}>
        <Text size="sm">
          <TransferText transfer={redemption} />
        </Text>
        {status?.state === "queued" && (
          <Text size="xs" c="dimmed">
            {isDue ? "It has waited long enough." : `It waits in the contract until ${timeText(Number(status.executableAt) * 1_000)}.`}
          </Text>
        )}
      </Stack>
      {status?.state === "paid" && <Badge color="teal">Paid on Ethereum</Badge>}
      {status?.state === "queued" && !isDue && <Badge color="orange">Queued</Badge>}
      {status?.state === "open" && <Badge color="indigo">Waits for a relayer</Badge>}
      {(status?.state === "open" || isDue) && <PayOut redemption={redemption} owner={owner} isQueued={isDue} />}
    </Group>
  );
}

interface PayOutProps {
  readonly redemption: Redemption;
  readonly owner: Owner;
  readonly isQueued: boolean;
}

function PayOut({ redemption, owner, isQueued }: PayOutProps): JSX.Element {
  const { client } = useNetwork();
  const { sender, sequence } = redemption;
  const payOut = async (wallet: WalletClient, { report, signal }: ActivityControl): Promise<unknown> => {
    const options = { onProgress: report, signal };
    if (isQueued) return client.executeQueued(wallet, redemption, options);
    const certificate = await client.certificate(sender, sequence);
    if (certificate === undefined) throw new Error("no authority shows the certificate now; try again");
    return client.redeemOnChain(wallet, certificate, options);
  };
  return (
    <ChainButton
      owner={owner}
      kind="payout"
      title={isQueued ? `Pay out redemption #${sequence}` : `Bring redemption #${sequence} to Ethereum`}
      work={payOut}
    >
      {isQueued ? "Have it paid out" : "Bring it there myself"}
    </ChainButton>
  );
}
