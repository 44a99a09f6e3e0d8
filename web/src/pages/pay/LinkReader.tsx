import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { decodeMemo, formatAccount, type PaymentLink } from "@fastpay/sdk";
import type { JSX } from "react";

import type { ShownAsset } from "../../data/queries";
import { ErrorAlert } from "../../ui/ErrorAlert";
import { Facts } from "../../ui/Facts";
import { IconLink } from "../../ui/icons";
import { QrReader } from "../../ui/QrReader";
import { money, timeText } from "../../ui/words";

/** Reads a payment link from a QR code, and shows the error of an unusable link. */
export function LinkReader({ onText, error }: { onText: (text: string) => void; error: unknown }): JSX.Element {
  return (
    <Stack gap="xs">
      <QrReader onText={onText} />
      <ErrorAlert error={error} />
    </Stack>
  );
}

/** Offers a payment link that was opened while the page was in use. The user must show it before paying it. */
export function OpenedNotice({ onShow }: { onShow: () => void }): JSX.Element {
  return (
    <Alert role="alert" color="orange" icon={<IconLink aria-hidden />} title="A payment link was opened">
      <Group justify="space-between">
        <Text size="sm">The form below is unchanged.</Text>
        <Button variant="default" size="xs" onClick={onShow}>
          Use the link
        </Button>
      </Group>
    </Alert>
  );
}

interface Props {
  readonly request: PaymentLink;
  readonly info: ShownAsset | undefined;
  readonly isTooMuch: boolean;
  readonly onClear: () => void;
}

/** The request of a link. The user pays it unchanged or clears it. */
export function LinkSummary({ request, info, isTooMuch, onClear }: Props): JSX.Element {
  const { account, amount, memo, label, expires, asset } = request;
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Text fw={600}>Payment link</Text>
        <Button variant="default" size="xs" onClick={onClear}>
          Clear
        </Button>
      </Group>
      <Facts
        facts={[
          ["To", formatAccount(account)],
          ["Claimed name", label && `${label} (not verified)`],
          ["Amount", amount !== undefined && info !== undefined ? money(amount, info) : undefined],
          ["Asset", info && (info.isUnknown ? `${info.symbol} at ${asset}` : info.symbol)],
          ["Memo", memo && decodeMemo(memo)],
          ["Expires", expires && timeText(Number(expires) * 1_000)],
        ]}
      />
      {info?.isUnknown && (
        <Alert color="orange" role="alert">
          This page does not know this token. Anyone can make one with any name; compare its address.
        </Alert>
      )}
      {isTooMuch && (
        <Alert color="red" role="alert" title="Not enough money">
          Your balance in FastPay is less than this link asks for.
        </Alert>
      )}
    </Stack>
  );
}
