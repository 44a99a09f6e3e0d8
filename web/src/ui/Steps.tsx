import { Group, Loader, Stack, Text, ThemeIcon, VisuallyHidden } from "@mantine/core";
import type { JSX } from "react";

import type { Step } from "../activity/steps";
import { TransactionLink } from "./TransactionLink";
import { IconCheck, IconCircle, IconX } from "./icons";

const STATES = { todo: "pending", active: "in progress", done: "done", failed: "not done" };

/** Steps in order; each change is announced to screen readers. */
export function Steps({ steps, label }: { steps: readonly Step[]; label: string }): JSX.Element {
  return (
    <Stack component="ol" gap="xs" p={0} m={0} aria-label={label} aria-live="polite" style={{ listStyle: "none" }}>
      {steps.map((step) => (
        <Group component="li" key={step.label} gap="sm" wrap="nowrap" align="flex-start" data-state={step.state}>
          <StepIcon state={step.state} />
          <div>
            <Text size="sm" fw={step.state === "active" ? 600 : 400} {...(step.state === "todo" ? { c: "dimmed" } : {})}>
              {step.label}
              <VisuallyHidden>: {STATES[step.state]}</VisuallyHidden>
            </Text>
            {step.detail !== undefined && (
              <Text size="xs" c="dimmed">
                {step.transaction === undefined ? step.detail : <TransactionLink hash={step.transaction}>{step.detail}</TransactionLink>}
              </Text>
            )}
          </div>
        </Group>
      ))}
    </Stack>
  );
}

function StepIcon({ state }: { state: Step["state"] }): JSX.Element {
  if (state === "active") return <Loader size={22} aria-hidden />;
  const icons = { todo: <IconCircle size={14} />, done: <IconCheck size={14} />, failed: <IconX size={14} /> };
  const colors = { todo: "gray", done: "teal", failed: "red" };
  return (
    <ThemeIcon size={22} radius="xl" color={colors[state]} variant={state === "todo" ? "light" : "filled"} aria-hidden>
      {icons[state]}
    </ThemeIcon>
  );
}
