import { Badge, Button, Card, Group, List, Stack, Text, Title } from "@mantine/core";
import type { Hex, ListStatus, RedemptionStatus, TransactionName } from "@fastpay/sdk";
import { useEffect, useRef, type JSX, type RefObject } from "react";
import { Link } from "react-router";

import { ErrorAlert } from "../ui/ErrorAlert";
import { Steps } from "../ui/Steps";
import { TransactionLink } from "../ui/TransactionLink";
import { TransferText } from "../ui/TransferText";
import { useRedemptionStatuses } from "../data/queries";
import { useAuthorityLabel } from "../network/authorities";
import { useNetwork } from "../network/NetworkProvider";
import { Asked } from "./Asked";
import { isHopeless, leftTransaction, listIn, submittedIn, type Activity, type ActivityKind } from "./activities";
import { useActivities, useActivityActions, useResume, useResumeTransactions } from "./ActivityProvider";
import { ListProgress, SaveResult } from "./ListProgress";
import { chainSteps, hindrances, ownSteps, stepsOnPrimary, transferSteps, unlockSteps, type Step } from "./steps";

const BADGES = {
  running: { color: "indigo", text: "On its way" },
  done: { color: "teal", text: "Done" },
  failed: { color: "red", text: "Not done" },
};
/** A warning against repeating an action whose transaction is pending. */
const NOT_AGAIN: Partial<Record<ActivityKind, string>> = {
  deposit: "do not deposit it again",
  payout: "do not submit it again",
  claim: "do not claim it again",
};

/** One activity with its steps, from the order to its settlement. */
export function ActivityCard({ activity }: { activity: Activity }): JSX.Element {
  const isTransfer = activity.kind === "pay" || activity.kind === "redeem" || activity.kind === "resume";
  const out = useOnPrimary(activity);
  const { primaryName } = useNetwork().config;
  const badge = badgeOf(activity, out);
  const card = useSight(activity);
  return (
    <Card ref={card} tabIndex={-1} className="activity" component="section" withBorder aria-label={activity.title} data-activity={activity.kind}>
      <Stack>
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <Title order={2} size="h4" style={{ overflowWrap: "anywhere" }}>
            {activity.title}
          </Title>
          <Badge color={badge.color} variant="light" role="status" style={{ flexShrink: 0 }}>
            {badge.text}
          </Badge>
        </Group>
        {activity.kind === "resume" && <Resumed activity={activity} />}
        {activity.kind === "list" ? (
          <ListProgress activity={activity} />
        ) : (
          <Steps steps={isTransfer ? [...transferSteps(activity, primaryName), ...stepsOnPrimary(activity, out, primaryName)] : ownChainSteps(activity)} label="Progress" />
        )}
        <Asked activity={activity} />
        {activity.state === "running" && <Hindrances activity={activity} />}
        <ErrorAlert error={activity.state === "failed" ? activity.error : undefined}>
          <Left hash={leftTransaction(activity)} kind={activity.kind} />
        </ErrorAlert>
        <Actions activity={activity} />
      </Stack>
    </Card>
  );
}

/** The steps of an unlock, or of a single transaction. */
function ownChainSteps(activity: Activity): Step[] {
  return activity.kind === "unlock" && activity.plan.sent === undefined ? unlockSteps(activity) : chainSteps(activity);
}

/** The state on the Primary of the redemption that the activity ordered; undefined if there is none or it is unknown. */
function useOnPrimary(activity: Activity): RedemptionStatus | undefined {
  const certified = ownSteps(activity).findLast((step) => step.type === "certified");
  const transfer = certified?.certificate.order.transfer;
  const [status] = useRedemptionStatuses(transfer?.type === "redemption" ? [transfer] : []);
  return status?.data;
}

/** The badge of an activity. A redemption is done only when it is paid. */
function badgeOf({ state }: Activity, out: RedemptionStatus | undefined): { color: string; text: string } {
  if (state !== "done" || out === undefined) return BADGES[state];
  switch (out.state) {
    case "open":
      return { color: "indigo", text: "Waiting for a relayer" };
    case "queued":
      return { color: "orange", text: "Queued" };
    case "paid":
      return BADGES.done;
    case "spent":
      return { color: "gray", text: "Spent" };
    case "voided":
    case "displaced":
    case "released":
      return { color: "red", text: "Not paid" };
  }
}

/** An activity counts as just started for this time, in milliseconds. */
const JUST_NOW_MS = 2_000;

/** Scrolls to an activity when it starts and when it fails. */
function useSight({ id, kind, state, startedAtMs }: Activity): RefObject<HTMLDivElement | null> {
  const card = useRef<HTMLDivElement>(null);
  const isNew = kind !== "resume" && Date.now() - startedAtMs < JUST_NOW_MS;
  const first = useRef({ id, isNew });
  if (first.current.id !== id) first.current = { id, isNew };
  useEffect(() => {
    if (!first.current.isNew) return;
    card.current?.focus({ preventScroll: true });
    card.current?.scrollIntoView({ block: "nearest" });
  }, [id]);
  useEffect(() => {
    if (state === "failed") card.current?.scrollIntoView({ block: "nearest" });
  }, [state]);
  return card;
}

/** The order that is being finished. */
function Resumed({ activity }: { activity: Activity }): JSX.Element | null {
  const step = activity.steps.findLast((one) => one.type === "ordered" || one.type === "adopted");
  if (step === undefined) return null;
  return (
    <Text size="sm">
      <TransferText transfer={step.transfer} />
    </Text>
  );
}

function Left({ hash, kind }: { hash: Hex | undefined; kind: ActivityKind }): JSX.Element | null {
  if (hash === undefined) return null;
  return (
    <Text size="sm" style={{ overflowWrap: "anywhere" }}>
      Your wallet sent transaction <TransactionLink hash={hash} />. It continues without this page: {NOT_AGAIN[kind]}. Close this only if you
      cancelled or replaced it in your wallet.
    </Text>
  );
}

function Hindrances({ activity }: { activity: Activity }): JSX.Element | null {
  const list = hindrances(activity, useAuthorityLabel());
  const newest = activity.steps.at(-1);
  if (newest?.type === "node" && newest.failure !== undefined) {
    return <Text size="sm">The Ethereum node does not answer; retrying. Submitted transactions are not affected.</Text>;
  }
  if (list.length === 0) return null;
  return (
    <div>
      <Text size="sm">Some authorities are slow. A quorum is enough.</Text>
      <List size="xs" c="dimmed">
        {list.map((text) => (
          <List.Item key={text}>{text}</List.Item>
        ))}
      </List>
    </div>
  );
}

function Actions({ activity }: { activity: Activity }): JSX.Element | null {
  const { client } = useNetwork();
  const { start, stop, dismiss } = useActivityActions();
  const resume = useResume();
  const resumeTransactions = useResumeTransactions();
  const { id, kind, state, steps, account, plan } = activity;
  const isOrdered = steps.some(({ type }) => type === "ordered");
  // After another activity of its kind, a retry of this one could do the same twice.
  const isLatest = useActivities(account).every((one) => one.kind !== kind || one.id <= id);
  if (state === "running") {
    if (!isOrdered && submittedIn(activity) === undefined) return null;
    return (
      <Group>
        <Button variant="default" size="xs" onClick={() => stop(id)}>
          Stop waiting
        </Button>
      </Group>
    );
  }
  // Finish a signed order or a sent transaction; never make it anew.
  const left = leftTransaction(activity);
  const again = (): void => {
    dismiss(id);
    if (isOrdered) resume(account);
    else if (left !== undefined) resumeTransactions(account);
    else start(plan);
  };
  const close = (): void => {
    dismiss(id);
    // If the storage fails, the transaction is listed again after a reload.
    const type = kind as TransactionName["type"];
    if (left !== undefined) client.forgetTransaction({ type, account, hash: left }).catch(() => undefined);
  };
  const digest = digestOf(activity);
  const list = listIn(activity);
  const isSubmitted = kind !== "unlock" && submittedIn(activity) !== undefined && left === undefined;
  const isLeft = isOrdered || left !== undefined;
  const canRetry = state === "failed" && !isSubmitted && !isHopeless(activity) && (isLatest || isLeft);
  return (
    <Group>
      {canRetry && (
        <Button size="xs" onClick={again}>
          {isOrdered || left !== undefined || isBegun(list) ? "Continue" : "Try again"}
        </Button>
      )}
      {digest !== undefined && (
        <Button component={Link} to={`/explore/transfer/${digest}`} variant="default" size="xs">
          Show its certificate
        </Button>
      )}
      {isBegun(list) && <SaveResult status={list} />}
      <Button variant="subtle" size="xs" onClick={close}>
        Close
      </Button>
    </Group>
  );
}

function isBegun(list: ListStatus | undefined): list is ListStatus {
  return list !== undefined && list.orders.some(({ state }) => state !== "open");
}

function digestOf(activity: Activity): string | undefined {
  const certified = ownSteps(activity).findLast((step) => step.type === "certified");
  return certified?.certificate.digest;
}
