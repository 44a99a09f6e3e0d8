import { Alert, Text, type AlertProps } from "@mantine/core";
import { isFastPayError, messageOf } from "@fastpay/sdk";
import type { JSX, ReactNode } from "react";

import { sentence, titleOfError } from "./words";
import { IconAlertTriangle } from "./icons";

interface Props extends Omit<AlertProps, "title" | "children" | "onReset"> {
  readonly error: unknown;
  readonly title?: string;
  /** What can be done about it here. */
  readonly children?: ReactNode;
}

/** Says that a token does not tell how it is called and counts, without which no amount of it can be given. */
export function NamingAlert({ error }: { error: unknown }): JSX.Element | null {
  return (
    <ErrorAlert error={error} title="This token is not known now">
      <Text size="sm">This page asks again by itself; no amount of the token can be given before.</Text>
    </ErrorAlert>
  );
}

/** Says what happened and what to do; a screen reader says it at once. */
export function ErrorAlert({ error, title, children, ...rest }: Props): JSX.Element | null {
  if (error === undefined || error === null) return null;
  const action = isFastPayError(error) ? sentence(error.action) : undefined;
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
        {sentence(messageOf(error))}
      </Text>
      {action !== undefined && <Text size="sm">{action}</Text>}
      {children}
    </Alert>
  );
}
