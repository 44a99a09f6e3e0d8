import { Alert, Card, Group, Stack, Table, Text, Title } from "@mantine/core";
import { formatAccount, isFastPayError, parseAccount, type AccountId } from "@fastpay/sdk";
import type { JSX } from "react";
import { useParams } from "react-router";
import { useAuthorityLabel } from "../../network/authorities";

import { useHoldings } from "../../data/holdings";
import { Copyable } from "../../ui/AccountText";
import { ErrorAlert } from "../../ui/ErrorAlert";
import { Facts } from "../../ui/Facts";
import { Page } from "../../ui/Page";
import { money, shorten } from "../../ui/words";
import { HistoryList } from "../history/HistoryList";
import { TransferText } from "../../ui/TransferText";
import { ContactName } from "./ContactName";
import { SearchBox } from "./SearchBox";

export default function AccountPage(): JSX.Element {
  const { account: text = "" } = useParams();
  const read = readAccount(text);
  return (
    <Page title="Account" width={720}>
      <SearchBox />
      {read.account === undefined ? <ErrorAlert error={read.error} /> : <Account key={text} account={read.account} />}
    </Page>
  );
}

function readAccount(text: string): { account?: AccountId; error?: unknown } {
  try {
    return { account: parseAccount(text) };
  } catch (error) {
    if (isFastPayError(error)) return { error };
    throw error;
  }
}

function Account({ account }: { account: AccountId }): JSX.Element {
  const { list, view, error } = useHoldings(account, undefined);
  const held = list.filter(({ balance }) => balance !== undefined && balance !== 0n);
  return (
    <>
      <Card withBorder component="section" aria-label="Account">
        <Stack>
          <Copyable text={formatAccount(account)} name="the account" />
          <ContactName account={account} />
          <ErrorAlert error={error} />
          {view === undefined && !error && <Text role="status">Asking the authorities …</Text>}
          {view !== undefined && (
            <Facts
              facts={[
                ["Orders so far", view.nextSequence.toString()],
                ["Pending order", view.pending && <TransferText transfer={view.pending.transfer} />],
              ]}
            />
          )}
          {view !== undefined && held.length === 0 && <Text size="sm">No balances.</Text>}
          {held.map(({ asset, naming: { info }, balance = 0n }) => {
            const agreed = view?.balances.find((one) => one.asset === asset);
            return (
              <Group key={asset} justify="space-between" data-testid="holding">
                <Text fw={600}>{info === undefined ? `${balance} of ${shorten(asset)}` : money(balance, info)}</Text>
                <Text size="xs" c="dimmed">
                  {agreed && `${agreed.agreeing} of ${agreed.answered} authorities that answered agree`}
                </Text>
              </Group>
            );
          })}
        </Stack>
      </Card>
      {view !== undefined && <Authorities view={view} />}
      <HistoryList account={account} limit={20} heading="History" hasMore />
    </>
  );
}

function Authorities({ view }: { view: NonNullable<ReturnType<typeof useHoldings>["view"]> }): JSX.Element {
  const labelOf = useAuthorityLabel();
  const isDivided = new Set(view.states.flatMap(({ answer }) => (answer ? [answer.nextSequence] : []))).size > 1;
  return (
    <Card withBorder component="section" aria-label="What each authority reports">
      <Title order={2} size="h4">
        What each authority reports
      </Title>
      <Table fz="sm" horizontalSpacing={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Authority</Table.Th>
            <Table.Th ta="right">Orders</Table.Th>
            <Table.Th ta="right">Received</Table.Th>
            <Table.Th ta="right">Deposits</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {view.states.map(({ authority, answer, error }) => (
            <Table.Tr key={authority.url}>
              <Table.Th scope="row" fw={400} style={{ overflowWrap: "anywhere" }}>
                {labelOf(authority)}
              </Table.Th>
              {answer === undefined ? (
                <Table.Td colSpan={3}>{error?.message ?? "no answer yet"}</Table.Td>
              ) : (
                <>
                  <Table.Td ta="right">{answer.nextSequence.toString()}</Table.Td>
                  <Table.Td ta="right">{answer.received.toString()}</Table.Td>
                  <Table.Td ta="right">{answer.deposits.toString()}</Table.Td>
                </>
              )}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {isDivided && <Alert color="orange">Some authorities lag behind. The next payment brings them up to date.</Alert>}
    </Card>
  );
}
