import { Alert, Text } from "@mantine/core";
import type { Hex } from "@fastpay/sdk";
import type { JSX } from "react";
import { useParams } from "react-router";

import { useNetwork } from "../../network/NetworkProvider";
import { ErrorAlert } from "../../ui/ErrorAlert";
import { Page } from "../../ui/Page";
import { SearchBox } from "./SearchBox";
import { TransactionCard, useContractTransaction } from "./TransactionCard";

/** A transaction on Ethereum with its effects at the contract. */
export default function TransactionPage(): JSX.Element {
  const { hash = "" } = useParams();
  const { config } = useNetwork();
  const isHash = /^0x[0-9a-f]{64}$/.test(hash);
  const query = useContractTransaction(isHash ? (hash as Hex) : undefined);
  return (
    <Page title="Transaction on Ethereum" width={720}>
      <SearchBox />
      {config.ledger !== undefined && <Alert color="gray">A ledger has no Ethereum transactions.</Alert>}
      {!isHash && <ErrorAlert error={new Error("a transaction's hash is 0x and 64 digits")} />}
      {query.isLoading && <Text role="status">Asking the Ethereum node …</Text>}
      <ErrorAlert error={query.error} title="Ethereum does not answer" />
      {query.data === null && (
        <Alert color="orange" role="alert" title="Not in a block yet">
          This page's Ethereum node knows no block with it. It is pending, or it was replaced.
        </Alert>
      )}
      {query.data && <TransactionCard hash={hash as Hex} transaction={query.data} />}
    </Page>
  );
}
