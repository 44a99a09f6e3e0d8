import { Badge, Card, Group, Stack, Table, Text, Title } from "@mantine/core";
import { AuthorityClient } from "@fastpay/sdk";
import { useQueries } from "@tanstack/react-query";
import type { JSX } from "react";

import { Facts } from "../../ui/Facts";
import { useKnownAssets } from "../../data/assets";
import { useChainBalances, useContractStatus, useNamings } from "../../data/queries";
import { useAuthorityLabel } from "../../network/authorities";
import { useNetwork } from "../../network/NetworkProvider";
import { Copyable } from "../../ui/AccountText";
import { Page } from "../../ui/Page";
import { amountText, shorten } from "../../ui/words";
import { LatestTransfers } from "./LatestTransfers";
import { SearchBox } from "./SearchBox";

const STATUS_TIMEOUT_MS = 5_000;
const STATUS_INTERVAL_MS = 30_000;

export default function ExplorePage(): JSX.Element {
  const { config } = useNetwork();
  const status = useContractStatus().data;
  return (
    <Page
      title="Explore"
      lead="For anyone, without a wallet. This page checks every vote against the committee that the contract names."
      width={720}
    >
      <SearchBox />
      <Card withBorder component="section" aria-label="This deployment">
        <Facts
          facts={[
            ["Chain", `${config.chainName} (${config.chainId})`],
            ["Contract", <Copyable key="contract" text={config.contract} name="the contract's address" />],
            ["Events of the contract so far", status?.lastTransactionIndex.toString()],
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

/** What the contract holds of each asset that this page knows, and what it owes. */
function Assets(): JSX.Element {
  const { client, config } = useNetwork();
  const { assets } = useKnownAssets();
  const namings = useNamings(assets);
  const held = useChainBalances(config.contract, assets);
  const statuses = useQueries({
    queries: assets.map((asset) => ({ queryKey: ["chain", "asset", asset], queryFn: () => client.assetStatus(asset) })),
  });
  return (
    <Card withBorder component="section" aria-label="Assets">
      <Title order={2} size="h4">
        Assets
      </Title>
      {/* On a phone it scrolls sideways, by the keyboard too. */}
      <div role="group" aria-label="What the contract holds and owes" tabIndex={0} style={{ overflowX: "auto" }}>
        <Table fz="sm" horizontalSpacing={4} miw={480}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Asset</Table.Th>
              <Table.Th ta="right">Held by the contract</Table.Th>
              <Table.Th ta="right">In FastPay</Table.Th>
              <Table.Th ta="right">To be collected</Table.Th>
              <Table.Th ta="right">Covered</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {assets.map((asset, index) => {
              const info = namings[index]?.info;
              const status = statuses[index]?.data;
              const units = held[index]?.data;
              const text = (amount: bigint | undefined): string =>
                amount === undefined || info === undefined ? "…" : amountText(amount, info.decimals);
              return (
                <Table.Tr key={asset} data-asset={info?.symbol}>
                  <Table.Th scope="row">{info?.label ?? shorten(asset)}</Table.Th>
                  <Table.Td ta="right">{text(units)}</Table.Td>
                  <Table.Td ta="right">{text(status?.totalBalance)}</Table.Td>
                  <Table.Td ta="right">{text(status?.totalClaims)}</Table.Td>
                  <Table.Td ta="right">
                    {status === undefined || units === undefined ? "…" : <Covered isCovered={units >= status.totalBalance + status.totalClaims} />}
                  </Table.Td>
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      </div>
    </Card>
  );
}

function Covered({ isCovered }: { isCovered: boolean }): JSX.Element {
  return <Badge color={isCovered ? "teal" : "red"}>{isCovered ? "yes" : "no"}</Badge>;
}

/** What each authority reports of itself. */
function Authorities(): JSX.Element {
  const { config } = useNetwork();
  const labelOf = useAuthorityLabel();
  const statuses = useQueries({
    queries: config.authorities.map(({ http, name }) => ({
      queryKey: ["status", http],
      queryFn: () => new AuthorityClient(http, name, STATUS_TIMEOUT_MS).status(),
      refetchInterval: STATUS_INTERVAL_MS,
      retry: false,
    })),
  });
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
                  {data !== undefined && `epoch ${data.epoch}${data.follower.block === undefined ? "" : `, follows Ethereum to block ${data.follower.block}`}`}
                </Text>
              </div>
              {data !== undefined && <Badge color={data.votes ? "teal" : "orange"}>{data.votes ? "votes" : "does not vote"}</Badge>}
              {data === undefined && error && <Badge color="orange">does not answer</Badge>}
            </Group>
          );
        })}
      </Stack>
    </Card>
  );
}
