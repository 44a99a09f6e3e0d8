import { Alert, Text } from "@mantine/core";
import { decodeMemo, formatAccount, NO_MEMO, type AccountId, type Address, type Hex, type Transfer } from "@fastpay/sdk";
import type { JSX } from "react";

import { useContacts } from "../../data/contacts";
import { useOrders, type ShownAsset } from "../../data/queries";
import { IconSend } from "../../ui/icons";
import { ReviewCard } from "../../ui/ReviewCard";
import { money, timeText } from "../../ui/words";

/** The reviewed payment. It does not change with the form. */
export interface Reviewed {
  readonly to: AccountId;
  readonly asset: Address;
  readonly amount: bigint;
  readonly memo: Hex;
  /** Until when, in seconds since 1970. */
  readonly expires: bigint | undefined;
  /** The recipient's claimed name. */
  readonly label: string | undefined;
  /** The ENS name that was resolved to `to`. */
  readonly ens: string | undefined;
}

interface Props {
  readonly account: AccountId;
  readonly payment: Reviewed;
  readonly info: ShownAsset;
  /** The account's balance of the asset. */
  readonly balance: bigint;
  readonly canPay: boolean;
  readonly onPay: () => void;
  readonly onBack: () => void;
}

/** A complete payment for review before signing. */
export function PaymentReview({ account, payment, info, balance, canPay, onPay, onBack }: Props): JSX.Element {
  const { to, asset, amount, memo, expires, label, ens } = payment;
  const isFirst = useIsFirst(account, to);
  const { names } = useContacts();
  const text = money(amount, info);
  return (
    <ReviewCard
      title={`Pay ${text}?`}
      facts={[
        ["To", <Text key="to" span ff="monospace" size="sm">{formatAccount(to)}</Text>],
        ["ENS name", ens],
        ["Your name for it", names.get(to)],
        ["Claimed name", label && `${label} (nobody has checked this)`],
        ["Amount", text],
        ["Token", info.isUnknown && `${asset}, unknown to this page`],
        ["Memo", memo === NO_MEMO ? undefined : `${decodeMemo(memo)} (everyone can read it)`],
        ["Expires", expires && timeText(Number(expires) * 1_000)],
        ["Remaining balance", balance >= amount && money(balance - amount, info)],
      ]}
      confirm={`Yes, pay ${text}`}
      icon={<IconSend size={18} aria-hidden />}
      canConfirm={canPay}
      onConfirm={onPay}
      onBack={onBack}
    >
      {isFirst && (
        <Alert color="orange" title="First payment to this account">
          This browser knows of no earlier one. Compare the whole address; nobody can undo a payment.
        </Alert>
      )}
    </ReviewCard>
  );
}

/** True if no known order of this browser has paid that account; false until that is known. */
function useIsFirst(account: AccountId, to: AccountId): boolean {
  const orders = useOrders(account).data;
  return orders !== undefined && !orders.some(({ transfer }) => recipientsOf(transfer).includes(to));
}

/** The recipients of a transfer. */
export function recipientsOf(transfer: Transfer): readonly AccountId[] {
  if (transfer.type === "payout") return transfer.outputs.map(({ recipient }) => recipient);
  return transfer.type === "payment" ? [transfer.recipient] : [];
}
