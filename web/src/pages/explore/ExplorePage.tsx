import { Badge, Card, Group, Stack, Text, Title } from "@mantine/core";
import type { JSX } from "react";

import { Facts } from "../../ui/Facts";
import { useContractStatus } from "../../data/queries";
import { useAuthorityLabel } from "../../network/authorities";
import { eventsLabel } from "../../network/config";
import { useNetwork } from "../../network/NetworkProvider";
import { Copyable } from "../../ui/AccountText";
import { Page } from "../../ui/Page";
import { Assets } from "./Assets";
import { LatestTransfers } from "./LatestTransfers";
import { useStatuses, type AuthorityStatus } from "./statuses";
import { SearchBox } from "./SearchBox";

export default function ExplorePage(): JSX.Element {
  const { config } = useNetwork();
  const { ledger } = config;
  const status = useContractStatus().data;
  return (
    <Page
      title="Explore"
      lead={`Open to everyone, without a wallet. This page checks each vote against the committee that ${config.holder} names.`}
      width={720}
    >
      <SearchBox />
      <Card withBorder component="section" aria-label="This deployment">
        <Facts
          facts={[
            ["Chain", ledger === undefined && `${config.chainName} (${config.chainId})`],
            ["Ledger", ledger && `committee ${ledger.committee}`],
            [ledger === undefined ? "Contract" : "Domain", <Copyable key="contract" text={config.contract} name={ledger === undefined ? "the contract's address" : "the domain's address"} />],
            [eventsLabel(config), status?.lastTransactionIndex.toString()],
            ["Epoch", status?.epoch.toString()],
          ]}
        />
      </Card>
      <LatestTransfers />
      <Assets />
      <Authorities />
    </Page>
  );
}

/** Each authority's own status. */
function Authorities(): JSX.Element {
  const { config } = useNetwork();
  const labelOf = useAuthorityLabel();
  const statuses = useStatuses();
  return (
    <Card withBorder component="section" aria-label="Authorities">
      <Title order={2} size="h4">
        Authorities
      </Title>
      <Stack component="ul" gap="xs" p={0} m={0} style={{ listStyle: "none" }}>
        {config.authorities.map(({ http }, index) => {
          const { data, error } = statuses[index] ?? {};
          return (
            <Group component="li" key={http} justify="space-between">
              <div>
                <Text size="sm">{labelOf({ url: http })}</Text>
                <Text size="xs" c="dimmed">
                  {data !== undefined && `epoch ${data.epoch}${data.follower.block === undefined ? "" : `, follows ${config.primaryName} to ${config.ledger === undefined ? "block" : "group"} ${data.follower.block}`}`}
                </Text>
              </div>
              {data !== undefined && <StatusBadge status={data} />}
              {data === undefined && error && <Badge color="orange">does not answer</Badge>}
            </Group>
          );
        })}
      </Stack>
    </Card>
  );
}

function StatusBadge({ status: { votes, restored } }: { status: AuthorityStatus }): JSX.Element {
  if (restored === true) return <Badge color="orange">restored, votes for some</Badge>;
  return <Badge color={votes ? "teal" : "orange"}>{votes ? "votes" : "does not vote"}</Badge>;
}
