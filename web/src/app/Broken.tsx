import { Button, Center, Stack, Title } from "@mantine/core";
import type { JSX } from "react";
import { useRouteError } from "react-router";

import { ErrorAlert } from "../ui/ErrorAlert";

/** What stands where a page fails by a fault of ours. */
export function Broken(): JSX.Element {
  const error = useRouteError();
  return (
    <Center component="main" mih="100vh" p="md">
      <Stack maw={480}>
        <Title order={1} size="h2">
          This page failed
        </Title>
        <ErrorAlert error={error} title="Your orders are safe: they are kept in this browser" />
        <Button component="a" href="/">
          To the wallet
        </Button>
      </Stack>
    </Center>
  );
}
