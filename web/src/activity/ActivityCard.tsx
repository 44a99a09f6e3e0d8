import { Badge, Button, Card, Group, List, Stack, Text, Title } from "@mantine/core";
import { isFastPayError } from "@fastpay/sdk";
import type { JSX } from "react";
import { Link } from "react-router";

import { ErrorAlert } from "../ui/ErrorAlert";
import { Steps } from "../ui/Steps";
import { TransferText } from "../ui/TransferText";
import type { Activity } from "./activities";
import { useActivityActions, useResume } from "./ActivityProvider";
import { chainSteps, hindrances, transferSteps } from "./steps";

const BADGES = {
  running: { color: "indigo", text: "On its way" },
  done: { color: "teal", text: "Done" },
  failed: { color: "red", text: "Not done" },
};
/** These will not end otherwise, however often it is tried. */
const HOPELESS = new Set(["superseded", "reverted", "invalid-transfer"]);

/** One piece of work with its steps, from the order to its settlement. */
export function ActivityCard({ activity }: { activity: Activity }): JSX.Element {
  const isTransfer = activity.kind === "pay" || activity.kind === "redeem" || activity.kind === "resume";
  const badge = BADGES[activity.state];
  return (
    <Card component="section" withBorder aria-label={activity.title} data-activity={activity.kind}>
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
        <Steps steps={isTransfer ? transferSteps(activity) : chainSteps(activity)} label="Progress" />
        {activity.state === "running" && <Hindrances activity={activity} />}
        <ErrorAlert error={activity.state === "failed" ? activity.error : undefined} />
        <Actions activity={activity} />
      </Stack>
    </Card>
  );
}

/** Which order is being finished. */
function Resumed({ activity }: { activity: Activity }): JSX.Element | null {
  const step = activity.steps.findLast((one) => one.type === "ordered" || one.type === "adopted");
  if (step === undefined) return null;
  return (
    <Text size="sm">
      <TransferText transfer={step.transfer} />
    </Text>
  );
}

function Hindrances({ activity }: { activity: Activity }): JSX.Element | null {
  const list = hindrances(activity);
  if (list.length === 0) return null;
  return (
    <div>
      <Text size="sm">Some authorities are slow; a quorum suffices.</Text>
      <List size="xs" c="dimmed">
        {list.map((text) => (
          <List.Item key={text}>{text}</List.Item>
        ))}
      </List>
    </div>
  );
}

function Actions({ activity }: { activity: Activity }): JSX.Element | null {
  const { start, stop, dismiss } = useActivityActions();
  const resume = useResume();
  const { id, state, steps, error, account, plan } = activity;
  const isOrdered = steps.some(({ type }) => type === "ordered");
  if (state === "running") {
    const isSent = isOrdered || steps.some(({ type }) => type === "submitted");
    if (!isSent) return null;
    return (
      <Group>
        <Button variant="default" size="xs" onClick={() => stop(id)}>
          Stop waiting
        </Button>
      </Group>
    );
  }
  // An order that was signed is finished, never made anew.
  const again = (): void => {
    dismiss(id);
    if (isOrdered) resume(account);
    else start(plan);
  };
  const digest = digestOf(activity);
  const isSubmitted = steps.some(({ type }) => type === "submitted");
  const canRetry = state === "failed" && !isSubmitted && !(isFastPayError(error) && HOPELESS.has(error.code));
  return (
    <Group>
      {canRetry && (
        <Button size="xs" onClick={again}>
          {isOrdered ? "Go on with it" : "Try again"}
        </Button>
      )}
      {digest !== undefined && (
        <Button component={Link} to={`/explore/transfer/${digest}`} variant="default" size="xs">
          Show its certificate
        </Button>
      )}
      <Button variant="subtle" size="xs" onClick={() => dismiss(activity.id)}>
        Close
      </Button>
    </Group>
  );
}

function digestOf({ steps }: Activity): string | undefined {
  const certified = steps.findLast((step) => step.type === "certified");
  return certified?.certificate.digest;
}
