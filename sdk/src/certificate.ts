/** Certificates: a transfer order and the votes of a quorum for it. A transfer with a certificate is certified. */

import type { Hex } from "./bytes.js";
import { memberOf, type AuthorityName, type Committee } from "./committee.js";
import { transferDigest } from "./eip712.js";
import { FastPayError, messageOf } from "./errors.js";
import type { Domain, TransferOrder } from "./transfer.js";
import { verifyOrder, voteFault, type BatchVote, type VerifiedOrder, type Vote, type VoteFault } from "./verify.js";

/** An order and the votes for it, not yet checked. */
export interface Certificate {
  readonly order: TransferOrder;
  /** The committee that voted. */
  readonly epoch: bigint;
  /** Exactly a quorum of votes, in the order of the authorities' names, without duplicates. */
  readonly votes: readonly Vote[];
}

declare const verified: unique symbol;

/** A certificate with a valid quorum. Only `verifyCertificate` and `certificateOf` create one. */
export interface VerifiedCertificate extends Certificate {
  /** The digest that the sender signed. It identifies the transfer. */
  readonly digest: Hex;
  readonly [verified]: "certificate";
}

/** The result of checking a certificate, vote by vote, for display. */
export interface CertificateReport {
  readonly isValid: boolean;
  readonly digest: Hex;
  /** The defect in the epoch, or in the number or order of votes; undefined if there is none. */
  readonly fault: string | undefined;
  /** The fault of the order; undefined if its sender signed it. */
  readonly orderFault: string | undefined;
  readonly votes: readonly { readonly authority: AuthorityName; readonly fault: VoteFault | undefined }[];
}

/** Checks every part of a certificate, even after a fault. */
export function inspectCertificate(certificate: Certificate, committee: Committee, domain: Domain): CertificateReport {
  const { order } = certificate;
  const digest = transferDigest(domain, order.transfer);
  const ballot = { transfer: order.transfer, digest };
  const votes = certificate.votes.map((vote) => ({
    authority: vote.authority,
    fault: voteFault(vote, committee, domain, ballot),
  }));
  const fault = quorumFault(certificate, committee);
  const orderFault = faultOfOrder(order, domain);
  const isValid = fault === undefined && orderFault === undefined && votes.every((vote) => vote.fault === undefined);
  return { isValid, digest, fault, orderFault, votes };
}

/**
 * Checks a whole certificate against the committee of its epoch, which comes from the contract. Throws
 * `invalid-certificate` with the report in its details.
 */
export function verifyCertificate(certificate: Certificate, committee: Committee, domain: Domain): VerifiedCertificate {
  // Cheap checks first: a certificate with thousands of votes is refused before any signature is checked.
  const fault = quorumFault(certificate, committee);
  if (fault !== undefined) throw invalid(fault);
  const report = inspectCertificate(certificate, committee, domain);
  if (report.isValid) return { ...certificate, digest: report.digest } as VerifiedCertificate;
  const bad = report.votes.find((vote) => vote.fault !== undefined);
  throw invalid(report.orderFault ?? `the vote of authority ${bad?.authority} does not count (${bad?.fault})`, report);
}

/** Builds a certificate from votes that were verified for this order; undefined if they are fewer than a quorum. */
export function certificateOf(
  order: VerifiedOrder,
  committee: Committee,
  votes: readonly Vote[],
): VerifiedCertificate | undefined {
  const byName = new Map(votes.map((vote) => [vote.authority, vote]));
  const sorted = [...byName.values()].sort((a, b) => (a.authority < b.authority ? -1 : 1)).slice(0, committee.quorum);
  if (sorted.length < committee.quorum) return undefined;
  const { transfer, authorization, digest } = order;
  const certificate = { order: { transfer, authorization }, epoch: committee.epoch, votes: sorted, digest };
  return certificate as unknown as VerifiedCertificate;
}

/** The votes of a redemption certificate in the contract's encoding. */
export function packRedemptionVotes(certificate: VerifiedCertificate, committee: Committee): Hex {
  if (certificate.order.transfer.type !== "redemption") throw invalid("its votes are not votes for a redemption");
  return packVotes(committee, certificate.votes);
}

/**
 * Verified votes in the contract's encoding: for each vote, the member's index in one byte and its 65-byte signature.
 * `votes` must be in the order of the names, which is that of the indices.
 */
export function packVotes(committee: Committee, votes: readonly BatchVote[]): Hex {
  const packed = votes.map(({ authority, signature }) => {
    const found = memberOf(committee, authority);
    if (found === undefined) throw invalid(`${authority} is not a member of the committee`);
    return found.index.toString(16).padStart(2, "0") + signature.slice(2);
  });
  return `0x${packed.join("")}`;
}

/** The defect in the epoch, or in the number or order of votes; undefined if there is none. */
export function quorumFault(
  { epoch, votes }: { readonly epoch: bigint; readonly votes: readonly { readonly authority: AuthorityName }[] },
  committee: Committee,
): string | undefined {
  if (epoch !== committee.epoch) return `its epoch is ${epoch}, the committee's is ${committee.epoch}`;
  if (votes.length !== committee.quorum)
    return `it has ${votes.length} votes instead of ${committee.quorum}`;
  const isSorted = votes.every((vote, i) => i === 0 || (votes[i - 1]?.authority ?? "") < vote.authority);
  return isSorted ? undefined : "its votes are not sorted by authority, or one is repeated";
}

function faultOfOrder(order: TransferOrder, domain: Domain): string | undefined {
  try {
    verifyOrder(order, domain);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function invalid(what: string, report?: CertificateReport): FastPayError {
  const details = report === undefined ? {} : { report };
  const message = `the certificate is not valid: ${what}`;
  return new FastPayError("invalid-certificate", message, "do not trust its source; ask another authority", {
    details,
  });
}
