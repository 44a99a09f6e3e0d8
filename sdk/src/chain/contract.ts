/** Reads the contract through an Ethereum node that the user trusts. */

import {
  BaseError,
  encodeEventTopics,
  type Abi,
  type Block,
  type ContractFunctionArgs,
  type ContractFunctionName,
  type ContractFunctionReturnType,
} from "viem";

import type { AccountId } from "../accounts.js";
import type { Address, Hex } from "../bytes.js";
import type { EthereumClient } from "../client.js";
import { makeCommittee, type Authority, type Committee } from "../committee.js";
import { FastPayError, isFastPayError } from "../errors.js";
import type { Primary } from "../primary.js";
import { ETHER, type Domain } from "../transfer.js";
import type { AssetInfo, AssetStatus, ContractStatus, ContractTransaction, Place, RedemptionStatus, UnlockStatus } from "../views.js";
import { chainError, pausedUntil } from "../wallet-errors.js";
import { COUNCIL_ABI, FASTPAY_ABI, IDENTITY_ABI } from "./abi.js";
import { eventsOf } from "./events.js";
import { ContractLogs, type Chain } from "./logs.js";
import { redemptionStatusOf, SpendingLog, type RedemptionView, type Spending } from "./spending.js";
import { Token } from "./tokens.js";

/** Which blocks of the Primary count as final. */
export type Finality = "finalized" | "safe" | "latest";

type View = ContractFunctionName<typeof FASTPAY_ABI, "view">;
type CouncilView = ContractFunctionName<typeof COUNCIL_ABI, "view">;
type Args<V extends View> = ContractFunctionArgs<typeof FASTPAY_ABI, "view", V>;

/** The outcomes of unlocking a number, indexed as in the Council; 0 is none. */
const OUTCOMES = [undefined, "upheld", "voided"] as const;

/** The default time for which relayers wait to form a batch. */
const COMPANY_MS = 60_000;
/** The usual number of blocks until a relayer has found, sent and included a redemption. */
const INCLUSION_BLOCKS = 3;
/** The number of blocks over which the block time is measured. */
const MEASURED_BLOCKS = 10n;

/** The deployed contract. All methods can throw `chain-unreachable`. */
export class Contract implements Primary {
  readonly kind = "contract";
  readonly client: EthereumClient;
  readonly domain: Domain;
  readonly finality: Finality;
  readonly #logs: ContractLogs;
  readonly #spendings: SpendingLog;
  #council: Address | undefined;
  #deployed: bigint | undefined;

  constructor(client: EthereumClient, domain: Domain, finality: Finality) {
    this.client = client;
    this.domain = domain;
    this.finality = finality;
    this.#logs = new ContractLogs(client, domain.contract);
    this.#spendings = new SpendingLog(this.#logs);
  }

  /** Checks that the node is on the configured chain. Throws `wrong-chain`. */
  async check(): Promise<void> {
    const found = await this.ask(() => this.client.getChainId());
    if (BigInt(found) === this.domain.chainId) return;
    const message = `the Ethereum node is on chain ${found}, not on ${this.domain.chainId}`;
    throw new FastPayError("wrong-chain", message, "use a node on the right chain");
  }

  contractFor(): Contract {
    return this;
  }

  /** The epoch at the newest final block. Throws `wrong-contract` if the address has no FastPay contract. */
  async epoch(): Promise<bigint> {
    try {
      return await this.#final("epoch", []);
    } catch (error) {
      // FastPay's `epoch` never reverts.
      if (!isFastPayError(error, "reverted")) throw error;
      const message = `the contract at ${this.domain.contract} is not FastPay`;
      throw new FastPayError("wrong-contract", message, "check the address and the chain", { cause: error });
    }
  }

  /** The committee of an epoch that began in a final block. */
  async committee(epoch: bigint): Promise<Committee> {
    const authorities = await this.#final("committee", [epoch]);
    return makeCommittee(epoch, authorities as readonly Authority[]);
  }

  /** Checkpoints of an epoch count during the next one unless its keys were out, as of the newest final block. */
  async isClosing(epoch: bigint): Promise<boolean> {
    return !(await this.#final("compromised", [epoch]));
  }

  /** Reads a view at the newest block. */
  view<const V extends View>(
    name: V,
    args: Args<V>,
  ): Promise<ContractFunctionReturnType<typeof FASTPAY_ABI, "view", V>> {
    return this.#read(name, args, "latest");
  }

  /** The newest block with this tag. */
  block(tag: Finality): Promise<Block<bigint, false, Finality>> {
    return this.ask(() => this.client.getBlock({ blockTag: tag }));
  }

  /** The time until which the contract accepts votes of an epoch, in seconds since 1970. */
  epochValidUntil(epoch: bigint): Promise<bigint> {
    return this.view("epochValidUntil", [epoch]);
  }

  /**
   * The status of the redemption with this digest. Without a digest, or if the node serves no log, the status of a
   * spent number is `spent`.
   */
  async redemptionStatus(sender: AccountId, sequence: bigint, digest: Hex | undefined): Promise<RedemptionStatus> {
    const view = await this.#redemptionView(sender, sequence);
    if (view.state === "open" || view.state === "voided" || digest === undefined) return view;
    const logged = await this.#spendings.find(sender, sequence, () => this.#chain()).catch(() => undefined);
    return redemptionStatusOf(digest, view, logged);
  }

  /**
   * The order on which a number was spent in a final block; undefined if the newest ones do not contain it, or the node
   * serves no log.
   */
  finalSpending(sender: AccountId, sequence: bigint): Promise<Spending | undefined> {
    const readChain = async (): Promise<Chain> => {
      const chain = await this.#chain();
      return { ...chain, newest: chain.final };
    };
    return this.#spendings.find(sender, sequence, readChain).catch(() => undefined);
  }

  /** True if the newest final block has a number as spent on an order. */
  async isSpent(sender: AccountId, sequence: bigint): Promise<boolean> {
    const { number } = await this.block(this.finality);
    if (!(await this.#read("isRedeemed", [sender, sequence], number))) return false;
    // The contract also marks a void number as spent.
    return (await this.#unlockOf(sender, sequence, number)).outcome !== "voided";
  }

  async #redemptionView(sender: AccountId, sequence: bigint): Promise<RedemptionView | { state: "voided" }> {
    const [isRedeemed, [executableAt, relayer, epoch, needsVotes]] = await Promise.all([
      this.view("isRedeemed", [sender, sequence]),
      this.view("queued", [sender, sequence]),
    ]);
    if (executableAt > 0n) return { state: "queued", executableAt, relayer, epoch, needsVotes };
    if (!isRedeemed) return { state: "open" };
    // The contract also marks a void number as spent, although it paid nothing for it.
    const { outcome } = await this.#unlockOf(sender, sequence, "latest");
    return { state: outcome === "voided" ? "voided" : "spent" };
  }

  /** The newest block, the newest final block, and the block of the deployment. */
  async #chain(): Promise<Chain> {
    const [newest, final, deployed] = await Promise.all([
      this.block("latest"),
      this.block(this.finality),
      this.#deployed ?? this.view("deploymentBlock", []),
    ]);
    this.#deployed = deployed;
    return { newest: newest.number, final: final.number, deployed };
  }

  /**
   * The state of a number that its owner may have asked the contract to unlock. Returns an outcome once its block is
   * final.
   */
  async unlockStatus(account: AccountId, sequence: bigint): Promise<UnlockStatus> {
    const [final, newest] = await Promise.all([
      this.#unlockOf(account, sequence, this.finality),
      this.#unlockOf(account, sequence, "latest"),
    ]);
    if (final.outcome !== undefined && final.outcome === newest.outcome) return { state: final.outcome };
    const { voidableFrom } = newest;
    if (voidableFrom === 0n) return { state: "none" };
    return { state: "requested", voidableFrom, isFinal: final.voidableFrom > 0n, isDecided: newest.outcome !== undefined };
  }

  /** The number's entry in the Council at a block. */
  async #unlockOf(account: AccountId, sequence: bigint, at: Finality | bigint) {
    const [outcome, voidableFrom] = await this.council("unlockOf", [account, sequence], at);
    return { outcome: OUTCOMES[outcome], voidableFrom };
  }

  /** Reads a view of the Council. */
  async council<const V extends CouncilView>(
    functionName: V,
    args: ContractFunctionArgs<typeof COUNCIL_ABI, "view", V>,
    at: Finality | bigint = "latest",
  ): Promise<ContractFunctionReturnType<typeof COUNCIL_ABI, "view", V>> {
    const answer = await this.#call(await this.councilAddress(), COUNCIL_ABI, functionName, args, at);
    return answer as ContractFunctionReturnType<typeof COUNCIL_ABI, "view", V>;
  }

  /** The Council's address, which never changes. */
  async councilAddress(): Promise<Address> {
    this.#council ??= await this.view("council", []);
    return this.#council;
  }

  /** Throws `paused` while the contract takes no deposit, redemption or claim. Call it before anything is signed. */
  async checkNotPaused(): Promise<void> {
    const [until, { timestamp }] = await Promise.all([this.view("pausedUntil", []), this.block("latest")]);
    if (until > timestamp) throw pausedUntil(until);
  }

  /**
   * True if an address is a contract of FastPay: this one, its Council, or those of another deployment on this chain.
   * Nobody can move money that is paid to them.
   */
  async isFastPay(address: Address): Promise<boolean> {
    const own = this.domain.contract;
    if (sameAddress(address, own) || sameAddress(address, await this.councilAddress())) return true;
    const code = await this.ask(() => this.client.getCode({ address }));
    if (code === undefined || code === "0x") return false;
    if (await this.#isNamedFastPay(address)) return true;
    const owner = await this.#identity(() =>
      this.client.readContract({ address, abi: IDENTITY_ABI, functionName: "fastPay" }),
    );
    return owner !== undefined && this.#isNamedFastPay(owner);
  }

  async #isNamedFastPay(address: Address): Promise<boolean> {
    const domain = await this.#identity(() =>
      this.client.readContract({ address, abi: IDENTITY_ABI, functionName: "eip712Domain" }),
    );
    return domain?.[1] === "FastPay" && sameAddress(domain[4], address);
  }

  /** The answer of an unknown contract; undefined if it reverts or cannot be decoded. */
  async #identity<T>(request: () => Promise<T>): Promise<T | undefined> {
    try {
      return await this.ask(request);
    } catch (error) {
      if (isFastPayError(error, "reverted") || isFastPayError(error, "malformed-answer")) return undefined;
      throw error;
    }
  }

  /** The contract's state. */
  async status(): Promise<ContractStatus> {
    const [epoch, pausedUntil, guardian, lastTransactionIndex, parameters, { timestamp }] = await Promise.all([
      this.view("epoch", []),
      this.view("pausedUntil", []),
      this.view("guardian", []),
      this.view("lastTransactionIndex", []),
      this.view("safetyParameters", []),
      this.block("latest"),
    ]);
    return {
      epoch,
      pausedUntil: pausedUntil > timestamp ? pausedUntil : 0n,
      guardian,
      lastTransactionIndex,
      outflowShareBasisPoints: parameters.outflowShare,
      outflowWindow: parameters.outflowWindow,
      outflowDelay: parameters.outflowDelay,
      timestamp,
    };
  }

  /** The contract's state of an asset. */
  async assetStatus(asset: Address): Promise<AssetStatus> {
    const [totalBalance, totalClaims, totalQueued, outflowAvailable] = await Promise.all([
      this.view("totalBalance", [asset]),
      this.view("totalClaims", [asset]),
      this.view("totalQueued", [asset]),
      this.view("outflowAvailable", [asset]),
    ]);
    return { asset, totalBalance, totalClaims, totalQueued, outflowAvailable };
  }

  /** An asset's claimed symbol and its decimals. ETH has those of the chain's native currency. */
  async assetInfo(asset: Address): Promise<AssetInfo> {
    if (asset !== ETHER) return new Token(this, asset).info();
    const native = this.client.chain?.nativeCurrency;
    return { asset, symbol: native?.symbol ?? "ETH", decimals: native?.decimals ?? 18, hasPermit: false };
  }

  /** A relayer forms a batch, and then needs some blocks. Their time is the average of the newest ones. */
  async payoutMs(): Promise<number> {
    const newest = await this.block("latest");
    const past = newest.number < MEASURED_BLOCKS ? newest.number : MEASURED_BLOCKS;
    if (past === 0n) return COMPANY_MS;
    const older = await this.ask(() => this.client.getBlock({ blockNumber: newest.number - past }));
    const seconds = (Number(newest.timestamp - older.timestamp) * INCLUSION_BLOCKS) / Number(past);
    return COMPANY_MS + Math.max(0, seconds * 1_000);
  }

  /** The receipt of a transaction; undefined if it is in no block. */
  async receipt(hash: Hex) {
    try {
      return await this.client.getTransactionReceipt({ hash });
    } catch (error) {
      if (error instanceof Error && error.name === "TransactionReceiptNotFoundError") return undefined;
      throw chainError(error);
    }
  }

  /** What a transaction did at the contract; undefined if it is in no block. */
  async transaction(hash: Hex): Promise<ContractTransaction | undefined> {
    const receipt = await this.receipt(hash);
    if (receipt === undefined) return undefined;
    const events = eventsOf(this.domain.contract, receipt);
    return { block: receipt.blockNumber, hasReverted: receipt.status === "reverted", events };
  }

  /** The transaction of a deposit; undefined if the newest blocks have none of this index. */
  async depositTransaction(index: bigint): Promise<Hex | undefined> {
    const topics = encodeEventTopics({ abi: FASTPAY_ABI, eventName: "Funded", args: { index } }) as Hex[];
    const chain = await this.#chain();
    const found = await this.ask(() => this.#logs.newest(topics.slice(0, 2), chain));
    return found?.transactionHash ?? undefined;
  }

  /** The sender and nonce of a transaction; undefined if the node does not know it. */
  async placeOf(hash: Hex): Promise<Place | undefined> {
    const found = await this.#transaction({ hash });
    return found && { from: found.from, nonce: found.nonce };
  }

  /** True if a final block contains a transaction with this sender and nonce. */
  async isTaken({ from, nonce }: Place): Promise<boolean> {
    const count = await this.ask(() => this.client.getTransactionCount({ address: from, blockTag: this.finality }));
    return count > nonce;
  }

  /**
   * The receipt of the transaction with this sender and nonce; undefined if no block has it, or the node cannot find
   * it.
   */
  async receiptAt({ from, nonce }: Place) {
    const found = await this.#transaction({ sender: from, nonce });
    return found && this.receipt(found.hash);
  }

  async #transaction(by: { hash: Hex } | { sender: Address; nonce: number }) {
    try {
      return await this.client.getTransaction(by);
    } catch (error) {
      // Not every node finds transactions by sender and nonce.
      const names = ["TransactionNotFoundError", "MethodNotFoundRpcError", "MethodNotSupportedRpcError"];
      const isUnknown = (inner: unknown): boolean => inner instanceof Error && names.includes(inner.name);
      if (isUnknown(error) || (error instanceof BaseError && error.walk(isUnknown) !== null)) return undefined;
      throw chainError(error);
    }
  }

  /** Sends a request to the node, and converts its failure to a `FastPayError`. */
  async ask<T>(request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (error) {
      throw chainError(error);
    }
  }

  async #final<const V extends View>(name: V, args: Args<V>) {
    try {
      return await this.#read(name, args, this.finality);
    } catch (error) {
      // A call to an address without code returns no data.
      const code = await this.ask(() =>
        this.client.getCode({ address: this.domain.contract, blockTag: this.finality }),
      );
      if (code !== undefined) throw error;
      const message = `there is no contract at ${this.domain.contract} in a ${this.finality} block`;
      const action = "check the address and the chain; after a deployment, wait until its block is final";
      throw new FastPayError("wrong-contract", message, action, { cause: error });
    }
  }

  #read<const V extends View>(
    functionName: V,
    args: Args<V>,
    at: Finality | bigint,
  ): Promise<ContractFunctionReturnType<typeof FASTPAY_ABI, "view", V>> {
    return this.#call(this.domain.contract, FASTPAY_ABI, functionName, args, at) as Promise<
      ContractFunctionReturnType<typeof FASTPAY_ABI, "view", V>
    >;
  }

  #call(address: Address, abi: Abi, functionName: string, args: unknown, at: Finality | bigint): Promise<unknown> {
    const block = typeof at === "bigint" ? { blockNumber: at } : { blockTag: at };
    // viem infers types only for a constant function name, so the call is cast.
    const call = { address, abi, functionName, args, ...block } as unknown as Parameters<EthereumClient["readContract"]>[0];
    return this.ask(() => this.client.readContract(call));
  }
}

function sameAddress(a: Address, b: Address): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
