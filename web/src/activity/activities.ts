/**
 * Activities: transfers and transactions in progress. They continue on other pages. After a reload, they are resumed
 * from the wallet's storage.
 */

import {
  isFastPayError,
  type AccountId,
  type ChainProgress,
  type DelayStep,
  type Hex,
  type ListStatus,
  type ManyProgress,
  type TransferProgress,
} from "@fastpay/sdk";
import type { ComponentProps } from "react";

import type { Facts } from "../ui/Facts";

/** The kind of activity. */
export type ActivityKind = "pay" | "redeem" | "resume" | "deposit" | "payout" | "claim" | "unlock" | "list";

/** A step of any kind of activity. */
export type ActivityProgress = TransferProgress | ChainProgress | ManyProgress;

/** An activity since the page was loaded. */
export interface Activity {
  readonly id: number;
  readonly kind: ActivityKind;
  /** The account. */
  readonly account: AccountId;
  /** The title. */
  readonly title: string;
  readonly startedAtMs: number;
  readonly state: "running" | "done" | "failed";
  /** Newest last. A repeated step replaces its predecessor, so other steps are never dropped. */
  readonly steps: readonly ActivityProgress[];
  readonly error: unknown;
  /** The plan, with which the work can be repeated from the start. */
  readonly plan: ActivityPlan;
}

/** The arguments of the work. */
export interface ActivityControl {
  readonly report: (progress: ActivityProgress) => void;
  readonly signal: AbortSignal;
}

/** The work of an activity, and its description. */
export interface ActivityPlan {
  readonly kind: ActivityKind;
  readonly account: AccountId;
  readonly title: string;
  readonly work: (control: ActivityControl) => Promise<unknown>;
  /** The reviewed facts, if the steps do not contain them. Shown while the wallet asks for a signature. */
  readonly facts?: ComponentProps<typeof Facts>["facts"];
  /** The transaction that it follows, if an earlier visit sent it. */
  readonly sent?: Hex;
}

/** The Ethereum transaction that the activity sent or follows; undefined if there is none. */
export function submittedIn({ steps, plan }: Activity): Hex | undefined {
  return steps.findLast((step) => step.type === "submitted")?.hash ?? plan.sent;
}

/** Errors that a retry cannot change. */
const HOPELESS = new Set(["invalid-list", "superseded", "reverted", "not-found", "never-paid", "invalid-transfer", "invalid-link"]);

/** The progress of its list; undefined for other activities, or before the first check. */
export function listIn({ steps }: Activity): ListStatus | undefined {
  return steps.findLast((step) => step.type === "list")?.status;
}

/** True if a retry would end in the same way. */
export function isHopeless({ error }: Activity): boolean {
  return isFastPayError(error) && HOPELESS.has(error.code);
}

/**
 * The sent transaction that the page no longer follows and that may still be included. Undefined for an unlock, which
 * continues with its own transactions.
 */
export function leftTransaction(activity: Activity): Hex | undefined {
  if (activity.kind === "unlock" && activity.plan.sent === undefined) return undefined;
  return activity.state === "failed" && !isHopeless(activity) ? submittedIn(activity) : undefined;
}

const ACTIVITIES_MAX = 20;

const REPLACED: ReadonlySet<ActivityProgress["type"]> = new Set(["node", "list", "finalizing", "relayed", "unlock-votes"]);

/**
 * True if the newer step replaces the older one: both are delays of the same authority, or have the same type in
 * `REPLACED`.
 */
function isOutdatedBy(older: ActivityProgress, newer: ActivityProgress): boolean {
  if (isDelay(older) && isDelay(newer)) return older.authority.url === newer.authority.url;
  return REPLACED.has(older.type) && newer.type === older.type;
}

function isDelay(step: ActivityProgress): step is ActivityProgress & DelayStep {
  return step.type === "waiting" || step.type === "catching-up";
}

/** All activities since the page was loaded, newest first, as a store for React. */
export class Activities {
  #list: readonly Activity[] = [];
  #listeners = new Set<() => void>();
  #aborts = new Map<number, AbortController>();
  #lastId = 0;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly list = (): readonly Activity[] => this.#list;

  /** Starts an activity and returns its id. `ended` is called when it ends, successfully or not. */
  start(plan: ActivityPlan, ended: () => void): number {
    this.#lastId += 1;
    const id = this.#lastId;
    const { kind, account, title } = plan;
    const base = { id, kind, account, title, plan, startedAtMs: Date.now() };
    const abort = new AbortController();
    this.#aborts.set(id, abort);
    this.#set([{ ...base, state: "running", steps: [], error: undefined }, ...this.#list.slice(0, ACTIVITIES_MAX - 1)]);
    const report = (progress: ActivityProgress): void =>
      this.#change(id, ({ steps }) => ({ steps: [...steps.filter((step) => !isOutdatedBy(step, progress)), progress] }));
    plan
      .work({ report, signal: abort.signal })
      .then(
        () => this.#change(id, () => ({ state: "done" })),
        (error: unknown) => this.#change(id, () => ({ state: "failed", error })),
      )
      .finally(() => {
        this.#aborts.delete(id);
        ended();
      });
    return id;
  }

  /** Stops an activity. A sent order or transaction may still happen. */
  stop(id: number): void {
    this.#aborts.get(id)?.abort();
  }

  /** Dismisses an ended activity. */
  dismiss(id: number): void {
    this.#set(this.#list.filter((one) => one.id !== id || one.state === "running"));
  }

  #change(id: number, change: (activity: Activity) => Partial<Activity>): void {
    this.#set(this.#list.map((one) => (one.id === id ? { ...one, ...change(one) } : one)));
  }

  #set(list: readonly Activity[]): void {
    this.#list = list;
    for (const listener of this.#listeners) listener();
  }
}
