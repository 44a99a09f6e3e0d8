import { Text } from "@mantine/core";
import { ETHER, formatAccount, type AccountId, type Address } from "@fastpay/sdk";
import type { ComponentProps, JSX } from "react";
import { getAddress } from "viem";

import type { ShownAsset } from "../../data/queries";
import type { NetworkConfig } from "../../network/config";
import type { Facts } from "../../ui/Facts";
import { IconArrowDownToArc } from "../../ui/icons";
import { ReviewCard } from "../../ui/ReviewCard";
import { money } from "../../ui/words";

/** The reviewed deposit, in the asset's smallest unit. It does not change with the form. */
export interface Reviewed {
  readonly asset: Address;
  readonly units: bigint;
}

type DepositFacts = ComponentProps<typeof Facts>["facts"];

interface FactsOf {
  readonly deposit: Reviewed;
  readonly account: AccountId;
  /** True if the account belongs to a browser key. */
  readonly isKey: boolean;
  /** The wallet's address, and its balance of the asset. */
  readonly from: Address;
  readonly balance: bigint | undefined;
  readonly info: ShownAsset;
  /** The transactions and signatures that the wallet will ask for. */
  readonly hint: string;
  readonly config: NetworkConfig;
}

/** The facts of a complete deposit. */
export function depositFacts({ deposit: { asset, units }, account, isKey, from, balance, info, hint, config }: FactsOf): DepositFacts {
  return [
    ["From", <Text key="from" span ff="monospace" size="sm">{`${from} on ${config.chainName}`}</Text>],
    ["To", <Text key="to" span ff="monospace" size="sm">{formatAccount(account)}</Text>],
    ["Account of", isKey ? "your browser key" : "your wallet"],
    ["Contract", <Text key="contract" span ff="monospace" size="sm">{getAddress(config.contract)}</Text>],
    ["Amount", money(units, info)],
    ["Token", asset !== ETHER && `${getAddress(asset)}${info.isUnknown ? ", not on this page's list" : ""}`],
    ["Remaining in the wallet", balance !== undefined && balance >= units && `${money(balance - units, info)}, less gas`],
    ["Your wallet asks for", hint],
  ];
}

interface Props {
  readonly facts: DepositFacts;
  /** The amount to deposit. */
  readonly text: string;
  readonly canDeposit: boolean;
  readonly onDeposit: () => void;
  readonly onBack: () => void;
}

/** A complete deposit for review, before the wallet signs. */
export function DepositReview({ facts, text, canDeposit, onDeposit, onBack }: Props): JSX.Element {
  return (
    <ReviewCard
      title={`Deposit ${text}?`}
      facts={facts}
      confirm={`Yes, deposit ${text}`}
      icon={<IconArrowDownToArc size={18} aria-hidden />}
      canConfirm={canDeposit}
      onConfirm={onDeposit}
      onBack={onBack}
    />
  );
}
