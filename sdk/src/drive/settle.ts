/** Has a certificate confirmed: settled once a quorum has, while the others are brought along in the background. */

import type { AuthorityClient } from "../authority.js";
import type { VerifiedCertificate } from "../certificate.js";
import { ProblemError } from "../problem.js";
import type { Trouble } from "../progress.js";
import { aborted, Backoff, throwIfAborted } from "../waiting.js";
import { confirm, troubleOf } from "./catch-up.js";
import { limited, type Drive } from "./driver.js";
import { noQuorum } from "./failures.js";

/** A certificate that a quorum has confirmed. */
export interface Settled {
  /** Goes on with the other authorities for a bounded time; ends with how many have confirmed in all. */
  readonly rest: Promise<number>;
}

/**
 * Sends a certificate to all authorities, until a quorum has confirmed it. Throws `no-quorum` or `aborted`; the
 * certificate is final all the same, and may be settled again.
 */
export function settle(drive: Drive, certificate: VerifiedCertificate): Promise<Settled> {
  throwIfAborted(drive.signal);
  const { network, timing, tell } = drive;
  const { quorum } = network.committee;
  const troubles = new Map<string, Trouble>();
  let confirmations = 0;
  return new Promise((resolve, reject) => {
    const limit = limited(timing.deadlineMs, drive.signal);
    const background = new AbortController();
    limit.signal.addEventListener("abort", () => {
      if (confirmations >= quorum) return;
      background.abort();
      reject(drive.signal?.aborted ? aborted() : noQuorum("confirmations", confirmations, quorum, true, troubles));
    });
    const all = network.authorities.map(async (authority) => {
      const isConfirmed = await confirmPatiently(drive, authority, certificate, troubles, background.signal);
      if (!isConfirmed || background.signal.aborted) return;
      confirmations += 1;
      if (confirmations <= quorum) tell({ type: "confirmed", authority, confirmations, quorum });
      if (confirmations !== quorum) return;
      limit.end();
      const late = setTimeout(() => background.abort(), timing.backgroundMs);
      const rest = Promise.all(all).then(() => {
        clearTimeout(late);
        return confirmations;
      });
      resolve({ rest });
    });
    void Promise.all(all).then(() => {
      if (confirmations >= quorum) return;
      reject(noQuorum("confirmations", confirmations, quorum, false, troubles));
      limit.end();
    });
  });
}

async function confirmPatiently(
  drive: Drive,
  authority: AuthorityClient,
  certificate: VerifiedCertificate,
  troubles: Map<string, Trouble>,
  signal: AbortSignal,
): Promise<boolean> {
  const backoff = new Backoff(drive.timing.backoffMinMs, drive.timing.backoffMaxMs);
  while (!signal.aborted) {
    try {
      await confirm(drive, authority, certificate, signal);
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      if (error instanceof ProblemError) backoff.waitAtLeast(error.facts.retryAfterMs);
      const trouble = troubleOf(error);
      drive.tell({ type: "waiting", authority, trouble });
      troubles.set(authority.url, trouble);
      if (trouble.kind === "refused" || trouble.kind === "no-primary") return false;
    }
    await backoff.wait(signal);
  }
  return false;
}
