import { Alert, Text } from "@mantine/core";
import type { JSX, ReactNode } from "react";

import { usePausedUntil } from "../data/queries";
import { ConnectButton } from "../ethereum/ConnectButton";
import { useWallets, type ConnectedWallet } from "../ethereum/WalletProvider";
import { timeText } from "./words";
import { IconPlayerPause, IconWallet } from "./icons";

/** Says that the contract is paused, until when, and what goes on all the same. */
export function PausedNotice(): JSX.Element | null {
  const until = usePausedUntil();
  if (until === undefined) return null;
  return (
    <Alert role="alert" color="orange" icon={<IconPlayerPause aria-hidden />} title="The contract is paused">
      <Text size="sm">
        Deposits and payouts on Ethereum stand still until {timeText(Number(until) * 1_000)}; the pause ends by itself.
        Payments inside FastPay go on.
      </Text>
    </Alert>
  );
}

/** What needs a wallet, or the invitation to connect one. */
export function WithWallet({ children }: { children: (wallet: ConnectedWallet) => ReactNode }): ReactNode {
  const { connected } = useWallets();
  if (connected !== undefined) return children(connected);
  return (
    <Alert color="indigo" icon={<IconWallet aria-hidden />} title="Connect a wallet first">
      <Text size="sm" mb="sm">
        Your FastPay account belongs to the Ethereum key in your wallet. There is nothing else to set up.
      </Text>
      <ConnectButton />
    </Alert>
  );
}
