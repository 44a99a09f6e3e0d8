import type { JSX } from "react";

export function Logo({ size = 28 }: { size?: number }): JSX.Element {
  return <img src="/favicon.svg" alt="" width={size} height={size} />;
}
