/** Numbers that the contract voided: their orders paid nothing, and the next number is free. */

import type { AccountId } from "../accounts.js";
import { memberAnswers, type Answers } from "../network.js";
import type { Operation } from "../quorum/certify.js";
import type { AccountState } from "../views.js";

/**
 * True if a number is void: f + 1 authorities have skipped it, the contract voided it in a final block, and a quorum
 * reports that it has no certificate. A certificate proves that the number was executed, whatever the Ethereum node
 * reports. An authority that does not answer counts for neither. Throws `chain-unreachable`.
 */
export async function isVoid(
  { network, contract }: Pick<Operation, "network" | "contract">,
  account: AccountId,
  sequence: bigint,
  answers: Answers<AccountState>,
): Promise<boolean> {
  // Our Ethereum node may return a block that is undone later. An honest authority, one of f + 1 at least, skips a
  // number only after a final block.
  const beyond = memberAnswers(answers).filter(({ answer }) => answer.nextSequence > sequence);
  if (beyond.length < network.trusted) return false;
  if ((await contract.unlockStatus(account, sequence)).state !== "voided") return false;
  return network.isWithoutCertificate(account, sequence);
}
