import { Button, Group, Stack, Table, Text, Title } from "@mantine/core";
import { decodeMemo, encodeOutputProof, NO_MEMO, proveOutput, type Output, type VerifiedCertificate } from "@fastpay/sdk";
import { useState, type JSX } from "react";

import { AccountLink } from "../../ui/AccountText";
import { Facts } from "../../ui/Facts";
import { Pages } from "../../ui/Pages";
import { IconDownload } from "../../ui/icons";
import { saveFile } from "../../ui/save";

/** The number of rows on a page of the table. */
const ROWS_MAX = 50;

interface Props {
  /** Undefined if it is pruned. */
  readonly certificate: VerifiedCertificate | undefined;
  readonly outputs: readonly Output[];
  /** The output that the page's URL names, from 0. */
  readonly shown: number | undefined;
  /** Formats an amount. */
  readonly text: (units: bigint) => string;
}

/** The recipients of a payout. */
export function Outputs({ certificate, outputs, shown, text }: Props): JSX.Element {
  const wanted = shown === undefined ? undefined : outputs[shown];
  const [page, setPage] = useState(wanted === undefined ? 1 : Math.floor((shown ?? 0) / ROWS_MAX) + 1);
  const first = (page - 1) * ROWS_MAX;
  const pages = Math.ceil(outputs.length / ROWS_MAX);
  return (
    <Stack gap="xs">
      {wanted !== undefined && shown !== undefined && (
        <Stack component="section" gap="xs" aria-label={`Output ${shown}`}>
          <Title order={3} size="h5">
            Output {shown}: {text(wanted.amount)}
          </Title>
          <Facts
            facts={[
              ["To", <AccountLink key="to" account={wanted.recipient} short={false} />],
              ["Memo", wanted.memo === NO_MEMO ? undefined : decodeMemo(wanted.memo)],
            ]}
          />
          {certificate !== undefined && <SaveProof certificate={certificate} output={shown} />}
        </Stack>
      )}
      <Title order={3} size="h5">
        All outputs
      </Title>
      <Table.ScrollContainer minWidth={320}>
        <Table fz="sm" horizontalSpacing={4} aria-label="Outputs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Output</Table.Th>
              <Table.Th>To</Table.Th>
              <Table.Th ta="right">Amount</Table.Th>
              <Table.Th>Memo</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {outputs.slice(first, first + ROWS_MAX).map(({ recipient, amount, memo }, i) => (
              <Table.Tr key={first + i} {...(first + i === shown ? { "aria-current": "true" as const } : {})}>
                <Table.Th scope="row" fw={first + i === shown ? 700 : 400}>
                  {first + i}
                </Table.Th>
                <Table.Td>
                  <AccountLink account={recipient} />
                </Table.Td>
                <Table.Td ta="right">{text(amount)}</Table.Td>
                <Table.Td style={{ overflowWrap: "anywhere" }}>{memo === NO_MEMO ? "" : decodeMemo(memo)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      <Pages total={pages} value={page} onChange={setPage} />
    </Stack>
  );
}

/** Saves the proof of one output, without the contents of the others. */
function SaveProof({ certificate, output }: { certificate: VerifiedCertificate; output: number }): JSX.Element {
  const save = (): void => {
    const text = encodeOutputProof(proveOutput(certificate, output));
    saveFile(`fastpay-${certificate.digest.slice(2, 10)}-${output}.json`, text, "application/json");
  };
  return (
    <Group justify="space-between">
      <Text size="sm" c="dimmed">
        The proof reveals this output and the number of outputs.
      </Text>
      <Button variant="default" size="xs" leftSection={<IconDownload size={16} aria-hidden />} onClick={save}>
        Save the proof
      </Button>
    </Group>
  );
}
