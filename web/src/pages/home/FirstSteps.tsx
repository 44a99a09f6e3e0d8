import { Button, Card, Group, List, Text, Title } from "@mantine/core";
import type { Address } from "@fastpay/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useState, type JSX } from "react";
import { Link } from "react-router";

import type { Owner } from "../../account/OwnerProvider";
import { useHoldings } from "../../data/holdings";
import { useNetwork } from "../../network/NetworkProvider";
import { ErrorAlert } from "../../ui/ErrorAlert";

/** The chain id of a local test chain, which gives ETH on request. */
const LOCALNET = 31_337;
/** 10 ETH in wei. */
const GIFT = "0x8ac7230489e80000";

/** The first steps, shown for an account without any activity. */
export function FirstSteps({ owner }: { owner: Owner }): JSX.Element | null {
  const { account, ethereum } = owner;
  const { config } = useNetwork();
  const { view, list } = useHoldings(account, ethereum?.address);
  const isNew = view?.states.every(({ answer }) => answer === undefined || answer.received + answer.deposits + answer.nextSequence === 0n);
  if (isNew !== true) return null;
  if (config.ledger !== undefined) return <OnLedger />;
  const isPoor = ethereum !== undefined && list.every(({ onChain }) => onChain === 0n);
  return (
    <Card withBorder component="section" aria-label="First steps">
      <Title order={2} size="h4" mb="xs">
        First steps
      </Title>
      <List type="ordered" size="sm" spacing="xs">
        <List.Item>
          {ethereum === undefined
            ? `Connect an Ethereum wallet on the page Deposit, or ask somebody to deposit for you.`
            : isPoor
              ? `Your wallet is empty on ${config.chainName}: send some ETH to it.`
              : `Your wallet has money on ${config.chainName}.`}
        </List.Item>
        <List.Item>
          <Link to="/deposit">Deposit</Link> from Ethereum: it is credited when its block is final. Or show{" "}
          <Link to="/receive">your account</Link> to somebody who pays you.
        </List.Item>
        <List.Item>
          <Link to="/pay">Pay</Link> anyone, and <Link to="/redeem">redeem</Link> to Ethereum when you like.
        </List.Item>
      </List>
      {isPoor && config.chainId === LOCALNET && <Faucet address={ethereum.address} />}
    </Card>
  );
}

function OnLedger(): JSX.Element {
  return (
    <Card withBorder component="section" aria-label="First steps">
      <Title order={2} size="h4" mb="xs">
        First steps
      </Title>
      <List type="ordered" size="sm" spacing="xs">
        <List.Item>
          Show <Link to="/receive">your account</Link> to somebody who pays you, or to a bank that{" "}
          <Link to="/deposit">deposits</Link> into it from its reserve.
        </List.Item>
        <List.Item>
          <Link to="/pay">Pay</Link> anyone, and <Link to="/redeem">redeem</Link> to a reserve on the ledger when you like.
        </List.Item>
      </List>
    </Card>
  );
}

/** A button for test ETH on a localnet. */
function Faucet({ address }: { address: Address }): JSX.Element {
  const { config } = useNetwork();
  const queries = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const give = async (): Promise<void> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "anvil_setBalance", params: [address, GIFT] });
    const answer = await fetch(config.rpc[0] ?? "", { method: "POST", headers: { "content-type": "application/json" }, body });
    const { error: refusal } = (await answer.json()) as { error?: { message: string } };
    if (refusal !== undefined) throw new Error(refusal.message);
    await queries.invalidateQueries({ queryKey: ["chain"] });
  };
  const ask = (): void => {
    setBusy(true);
    setError(undefined);
    give()
      .catch(setError)
      .finally(() => setBusy(false));
  };
  return (
    <Group mt="sm">
      <Button size="xs" variant="default" onClick={ask} loading={isBusy}>
        Give me 10 ETH on this localnet
      </Button>
      <Text size="xs" c="dimmed">
        Test ETH on a chain on this machine.
      </Text>
      <ErrorAlert error={error} />
    </Group>
  );
}
