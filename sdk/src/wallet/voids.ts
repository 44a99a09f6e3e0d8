/** Numbers that the contract voided: nothing was paid with them, and the next number is free. */

import type { AccountId } from "../accounts.js";
import { memberAnswers, type Answers } from "../network.js";
import type { Operation } from "../quorum/certify.js";
import type { AccountState } from "../views.js";

/**
 * Whether a number is void: f + 1 authorities have stepped over it, the contract says so in a final block, and a quorum
 * says that it has no certificate. If somebody has one the number was executed, whatever the Ethereum node says, and
 * silence says nothing. Throws `chain-unreachable`.
 */
export async function isVoid(
  { network, contract }: Pick<Operation, "network" | "contract">,
  account: AccountId,
  sequence: bigint,
  answers: Answers<AccountState>,
): Promise<boolean> {
  // The block may still change for us, and not for f + 1 authorities, one of which is honest.
  const beyond = memberAnswers(answers).filter(({ answer }) => answer.nextSequence > sequence);
  if (beyond.length < network.trusted) return false;
  if ((await contract.unlockStatus(account, sequence)).state !== "voided") return false;
  return network.isWithoutCertificate(account, sequence);
}
