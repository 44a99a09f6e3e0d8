import { Alert, Button, Card, Code, Stack, Text } from "@mantine/core";
import { ETHER, isFastPayError, type Address } from "@fastpay/sdk";
import { useState, type FormEvent, type JSX } from "react";

import type { Owner } from "../account/OwnerProvider";
import { ActivityCard } from "../activity/ActivityCard";
import type { ActivityPlan, ActivityProgress } from "../activity/activities";
import { useActivities, useActivityActions } from "../activity/ActivityProvider";
import { useHoldings } from "../data/holdings";
import { usePausedUntil } from "../data/queries";
import { ConnectEthereum } from "../ethereum/WalletList";
import type { ConnectedWallet } from "../ethereum/WalletProvider";
import { useNetwork } from "../network/NetworkProvider";
import { AmountInput, availableText, readAmount } from "../ui/AmountInput";
import { AssetSelect } from "../ui/AssetSelect";
import { ErrorAlert } from "../ui/ErrorAlert";
import { PausedNotice, WithOwner } from "../ui/Notices";
import { Page } from "../ui/Page";
import { money, shortAccount, shorten } from "../ui/words";
import { IconArrowDownToArc, IconWallet } from "../ui/icons";
import { depositFacts, DepositReview, type Reviewed } from "./deposit/DepositReview";
import { LedgerDepositPage } from "./deposit/LedgerDepositPage";

/** The amount that "Max" leaves on the chain for gas: 0.01 ETH. */
const GAS_RESERVE_WEI = 10n ** 16n;

export default function DepositPage(): JSX.Element {
  const { ledger } = useNetwork().config;
  if (ledger !== undefined) return <LedgerDepositPage committee={ledger.committee} />;
  return (
    <Page title="Deposit" lead="From Ethereum into your FastPay account.">
      <PausedNotice />
      <WithOwner>{(owner) => <Deposit key={owner.account} owner={owner} />}</WithOwner>
    </Page>
  );
}

function Deposit({ owner }: { owner: Owner }): JSX.Element {
  const activities = useActivities(owner.account).filter(({ kind }) => kind === "deposit");
  return (
    <>
      {activities.map((activity) => (
        <ActivityCard key={activity.id} activity={activity} />
      ))}
      {owner.ethereum === undefined ? (
        <NoWallet />
      ) : (
        <DepositForm key={owner.ethereum.address} owner={owner} wallet={owner.ethereum} />
      )}
    </>
  );
}

function NoWallet(): JSX.Element {
  return (
    <Alert color="indigo" icon={<IconWallet aria-hidden />} title="A deposit is a transaction on Ethereum">
      <Text size="sm" mb="sm">
        Connect an Ethereum wallet to deposit from; the deposit is credited to your key. Or ask somebody to pay you: the page Receive has the code and the link.
      </Text>
      <ConnectEthereum>Connect an Ethereum wallet</ConnectEthereum>
    </Alert>
  );
}

interface FormProps {
  readonly owner: Owner;
  readonly wallet: ConnectedWallet;
}

function DepositForm({ owner: { account, isKey }, wallet }: FormProps): JSX.Element {
  const { address, walletClient, isOnChain } = wallet;
  const { client, config } = useNetwork();
  const { start } = useActivityActions();
  const { list, chainError } = useHoldings(account, address);
  const isPaused = usePausedUntil() !== undefined;
  const [typed, setTyped] = useState<{ readonly asset: Address; readonly text: string }>({ asset: ETHER, text: "" });
  const { asset, text } = typed;
  const [reviewed, setReviewed] = useState<Reviewed>();
  const holding = list.find((one) => one.asset === asset);
  const info = holding?.naming.info;
  const amount = readAmount(text, info, holding?.onChain);
  // The node refuses a deposit above the balance at best; at worst, the transaction is sent and fails.
  const onChain = holding?.onChain;
  const canDeposit = amount.units !== undefined && onChain !== undefined && isOnChain && !isPaused && info !== undefined;

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (canDeposit) setReviewed({ asset, units: amount.units });
  };
  const deposit = ({ asset, units }: Reviewed, facts: ActivityPlan["facts"] & object): void => {
    if (info === undefined) return;
    setReviewed(undefined);
    start({
      kind: "deposit",
      account,
      title: `Deposit ${money(units, info)}`,
      work: async ({ report, signal }) => {
        const onProgress = (step: ActivityProgress): void => {
          // The form keeps a deposit until it is sent, so that the user can retry or change it.
          if (step.type === "submitted") setTyped((before) => (before === typed ? { asset, text: "" } : before));
          report(step);
        };
        try {
          return await client.deposit(walletClient, { recipient: account, asset, amount: units }, { onProgress, signal });
        } catch (error) {
          // A reverted deposit returns to the form, unless the user has typed something else since.
          if (isFastPayError(error, "reverted")) setTyped((before) => (before.text === "" && before.asset === asset ? typed : before));
          throw error;
        }
      },
      facts,
    });
  };
  if (reviewed !== undefined && info !== undefined) {
    const hint = depositHint(asset, info.hasPermit);
    const facts = depositFacts({ deposit: reviewed, account, isKey, from: address, balance: onChain, info, hint, config });
    return (
      <DepositReview
        facts={facts}
        text={money(reviewed.units, info)}
        canDeposit={isOnChain && !isPaused}
        onDeposit={() => deposit(reviewed, facts)}
        onBack={() => setReviewed(undefined)}
      />
    );
  }
  return (
    <Card withBorder component="form" onSubmit={submit} aria-label="Deposit">
      <Stack>
        {isKey && (
          <Text size="sm">
            From <Code>{shorten(address)}</Code> to your key&apos;s account <Code>{shortAccount(account)}</Code>.
          </Text>
        )}
        <ErrorAlert error={chainError} title="Your balance on Ethereum cannot be read" />
        <AssetSelect assets={list.map((one) => one.asset)} value={asset} onChange={(next) => setTyped({ asset: next, text })} />
        <AmountInput
          text={text}
          onChange={(next) => setTyped({ asset, text: next })}
          info={info}
          fault={amount.fault}
          most={mostOf(asset, onChain)}
          description={availableText(onChain, info, `on ${config.chainName}`, chainError)}
        />
        <Text size="sm" c="dimmed">
          It can be spent once it is final on Ethereum and a quorum of authorities has
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

/** The wallet's dialogs for a deposit. */
function depositHint(asset: Address, hasPermit: boolean | undefined): string {
  if (asset === ETHER) return "one transaction";
  return hasPermit === true ? "a permit, then one transaction" : "two transactions: an approval, then the deposit";
}
