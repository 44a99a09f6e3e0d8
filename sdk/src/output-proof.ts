/**
 * The proof of one output of a payout. It proves a payment to its recipient without revealing the other outputs, of
 * which it contains only the hashes (docs/PROTOCOL.md, "Proof of one output").
 */

import type { AccountId } from "./accounts.js";
import { isHex, type Address, type Hex } from "./bytes.js";
import { quorumFault, type VerifiedCertificate } from "./certificate.js";
import type { Committee } from "./committee.js";
import { outputHash, payoutDigest } from "./eip712.js";
import { FastPayError } from "./errors.js";
import { PAYOUT_OUTPUTS_MAX, type Domain, type Output, type Payment } from "./transfer.js";
import { paymentVoteFault, type Vote } from "./verify.js";

/** The proof of one output of a payout. */
export interface OutputProof {
  readonly sender: AccountId;
  readonly asset: Address;
  readonly sequence: bigint;
  /** The payout's own memo. */
  readonly memo: Hex;
  /** The number of the output, from 0. */
  readonly position: number;
  readonly output: Output;
  /** The struct hashes of all outputs, in their order. */
  readonly hashes: readonly Hex[];
  /** The committee that voted. */
  readonly epoch: bigint;
  readonly votes: readonly Vote[];
}

/** Makes the proof of an output. Throws `invalid-argument` if the certificate has no such output. */
export function proveOutput(certificate: VerifiedCertificate, position: number): OutputProof {
  const { transfer } = certificate.order;
  const output = transfer.type === "payout" ? transfer.outputs[position] : undefined;
  if (transfer.type !== "payout" || output === undefined) {
    const message = `the certificate has no output ${position}`;
    throw new FastPayError("invalid-argument", message, "give a payout's certificate and the number of an output");
  }
  const { sender, asset, sequence, memo, outputs } = transfer;
  const { epoch, votes } = certificate;
  return { sender, asset, sequence, memo, position, output, hashes: outputs.map(outputHash), epoch, votes };
}

/**
 * Verifies a proof against the committee of its epoch, which comes from the contract. Returns the payment, and the
 * digest of the payout. Throws `invalid-certificate`.
 */
export function verifyOutputProof(
  proof: OutputProof,
  committee: Committee,
  domain: Domain,
): { readonly payment: Payment; readonly digest: Hex } {
  const { sender, asset, sequence, memo, position, output, hashes } = proof;
  if (hashes.length > PAYOUT_OUTPUTS_MAX || !hashes.every((hash) => isHex(hash, 32))) throw invalid("its hashes are malformed");
  if (hashes[position]?.toLowerCase() !== hashOf(output)) throw invalid("its output is not the one at that position");
  const fault = quorumFault(proof, committee);
  if (fault !== undefined) throw invalid(fault);
  const digest = payoutDigest(domain, { sender, asset, sequence, memo }, hashes);
  for (const vote of proof.votes) {
    const wrong = paymentVoteFault(vote, committee, domain, digest);
    if (wrong !== undefined) throw invalid(`the vote of authority ${vote.authority} does not count (${wrong})`);
  }
  return { payment: { type: "payment", sender, asset, sequence, ...output }, digest };
}

/** The struct hash of an output; undefined if the output is malformed. */
function hashOf(output: Output): Hex | undefined {
  try {
    return outputHash(output);
  } catch {
    return undefined;
  }
}

function invalid(what: string): FastPayError {
  return new FastPayError("invalid-certificate", `the proof is not valid: ${what}`, "do not trust its source");
}
