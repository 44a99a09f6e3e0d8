import { Alert, Text } from "@mantine/core";
import type { Address } from "@fastpay/sdk";
import type { JSX } from "react";
import { getAddress } from "viem";

import type { Owner } from "../../account/OwnerProvider";
import { useOrders, type ShownAsset } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { IconArrowBarToUp } from "../../ui/icons";
import { ReviewCard } from "../../ui/ReviewCard";
import { money } from "../../ui/words";

/** Who submits a redemption to Ethereum. */
export type Carrier = "relayer" | "alone";

/** The reviewed redemption. It does not change with the form. */
export interface ReviewedRedemption {
  readonly recipient: Address;
  readonly asset: Address;
  readonly amount: bigint;
  readonly fee: bigint;
  readonly carrier: Carrier;
  /** The ENS name that was resolved to the recipient. */
  readonly ens: string | undefined;
}

interface Props {
  readonly owner: Owner;
  readonly redemption: ReviewedRedemption;
  readonly info: ShownAsset;
  /** The account's balance of the asset. */
  readonly balance: bigint;
  readonly canRedeem: boolean;
  readonly onRedeem: () => void;
  readonly onBack: () => void;
}

/** A complete redemption for review before signing. */
export function RedeemReview({ owner, redemption, info, balance, canRedeem, onRedeem, onBack }: Props): JSX.Element {
  const { recipient, asset, amount, fee, carrier, ens } = redemption;
  const { config } = useNetwork();
  const isOwn = recipient.toLowerCase() === owner.ethereum?.address.toLowerCase();
  const orders = useOrders(owner.account).data;
  const isKnown =
    orders === undefined ||
    orders.some(({ transfer }) => transfer.type === "redemption" && transfer.recipient.toLowerCase() === recipient.toLowerCase());
  const text = money(amount, info);
  return (
    <ReviewCard
      title={`Redeem ${text}?`}
      facts={[
        [
          "To",
          <Text key="to" span size="sm">
            <span style={{ fontFamily: "monospace" }}>{getAddress(recipient)}</span> on {config.chainName}
            {isOwn && ", the connected wallet"}
          </Text>,
        ],
        ["ENS name", ens],
        ["Amount", text],
        ["Token", info.isUnknown && `${asset}, unknown to this page`],
        ["Fee", carrier === "relayer" ? `${money(fee, info)}, for the relayer` : "none; you pay the gas of a transaction"],
        ["Amount paid out", money(amount - fee, info)],
        ["Remaining balance", balance >= amount && money(balance - amount, info)],
      ]}
      confirm={`Yes, redeem ${text}`}
      icon={<IconArrowBarToUp size={18} aria-hidden />}
      canConfirm={canRedeem}
      onConfirm={onRedeem}
      onBack={onBack}
    >
      {!isOwn && !isKnown && (
        <Alert color="orange" title="First redemption to this address">
          It is not the connected wallet&apos;s, and this browser knows of no earlier redemption to it. Compare the whole
          address; nobody can undo a redemption.
        </Alert>
      )}
    </ReviewCard>
  );
}
