import { Badge, Card, Group, Stack, Text, Title } from "@mantine/core";
import type { AccountId, OrderEntry, Redemption, RedemptionStatus } from "@fastpay/sdk";
import type { JSX } from "react";
import type { WalletClient } from "viem";

import type { Owner } from "../../account/OwnerProvider";
import type { ActivityControl } from "../../activity/activities";
import { payoutTitle } from "../../activity/ActivityProvider";
import { ChainButton } from "../../activity/ChainButton";
import { useHistory } from "../../data/history";
import { useContractStatus, useOrders, useRedemptionStatuses } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { timeText } from "../../ui/words";
import { TransferText } from "../../ui/TransferText";

/** The number of newest orders whose redemptions are followed. */
const FOLLOWED_MAX = 20;
/** The number of newest redemptions shown. Older ones are shown while they are unpaid. */
const SHOWN_MAX = 3;

/** The account's redemptions with their state on the Primary, and actions. */
export function OpenRedemptions({ owner }: { owner: Owner }): JSX.Element | null {
  const redemptions = useRedemptions(owner.account);
  const statuses = useRedemptionStatuses(redemptions);
  const shown = redemptions.flatMap((redemption, index) => {
    const status = statuses[index]?.data;
    const isOver = status === undefined || status.state === "paid" || status.state === "spent";
    return index < SHOWN_MAX || !isOver ? [{ redemption, status }] : [];
  });
  if (shown.length === 0) return null;
  return (
    <Card withBorder component="section" aria-label="Your redemptions">
      <Stack>
        <Title order={2} size="h4">
          Your redemptions
        </Title>
        {shown.map(({ redemption, status }) => (
          <OpenRedemption key={redemption.sequence.toString()} redemption={redemption} status={status} owner={owner} />
        ))}
      </Stack>
    </Card>
  );
}

/** An account's newest certified redemptions: those of this browser, and those ordered on another device. Newest first. */
function useRedemptions(account: AccountId): Redemption[] {
  const orders = useOrders(account).data ?? [];
  const { sent } = useHistory(account, FOLLOWED_MAX);
  const isCertified = ({ state }: OrderEntry): boolean => state === "certified" || state === "settled";
  const transfers = [
    ...sent.map(({ transfer }) => transfer),
    ...orders.filter(isCertified).map(({ transfer }) => transfer),
  ];
  const bySequence = new Map(transfers.map((transfer) => [transfer.sequence, transfer]));
  return [...bySequence.values()]
    .filter((transfer): transfer is Redemption => transfer.type === "redemption")
    .sort((a, b) => (a.sequence < b.sequence ? 1 : -1))
    .slice(0, FOLLOWED_MAX);
}

interface OpenRedemptionProps {
  readonly redemption: Redemption;
  readonly status: RedemptionStatus | undefined;
  readonly owner: Owner;
}

function OpenRedemption({ redemption, status, owner }: OpenRedemptionProps): JSX.Element {
  const { sequence } = redemption;
  const { ledger, primaryName } = useNetwork().config;
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
            {isDue ? "It can be paid out now." : `It waits in the contract until ${timeText(Number(status.executableAt) * 1_000)}.`}
            {status.needsVotes && " The keys that certified it were stolen. The current committee must certify it again before it is paid."}
          </Text>
        )}
      </Stack>
      {status?.state === "paid" && <Badge color="teal">Paid on {primaryName}</Badge>}
      {status?.state === "spent" && <Badge color="gray">Number spent</Badge>}
      {status?.state === "voided" && <Badge color="red">Not paid: number void</Badge>}
      {status?.state === "displaced" && <Badge color="red">Not paid: number spent on another order</Badge>}
      {status?.state === "released" && <Badge color="red">Not paid: released from the queue</Badge>}
      {status?.state === "queued" && !isDue && <Badge color="orange">Queued</Badge>}
      {status?.state === "open" && <Badge color="indigo">Waiting for a relayer</Badge>}
      {ledger === undefined && (status?.state === "open" || isDue) && <PayOut redemption={redemption} owner={owner} isQueued={isDue} />}
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
    if (certificate === undefined) throw new Error("no authority returned the certificate; try again");
    return client.redeemOnChain(wallet, certificate, options);
  };
  return (
    <ChainButton
      owner={owner}
      kind="payout"
      title={payoutTitle(sequence, isQueued)}
      work={payOut}
    >
      {isQueued ? "Pay it out" : "Submit it myself"}
    </ChainButton>
  );
}
