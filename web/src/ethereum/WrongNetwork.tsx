import { Alert, Button, Group, Text } from "@mantine/core";
import { useState, type JSX } from "react";

import { chainName } from "../network/config";
import { useNetwork } from "../network/NetworkProvider";
import { ErrorAlert } from "../ui/ErrorAlert";
import { useWallets } from "./WalletProvider";
import { IconPlugConnectedX } from "../ui/icons";

/** A notice on every page while the wallet is on another chain, with a button to switch. */
export function WrongNetwork(): JSX.Element | null {
  const { connected, switchChain } = useWallets();
  const { config } = useNetwork();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  if (connected === undefined || connected.isOnChain) return null;
  const change = (): void => {
    setBusy(true);
    setError(undefined);
    switchChain()
      .catch(setError)
      .finally(() => setBusy(false));
  };
  return (
    <Alert role="alert" color="orange" icon={<IconPlugConnectedX aria-hidden />} title={`Wrong network: ${chainName(connected.chainId)}`} mb="md">
      <Group justify="space-between">
        <Text size="sm">
          Your wallet is on {chainName(connected.chainId)} (chain {connected.chainId}). This page works with {config.chainName}{" "}
          (chain {config.chainId}); nothing is signed until the wallet is there.
        </Text>
        <Button variant="default" onClick={change} loading={isBusy}>
          Switch to {config.chainName}
        </Button>
      </Group>
      <ErrorAlert error={error} mt="sm" />
    </Alert>
  );
}
