import type { Hex } from "@fastpay/sdk";
import type { JSX, ReactNode } from "react";
import { Link } from "react-router";

/** A link to the page of an Ethereum transaction. */
export function TransactionLink({ hash, children = hash }: { hash: Hex; children?: ReactNode }): JSX.Element {
  return (
    <Link to={`/explore/transaction/${hash}`} title={hash} style={{ overflowWrap: "anywhere" }}>
      {children}
    </Link>
  );
}
