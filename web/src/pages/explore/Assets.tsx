import { Badge, Card, Table, Text, Title } from "@mantine/core";
import { useQueries, useQueryClient } from "@tanstack/react-query";
import type { JSX } from "react";

import { useKnownAssets } from "../../data/assets";
import { useNamings } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { amountText, shorten } from "../../ui/words";
import { solvencyOf } from "./solvency";
import { askStatus, type AuthorityStatus } from "./statuses";

const INTERVAL_MS = 30_000;
/** The maximum age of an authority's answer that is used again, in milliseconds. */
const YOUNG_MS = 1_000;

/** For each known asset, the amounts that the contract or the ledger holds and that accounts hold. */
export function Assets(): JSX.Element {
  const { client, config } = useNetwork();
  const { holder } = config;
  const queries = useQueryClient();
  const { assets } = useKnownAssets();
  const namings = useNamings(assets);
  const ask = async (): Promise<AuthorityStatus[]> => {
    const asked = config.authorities.map((authority) => {
      const queryKey = ["status", authority.http];
      return queries.fetchQuery({ queryKey, queryFn: () => askStatus(authority), staleTime: YOUNG_MS, retry: false });
    });
    return (await Promise.allSettled(asked)).flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  };
  const solvencies = useQueries({
    queries: assets.map((asset) => ({
      queryKey: ["chain", "solvency", asset],
      queryFn: () => solvencyOf(client, asset, ask),
      refetchInterval: INTERVAL_MS,
    })),
  });
  return (
    <Card withBorder component="section" aria-label="Assets">
      <Title order={2} size="h4">
        Assets
      </Title>
      <Text size="sm" c="dimmed">
        Covered: {holder} holds what it owes, and keeps at least the sum of all accounts that f + 1 authorities report.
      </Text>
      {/* On a phone, the table scrolls sideways; the tab stop allows that by keyboard, too. */}
      <div role="group" aria-label={`What ${holder} holds and accounts hold`} tabIndex={0} style={{ overflowX: "auto" }}>
        <Table fz="sm" horizontalSpacing={4} miw={560}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Asset</Table.Th>
              <Table.Th ta="right">Held by {holder}</Table.Th>
              <Table.Th ta="right">Kept for accounts</Table.Th>
              <Table.Th ta="right">Accounts hold</Table.Th>
              <Table.Th ta="right">Unclaimed</Table.Th>
              <Table.Th ta="right">Covered</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {assets.map((asset, index) => {
              const info = namings[index]?.info;
              const solvency = solvencies[index]?.data;
              const text = (amount: bigint | undefined): string =>
                amount === undefined || info === undefined ? "…" : amountText(amount, info.decimals);
              return (
                <Table.Tr key={asset} data-asset={info?.symbol}>
                  <Table.Th scope="row">{info?.label ?? shorten(asset)}</Table.Th>
                  <Table.Td ta="right">{text(solvency?.held)}</Table.Td>
                  <Table.Td ta="right">{text(solvency?.totalBalance)}</Table.Td>
                  <Table.Td ta="right">{text(solvency?.accounts)}</Table.Td>
                  <Table.Td ta="right">{text(solvency?.totalClaims)}</Table.Td>
                  <Table.Td ta="right">
                    <Covered isCovered={solvency?.isCovered} />
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

function Covered({ isCovered }: { isCovered: boolean | undefined }): JSX.Element {
  if (isCovered === undefined) return <>…</>;
  return <Badge color={isCovered ? "teal" : "red"}>{isCovered ? "yes" : "no"}</Badge>;
}
