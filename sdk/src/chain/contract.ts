/** Reads the contract through an Ethereum node that the user trusts. */

import {
  BaseError,
  encodeEventTopics,
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
import type { Domain } from "../transfer.js";
import type { AssetStatus, ContractStatus, ContractTransaction, Place, RedemptionStatus, UnlockStatus } from "../views.js";
import { chainError, pausedUntil } from "../wallet-errors.js";
import { COUNCIL_ABI, FASTPAY_ABI, IDENTITY_ABI } from "./abi.js";
import { eventsOf } from "./events.js";
import { ContractLogs, type Chain } from "./logs.js";
import { redemptionStatusOf, SpendingLog, type RedemptionView } from "./spending.js";

/** Which blocks of the Primary count as final. */
export type Finality = "finalized" | "safe" | "latest";

type View = ContractFunctionName<typeof FASTPAY_ABI, "view">;
type CouncilView = ContractFunctionName<typeof COUNCIL_ABI, "view">;
type Args<V extends View> = ContractFunctionArgs<typeof FASTPAY_ABI, "view", V>;

/** The outcomes of a number as the Council numbers them; 0 is none. */
const OUTCOMES = [undefined, "upheld", "voided"] as const;

/** The deployed contract. All methods can throw `chain-unreachable`. */
export class Contract {
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

  /** Checks that the node is on the chain that is meant. Throws `wrong-chain`. */
  async checkChain(): Promise<void> {
    const found = await this.ask(() => this.client.getChainId());
    if (BigInt(found) === this.domain.chainId) return;
    const message = `the Ethereum node is on chain ${found}, not on ${this.domain.chainId}`;
    throw new FastPayError("wrong-chain", message, "use a node on the right chain");
  }

  /** The epoch of the newest block that stays. Throws `wrong-contract` if no contract of ours answers. */
  async epoch(): Promise<bigint> {
    try {
      return await this.#final("epoch", []);
    } catch (error) {
      // FastPay's `epoch` never reverts.
      if (!isFastPayError(error, "reverted")) throw error;
      const message = `the contract at ${this.domain.contract} is not FastPay`;
      throw new FastPayError("wrong-contract", message, "is the address right, and the chain?", { cause: error });
    }
  }

  /** The committee of an epoch that has begun in a block that stays. */
  async committee(epoch: bigint): Promise<Committee> {
    const authorities = await this.#final("committee", [epoch]);
    return makeCommittee(epoch, authorities as readonly Authority[]);
  }

  /** A view at the newest block. */
  view<const V extends View>(
    name: V,
    args: Args<V>,
  ): Promise<ContractFunctionReturnType<typeof FASTPAY_ABI, "view", V>> {
    return this.#read(name, args, "latest");
  }

  /** The newest block, or the newest that stays. */
  block(tag: Finality): Promise<Block<bigint, false, Finality>> {
    return this.ask(() => this.client.getBlock({ blockTag: tag }));
  }

  /** Until when votes of an epoch count, in seconds since 1970. */
  epochValidUntil(epoch: bigint): Promise<bigint> {
    return this.view("epochValidUntil", [epoch]);
  }

  /**
   * The status of the redemption with this digest. Without a digest, or where the node gives no log, a spent number is
   * `spent`.
   */
  async redemptionStatus(sender: AccountId, sequence: bigint, digest: Hex | undefined): Promise<RedemptionStatus> {
    const view = await this.#redemptionView(sender, sequence);
    if (view.state === "open" || view.state === "voided" || digest === undefined) return view;
    const logged = await this.#spendings.find(sender, sequence, () => this.#chain()).catch(() => undefined);
    return redemptionStatusOf(digest, view, logged);
  }

  async #redemptionView(sender: AccountId, sequence: bigint): Promise<RedemptionView | { state: "voided" }> {
    const [isRedeemed, [executableAt, relayer, epoch, needsVotes]] = await Promise.all([
      this.view("isRedeemed", [sender, sequence]),
      this.view("queued", [sender, sequence]),
    ]);
    if (executableAt > 0n) return { state: "queued", executableAt, relayer, epoch, needsVotes };
    if (!isRedeemed) return { state: "open" };
    // A void number is spent as well, and nothing was paid with it.
    const { outcome } = await this.#unlockOf(sender, sequence, "latest");
    return { state: outcome === "voided" ? "voided" : "spent" };
  }

  /** The ends of the chain. */
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
   * The state of a number that its owner asked the contract to unlock. An outcome is reported once its block is final.
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

  /** The number's entry at the Council in a block. */
  async #unlockOf(account: AccountId, sequence: bigint, tag: Finality) {
    const [outcome, voidableFrom] = await this.council("unlockOf", [account, sequence], tag);
    return { outcome: OUTCOMES[outcome], voidableFrom };
  }

  /** A view of the Council. */
  async council<const V extends CouncilView>(
    functionName: V,
    args: ContractFunctionArgs<typeof COUNCIL_ABI, "view", V>,
    blockTag: Finality = "latest",
  ): Promise<ContractFunctionReturnType<typeof COUNCIL_ABI, "view", V>> {
    const address = await this.councilAddress();
    const call = { address, abi: COUNCIL_ABI, functionName, args, blockTag } as unknown as Parameters<EthereumClient["readContract"]>[0];
    return this.ask(() => this.client.readContract(call)) as Promise<ContractFunctionReturnType<typeof COUNCIL_ABI, "view", V>>;
  }

  /** The Council's address, which never changes. */
  async councilAddress(): Promise<Address> {
    this.#council ??= await this.view("council", []);
    return this.#council;
  }

  /** Throws `paused` while the contract takes no deposit, redemption or claim: better before anything is signed. */
  async checkNotPaused(): Promise<void> {
    const [until, { timestamp }] = await Promise.all([this.view("pausedUntil", []), this.block("latest")]);
    if (until > timestamp) throw pausedUntil(until);
  }

  /**
   * True if an address is one of FastPay's contracts: this one, its Council, or those of another deployment on this
   * chain. Nobody can move what is paid to them.
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

  /** The authority's status. */
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

  /** Whose transaction it is, and which of theirs; undefined if the node does not know it. */
  async placeOf(hash: Hex): Promise<Place | undefined> {
    const found = await this.#transaction({ hash });
    return found && { from: found.from, nonce: found.nonce };
  }

  /** A transaction of this place is in a block that stays. */
  async isTaken({ from, nonce }: Place): Promise<boolean> {
    const count = await this.ask(() => this.client.getTransactionCount({ address: from, blockTag: this.finality }));
    return count > nonce;
  }

  /** The receipt of the transaction of a place; undefined if it is in no block, or the node cannot look it up. */
  async receiptAt({ from, nonce }: Place) {
    const found = await this.#transaction({ sender: from, nonce });
    return found && this.receipt(found.hash);
  }

  async #transaction(by: { hash: Hex } | { sender: Address; nonce: number }) {
    try {
      return await this.client.getTransaction(by);
    } catch (error) {
      // Not every node lists transactions by their senders.
      const names = ["TransactionNotFoundError", "MethodNotFoundRpcError", "MethodNotSupportedRpcError"];
      const isUnknown = (inner: unknown): boolean => inner instanceof Error && names.includes(inner.name);
      if (isUnknown(error) || (error instanceof BaseError && error.walk(isUnknown) !== null)) return undefined;
      throw chainError(error);
    }
  }

  /** Asks the node, with its failures in our words. */
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
      // A call to an address without code answers nothing.
      const code = await this.ask(() =>
        this.client.getCode({ address: this.domain.contract, blockTag: this.finality }),
      );
      if (code !== undefined) throw error;
      const message = `there is no contract at ${this.domain.contract} in a ${this.finality} block`;
      const action = "is the address right, and the chain? After a deployment wait until its block is final";
      throw new FastPayError("wrong-contract", message, action, { cause: error });
    }
  }

  #read<const V extends View>(
    functionName: V,
    args: Args<V>,
    blockTag: Finality,
  ): Promise<ContractFunctionReturnType<typeof FASTPAY_ABI, "view", V>> {
    const address = this.domain.contract;
    // viem infers the types of one function at a time, and not of a name that is a parameter.
    const call = { address, abi: FASTPAY_ABI, functionName, args, blockTag } as unknown as Parameters<
      EthereumClient["readContract"]
    >[0];
    return this.ask(() => this.client.readContract(call)) as Promise<
      ContractFunctionReturnType<typeof FASTPAY_ABI, "view", V>
    >;
  }
}

function sameAddress(a: Address, b: Address): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
