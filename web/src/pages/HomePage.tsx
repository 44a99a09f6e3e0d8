import { Button, Card, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import type { JSX, ReactNode } from "react";
import { Link } from "react-router";

import { ActivityCard } from "../activity/ActivityCard";
import { useActivities } from "../activity/ActivityProvider";
import { ConnectButton } from "../ethereum/ConnectButton";
import { useWallets, type ConnectedWallet } from "../ethereum/WalletProvider";
import { PausedNotice } from "../ui/Notices";
import { Page } from "../ui/Page";
import { Balances } from "./home/Balances";
import { AuthoritiesLine } from "./home/AuthoritiesLine";
import { HistoryList } from "./history/HistoryList";
import { PendingNotice } from "./pay/PendingNotice";
import { IconArrowDownToArc, IconArrowBarToUp, IconQrcode, IconSearch, IconSend } from "../ui/icons";

export function Component(): JSX.Element {
  const { connected } = useWallets();
  return connected === undefined ? <Welcome /> : <Wallet key={connected.account} wallet={connected} />;
}

function Welcome(): JSX.Element {
  return (
    <Page
      title="Payments on Ethereum, final in one round trip"
      lead="Deposit once, pay anyone in milliseconds, and redeem to Ethereum at any time, alone if need be."
    >
      <Group>
        <ConnectButton size="md" />
        <Button component={Link} to="/explore" variant="default" size="md" leftSection={<IconSearch size={18} aria-hidden />}>
          Explore
        </Button>
      </Group>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <Point title="Your key">Your Ethereum wallet signs each payment, and shows it first. There is no other account.</Point>
        <Point title="A committee, not a company">
          Authorities vote on each payment. This page checks every vote by itself; up to a third of them may lie or be away.
        </Point>
        <Point title="Your way out">What you hold can be redeemed by a transaction of your own, whoever is gone.</Point>
      </SimpleGrid>
    </Page>
  );
}

function Point({ title, children }: { title: string; children: ReactNode }): JSX.Element {
  return (
    <Card withBorder>
      <Text fw={600}>{title}</Text>
      <Text size="sm" c="dimmed">
        {children}
      </Text>
    </Card>
  );
}

function Wallet({ wallet }: { wallet: ConnectedWallet }): JSX.Element {
  const activities = useActivities(wallet.account);
  return (
    <Page title="Wallet" width={720}>
      <PausedNotice />
      <PendingNotice account={wallet.account} />
      <Balances wallet={wallet} />
      <SimpleGrid component="nav" aria-label="What to do" cols={{ base: 2, sm: 4 }} spacing="sm">
        <Action to="/pay" icon={<IconSend aria-hidden />}>
          Pay
        </Action>
        <Action to="/receive" icon={<IconQrcode aria-hidden />}>
          Receive
        </Action>
        <Action to="/deposit" icon={<IconArrowDownToArc aria-hidden />}>
          Deposit
        </Action>
        <Action to="/redeem" icon={<IconArrowBarToUp aria-hidden />}>
          Redeem
        </Action>
      </SimpleGrid>
      {activities.map((activity) => (
        <ActivityCard key={activity.id} activity={activity} />
      ))}
      <Stack gap="xs">
        <HistoryList account={wallet.account} limit={5} heading="Lately" />
        <Text size="sm">
          <Link to="/history">The whole history</Link>
        </Text>
      </Stack>
      <AuthoritiesLine account={wallet.account} />
    </Page>
  );
}

function Action({ to, icon, children }: { to: string; icon: ReactNode; children: ReactNode }): JSX.Element {
  return (
    <Button component={Link} to={to} variant="light" h={76} className="action">
      {icon}
      {children}
    </Button>
  );
}
