import { Alert, Button, Group, Text } from "@mantine/core";
import type { AccountId } from "@fastpay/sdk";
import type { JSX } from "react";

import { isOrdering, useActivities, useResume } from "../../activity/ActivityProvider";
import { useKnownAssets } from "../../data/assets";
import { useAccount, useOrders } from "../../data/queries";
import { TransferText } from "../../ui/TransferText";
import { IconLock } from "../../ui/icons";

/** A notice of a pending order that is not being finished, with a button to finish it. */
export function PendingNotice({ account }: { account: AccountId }): JSX.Element | null {
  const { assets } = useKnownAssets();
  const pending = useAccount(account, assets).data?.pending?.transfer;
  const unfinished = useOrders(account).data?.find(({ settledAtMs }) => settledAtMs === undefined);
  const isBusy = isOrdering(useActivities(account), account);
  const resume = useResume();
  const transfer = unfinished?.transfer ?? pending;
  if (transfer === undefined || isBusy) return null;
  const isOurs = unfinished?.createdAtMs !== undefined && unfinished.state !== "superseded";
  return (
    <Alert role="alert" color="orange" icon={<IconLock aria-hidden />} title="An order is not finished">
      <Group justify="space-between">
        <Text size="sm">
          <TransferText transfer={transfer} /> It was signed {isOurs ? "here" : "on another device"} and has to be finished
          before the next one; it is paid once only.
        </Text>
        <Button variant="default" size="xs" onClick={() => resume(account)}>
          Finish it now
        </Button>
      </Group>
    </Alert>
  );
}
