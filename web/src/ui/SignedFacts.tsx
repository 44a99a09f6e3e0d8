import { Stack, Table, Text } from "@mantine/core";
import type { Transfer } from "@fastpay/sdk";
import type { JSX, ReactNode } from "react";

import { useNaming } from "../data/queries";
import { Facts } from "./Facts";
import { orderFields, outputFields, type SignedField } from "./signed";

/** A field as readable text, and below it as a wallet shows it. */
export function SignedText({ field: { text, raw } }: { field: SignedField }): JSX.Element {
  return (
    <>
      {text}
      {raw !== undefined && raw !== text && (
        <Text size="xs" c="dimmed" ff="monospace">
          signed as {raw}
        </Text>
      )}
    </>
  );
}

/** The signed fields as a list of facts. */
export function signedFacts(fields: readonly SignedField[]): (readonly [string, ReactNode])[] {
  return fields.map((field) => [field.label, <SignedText key={field.label} field={field} />]);
}

/** An order as the wallet's dialog shows it. */
export function SignedOrder({ transfer }: { transfer: Transfer }): JSX.Element | null {
  const { info } = useNaming(transfer.asset);
  if (info === undefined) return null;
  return (
    <Stack gap="xs">
      {transfer.type === "payout" && (
        <div className="lines" role="region" tabIndex={0} aria-label="Outputs to sign">
          <Table fz="sm" horizontalSpacing={4}>
            <Table.Tbody>
              {transfer.outputs.map((output, index) => (
                <Table.Tr key={index}>
                  {outputFields(output, info).map((field) => (
                    <Table.Td key={field.label} style={{ overflowWrap: "anywhere", minWidth: 90 }}>
                      {field.label}: <SignedText field={field} />
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
      <Facts facts={signedFacts(orderFields(transfer, info))} />
    </Stack>
  );
}
