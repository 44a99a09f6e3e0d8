import type { JSX } from "react";

import { ActivityCard } from "../activity/ActivityCard";
import { useActivities } from "../activity/ActivityProvider";
import type { ConnectedWallet } from "../ethereum/WalletProvider";
import { WithWallet } from "../ui/Notices";
import { Page } from "../ui/Page";
import { HistoryList } from "./history/HistoryList";
import { PendingNotice } from "./pay/PendingNotice";

export function Component(): JSX.Element {
  return (
    <Page title="History" lead="Each entry is backed by a certificate that this page has checked." width={720}>
      <WithWallet>{(wallet) => <OwnHistory key={wallet.account} wallet={wallet} />}</WithWallet>
    </Page>
  );
}

function OwnHistory({ wallet }: { wallet: ConnectedWallet }): JSX.Element {
  const running = useActivities(wallet.account).filter(({ state }) => state !== "done");
  return (
    <>
      <PendingNotice account={wallet.account} />
      {running.map((activity) => (
        <ActivityCard key={activity.id} activity={activity} />
      ))}
      <HistoryList account={wallet.account} limit={20} hasMore />
    </>
  );
}
