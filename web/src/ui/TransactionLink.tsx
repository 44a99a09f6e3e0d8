import type { Hex } from "@fastpay/sdk";
import type { JSX, ReactNode } from "react";
import { Link } from "react-router";

/** A transaction on Ethereum that leads to what it did. */
export function TransactionLink({ hash, children = hash }: { hash: Hex; children?: ReactNode }): JSX.Element {
  return (
    <Link to={`/explore/transaction/${hash}`} title={hash} style={{ overflowWrap: "anywhere" }}>
      {children}
    </Link>
  );
}
