/**
 * Sends transfers, and enforces the owner's side of the protocol.
 *
 * ```text
 *  send: lock ─► finish unfinished orders ─► check the account's state ─► sign ─► store the order
 *             ▲                                 │ another copy's order        ─► bringHome (finish.ts):
 *             └── adopt that order ◄────────────┘                                certify ─► store the certificate
 *                                                                                ─► settle ─► store that
 * ```
 * Invariants: an order is in the storage before it is first sent. No second order is ever sent for a number. Repeating
 * an unfinished transfer finishes its order instead of paying again.
 */

import { formatAccount, type AccountId } from "../accounts.js";
import type { Address } from "../bytes.js";
import type { Operation } from "../quorum/certify.js";
import { superseded } from "../quorum/failures.js";
import { transferDigest } from "../eip712.js";
import { FastPayError, isFastPayError } from "../errors.js";
import { checkExpiry } from "../link.js";
import { memberAnswers, type Answers } from "../network.js";
import type { TransferStep } from "../progress.js";
import { signOrder, type Signer } from "../signers.js";
import { LAG_MAX, supportedBalance } from "../agreement.js";
import { transferOf, type OrderJournal, type Stored } from "../storage/journal.js";
import { amountOf, type Domain, type Transfer } from "../transfer.js";
import type { VerifiedOrder } from "../verify.js";
import type { AccountState, ProvenTransfer, Receipt, Resumed } from "../views.js";
import { operationOf, journalOf, type Context } from "./context.js";
import { adopt, bringHome, catchUp, finish, renew } from "./finish.js";
import { spreadReceived } from "./receive.js";

/** The time for which a page waits for another page that uses the same account. */
export const LOCK_PATIENCE_MS = 10_000;
/** The maximum number of unfinished orders of other copies that are finished before a new one is signed. */
export const ADOPTIONS_MAX = 8;

/** Builds the intended transfer with a given sequence number. */
export type Intent = (sequence: bigint) => Transfer;

/** The amount of an asset that one or several orders will debit. */
export interface Need {
  readonly asset: Address;
  readonly amount: bigint;
}

type Report = (step: TransferStep) => void;

/** Makes a transfer, or finishes an unfinished order of the same transfer. Resolves when it is settled. */
export function send(
  context: Context,
  signer: Signer,
  intent: Intent,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<Receipt> {
  const journal = journalOf(context, signer.account);
  const operation = operationOf(context, journal, report, signal);
  return journal.exclusively(LOCK_PATIENCE_MS, () => sendLocked(operation, journal, signer, intent));
}

async function sendLocked(operation: Operation, journal: OrderJournal, signer: Signer, intent: Intent): Promise<Receipt> {
  const { domain } = operation.network;
  for (let round = 0; round < ADOPTIONS_MAX; round += 1) {
    for (const entry of await journal.unfinished()) {
      // Only an order of this storage can be the same transfer. An entry with only a certificate is another copy's.
      const ordered = entry.order?.transfer;
      const isSame =
        ordered !== undefined && transferDigest(domain, ordered) === transferDigest(domain, intent(entry.sequence));
      const resumed = await finish(isSame ? operation : finishingFirst(operation, entry), journal, entry);
      if (resumed.type === "settled" && isSame) return resumed.receipt;
      if (resumed.type === "archived" && isSame && isOwn(domain, resumed)) throw executedBefore(resumed.executed);
      if (resumed.type === "paid" && isSame) throw paidBefore(resumed.order);
    }
    const { asset } = intent(0n);
    const sequence = await checkAgreedState(operation, journal, { asset, amount: amountOf(intent(0n)) });
    if (sequence === undefined) continue;
    const transfer = intent(sequence);
    operation.report({ type: "signing", transfer });
    const order = await signOrder(signer, domain, transfer);
    await writeDown(journal, order);
    operation.report({ type: "ordered", transfer, digest: order.digest, resumed: false });
    const outcome = await bringHome(operation, journal, order, order, false);
    if (outcome.type === "settled") return outcome.receipt;
    throw superseded(outcome.certificate);
  }
  throw otherCopy(journal.account);
}

/**
 * A signer that throws `invalid-link` after the deadline. It checks before and after signing, because the wallet's
 * dialog may stay open for long. An order signed in time is finished in any case.
 */
export function signerUntil(signer: Signer, expires: bigint | undefined): Signer {
  return {
    account: signer.account,
    authorizeUnlock: (domain, sequence) => signer.authorizeUnlock(domain, sequence),
    async authorize(domain, transfer) {
      checkExpiry(expires);
      const authorization = await signer.authorize(domain, transfer);
      checkExpiry(expires);
      return authorization;
    },
  };
}

/** Stores an order, before it is sent. */
export async function writeDown(journal: OrderJournal, order: VerifiedOrder): Promise<void> {
  try {
    await journal.create(order);
  } catch (error) {
    if (!isFastPayError(error, "storage")) throw error;
    throw new FastPayError("storage", error.message, `nothing was sent; ${error.action}`, { cause: error });
  }
}

/** An operation for an earlier order, which reports only its delays and adoptions, not its other steps. */
export function finishingFirst(operation: Operation, entry: Stored): Operation {
  const transfer = transferOf(entry);
  if (transfer !== undefined) operation.report({ type: "finishing", transfer });
  const report: Report = (step) => {
    if (step.type === "waiting" || step.type === "catching-up" || step.type === "adopted") operation.report(step);
  };
  return { ...operation, report };
}

/** Finishes the unfinished orders of `account`: those of this storage, and those that authorities are locked on. */
export function resume(
  context: Context,
  account: AccountId,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<Resumed[]> {
  const journal = journalOf(context, account);
  const operation = operationOf(context, journal, report, signal);
  return journal.exclusively(LOCK_PATIENCE_MS, async () => {
    const resumed: Resumed[] = [];
    for (let round = 0; round < ADOPTIONS_MAX; round += 1) {
      for (const entry of await journal.unfinished()) resumed.push(await finish(operation, journal, entry));
      const answers = await operation.network.accountStates(account, undefined, signal);
      const renewed = await renew(operation, journal, await journal.nextSequence(), answers);
      resumed.push(...renewed);
      if (renewed.length > 0) continue;
      const next = await catchUp(operation, journal, answers);
      const isAdopted = await adopt(operation, journal, next, answers);
      // The newest certificate that `catchUp` stored may still have to be settled.
      if (!isAdopted && (await journal.unfinished()).length === 0) return resumed;
    }
    throw otherCopy(account);
  });
}

/**
 * The number for a new order. Checks the balance first, because an order that cannot be paid would occupy its number.
 * Undefined if another copy's order must be finished first. Throws `insufficient-funds`.
 */
export async function checkAgreedState(operation: Operation, journal: OrderJournal, need: Need): Promise<bigint | undefined> {
  const { network, signal } = operation;
  const { account } = journal;
  const { asset, amount } = need;
  const answers = await network.accountStates(account, asset, signal);
  if ((await renew(operation, journal, await journal.nextSequence(), answers)).length > 0) return undefined;
  const sequence = await catchUp(operation, journal, answers);
  if ((await adopt(operation, journal, sequence, answers)) || (await journal.unfinished()).length > 0) return undefined;
  const available = await availableOf(operation, journal, sequence, asset, answers);
  if (available === undefined || available >= amount) return sequence;
  // Only few authorities may have a payment to this account. Send it to all and read the balance again.
  await spreadReceived(operation, account);
  const now = await availableOf(operation, journal, sequence, asset, await network.accountStates(account, asset, signal));
  if (now === undefined || now >= amount) return sequence;
  const message = `account ${formatAccount(account)} holds too little`;
  throw new FastPayError("insufficient-funds", message, "nothing was signed; deposit or receive more first", {
    details: { account, asset, needed: amount, available: now },
  });
}

/** The balance that f + 1 authorities report, less the orders that some of them have not executed yet. */
async function availableOf(
  { network }: Operation,
  journal: OrderJournal,
  sequence: bigint,
  asset: Address,
  answers: Answers<AccountState>,
): Promise<bigint | undefined> {
  const states = memberAnswers(answers, network.committee).map(({ answer }) => answer);
  const spent = new Map<bigint, Need>();
  for (const { nextSequence } of states) {
    const from = nextSequence > sequence - LAG_MAX ? nextSequence : sequence;
    for (let number = from; number < sequence && !spent.has(number); number += 1n) {
      const entry = await journal.entry(number);
      const transfer = entry && transferOf(entry);
      if (entry?.state === "voided") spent.set(number, { asset, amount: 0n });
      else if (transfer !== undefined) spent.set(number, { asset: transfer.asset, amount: amountOf(transfer) });
    }
  }
  return supportedBalance(states, sequence, asset, network.trusted, (number) => spent.get(number));
}

/** True if the order itself took its number. */
function isOwn(domain: Domain, { order, executed }: Extract<Resumed, { type: "archived" }>): boolean {
  return transferDigest(domain, order) === executed.digest;
}

function executedBefore(executed: ProvenTransfer): FastPayError {
  const message = `order #${executed.transfer.sequence} was executed before, and its certificate is pruned`;
  const action = "nothing was paid now; to pay once more, order it again";
  return new FastPayError("executed-before", message, action, { details: { executed } });
}

function paidBefore(order: Transfer): FastPayError {
  const message = `the contract paid or queued redemption #${order.sequence} before, and a recovery debited it`;
  const action = "nothing was paid now; to redeem once more, order it again";
  return new FastPayError("executed-before", message, action, { details: { order } });
}

export function otherCopy(account: AccountId): FastPayError {
  const message = `another copy of this wallet keeps sending orders for account ${formatAccount(account)}`;
  return new FastPayError("other-copy", message, "nothing was signed here; stop that copy, then try again");
}
