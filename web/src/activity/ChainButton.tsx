import { Button } from "@mantine/core";
import type { JSX, ReactNode } from "react";

import type { Owner } from "../account/OwnerProvider";
import { usePausedUntil } from "../data/queries";
import { ConnectEthereum } from "../ethereum/WalletList";
import type { ConnectedWallet } from "../ethereum/WalletProvider";
import type { ActivityControl, ActivityKind } from "./activities";
import { useActivities, useActivityActions } from "./ActivityProvider";

interface Props {
  readonly owner: Owner;
  readonly kind: ActivityKind;
  readonly title: string;
  readonly work: (wallet: ConnectedWallet["walletClient"], control: ActivityControl) => Promise<unknown>;
  readonly children: ReactNode;
}

/** Starts a transaction of the person's own, one of its kind at a time; asks for an Ethereum wallet where there is none. */
export function ChainButton({ owner, kind, title, work, children }: Props): JSX.Element {
  const { account, ethereum } = owner;
  const { start } = useActivityActions();
  const isPaused = usePausedUntil() !== undefined;
  const isBusy = useActivities(account).some((one) => one.kind === kind && one.state === "running");
  if (ethereum === undefined) return <ConnectEthereum size="xs">Connect a wallet to do it yourself</ConnectEthereum>;
  const { walletClient, isOnChain } = ethereum;
  const begin = (): void => {
    start({ kind, account, title, work: (control) => work(walletClient, control) });
  };
  return (
    <Button size="xs" variant="default" disabled={!isOnChain || isPaused || isBusy} onClick={begin}>
      {children}
    </Button>
  );
}
