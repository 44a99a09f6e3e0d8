/** Numbers that the contract voided: nothing was paid with them, and the next number is free. */

import type { AccountId } from "../accounts.js";
import { memberAnswers, type Answers } from "../network.js";
import type { Operation } from "../quorum/certify.js";
import type { AccountState } from "../views.js";

/**
 * Whether a number of which nobody has a certificate is void: f + 1 authorities have stepped over it, and the contract
 * says so in a final block. If somebody has a certificate the number was executed, whatever the Ethereum node says.
 * Throws `chain-unreachable`.
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
  return (await contract.unlockStatus(account, sequence)).state === "voided";
}
