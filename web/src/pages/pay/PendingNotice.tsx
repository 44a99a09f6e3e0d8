import { Alert, Button, Group, Text } from "@mantine/core";
import type { JSX } from "react";

import type { Owner } from "../../account/OwnerProvider";
import { isOrdering, useActivities, useResume } from "../../activity/ActivityProvider";
import { useKnownAssets } from "../../data/assets";
import { useAccount, useOrders } from "../../data/queries";
import { TransferText } from "../../ui/TransferText";
import { IconLock } from "../../ui/icons";
import { StuckNotice } from "./StuckNotice";

/**
 * A notice of an unfinished order that no activity is finishing, with a button to finish it or to unlock the account.
 */
export function PendingNotice({ owner }: { owner: Owner }): JSX.Element | null {
  const { account } = owner;
  const { assets } = useKnownAssets();
  const view = useAccount(account, assets).data;
  const unfinished = useOrders(account).data?.find(({ settledAtMs, state }) => settledAtMs === undefined && state !== "voided");
  const isBusy = isOrdering(useActivities(account), account);
  const resume = useResume();
  const transfer = unfinished?.transfer ?? view?.pending?.transfer;
  if (view?.stuckAt !== undefined) return <StuckNotice owner={owner} sequence={view.stuckAt} />;
  if (transfer === undefined || isBusy) return null;
  const isOurs = unfinished?.createdAtMs !== undefined && unfinished.state !== "superseded";
  return (
    <Alert role="alert" color="orange" icon={<IconLock aria-hidden />} title="Unfinished order">
      <Group justify="space-between">
        <Text size="sm">
          <TransferText transfer={transfer} /> It was signed {isOurs ? "here" : "on another device"} and must be finished
          before the next one. It is paid only once.
        </Text>
        <Button variant="default" size="xs" onClick={() => resume(account)}>
          Finish it now
        </Button>
      </Group>
    </Alert>
  );
}
