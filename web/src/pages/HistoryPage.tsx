import type { JSX } from "react";

import type { Owner } from "../account/OwnerProvider";
import { ActivityCard } from "../activity/ActivityCard";
import { useActivities } from "../activity/ActivityProvider";
import { WithOwner } from "../ui/Notices";
import { Page } from "../ui/Page";
import { HistoryList } from "./history/HistoryList";
import { PendingNotice } from "./pay/PendingNotice";

export default function HistoryPage(): JSX.Element {
  return (
    <Page title="History" lead="This page checks the proof of each payment. f + 1 authorities confirm each deposit." width={720}>
      <WithOwner>{(owner) => <OwnHistory key={owner.account} owner={owner} />}</WithOwner>
    </Page>
  );
}

function OwnHistory({ owner }: { owner: Owner }): JSX.Element {
  const running = useActivities(owner.account).filter(({ state }) => state !== "done");
  return (
    <>
      <PendingNotice owner={owner} />
      {running.map((activity) => (
        <ActivityCard key={activity.id} activity={activity} />
      ))}
      <HistoryList account={owner.account} limit={20} hasMore />
    </>
  );
}
