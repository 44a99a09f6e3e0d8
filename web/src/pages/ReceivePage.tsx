import { Anchor, Button, Card, CopyButton, Group, Stack, Text, TextInput } from "@mantine/core";
import { encodeMemo, ETHER, formatAccount, formatPaymentLink, formatWebLink, isFastPayError, type Address, type PaymentLink } from "@fastpay/sdk";
import { useState, type JSX } from "react";

import type { Owner } from "../account/OwnerProvider";
import { useHoldings } from "../data/holdings";
import { useNetwork } from "../network/NetworkProvider";
import { AmountInput, readAmount } from "../ui/AmountInput";
import { AssetSelect } from "../ui/AssetSelect";
import { Copyable } from "../ui/AccountText";
import { ErrorAlert, NamingAlert } from "../ui/ErrorAlert";
import { WithOwner } from "../ui/Notices";
import { Page } from "../ui/Page";
import { QrCode } from "../ui/Qr";
import { money } from "../ui/words";

export default function ReceivePage(): JSX.Element {
  return (
    <Page title="Receive" lead="Show the code or send the link. Opening it pays nothing: the sender must confirm.">
      <WithOwner>{(owner) => <Receive owner={owner} />}</WithOwner>
    </Page>
  );
}

function Receive({ owner }: { owner: Owner }): JSX.Element {
  const { account, ethereum } = owner;
  const { client } = useNetwork();
  const { list } = useHoldings(account, ethereum?.address);
  const [asset, setAsset] = useState<Address>(ETHER);
  const [amount, setAmount] = useState("");
  const [memo, setMemo] = useState("");
  const [label, setLabel] = useState("");
  const { info, error } = list.find((one) => one.asset === asset)?.naming ?? {};
  const typed = readAmount(amount, info);
  // A link without the typed amount would ask for any amount.
  const isUnread = amount !== "" && typed.units === undefined;
  const made = make(() => {
    const link: PaymentLink = {
      account,
      domain: client.domain,
      asset,
      ...(typed.units === undefined ? {} : { amount: typed.units }),
      ...(memo === "" ? {} : { memo: encodeMemo(memo) }),
      ...(label === "" ? {} : { label }),
    };
    return { uri: formatPaymentLink(link), web: formatWebLink(`${location.origin}/pay`, link) };
  });
  return (
    <>
      <Card withBorder>
        <Stack align="center">
          <NamingAlert error={error} />
          <ErrorAlert error={made.error} />
          {isUnread && (
            <Text role="status" ta="center">
              No code or link can be shown. {typed.fault ?? "The token's decimals are unknown, so the amount cannot be converted."}
            </Text>
          )}
          {!isUnread && made.links !== undefined && (
            <Links uri={made.links.uri} web={made.links.web} asks={typed.units && info && money(typed.units, info)} />
          )}
          <Text size="sm" c="dimmed">
            Your account
          </Text>
          <Copyable text={formatAccount(account)} name="your account" />
        </Stack>
      </Card>
      <Card withBorder component="section" aria-label="Request">
        <Stack>
          <AssetSelect assets={list.map((one) => one.asset)} value={asset} onChange={setAsset} />
          <AmountInput
            label="Amount (optional)"
            text={amount}
            onChange={setAmount}
            info={info}
            fault={typed.fault}
            required={false}
            description="Leave empty to let the sender choose"
          />
          <TextInput
            label="Memo (optional)"
            description="Identifies the payment. It is public"
            value={memo}
            onChange={(event) => setMemo(event.currentTarget.value)}
            autoComplete="off"
          />
          <TextInput
            label="Your name (optional)"
            description="Shown to the sender as unverified"
            value={label}
            onChange={(event) => setLabel(event.currentTarget.value)}
            maxLength={64}
            autoComplete="off"
          />
        </Stack>
      </Card>
    </>
  );
}

function make(links: () => { uri: string; web: string }): { links?: { uri: string; web: string }; error?: unknown } {
  try {
    return { links: links() };
  } catch (error) {
    if (isFastPayError(error)) return { error };
    throw error;
  }
}

function Links({ uri, web, asks }: { uri: string; web: string; asks: string | 0n | undefined }): JSX.Element {
  return (
    <>
      <QrCode text={web} label={asks ? `QR code that asks for ${asks}` : "QR code that asks for a payment"} />
      {asks && (
        <Text fw={600} size="lg">
          {asks}
        </Text>
      )}
      <Group justify="center" gap="xs">
        <CopyButton value={web}>
          {({ copied, copy }) => <Button onClick={copy}>{copied ? "Link copied" : "Copy link"}</Button>}
        </CopyButton>
        <CopyButton value={uri}>
          {({ copied, copy }) => (
            <Button variant="default" onClick={copy}>
              {copied ? "Copied" : "Copy fastpay: link"}
            </Button>
          )}
        </CopyButton>
      </Group>
      <Anchor href={web} size="xs" ta="center" style={{ overflowWrap: "anywhere" }} data-testid="payment-link">
        {web}
      </Anchor>
    </>
  );
}
