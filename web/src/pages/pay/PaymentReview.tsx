import { Alert } from "@mantine/core";
import type { AccountId, Address, Hex, Payment, Transfer } from "@fastpay/sdk";
import type { JSX } from "react";

import { useContacts } from "../../data/contacts";
import { useOrders, type ShownAsset } from "../../data/queries";
import { IconSend } from "../../ui/icons";
import { ReviewCard } from "../../ui/ReviewCard";
import { orderFields } from "../../ui/signed";
import { signedFacts } from "../../ui/SignedFacts";
import { money, timeText } from "../../ui/words";

/** The reviewed payment. It does not change with the form. */
export interface Reviewed {
  readonly to: AccountId;
  readonly asset: Address;
  readonly amount: bigint;
  readonly memo: Hex;
  /** The expiry, in seconds since 1970. */
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
  /** The number of the account's next order. */
  readonly sequence: bigint;
  readonly canPay: boolean;
  readonly onPay: () => void;
  readonly onBack: () => void;
}

/** A complete payment for review before signing. */
export function PaymentReview({ account, payment, info, balance, sequence, canPay, onPay, onBack }: Props): JSX.Element {
  const { to, asset, amount, memo, expires, label, ens } = payment;
  const isFirst = useFirsts(account, [to]).size > 0;
  const { names } = useContacts();
  const text = money(amount, info);
  const transfer: Payment = { type: "payment", sender: account, recipient: to, asset, amount, sequence, memo };
  const [recipient, ...fields] = orderFields(transfer, info);
  return (
    <ReviewCard
      title={`Pay ${text}?`}
      facts={[
        ...signedFacts(recipient === undefined ? [] : [recipient]),
        ["ENS name", ens],
        ["Contact name", names.get(to)],
        ["Claimed name", label && `${label} (not verified)`],
        ...signedFacts(fields),
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

/** The recipients that no order of this browser has paid; none until the orders are loaded. */
export function useFirsts(account: AccountId, recipients: readonly AccountId[]): ReadonlySet<AccountId> {
  const orders = useOrders(account).data;
  if (orders === undefined) return new Set();
  const paid = new Set(orders.flatMap(({ transfer }) => recipientsOf(transfer)));
  return new Set(recipients.filter((one) => !paid.has(one)));
}

/** The recipients of a transfer. */
export function recipientsOf(transfer: Transfer): readonly AccountId[] {
  if (transfer.type === "payout") return transfer.outputs.map(({ recipient }) => recipient);
  return transfer.type === "payment" ? [transfer.recipient] : [];
}
