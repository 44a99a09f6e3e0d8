import { useQueryClient } from "@tanstack/react-query";
import { createContext, useCallback, useContext, useEffect, useState, useSyncExternalStore, type JSX, type ReactNode } from "react";
import type { AccountId, Address, SubmittedTransaction } from "@fastpay/sdk";

import { useKnownAssets } from "../data/assets";
import { refreshAccount, refreshHistory, shown } from "../data/queries";
import { useOwners } from "../account/OwnerProvider";
import { useNetwork } from "../network/NetworkProvider";
import { money } from "../ui/words";
import { Activities, submittedIn, type Activity, type ActivityPlan } from "./activities";

const ActivityContext = createContext<Activities | undefined>(undefined);

function useStore(): Activities {
  const store = useContext(ActivityContext);
  if (store === undefined) throw new Error("activities are used outside of ActivityProvider");
  return store;
}

/** All activities of these accounts since the page was loaded, newest first. */
export function useActivities(...accounts: (AccountId | undefined)[]): readonly Activity[] {
  const store = useStore();
  const list = useSyncExternalStore(store.subscribe, store.list);
  return list.filter((one) => accounts.includes(one.account));
}

/** Functions to start, stop and dismiss an activity. */
export function useActivityActions(): {
  readonly start: (plan: ActivityPlan) => number;
  readonly stop: (id: number) => void;
  readonly dismiss: (id: number) => void;
} {
  const store = useStore();
  const queries = useQueryClient();
  const start = useCallback(
    (plan: ActivityPlan) =>
      // The history also shows this browser's own orders.
      store.start(plan, () => void refreshAccount(queries, plan.account).then(() => refreshHistory(queries, plan.account))),
    [store, queries],
  );
  const stop = useCallback((id: number) => store.stop(id), [store]);
  const dismiss = useCallback((id: number) => store.dismiss(id), [store]);
  return { start, stop, dismiss };
}

/** Holds the page's activities, and finishes the orders and transactions of an earlier visit. */
export function ActivityProvider({ children }: { children: ReactNode }): JSX.Element {
  const [store] = useState(() => new Activities());
  return (
    <ActivityContext value={store}>
      <Recovery />
      {children}
    </ActivityContext>
  );
}

/**
 * Resumes an account's unfinished orders and transactions as soon as its owner is connected. Beside a key, also resumes
 * the transactions of the connected wallet. Needs no signature.
 */
function Recovery(): null {
  const { owner } = useOwners();
  const account = owner?.account;
  const beside = owner?.ethereum?.account;
  const resume = useResume();
  const resumeTransactions = useResumeTransactions();
  const { client } = useNetwork();
  useEffect(() => {
    if (account === undefined) return undefined;
    let isCurrent = true;
    resumeTransactions(account);
    client.unfinished(account).then(
      (orders) => isCurrent && orders.length > 0 && resume(account),
      // If the storage fails, paying reports the error and what to do.
      () => undefined,
    );
    return () => {
      isCurrent = false;
    };
  }, [account, client, resume, resumeTransactions]);
  useEffect(() => {
    if (beside !== undefined && beside !== account) resumeTransactions(beside);
  }, [account, beside, resumeTransactions]);
  return null;
}

/** Finishes an account's unfinished orders. Does nothing while other work on the account is running. */
export function useResume(): (account: AccountId) => void {
  const store = useStore();
  const { client } = useNetwork();
  const { start } = useActivityActions();
  return useCallback(
    (account: AccountId) => {
      if (isOrdering(store.list(), account)) return;
      start({
        kind: "resume",
        account,
        title: "Finish an earlier order",
        work: ({ report, signal }) => client.resume(account, { onProgress: report, signal }),
      });
    },
    [store, client, start],
  );
}

/** Returns a function that follows an account's sent transactions to their end, each at most once. */
export function useResumeTransactions(): (account: AccountId) => void {
  const store = useStore();
  const { client } = useNetwork();
  const { start } = useActivityActions();
  const { assets: known } = useKnownAssets();
  return useCallback(
    (account: AccountId) => {
      const label = async (asset: Address, amount?: bigint): Promise<string> => {
        const info = await client.assetInfo(asset).catch(() => undefined);
        if (info === undefined) return "a token";
        return amount === undefined ? shown(info, known).label : money(amount, shown(info, known));
      };
      const follow = async (sent: SubmittedTransaction): Promise<void> => {
        const title = await titleOf(sent, label);
        if (store.list().some((one) => submittedIn(one) === sent.hash)) return;
        start({
          kind: sent.type,
          account,
          title,
          work: ({ report, signal }) => client.resumeTransaction(sent, { onProgress: report, signal }),
          sent: sent.hash,
        });
      };
      client.unfinishedTransactions(account).then(
        (transactions) => transactions.forEach((sent) => void follow(sent)),
        // If the storage fails, sent transactions proceed all the same.
        () => undefined,
      );
    },
    [store, client, start, known],
  );
}

async function titleOf(sent: SubmittedTransaction, label: (asset: Address, amount?: bigint) => Promise<string>): Promise<string> {
  switch (sent.type) {
    case "deposit":
      return `Deposit ${await label(sent.asset, sent.amount)}`;
    case "payout":
      return payoutTitle(sent.sequence, sent.from === "queued");
    case "claim":
      return `Claim ${await label(sent.asset)}`;
    case "unlock":
      return sent.step === "request" ? "Request an unlock on Ethereum" : "Submit the authorities' votes to Ethereum";
  }
}

/** The title of a redemption's payout; `isQueued` if it has waited in the contract. */
export function payoutTitle(sequence: bigint, isQueued: boolean): string {
  return isQueued ? `Pay out redemption #${sequence}` : `Submit redemption #${sequence} to Ethereum`;
}

/** True while an order of the account is on its way: a second one has to wait for it. */
export function isOrdering(activities: readonly Activity[], account: AccountId | undefined): boolean {
  const kinds = new Set(["pay", "redeem", "resume", "list", "unlock"]);
  return activities.some((one) => one.account === account && one.state === "running" && kinds.has(one.kind));
}
