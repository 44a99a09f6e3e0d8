import { Text } from "@mantine/core";
import type { JSX, ReactNode } from "react";

/** A list of named facts. Omits facts that are undefined, null, false or empty. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, fact: ReactNode])[] }): JSX.Element {
  return (
    <dl className="facts">
      {facts.map(([name, fact]) =>
        fact === undefined || fact === null || fact === "" || fact === false ? null : (
          <div key={name}>
            <Text component="dt" size="sm" c="dimmed">
              {name}
            </Text>
            <Text component="dd" size="sm" style={{ overflowWrap: "anywhere" }}>
              {fact}
            </Text>
          </div>
        ),
      )}
    </dl>
  );
}
