import { Button, Card, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import type { JSX, ReactNode } from "react";
import { Link } from "react-router";

import { ConnectButton } from "../account/ConnectButton";
import { useOwners, type Owner } from "../account/OwnerProvider";
import { ActivityCard } from "../activity/ActivityCard";
import { useActivities } from "../activity/ActivityProvider";
import { PausedNotice } from "../ui/Notices";
import { Page } from "../ui/Page";
import { Balances } from "./home/Balances";
import { AuthoritiesLine } from "./home/AuthoritiesLine";
import { HistoryList } from "./history/HistoryList";
import { UnfinishedListsNotice } from "./list/UnfinishedLists";
import { PendingNotice } from "./pay/PendingNotice";
import { IconArrowDownToArc, IconArrowBarToUp, IconQrcode, IconSearch, IconSend } from "../ui/icons";

const ACTIONS = [
  { to: "/pay", label: "Pay", Icon: IconSend },
  { to: "/receive", label: "Receive", Icon: IconQrcode },
  { to: "/deposit", label: "Deposit", Icon: IconArrowDownToArc },
  { to: "/redeem", label: "Redeem", Icon: IconArrowBarToUp },
];

export function Component(): JSX.Element {
  const { owner } = useOwners();
  return owner === undefined ? <Welcome /> : <Wallet key={owner.account} owner={owner} />;
}

function Welcome(): JSX.Element {
  return (
    <Page
      title="Payments on Ethereum, final in one round trip"
      lead="Deposit once, pay anyone in milliseconds, and redeem to Ethereum at any time, without a relayer if need be."
      width={880}
    >
      <Group>
        <ConnectButton size="md" />
        <Button component={Link} to="/explore" variant="default" size="md" leftSection={<IconSearch size={18} aria-hidden />}>
          Explore
        </Button>
      </Group>
      <SimpleGrid cols={{ base: 1, sm: 3 }} mt="md">
        <Point title="Your key">Your Ethereum wallet signs each payment, and shows it first; or a key does that this browser keeps, encrypted.</Point>
        <Point title="A committee, not a company">
          Authorities vote on each payment. This page checks every vote by itself; fewer than a third of them may lie or be away.
        </Point>
        <Point title="Your way out">What you hold can be redeemed by a transaction of your own, once a quorum of authorities has voted for it.</Point>
      </SimpleGrid>
    </Page>
  );
}

function Point({ title, children }: { title: string; children: ReactNode }): JSX.Element {
  return (
    <Card withBorder>
      <Text fw={600} component="h2">
        {title}
      </Text>
      <Text size="sm" c="dimmed" mt={4}>
        {children}
      </Text>
    </Card>
  );
}

function Wallet({ owner }: { owner: Owner }): JSX.Element {
  const activities = useActivities(owner.account);
  return (
    <Page title="Wallet" width={720}>
      <PausedNotice />
      <PendingNotice account={owner.account} />
      <UnfinishedListsNotice account={owner.account} />
      <Balances owner={owner} />
      <SimpleGrid component="nav" aria-label="What to do" cols={{ base: 2, sm: 4 }} spacing="sm">
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
        <HistoryList account={owner.account} limit={5} heading="Lately" />
        <Text size="sm">
          <Link to="/history">The whole history</Link>
        </Text>
      </Stack>
      <AuthoritiesLine account={owner.account} />
    </Page>
  );
}
