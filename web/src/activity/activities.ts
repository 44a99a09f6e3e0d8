/**
 * What the page is doing for the person: transfers and transactions on their way. They go on while the person looks
 * at other pages; what a reload cuts off is resumed from the wallet's storage.
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

/** What kind of work it is. */
export type ActivityKind = "pay" | "redeem" | "resume" | "deposit" | "payout" | "claim" | "list";

/** A step of it, of whatever kind. */
export type ActivityProgress = TransferProgress | ChainProgress | ManyProgress;

/** Work that is or was done since the page was loaded. */
export interface Activity {
  readonly id: number;
  readonly kind: ActivityKind;
  /** For whom. */
  readonly account: AccountId;
  /** What it is, for people. */
  readonly title: string;
  readonly startedAtMs: number;
  readonly state: "running" | "done" | "failed";
  /** Newest last. Of what is said over and over only the newest word: none of the others is lost, however long it takes. */
  readonly steps: readonly ActivityProgress[];
  readonly error: unknown;
  /** How to do the same again, from the start. */
  readonly plan: ActivityPlan;
}

/** What work is given. */
export interface ActivityControl {
  readonly report: (progress: ActivityProgress) => void;
  readonly signal: AbortSignal;
}

/** What is to be done. */
export interface ActivityPlan {
  readonly kind: ActivityKind;
  readonly account: AccountId;
  readonly title: string;
  readonly work: (control: ActivityControl) => Promise<unknown>;
  /** The transaction that it follows, where an earlier visit sent it. */
  readonly sent?: Hex;
}

/** The transaction on Ethereum that was sent for it; none where none was. */
export function submittedIn({ steps, plan }: Activity): Hex | undefined {
  return steps.findLast((step) => step.type === "submitted")?.hash ?? plan.sent;
}

/** These will not end otherwise, however often it is tried. */
const HOPELESS = new Set(["invalid-list", "superseded", "reverted", "not-found", "invalid-transfer", "invalid-link"]);

/** How far the list is that it pays; none where it pays none, or has not looked yet. */
export function listIn({ steps }: Activity): ListStatus | undefined {
  return steps.findLast((step) => step.type === "list")?.status;
}

/** Trying it again ends the same. */
export function isHopeless({ error }: Activity): boolean {
  return isFastPayError(error) && HOPELESS.has(error.code);
}

/** The transaction that was sent for it, that nobody here waits for any more, and which goes on all the same. */
export function leftTransaction(activity: Activity): Hex | undefined {
  return activity.state === "failed" && !isHopeless(activity) ? submittedIn(activity) : undefined;
}

const ACTIVITIES_MAX = 20;

const REPLACED: ReadonlySet<ActivityProgress["type"]> = new Set(["node", "list", "finalizing"]);

/** What the newer step says is all that counts of the older one: what holds an authority up, whether the node answers, or how many blocks are missing. */
function isOutdatedBy(older: ActivityProgress, newer: ActivityProgress): boolean {
  if (isDelay(older) && isDelay(newer)) return older.authority.url === newer.authority.url;
  return REPLACED.has(older.type) && newer.type === older.type;
}

function isDelay(step: ActivityProgress): step is ActivityProgress & DelayStep {
  return step.type === "waiting" || step.type === "catching-up";
}

/** All work since the page was loaded, newest first; a store that React can follow. */
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

  /** Starts work and answers with its id at once; `ended` is called however it ends. */
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

  /** Gives work up. What was sent may still happen. */
  stop(id: number): void {
    this.#aborts.get(id)?.abort();
  }

  /** Takes ended work off the list. */
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
