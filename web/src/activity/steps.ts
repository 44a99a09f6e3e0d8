/** An activity's progress as a short list of steps, each to come, under way, done or failed. */

import type { AuthorityRef, Hex, RedemptionStatus } from "@fastpay/sdk";

import { failureText } from "../ui/failures";
import { count, duration, shorten, timeText } from "../ui/words";
import { listIn, type Activity, type ActivityProgress } from "./activities";

/** One line of the list. */
export interface Step {
  readonly label: string;
  readonly state: "todo" | "active" | "done" | "failed";
  readonly detail: string | undefined;
  /** The transaction on Ethereum that the detail names. */
  readonly transaction?: Hex | undefined;
}

type Of<T extends ActivityProgress["type"]> = Extract<ActivityProgress, { type: T }>;

function last<T extends ActivityProgress["type"]>(steps: readonly ActivityProgress[], type: T): Of<T> | undefined {
  return steps.findLast((step): step is Of<T> => step.type === type);
}

function after(step: ActivityProgress | undefined): string | undefined {
  return step && `after ${duration(step.afterMs)}`;
}

/** Marks the first unfinished step as active or failed. */
function arrange(activity: Activity, lines: readonly (Omit<Step, "state"> & { isDone: boolean })[]): Step[] {
  const current = lines.findIndex(({ isDone }) => !isDone);
  return lines.map(({ isDone, ...line }, index) => {
    const isCurrent = index === current;
    const state = isDone || activity.state === "done" ? "done" : !isCurrent ? "todo" : activity.state === "failed" ? "failed" : "active";
    return { ...line, state };
  });
}

/**
 * The steps of the activity's order: the one that it made, or the newest one that it finishes. Omits the steps of
 * another copy's order that took the number.
 */
export function ownSteps({ kind, steps }: Activity): readonly ActivityProgress[] {
  const names = ({ type }: ActivityProgress): boolean => type === "ordered" || type === "adopted";
  const start = steps.findLastIndex((step) => (kind === "resume" ? names(step) : step.type === "ordered"));
  if (start < 0) return steps;
  const end = steps.findIndex((step, index) => index > start && names(step));
  return steps.slice(start, end < 0 ? undefined : end);
}

/** Steps after which the wallet no longer waits for a signature. */
const ANSWERS: ReadonlySet<ActivityProgress["type"]> = new Set(["ordered", "adopted", "finishing", "submitted", "approval-submitted", "relayed"]);

/** The step for which the wallet waits for a signature now; undefined if there is none. */
export function askedStep(activity: Activity): Of<"signing"> | undefined {
  const { state, steps } = activity;
  const asked = last(steps, "signing");
  if (state !== "running" || asked === undefined) return undefined;
  if (steps.slice(steps.indexOf(asked)).some(({ type }) => ANSWERS.has(type))) return undefined;
  // The orders of a list report no steps of their own, so see whether the list has this order.
  const isSigned = "transfer" in asked && listIn(activity)?.orders.some(({ sequence }) => sequence === asked.transfer.sequence);
  return isSigned === true ? undefined : asked;
}

/** The steps of an order: signed, certified, settled. */
export function transferSteps(activity: Activity, primaryName: string): Step[] {
  const steps = ownSteps(activity);
  const [ordered, vote, certified] = [last(steps, "ordered"), last(steps, "vote"), last(steps, "certified")];
  const [confirmed, settled] = [last(steps, "confirmed"), last(steps, "settled")];
  const isAsked = askedStep(activity) !== undefined;
  const votes = vote && `${vote.votes} of ${count(vote.quorum, "vote")}`;
  const confirmations = confirmed && `${confirmed.confirmations} of ${count(confirmed.quorum, "confirmation")}`;
  return arrange(activity, [
    {
      label: activity.kind === "resume" ? "Found in this browser" : "Signed and stored in this browser",
      isDone: ordered !== undefined || certified !== undefined,
      detail: isAsked ? "waiting for your signature" : undefined,
    },
    {
      label: "Certified: a quorum of authorities voted for it",
      isDone: certified !== undefined,
      detail: join(votes, since(certified, ordered)),
    },
    {
      label: isOut(activity) ? `Settled and final: anyone can submit it to ${primaryName}` : "Settled and final: the money has arrived",
      isDone: settled !== undefined,
      detail: join(confirmations, since(settled, certified)),
    },
  ]);
}

/** The steps of a redemption after settlement; none if its state on the Primary is unknown. */
export function stepsOnPrimary({ state }: Activity, out: RedemptionStatus | undefined, primaryName: string): Step[] {
  if (out === undefined) return [];
  const label = `Paid on ${primaryName}`;
  switch (out.state) {
    case "paid":
      return [{ label, state: "done", detail: out.hash && `as ${shorten(out.hash, 10, 6)}`, transaction: out.hash }];
    case "open":
    case "queued": {
      const detail = out.state === "queued" ? "waiting in the contract's queue" : "anyone can submit it";
      return [{ label, state: state === "done" ? "active" : "todo", detail }];
    }
    default:
      return [{ label, state: out.state === "spent" ? "todo" : "failed", detail: UNPAID[out.state] }];
  }
}

const UNPAID = {
  spent: "its number is spent; the Ethereum node does not report on which order",
  voided: "its number was voided",
  displaced: "its number was spent on another order; the amount returns to the account",
  released: "it was released from the contract's queue; the amount returns to the account",
};

/** True if the order is a redemption. */
function isOut({ kind, steps }: Activity): boolean {
  return kind === "redeem" || last(steps, "ordered")?.transfer.type === "redemption";
}

function since(step: ActivityProgress | undefined, from: ActivityProgress | undefined): string | undefined {
  return step && `in ${duration(step.afterMs - (from?.afterMs ?? 0))}`;
}

function join(...parts: (string | undefined)[]): string | undefined {
  const present = parts.filter((part) => part !== undefined);
  return present.length === 0 ? undefined : present.join(", ");
}

const SIGNING = {
  permit: "sign the permit",
  approval: "confirm the approval",
  transaction: "confirm the transaction",
  "unlock-request": "sign the request",
};

function signingDetail(steps: readonly ActivityProgress[]): string | undefined {
  const signing = steps.findLast((step) => step.type === "signing");
  return signing !== undefined && "what" in signing ? `${SIGNING[signing.what]} in your wallet` : undefined;
}

/** The reason why there is no hash: the transaction is not signed yet, or another account was faster. */
function unsentDetail({ state, steps }: Activity): string | undefined {
  if (state === "running") return signingDetail(steps);
  return state === "done" ? "another account submitted it" : undefined;
}

function blocksLeft(steps: readonly ActivityProgress[]): string | undefined {
  const left = last(steps, "finalizing");
  return left && `${count(left.blocks, "block")} until it is final`;
}

/** The steps of the user's own transaction: a deposit or a payout. */
export function chainSteps(activity: Activity): Step[] {
  const { steps, kind } = activity;
  const [submitted, included] = [last(steps, "submitted"), last(steps, "included")];
  const [final, credited] = [last(steps, "final"), last(steps, "credited")];
  const vote = last(steps, "vote");
  // Only for a redemption whose certificate is older than the committee's current keys.
  const voted = vote && {
    label: "Certified again by the current committee",
    isDone: vote.votes >= vote.quorum,
    detail: `${vote.votes} of ${count(vote.quorum, "vote")}`,
  };
  const lines = [
    ...(voted === undefined ? [] : [voted]),
    {
      label: "Submitted to Ethereum",
      isDone: submitted !== undefined,
      detail: submitted ? `as ${shorten(submitted.hash, 10, 6)}` : unsentDetail(activity),
      transaction: submitted?.hash,
    },
    { label: "In a block", isDone: included !== undefined, detail: included && `${included.block}, ${after(included)}` },
  ];
  if (kind !== "deposit") return arrange(activity, lines);
  const isCredited = credited !== undefined && credited.authorities >= credited.quorum;
  return arrange(activity, [
    ...lines,
    { label: "Final on Ethereum", isDone: final !== undefined, detail: final === undefined ? blocksLeft(steps) : after(final) },
    {
      label: "Credited in FastPay",
      isDone: isCredited,
      // More authorities than needed may have credited it, and "4 of 3" would be wrong.
      detail:
        credited &&
        join(`${count(credited.authorities, "authority", "authorities")}, ${credited.quorum} are needed`, after(credited)),
    },
  ]);
}

const UNLOCKED = {
  voided: "The account can pay again: the number is void, and nothing was paid",
  finished: "The account can pay again: one of the orders was finished and is valid",
};

/** The steps of an unlock: a request, votes, a decision. */
export function unlockSteps(activity: Activity): Step[] {
  const { steps } = activity;
  const voting = steps.findIndex(({ type }) => type === "unlock-votes");
  const votes = last(steps, "unlock-votes");
  const [asking, deciding] = voting < 0 ? [steps, []] : [steps.slice(0, voting), steps.slice(voting)];
  const unlocked = last(steps, "unlocked");
  // The votes suffice as soon as the wallet is asked to submit them.
  const isEnough = unlocked !== undefined || last(deciding, "signing") !== undefined || last(deciding, "submitted") !== undefined;
  const relayed = last(steps, "relayed");
  const byRelayer = relayed && `by ${new URL(relayed.relayer).host}`;
  return arrange(activity, [
    {
      label: "Unlock requested on Ethereum",
      isDone: votes !== undefined,
      detail: votes === undefined ? (blocksLeft(asking) ?? byRelayer ?? sentDetail(asking)) : undefined,
      transaction: votes === undefined ? last(asking, "submitted")?.hash : undefined,
    },
    { label: "Authorities' votes", isDone: isEnough, detail: votes && votesText(votes) },
    {
      label: "Decision on Ethereum",
      isDone: unlocked !== undefined || last(deciding, "final") !== undefined,
      detail: blocksLeft(deciding) ?? byRelayer ?? sentDetail(deciding),
      transaction: last(deciding, "submitted")?.hash,
    },
    {
      label: unlocked === undefined ? "The account can pay again" : UNLOCKED[unlocked.outcome],
      isDone: unlocked !== undefined,
      detail: after(unlocked),
    },
  ]);
}

function sentDetail(steps: readonly ActivityProgress[]): string | undefined {
  const submitted = last(steps, "submitted");
  return submitted ? `as ${shorten(submitted.hash, 10, 6)}` : signingDetail(steps);
}

/** The number of votes, and the time from which they suffice. */
function votesText({ attesting, voiding, members, quorum, voidableFrom, unanimousFrom }: Of<"unlock-votes">): string {
  if (attesting > 0) return `${attesting} of ${quorum} needed authorities know a certified payment with this number`;
  const text = `${voiding} of ${members} authorities know of no certified payment with this number`;
  const from = Number(voiding < members || voidableFrom < unanimousFrom ? voidableFrom : unanimousFrom) * 1_000;
  if (from <= Date.now()) return text;
  return `${text}; ${voiding < members ? `${quorum} suffice` : "that counts"} from ${timeText(from)} on`;
}

/** The newest delay of each authority, in a fixed order. */
export function hindrances(activity: Activity, nameOf: (authority: AuthorityRef) => string): string[] {
  const byAuthority = new Map<string, string>();
  for (const step of activity.steps) {
    if (step.type === "waiting") byAuthority.set(step.authority.url, `${nameOf(step.authority)} ${failureText(step.failure)}`);
    if (step.type === "catching-up") byAuthority.set(step.authority.url, `${nameOf(step.authority)} is being brought up to date`);
    if (step.type === "vote" || step.type === "confirmed") byAuthority.delete(step.authority.url);
  }
  return [...byAuthority.values()].sort();
}
