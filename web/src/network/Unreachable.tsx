import { Button, Center, Group, Stack, Title } from "@mantine/core";
import { isFastPayError } from "@fastpay/sdk";
import type { JSX } from "react";

import { ErrorAlert } from "../ui/ErrorAlert";
import { Logo } from "../ui/Logo";

interface Props {
  readonly error: unknown;
  readonly onRetry: () => void;
  /** Starts without this browser's data of another deployment at the same address. */
  readonly onSetAside: () => void;
}

/** The page for a deployment that cannot be loaded, with the reason and what the user can do. */
export function Unreachable({ error, onRetry, onSetAside }: Props): JSX.Element {
  const isOther = isFastPayError(error, "other-deployment");
  return (
    <Center component="main" mih="100vh" p="md">
      <Stack align="center" maw={480} w="100%">
        <Logo size={48} />
        <Title order={1} size="h2">
          FastPay
        </Title>
        <ErrorAlert error={error} title={isOther ? "The network has changed" : "This page cannot reach its network"} />
        <Group>
          <Button onClick={onRetry}>Try again</Button>
          {isOther && (
            <Button variant="default" onClick={onSetAside}>
              Set the old data aside
            </Button>
          )}
        </Group>
      </Stack>
    </Center>
  );
}
