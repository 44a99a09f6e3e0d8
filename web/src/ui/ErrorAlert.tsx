import { Alert, List, Text, type AlertProps } from "@mantine/core";
import { isFastPayError, messageOf, type PeerFailure } from "@fastpay/sdk";
import type { JSX, ReactNode } from "react";

import { useAuthorityLabel } from "../network/authorities";
import { failureText } from "./failures";
import { sentence, titleOfError } from "./words";
import { IconAlertTriangle } from "./icons";

interface Props extends Omit<AlertProps, "title" | "children" | "onReset"> {
  readonly error: unknown;
  readonly title?: string;
  /** Actions that the user can take here. */
  readonly children?: ReactNode;
}

/** A notice that a token's name and decimals are unknown, so no amount of it can be entered. */
export function NamingAlert({ error }: { error: unknown }): JSX.Element | null {
  return (
    <ErrorAlert error={error} title="This token cannot be read">
      <Text size="sm">This page retries automatically. You can enter amounts of this token once it can be read.</Text>
    </ErrorAlert>
  );
}

/** Shows an error and what to do; announced to screen readers at once. */
export function ErrorAlert({ error, title, children, ...rest }: Props): JSX.Element | null {
  if (error === undefined || error === null) return null;
  const action = isFastPayError(error) ? sentence(error.action) : undefined;
  const failures = isFastPayError(error, "no-quorum") || isFastPayError(error, "too-few-answers") ? error.details["failures"] : undefined;
  const message = failures === undefined ? messageOf(error) : firstClause(error as Error);
  return (
    <Alert
      role="alert"
      color="red"
      variant="light"
      icon={<IconAlertTriangle aria-hidden />}
      title={title ?? titleOfError(error)}
      w="100%"
      {...rest}
    >
      <Text size="sm" style={{ overflowWrap: "anywhere" }}>
        {sentence(message)}
      </Text>
      {failures !== undefined && <Failures failures={failures as Readonly<Record<string, PeerFailure>>} />}
      {action !== undefined && <Text size="sm">{action}</Text>}
      {children}
    </Alert>
  );
}

/** The first clause of a message: the number of votes or answers. The failures of the authorities follow it. */
function firstClause({ message }: Error): string {
  return message.split(";", 1)[0] ?? message;
}

/** The failures of single authorities, with their names. */
function Failures({ failures }: { failures: Readonly<Record<string, PeerFailure>> }): JSX.Element {
  const labelOf = useAuthorityLabel();
  return (
    <List size="sm">
      {Object.entries(failures).map(([url, failure]) => (
        <List.Item key={url} style={{ overflowWrap: "anywhere" }}>
          {labelOf({ url })} {failureText(failure)}
        </List.Item>
      ))}
    </List>
  );
}
