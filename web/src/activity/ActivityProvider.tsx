import { useQueryClient } from "@tanstack/react-query";
import { createContext, useCallback, useContext, useEffect, useState, useSyncExternalStore, type JSX, type ReactNode } from "react";
import type { AccountId, SubmittedDeposit } from "@fastpay/sdk";

import { useKnownAssets } from "../data/assets";
import { refreshAccount, shown } from "../data/queries";
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

/** All work of an account since the page was loaded, newest first. */
export function useActivities(account: AccountId | undefined): readonly Activity[] {
  const store = useStore();
  const list = useSyncExternalStore(store.subscribe, store.list);
  return list.filter((one) => one.account === account);
}

/** One piece of work; none where it was taken off the list. */
export function useActivity(id: number | undefined): Activity | undefined {
  const store = useStore();
  return useSyncExternalStore(store.subscribe, store.list).find((one) => one.id === id);
}

/** How to start work, give it up, and take it off the list. */
export function useActivityActions(): {
  readonly start: (plan: ActivityPlan) => number;
  readonly stop: (id: number) => void;
  readonly dismiss: (id: number) => void;
} {
  const store = useStore();
  const queries = useQueryClient();
  const start = useCallback(
    (plan: ActivityPlan) => store.start(plan, () => void refreshAccount(queries, plan.account)),
    [store, queries],
  );
  const stop = useCallback((id: number) => store.stop(id), [store]);
  const dismiss = useCallback((id: number) => store.dismiss(id), [store]);
  return { start, stop, dismiss };
}

/** Keeps the page's work, and finishes what an earlier visit left unfinished. */
export function ActivityProvider({ children }: { children: ReactNode }): JSX.Element {
  const [store] = useState(() => new Activities());
  return (
    <ActivityContext value={store}>
      <Recovery />
      {children}
    </ActivityContext>
  );
}

/** Resumes an account's unfinished orders and deposits as soon as its owner is here. It needs no signature. */
function Recovery(): null {
  const { owner } = useOwners();
  const account = owner?.account;
  const resume = useResume();
  const resumeDeposits = useResumeDeposits();
  const { client } = useNetwork();
  useEffect(() => {
    if (account === undefined) return undefined;
    let isCurrent = true;
    resumeDeposits(account);
    client.unfinished(account).then(
      (orders) => isCurrent && orders.length > 0 && resume(account),
      // The storage fails: paying says so, with what to do.
      () => undefined,
    );
    return () => {
      isCurrent = false;
    };
  }, [account, client, resume, resumeDeposits]);
  return null;
}

/** How to finish what is unfinished of an account; nothing happens while some work on it is running. */
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
        title: "Finish what was left unfinished",
        work: ({ report, signal }) => client.resume(account, { onProgress: report, signal }),
      });
    },
    [store, client, start],
  );
}

/** How to follow the deposits of an account that were sent and are not credited; none is followed twice. */
export function useResumeDeposits(): (account: AccountId) => void {
  const store = useStore();
  const { client } = useNetwork();
  const { start } = useActivityActions();
  const { assets: known } = useKnownAssets();
  return useCallback(
    (account: AccountId) => {
      const follow = async (deposit: SubmittedDeposit): Promise<void> => {
        const info = await client.assetInfo(deposit.asset).catch(() => undefined);
        if (store.list().some((one) => submittedIn(one) === deposit.hash)) return;
        start({
          kind: "deposit",
          account,
          title: info === undefined ? "Deposit of a token" : `Deposit ${money(deposit.amount, shown(info, known))}`,
          work: ({ report, signal }) => client.resumeDeposit(deposit, { onProgress: report, signal }),
        });
      };
      client.unfinishedDeposits(account).then(
        (deposits) => deposits.forEach((deposit) => void follow(deposit)),
        // The storage fails: what was sent is credited all the same.
        () => undefined,
      );
    },
    [store, client, start, known],
  );
}

/** True while an order of the account is on its way: a second one has to wait for it. */
export function isOrdering(activities: readonly Activity[], account: AccountId | undefined): boolean {
  const kinds = new Set(["pay", "redeem", "resume"]);
  return activities.some((one) => one.account === account && one.state === "running" && kinds.has(one.kind));
}
