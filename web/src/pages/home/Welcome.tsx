import { Button, Card, Group, SimpleGrid, Text } from "@mantine/core";
import type { JSX, ReactNode } from "react";
import { Link } from "react-router";

import { useNetworkIfLoaded } from "../../network/NetworkProvider";
import { IconSearch } from "../../ui/icons";
import { Page } from "../../ui/Page";

/** The start page without an account. `connect` is the button to connect one. */
export function Welcome({ connect }: { connect: ReactNode }): JSX.Element {
  const isLedger = useNetworkIfLoaded()?.config.ledger !== undefined;
  return (
    <Page
      title={`Payments on ${isLedger ? "a ledger" : "Ethereum"}, final after two round trips`}
      lead={
        isLedger
          ? "Be funded from a reserve once, pay anyone in milliseconds, and redeem to a reserve at any time."
          : "Deposit once, pay anyone in milliseconds, and redeem to Ethereum at any time, without a relayer if need be."
      }
      width={880}
    >
      <Group>
        {connect}
        <Button component={Link} to="/explore" variant="default" size="md" leftSection={<IconSearch size={18} aria-hidden />}>
          Explore
        </Button>
      </Group>
      <SimpleGrid cols={{ base: 1, sm: 3 }} mt="md">
        <Point title="Your key">Your Ethereum wallet shows and signs each payment. Or use a browser key, stored encrypted.</Point>
        <Point title="A committee, not a company">
          Authorities vote on each payment, and this page checks every vote. Fewer than a third of them may be lying or unavailable.
        </Point>
        <Point title="Leave at any time">
          {isLedger
            ? "The ledger pays your money into a reserve, with the votes of a quorum of authorities."
            : "Your own transaction redeems your money on Ethereum, with the votes of a quorum of authorities."}
        </Point>
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
