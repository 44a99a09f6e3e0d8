import { Alert, Text } from "@mantine/core";
import { isFastPayError, parseAccount, provenBy, provenByArchive, type CertificateEvidence, type Hex } from "@fastpay/sdk";
import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import { useParams, useSearchParams } from "react-router";

import { useNetwork } from "../../network/NetworkProvider";
import { ErrorAlert } from "../../ui/ErrorAlert";
import { Page } from "../../ui/Page";
import { AnswersCard } from "./AnswersCard";
import { SearchBox } from "./SearchBox";
import { TransactionCard, useContractTransaction } from "./TransactionCard";
import { TransferCard } from "./TransferCard";

type Name = Parameters<ReturnType<typeof useNetwork>["client"]["evidence"]>[0];

export default function TransferPage(): JSX.Element {
  const { digest, account, sequence } = useParams();
  const { client } = useNetwork();
  const name = readName(digest, account, sequence);
  const [search] = useSearchParams();
  const shown = search.get("output") ?? "";
  const output = /^[0-9]{1,3}$/.test(shown) ? Number(shown) : undefined;
  const query = useQuery({
    queryKey: ["evidence", digest, account, sequence],
    queryFn: () => client.evidence(name.of as Name),
    enabled: name.of !== undefined,
    // A proof does not age, but not all authorities have a new certificate yet.
    staleTime: 30_000,
    refetchInterval: ({ state }) => (isShownByAll(state.data) ? false : 3_000),
  });
  // A hash without a proof may be that of an Ethereum transaction.
  const isUnknown = digest !== undefined && query.data !== undefined && query.data.certificate === undefined;
  const transaction = useContractTransaction(isUnknown ? (digest as Hex) : undefined).data;
  return (
    <Page title="Transfer" width={720}>
      <div className="not-printed">
        <SearchBox />
      </div>
      <ErrorAlert error={name.error ?? query.error} />
      {query.isLoading && <Text role="status">Asking the authorities, and checking each vote here …</Text>}
      {transaction && query.data?.certificate === undefined ? (
        <TransactionCard hash={digest as Hex} transaction={transaction} />
      ) : (
        query.data && <Evidence evidence={query.data} output={output} />
      )}
    </Page>
  );
}

function isShownByAll(evidence: CertificateEvidence | undefined): boolean {
  if (evidence?.archived !== undefined) return true;
  return evidence !== undefined && evidence.answers.every(({ answer }) => answer?.report !== undefined);
}

function readName(digest?: string, account?: string, sequence?: string): { of?: Name; error?: unknown } {
  if (digest !== undefined) {
    return /^0x[0-9a-f]{64}$/.test(digest) ? { of: digest as Hex } : { error: new Error("a digest is 0x and 64 digits") };
  }
  try {
    if (!/^[0-9]{1,20}$/.test(sequence ?? "")) return { error: new Error("an order's number is a whole number") };
    return { of: { account: parseAccount(account ?? ""), sequence: BigInt(sequence ?? "0") } };
  } catch (error) {
    if (isFastPayError(error)) return { error };
    throw error;
  }
}

function Evidence({ evidence, output }: { evidence: CertificateEvidence; output: number | undefined }): JSX.Element {
  const { certificate, archived, answers } = evidence;
  const proven = certificate === undefined ? archived && provenByArchive(archived) : provenBy(certificate);
  const { config } = useNetwork();
  const isLater = answers.some(({ answer }) => answer !== undefined && answer.report === undefined);
  return (
    <>
      {proven !== undefined ? (
        <TransferCard proven={proven} output={output} />
      ) : archived !== undefined ? (
        <Alert color="gray" title="Void number">
          Nothing was paid under this number. Checkpoint {archived.checkpoint.toString()} of the committee proves it.
        </Alert>
      ) : (
        <Alert color="orange" role="alert" title="No valid certificate">
          {isLater
            ? `The certificate belongs to an epoch that ${config.ledger === undefined ? "the Ethereum node has not finalized" : "the ledger has not shown"} yet. Try again later.`
            : "No authority has one. The transfer does not exist, is not certified yet, or is pruned: then open it from the account's history."}
        </Alert>
      )}
      <div className="not-printed">
        <AnswersCard answers={answers} />
      </div>
    </>
  );
}
