/** Settles a certified transfer: returns after a quorum confirmed it, and continues with the others in the background. */

import type { VerifiedCertificate } from "../certificate.js";
import { confirm } from "./catch-up.js";
import type { Operation } from "./certify.js";
import { untilQuorum } from "./everyone.js";

/** A certificate that a quorum confirmed. */
export interface Settled {
  /** Continues with the other authorities for a bounded time. Resolves to the number of authorities that confirmed. */
  readonly rest: Promise<number>;
}

/**
 * Sends a certificate to all authorities, until a quorum has confirmed it. Throws `no-quorum` or `aborted`; the
 * transfer stays certified, and the call may be repeated.
 */
export async function settle(operation: Operation, certificate: VerifiedCertificate): Promise<Settled> {
  const { network, timing, report } = operation;
  const { quorum } = network.committee;
  let confirmations = 0;
  const { rest } = await untilQuorum(operation, {
    what: "confirmations",
    quorum,
    backgroundMs: timing.backgroundMs,
    act: (authority, signal) => confirm(operation, authority, certificate, signal),
    take: (_, authority) => {
      confirmations += 1;
      if (confirmations <= quorum) report({ type: "confirmed", authority, confirmations, quorum });
      return confirmations;
    },
  });
  return { rest: rest.then(() => confirmations) };
}
