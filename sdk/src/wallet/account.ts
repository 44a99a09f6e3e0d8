/** The committee's view of an account, and its orders in the storage. */

import type { AccountId } from "../accounts.js";
import { lower, type Address } from "../bytes.js";
import { goodAnswers, memberAnswers, type Answers, type Network } from "../network.js";
import { agreedBalance, agreedBalances, positionOf } from "../agreement.js";
import { OrderJournal, transferOf, type Stored } from "../storage/journal.js";
import { verifyOrder } from "../verify.js";
import type { AccountState, AccountView, AgreedBalance, OrderEntry } from "../views.js";
import { journalOf, type Context } from "./context.js";
import { conflictOf } from "./conflicts.js";
import { provenNext } from "./finish.js";

/**
 * The agreed state of an account. If an authority's list of assets is truncated, reads `assets` one by one. `graceMs`
 * is the extra time for authorities beyond a quorum.
 */
export async function viewAccount(
  { network, primary, store }: Context,
  account: AccountId,
  assets: readonly Address[],
  graceMs?: number,
): Promise<AccountView> {
  const answers = await network.accountStates(account, undefined, undefined, graceMs);
  const journal = store && new OrderJournal(store, network.domain, account);
  const known = (await journal?.nextSequence()) ?? 0n;
  const nextSequence = await provenNext({ network, primary, signal: undefined }, { account }, known, answers);
  const conflict = conflictOf(network, account, nextSequence, answers);
  const pending = conflict.leader() ?? conflict.any();
  const stuckAt = await stuckNumber(network, account, (await journal?.unfinished())?.[0], nextSequence, answers);
  const states = memberAnswers(answers, network.committee).map(({ answer }) => answer);
  const balances = agreedBalances(states, network.trusted);
  if (states.some((state) => state.truncated)) {
    const listed = new Set(balances.map(({ asset }) => asset));
    for (const asset of new Set(assets.map((address) => lower(address)))) {
      const balance = listed.has(asset)
        ? undefined
        : await balanceOfOne(network, account, asset);
      if (balance !== undefined) balances.push(balance);
    }
  }
  const cursor = Object.fromEntries(goodAnswers(answers).map(({ authority, answer }) => [authority.url, positionOf(answer)]));
  return { account, balances, nextSequence, pending, stuckAt, states: everybody(answers, network.authorities), cursor };
}

/** The first unfinished number, if no order of it can get a quorum any more. */
async function stuckNumber(
  network: Network,
  account: AccountId,
  unfinished: Stored | undefined,
  next: bigint,
  answers: Answers<AccountState>,
): Promise<bigint | undefined> {
  if (unfinished?.certificate !== undefined) return undefined;
  const sequence = unfinished?.sequence ?? next;
  const conflict = conflictOf(network, account, sequence, answers);
  if (unfinished?.order !== undefined) conflict.enter(verifyOrder(unfinished.order, network.domain));
  return conflict.any() !== undefined && conflict.leader() === undefined ? sequence : undefined;
}

async function balanceOfOne(
  network: Network,
  account: AccountId,
  asset: Address,
): Promise<AgreedBalance | undefined> {
  const states = memberAnswers(await network.accountStates(account, asset), network.committee).map(({ answer }) => answer);
  return agreedBalance(states, asset, network.trusted);
}

/** The answers of all authorities, with an empty one for each authority that answered too late. */
function everybody(
  answers: Answers<AccountState>,
  authorities: readonly { readonly url: string; readonly name: `0x${string}` | undefined }[],
): Answers<AccountState> {
  return authorities.map((authority) => {
    const answer = answers.find((given) => given.authority.url === authority.url);
    return answer ?? { authority, answer: undefined, error: undefined };
  });
}

/** The orders in the storage, newest first. */
export async function listOrders(context: Context, account: AccountId): Promise<OrderEntry[]> {
  const entries = await journalOf(context, account).entries();
  return entries.reverse().flatMap((stored) => orderEntry(account, stored));
}

/**
 * The orders that are not settled, oldest first. A superseded order is returned with the certificate that took its
 * number.
 */
export async function listUnfinished(context: Context, account: AccountId): Promise<OrderEntry[]> {
  const entries = await journalOf(context, account).unfinished();
  return entries.flatMap((stored) => orderEntry(account, stored));
}

/** Converts an entry of the storage to an `OrderEntry`. The list is empty if the entry has no transfer. */
export function orderEntry(account: AccountId, stored: Stored): OrderEntry[] {
  const transfer = transferOf(stored);
  if (transfer === undefined) return [];
  const { sequence, state, createdAtMs, certifiedAtMs, settledAtMs } = stored;
  return [{ account, sequence, transfer, state, createdAtMs, certifiedAtMs, settledAtMs }];
}
