import { type JSX } from "react";

import type { Owner } from "../account/OwnerProvider";
import { ActivityCard } from "../activity/ActivityCard";
import { useActivities } from "../activity/ActivityProvider";
import { useNetwork } from "../network/NetworkProvider";
import { ErrorAlert } from "../ui/ErrorAlert";
import { PausedNotice, WithOwner } from "../ui/Notices";
import { Page } from "../ui/Page";
import { PendingNotice } from "./pay/PendingNotice";
import { Claims } from "./redeem/Claims";
import { OpenRedemptions } from "./redeem/OpenRedemptions";
import { RedeemForm } from "./redeem/RedeemForm";
import { useRequestedPayout } from "./redeem/useRequestedPayout";

export default function RedeemPage(): JSX.Element {
  const payout = useRequestedPayout();
  const { primaryName } = useNetwork().config;
  return (
    <Page title="Redeem" lead={`From FastPay back to ${primaryName}.`}>
      <PausedNotice />
      <ErrorAlert error={payout.error} title="This payout cannot be used" />
      <WithOwner>{(owner) => <Redeem key={owner.account} owner={owner} payout={payout} />}</WithOwner>
    </Page>
  );
}

const KINDS = new Set(["redeem", "resume", "payout", "unlock"]);
/** The number of newest activities shown. Older ones are shown while they are not done. */
const SHOWN_MAX = 3;

function Redeem({ owner, payout }: { owner: Owner; payout: ReturnType<typeof useRequestedPayout> }): JSX.Element {
  const { ledger } = useNetwork().config;
  // Claims belong to the wallet's address, even if a key is in use.
  const activities = useActivities(owner.account, owner.ethereum?.account)
    .filter(({ kind, account }) => kind === "claim" || (KINDS.has(kind) && account === owner.account))
    .filter(({ state }, index) => index < SHOWN_MAX || state !== "done");
  return (
    <>
      {activities.map((activity) => (
        <ActivityCard key={activity.id} activity={activity} />
      ))}
      <PendingNotice owner={owner} />
      {ledger === undefined && <Claims owner={owner} />}
      <OpenRedemptions owner={owner} />
      <RedeemForm owner={owner} requested={payout.requested} onTaken={payout.taken} />
    </>
  );
}
