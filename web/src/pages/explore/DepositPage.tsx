import { Alert, Card, Text } from "@mantine/core";
import { ETHER, type DepositEntry } from "@fastpay/sdk";
import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import { useParams } from "react-router";
import { getAddress } from "viem";

import { useNaming } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { AccountLink } from "../../ui/AccountText";
import { ErrorAlert } from "../../ui/ErrorAlert";
import { Facts } from "../../ui/Facts";
import { Page } from "../../ui/Page";
import { TransactionLink } from "../../ui/TransactionLink";
import { money } from "../../ui/words";
import { SearchBox } from "./SearchBox";

export default function DepositPage(): JSX.Element {
  const { index: text = "" } = useParams();
  const { client } = useNetwork();
  const index = /^[0-9]{1,15}$/.test(text) ? BigInt(text) : undefined;
  const query = useQuery({
    queryKey: ["deposit", text],
    // A query's answer must not be undefined: null means that too few authorities report the deposit.
    queryFn: async () => (await client.depositByIndex(index ?? 0n)) ?? null,
    enabled: index !== undefined,
    // The deposit may become final while the user waits.
    refetchInterval: ({ state }) => (state.data === null ? 3_000 : false),
  });
  return (
    <Page title={`Deposit ${text}`} width={720}>
      <SearchBox />
      {index === undefined && <Alert color="red">A deposit is named by its index among the deployment&apos;s events, a number from 1.</Alert>}
      {query.isLoading && <Text role="status">Asking the authorities …</Text>}
      <ErrorAlert error={query.error} />
      {query.data === null && (
        <Alert color="orange" role="alert" title="Not found">
          Too few authorities report this deposit. It does not exist, or is not final yet.
        </Alert>
      )}
      {query.data && <Deposit deposit={query.data} />}
    </Page>
  );
}

function Deposit({ deposit }: { deposit: DepositEntry }): JSX.Element {
  const { client, config } = useNetwork();
  const { info } = useNaming(deposit.asset);
  const hash = useQuery({
    queryKey: ["chain", "deposit-transaction", deposit.index.toString()],
    queryFn: async () => (await client.depositTransaction(deposit.index)) ?? null,
    enabled: config.ledger === undefined,
    staleTime: Infinity,
  }).data;
  return (
    <Card withBorder component="section" aria-label="Deposit">
      <Facts
        facts={[
          ["Amount", info === undefined ? deposit.amount.toString() : money(deposit.amount, info)],
          ["Credited to", <AccountLink key="account" account={deposit.recipient} short={false} />],
          ["Asset", deposit.asset === ETHER ? info?.symbol : getAddress(deposit.asset)],
          ["Transaction on Ethereum", hash && <TransactionLink key="hash" hash={hash} />],
          ["Reported by", `${deposit.authorities} authorities`],
        ]}
      />
    </Card>
  );
}
