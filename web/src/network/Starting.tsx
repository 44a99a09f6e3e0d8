import { Button, Center, Loader, Stack, Text, Title } from "@mantine/core";
import type { JSX } from "react";

import { ErrorAlert } from "../ui/ErrorAlert";
import { Logo } from "../ui/Logo";

interface Props {
  readonly error: unknown;
  readonly isBusy: boolean;
  readonly onRetry: () => void;
}

/** What stands here until the deployment is known, and why it is not. */
export function Starting({ error, isBusy, onRetry }: Props): JSX.Element {
  return (
    <Center component="main" mih="100vh" p="md">
      <Stack align="center" maw={480} w="100%">
        <Logo size={48} />
        <Title order={1} size="h2">
          FastPay
        </Title>
        {isBusy ? (
          <>
            <Loader aria-hidden />
            <Text role="status">Reading the committee from Ethereum …</Text>
          </>
        ) : (
          <>
            <ErrorAlert error={error} title="This page cannot reach its network" />
            <Button onClick={onRetry}>Try again</Button>
          </>
        )}
      </Stack>
    </Center>
  );
}
