/**
 * The Primary, as the rest of the client needs it. It is the contract, or a ledger (`@fastpay/sdk/ledger`).
 *
 * Final are the committees, `isSpent`, `finalSpending`, and an unlock's outcome. A contract reads the rest at its newest
 * block; a ledger's states are all final. Where the Primary does not answer, every function throws `chain-unreachable`.
 */

import type { AccountId } from "./accounts.js";
import type { Address, Hex } from "./bytes.js";
import type { CommitteeSource } from "./chain/committees.js";
import type { Contract } from "./chain/contract.js";
import type { Spending } from "./chain/spending.js";
import type { Domain } from "./transfer.js";
import type { AssetInfo, AssetStatus, ContractStatus, RedemptionStatus, UnlockStatus } from "./views.js";

/** What only a contract does. */
export type ContractOperation =
  | "deposit"
  | "payout"
  | "queue"
  | "claim"
  | "unlock"
  | "transaction"
  | "balance"
  | "gas";

/** See the file's head. */
export interface Primary extends CommitteeSource {
  readonly kind: "contract" | "ledger";
  readonly domain: Domain;
  /** Checks that whoever answers is of the right chain. Throws `wrong-chain`. */
  check(): Promise<void>;
  /** The contract. A ledger throws `needs-contract`, and says how the operation is done there. */
  contractFor(operation: ContractOperation): Contract;

  /** The status of the redemption with this digest. `spent` if it is not known on which order its number was spent. */
  redemptionStatus(sender: AccountId, sequence: bigint, digest: Hex | undefined): Promise<RedemptionStatus>;
  /** Whether a number is spent on an order. */
  isSpent(sender: AccountId, sequence: bigint): Promise<boolean>;
  /** The order on which a number was spent; undefined if that is not known. */
  finalSpending(sender: AccountId, sequence: bigint): Promise<Spending | undefined>;
  /** The state of a number that its owner may have asked to unlock. */
  unlockStatus(account: AccountId, sequence: bigint): Promise<UnlockStatus>;
  /** Whether nobody could move money that is redeemed to this address. */
  isFastPay(address: Address): Promise<boolean>;

  status(): Promise<ContractStatus>;
  assetStatus(asset: Address): Promise<AssetStatus>;
  assetInfo(asset: Address): Promise<AssetInfo>;
  /** The usual time from the settlement of a redemption until a relayer has had it paid, in milliseconds. */
  payoutMs(): Promise<number>;
}
