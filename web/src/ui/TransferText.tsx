import { amountOf, formatAccount, type Transfer } from "@fastpay/sdk";
import type { JSX } from "react";
import { getAddress } from "viem";

import { useNetwork } from "../network/NetworkProvider";
import { useMoney } from "./Money";
import { recipientsText, shortAccount, shortAddress } from "./words";

/** The recipient, short and in full. */
function recipientOf(transfer: Transfer, primaryName: string): { to: string; whole: string | undefined } {
  switch (transfer.type) {
    case "payment":
      return { to: shortAccount(transfer.recipient), whole: formatAccount(transfer.recipient) };
    case "redemption":
      return { to: `${shortAddress(transfer.recipient)} on ${primaryName}`, whole: getAddress(transfer.recipient) };
    case "payout":
      return { to: recipientsText(transfer), whole: undefined };
  }
}

/** An order in one sentence. */
export function TransferText({ transfer }: { transfer: Transfer }): JSX.Element {
  const amount = useMoney(amountOf(transfer), transfer.asset);
  const { to, whole } = recipientOf(transfer, useNetwork().config.primaryName);
  return (
    <span title={whole}>
      Order #{transfer.sequence.toString()} {transfer.type === "redemption" ? "redeems" : "pays"} {amount} to {to}.
    </span>
  );
}
