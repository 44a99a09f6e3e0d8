import { Card, List, Text, Title } from "@mantine/core";
import type { ContractEvent, ContractTransaction, Hex } from "@fastpay/sdk";
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import type { JSX } from "react";
import { Link } from "react-router";
import { getAddress } from "viem";

import { useNetwork } from "../../network/NetworkProvider";
import { AccountLink, Copyable } from "../../ui/AccountText";
import { Facts } from "../../ui/Facts";
import { Money } from "../../ui/Money";

const WAITING_INTERVAL_MS = 3_000;

/** The contract's events in a transaction; null while it is in no block. */
export function useContractTransaction(hash: Hex | undefined): UseQueryResult<ContractTransaction | null> {
  const { client, config } = useNetwork();
  return useQuery({
    queryKey: ["chain", "transaction", hash],
    queryFn: async () => (await client.contractTransaction(hash as Hex)) ?? null,
    enabled: hash !== undefined && config.ledger === undefined,
    refetchInterval: ({ state }) => (state.data === null ? WAITING_INTERVAL_MS : false),
  });
}

/** A transaction on Ethereum with links to its effects. */
export function TransactionCard({ hash, transaction }: { hash: Hex; transaction: ContractTransaction }): JSX.Element {
  const { config } = useNetwork();
  const { block, hasReverted, events } = transaction;
  return (
    <Card withBorder component="section" aria-label="Transaction">
      <Title order={2} size="h4">
        This is a transaction on Ethereum
      </Title>
      <Facts
        facts={[
          ["Hash", <Copyable key="hash" text={hash} name="the hash" />],
          ["Block", `${block} of ${config.chainName}`],
        ]}
      />
      {hasReverted && <Text size="sm">It was reverted and had no effect.</Text>}
      {!hasReverted && events.length === 0 && <Text size="sm">It moved nothing in or out of FastPay.</Text>}
      <List size="sm" spacing={4} mt="xs">
        {events.map((event, index) => (
          <List.Item key={index} style={{ overflowWrap: "anywhere" }}>
            <Event event={event} />
          </List.Item>
        ))}
      </List>
    </Card>
  );
}

const REDEMPTIONS = {
  paid: "It paid",
  queued: "It queued",
  released: "It released, unpaid, from the contract's queue",
};

function Event({ event }: { event: ContractEvent }): JSX.Element {
  switch (event.type) {
    case "deposit":
      return (
        <>
          It made <Link to={`/explore/deposit/${event.index}`}>deposit {event.index.toString()}</Link> of{" "}
          <Money units={event.amount} asset={event.asset} /> to <AccountLink account={event.recipient} />.
        </>
      );
    case "redemption":
      return (
        <>
          {REDEMPTIONS[event.state]} <Link to={`/explore/transfer/${event.digest}`}>redemption {event.sequence.toString()}</Link> of{" "}
          <AccountLink account={event.sender} />.
        </>
      );
    case "claim":
      return (
        <>
          It collected <Money units={event.amount} asset={event.asset} /> for {getAddress(event.owner)}, paid to {getAddress(event.to)}.
        </>
      );
  }
}
