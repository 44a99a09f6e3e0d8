import { Stack, Text, Title } from "@mantine/core";
import { useEffect, useRef, type JSX, type ReactNode } from "react";
import { useLocation } from "react-router";

interface Props {
  readonly title: string;
  readonly lead?: ReactNode;
  readonly children: ReactNode;
  readonly width?: number;
}

/** A page. Its title is also the window's, and gets the focus after navigation, so that screen readers announce it. */
export function Page({ title, lead, children, width = 560 }: Props): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  const { key } = useLocation();
  useEffect(() => {
    document.title = `${title} · FastPay`;
    // On the first page of a visit, the focus stays where the browser puts it.
    if (key !== "default") heading.current?.focus({ preventScroll: true });
  }, [title, key]);
  return (
    <Stack maw={width} mx="auto" gap="md">
      <div>
        <Title order={1} size="h2" ref={heading} tabIndex={-1} style={{ outline: "none", textWrap: "balance" }}>
          {title}
        </Title>
        {lead !== undefined && (
          <Text c="dimmed" mt={4}>
            {lead}
          </Text>
        )}
      </div>
      {children}
    </Stack>
  );
}
