import { Badge, Button, Card, Group, Stack, Text, Title } from "@mantine/core";
import { amountOf, decodeMemo, NO_MEMO, type ProvenTransfer, type Redemption } from "@fastpay/sdk";
import type { JSX } from "react";
import { getAddress } from "viem";

import { useNaming, useOrders, useRedemptionStatus } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { AccountLink, Copyable } from "../../ui/AccountText";
import { Facts } from "../../ui/Facts";
import { TransactionLink } from "../../ui/TransactionLink";
import { count, money, timeText } from "../../ui/words";
import { IconPrinter, IconShieldCheck } from "../../ui/icons";
import { Outputs } from "./Outputs";

interface Props {
  readonly proven: ProvenTransfer;
  /** The output of a payout that the page's URL names. */
  readonly output: number | undefined;
}

/** A proven transfer. */
export function TransferCard({ proven, output }: Props): JSX.Element {
  const { transfer, digest, proof } = proven;
  const certificate = proof.type === "certificate" ? proof.certificate : undefined;
  const { info } = useNaming(transfer.asset);
  const { config } = useNetwork();
  const ordered = useOrders(transfer.sender).data?.find(({ sequence }) => sequence === transfer.sequence)?.createdAtMs;
  const text = (units: bigint): string => (info === undefined ? units.toString() : money(units, info));
  return (
    <Card withBorder component="section" aria-label="Transfer">
      <Stack>
        <Group justify="space-between">
          <Title order={2} size="h3">
            {TITLES[transfer.type]} of {text(amountOf(transfer))}
          </Title>
          <Badge color="teal" size="lg" leftSection={<IconShieldCheck size={16} aria-hidden />}>
            {certificate === undefined ? "Executed" : "Certified"}
          </Badge>
        </Group>
        <Text size="sm">
          {proof.type === "certificate"
            ? `A quorum of ${count(proof.certificate.votes.length, "authority", "authorities")} voted for it. This browser checked each vote.`
            : `Proven by checkpoint ${proof.checkpoint} of the committee: the certificate is pruned. This browser checked the proof.`}
        </Text>
        <Facts
          facts={[
            ["From", <AccountLink key="from" account={transfer.sender} short={false} />],
            ["To", transfer.type === "payment" && <AccountLink key="to" account={transfer.recipient} short={false} />],
            ["To", transfer.type === "redemption" && `${getAddress(transfer.recipient)} on ${config.primaryName}`],
            ["Outputs", transfer.type === "payout" && transfer.outputs.length.toString()],
            ["Fee", transfer.type === "redemption" && text(transfer.fee)],
            ["Asset", info === undefined ? transfer.asset : `${info.symbol} (${info.isUnknown ? "unknown " : ""}${transfer.asset})`],
            ["Memo", transfer.memo === NO_MEMO ? undefined : decodeMemo(transfer.memo)],
            ["Number among the sender's orders", transfer.sequence.toString()],
            ["Signed with", certificate && (certificate.order.authorization.type === "ethereum" ? "an Ethereum key" : "an Ed25519 key")],
            ["Epoch", certificate?.epoch.toString()],
            ["Ordered in this browser", ordered !== undefined && timeText(ordered)],
            ["Deployment", config.ledger === undefined ? `contract ${config.contract} on ${config.chainName} (chain ${config.chainId})` : `committee ${config.ledger.committee} on the ledger with domain ${config.contract}`],
            ["Digest", <Copyable key="digest" text={digest} name="the digest" />],
            [`On ${config.primaryName}`, transfer.type === "redemption" && <Payout redemption={transfer} />],
          ]}
        />
        <Group className="not-printed">
          <Button variant="default" size="xs" onClick={() => window.print()} leftSection={<IconPrinter size={16} aria-hidden />}>
            Print a receipt
          </Button>
        </Group>
        {transfer.type === "payout" && <Outputs certificate={certificate} outputs={transfer.outputs} shown={output} text={text} />}
      </Stack>
    </Card>
  );
}

const TITLES = { payment: "Payment", payout: "Payout", redemption: "Redemption" };

function Payout({ redemption }: { redemption: Redemption }): JSX.Element {
  const status = useRedemptionStatus(redemption);
  if (status === undefined) return <>…</>;
  switch (status.state) {
    case "open":
      return <>not submitted yet; anyone can submit it</>;
    case "queued":
      return <>queued; anyone can have it paid out from {timeText(Number(status.executableAt) * 1_000)} on</>;
    case "paid":
      if (status.hash === undefined) return <>paid into the recipient&apos;s reserve</>;
      return <>paid, or kept as a claim where the recipient refused it, in transaction <TransactionLink hash={status.hash} /></>;
    case "displaced":
      return (
        <>
          not paid: {status.hash === undefined ? "somebody" : <>transaction <TransactionLink hash={status.hash} /></>} spent its number on another order, so keys of the committee were stolen. The
          account gets the amount back.
        </>
      );
    case "released":
      return <>not paid: transaction <TransactionLink hash={status.hash} /> took it out of the contract's queue. The account gets the amount back.</>;
    case "voided":
      return <>not paid: its number was voided</>;
    case "spent":
      return <>its number is spent; the Ethereum node does not report on which order, because that was more than two weeks ago or the node serves no logs</>;
  }
}
