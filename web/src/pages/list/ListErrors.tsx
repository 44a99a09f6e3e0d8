import { List, ScrollArea, Text } from "@mantine/core";
import { isFastPayError, type ListError } from "@fastpay/sdk";
import type { JSX } from "react";

import { ErrorAlert } from "../../ui/ErrorAlert";
import { count, sentence } from "../../ui/words";

/** The number of faults shown at once. */
const SHOWN_MAX = 200;

/** All faults of a list, line by line. */
export function ListErrors({ error }: { error: unknown }): JSX.Element | null {
  const errors = isFastPayError(error, "invalid-list") ? (error.details["errors"] as readonly ListError[]) : undefined;
  if (errors === undefined) return <ErrorAlert error={error} />;
  const summary = new Error(`${count(errors.length, "mistake")}; nothing was signed`);
  return (
    <ErrorAlert error={summary} title="This list cannot be paid">
      <ScrollArea.Autosize mah={260} type="auto" viewportProps={{ tabIndex: 0, role: "region", "aria-label": "Mistakes in the list" }}>
        <List size="sm" spacing={4}>
          {errors.slice(0, SHOWN_MAX).map(({ line, message }, i) => (
            <List.Item key={i} style={{ overflowWrap: "anywhere" }}>
              {line === undefined ? sentence(message) : `Line ${line}: ${sentence(message)}`}
            </List.Item>
          ))}
        </List>
      </ScrollArea.Autosize>
      {errors.length > SHOWN_MAX && <Text size="sm">And {errors.length - SHOWN_MAX} more.</Text>}
    </ErrorAlert>
  );
}
