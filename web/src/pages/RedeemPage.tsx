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

export default function RedeemPage(): JSX.Element {
  return (
    <Page title="Redeem" lead="From FastPay back to Ethereum.">
      <PausedNotice />
      <WithOwner>{(owner) => <Redeem key={owner.account} owner={owner} />}</WithOwner>
    </Page>
  );
}

const KINDS = new Set(["redeem", "resume", "payout", "unlock"]);
/** The number of newest activities shown. Older ones are shown while they are not done. */
const SHOWN_MAX = 3;

function Redeem({ owner }: { owner: Owner }): JSX.Element {
  // Claims are the wallet's, also beside a key.
  const activities = useActivities(owner.account, owner.ethereum?.account)
    .filter(({ kind, account }) => kind === "claim" || (KINDS.has(kind) && account === owner.account))
    .filter(({ state }, index) => index < SHOWN_MAX || state !== "done");
  return (
    <>
      {activities.map((activity) => (
        <ActivityCard key={activity.id} activity={activity} />
      ))}
      <PendingNotice owner={owner} />
      <Claims owner={owner} />
      <OpenRedemptions owner={owner} />
      <RedeemForm owner={owner} />
    </>
  );
}
