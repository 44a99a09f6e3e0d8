import { Alert } from "@mantine/core";
import { NO_MEMO, type Address, type Hex, type Redemption } from "@fastpay/sdk";
import type { JSX } from "react";

import type { Owner } from "../../account/OwnerProvider";
import { useOrders, type ShownAsset } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { IconArrowBarToUp } from "../../ui/icons";
import { ReviewCard } from "../../ui/ReviewCard";
import { orderFields } from "../../ui/signed";
import { signedFacts } from "../../ui/SignedFacts";
import { money } from "../../ui/words";

/** The party that submits a redemption to the Primary. */
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
  /** The memo of a payout that a merchant's service prepared; otherwise undefined. */
  readonly memo: Hex | undefined;
}

interface Props {
  readonly owner: Owner;
  readonly redemption: ReviewedRedemption;
  readonly info: ShownAsset;
  /** The account's balance of the asset. */
  readonly balance: bigint;
  /** The number of the account's next order. */
  readonly sequence: bigint;
  readonly canRedeem: boolean;
  readonly onRedeem: () => void;
  readonly onBack: () => void;
}

/** A complete redemption for review before signing. */
export function RedeemReview({ owner, redemption, info, balance, sequence, canRedeem, onRedeem, onBack }: Props): JSX.Element {
  const { recipient, asset, amount, fee, carrier, ens, memo = NO_MEMO } = redemption;
  const { config } = useNetwork();
  const isOwn = recipient.toLowerCase() === owner.ethereum?.address.toLowerCase();
  const orders = useOrders(owner.account).data;
  const isKnown =
    orders === undefined ||
    orders.some(({ transfer }) => transfer.type === "redemption" && transfer.recipient.toLowerCase() === recipient.toLowerCase());
  const text = money(amount, info);
  const { account: sender } = owner;
  const transfer: Redemption = { type: "redemption", sender, recipient, asset, amount, fee, sequence, memo };
  const [to, ...fields] = orderFields(transfer, info);
  return (
    <ReviewCard
      title={`Redeem ${text}?`}
      facts={[
        ...signedFacts(to === undefined ? [] : [to]),
        ["On", config.chainName],
        ["Paid into", config.ledger !== undefined && "the reserve of this address, which its key opens"],
        ["Address of", isOwn && "the connected wallet"],
        ["ENS name", ens],
        ...signedFacts(fields),
        ["Submitted by", carrier === "relayer" ? "a relayer, for the fee" : "you, with a transaction; you pay its gas"],
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
          It is not the connected wallet&apos;s address, and this browser knows of no earlier redemption to it. Compare the whole
          address; nobody can undo a redemption.
        </Alert>
      )}
    </ReviewCard>
  );
}
