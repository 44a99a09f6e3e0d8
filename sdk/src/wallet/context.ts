/** The shared context of the client's parts. */

import type { AccountId } from "../accounts.js";
import type { Contract } from "../chain/contract.js";
import type { Operation, Timing } from "../quorum/certify.js";
import { FastPayError } from "../errors.js";
import type { Network } from "../network.js";
import type { Primary } from "../primary.js";
import type { TransferStep } from "../progress.js";
import { OrderJournal } from "../storage/journal.js";
import type { OrderStore } from "../storage/store.js";

/** The parts of a client. */
export interface Context {
  readonly network: Network;
  readonly primary: Primary;
  /** Undefined for a client that only reads. */
  readonly store: OrderStore | undefined;
  readonly timing: Timing;
  /** The bases of relayers' addresses. */
  readonly relayers: readonly string[];
}

/** The parts of a client whose Primary is a contract. */
export interface ContractContext extends Context {
  readonly contract: Contract;
}

/** The journal of an account's orders. Throws `storage` if the client has no storage. */
export function journalOf(context: Context, account: AccountId): OrderJournal {
  if (context.store === undefined) {
    const action = "pass a storage to the client: browserStore, folderStore, or your own";
    throw new FastPayError(
      "storage",
      "orders are stored before they are sent, and there is no storage",
      action,
    );
  }
  return new OrderJournal(context.store, context.network.domain, account);
}

/** The environment for certifying and settling the orders of an account. */
export function operationOf(
  context: Context,
  journal: OrderJournal,
  report: (step: TransferStep) => void,
  signal: AbortSignal | undefined,
): Operation {
  const { network, primary, timing } = context;
  return {
    network,
    primary,
    timing,
    report,
    signal,
    stored: async (account, sequence) =>
      account === journal.account ? (await journal.entry(sequence))?.certificate : undefined,
  };
}
