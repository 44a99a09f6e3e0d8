import { Button, Center, Stack, Title } from "@mantine/core";
import { Component, type JSX, type ReactNode } from "react";

import { ErrorAlert } from "../ui/ErrorAlert";

/** Shows an error page if a page throws. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    return "error" in this.state ? <Broken error={this.state.error} /> : this.props.children;
  }
}

function Broken({ error }: { error: unknown }): JSX.Element {
  return (
    <Center component="main" mih="100vh" p="md">
      <Stack maw={480}>
        <Title order={1} size="h2">
          This page failed
        </Title>
        <ErrorAlert error={error} title="Your orders are safe: this browser stores them" />
        <Button component="a" href="/">
          To the wallet
        </Button>
      </Stack>
    </Center>
  );
}
