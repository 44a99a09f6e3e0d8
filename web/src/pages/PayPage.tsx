import { Alert, Anchor, Button, Card, Stack, Text, TextInput } from "@mantine/core";
import {
  encodeMemo,
  ETHER,
  formatAccount,
  isFastPayError,
  MEMO_BYTES_MAX,
  parseAccount,
  type AccountId,
  type Address,
} from "@fastpay/sdk";
import { useEffect, useId, useState, type FormEvent, type JSX } from "react";
import { Link } from "react-router";

import type { Owner } from "../account/OwnerProvider";
import { ActivityCard } from "../activity/ActivityCard";
import { isOrdering, useActivities, useActivityActions } from "../activity/ActivityProvider";
import { useHoldings } from "../data/holdings";
import { isSameName, useContacts, type Contacts } from "../data/contacts";
import { useNaming, useOrders } from "../data/queries";
import { useEns } from "../ethereum/ens";
import { useNetwork } from "../network/NetworkProvider";
import { AmountInput, availableText, readAmount } from "../ui/AmountInput";
import { AssetSelect } from "../ui/AssetSelect";
import { ErrorAlert, NamingAlert } from "../ui/ErrorAlert";
import { WithOwner } from "../ui/Notices";
import { Page } from "../ui/Page";
import { money, sentence, shortAccount } from "../ui/words";
import { UnfinishedListsNotice } from "./list/UnfinishedLists";
import { LinkReader, LinkSummary, OpenedNotice } from "./pay/LinkReader";
import { PaymentReview, recipientsOf, type Reviewed } from "./pay/PaymentReview";
import { PendingNotice } from "./pay/PendingNotice";
import { useLinkRequest } from "./pay/useLinkRequest";
import { IconSend } from "../ui/icons";

/** The number of suggested recent accounts. */
const RECENT_MAX = 8;

export default function PayPage(): JSX.Element {
  return (
    <Page title="Pay" lead="Certified after one round trip, settled and final after two.">
      <WithOwner>{(owner) => <Pay key={owner.account} owner={owner} />}</WithOwner>
    </Page>
  );
}

function Pay({ owner }: { owner: Owner }): JSX.Element {
  const { account } = owner;
  const list = useActivities(account).filter(({ kind }) => kind === "pay" || kind === "resume" || kind === "list" || kind === "unlock");
  // A later activity hides a finished one, so only the last result is shown.
  const activities = list.filter(({ state }, i) => i === 0 || state !== "done");
  return (
    <>
      {activities.slice(0, 3).map((activity) => (
        <ActivityCard key={activity.id} activity={activity} />
      ))}
      <PendingNotice owner={owner} />
      <UnfinishedListsNotice account={account} />
      <PayForm owner={owner} />
      <Text size="sm">
        <Anchor component={Link} to="/pay/list" underline="always">
          Pay a list
        </Anchor>{" "}
        ·{" "}
        <Anchor component={Link} to="/contacts" underline="always">
          Contacts
        </Anchor>
      </Text>
    </>
  );
}

function PayForm({ owner }: { owner: Owner }): JSX.Element {
  const { account, signer, canSign, ethereum } = owner;
  const { client } = useNetwork();
  const { start } = useActivityActions();
  const { request, error: linkError, showOpened, read, clear } = useLinkRequest();
  const [typed, setTyped] = useState({ to: "", asset: ETHER as Address, amount: "", memo: "" });
  const { list, view, error } = useHoldings(account, ethereum?.address);
  const isBusy = isOrdering(useActivities(account), account);
  const [sent, setSent] = useState<{ id: number; typed: typeof typed; request: typeof request }>();
  const [paid, setPaid] = useState<number>();
  const [reviewed, setReviewed] = useState<Reviewed>();
  const { names } = useContacts();
  const recipientsId = useId();

  // A link's fields are fixed; the user types the others.
  const asset = request?.asset ?? typed.asset;
  const { info, error: namingError } = useNaming(asset);
  // A link may ask for an asset that neither this page knows nor the account holds.
  const balance = list.find((one) => one.asset === asset)?.balance ?? (view && 0n);
  const amount = readAmount(typed.amount, info, balance);
  const units = request?.amount ?? amount.units;
  const isTooMuch = request?.amount !== undefined && balance !== undefined && request.amount > balance;
  const written = readRecipient(typed.to, names);
  const ens = useEns(written.account === undefined && request === undefined ? typed.to : "");
  const recipient = ens.isName ? ens : written;
  const isOwn = (request?.account ?? recipient.account) === account;
  const memo = readMemo(typed.memo);
  const to = request?.account ?? recipient.account;
  const canPay =
    to !== undefined &&
    !isOwn &&
    units !== undefined &&
    info !== undefined &&
    memo.fault === undefined &&
    !isTooMuch &&
    !isBusy &&
    canSign &&
    view !== undefined;

  const change = (part: Partial<typeof typed>): void => setTyped((before) => ({ ...before, ...part }));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!canPay) return;
    const { expires, label } = request ?? {};
    const name = request === undefined && ens.isName ? ens.name : undefined;
    setReviewed({ to, asset, amount: units, memo: request?.memo ?? memo.bytes, expires, label, ens: name });
  };
  const pay = ({ to: recipient, amount: value, expires, ...rest }: Reviewed): void => {
    setReviewed(undefined);
    const id = start({
      kind: "pay",
      account,
      title: `Pay ${info === undefined ? "" : money(value, info)} to ${shortAccount(recipient)}`,
      work: async ({ report, signal }) => {
        const until = expires === undefined ? {} : { expires };
        const intent = { recipient, asset: rest.asset, amount: value, memo: rest.memo, ...until };
        const receipt = await client.pay(signer, intent, { onProgress: report, signal });
        // A failed payment stays in the form, to be retried or changed.
        setPaid(id);
        return receipt;
      },
    });
    setSent({ id, typed, request });
  };
  useEffect(() => {
    if (sent === undefined || paid !== sent.id) return;
    setSent(undefined);
    if (typed === sent.typed) change({ to: "", amount: "", memo: "" });
    if (request !== undefined && request === sent.request) clear();
  }, [paid, sent, typed, request, clear]);

  if (reviewed !== undefined && info !== undefined) {
    return (
      <PaymentReview
        account={account}
        payment={reviewed}
        info={info}
        balance={balance ?? 0n}
        sequence={view?.nextSequence ?? 0n}
        canPay={canPay}
        onPay={() => pay(reviewed)}
        onBack={() => setReviewed(undefined)}
      />
    );
  }
  return (
    <Card withBorder component="form" onSubmit={submit} aria-label="Payment">
      <Stack>
        <ErrorAlert error={error} title="Your balance cannot be read" />
        <NamingAlert error={namingError} />
        {showOpened !== undefined && <OpenedNotice onShow={showOpened} />}
        {request === undefined ? (
          <>
            <LinkReader onText={read} error={linkError} />
            <TextInput
              label="To"
              description={ens.account === undefined ? RECIPIENT_HINT : `${ens.name} is ${formatAccount(ens.account)}`}
              list={recipientsId}
              value={typed.to}
              onChange={({ currentTarget: { value } }) => (read(value, false) ? change({ to: "" }) : change({ to: value }))}
              error={isOwn ? "This is your own account." : recipient.fault}
              autoComplete="off"
              spellCheck={false}
              required
              withAsterisk={false}
            />
            <Recipients id={recipientsId} account={account} />
            <AssetSelect assets={list.map((one) => one.asset)} value={asset} onChange={(next) => change({ asset: next })} />
          </>
        ) : (
          <LinkSummary
            request={request}
            info={info}
            isTooMuch={isTooMuch}
            onClear={clear}
          />
        )}
        {request !== undefined && isOwn && <Alert role="alert" color="orange" title="This is your own account" />}
        {request?.amount === undefined && (
          <AmountInput
            text={typed.amount}
            onChange={(text) => change({ amount: text })}
            info={info}
            fault={amount.fault}
            most={balance}
            description={availableText(balance, info, "in FastPay", error ?? namingError)}
          />
        )}
        {request?.memo === undefined && (
          <TextInput
            label="Memo (optional)"
            description={`Public; at most ${MEMO_BYTES_MAX} bytes`}
            value={typed.memo}
            onChange={(event) => change({ memo: event.currentTarget.value })}
            error={memo.fault}
            autoComplete="off"
          />
        )}
        <Button type="submit" size="md" disabled={!canPay} leftSection={<IconSend size={18} aria-hidden />}>
          {units !== undefined && info !== undefined ? `Pay ${money(units, info)}` : "Pay"}
        </Button>
      </Stack>
    </Card>
  );
}

const RECIPIENT_HINT = "An account (0x… or fp1…), an ENS name, a saved name, or a payment link";

/** Suggestions: the contacts, and the accounts that were paid recently. */
function Recipients({ id, account }: { id: string; account: AccountId }): JSX.Element {
  const { names } = useContacts();
  const orders = useOrders(account).data ?? [];
  const recent = [...new Set(orders.flatMap(({ transfer }) => recipientsOf(transfer)))].slice(0, RECENT_MAX);
  return (
    <datalist id={id}>
      {[...names].map(([contact, name]) => (
        <option key={contact} value={name}>
          {formatAccount(contact)}
        </option>
      ))}
      {recent
        .filter((one) => !names.has(one))
        .map((one) => (
          <option key={one} value={formatAccount(one)}>
            paid recently
          </option>
        ))}
    </datalist>
  );
}

function readRecipient(text: string, names: Contacts["names"]): { account: AccountId | undefined; fault: string | undefined } {
  if (text.trim() === "") return { account: undefined, fault: undefined };
  try {
    const account = parseAccount(text.trim());
    return { account, fault: undefined };
  } catch (error) {
    // Try names only after accounts, so that no name can hide an account.
    const [named] = [...names].find(([, name]) => isSameName(name, text)) ?? [];
    if (named !== undefined) return { account: named, fault: undefined };
    return { account: undefined, fault: isFastPayError(error) ? sentence(error.action) : "This is not an account." };
  }
}

function readMemo(text: string): { bytes: ReturnType<typeof encodeMemo>; fault: string | undefined } {
  try {
    return { bytes: encodeMemo(text), fault: undefined };
  } catch (error) {
    return { bytes: encodeMemo(""), fault: isFastPayError(error) ? sentence(error.message) : "This memo is too long." };
  }
}
