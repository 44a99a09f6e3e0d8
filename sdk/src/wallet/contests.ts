/** The orders of a number that authorities are locked on. */

import type { AccountId } from "../accounts.js";
import { Contest } from "../drive/contest.js";
import { goodAnswers, type Answers, type Network } from "../network.js";
import { verifyOrder } from "../verify.js";
import type { AccountState } from "../views.js";

/**
 * Who is locked on which order of this number. An order that can keep another one from its quorum is held by more than
 * the f that any quorum of answers may leave out, so it is among them. What none but the account's owner could sign
 * counts, whoever shows it.
 */
export function contestOf(
  network: Network,
  account: AccountId,
  sequence: bigint,
  answers: Answers<AccountState>,
): Contest {
  const contest = new Contest(network.committee);
  for (const { authority, answer } of goodAnswers(answers)) {
    const transfer = answer.pending?.transfer;
    if (answer.pending === undefined || transfer?.sender !== account || transfer.sequence !== sequence) continue;
    try {
      contest.hold(verifyOrder(answer.pending, network.domain), authority.url);
    } catch {
      // A false pending order says something of who shows it, and nothing of the account.
    }
  }
  return contest;
}

/** The same of every authority that answers in time: where it matters what each single one says. */
export async function readContest(
  network: Network,
  account: AccountId,
  sequence: bigint,
  readMs: number,
  signal: AbortSignal | undefined,
): Promise<Contest> {
  const answers = await network.askAll((authority, until) => authority.account(account, undefined, until), {
    signal,
    graceMs: readMs,
  });
  return contestOf(network, account, sequence, answers);
}
