import { type JSX } from "react";

import { ActivityCard } from "../activity/ActivityCard";
import { useActivities } from "../activity/ActivityProvider";
import { PausedNotice, WithWallet } from "../ui/Notices";
import type { ConnectedWallet } from "../ethereum/WalletProvider";
import { Page } from "../ui/Page";
import { PendingNotice } from "./pay/PendingNotice";
import { Claims } from "./redeem/Claims";
import { OpenRedemptions } from "./redeem/OpenRedemptions";
import { RedeemForm } from "./redeem/RedeemForm";

export function Component(): JSX.Element {
  return (
    <Page title="Redeem" lead="From FastPay back to Ethereum.">
      <PausedNotice />
      <WithWallet>{(wallet) => <Redeem key={wallet.account} wallet={wallet} />}</WithWallet>
    </Page>
  );
}

const KINDS = new Set(["redeem", "resume", "payout", "claim"]);

function Redeem({ wallet }: { wallet: ConnectedWallet }): JSX.Element {
  const activities = useActivities(wallet.account).filter(({ kind }) => KINDS.has(kind));
  return (
    <>
      {activities.slice(0, 3).map((activity) => (
        <ActivityCard key={activity.id} activity={activity} />
      ))}
      <PendingNotice account={wallet.account} />
      <RedeemForm wallet={wallet} />
      <OpenRedemptions wallet={wallet} />
      <Claims wallet={wallet} />
    </>
  );
}
