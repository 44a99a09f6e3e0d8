/**
 * Checkpoints of the committee (docs/PROTOCOL.md, "Checkpoints"). A quorum of one epoch signs the newest one; each names
 * the one before by its digest, so its votes count for all earlier ones too.
 */

import type { Hex } from "../bytes.js";
import { quorumFault } from "../certificate.js";
import { memberOf, type AuthorityName, type Committee } from "../committee.js";
import { checkpointDigest } from "../eip712.js";
import { isEd25519Signature } from "../signatures.js";
import type { Domain } from "../transfer.js";

/** A checkpoint of the committee. `checkpointDigest` identifies it. */
export interface Checkpoint {
  /** The epoch whose members sign. */
  readonly epoch: bigint;
  /** Counts checkpoints, from 1; number 0 is the state in which the contract was deployed. */
  readonly number: bigint;
  /** The digest of the checkpoint before; zero for number 0. */
  readonly previous: Hex;
  /** Every event of the contract up to this index is included. */
  readonly transactionIndex: bigint;
  /** The root over the next number of each account. */
  readonly cut: Hex;
  /** The root of the state. */
  readonly state: Hex;
  /** The root over the contract's events and the executed orders since the checkpoint before. */
  readonly segment: Hex;
}

/** A member's vote on a checkpoint, not checked. */
export interface CheckpointVote {
  readonly authority: AuthorityName;
  /** By its Ed25519 key, on the checkpoint's digest. */
  readonly signature: Hex;
}

/** Why these votes do not certify a checkpoint in the epoch of `committee`; undefined if they do. */
export function checkpointFault(
  checkpoint: Checkpoint,
  votes: readonly CheckpointVote[],
  committee: Committee,
  domain: Domain,
): string | undefined {
  const fault = quorumFault({ epoch: checkpoint.epoch, votes }, committee);
  if (fault !== undefined) return fault;
  const digest = checkpointDigest(domain, checkpoint);
  for (const { authority, signature } of votes) {
    if (memberOf(committee, authority) === undefined) return `${authority} is not a member of the committee`;
    if (!isEd25519Signature(signature, digest, authority)) return `the vote of authority ${authority} is not valid`;
  }
  return undefined;
}
