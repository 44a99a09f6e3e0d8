import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import type { AccountId, ListStatus } from "@fastpay/sdk";
import type { JSX } from "react";
import { Link } from "react-router";

import type { Owner } from "../../account/OwnerProvider";
import { isOrdering, useActivities, useActivityActions } from "../../activity/ActivityProvider";
import { listIn } from "../../activity/activities";
import { listText, SaveResult } from "../../activity/ListProgress";
import { useUnfinishedLists } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { count, timeText } from "../../ui/words";
import { IconList } from "../../ui/icons";

/** The unsettled lists that no activity on this page is paying. */
function useLeftLists(account: AccountId): readonly ListStatus[] {
  const shown = useActivities(account).map((activity) => listIn(activity)?.name);
  return (useUnfinishedLists(account).data ?? []).filter(({ name }) => !shown.includes(name));
}

/** Unfinished lists of earlier visits, with a button to continue. */
export function UnfinishedLists({ owner }: { owner: Owner }): JSX.Element {
  const { account, signer, canSign } = owner;
  const { client } = useNetwork();
  const { start } = useActivityActions();
  const queries = useQueryClient();
  const lists = useLeftLists(account);
  const isBusy = isOrdering(useActivities(account), account);
  const goOn = ({ name, payments }: ListStatus): void => {
    start({
      kind: "list",
      account,
      title: `Pay a list of ${count(payments.length, "payment")}`,
      work: ({ report, signal }) => client.resumeList(signer, name, { onProgress: report, signal }),
    });
  };
  const putAside = async ({ name }: ListStatus): Promise<void> => {
    await client.closeList(name);
    await queries.invalidateQueries({ queryKey: ["orders", account] });
  };
  return (
    <>
      {lists.map((status) => (
        <Alert key={status.name} role="alert" color="orange" icon={<IconList aria-hidden />} title="A list is partly paid">
          <Stack gap="xs">
            <Text size="sm">
              {listText(status)}; started {timeText(status.begunAtMs ?? 0)}. Choose Continue to pay the others. Nobody is paid twice.
            </Text>
            <Group>
              <Button size="xs" onClick={() => goOn(status)} disabled={isBusy || !canSign}>
                Continue
              </Button>
              <SaveResult status={status} />
              <Button size="xs" variant="default" onClick={() => void putAside(status)} disabled={isBusy}>
                Hide
              </Button>
            </Group>
          </Stack>
        </Alert>
      ))}
    </>
  );
}

/** A notice on other pages that unfinished lists exist. */
export function UnfinishedListsNotice({ account }: { account: AccountId }): JSX.Element | null {
  const [first] = useLeftLists(account);
  if (first === undefined) return null;
  return (
    <Alert role="alert" color="orange" icon={<IconList aria-hidden />} title="A list is partly paid">
      <Group justify="space-between">
        <Text size="sm">{listText(first)}.</Text>
        <Button component={Link} to="/pay/list" variant="default" size="xs">
          Show it
        </Button>
      </Group>
    </Alert>
  );
}
