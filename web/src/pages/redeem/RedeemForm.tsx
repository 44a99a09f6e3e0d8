import { Alert, Button, Card, Radio, Stack, Text, TextInput } from "@mantine/core";
import { decodeMemo, ETHER, formatAccount, formatAmount, type Address, type Hex, type RelayerFees } from "@fastpay/sdk";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type FormEvent, type JSX } from "react";
import { getAddress } from "viem";

import type { Owner } from "../../account/OwnerProvider";
import { isOrdering, payoutTitle, useActivities, useActivityActions } from "../../activity/ActivityProvider";
import { useHoldings } from "../../data/holdings";
import { useAssetStatus, useContractStatus, usePausedUntil, useRelayerFees, type ShownAsset } from "../../data/queries";
import { useNetwork } from "../../network/NetworkProvider";
import { AmountInput, availableText, readAmount } from "../../ui/AmountInput";
import { AssetSelect } from "../../ui/AssetSelect";
import { ErrorAlert, NamingAlert } from "../../ui/ErrorAlert";
import { count, duration, money, shortAddress } from "../../ui/words";
import { RedeemReview, type Carrier, type ReviewedRedemption } from "./RedeemReview";
import { useRecipient } from "./useRecipient";
import type { RequestedPayout } from "./useRequestedPayout";
import { IconArrowBarToUp } from "../../ui/icons";

interface FormProps {
  readonly owner: Owner;
  /** The redemption that a merchant's service prepared. */
  readonly requested: RequestedPayout | undefined;
  /** Called when the form has taken it over. */
  readonly onTaken: () => void;
}

/** The form for a redemption, with its cost and duration. */
export function RedeemForm({ owner, requested, onTaken }: FormProps): JSX.Element {
  const { account, signer, canSign, ethereum } = owner;
  const { client, config } = useNetwork();
  const { start } = useActivityActions();
  const { list, view, error } = useHoldings(account, ethereum?.address);
  const isBusy = isOrdering(useActivities(account), account);
  // During a pause no redemption is ordered: the contract would pay it later only, and the money stays free for
  // payments.
  const isPaused = usePausedUntil() !== undefined;
  const [typed, setTyped] = useState({ asset: ETHER as Address, amount: "", to: undefined as string | undefined, fee: undefined as string | undefined, memo: undefined as Hex | undefined });
  const [way, setWay] = useState<Carrier>("relayer");
  const [reviewed, setReviewed] = useState<ReviewedRedemption>();
  // With another amount or address, it is no longer the prepared redemption, so drop its memo.
  const change = (part: Partial<typeof typed>): void => setTyped((before) => ({ ...before, memo: undefined, ...part }));

  const { asset } = typed;
  const fees = useRelayerFees(asset);
  const to = typed.to ?? ethereum?.address ?? "";
  const holding = list.find((one) => one.asset === asset);
  const { info, error: namingError } = holding?.naming ?? {};
  const amount = readAmount(typed.amount, info, holding?.balance);
  const isOwn = requested?.from === account;
  useEffect(() => {
    if (requested === undefined || !isOwn) return;
    if (asset !== requested.asset) setTyped((before) => ({ ...before, asset: requested.asset }));
    else if (info !== undefined) {
      const [amount, fee] = [requested.amount, requested.fee].map((units) => formatAmount(units, info.decimals)) as [string, string];
      setTyped({ asset, amount, to: getAddress(requested.to), fee, memo: requested.memo });
      onTaken();
    }
  }, [requested, isOwn, asset, info, onTaken]);
  // Until the user types a fee, the field has the relayers' proposed fee.
  const proposed = fees?.proposed === undefined || info === undefined ? "" : formatAmount(roundUp(fees.proposed), info.decimals);
  const feeText = typed.fee ?? proposed;
  const fee = way === "alone" || feeText === "" ? { units: 0n, fault: undefined } : readFee(feeText, info, amount.units);
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
    setReviewed({ recipient: recipient.address, ens: recipient.ens, asset, amount: amount.units, fee: fee.units, carrier: way, memo: typed.memo });
  };
  const redeem = ({ carrier, ens: _, memo, ...shown }: ReviewedRedemption, named: ShownAsset): void => {
    const intent = { ...shown, ...(memo === undefined ? {} : { memo }) };
    setReviewed(undefined);
    start({
      kind: "redeem",
      account,
      title: `Redeem ${money(intent.amount, named)} to ${shortAddress(intent.recipient)}`,
      work: async ({ report, signal }) => {
        const { certificate } = await client.redeem(signer, intent, { onProgress: report, signal });
        // A failed redemption stays in the form, to be retried or changed.
        setTyped((before) => (before === typed ? { ...before, amount: "", fee: undefined, memo: undefined } : before));
        // The certificate exists. Its submission is a separate activity, with its own steps.
        if (carrier === "alone" && ethereum !== undefined) {
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
  };
  if (reviewed !== undefined && info !== undefined) {
    return (
      <RedeemReview
        owner={owner}
        redemption={reviewed}
        info={info}
        balance={holding?.balance ?? 0n}
        sequence={view?.nextSequence ?? 0n}
        canRedeem={canRedeem}
        onRedeem={() => redeem(reviewed, info)}
        onBack={() => setReviewed(undefined)}
      />
    );
  }
  return (
    <Card withBorder component="form" onSubmit={submit} aria-label="Redemption">
      <Stack>
        <ErrorAlert error={error} title="Your balance cannot be read" />
        <NamingAlert error={namingError} />
        {requested !== undefined && (
          <Alert color="orange" title="A payout needs your signature">
            {isOwn
              ? `It pays the token ${requested.asset}, which this page does not know. Add the token first.`
              : `It is from the account ${formatAccount(requested.from)}. Use that account to sign it.`}
          </Alert>
        )}
        {typed.memo !== undefined && (
          <Alert color="indigo" title="Prepared by a merchant's service">
            The service finds this payout by its memo, {decodeMemo(typed.memo)}. If you change the amount or address,
            the service cannot match it.
          </Alert>
        )}
        <AssetSelect assets={list.map((one) => one.asset)} value={asset} onChange={(next) => change({ asset: next, fee: undefined })} />
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
          description={config.ledger !== undefined ? "The ledger pays into the reserve of this address" : recipient.ens === undefined ? "Or an ENS name" : `${recipient.ens} is ${getAddress(recipient.address ?? ETHER)}`}
          value={to}
          onChange={(event) => change({ to: event.currentTarget.value.trim() })}
          error={recipient.fault}
          autoComplete="off"
          spellCheck={false}
        />
        {config.ledger === undefined && <WayChoice way={way} onChange={setWay} canSend={ethereum !== undefined} />}
        {way === "relayer" && (
          <FeeInput asset={asset} info={info} text={feeText} fault={fee.fault} fees={fees} onChange={(text) => change({ fee: text, memo: typed.memo })} />
        )}
        <Expectation asset={asset} info={info} units={amount.units} fee={fee.units} way={way} fees={fees} />
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
  readonly way: Carrier;
  readonly onChange: (way: Carrier) => void;
  readonly canSend: boolean;
}

function WayChoice({ way, onChange, canSend }: WayProps): JSX.Element {
  return (
    <Radio.Group label="Who submits it to Ethereum" value={way} onChange={(value) => onChange(value as Carrier)}>
      <Stack gap="xs" mt="xs">
        <Radio value="relayer" label="A relayer, for the fee below" description="You sign once and pay no gas" />
        <Radio
          value="alone"
          label="I do, with a transaction from my wallet"
          description={canSend ? "No fee; you pay the gas. Needs no relayer" : "Connect an Ethereum wallet first"}
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
  readonly fees: RelayerFees | undefined;
  readonly onChange: (text: string) => void;
}

function FeeInput({ asset, info, text, fault, fees, onChange }: FeeProps): JSX.Element {
  const { client, config } = useNetwork();
  const enabled = config.ledger === undefined;
  const cost = useQuery({ queryKey: ["chain", "cost"], queryFn: () => client.redemptionCost(), enabled, refetchInterval: 12_000 });
  const wei = cost.data?.wei;
  const gas = wei === undefined ? "" : ` The gas costs about ${formatAmount(roundUp(wei), 18)} ETH now.`;
  const suggested = suggestionOf(fees, asset, wei);
  return (
    <AmountInput
      label="Fee for the relayer"
      text={text}
      onChange={onChange}
      info={info}
      fault={fault}
      required={false}
      most={suggested}
      fill="Suggest"
      description={`${offersText(fees, info)}${gas} The fee is deducted from the amount.`}
    />
  );
}

/** The relayers' fee; if none is known, the gas cost of a redemption of ETH and a quarter more. */
function suggestionOf(fees: RelayerFees | undefined, asset: Address, wei: bigint | undefined): bigint | undefined {
  if (fees?.proposed !== undefined) return roundUp(fees.proposed);
  return asset === ETHER && wei !== undefined && fees !== undefined ? roundUp(wei + wei / 4n) : undefined;
}

function offersText(fees: RelayerFees | undefined, info: ShownAsset | undefined): string {
  if (fees === undefined || info === undefined) return "Loading the relayers' fees …";
  const [lowest] = fees.offers;
  if (lowest !== undefined) return `${count(fees.offers.length, "relayer")} take${fees.offers.length === 1 ? "s" : ""} ${money(lowest.fee, info)} or more.`;
  if (fees.silent.length > 0) return "No relayer answers now.";
  return `No known relayer serves ${info.label}.`;
}

/** Rounds a suggested fee up to two digits. */
function roundUp(wei: bigint): bigint {
  const unit = 10n ** BigInt(Math.max(0, wei.toString().length - 2));
  return ((wei + unit - 1n) / unit) * unit;
}

interface ExpectationProps {
  readonly asset: Address;
  readonly info: ShownAsset | undefined;
  readonly units: bigint | undefined;
  readonly fee: bigint | undefined;
  readonly way: Carrier;
  readonly fees: RelayerFees | undefined;
}

function Expectation({ asset, info, units, fee, way, fees }: ExpectationProps): JSX.Element | null {
  const { ledger } = useNetwork().config;
  const contract = useContractStatus().data;
  const available = useAssetStatus(asset).data?.outflowAvailable;
  if (units === undefined || fee === undefined || info === undefined || contract === undefined) return null;
  const arrives = <Text size="sm">{money(units - fee, info)} will arrive.</Text>;
  if (ledger === undefined && available !== undefined && units > available) {
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
  if (way === "alone") {
    return (
      <Alert color="indigo" title="With your transaction's block">
        {arrives}
      </Alert>
    );
  }
  const takers = fees?.offers.filter((offer) => offer.fee <= fee).length ?? 0;
  if (fees === undefined || takers > 0) {
    return (
      <Alert color="indigo" title={fees === undefined ? "Asking relayers …" : `Usually within ${duration(fees.usualMs)}`}>
        {takers > 0 && <Text size="sm">{takers} of {count(fees?.offers.length ?? 0, "relayer")} {takers === 1 ? "takes" : "take"} this fee.</Text>}
        {arrives}
      </Alert>
    );
  }
  return (
    <Alert color="orange" title="No known relayer takes this fee">
      <Text size="sm">
        It may wait for a long time.{" "}
        {ledger === undefined
          ? "You can submit it yourself at any time and pay the gas."
          : "You can hand it to the ledger yourself at any time, with the command line: fastpay redeem --self."}
      </Text>
      {arrives}
    </Alert>
  );
}
