/** The orders of a number that authorities are locked on. */

import type { AccountId } from "../accounts.js";
import { OrderConflict } from "../quorum/conflict.js";
import { memberOf } from "../authority.js";
import { goodAnswers, type Answers, type Network } from "../network.js";
import { verifyOrder } from "../verify.js";
import type { AccountState } from "../views.js";

/**
 * The orders of this number, with the authorities locked on each. An order that can prevent another's quorum is locked
 * at more than f authorities, so every quorum of answers includes it. The owner's signature proves an order, whichever
 * authority returns it.
 */
export function conflictOf(
  network: Network,
  account: AccountId,
  sequence: bigint,
  answers: Answers<AccountState>,
): OrderConflict {
  const conflict = new OrderConflict(network.committee);
  for (const { authority, answer } of goodAnswers(answers)) {
    const transfer = answer.pending?.transfer;
    if (answer.pending === undefined || transfer?.sender !== account || transfer.sequence !== sequence) continue;
    try {
      conflict.hold(verifyOrder(answer.pending, network.domain), memberOf(authority));
    } catch {
      // An invalid pending order discredits the authority, not the account.
    }
  }
  return conflict;
}

/**
 * Like `conflictOf`, with the answers of all authorities that answer within `readMs`. Use it if every answer matters.
 */
export async function readConflict(
  network: Network,
  account: AccountId,
  sequence: bigint,
  readMs: number,
  signal: AbortSignal | undefined,
): Promise<OrderConflict> {
  const answers = await network.askAll((authority, until) => authority.account(account, undefined, until), {
    signal,
    graceMs: readMs,
  });
  return conflictOf(network, account, sequence, answers);
}
