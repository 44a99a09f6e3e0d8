import { Button, Progress, Stack, Text } from "@mantine/core";
import { formatListResult, type ListStatus } from "@fastpay/sdk";
import type { JSX } from "react";

import { IconDownload } from "../ui/icons";
import { saveFile } from "../ui/save";
import { count } from "../ui/words";
import { listIn, type Activity } from "./activities";
import { askedStep } from "./steps";

/** The number of a list's payments that reached at least this state. */
export function paymentsIn({ orders }: ListStatus, ...states: readonly ListStatus["orders"][number]["state"][]): number {
  return orders.filter(({ state }) => states.includes(state)).reduce((sum, { outputs }) => sum + outputs.length, 0);
}

/** A list's progress as text. */
export function listText(status: ListStatus): string {
  const certified = paymentsIn(status, "certified", "settled");
  return `${certified} of ${count(status.payments.length, "payment")} certified, ${paymentsIn(status, "settled")} settled`;
}

/** A list's progress; announced to screen readers. */
export function ListProgress({ activity }: { activity: Activity }): JSX.Element {
  const status = listIn(activity);
  const total = status?.payments.length ?? 0;
  const done = status === undefined ? 0 : paymentsIn(status, "settled");
  const text = status === undefined ? "Asking the authorities …" : listText(status);
  return (
    <Stack gap="xs">
      <Progress value={total === 0 ? 0 : (100 * done) / total} aria-label="Payments settled" />
      <Text size="sm" role="status">
        {text}
      </Text>
      {askedStep(activity) !== undefined && <Text size="sm">Waiting for your signature of order {orderNumber(status)}.</Text>}
    </Stack>
  );
}

function orderNumber(status: ListStatus | undefined): string {
  const orders = status?.orders ?? [];
  return `${orders.findIndex(({ state }) => state === "open") + 1} of ${orders.length}`;
}

/** Saves the result of each line as a file. */
export function SaveResult({ status }: { status: ListStatus }): JSX.Element {
  const save = async (): Promise<void> => {
    saveFile(`fastpay-${status.name.slice(2, 10)}.result.csv`, await formatListResult(status), "text/csv");
  };
  return (
    <Button variant="default" size="xs" leftSection={<IconDownload size={16} aria-hidden />} onClick={() => void save()}>
      Save the result
    </Button>
  );
}
