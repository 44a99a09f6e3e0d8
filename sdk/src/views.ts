/** What the client shows: accounts, orders, histories, the contract. */

import type { AccountId } from "./accounts.js";
import type { Address, Hex } from "./bytes.js";
import type { Certificate, CertificateReport, VerifiedCertificate } from "./certificate.js";
import type { FastPayError } from "./errors.js";
import type { AuthorityRef } from "./progress.js";
import type { OrderState } from "./storage/store.js";
import type { Output, Payment, Transfer, TransferFault, TransferOrder } from "./transfer.js";

/** What a committee says of one asset of an account. */
export interface AgreedBalance {
  readonly asset: Address;
  /** How much, as f + 1 authorities say; where no f + 1 say the same, what f + 1 exceed or meet. May be negative. */
  readonly balance: bigint;
  /** How many say exactly this. */
  readonly agreeing: number;
  /** How many answered. */
  readonly answered: number;
}

/** What one authority says of an account. Nobody else vouches for it. */
export interface AccountState {
  readonly nextSequence: bigint;
  /** The order that it is locked on. */
  readonly pending: TransferOrder | undefined;
  readonly holdings: readonly { readonly asset: Address; readonly balance: bigint }[];
  /** How many payments it has received. */
  readonly received: bigint;
  /** How many deposits it has. */
  readonly deposits: bigint;
  /** There are more assets than are listed. */
  readonly truncated: boolean;
}

/** What one authority answered, or why it did not. */
export interface AuthorityAnswer<T> {
  readonly authority: AuthorityRef;
  readonly answer: T | undefined;
  readonly error: FastPayError | undefined;
}

/** An account as the committee knows it. */
export interface AccountView {
  readonly account: AccountId;
  /** By asset, what it holds. */
  readonly balances: readonly AgreedBalance[];
  /** The number of its next order, proven by the certificate before it. */
  readonly nextSequence: bigint;
  /** An order that authorities are locked on and that has no certificate yet, checked. */
  readonly pending: TransferOrder | undefined;
  /** What each authority says; neither an answer nor an error of those that were not heard in time. */
  readonly states: readonly AuthorityAnswer<AccountState>[];
  /** How far each authority that answered was: a watch from here on tells what they did not know yet. */
  readonly cursor: WatchCursor;
}

/** An order in this wallet's storage. */
export interface OrderEntry {
  readonly account: AccountId;
  readonly sequence: bigint;
  /** What happened, or is to happen, under this number. */
  readonly transfer: Transfer;
  readonly state: OrderState;
  /** When each of it was written down, in milliseconds since 1970. */
  readonly createdAtMs: number | undefined;
  readonly certifiedAtMs: number | undefined;
  readonly settledAtMs: number | undefined;
}

/** A transfer that is settled. */
export interface Receipt {
  /** The proof, which anyone can verify. */
  readonly certificate: VerifiedCertificate;
  /** True where it had been ordered before and was only finished now. */
  readonly resumed: boolean;
  /** From sending the order to holding the certificate; 0 where that was held already. */
  readonly certifiedAfterMs: number;
  /** From sending the certificate to a quorum's confirmation. */
  readonly settledAfterMs: number;
  /** Goes on with the authorities beyond the quorum; ends with how many have confirmed in all. Never rejects. */
  readonly rest: Promise<number>;
}

/** What became of an order that was unfinished. */
export type Resumed =
  | { readonly type: "settled"; readonly receipt: Receipt }
  /** Another order of the same number is final; this one never will be. */
  | { readonly type: "superseded"; readonly order: Transfer; readonly certificate: VerifiedCertificate };

/** A payment, payout or redemption that the account sent, proven. */
export interface SentEntry {
  readonly certificate: VerifiedCertificate;
  /** What this wallet's storage knows of it, such as its times. */
  readonly order: OrderEntry | undefined;
}

/** The name of a received payment. */
export interface PaymentName {
  readonly sender: AccountId;
  readonly sequence: bigint;
  /** The number of the output in its payout, from 0; none for a payment that is an order of its own. */
  readonly output: number | undefined;
}

/** A payment that the account received, proven. Its name is (sender, sequence, output). */
export interface ReceivedEntry {
  /** Of an output of a payout, with the output's own memo. */
  readonly payment: Payment;
  /** The number of the output in its payout, from 0; none for a payment that is an order of its own. */
  readonly output: number | undefined;
  /** Of the payment, or of the payout. */
  readonly certificate: VerifiedCertificate;
}

/** A payment of a list. */
export interface PayListLine {
  /** An account or its text. */
  readonly recipient: AccountId | string;
  readonly asset: Address;
  readonly amount: bigint;
  /** 32 bytes; see `encodeMemo`. Default: none. */
  readonly memo?: Hex;
  /** Its line in the file, from 1, for errors and results. Default: its place in the list. */
  readonly line?: number;
}

/** A list as it was read from a file. */
export interface PayList {
  /** The hash of the file. */
  readonly name: Hex;
  readonly lines: readonly PayListLine[];
}

/** What is wrong with a list. */
export type ListFault =
  | TransferFault
  /** The line is no line of such a file. */
  | "unreadable"
  | "recipient"
  | "amount"
  | "asset"
  | "memo"
  | "too-many-lines"
  /** The recipient is the account that pays. */
  | "own-account"
  /** A list of this name was begun by another account. */
  | "begun-by-another-account"
  /** A list of this name was begun, and pays something else. */
  | "changed";

/** One thing that is wrong with a list. */
export interface ListError {
  /** None where it is the list as a whole. */
  readonly line: number | undefined;
  readonly fault: ListFault;
  readonly message: string;
}

/** A payment of a list, and where it stands among the list's orders. */
export interface ListPayment extends Required<PayListLine> {
  readonly recipient: AccountId;
  /** The order that pays it, by its place among the list's orders. */
  readonly page: number;
  /** The number of the output there, from 0. */
  readonly output: number;
}

/** One order of a list. */
export interface ListOrder {
  readonly asset: Address;
  readonly outputs: readonly Output[];
  /** Their sum. */
  readonly total: bigint;
  /** Not signed yet; signed and kept here; with a certificate; confirmed by a quorum. */
  readonly state: "open" | "ordered" | "certified" | "settled";
  /** Its number among the sender's orders; none where it is open. */
  readonly sequence: bigint | undefined;
  readonly digest: Hex | undefined;
}

/** How far a list of payments is. */
export interface ListStatus {
  /** What makes it the same list: it is paid once. */
  readonly name: Hex;
  /** Who pays. */
  readonly account: AccountId;
  readonly maxOutputs: number;
  /** Since when it stands in this storage; none where it was not begun when this was asked. */
  readonly begunAtMs: number | undefined;
  readonly orders: readonly ListOrder[];
  readonly payments: readonly ListPayment[];
}

/** A deposit that f + 1 authorities have credited alike. */
export interface DepositEntry {
  /** Its index in the one numbering of the contract's events: deposits share it with redemptions and committees. */
  readonly index: bigint;
  readonly recipient: AccountId;
  readonly asset: Address;
  readonly amount: bigint;
  /** How many authorities list it, of those that were asked. */
  readonly authorities: number;
}

/** A part of an account's history; each list has its newest entry first. */
export interface History {
  readonly sent: readonly SentEntry[];
  readonly received: readonly ReceivedEntry[];
  readonly deposits: readonly DepositEntry[];
  /** Where to go on with older entries; none where there are none. */
  readonly older: HistoryCursor | undefined;
}

/** A place in an account's history. Opaque; it can be kept as JSON. */
export interface HistoryCursor {
  readonly sent: string;
  /** By authority. */
  readonly received: Readonly<Record<string, string>>;
  readonly deposits: Readonly<Record<string, string>>;
}

/** Something that happened to an account, proven. */
export type AccountEvent =
  | ({ readonly type: "received" } & ReceivedEntry)
  | ({ readonly type: "deposited" } & DepositEntry)
  /** A transfer of the account itself was confirmed. */
  | { readonly type: "confirmed"; readonly certificate: VerifiedCertificate };

/** Where a watch stands at each authority, to go on from after a restart. It can be kept as JSON. */
export type WatchCursor = Readonly<Record<string, string>>;

/** What a transaction on the Primary was sent for. */
export type ChainPurpose =
  /** A deposit into the account. `amount` is what was to be deposited; some tokens keep a part of it. */
  | { readonly type: "deposit"; readonly asset: Address; readonly amount: bigint }
  /** The payout of the account's redemption of that number, which stood so when it was sent. */
  | { readonly type: "payout"; readonly sequence: bigint; readonly from: "open" | "queued" }
  /** Collecting what could not be paid out to the account's address, or a part of it. */
  | { readonly type: "claim"; readonly asset: Address; readonly amount: bigint };

/** Whose transaction it is, and which of theirs: at most one of them is ever in a block. */
export interface Place {
  readonly from: Address;
  readonly nonce: number;
}

/** A transaction that was sent from here, and of which the end is not known yet. */
export type SubmittedTransaction = ChainPurpose & {
  readonly hash: Hex;
  /** Whom it concerns. */
  readonly account: AccountId;
  readonly submittedAtMs: number;
  /** None where no Ethereum node has told it. */
  readonly place: Place | undefined;
};

/** A transaction that was sent from here. */
export type TransactionName = Pick<SubmittedTransaction, "type" | "account" | "hash">;

/** A deposit on its way. */
export type DepositStatus =
  /** Not in a block yet, or its transaction is not known. */
  | { readonly state: "pending" }
  /** The transaction is in a block and did nothing. */
  | { readonly state: "reverted"; readonly block: bigint }
  /** In a block that is not final yet. */
  | { readonly state: "included"; readonly block: bigint; readonly deposit: DepositEntry }
  /** Final; authorities credit it soon. `deposit.authorities` have. */
  | { readonly state: "final"; readonly block: bigint; readonly deposit: DepositEntry }
  /** Credited by a quorum: it can be spent. */
  | { readonly state: "credited"; readonly block: bigint; readonly deposit: DepositEntry };

/** A deposit that is final and credited by a quorum. */
export interface DepositReceipt {
  readonly hash: Hex;
  readonly block: bigint;
  readonly deposit: DepositEntry;
}

/** Where a redemption stands on the contract. Times in seconds since 1970. */
export type RedemptionStatus =
  /** Not brought there yet. */
  | { readonly state: "open" }
  /** Above the outflow limit: it waits, and can be executed from then on. */
  | {
      readonly state: "queued";
      /** With what the guardian has postponed it by. */
      readonly executableAt: bigint;
      readonly relayer: Address;
      /** Whose votes brought it. */
      readonly epoch: bigint;
      /** The keys of that epoch were stolen: the current committee has to vote for it once more. */
      readonly needsVotes: boolean;
    }
  /** Paid; or kept as a claim where the payout was refused. */
  | { readonly state: "paid" };

/** What happened to a transaction that pays a redemption out. */
export interface PayoutReceipt {
  /** None where somebody else had brought it before. */
  readonly hash: Hex | undefined;
  readonly status: RedemptionStatus;
}

/** What was collected. */
export interface ClaimReceipt {
  readonly hash: Hex;
  readonly amount: bigint;
  /** Who was paid. */
  readonly to: Address;
}

/** What became of a transaction, by what it was sent for. */
export type TransactionReceipt = DepositReceipt | PayoutReceipt | ClaimReceipt;

/** What the contract says of itself. Times in seconds, or seconds since 1970. */
export interface ContractStatus {
  readonly epoch: bigint;
  /** 0 where it is not paused. */
  readonly pausedUntil: bigint;
  readonly guardian: Address;
  /** The index of the newest event in the order: deposits, redemptions, committees. */
  readonly lastTransactionIndex: bigint;
  readonly outflowShareBasisPoints: number;
  readonly outflowWindow: number;
  readonly outflowDelay: number;
  /** The newest block's time. */
  readonly timestamp: bigint;
}

/** What the contract says of one asset, in its smallest unit. */
export interface AssetStatus {
  readonly asset: Address;
  /** Held for accounts. */
  readonly totalBalance: bigint;
  readonly totalClaims: bigint;
  /** What waits in the queue. It is a part of `totalBalance` until it is paid. */
  readonly totalQueued: bigint;
  /** What can be redeemed at once now; more waits. */
  readonly outflowAvailable: bigint;
}

/** How a token calls itself and counts. Anyone can deploy a token that calls itself USDC: its address is what counts. */
export interface AssetInfo {
  readonly asset: Address;
  /** Plain text, shortened. */
  readonly symbol: string;
  readonly decimals: number;
  /** It takes permits (ERC-2612): a deposit needs one transaction and no approval. */
  readonly hasPermit: boolean;
}

/** What bringing one redemption to the contract costs now. */
export interface RedemptionCost {
  readonly gas: bigint;
  /** Wei for each unit of gas. */
  readonly gasPrice: bigint;
  /** Wei in all: a fee in ETH that a relayer should accept. */
  readonly wei: bigint;
}

/** What one relayer says that it takes. Nothing binds it to that. */
export interface RelayerOffer {
  /** The base of its address. */
  readonly url: string;
  /** Who pays for the gas and receives the fee. */
  readonly relayer: Address;
  /** In the asset's smallest unit. */
  readonly fee: bigint;
}

/** What relayers say that they take now for a redemption of one asset. */
export interface RelayerFees {
  readonly asset: Address;
  /** Of those that serve the asset, the lowest fee first. */
  readonly offers: readonly RelayerOffer[];
  /** Those that gave no answer that can be used, and why. */
  readonly silent: readonly { readonly url: string; readonly error: FastPayError }[];
  /** A fee that more than half of `offers` take; one relayer alone cannot move it where there are three. None without offers. */
  readonly proposed: bigint | undefined;
  /** How long it usually takes then, from settled to a block: relayers wait a minute for company. In milliseconds. */
  readonly usualMs: number;
}

/** What every authority shows for one transfer, each checked by itself. */
export interface CertificateEvidence {
  /** A valid certificate that one of them has; none where nobody has. */
  readonly certificate: VerifiedCertificate | undefined;
  readonly answers: readonly AuthorityAnswer<{
    readonly certificate: Certificate;
    /** None where the contract does not know its epoch yet: nobody can say whether it holds. */
    readonly report: CertificateReport | undefined;
  }>[];
}
