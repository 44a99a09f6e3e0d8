import type { JSX } from "react";

/** The page's icon, inline so that it needs no request. */
export function Logo({ size = 28 }: { size?: number }): JSX.Element {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden>
      <rect width="32" height="32" rx="8" fill="#4338ca" />
      <path d="M17.6 5 7.5 18h6.6L12.6 27 24.5 13h-7.1z" fill="#fff" />
    </svg>
  );
}
