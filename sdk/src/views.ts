/** The client's results: accounts, orders, histories, the contract. */

import type { AccountId } from "./accounts.js";
import type { ArchivedNumber } from "./archive/page.js";
import type { Address, Hex } from "./bytes.js";
import type { Certificate, CertificateReport, VerifiedCertificate } from "./certificate.js";
import type { FastPayError } from "./errors.js";
import type { AuthorityRef } from "./progress.js";
import type { OrderState } from "./storage/store.js";
import type { Output, Payment, Transfer, TransferFault, TransferOrder } from "./transfer.js";

/** The agreed balance of one asset of an account. */
export interface AgreedBalance {
  readonly asset: Address;
  /**
   * The balance that f + 1 authorities report, in the asset's smallest unit; if no f + 1 agree, the highest balance
   * that f + 1 meet or exceed. May be negative.
   */
  readonly balance: bigint;
  /** The number of authorities that report exactly this balance. */
  readonly agreeing: number;
  /** The number of authorities that answered. */
  readonly answered: number;
}

/** An account as reported by one authority. Not verified. */
export interface AccountState {
  readonly nextSequence: bigint;
  /** The order that the account is locked on. */
  readonly pending: TransferOrder | undefined;
  readonly holdings: readonly { readonly asset: Address; readonly balance: bigint }[];
  /** The number of payments received. */
  readonly received: bigint;
  /** The number of deposits. */
  readonly deposits: bigint;
  /** True if the account has more assets than listed. */
  readonly truncated: boolean;
}

/** One authority's answer, or its error. */
export interface AuthorityAnswer<T> {
  readonly authority: AuthorityRef;
  readonly answer: T | undefined;
  readonly error: FastPayError | undefined;
}

/** An account as agreed by the committee. */
export interface AccountView {
  readonly account: AccountId;
  /** The balance of each asset. */
  readonly balances: readonly AgreedBalance[];
  /** The number of its next order, proven by the certificate before it, or by the contract if that number is void. */
  readonly nextSequence: bigint;
  /** A verified order that authorities are locked on, if it has no certificate yet. */
  readonly pending: TransferOrder | undefined;
  /** A number with orders, none of which can get a quorum any more: the contract has to unlock it. */
  readonly stuckAt: bigint | undefined;
  /** Each authority's answer or error; neither for an authority that answered too late. */
  readonly states: readonly AuthorityAnswer<AccountState>[];
  /** The position at each authority that answered. Start a watch from it to receive everything after this view. */
  readonly cursor: WatchCursor;
}

/** An order in this wallet's storage. */
export interface OrderEntry {
  readonly account: AccountId;
  readonly sequence: bigint;
  /** The transfer with this number. */
  readonly transfer: Transfer;
  readonly state: OrderState;
  /** The times at which each state was stored, in milliseconds since 1970. */
  readonly createdAtMs: number | undefined;
  readonly certifiedAtMs: number | undefined;
  readonly settledAtMs: number | undefined;
}

/** A transfer that is settled. */
export interface Receipt {
  /** The proof, which anyone can verify. */
  readonly certificate: VerifiedCertificate;
  /** True if the order existed before and was only finished now. */
  readonly resumed: boolean;
  /** Milliseconds from sending the order to the certificate; 0 if the certificate was already stored. */
  readonly certifiedAfterMs: number;
  /** Milliseconds from sending the certificate to a quorum's confirmation. */
  readonly settledAfterMs: number;
  /** Continues with the other authorities. Resolves to the total number of confirmations. Never rejects. */
  readonly rest: Promise<number>;
}

/** The outcome of an unfinished order. */
export type Resumed =
  | { readonly type: "settled"; readonly receipt: Receipt }
  /** Another order with the same number is certified, so this one never will be. */
  | { readonly type: "superseded"; readonly order: Transfer; readonly certificate: VerifiedCertificate }
  /**
   * The number was used long ago, and authorities have pruned the certificate. `executed` is the transfer that took it:
   * this order if the digest is the same.
   */
  | { readonly type: "archived"; readonly order: Transfer; readonly executed: ProvenTransfer }
  /** The contract voided the number, or spent it on another order, so this order never happens and nothing was paid. */
  | { readonly type: "voided"; readonly order: Transfer }
  /**
   * A redemption that the contract has paid or queued. A recovery debited it without its certificate, and the
   * authorities have stepped over its number.
   */
  | { readonly type: "paid"; readonly order: Transfer };

/** The proof that a transfer was executed. */
export type TransferProof =
  | { readonly type: "certificate"; readonly certificate: VerifiedCertificate }
  /** The authorities have pruned the certificate. The committee's checkpoint of this number proves the transfer. */
  | {
      readonly type: "checkpoint";
      readonly checkpoint: bigint;
      /** True if a recovery debited the transfer without its order, because the contract had paid or queued it. */
      readonly isPaid: boolean;
    };

/** A transfer with its proof. */
export interface ProvenTransfer {
  readonly transfer: Transfer;
  /** The digest that the sender signed. It identifies the transfer. */
  readonly digest: Hex;
  readonly proof: TransferProof;
}

/** A payment, payout or redemption that the account sent, proven. */
export interface SentEntry extends ProvenTransfer {
  /** The order in this wallet's storage, with its times. */
  readonly order: OrderEntry | undefined;
}

/** The name of a received payment. */
export interface PaymentName {
  readonly sender: AccountId;
  readonly sequence: bigint;
  /** The position of the output in its payout, from 0; undefined for a single payment. */
  readonly output: number | undefined;
}

/** A payment that the account received, proven. Its name is (sender, sequence, output). */
export interface ReceivedEntry {
  /** For an output of a payout, the payment has the output's own memo. */
  readonly payment: Payment;
  /** The position of the output in its payout, from 0; undefined for a single payment. */
  readonly output: number | undefined;
  /** The digest of the payment, or of its payout. */
  readonly digest: Hex;
  readonly proof: TransferProof;
}

/** A payment of a list. */
export interface PayListLine {
  /** An account or its text. */
  readonly recipient: AccountId | string;
  readonly asset: Address;
  readonly amount: bigint;
  /** 32 bytes; see `encodeMemo`. Default: none. */
  readonly memo?: Hex;
  /** The line number in the file, from 1, for errors and results. Default: the position in the list. */
  readonly line?: number;
}

/** A list read from a file. */
export interface PayList {
  /** The hash of the file. */
  readonly name: Hex;
  readonly lines: readonly PayListLine[];
}

/** A fault of a list. */
export type ListFault =
  | TransferFault
  /** The line is malformed. */
  | "unreadable"
  | "recipient"
  | "amount"
  | "asset"
  | "memo"
  | "too-many-lines"
  /** The recipient is the account that pays. */
  | "own-account"
  /** Another account started a list with this name. */
  | "begun-by-another-account"
  /** A list with this name was started and pays something else. */
  | "changed";

/** One fault of a list, with its line. */
export interface ListError {
  /** Undefined for a fault of the whole list. */
  readonly line: number | undefined;
  readonly fault: ListFault;
  readonly message: string;
}

/** A payment of a list, with its position in the list's orders. */
export interface ListPayment extends Required<PayListLine> {
  readonly recipient: AccountId;
  /** The index of its order in the list's orders. */
  readonly page: number;
  /** The position of the output in that order, from 0. */
  readonly output: number;
}

/** One order of a list. */
export interface ListOrder {
  /** The memo of the order. It identifies the list and the order's position in it. */
  readonly memo: Hex;
  readonly asset: Address;
  readonly outputs: readonly Output[];
  /** The sum of the outputs. */
  readonly total: bigint;
  /**
   * `open`: not signed; `ordered`: signed and stored; `certified`: has a certificate; `settled`: confirmed by a quorum.
   */
  readonly state: "open" | "ordered" | "certified" | "settled";
  /** The order's sequence number; undefined while it is open. */
  readonly sequence: bigint | undefined;
  readonly digest: Hex | undefined;
}

/** The progress of a list of payments. */
export interface ListStatus {
  /** The list's identity. A list is paid once per name. */
  readonly name: Hex;
  /** The sender. */
  readonly account: AccountId;
  readonly maxOutputs: number;
  /** The time at which it was stored, in milliseconds since 1970; undefined if it was not started. */
  readonly begunAtMs: number | undefined;
  readonly orders: readonly ListOrder[];
  readonly payments: readonly ListPayment[];
}

/** A deposit that f + 1 authorities report identically. */
export interface DepositEntry {
  /** The index of its event at the contract. Deposits, redemptions and committees share one numbering. */
  readonly index: bigint;
  readonly recipient: AccountId;
  readonly asset: Address;
  readonly amount: bigint;
  /** The number of authorities that list it. */
  readonly authorities: number;
}

/** A part of an account's history; each list has its newest entry first. */
export interface History {
  readonly sent: readonly SentEntry[];
  readonly received: readonly ReceivedEntry[];
  readonly deposits: readonly DepositEntry[];
  /** The cursor of older entries; undefined if there are none. */
  readonly older: HistoryCursor | undefined;
  /**
   * The lists without some entries that belong here: authorities have pruned them, and no authority returned them from
   * its archive. Pruned deposits are not in the archives' lists: the contract's log has them.
   */
  readonly incomplete: readonly ("sent" | "received" | "deposits")[];
}

/** A position in an account's history. Opaque. Serializable as JSON. */
export interface HistoryCursor {
  readonly sent: string;
  /** The positions, by the authority's URL. */
  readonly received: Readonly<Record<string, string>>;
  readonly deposits: Readonly<Record<string, string>>;
  /** By the authority's URL, the checkpoint up to which the archive has the received payments that it has pruned. */
  readonly pruned?: Readonly<Record<string, string>>;
  /** The position in the archive, once the authorities' own lists of received payments have ended. */
  readonly archive?: string;
}

/** An event of an account, proven. */
export type AccountEvent =
  | ({ readonly type: "received" } & ReceivedEntry)
  | ({ readonly type: "deposited" } & DepositEntry)
  /** A transfer of the account itself was confirmed. */
  | ({ readonly type: "confirmed" } & ProvenTransfer);

/** The position of a watch at each authority, from which a later watch continues. Serializable as JSON. */
export type WatchCursor = Readonly<Record<string, string>>;

/** The purpose of a transaction on the Primary. */
export type ChainPurpose =
  /** A deposit into the account. `amount` is the amount sent; some tokens keep a part of it. */
  | { readonly type: "deposit"; readonly asset: Address; readonly amount: bigint }
  /** The payout of the account's redemption with that number, and its state when the transaction was sent. */
  | {
      readonly type: "payout";
      readonly sequence: bigint;
      readonly from: "open" | "queued";
      /** The digest of the redemption; undefined if an earlier version stored the transaction. */
      readonly digest: Hex | undefined;
    }
  /** Collecting a claim of the account's address, or a part of it. */
  | { readonly type: "claim"; readonly asset: Address; readonly amount: bigint }
  /** Unlocking this number of the account: the request to the contract, or the authorities' decision. */
  | { readonly type: "unlock"; readonly sequence: bigint; readonly step: "request" | "decision" };

/** The sender and nonce of a transaction: at most one such transaction is ever included. */
export interface Place {
  readonly from: Address;
  readonly nonce: number;
}

/** A transaction sent from this storage whose outcome is unknown. */
export type SubmittedTransaction = ChainPurpose & {
  readonly hash: Hex;
  /** The account that it concerns. */
  readonly account: AccountId;
  readonly submittedAtMs: number;
  /** Undefined until an Ethereum node reports it. */
  readonly place: Place | undefined;
};

/** The name of a transaction sent from this storage. */
export type TransactionName = Pick<SubmittedTransaction, "type" | "account" | "hash">;

/** A deposit on its way. */
export type DepositStatus =
  /** Not in a block yet, or the transaction is unknown. */
  | { readonly state: "pending" }
  /** The transaction was included and made no deposit. */
  | { readonly state: "reverted"; readonly block: bigint }
  /** In a block that is not final yet. */
  | { readonly state: "included"; readonly block: bigint; readonly deposit: DepositEntry }
  /** Final; authorities credit it soon. `deposit.authorities` of them have. */
  | { readonly state: "final"; readonly block: bigint; readonly deposit: DepositEntry }
  /** Credited by a quorum: it can be spent. */
  | { readonly state: "credited"; readonly block: bigint; readonly deposit: DepositEntry };

/** An event of the contract in a transaction. */
export type ContractEvent =
  | ({ readonly type: "deposit" } & Omit<DepositEntry, "authorities">)
  /** A redemption was paid (or kept as a claim because its recipient refused it), queued, or taken out of the queue. */
  | {
      readonly type: "redemption";
      readonly state: "paid" | "queued" | "released";
      readonly sender: AccountId;
      readonly sequence: bigint;
      readonly digest: Hex;
    }
  /** A refused payout was collected, all or a part of it. */
  | { readonly type: "claim"; readonly owner: Address; readonly asset: Address; readonly to: Address; readonly amount: bigint };

/** A transaction on the Primary that is in a block. */
export interface ContractTransaction {
  readonly block: bigint;
  readonly hasReverted: boolean;
  /** The contract's events, in their order. */
  readonly events: readonly ContractEvent[];
}

/** A deposit that is final and credited by a quorum. */
export interface DepositReceipt {
  readonly hash: Hex;
  readonly block: bigint;
  readonly deposit: DepositEntry;
}

/** The state of a redemption on the contract. Times are in seconds since 1970. */
export type RedemptionStatus =
  /** Not submitted yet. */
  | { readonly state: "open" }
  /** Above the outflow limit: queued, and executable from this time on. */
  | {
      readonly state: "queued";
      /** Includes the guardian's postponement. */
      readonly executableAt: bigint;
      readonly relayer: Address;
      /** The epoch of the votes. */
      readonly epoch: bigint;
      /** The keys of that epoch were stolen: the current committee has to vote for it once more. */
      readonly needsVotes: boolean;
    }
  /** Paid by this transaction, or kept as a claim after a refused payout. On a ledger, paid, and there is no transaction. */
  | { readonly state: "paid"; readonly hash: Hex | undefined }
  /**
   * Never paid: this transaction spent its number on another order, so keys of the committee were stolen. The
   * authorities credit the amount back. On a ledger there is no transaction.
   */
  | { readonly state: "displaced"; readonly hash: Hex | undefined }
  /** Never paid: this transaction took it out of the contract's queue. The authorities credit the amount back. */
  | { readonly state: "released"; readonly hash: Hex }
  /** Its number is spent, but the order is unknown: the event is older than two weeks, or the node serves no log. */
  | { readonly state: "spent" }
  /** The contract voided its number: it was never executed, and nothing was paid. */
  | { readonly state: "voided" };

/** The contract's state of a number that its owner may have asked to unlock. Times are in seconds since 1970. */
export type UnlockStatus =
  /** Nobody has requested it. */
  | { readonly state: "none" }
  | {
      readonly state: "requested";
      /** A quorum of authorities can void the number from this time on. */
      readonly voidableFrom: bigint;
      /** The block of the request is final: authorities have read it, or will soon. */
      readonly isFinal: boolean;
      /** The contract has decided, in a block that is not final yet. */
      readonly isDecided: boolean;
    }
  /** The contract decided for one order of the number. */
  | { readonly state: "upheld" }
  /** The contract decided against all orders of the number. */
  | { readonly state: "voided" };

/** The outcome of unlocking a number. */
export interface UnlockReceipt {
  readonly sequence: bigint;
  /**
   * `voided`: nothing was paid, and the next number is free. `finished`: an order of the number was finished after all.
   */
  readonly outcome: "voided" | "finished";
  /** The orders that were finished meanwhile. */
  readonly resumed: readonly Resumed[];
}

/** The current cost to unlock a number, in wei. */
export interface UnlockCost {
  /**
   * The bond. The payer gets it back if the number is voided. If an order is upheld, the submitter of the votes gets
   * it.
   */
  readonly bond: bigint;
  /** The gas of both transactions. */
  readonly gas: bigint;
  /** The price of a unit of gas, in wei. */
  readonly gasPrice: bigint;
  /** The cost of all gas, in wei. */
  readonly wei: bigint;
}

/** The outcome of a transaction that pays a redemption. */
export interface PayoutReceipt {
  /** The payout's transaction; undefined if another account submitted the redemption first. */
  readonly hash: Hex | undefined;
  readonly status: RedemptionStatus;
}

/** The result of a claim. */
export interface ClaimReceipt {
  readonly hash: Hex;
  readonly amount: bigint;
  /** The recipient. */
  readonly to: Address;
}

/** A final transaction of an unlock. */
export interface UnlockTransaction {
  readonly hash: Hex;
}

/** The outcome of a transaction, by its purpose. */
export type TransactionReceipt = DepositReceipt | PayoutReceipt | ClaimReceipt | UnlockTransaction;

/** The contract's state. Times are in seconds, or in seconds since 1970. */
export interface ContractStatus {
  readonly epoch: bigint;
  /** 0 if the contract is not paused. */
  readonly pausedUntil: bigint;
  readonly guardian: Address;
  /** The index of the newest event. Deposits, redemptions and committees share one numbering. */
  readonly lastTransactionIndex: bigint;
  readonly outflowShareBasisPoints: number;
  readonly outflowWindow: number;
  readonly outflowDelay: number;
  /** The newest block's time. */
  readonly timestamp: bigint;
}

/** The contract's state of one asset, in its smallest unit. */
export interface AssetStatus {
  readonly asset: Address;
  /** The amount held for accounts. */
  readonly totalBalance: bigint;
  readonly totalClaims: bigint;
  /** The queued amount. It is part of `totalBalance` until it is paid. */
  readonly totalQueued: bigint;
  /** The amount that can be redeemed at once now. More is queued. */
  readonly outflowAvailable: bigint;
}

/** A token's claimed name and decimals. Anyone can deploy a token named USDC: only the address identifies it. */
export interface AssetInfo {
  readonly asset: Address;
  /** Plain text, shortened. */
  readonly symbol: string;
  readonly decimals: number;
  /** True if it accepts permits (ERC-2612): a deposit then needs one transaction and no approval. */
  readonly hasPermit: boolean;
}

/** The current gas cost of one redemption. */
export interface RedemptionCost {
  readonly gas: bigint;
  /** The price of a unit of gas, in wei. */
  readonly gasPrice: bigint;
  /** The total cost in wei: a fee in ETH that a relayer should accept. */
  readonly wei: bigint;
}

/** One relayer's offer. Not binding. */
export interface RelayerOffer {
  /** The base of its address. */
  readonly url: string;
  /** The address that pays for the gas and receives the fee. */
  readonly relayer: Address;
  /** The fee, in the asset's smallest unit. */
  readonly fee: bigint;
}

/** The relayers' current offers for a redemption of one asset. */
export interface RelayerFees {
  readonly asset: Address;
  /** Offers of relayers that serve the asset, lowest fee first. */
  readonly offers: readonly RelayerOffer[];
  /** Relayers without a usable answer, with the error. */
  readonly silent: readonly { readonly url: string; readonly error: FastPayError }[];
  /**
   * A fee that more than half of `offers` accept. Among three or more offers, a single relayer cannot shift it at will.
   * Undefined without offers.
   */
  readonly proposed: bigint | undefined;
  /** The usual time from settlement to payout, in milliseconds. On Ethereum, relayers wait a minute to form a batch. */
  readonly usualMs: number;
}

/** Each authority's certificate of one transfer, checked separately. */
export interface CertificateEvidence {
  /** A valid certificate; undefined if no authority has one. */
  readonly certificate: VerifiedCertificate | undefined;
  /**
   * The number in the archive, if authorities have pruned its certificate and it was named by account and sequence: no
   * archive is read by digest.
   */
  readonly archived: ArchivedNumber | undefined;
  readonly answers: readonly AuthorityAnswer<{
    readonly certificate: Certificate;
    /**
     * The result of the check; undefined if the epoch is not final on the contract yet, so that no check is possible.
     */
    readonly report: CertificateReport | undefined;
  }>[];
}
