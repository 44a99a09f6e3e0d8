import { Button, SimpleGrid, Stack, Text } from "@mantine/core";
import type { JSX } from "react";
import { Link } from "react-router";

import type { Owner } from "../../account/OwnerProvider";
import { ActivityCard } from "../../activity/ActivityCard";
import { useActivities } from "../../activity/ActivityProvider";
import { IconArrowBarToUp, IconArrowDownToArc, IconQrcode, IconSend } from "../../ui/icons";
import { PausedNotice } from "../../ui/Notices";
import { Page } from "../../ui/Page";
import { HistoryList } from "../history/HistoryList";
import { UnfinishedListsNotice } from "../list/UnfinishedLists";
import { PendingNotice } from "../pay/PendingNotice";
import { AuthoritiesLine } from "./AuthoritiesLine";
import { Balances } from "./Balances";
import { FirstSteps } from "./FirstSteps";

const ACTIONS = [
  { to: "/pay", label: "Pay", Icon: IconSend },
  { to: "/receive", label: "Receive", Icon: IconQrcode },
  { to: "/deposit", label: "Deposit", Icon: IconArrowDownToArc },
  { to: "/redeem", label: "Redeem", Icon: IconArrowBarToUp },
];

/** The owner's balances and latest activity. */
export default function Wallet({ owner }: { owner: Owner }): JSX.Element {
  const activities = useActivities(owner.account);
  return (
    <Page title="Wallet" width={720}>
      <PausedNotice />
      <PendingNotice owner={owner} />
      <UnfinishedListsNotice account={owner.account} />
      <FirstSteps owner={owner} />
      <Balances owner={owner} />
      <SimpleGrid component="nav" aria-label="Actions" cols={{ base: 2, sm: 4 }} spacing="sm">
        {ACTIONS.map(({ to, label, Icon }) => (
          <Button key={to} component={Link} to={to} variant="light" h={76} className="action">
            <Icon aria-hidden />
            {label}
          </Button>
        ))}
      </SimpleGrid>
      {activities.map((activity) => (
        <ActivityCard key={activity.id} activity={activity} />
      ))}
      <Stack gap="xs">
        <HistoryList account={owner.account} limit={5} heading="Recent" />
        <Text size="sm">
          <Link to="/history">Show the full history</Link>
        </Text>
      </Stack>
      <AuthoritiesLine account={owner.account} />
    </Page>
  );
}
