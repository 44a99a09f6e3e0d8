import { Alert, Button, Card, Radio, Stack, Text, TextInput } from "@mantine/core";
import { ETHER, formatAmount, type Address } from "@fastpay/sdk";
import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent, type JSX } from "react";

import type { Owner } from "../../account/OwnerProvider";
import { isOrdering, payoutTitle, useActivities, useActivityActions } from "../../activity/ActivityProvider";
import { useHoldings } from "../../data/holdings";
import { useAssetStatus, useContractStatus, usePausedUntil, type ShownAsset } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { AmountInput, availableText, readAmount } from "../../ui/AmountInput";
import { AssetSelect } from "../../ui/AssetSelect";
import { ErrorAlert, NamingAlert } from "../../ui/ErrorAlert";
import { duration, money, shorten } from "../../ui/words";
import { useRecipient } from "./useRecipient";
import { IconArrowBarToUp } from "../../ui/icons";

type Way = "relayer" | "alone";

/** Orders a redemption, and says what it costs and how long it takes. */
export function RedeemForm({ owner }: { owner: Owner }): JSX.Element {
  const { account, signer, canSign, ethereum } = owner;
  const { client } = useNetwork();
  const { start } = useActivityActions();
  const { list, view, error } = useHoldings(account, ethereum?.address);
  const isBusy = isOrdering(useActivities(account), account);
  // As the contract would take it later only, it is not ordered now: the money stays free to be paid with.
  const isPaused = usePausedUntil() !== undefined;
  const [typed, setTyped] = useState({ asset: ETHER as Address, amount: "", to: undefined as string | undefined, fee: "" });
  const [way, setWay] = useState<Way>("relayer");
  const change = (part: Partial<typeof typed>): void => setTyped((before) => ({ ...before, ...part }));

  const { asset } = typed;
  const to = typed.to ?? ethereum?.address ?? "";
  const holding = list.find((one) => one.asset === asset);
  const { info, error: namingError } = holding?.naming ?? {};
  const amount = readAmount(typed.amount, info, holding?.balance);
  const fee = way === "alone" || typed.fee === "" ? { units: 0n, fault: undefined } : readFee(typed.fee, info, amount.units);
  const recipient = useRecipient(to);
  const canRedeem =
    amount.units !== undefined &&
    fee.units !== undefined &&
    recipient.address !== undefined &&
    info !== undefined &&
    view !== undefined &&
    canSign &&
    (way === "relayer" || ethereum?.isOnChain === true) &&
    !isBusy &&
    !isPaused;

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!canRedeem || amount.units === undefined || fee.units === undefined || recipient.address === undefined) return;
    const intent = { recipient: recipient.address, asset, amount: amount.units, fee: fee.units };
    start({
      kind: "redeem",
      account,
      title: `Redeem ${money(intent.amount, info)} to ${shorten(to)}`,
      work: async ({ report, signal }) => {
        const { certificate } = await client.redeem(signer, intent, { onProgress: report, signal });
        // The proof is there: from here on it is a transaction like any other, with steps of its own.
        if (way === "alone" && ethereum !== undefined) {
          start({
            kind: "payout",
            account,
            title: payoutTitle(certificate.order.transfer.sequence, false),
            work: (control) =>
              client.redeemOnChain(ethereum.walletClient, certificate, { onProgress: control.report, signal: control.signal }),
          });
        }
      },
    });
    change({ amount: "" });
  };
  return (
    <Card withBorder component="form" onSubmit={submit} aria-label="Redemption">
      <Stack>
        <ErrorAlert error={error} title="Your balance is not known now" />
        <NamingAlert error={namingError} />
        <AssetSelect assets={list.map((one) => one.asset)} value={asset} onChange={(next) => change({ asset: next, fee: "" })} />
        <AmountInput
          text={typed.amount}
          onChange={(text) => change({ amount: text })}
          info={info}
          fault={amount.fault}
          most={holding?.balance}
          description={availableText(holding?.balance, info, "in FastPay", error ?? namingError)}
        />
        <TextInput
          label="To (an Ethereum address)"
          value={to}
          onChange={(event) => change({ to: event.currentTarget.value.trim() })}
          error={recipient.fault}
          autoComplete="off"
          spellCheck={false}
        />
        <WayChoice way={way} onChange={setWay} canSend={ethereum !== undefined} />
        {way === "relayer" && (
          <FeeInput asset={asset} info={info} text={typed.fee} fault={fee.fault} onChange={(text) => change({ fee: text })} />
        )}
        <Expectation asset={asset} info={info} units={amount.units} fee={fee.units} way={way} />
        <Button type="submit" size="md" disabled={!canRedeem} leftSection={<IconArrowBarToUp size={18} aria-hidden />}>
          {amount.units !== undefined && info !== undefined ? `Redeem ${money(amount.units, info)}` : "Redeem"}
        </Button>
      </Stack>
    </Card>
  );
}

function readFee(text: string, info: ShownAsset | undefined, amount: bigint | undefined): ReturnType<typeof readAmount> {
  if (/^0*[.,]?0*$/.test(text)) return { units: 0n, fault: undefined };
  const fee = readAmount(text, info);
  const isAbove = fee.units !== undefined && amount !== undefined && fee.units > amount;
  return isAbove ? { units: undefined, fault: "The fee is more than the whole amount." } : fee;
}

interface WayProps {
  readonly way: Way;
  readonly onChange: (way: Way) => void;
  readonly canSend: boolean;
}

function WayChoice({ way, onChange, canSend }: WayProps): JSX.Element {
  return (
    <Radio.Group label="Who brings it to Ethereum" value={way} onChange={(value) => onChange(value as Way)}>
      <Stack gap="xs" mt="xs">
        <Radio value="relayer" label="A relayer, for the fee below" description="You sign once and pay no gas" />
        <Radio
          value="alone"
          label="I do, by a transaction of my own"
          description={canSend ? "No fee; you pay the gas. Needs no relayer" : "Connect an Ethereum wallet for that"}
          disabled={!canSend}
        />
      </Stack>
    </Radio.Group>
  );
}

interface FeeProps {
  readonly asset: Address;
  readonly info: ShownAsset | undefined;
  readonly text: string;
  readonly fault: string | undefined;
  readonly onChange: (text: string) => void;
}

function FeeInput({ asset, info, text, fault, onChange }: FeeProps): JSX.Element {
  const { client } = useNetwork();
  const cost = useQuery({ queryKey: ["chain", "cost"], queryFn: () => client.redemptionCost(), refetchInterval: 12_000 });
  const wei = cost.data?.wei;
  const hint = wei === undefined ? "" : `Bringing it there costs about ${formatAmount(roundUp(wei), 18)} ETH of gas now. `;
  return (
    <AmountInput
      label="Fee for the relayer"
      text={text}
      onChange={onChange}
      info={info}
      fault={fault}
      required={false}
      most={asset === ETHER && wei !== undefined ? roundUp(wei) : undefined}
      fill="Suggest"
      description={`${hint}Relayers may leave a fee below that lying; it is taken out of the amount.`}
    />
  );
}

/** Two digits are enough for a suggestion. */
function roundUp(wei: bigint): bigint {
  const unit = 10n ** BigInt(Math.max(0, wei.toString().length - 2));
  return ((wei + unit - 1n) / unit) * unit;
}

interface ExpectationProps {
  readonly asset: Address;
  readonly info: ShownAsset | undefined;
  readonly units: bigint | undefined;
  readonly fee: bigint | undefined;
  readonly way: Way;
}

function Expectation({ asset, info, units, fee, way }: ExpectationProps): JSX.Element | null {
  const contract = useContractStatus().data;
  const available = useAssetStatus(asset).data?.outflowAvailable;
  if (units === undefined || fee === undefined || info === undefined || contract === undefined) return null;
  const arrives = <Text size="sm">{money(units - fee, info)} will arrive.</Text>;
  if (available !== undefined && units > available) {
    return (
      <Alert color="orange" title={`This will wait ${duration(contract.outflowDelay * 1_000)} on Ethereum`}>
        <Text size="sm">
          {money(available, info)} can leave at once now; more waits in the contract&apos;s queue, and can then be paid out by
          anyone. The guardian can postpone that by at most 30 days.
        </Text>
        {arrives}
      </Alert>
    );
  }
  return (
    <Alert color="indigo" title={way === "relayer" ? "Usually within a minute or two" : "With your transaction's block"}>
      {arrives}
    </Alert>
  );
}
