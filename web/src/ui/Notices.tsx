import { Alert, Text } from "@mantine/core";
import type { JSX, ReactNode } from "react";

import { ConnectButton } from "../account/ConnectButton";
import { useOwners, type Owner } from "../account/OwnerProvider";
import { usePausedUntil } from "../data/queries";
import { timeText } from "./words";
import { IconPlayerPause, IconWallet } from "./icons";

/** A notice that the contract is paused, until when, and what still works. */
export function PausedNotice(): JSX.Element | null {
  const until = usePausedUntil();
  if (until === undefined) return null;
  return (
    <Alert role="alert" color="orange" icon={<IconPlayerPause aria-hidden />} title="The contract is paused">
      <Text size="sm">
        Deposits and payouts on Ethereum are stopped until {timeText(Number(until) * 1_000)}; the pause ends by itself.
        Payments inside FastPay continue.
      </Text>
    </Alert>
  );
}

/** Renders its children for an account, or asks to connect a wallet or create a key. */
export function WithOwner({ children }: { children: (owner: Owner) => ReactNode }): ReactNode {
  const { owner } = useOwners();
  if (owner !== undefined) return children(owner);
  return (
    <Alert color="indigo" icon={<IconWallet aria-hidden />} title="Connect a wallet first">
      <Text size="sm" mb="sm">
        Your FastPay account belongs to the Ethereum key in your wallet, or to a browser key. No other setup is needed.
      </Text>
      <ConnectButton place="page" />
    </Alert>
  );
}
