import { ActionIcon, Alert, Badge, Card, Group, Skeleton, Stack, Table, Text } from "@mantine/core";
import { formatAccount } from "@fastpay/sdk";
import type { JSX } from "react";

import type { Owner } from "../../account/OwnerProvider";
import { useKnownAssets } from "../../data/assets";
import { useHoldings, type Holding } from "../../data/holdings";
import { useNetwork } from "../../network/NetworkProvider";
import { Copyable } from "../../ui/AccountText";
import { ErrorAlert } from "../../ui/ErrorAlert";
import { amountAtAGlance, amountText, shorten } from "../../ui/words";
import { AddToken } from "./AddToken";
import { IconTrash } from "../../ui/icons";

/** The user's balances, in FastPay and on Ethereum. */
export function Balances({ owner }: { owner: Owner }): JSX.Element {
  const { account, ethereum } = owner;
  const { config } = useNetwork();
  const { list, error, chainError, view } = useHoldings(account, ethereum?.address);
  const hasChain = ethereum !== undefined && config.ledger === undefined;
  const isNegative = view?.balances.some(({ balance }) => balance < 0n);
  return (
    <Card withBorder component="section" aria-label="Balances">
      <Stack>
        <Group justify="space-between">
          <Text size="sm" c="dimmed">
            Your account
          </Text>
          <Copyable text={formatAccount(account)} name="your account" short />
        </Group>
        <ErrorAlert error={error} title="Your balance cannot be read" />
        <ErrorAlert error={chainError} title="Your balance on Ethereum cannot be read" />
        <Table verticalSpacing="sm" horizontalSpacing={4}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Asset</Table.Th>
              <Table.Th ta="right">In FastPay</Table.Th>
              {hasChain && <Table.Th ta="right">On {config.chainName}</Table.Th>}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {list.map((holding) => (
              <Row key={holding.asset} holding={holding} hasChain={hasChain} />
            ))}
          </Table.Tbody>
        </Table>
        {isNegative && (
          <Alert color="orange">
            Negative: you spent a payment that not all authorities have received yet. This resolves by itself.
          </Alert>
        )}
        <AddToken />
      </Stack>
    </Card>
  );
}

function Row({ holding, hasChain }: { holding: Holding; hasChain: boolean }): JSX.Element {
  const { asset, balance, onChain } = holding;
  const { info } = holding.naming;
  const { isAdded, remove } = useKnownAssets();
  return (
    <Table.Tr data-asset={info?.symbol}>
      <Table.Th scope="row" fw={500}>
        <Group gap={6}>
          {info?.symbol ?? shorten(asset)}
          {info?.isUnknown && (
            <Badge size="xs" color="orange" title={asset}>
              unknown {shorten(asset, 6, 4)}
            </Badge>
          )}
          {isAdded(asset) && (
            <ActionIcon size="xs" variant="subtle" color="gray" aria-label={`Remove ${info?.symbol ?? asset}`} onClick={() => remove(asset)}>
              <IconTrash size={14} aria-hidden />
            </ActionIcon>
          )}
        </Group>
      </Table.Th>
      <Table.Td ta="right" data-testid="in-fastpay">
        <Units units={balance} decimals={info?.decimals} strong />
      </Table.Td>
      {hasChain && (
        <Table.Td ta="right" data-testid="on-chain">
          <Units units={onChain} decimals={info?.decimals} />
        </Table.Td>
      )}
    </Table.Tr>
  );
}

interface UnitsProps {
  readonly units: bigint | undefined;
  readonly decimals: number | undefined;
  readonly strong?: boolean;
}

function Units({ units, decimals, strong = false }: UnitsProps): JSX.Element {
  if (units === undefined || decimals === undefined) {
    return <Skeleton height={18} width={72} ml="auto" role="status" aria-label="Loading" />;
  }
  return (
    <Text
      size={strong ? "lg" : "sm"}
      fw={strong ? 600 : 400}
      style={{ overflowWrap: "anywhere", fontVariantNumeric: "tabular-nums" }}
      title={amountText(units, decimals)}
    >
      {amountAtAGlance(units, decimals)}
    </Text>
  );
}
