import { Alert, Badge, Stack, Table, Text } from "@mantine/core";
import { decodeMemo, formatAccount, NO_MEMO, type AccountId, type Address, type ListOrder, type ListPayment, type ListStatus, type Payout } from "@fastpay/sdk";
import { useState, type JSX } from "react";

import type { Owner } from "../../account/OwnerProvider";
import { paymentsIn } from "../../activity/ListProgress";
import { useContacts } from "../../data/contacts";
import { useHoldings } from "../../data/holdings";
import { useNamings, type Naming } from "../../data/queries";
import { Facts } from "../../ui/Facts";
import { Pages } from "../../ui/Pages";
import { ReviewCard } from "../../ui/ReviewCard";
import { orderFields } from "../../ui/signed";
import { signedFacts } from "../../ui/SignedFacts";
import { count, money, shorten } from "../../ui/words";
import { IconSend } from "../../ui/icons";
import { useFirsts } from "../pay/PaymentReview";

/** The number of lines on a page of the list. */
const ROWS_MAX = 100;

const STATES = {
  open: { color: "gray", text: "to pay" },
  ordered: { color: "indigo", text: "ordered" },
  certified: { color: "teal", text: "certified" },
  settled: { color: "teal", text: "settled" },
};

interface Props {
  readonly owner: Owner;
  readonly status: ListStatus;
  readonly isBusy: boolean;
  readonly onPay: () => void;
  readonly onBack: () => void;
}

/** Every line of a list and the sums, for review before signing. */
export function Review({ owner, status, isBusy, onPay, onBack }: Props): JSX.Element {
  const { account, ethereum, canSign } = owner;
  const { list: holdings, view } = useHoldings(account, ethereum?.address);
  const assets = [...new Set(status.orders.map(({ asset }) => asset))];
  const namings = useNamings(assets);
  const open = status.orders.filter(({ state }) => state === "open");
  const toPay = paymentsIn(status, "open");
  const before = status.payments.length - toPay;
  const sums = assets.map((asset, i) => {
    const of = open.filter((order) => order.asset === asset);
    const sum = of.reduce((total, order) => total + order.total, 0n);
    const balance = holdings.find((one) => one.asset === asset)?.balance ?? (view && 0n);
    return { asset, sum, balance, naming: namings[i] ?? {}, payments: of.reduce((all, { outputs }) => all + outputs.length, 0) };
  });
  const short = sums.filter(({ sum, balance }) => balance !== undefined && sum > balance);
  const unknown = sums.filter(({ naming }) => naming.info?.isUnknown);
  const text = (units: bigint, { info }: Naming): string => (info === undefined ? units.toString() : money(units, info));
  const canPay = toPay > 0 && short.length === 0 && view !== undefined && canSign && !isBusy;
  const firsts = useFirsts(account, open.flatMap(({ outputs }) => outputs.map(({ recipient }) => recipient)));
  const facts = sums.flatMap(({ asset, sum, balance, naming, payments }) => {
    const label = naming.info?.label ?? shorten(asset);
    return [
      [`In ${label}`, payments > 0 && `${text(sum, naming)} in ${count(payments, "payment")}`],
      [`${label} remaining`, payments > 0 && balance !== undefined && balance >= sum && text(balance - sum, naming)],
    ] as const;
  });
  return (
    <ReviewCard
      title={toPay === 0 ? "This list is paid" : `Pay ${count(toPay, "payment")}?`}
      facts={[
        ...facts,
        ["Signatures", open.length > 0 && `${open.length}, for up to ${Math.max(...open.map(({ outputs }) => outputs.length))} payments each`],
        ["Ordered before", before > 0 && `${count(before, "payment")}, not paid again`],
      ]}
      confirm={toPay > 0 ? `Yes, pay ${count(toPay, "payment")}` : undefined}
      back="Back to the list"
      icon={<IconSend size={18} aria-hidden />}
      canConfirm={canPay}
      onConfirm={onPay}
      onBack={onBack}
    >
      {toPay === 0 && <Text size="sm">To pay the same list again, change it, for example by a line that begins with #.</Text>}
      {short.map(({ asset, sum, balance = 0n, naming }) => (
        <Alert key={asset} role="alert" color="red" title="Not enough money">
          You have {text(balance, naming)} in FastPay, and {text(sum, naming)} are needed.
        </Alert>
      ))}
      {unknown.length > 0 && (
        <Alert role="alert" color="orange">
          This page does not know {unknown.length === 1 ? "this token" : "these tokens"}:{" "}
          {unknown.map(({ asset }) => asset).join(", ")}. Anyone can make one with any name; compare its address.
        </Alert>
      )}
      {firsts.size > 0 && (
        <Alert color="orange" title={`First payment to ${count(firsts.size, "account")}`}>
          This browser knows of no earlier one. Compare the whole address of each line marked &quot;first payment&quot;; nobody
          can undo a payment.
        </Alert>
      )}
      <Lines status={status} assets={assets} namings={namings} firsts={firsts} />
      {view !== undefined && <Orders owner={owner} open={open} first={view.nextSequence} namings={new Map(assets.map((asset, i) => [asset, namings[i] ?? {}]))} />}
    </ReviewCard>
  );
}

interface OrdersProps {
  readonly owner: Owner;
  readonly open: readonly ListOrder[];
  /** The number of the account's next order. */
  readonly first: bigint;
  readonly namings: ReadonlyMap<Address, Naming>;
}

/** The other signed fields of each order. */
function Orders({ owner, open, first, namings }: OrdersProps): JSX.Element {
  return (
    <>
      {open.map(({ asset, outputs, memo }, index) => {
        const info = namings.get(asset)?.info;
        if (info === undefined) return null;
        const transfer: Payout = { type: "payout", sender: owner.account, asset, outputs, sequence: first + BigInt(index), memo };
        return (
          <section key={memo} aria-label={`Order ${index + 1} to sign`}>
            <Text size="sm" fw={600}>
              Order {index + 1} of {open.length}, {count(outputs.length, "payment")}
            </Text>
            <Facts facts={signedFacts(orderFields(transfer, info))} />
          </section>
        );
      })}
    </>
  );
}

interface LinesProps {
  readonly status: ListStatus;
  readonly assets: readonly Address[];
  readonly namings: readonly Naming[];
  /** Recipients whom this browser has not paid before. */
  readonly firsts: ReadonlySet<AccountId>;
}

/** Every line of a list, in pages. */
function Lines({ status, assets, namings, firsts }: LinesProps): JSX.Element {
  const [page, setPage] = useState(1);
  const { names } = useContacts();
  const pages = Math.ceil(status.payments.length / ROWS_MAX);
  const amount = ({ asset, amount: units }: ListPayment): string => {
    const info = namings[assets.indexOf(asset)]?.info;
    return info === undefined ? `${units} of ${shorten(asset)}` : money(units, info);
  };
  return (
    <Stack gap="xs">
      <div className="lines" role="region" tabIndex={0} aria-label="Every line">
        <Table fz="sm" horizontalSpacing={4}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Line</Table.Th>
              <Table.Th ta="right">Amount</Table.Th>
              <Table.Th>To</Table.Th>
              <Table.Th>Memo</Table.Th>
              <Table.Th>Status</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {status.payments.slice((page - 1) * ROWS_MAX, page * ROWS_MAX).map((payment) => {
              const { color, text } = STATES[status.orders[payment.page]?.state ?? "open"];
              return (
                <Table.Tr key={`${payment.page}/${payment.output}`}>
                  <Table.Th scope="row" fw={400}>
                    {payment.line}
                  </Table.Th>
                  <Table.Td ta="right" style={{ overflowWrap: "anywhere", minWidth: 90 }}>
                    {amount(payment)}
                  </Table.Td>
                  <Table.Td style={{ overflowWrap: "anywhere", minWidth: 150 }}>
                    {names.get(payment.recipient)} <span style={{ fontFamily: "monospace" }}>{formatAccount(payment.recipient)}</span>
                    {text === STATES.open.text && firsts.has(payment.recipient) && (
                      <Text span size="xs" fw={700}>
                        {" "}first payment
                      </Text>
                    )}
                  </Table.Td>
                  <Table.Td style={{ overflowWrap: "anywhere" }}>{payment.memo === NO_MEMO ? "" : decodeMemo(payment.memo)}</Table.Td>
                  <Table.Td>
                    <Badge size="xs" color={color} variant="light">
                      {text}
                    </Badge>
                  </Table.Td>
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      </div>
      <Pages total={pages} value={page} onChange={setPage} />
    </Stack>
  );
}
