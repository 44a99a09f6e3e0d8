import { Badge, Button, Card, Group, List, Stack, Text, Title } from "@mantine/core";
import { isFastPayError } from "@fastpay/sdk";
import type { JSX } from "react";
import { Link } from "react-router";

import { ErrorAlert } from "../ui/ErrorAlert";
import { Steps } from "../ui/Steps";
import type { Activity } from "./activities";
import { useActivityActions, useResume } from "./ActivityProvider";
import { chainSteps, hindrances, transferSteps } from "./steps";

const BADGES = {
  running: { color: "indigo", text: "On its way" },
  done: { color: "teal", text: "Done" },
  failed: { color: "red", text: "Not done" },
};
/** After these the order may have been sent: it is finished, never made anew. */
const MAY_HAVE_BEEN_SENT = new Set(["no-quorum", "aborted", "too-few-answers", "new-epoch", "conflict"]);

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
        <Steps steps={isTransfer ? transferSteps(activity) : chainSteps(activity)} label="Progress" />
        {activity.state === "running" && <Hindrances activity={activity} />}
        <ErrorAlert error={activity.state === "failed" ? activity.error : undefined} />
        <Actions activity={activity} />
      </Stack>
    </Card>
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
  const { stop, dismiss } = useActivityActions();
  const resume = useResume();
  if (activity.state === "running") {
    const isGivenUp = activity.steps.some((step) => step.type === "ordered" || step.type === "submitted");
    if (!isGivenUp) return null;
    return (
      <Group>
        <Button variant="default" size="xs" onClick={() => stop(activity.id)}>
          Stop waiting
        </Button>
      </Group>
    );
  }
  const digest = digestOf(activity);
  const canResume =
    activity.state === "failed" && isFastPayError(activity.error) && MAY_HAVE_BEEN_SENT.has(activity.error.code);
  return (
    <Group>
      {canResume && (
        <Button
          size="xs"
          onClick={() => {
            dismiss(activity.id);
            resume(activity.account);
          }}
        >
          Go on with it
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
