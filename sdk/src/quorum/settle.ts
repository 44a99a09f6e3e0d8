/**
 * Settles a certified transfer: returns once a quorum has confirmed it, and continues with the others in the
 * background.
 */

import type { VerifiedCertificate } from "../certificate.js";
import type { AuthorityClient } from "../authority.js";
import { isFastPayError } from "../errors.js";
import { attest } from "./attest.js";
import { confirm, isEpochEnded } from "./catch-up.js";
import type { Operation } from "./certify.js";
import { Ahead, throughEpochs } from "./epochs.js";
import { untilQuorum } from "./everyone.js";
import { PeerFailureError, unattested } from "./failures.js";

/** The result for a certificate that a quorum confirmed. */
export interface Settled {
  /** Continues with the other authorities for a bounded time. Resolves to the number of authorities that confirmed. */
  readonly rest: Promise<number>;
}

/**
 * Sends a certificate to all authorities, until a quorum of one committee has confirmed it in that committee's epoch:
 * confirmations of two epochs do not add up. One of an earlier epoch also needs the votes of f + 1 members that this
 * order was executed: an authority confirms any certificate of a used number. Throws `no-quorum`, `voided`, `frozen`,
 * `epoch-ended`, `new-epoch` or `aborted`; but after `epoch-ended`, the transfer stays certified, and the call may be
 * repeated.
 */
export async function settle(operation: Operation, certificate: VerifiedCertificate): Promise<Settled> {
  const { network } = operation;
  try {
    const settled = await throughEpochs(operation, (attempt) => settleInEpoch(attempt, certificate));
    network.countAgain(certificate);
    return settled;
  } catch (error) {
    if (isFastPayError(error, "epoch-ended")) network.outdate(certificate);
    throw error;
  }
}

async function settleInEpoch(operation: Operation, certificate: VerifiedCertificate): Promise<Settled> {
  const { network, timing, report } = operation;
  const { committee } = network;
  const { epoch, quorum } = committee;
  const ahead = new Ahead(committee);
  let confirmations = 0;
  const act = async (authority: AuthorityClient, signal: AbortSignal): Promise<bigint> => {
    const confirmedIn = (await confirm(operation, authority, certificate, signal).catch(recovered)) ?? epoch;
    // It has not read the rotation yet.
    if (confirmedIn < epoch) throw new PeerFailureError({ kind: "other-epoch", epoch: confirmedIn });
    if (confirmedIn > epoch) report({ type: "waiting", authority, failure: { kind: "other-epoch", epoch: confirmedIn } });
    return confirmedIn;
  };
  /** The epoch that a recovery has installed, if this client does not know of it yet. */
  const recovered = (error: unknown): bigint => {
    const since = isEpochEnded(error) ? (error.facts.epoch ?? 0n) : 0n;
    if (since > epoch) return since;
    // Not this certificate is of an ended epoch, but one of an earlier number, which the authority lacks.
    const isOther = isEpochEnded(error) && since <= certificate.epoch;
    throw isOther ? new PeerFailureError({ kind: "refused", message: error.message }) : error;
  };
  const take = (confirmedIn: bigint, authority: AuthorityClient): number => {
    if (confirmedIn > epoch) {
      if (confirmations < quorum) ahead.enter(confirmedIn, authority.member);
    } else {
      confirmations += 1;
      if (confirmations <= quorum) report({ type: "confirmed", authority, confirmations, quorum });
    }
    return confirmations;
  };
  const { rest } = await untilQuorum(operation, { what: "confirmations", quorum, backgroundMs: timing.backgroundMs, act, take });
  // Those who confirmed know it now. A committee certifies no second order of a number that is executed.
  const isOld = certificate.epoch !== epoch;
  if (isOld && (await attest(network, committee, certificate, operation.signal)) === undefined) throw unattested();
  return { rest: rest.then(() => confirmations) };
}
