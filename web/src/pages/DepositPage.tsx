import { Button, Card, Stack, Text } from "@mantine/core";
import { ETHER, type Address } from "@fastpay/sdk";
import { useState, type FormEvent, type JSX } from "react";

import { ActivityCard } from "../activity/ActivityCard";
import { useActivities, useActivityActions } from "../activity/ActivityProvider";
import { useHoldings } from "../data/holdings";
import { usePausedUntil } from "../data/queries";
import type { ConnectedWallet } from "../ethereum/WalletProvider";
import { useNetwork } from "../network/NetworkProvider";
import { AmountInput, readAmount } from "../ui/AmountInput";
import { AssetSelect } from "../ui/AssetSelect";
import { ErrorAlert } from "../ui/ErrorAlert";
import { PausedNotice, WithWallet } from "../ui/Notices";
import { Page } from "../ui/Page";
import { money } from "../ui/words";
import { IconArrowDownToArc } from "../ui/icons";

/** Left on the chain by "Max", so that ETH for gas remains: 0.01. */
const GAS_RESERVE_WEI = 10n ** 16n;

export function Component(): JSX.Element {
  return (
    <Page title="Deposit" lead="From Ethereum into your FastPay account, which the same key owns.">
      <PausedNotice />
      <WithWallet>{(wallet) => <Deposit key={wallet.account} wallet={wallet} />}</WithWallet>
    </Page>
  );
}

function Deposit({ wallet }: { wallet: ConnectedWallet }): JSX.Element {
  const activities = useActivities(wallet.account).filter(({ kind }) => kind === "deposit");
  return (
    <>
      {activities.map((activity) => (
        <ActivityCard key={activity.id} activity={activity} />
      ))}
      <DepositForm wallet={wallet} />
    </>
  );
}

function DepositForm({ wallet }: { wallet: ConnectedWallet }): JSX.Element {
  const { account, address, walletClient, isOnChain } = wallet;
  const { client, config } = useNetwork();
  const { start } = useActivityActions();
  const { list, chainError } = useHoldings(account, address);
  const isPaused = usePausedUntil() !== undefined;
  const [asset, setAsset] = useState<Address>(ETHER);
  const [text, setText] = useState("");
  const holding = list.find((one) => one.asset === asset);
  const info = holding?.info;
  const amount = readAmount(text, info, holding?.onChain);
  const canDeposit = amount.units !== undefined && isOnChain && !isPaused && info !== undefined;

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!canDeposit || amount.units === undefined) return;
    const units = amount.units;
    start({
      kind: "deposit",
      account,
      title: `Deposit ${money(units, info)}`,
      work: ({ report, signal }) => client.deposit(walletClient, { asset, amount: units }, { onProgress: report, signal }),
    });
    setText("");
  };
  return (
    <Card withBorder component="form" onSubmit={submit} aria-label="Deposit">
      <Stack>
        <ErrorAlert error={chainError} title="Your balance on Ethereum is not known now" />
        <AssetSelect assets={list.map((one) => one.asset)} value={asset} onChange={setAsset} />
        <AmountInput
          text={text}
          onChange={setText}
          info={info}
          fault={amount.fault}
          most={mostOf(asset, holding?.onChain)}
          description={
            info !== undefined && holding?.onChain !== undefined
              ? `You have ${money(holding.onChain, info)} on ${config.chainName}`
              : "Asking for your balance …"
          }
        />
        <Text size="sm" c="dimmed">
          {depositHint(asset, info?.hasPermit)} It can be spent once it is final on Ethereum and a quorum of authorities has
          credited it: about a quarter of an hour on the main network.
        </Text>
        <Button type="submit" size="md" disabled={!canDeposit} leftSection={<IconArrowDownToArc size={18} aria-hidden />}>
          {amount.units !== undefined && info !== undefined ? `Deposit ${money(amount.units, info)}` : "Deposit"}
        </Button>
      </Stack>
    </Card>
  );
}

function mostOf(asset: Address, onChain: bigint | undefined): bigint | undefined {
  if (asset !== ETHER || onChain === undefined) return onChain;
  return onChain > GAS_RESERVE_WEI ? onChain - GAS_RESERVE_WEI : 0n;
}

function depositHint(asset: Address, hasPermit: boolean | undefined): string {
  if (asset === ETHER) return "One transaction.";
  if (hasPermit === undefined) return "";
  return hasPermit ? "You sign a permit, then one transaction." : "Two transactions: this token wants an approval first.";
}
