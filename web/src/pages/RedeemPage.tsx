import { type JSX } from "react";

import type { Owner } from "../account/OwnerProvider";
import { ActivityCard } from "../activity/ActivityCard";
import { useActivities } from "../activity/ActivityProvider";
import { PausedNotice, WithOwner } from "../ui/Notices";
import { Page } from "../ui/Page";
import { PendingNotice } from "./pay/PendingNotice";
import { Claims } from "./redeem/Claims";
import { OpenRedemptions } from "./redeem/OpenRedemptions";
import { RedeemForm } from "./redeem/RedeemForm";

export function Component(): JSX.Element {
  return (
    <Page title="Redeem" lead="From FastPay back to Ethereum.">
      <PausedNotice />
      <WithOwner>{(owner) => <Redeem key={owner.account} owner={owner} />}</WithOwner>
    </Page>
  );
}

const KINDS = new Set(["redeem", "resume", "payout", "claim"]);

function Redeem({ owner }: { owner: Owner }): JSX.Element {
  const activities = useActivities(owner.account).filter(({ kind }) => KINDS.has(kind));
  return (
    <>
      {activities.slice(0, 3).map((activity) => (
        <ActivityCard key={activity.id} activity={activity} />
      ))}
      <PendingNotice account={owner.account} />
      <Claims owner={owner} />
      <OpenRedemptions owner={owner} />
      <RedeemForm owner={owner} />
    </>
  );
}
