/** Stores and follows the Ethereum transactions that this client sends, from their hash to their end. */

import type { AccountId } from "../accounts.js";
import { naming, type Follower } from "../chain/transactions.js";
import { isFastPayError } from "../errors.js";
import type { ChainStep } from "../progress.js";
import { TransactionJournal } from "../storage/transactions.js";
import type { ChainPurpose, SubmittedTransaction, TransactionName } from "../views.js";
import type { Context, ContractContext } from "./context.js";

/** A stored transaction with the purpose `T`. */
export type Submitted<T extends ChainPurpose["type"]> = Extract<SubmittedTransaction, { type: T }>;
/** A transaction to follow: stored before, or just sent. */
export type Sent<T extends ChainPurpose["type"]> = Omit<Submitted<T>, "submittedAtMs" | "place"> &
  Partial<Pick<SubmittedTransaction, "place">>;

/** The journal of an account's transactions; undefined if the client has no storage. */
function journalOf({ store, network }: Context, account: AccountId): TransactionJournal | undefined {
  return store && new TransactionJournal(store, network.domain, account);
}

/** Stores a sent transaction. Ignores a failure of the storage, so that the transaction is still followed. */
export async function note(
  context: Context,
  { account, hash }: Pick<TransactionName, "account" | "hash">,
  purpose: ChainPurpose,
): Promise<void> {
  await journalOf(context, account)
    ?.submitted(hash, purpose)
    .catch(() => undefined);
}

/** The transactions sent from this storage without a known outcome, oldest first. */
export async function unfinishedTransactions(context: Context, account: AccountId): Promise<SubmittedTransaction[]> {
  return (await journalOf(context, account)?.open()) ?? [];
}

/** A pending transaction with the same purpose; undefined if there is none, or if the storage fails. */
export async function sentBefore<T extends ChainPurpose["type"]>(
  context: Context,
  account: AccountId,
  type: T,
  isSame: (sent: Submitted<T>) => boolean,
): Promise<Submitted<T> | undefined> {
  const open = await unfinishedTransactions(context, account).catch(() => []);
  const found = open.find((sent) => sent.type === type && isSame(sent as Submitted<T>));
  return found as Submitted<T> | undefined;
}

/** Removes a transaction from the unfinished ones. */
export async function forgetTransaction(context: Context, sent: TransactionName): Promise<void> {
  await journalOf(context, sent.account)?.end(sent);
}

/** Follows a transaction with `act`, and stores its end, also after `reverted` and `not-found`. */
export function toItsEnd<T>(
  context: ContractContext,
  sent: TransactionName & Partial<Pick<SubmittedTransaction, "place">>,
  report: (step: ChainStep) => void,
  signal: AbortSignal | undefined,
  act: (follower: Follower) => Promise<T>,
): Promise<T> {
  const placed: Follower["placed"] = (place) =>
    void journalOf(context, sent.account)
      ?.placed(sent, place)
      .catch(() => undefined);
  const end = (): Promise<void> => forgetTransaction(context, sent).catch(() => undefined);
  return naming(sent.hash, async () => {
    try {
      const done = await act({ contract: context.contract, report, signal, place: sent.place, placed });
      await end();
      return done;
    } catch (error) {
      if (isFastPayError(error, "reverted") || isFastPayError(error, "not-found")) await end();
      throw error;
    }
  });
}
