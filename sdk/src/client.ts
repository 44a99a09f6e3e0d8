/** The client's interface. `FastPay.create` returns a client. */

import type { PublicClient, WalletClient } from "viem";

import type { AccountId } from "./accounts.js";
import type { Address, Hex } from "./bytes.js";
import type { Finality } from "./chain/contract.js";
import type { VerifiedCertificate } from "./certificate.js";
import type { AuthorityName, Committee } from "./committee.js";
import type { Timing } from "./quorum/certify.js";
import type { AuthorityRef, ChainProgress, ManyProgress, TransferProgress } from "./progress.js";
import type { Signer } from "./signers.js";
import type { OrderStore } from "./storage/store.js";
import type { Domain, Redemption } from "./transfer.js";
import type {
  AccountEvent,
  AccountView,
  AssetInfo,
  AssetStatus,
  CertificateEvidence,
  ClaimReceipt,
  ContractStatus,
  ContractTransaction,
  DepositEntry,
  DepositReceipt,
  DepositStatus,
  History,
  HistoryCursor,
  ListStatus,
  OrderEntry,
  PayList,
  PayListLine,
  PayoutReceipt,
  Receipt,
  RedemptionCost,
  RedemptionStatus,
  RelayerFees,
  Resumed,
  SubmittedTransaction,
  TransactionName,
  TransactionReceipt,
  UnlockCost,
  UnlockReceipt,
  UnlockStatus,
  WatchCursor,
} from "./views.js";

/** An authority's address. The authorities' keys come from the Primary. */
export interface AuthorityEndpoint {
  /** The base of its HTTP API, such as `https://a.example:8080`. */
  readonly http: string;
  /** The authority's name. If given, answers count for this member only. Otherwise the client requests the name. */
  readonly name?: AuthorityName;
}

/** The functions of viem's public client that the SDK uses. Bundling only these makes a page a quarter smaller. */
export interface EthereumClient
  extends Pick<
    PublicClient,
    | "call"
    | "chain"
    | "getBalance"
    | "getBlock"
    | "getChainId"
    | "getCode"
    | "getGasPrice"
    | "getTransaction"
    | "getTransactionCount"
    | "getTransactionReceipt"
    | "pollingInterval"
    | "readContract"
    | "request"
    | "waitForTransactionReceipt"
  > {}

/** The functions of viem's wallet client that the SDK uses. The wallet client needs an account. */
export interface EthereumWallet
  extends Pick<WalletClient, "account" | "chain" | "getChainId" | "sendTransaction" | "signTypedData"> {}

/** Options of every client. */
export interface ClientOptions {
  readonly authorities: readonly AuthorityEndpoint[];
  /** Base URLs of relayers, as listed in the endpoints file. Default: none. */
  readonly relayers?: readonly string[];
  /** Stores orders before they are sent. Default: the browser's IndexedDB. Required elsewhere to send. */
  readonly storage?: OrderStore;
  /**
   * If the storage belongs to another deployment at this address (with another first committee), keep its entries but
   * do not use them. Default: throw `other-deployment`.
   */
  readonly setAside?: boolean;
  readonly timing?: Partial<Timing>;
}

/** Options of a client whose Primary is a contract on Ethereum. */
export interface ContractOptions extends ClientOptions {
  readonly ledger?: undefined;
  /** An Ethereum node that you trust for committees, finality and payouts. */
  readonly publicClient: EthereumClient;
  /** The FastPay contract. */
  readonly contract: Address;
  /** The chain's id, which `create` checks against the node. */
  readonly chainId: number;
  /** Default: `finalized`. */
  readonly finality?: Finality;
}

/** A FastPay committee on a ledger. `openLedger` of `@fastpay/sdk/ledger` makes it. */
export interface LedgerPrimary {
  readonly kind: "ledger";
  /** Chain id 0, and an address that follows from the ledger's genesis and the committee's number. */
  readonly domain: Domain;
}

/** Options of a client whose Primary is a ledger. */
export interface LedgerOptions extends ClientOptions {
  readonly ledger: LedgerPrimary;
}

/** Options of a client. */
export type FastPayOptions = ContractOptions | LedgerOptions;

/** A payment, without sender and sequence number. */
export interface PayIntent {
  /** An `AccountId`, or its text: `0x…`, the address of an Ethereum account, or `fp1…`. */
  readonly recipient: AccountId | string;
  readonly asset: Address;
  readonly amount: bigint;
  /** 32 bytes; see `encodeMemo`. Default: none. */
  readonly memo?: Hex;
  /** The expiry, in seconds since 1970, for example of a payment link. Checked again after signing. Default: none. */
  readonly expires?: bigint;
}

/** A redemption, without sender and sequence number. */
export interface RedeemIntent {
  readonly recipient: Address;
  readonly asset: Address;
  /** The amount to debit, in the asset's smallest unit. */
  readonly amount: bigint;
  /**
   * The part of `amount` that pays the account that submits the redemption; see `relayerFees`. Default: 0, which few
   * relayers accept.
   */
  readonly fee?: bigint;
  readonly memo?: Hex;
}

/** A claim to collect. */
export interface ClaimIntent {
  readonly asset: Address;
  /** The amount in the asset's smallest unit. Default: all of it. */
  readonly amount?: bigint;
  /** The recipient, for the wallet's own claim only. Default: the wallet's address. */
  readonly to?: Address;
  /** The owner of the claim. Default: the wallet's address. Another owner's claim is paid to that owner. */
  readonly owner?: Address;
}

/** Progress and cancellation of a transfer. After cancellation, `resume` continues it. */
export interface TransferOptions {
  /** Receives each step with its time. An error that it throws stops nothing. */
  readonly onProgress?: (progress: TransferProgress) => void;
  readonly signal?: AbortSignal;
}

/** Options for paying a list. */
export interface ManyOptions {
  /**
   * The list's identity, 32 bytes. A list is paid once per name. Default: the hash of its payments, so pass different
   * names to pay two equal lists.
   */
  readonly name?: Hex;
  /** The maximum number of payments in one order, at most 256. Default: 256. */
  readonly maxOutputs?: number;
  /** Receives each step with its time. An error that it throws stops nothing. */
  readonly onProgress?: (progress: ManyProgress) => void;
  readonly signal?: AbortSignal;
}

/**
 * Progress and cancellation of a transaction on the Primary. A submitted transaction may still happen after
 * cancellation.
 */
export interface ChainOptions {
  /** Receives each step with its time. An error that it throws stops nothing. */
  readonly onProgress?: (progress: ChainProgress) => void;
  readonly signal?: AbortSignal;
}

/**
 * A client of one FastPay deployment. Every failure is a `FastPayError`. On a ledger, functions that need a contract
 * throw `needs-contract`, whose action says how it is done there.
 */
export interface FastPayClient {
  readonly domain: Domain;
  /** Where accounts are funded and redemptions are paid. */
  readonly primary: "contract" | "ledger";
  readonly authorities: readonly AuthorityRef[];

  /**
   * Stops all work of this client, including the background, so that the program can exit. Pending calls throw
   * `aborted` and can be resumed with another client.
   */
  close(): void;

  /**
   * False if the contract's first committee differs from this client's, because the network was started anew. Create
   * another client then. On a ledger always true, without asking: the domain identifies the deployment.
   */
  isCurrent(): Promise<boolean>;
  /**
   * The source of the client's first committees: the Primary, or the storage if the Primary did not answer at the start,
   * or if members of a ledger showed an earlier committee. Then call `isCurrent` once an Ethereum node answers: it
   * compares them with the contract.
   */
  readonly committeesFrom: "contract" | "ledger" | "storage";
  /** The committee of an epoch, or the current one, from the Primary. */
  committee(epoch?: bigint): Promise<Committee>;

  // ----------------------------------------------------------------------------------- transfers

  /**
   * Makes a payment and resolves when it is settled. Reports the step `certified` before that, after one round trip. If
   * an order of the same payment is unfinished, finishes it instead of making a second one. After `no-quorum` or
   * `aborted` the order may have been sent: `resume`, or the same call again, continues it. Throws `invalid-link` if
   * the payment expired before it was signed; nothing was sent then.
   */
  pay(signer: Signer, intent: PayIntent, options?: TransferOptions): Promise<Receipt>;
  /**
   * Makes a redemption to the Primary; otherwise like `pay`. Then a relayer, or `redeemOnChain`, submits the
   * certificate to the contract. Throws `recipient-is-fastpay` before signing if the recipient is a contract of
   * FastPay.
   */
  redeem(signer: Signer, intent: RedeemIntent, options?: TransferOptions): Promise<Receipt>;
  /**
   * Pays a list with as few orders as possible, and resolves when all are settled. Checks the list before signing.
   * Throws `invalid-list` with all faults, and `insufficient-funds` if the balance is below the sum. After any other
   * error, the same call continues and pays nobody twice.
   */
  payMany(signer: Signer, list: readonly PayListLine[], options?: ManyOptions): Promise<ListStatus>;
  /** The progress of a list and its remaining orders. Checks the list, and signs nothing. */
  listStatus(account: AccountId, list: readonly PayListLine[], options?: ManyOptions): Promise<ListStatus>;
  /**
   * Reads a list from CSV: `recipient,amount,memo`, or the columns named by the first line (also `asset`). `asset`
   * applies to lines without one; default: ETH. The list's name is the hash of the file.
   */
  readList(content: string | Uint8Array, options?: { asset?: Address }): Promise<PayList>;
  /** The lists started with this storage that are not settled, oldest first. */
  unfinishedLists(account: AccountId): Promise<ListStatus[]>;
  /** Continues an unfinished list. */
  resumeList(signer: Signer, name: Hex, options?: Pick<ManyOptions, "onProgress" | "signal">): Promise<ListStatus>;
  /** Removes a list from the unfinished lists. `resume` still finishes its orders. */
  closeList(name: Hex): Promise<void>;
  /** Finishes the unfinished orders of this storage and of other copies of this wallet. Needs no key. */
  resume(account: AccountId, options?: TransferOptions): Promise<Resumed[]>;
  /** The orders of this storage, newest first. */
  orders(account: AccountId): Promise<OrderEntry[]>;
  /**
   * The orders that are not settled, oldest first. A superseded order is returned with the certificate that took its
   * number.
   */
  unfinished(account: AccountId): Promise<OrderEntry[]>;

  // --------------------------------------------------------------------------------------- reads

  /**
   * The agreed state of an account. Reads `assets` one by one if an authority's list is truncated. Waits for
   * authorities beyond a quorum for `graceMs`, by default 100 ms, within the time for reads.
   */
  account(account: AccountId, assets?: readonly Address[], options?: { graceMs?: number }): Promise<AccountView>;
  /**
   * The newest entries of an account's history, all proven: by a certificate, or by a checkpoint of the committee if
   * authorities have pruned the certificate. `cursor` continues with older ones; a received payment may come on two
   * pages. A `view` of the account saves reading its state again: the entries are then the newest as of that view.
   */
  history(account: AccountId, options?: { limit?: number; cursor?: HistoryCursor; view?: AccountView }): Promise<History>;
  /**
   * An account's events from now on, or from a cursor. A view's cursor starts after that view. Each event is returned
   * once: a transfer when a quorum of authorities reports it, a deposit when f + 1 do. Ends with `signal`. Events that
   * authorities have pruned since the cursor come from the archives when f + 1 authorities report them so, except
   * deposits; other payments of the same checkpoint may then come again.
   */
  watch(account: AccountId, options?: { from?: WatchCursor; signal?: AbortSignal }): AccountWatch;
  /**
   * The authorities' certificates of a transfer, by digest or by sender and number. If authorities have pruned it, the
   * archive's proof, by sender and number.
   */
  evidence(of: Hex | { account: AccountId; sequence: bigint }): Promise<CertificateEvidence>;
  /**
   * The newest transfers of all accounts, newest first, for display: at most 20, each proven by its certificate.
   * Nothing proves that there are no newer ones. Throws `too-few-answers` if no authority answers.
   */
  latestTransfers(): Promise<readonly VerifiedCertificate[]>;
  /**
   * A valid certificate by sender and number; undefined if no authority has one, or has it any more: then `evidence` has
   * the archive's proof.
   */
  certificate(account: AccountId, sequence: bigint): Promise<VerifiedCertificate | undefined>;

  // ----------------------------------------------------------------------------------- the Primary

  /**
   * Deposits from the wallet's address, and resolves when a quorum has credited it. Default recipient: the wallet's own
   * account. Errors after sending have the transaction's hash in `details`: it may still happen, so do not send it
   * again.
   */
  deposit(
    wallet: EthereumWallet,
    intent: { recipient?: AccountId | string; asset: Address; amount: bigint },
    options?: ChainOptions,
  ): Promise<DepositReceipt>;
  /**
   * The transactions sent from this storage without a known outcome, oldest first: deposits into an account, payouts of
   * its redemptions, claims of its address. After a reload, resume them instead of sending them again.
   */
  unfinishedTransactions(account: AccountId): Promise<SubmittedTransaction[]>;
  /**
   * Follows an unfinished transaction to its end. Needs no key. Throws `not-found` if it was cancelled, or replaced by
   * a transaction that the Ethereum node cannot find.
   */
  resumeTransaction(sent: SubmittedTransaction, options?: ChainOptions): Promise<TransactionReceipt>;
  /** Removes a transaction from the unfinished ones, for example one that no node knows any more. */
  forgetTransaction(sent: TransactionName): Promise<void>;
  /** The state of a deposit, by its transaction. */
  depositStatus(hash: Hex): Promise<DepositStatus>;
  /** The contract's events in a transaction on the Primary; undefined if it is in no block. */
  contractTransaction(hash: Hex): Promise<ContractTransaction | undefined>;
  /** The transaction of a deposit, by its index; undefined if the newest 100,000 blocks have none. */
  depositTransaction(index: bigint): Promise<Hex | undefined>;
  /**
   * A deposit by its index, as reported by f + 1 authorities; undefined if too few report it. Not every index belongs
   * to a deposit.
   */
  depositByIndex(index: bigint): Promise<DepositEntry | undefined>;
  /**
   * Submits a redemption to the contract with the wallet's own transaction. If one is pending already, follows it
   * instead of sending another. Throws `never-paid` if the redemption has ended without a payout.
   */
  redeemOnChain(wallet: EthereumWallet, certificate: VerifiedCertificate, options?: ChainOptions): Promise<PayoutReceipt>;
  /**
   * Executes a due redemption from the contract's queue; otherwise like `redeemOnChain`. If its status has
   * `needsVotes`, collects votes of the current committee first.
   */
  executeQueued(wallet: EthereumWallet, redemption: Redemption, options?: ChainOptions): Promise<PayoutReceipt>;
  /**
   * The state of a redemption on the contract. It is `paid` only if the contract's log has the payout of this very
   * redemption: a thief with the committee's redemption keys may have spent its number on another order.
   */
  redemptionStatus(redemption: Redemption): Promise<RedemptionStatus>;
  /** The amount of refused payouts to `owner`, in the asset's smallest unit. */
  claimable(owner: Address, asset: Address): Promise<bigint>;
  /** Collects a claim or a part of it. If a claim is pending already, follows it instead of sending another. */
  claim(wallet: EthereumWallet, intent: ClaimIntent, options?: ChainOptions): Promise<ClaimReceipt>;
  /**
   * Unlocks an account whose owner signed two orders for one number, if neither can get a quorum. The wallet pays a
   * bond, requests the unlocking at the contract, and submits the authorities' votes. With `"relayer"`, the signer
   * signs the request, and one of the client's relayers sends and pays everything. Resolves when the contract has
   * decided and authorities have read the decision. This takes two transactions and their finality if all authorities
   * vote, and the contract's unlock window otherwise. After any error or a reload, the same call continues and sends
   * nothing twice. Throws `invalid-argument` if there is nothing to unlock, `no-relayer`, and `too-few-answers` if for
   * some minutes only the Ethereum node shows a decision.
   */
  unlock(payer: EthereumWallet | "relayer", signer: Signer, options?: ChainOptions): Promise<UnlockReceipt>;
  /** The contract's state of a number that its owner may have asked to unlock. */
  unlockStatus(account: AccountId, sequence: bigint): Promise<UnlockStatus>;
  /** The current cost to unlock a number. */
  unlockCost(): Promise<UnlockCost>;
  /**
   * True if an address is a contract of FastPay, of this deployment or of another one on this chain. Money redeemed to
   * it is lost.
   */
  isFastPay(address: Address): Promise<boolean>;
  /** The contract's state: epoch, pause, and outflow limits. */
  contractStatus(): Promise<ContractStatus>;
  /** The amounts of an asset that the contract holds for accounts, owes as claims, has queued, and can pay at once. */
  assetStatus(asset: Address): Promise<AssetStatus>;
  /** An asset's claimed symbol and its decimals. */
  assetInfo(asset: Address): Promise<AssetInfo>;
  /** The balance of an address on the chain, in the asset's smallest unit. */
  balanceOnChain(owner: Address, asset: Address): Promise<bigint>;
  /** The current gas cost of one redemption, which a relayer's fee should cover. */
  redemptionCost(): Promise<RedemptionCost>;
  /** The current fees of the relayers in the client's options. Pass `proposed` to `redeem` as the fee. */
  relayerFees(asset: Address): Promise<RelayerFees>;
}

/** An account's events. */
export interface AccountWatch extends AsyncIterable<AccountEvent> {
  /** The position from which the next watch continues. */
  cursor(): WatchCursor;
}
