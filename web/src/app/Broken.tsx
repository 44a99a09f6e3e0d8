import { Alert, Button, Center, Stack, Title } from "@mantine/core";
import { Component, type JSX, type ReactNode } from "react";

/** Shows an error page if a page throws, or if its code cannot be loaded. */
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
          This page has crashed
        </Title>
        <Alert role="alert" color="red" title="Your orders are safe: they are stored in this browser">
          {error instanceof Error ? error.message : String(error)}
        </Alert>
        <Button onClick={() => location.reload()}>Try again</Button>
        <Button component="a" href="/" variant="default">
          Back to the wallet
        </Button>
      </Stack>
    </Center>
  );
}
