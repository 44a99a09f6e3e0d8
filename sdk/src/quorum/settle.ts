/** Has a certificate confirmed: settled once a quorum has, while the others are brought along in the background. */

import type { VerifiedCertificate } from "../certificate.js";
import { confirm } from "./catch-up.js";
import type { Operation } from "./certify.js";
import { untilQuorum } from "./everyone.js";

/** A certificate that a quorum has confirmed. */
export interface Settled {
  /** Goes on with the other authorities for a bounded time; ends with how many have confirmed in all. */
  readonly rest: Promise<number>;
}

/**
 * Sends a certificate to all authorities, until a quorum has confirmed it. Throws `no-quorum` or `aborted`; the
 * certificate is final all the same, and may be settled again.
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
