import { Badge, Button, Card, Group, Stack, Text, Title } from "@mantine/core";
import type { OrderEntry, Redemption } from "@fastpay/sdk";
import type { JSX } from "react";

import { useActivities, useActivityActions } from "../../activity/ActivityProvider";
import { useContractStatus, useOrders, usePausedUntil, useRedemptionStatus } from "../../data/queries";
import type { ConnectedWallet } from "../../ethereum/WalletProvider";
import { useNetwork } from "../../network/NetworkProvider";
import { timeText } from "../../ui/words";
import { TransferText } from "../../ui/TransferText";

/** The newest redemptions of this browser; older ones are in the history. */
const SHOWN_MAX = 5;

/** Where the newest redemptions stand on Ethereum, and what can be done for them. */
export function OpenRedemptions({ wallet }: { wallet: ConnectedWallet }): JSX.Element | null {
  const orders = useOrders(wallet.account).data ?? [];
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
          <Standing key={redemption.sequence.toString()} redemption={redemption} wallet={wallet} />
        ))}
      </Stack>
    </Card>
  );
}

function Standing({ redemption, wallet }: { redemption: Redemption; wallet: ConnectedWallet }): JSX.Element {
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
      {(status?.state === "open" || isDue) && <PayOut redemption={redemption} wallet={wallet} isQueued={isDue} />}
    </Group>
  );
}

interface PayOutProps {
  readonly redemption: Redemption;
  readonly wallet: ConnectedWallet;
  readonly isQueued: boolean;
}

function PayOut({ redemption, wallet, isQueued }: PayOutProps): JSX.Element {
  const { account, walletClient, isOnChain } = wallet;
  const { client } = useNetwork();
  const { start } = useActivityActions();
  const isPaused = usePausedUntil() !== undefined;
  const isBusy = useActivities(account).some(({ kind, state }) => kind === "payout" && state === "running");
  const { sequence } = redemption;
  const payOut = (): void => {
    start({
      kind: "payout",
      account,
      title: isQueued ? `Pay out redemption #${sequence}` : `Bring redemption #${sequence} to Ethereum`,
      work: async ({ report, signal }) => {
        const options = { onProgress: report, signal };
        if (isQueued) return client.executeQueued(walletClient, redemption, options);
        const certificate = await client.certificate(account, sequence);
        if (certificate === undefined) throw new Error("no authority shows the certificate now; try again");
        return client.redeemOnChain(walletClient, certificate, options);
      },
    });
  };
  return (
    <Button size="xs" variant="default" disabled={!isOnChain || isPaused || isBusy} onClick={payOut}>
      {isQueued ? "Have it paid out" : "Bring it there myself"}
    </Button>
  );
}
