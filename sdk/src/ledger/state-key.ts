/** The keys of the entries in a settlement cluster's state that a client of a FastPay committee reads. */

import type { AccountId } from "../accounts.js";
import { concat, toBytes, type Address } from "../bytes.js";
import { integer } from "./borsh.js";

/** The places of these keys in the enumeration that the ledger encodes. */
const [OMNIBUS, EVENT_INDEX, REDEEMED, COMMITTEE, EPOCH] = [13, 14, 15, 16, 17];

/** The keys of a committee, by its number in the genesis. */
export function stateKeys(committee: number) {
  const key = (kind: number | undefined, ...parts: readonly Uint8Array[]): Uint8Array =>
    concat(integer(kind ?? 0, 1), integer(committee, 4), ...parts);
  return {
    /** What the committee's accounts have of an asset in all: 32 bytes, the most significant first. */
    omnibus: (asset: Address) => key(OMNIBUS, toBytes(asset)),
    /** The index of the newest event. */
    eventIndex: key(EVENT_INDEX),
    /** What one of an account's numbers was redeemed for: the redemption's digest, its event's index, and who got the fee. */
    redeemed: (account: AccountId, sequence: bigint) => key(REDEEMED, toBytes(account), integer(sequence, 8)),
    /** The committee of an epoch. */
    committee: (epoch: bigint) => key(COMMITTEE, integer(epoch, 8)),
    /** The current epoch, and until when redemption votes of the one before count. */
    epoch: key(EPOCH),
  };
}
