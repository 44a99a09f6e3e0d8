/** What a client offers; `FastPay.create` makes one. */

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
  WatchCursor,
} from "./views.js";

/** Where an authority is. Who the authorities are comes from the contract. */
export interface AuthorityEndpoint {
  /** The base of its HTTP API, such as `https://a.example:8080`. */
  readonly http: string;
  /** Its name, where whoever lists it says so: its answers then count for nobody else. */
  readonly name?: AuthorityName;
}

/** What is used of viem's public client. A page that makes one of these functions alone is smaller by a quarter. */
export type EthereumClient = Pick<
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
  | "waitForTransactionReceipt"
>;

/** What a client is made of. */
export interface FastPayOptions {
  /** An Ethereum node that you trust: committees, finality and payouts are believed as it tells them. */
  readonly publicClient: EthereumClient;
  /** The FastPay contract. */
  readonly contract: Address;
  /** The chain's id; checked against the node. */
  readonly chainId: number;
  readonly authorities: readonly AuthorityEndpoint[];
  /** Where relayers say what they take, as the file of endpoints lists them: the bases of their addresses. Default: none. */
  readonly relayers?: readonly string[];
  /** Where orders are written ahead. Default: the browser's IndexedDB; elsewhere one must be given to send. */
  readonly storage?: OrderStore;
  /**
   * Where the storage has been used with another deployment at this address (its first committee was another one), use none
   * of what stands there, and keep it. Default: refuse, with `other-deployment`.
   */
  readonly setAside?: boolean;
  /** Default: `finalized`. */
  readonly finality?: Finality;
  readonly timing?: Partial<Timing>;
}

/** What to pay; sender and number are added. */
export interface PayIntent {
  /** An `AccountId`, or its text: `0x…`, the address of an Ethereum account, or `fp1…`. */
  readonly recipient: AccountId | string;
  readonly asset: Address;
  readonly amount: bigint;
  /** 32 bytes; see `encodeMemo`. Default: none. */
  readonly memo?: Hex;
  /**
   * Until when it is signed and sent, in seconds since 1970, as a payment link asks for it; looked at again when the
   * signature is there. Default: no end.
   */
  readonly expires?: bigint;
}

/** What to redeem; sender and number are added. */
export interface RedeemIntent {
  readonly recipient: Address;
  readonly asset: Address;
  /** What is debited. */
  readonly amount: bigint;
  /** The part of it that goes to whoever brings it to the contract; see `relayerFees`. Default: 0, which few relayers take. */
  readonly fee?: bigint;
  readonly memo?: Hex;
}

/** What is to be collected. */
export interface ClaimIntent {
  readonly asset: Address;
  /** How much; all of it where nothing is said. */
  readonly amount?: bigint;
  /** Who is paid; the wallet's address where nothing is said. Only of one's own claim. */
  readonly to?: Address;
  /** Whose claim it is; the wallet's own where nothing is said. Anybody else's is paid to them alone. */
  readonly owner?: Address;
}

/** How a transfer is watched and given up. Giving up loses nothing: `resume` goes on. */
export interface TransferOptions {
  readonly onProgress?: (progress: TransferProgress) => void;
  readonly signal?: AbortSignal;
}

/** How a list is paid. */
export interface ManyOptions {
  /**
   * What makes it the same list, 32 bytes: it is paid once, however often it is given. Default: the hash of what it pays,
   * so give a name of its own to each of two equal lists that are both to be paid.
   */
  readonly name?: Hex;
  /** At most so many payments are in one order, up to 256, which is the default. */
  readonly maxOutputs?: number;
  readonly onProgress?: (progress: ManyProgress) => void;
  readonly signal?: AbortSignal;
}

/** How a transaction on the Primary is watched and given up. What was submitted may still happen. */
export interface ChainOptions {
  readonly onProgress?: (progress: ChainProgress) => void;
  readonly signal?: AbortSignal;
}

/** An account holder's side of FastPay. All failures are `FastPayError`s. */
export interface FastPayClient {
  readonly domain: Domain;
  readonly authorities: readonly AuthorityRef[];

  /**
   * Ends all that this client does, also in the background: a program that has nothing else to do ends then. What is
   * under way ends with `aborted` and can be resumed; the client cannot be used any more.
   */
  close(): void;

  /**
   * False where the contract's first committee is another one than when the client was made: the network was started anew.
   * Make another client then.
   */
  isCurrent(): Promise<boolean>;
  /** The committee of an epoch, or the current one, from the contract. */
  committee(epoch?: bigint): Promise<Committee>;

  // ----------------------------------------------------------------------------------- transfers

  /**
   * Pays, and resolves when a quorum has confirmed it; it is final from the step `certified` on. Where the same payment
   * is unfinished from before, that one is finished and no second one made. After `no-quorum` or `aborted` the order
   * may have been sent: `resume`, or the same call again, goes on with it. `invalid-link`: it has expired before it was
   * signed, and nothing was sent.
   */
  pay(signer: Signer, intent: PayIntent, options?: TransferOptions): Promise<Receipt>;
  /**
   * Redeems to the Primary; as `pay`. A relayer brings the certificate to the contract, or `redeemOnChain`. Throws
   * `recipient-is-fastpay` before anything is signed where the recipient is a contract of FastPay.
   */
  redeem(signer: Signer, intent: RedeemIntent, options?: TransferOptions): Promise<Receipt>;
  /**
   * Pays many people with as few orders as can be, and resolves when all is settled. Checks everything before anything is
   * signed: `invalid-list` has all that is wrong; `insufficient-funds` where the account holds less than the whole sum.
   * After any other error the same call goes on where it was left, and pays nobody twice.
   */
  payMany(signer: Signer, list: readonly PayListLine[], options?: ManyOptions): Promise<ListStatus>;
  /** What `payMany` would do, and what it has done: checks the list and signs nothing. */
  listStatus(account: AccountId, list: readonly PayListLine[], options?: ManyOptions): Promise<ListStatus>;
  /**
   * Reads a list from CSV: `recipient,amount,memo`, or the columns that the first line names (also `asset`). `asset` is
   * that of lines that name none; ETH where nothing is said. The name is the hash of the file.
   */
  readList(content: string | Uint8Array, options?: { asset?: Address }): Promise<PayList>;
  /** The lists that were begun with this storage and are not settled, oldest first. */
  unfinishedLists(account: AccountId): Promise<ListStatus[]>;
  /** Goes on with such a list. */
  resumeList(signer: Signer, name: Hex, options?: Pick<ManyOptions, "onProgress" | "signal">): Promise<ListStatus>;
  /** Has a list no longer listed as unfinished. What was ordered of it is finished by `resume` all the same. */
  closeList(name: Hex): Promise<void>;
  /** Finishes what is unfinished, here and of other copies of this wallet. No key is needed. */
  resume(account: AccountId, options?: TransferOptions): Promise<Resumed[]>;
  /** The orders of this storage, newest first. */
  orders(account: AccountId): Promise<OrderEntry[]>;
  /** Those that are not settled, oldest first; of one that was superseded it is the certificate that took its number. */
  unfinished(account: AccountId): Promise<OrderEntry[]>;

  // --------------------------------------------------------------------------------------- reads

  /**
   * What the committee says of an account. `assets` are asked for one by one where lists are cut. Authorities beyond a
   * quorum are waited for during `graceMs`, 100 ms where nothing is said, and never longer than reads may take.
   */
  account(account: AccountId, assets?: readonly Address[], options?: { graceMs?: number }): Promise<AccountView>;
  /**
   * The newest entries of an account's history, all proven; `cursor` goes on with older ones. With a `view` of the account
   * these are the newest as of it, and the authorities are not asked again how the account stands.
   */
  history(account: AccountId, options?: { limit?: number; cursor?: HistoryCursor; view?: AccountView }): Promise<History>;
  /**
   * What happens to an account from now on, or from a cursor (of a view: what that does not show yet); each once, when
   * f + 1 authorities tell it. Ends with `signal`.
   */
  watch(account: AccountId, options?: { from?: WatchCursor; signal?: AbortSignal }): AccountWatch;
  /** What authorities show for a transfer: by its digest, or by sender and number. */
  evidence(of: Hex | { account: AccountId; sequence: bigint }): Promise<CertificateEvidence>;
  /** A valid certificate by sender and number; none where nobody has one. */
  certificate(account: AccountId, sequence: bigint): Promise<VerifiedCertificate | undefined>;

  // ----------------------------------------------------------------------------------- the Primary

  /**
   * Deposits from the wallet's address and resolves when a quorum has credited it. Default recipient: its own account.
   * Errors after the transaction was sent have its hash in their details: it goes on, and is not to be sent again.
   */
  deposit(
    wallet: WalletClient,
    intent: { recipient?: AccountId | string; asset: Address; amount: bigint },
    options?: ChainOptions,
  ): Promise<DepositReceipt>;
  /**
   * The transactions that were sent with this storage, and of which the end is not known here, oldest first: deposits into
   * an account, payouts of its redemptions, claims of its address. After a reload they are resumed, never sent anew.
   */
  unfinishedTransactions(account: AccountId): Promise<SubmittedTransaction[]>;
  /**
   * Follows such a transaction to its end, as what sent it does. No key is needed. `not-found`: it was cancelled, or
   * replaced by what the Ethereum node cannot look up.
   */
  resumeTransaction(sent: SubmittedTransaction, options?: ChainOptions): Promise<TransactionReceipt>;
  /** Has one no longer listed, such as one that no node knows any more. */
  forgetTransaction(sent: TransactionName): Promise<void>;
  /** How far a deposit is, by its transaction. */
  depositStatus(hash: Hex): Promise<DepositStatus>;
  /** A deposit by its index (not every index is a deposit's), as f + 1 authorities tell it; none where they do not. */
  depositByIndex(index: bigint): Promise<DepositEntry | undefined>;
  /** Brings a redemption to the contract oneself. A transaction that was sent for it and is on its way is followed instead. */
  redeemOnChain(wallet: WalletClient, certificate: VerifiedCertificate, options?: ChainOptions): Promise<PayoutReceipt>;
  /**
   * Has a redemption paid that waited in the contract's queue and is due; as `redeemOnChain`. Where its status says
   * `needsVotes`, the current committee votes for it first.
   */
  executeQueued(wallet: WalletClient, redemption: Redemption, options?: ChainOptions): Promise<PayoutReceipt>;
  redemptionStatus(sender: AccountId, sequence: bigint): Promise<RedemptionStatus>;
  /** What could not be paid out to `owner` earlier. */
  claimable(owner: Address, asset: Address): Promise<bigint>;
  /** Collects it, or a part of it; as `redeemOnChain`. */
  claim(wallet: WalletClient, intent: ClaimIntent, options?: ChainOptions): Promise<ClaimReceipt>;
  /**
   * True where an address is one of FastPay's own contracts, of this deployment or another on this chain: money that is
   * redeemed to it is lost.
   */
  isFastPay(address: Address): Promise<boolean>;
  contractStatus(): Promise<ContractStatus>;
  assetStatus(asset: Address): Promise<AssetStatus>;
  assetInfo(asset: Address): Promise<AssetInfo>;
  /** What an address holds on the chain. */
  balanceOnChain(owner: Address, asset: Address): Promise<bigint>;
  redemptionCost(): Promise<RedemptionCost>;
  /** What the relayers of the client's options say that they take now: `proposed` is a fee for `redeem`. */
  relayerFees(asset: Address): Promise<RelayerFees>;
}

/** An account's events as they come. */
export interface AccountWatch extends AsyncIterable<AccountEvent> {
  /** Where it stands, for the next watch to go on from. */
  cursor(): WatchCursor;
}
