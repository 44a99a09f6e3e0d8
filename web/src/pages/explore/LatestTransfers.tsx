import { Anchor, Card, Group, Stack, Text, Title } from "@mantine/core";
import { amountOf, type Transfer, type VerifiedCertificate } from "@fastpay/sdk";
import type { JSX } from "react";
import { Link } from "react-router";

import { useLatestTransfers } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { AccountLink } from "../../ui/AccountText";
import { ErrorAlert } from "../../ui/ErrorAlert";
import { useMoney } from "../../ui/Money";
import { recipientsText, shortAddress, shorten } from "../../ui/words";

/** The newest transfers of all accounts, with links to their pages. */
export function LatestTransfers(): JSX.Element {
  const { data, error } = useLatestTransfers();
  return (
    <Card withBorder component="section" aria-label="Latest transfers">
      <Title order={2} size="h4">
        Latest transfers
      </Title>
      {data === undefined && <ErrorAlert error={error} />}
      {data?.length === 0 && <Text size="sm">None yet.</Text>}
      <Stack component="ul" gap="xs" p={0} m={0} style={{ listStyle: "none" }}>
        {data?.map((certificate) => <Line key={certificate.digest} certificate={certificate} />)}
      </Stack>
    </Card>
  );
}

function Line({ certificate: { digest, order } }: { certificate: VerifiedCertificate }): JSX.Element {
  const { transfer } = order;
  const amount = useMoney(amountOf(transfer), transfer.asset);
  return (
    <Group component="li" justify="space-between" gap={4} data-digest={digest}>
      <div style={{ minWidth: 0 }}>
        <Anchor component={Link} to={`/explore/transfer/${digest}`} ff="monospace" size="sm" title={digest}>
          {shorten(digest)}
        </Anchor>
        <Text size="xs" c="dimmed" component="div">
          <AccountLink account={transfer.sender} /> to <To transfer={transfer} />
        </Text>
      </div>
      <Text size="sm" fw={600}>
        {amount}
      </Text>
    </Group>
  );
}

function To({ transfer }: { transfer: Transfer }): JSX.Element {
  const { primaryName } = useNetwork().config;
  switch (transfer.type) {
    case "payment":
      return <AccountLink account={transfer.recipient} />;
    case "redemption":
      return <>{shortAddress(transfer.recipient)} on {primaryName}</>;
    case "payout":
      return <>{recipientsText(transfer)}</>;
  }
}
