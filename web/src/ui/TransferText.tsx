import { formatAccount, type Transfer } from "@fastpay/sdk";
import type { JSX } from "react";

import { useMoney } from "./Money";
import { shortAccount, shorten } from "./words";

/** An order in one sentence. */
export function TransferText({ transfer }: { transfer: Transfer }): JSX.Element {
  const amount = useMoney(transfer.amount, transfer.asset);
  const to = transfer.type === "payment" ? shortAccount(transfer.recipient) : `${shorten(transfer.recipient)} on Ethereum`;
  return (
    <span title={transfer.type === "payment" ? formatAccount(transfer.recipient) : transfer.recipient}>
      Order #{transfer.sequence.toString()} {transfer.type === "payment" ? "pays" : "redeems"} {amount} to {to}.
    </span>
  );
}
