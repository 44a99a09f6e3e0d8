import { Button, Card, Group, Stack, Title } from "@mantine/core";
import { useEffect, useRef, type ComponentProps, type JSX, type MouseEvent, type ReactNode } from "react";

import { Facts } from "./Facts";

interface Props {
  readonly title: string;
  readonly facts: ComponentProps<typeof Facts>["facts"];
  /** Warnings to review. */
  readonly children?: ReactNode;
  /** The button that signs, if there is something to sign. */
  readonly confirm: string | undefined;
  readonly back?: string;
  readonly icon: ReactNode;
  readonly canConfirm: boolean;
  readonly onConfirm: () => void;
  readonly onBack: () => void;
}

/** A complete order or deposit for review before it is signed. */
export function ReviewCard({ title, facts, children, confirm, back = "Back", icon, canConfirm, onConfirm, onBack }: Props): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
    heading.current?.scrollIntoView({ block: "center" });
  }, []);
  // The second half of a double click on the form's button does not confirm.
  const answer = (event: MouseEvent): void => {
    if (event.detail <= 1) onConfirm();
  };
  return (
    <Card withBorder component="section" aria-label="Review">
      <Stack>
        <Title order={2} size="h4" ref={heading} tabIndex={-1} style={{ outline: "none" }}>
          {title}
        </Title>
        <Facts facts={facts} />
        {children}
        <Group>
          {confirm !== undefined && (
            <Button onClick={answer} disabled={!canConfirm} leftSection={icon}>
              {confirm}
            </Button>
          )}
          <Button variant="default" onClick={onBack}>
            {back}
          </Button>
        </Group>
      </Stack>
    </Card>
  );
}
