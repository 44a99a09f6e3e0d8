import { Anchor, Badge, Group, Text, ThemeIcon } from "@mantine/core";
import {
  amountOf,
  decodeMemo,
  formatAccount,
  NO_MEMO,
  type DepositEntry,
  type Hex,
  type OrderEntry,
  type Payment,
  type ReceivedEntry,
  type Redemption,
  type SentEntry,
  type Transfer,
  type TransferProof,
} from "@fastpay/sdk";
import type { JSX, ReactNode } from "react";
import { Link } from "react-router";

import { useRedemptionStatus } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { AccountLink } from "../../ui/AccountText";
import { useMoney } from "../../ui/Money";
import { count, duration, recipientsText, shortAddress, timeText } from "../../ui/words";
import type { TimelineItem } from "./timeline";
import { IconArrowDownLeft, IconArrowDownToArc, IconArrowBarToUp, IconArrowUpRight, IconUsers } from "../../ui/icons";

interface LineProps {
  readonly icon: ReactNode;
  readonly color: string;
  readonly amount: string;
  readonly text: ReactNode;
  readonly to: string;
  readonly detail: ReactNode;
  readonly time: ReactNode;
  readonly end?: ReactNode;
}

function Line({ icon, color, amount, text, to, detail, time, end }: LineProps): JSX.Element {
  return (
    <Group component="li" wrap="nowrap" align="flex-start" gap="sm">
      <ThemeIcon variant="light" color={color} radius="xl" aria-hidden>
        {icon}
      </ThemeIcon>
      <div style={{ flex: 1, minWidth: 0 }}>
        <Group justify="space-between" gap={4}>
          <Text size="sm">{text}</Text>
          <Anchor component={Link} to={to} fw={600} size="sm" aria-label={`${amount}: show the proof`}>
            {amount}
          </Anchor>
        </Group>
        <Group justify="space-between" gap={4}>
          <Text size="xs" c="dimmed" component="div" style={{ overflowWrap: "anywhere" }}>
            {detail}
            {time}
          </Text>
          {end}
        </Group>
      </div>
    </Group>
  );
}

const ICONS = {
  payment: <IconArrowUpRight size={18} />,
  payout: <IconUsers size={18} />,
  redemption: <IconArrowBarToUp size={18} />,
};

function memoText(memo: Hex): string {
  return memo === NO_MEMO ? "" : `“${decodeMemo(memo)}”, `;
}

/** One entry of a history. */
export function TimelineLine({ item }: { item: TimelineItem }): JSX.Element {
  const time = <Time item={item} />;
  switch (item.kind) {
    case "received":
      return <ReceivedLine entry={item.entry} time={time} />;
    case "deposit":
      return <DepositLine entry={item.entry} time={time} />;
    default:
      return <SentLine entry={item.entry} time={time} />;
  }
}

function Time({ item: { ms, isExact } }: { item: TimelineItem }): JSX.Element | null {
  if (ms === undefined) return null;
  return (
    <time dateTime={new Date(ms).toISOString()} title={isExact ? undefined : "The time at which this browser first saw it: the protocol has no clock"}>
      , {isExact ? "ordered" : "by"} {timeText(ms)}
    </time>
  );
}

interface EntryProps<T> {
  readonly entry: T;
  readonly time: ReactNode;
}

function ReceivedLine({ entry, time }: EntryProps<ReceivedEntry>): JSX.Element {
  const { payment, output } = entry;
  const amount = useMoney(payment.amount, payment.asset);
  return (
    <Line
      icon={<IconArrowDownLeft size={18} />}
      color="teal"
      amount={`+${amount}`}
      text={
        <>
          From <AccountLink account={payment.sender} />
        </>
      }
      to={`${proofPath(payment, entry)}${output === undefined ? "" : `?output=${output}`}`}
      detail={`${memoText(payment.memo)}their order #${payment.sequence}${output === undefined ? "" : `, output ${output}`}`}
      time={time}
    />
  );
}

/** A sent payment, payout or redemption, with the times stored in this browser. */
function SentLine({ entry, time }: EntryProps<SentEntry>): JSX.Element {
  const { transfer, order } = entry;
  const amount = useMoney(amountOf(transfer), transfer.asset);
  // The memo of a list's order is the page's name, which is of no use to people.
  const memo = transfer.type === "payout" ? `${count(transfer.outputs.length, "output")}, ` : memoText(transfer.memo);
  return (
    <Line
      icon={ICONS[transfer.type]}
      color="indigo"
      amount={`−${amount}`}
      text={<SentTo transfer={transfer} />}
      to={proofPath(transfer, entry)}
      detail={`${memo}order #${transfer.sequence}`}
      time={
        <>
          {time}
          {lifeText(order, entry.proof)}
        </>
      }
      end={transfer.type === "redemption" ? <PayoutBadge redemption={transfer} /> : undefined}
    />
  );
}

/** The page with a transfer's proof. Authorities find a transfer by its digest only while they have the certificate. */
function proofPath({ sender, sequence }: Payment | Transfer, { digest, proof }: Pick<SentEntry, "digest" | "proof">): string {
  const name = proof.type === "certificate" ? digest : `${formatAccount(sender)}/${sequence}`;
  return `/explore/transfer/${name}`;
}

function SentTo({ transfer }: { transfer: Transfer }): JSX.Element {
  switch (transfer.type) {
    case "payment":
      return <>To <AccountLink account={transfer.recipient} /></>;
    case "redemption":
      return <>Redeemed to {shortAddress(transfer.recipient)}</>;
    case "payout":
      return <>To {recipientsText(transfer)}</>;
  }
}

/** The times from order to certificate and settlement, as stored in this browser. */
function lifeText(order: OrderEntry | undefined, proof: TransferProof): string {
  const { createdAtMs, certifiedAtMs, settledAtMs } = order ?? {};
  if (createdAtMs === undefined) return `, ordered on another device, ${proof.type === "certificate" ? "certified" : "executed"}`;
  const parts = [];
  if (certifiedAtMs !== undefined) parts.push(`certified after ${duration(certifiedAtMs - createdAtMs)}`);
  if (settledAtMs !== undefined) parts.push(`settled after ${duration(settledAtMs - createdAtMs)}`);
  return parts.map((part) => `, ${part}`).join("");
}

function PayoutBadge({ redemption }: { redemption: Redemption }): JSX.Element | null {
  const status = useRedemptionStatus(redemption);
  if (status === undefined) return null;
  const badges = {
    open: { color: "indigo", text: "On its way" },
    queued: { color: "orange", text: "Queued" },
    paid: { color: "teal", text: "Paid" },
    spent: { color: "gray", text: "Spent" },
    voided: { color: "red", text: "Not paid" },
    displaced: { color: "red", text: "Not paid" },
    released: { color: "red", text: "Not paid" },
  };
  const { color, text } = badges[status.state];
  return (
    <Badge size="xs" color={color} variant="light">
      {text}
    </Badge>
  );
}

function DepositLine({ entry, time }: EntryProps<DepositEntry>): JSX.Element {
  const { primaryName } = useNetwork().config;
  const amount = useMoney(entry.amount, entry.asset);
  return (
    <Line
      icon={<IconArrowDownToArc size={18} />}
      color="teal"
      amount={`+${amount}`}
      text={`From ${primaryName}`}
      to={`/explore/deposit/${entry.index}`}
      detail={`deposit ${entry.index}, credited by ${entry.authorities} authorities`}
      time={time}
    />
  );
}
