import { Button } from "@mantine/core";
import type { JSX, ReactNode } from "react";

import type { Owner } from "../account/OwnerProvider";
import { usePausedUntil } from "../data/queries";
import { ConnectEthereum } from "../ethereum/WalletList";
import type { ConnectedWallet } from "../ethereum/WalletProvider";
import { leftTransaction, type ActivityControl } from "./activities";
import { useActivities, useActivityActions } from "./ActivityProvider";

interface Props {
  readonly owner: Owner;
  readonly kind: "payout" | "claim" | "unlock";
  readonly title: string;
  /** The action is not known yet. */
  readonly disabled?: boolean;
  readonly work: (wallet: ConnectedWallet["walletClient"], control: ActivityControl) => Promise<unknown>;
  readonly children: ReactNode;
}

/**
 * A button for the user's own transaction: one of its kind at a time, and none while a sent one is pending. Without an
 * Ethereum wallet it asks to connect one.
 */
export function ChainButton({ owner, kind, title, disabled = false, work, children }: Props): JSX.Element {
  const { ethereum } = owner;
  // A claim belongs to the wallet's address, even if a browser key is in use.
  const account = kind === "claim" ? ethereum?.account : owner.account;
  const { start } = useActivityActions();
  const isPaused = usePausedUntil() !== undefined;
  const isBusy = useActivities(account).some(
    (one) => one.kind === kind && (one.state === "running" || leftTransaction(one) !== undefined),
  );
  if (ethereum === undefined || account === undefined) return <ConnectEthereum size="xs">Connect a wallet to do it yourself</ConnectEthereum>;
  const { walletClient, isOnChain } = ethereum;
  const begin = (): void => {
    start({ kind, account, title, work: (control) => work(walletClient, control) });
  };
  return (
    <Button size="xs" variant="default" disabled={disabled || !isOnChain || isPaused || isBusy} onClick={begin}>
      {children}
    </Button>
  );
}
