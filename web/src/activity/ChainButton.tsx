import { Button } from "@mantine/core";
import type { JSX, ReactNode } from "react";

import type { Owner } from "../account/OwnerProvider";
import { usePausedUntil } from "../data/queries";
import { ConnectEthereum } from "../ethereum/WalletList";
import type { ConnectedWallet } from "../ethereum/WalletProvider";
import { leftTransaction, type ActivityControl, type ActivityPlan } from "./activities";
import { useActivities, useActivityActions } from "./ActivityProvider";

type Kind = "payout" | "claim" | "unlock";
type Work = (wallet: ConnectedWallet["walletClient"], control: ActivityControl) => Promise<unknown>;

/**
 * Starts the user's own transactions: one of a kind at a time, and none while a sent one is pending. Undefined without
 * an Ethereum wallet.
 */
export function useChainAction(owner: Owner, kind: Kind): { readonly canBegin: boolean; readonly begin: (title: string, work: Work, facts?: ActivityPlan["facts"]) => void } | undefined {
  const { ethereum } = owner;
  // A claim belongs to the wallet's address, even if a browser key is in use.
  const account = kind === "claim" ? ethereum?.account : owner.account;
  const { start } = useActivityActions();
  const isPaused = usePausedUntil() !== undefined;
  const isBusy = useActivities(account).some(
    (one) => one.kind === kind && (one.state === "running" || leftTransaction(one) !== undefined),
  );
  if (ethereum === undefined || account === undefined) return undefined;
  const { walletClient, isOnChain } = ethereum;
  return {
    canBegin: isOnChain && !isPaused && !isBusy,
    begin: (title, work, facts) => {
      start({ kind, account, title, work: (control) => work(walletClient, control), ...(facts !== undefined && { facts }) });
    },
  };
}

interface Props {
  readonly owner: Owner;
  readonly kind: Kind;
  readonly title: string;
  /** True if the action is not known yet. */
  readonly disabled?: boolean;
  readonly work: Work;
  /** Opens a review, in place of starting at once. */
  readonly onReview?: (() => void) | undefined;
  readonly children: ReactNode;
}

/** A button for the user's own transaction. Without an Ethereum wallet it asks to connect one. */
export function ChainButton({ owner, kind, title, disabled = false, work, onReview, children }: Props): JSX.Element {
  const action = useChainAction(owner, kind);
  if (action === undefined) return <ConnectEthereum size="xs">Connect a wallet to do it yourself</ConnectEthereum>;
  return (
    <Button size="xs" variant="default" disabled={disabled || !action.canBegin} onClick={onReview ?? (() => action.begin(title, work))}>
      {children}
    </Button>
  );
}
