/**
 * Numbers that authorities have stepped over: those that the contract voided, whose orders paid nothing, and those that
 * it had spent before a recovery, which debited them without a certificate. The next number is free.
 */

import type { AccountId } from "../accounts.js";
import { transferDigest } from "../eip712.js";
import { memberAnswers, type Answers, type Network } from "../network.js";
import type { Operation } from "../quorum/certify.js";
import type { OrderJournal } from "../storage/journal.js";
import type { Transfer } from "../transfer.js";
import type { AccountState, Resumed } from "../views.js";

/** True if f + 1 authorities, so at least one honest one, are beyond a number. */
export function isPassed(network: Network, sequence: bigint, answers: Answers<AccountState>): boolean {
  return memberAnswers(answers, network.committee).filter(({ answer }) => answer.nextSequence > sequence).length >= network.trusted;
}

/**
 * True if a number is void: f + 1 authorities have skipped it, the contract voided it in a final block, and a quorum
 * reports that it has no certificate. A certificate proves that the number was executed, whatever the Ethereum node
 * reports. An authority that does not answer counts for neither. Throws `chain-unreachable`.
 */
export async function isVoid(
  { network, primary }: Pick<Operation, "network" | "primary">,
  account: AccountId,
  sequence: bigint,
  answers: Answers<AccountState>,
): Promise<boolean> {
  // Our Ethereum node may return a block that is undone later. An honest authority, one of f + 1 at least, skips a
  // number only after a final block.
  if (!isPassed(network, sequence, answers)) return false;
  if ((await primary.unlockStatus(account, sequence)).state !== "voided") return false;
  return network.isWithoutCertificate(account, sequence);
}

/**
 * True if the contract spent a number that no authority executed: f + 1 of them have stepped over it, the contract
 * spent it in a final block, and a quorum reports that it has no certificate. So it is after a recovery that debited what
 * the contract paid behind a gap (docs/PROTOCOL.md, "Recovery"). False if the Ethereum node does not answer.
 */
export async function isSpentUnexecuted(
  { network, primary }: Pick<Operation, "network" | "primary">,
  account: AccountId,
  sequence: bigint,
  answers: Answers<AccountState>,
): Promise<boolean> {
  if (!isPassed(network, sequence, answers)) return false;
  if (!(await primary.isSpent(account, sequence).catch(() => false))) return false;
  return network.isWithoutCertificate(account, sequence);
}

/**
 * If the contract spent the number of an order, and authorities have stepped over it, stores that: no order of the
 * number is executed any more. The contract's log names the order that was paid. If the node serves no log of it, a
 * redemption counts as paid, so that nobody makes it twice. Unless f + 1 authorities have reported a recovery, only the
 * log counts, and only if it names this order. The caller has found no certificate of the number that counts.
 */
export async function noteSpent(
  operation: Operation,
  journal: OrderJournal,
  order: Transfer,
  answers: Answers<AccountState>,
): Promise<Resumed | undefined> {
  const { network, primary } = operation;
  const { sender, sequence } = order;
  if (!(await isSpentUnexecuted(operation, sender, sequence, answers))) return undefined;
  const digest = transferDigest(network.domain, order);
  const logged = await primary.finalSpending(sender, sequence);
  const isPaid =
    logged === undefined
      ? network.isRecovered && order.type === "redemption"
      : logged.digest === digest && logged.event !== "RedemptionReleased";
  if (isPaid) {
    await journal.notePaid(sequence, digest);
    return { type: "paid", order };
  }
  if (!network.isRecovered) return undefined;
  await journal.void(sequence);
  return { type: "voided", order };
}
