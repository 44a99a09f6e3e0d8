/** The keys of the entries in a settlement cluster's state that a client of a FastPay committee reads. */

import type { AccountId } from "../accounts.js";
import { concat, toBytes, type Address } from "../bytes.js";
import { integer } from "./borsh.js";

/** The places of these keys in the enumeration that the ledger encodes. */
const [OMNIBUS, EVENT_INDEX, SPENT, COMMITTEE, EPOCH, UNLOCK] = [13, 14, 15, 16, 17, 18];

/** The keys of a committee, by its number in the genesis. */
export function stateKeys(committee: number) {
  const key = (kind: number | undefined, ...parts: readonly Uint8Array[]): Uint8Array =>
    concat(integer(kind ?? 0, 1), integer(committee, 4), ...parts);
  return {
    /** What the committee's accounts have of an asset in all: 32 bytes, the most significant first. */
    omnibus: (asset: Address) => key(OMNIBUS, toBytes(asset)),
    /** The index of the newest event. */
    eventIndex: key(EVENT_INDEX),
    /** What one of an account's numbers is spent on. */
    spent: (account: AccountId, sequence: bigint) => key(SPENT, toBytes(account), integer(sequence, 8)),
    /** What became of the owner's request to unlock a number. */
    unlock: (account: AccountId, sequence: bigint) => key(UNLOCK, toBytes(account), integer(sequence, 8)),
    /** The committee of an epoch. */
    committee: (epoch: bigint) => key(COMMITTEE, integer(epoch, 8)),
    /** The current epoch, its guardian, and the epochs whose keys were out. */
    epoch: key(EPOCH),
  };
}
