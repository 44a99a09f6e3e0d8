/**
 * An Ethereum node and a wallet in this process. They know one transaction (a deposit of ETH, a payout or a claim), and
 * optionally its replacement. A test can make the node silent, or make it lose transactions. The live tests and the
 * page's tests show that a real node answers in the same way.
 */

import {
  createPublicClient,
  createWalletClient,
  custom,
  encodeAbiParameters,
  decodeFunctionData,
  encodeEventTopics,
  encodeFunctionResult,
  MethodNotFoundRpcError,
  pad,
  toHex,
  type Hex,
} from "viem";

import { formatAccount, transferDigest, type AccountId, type Redemption } from "../../src/index.js";
import { COUNCIL_ABI, FASTPAY_ABI, IDENTITY_ABI } from "../../src/chain/abi.js";
import { Contract } from "../../src/chain/contract.js";
import { DOMAIN } from "./committee.js";
import type { Answer, Request } from "./node.js";

export const OWNER: Hex = "0x00000000000000000000000000000000000000aa";
/** The nonce of the transaction. */
const NONCE = 7;
const address = (number: number): Hex => pad(toHex(number), { size: 20 });
const ETHER: Hex = "0x0000000000000000000000000000000000000000";

/** The contract's events for spent numbers. */
type SpendingEvent = "Redeemed" | "RedemptionQueued" | "RedemptionReleased";

/** The hash of the transaction that spent a number in this block. */
export const spentIn = (block: bigint): Hex => pad(toHex(block), { size: 32 });

export class TestChain {
  readonly hash = pad("0xd0");
  readonly recipient: AccountId;
  readonly amount: bigint;
  /** While true, the node does not answer. */
  isSilent = false;
  /** The block of the transaction; undefined while it is pending. */
  block: bigint | undefined;
  isReverted = false;
  /** The effect of the transaction at the contract. */
  did: "deposit" | "claim" | "nothing" = "deposit";
  /** The number of the redemption is spent. */
  isRedeemed = false;
  /** The contract's log of spent numbers, oldest first. */
  readonly log: { event: SpendingEvent; redemption: Redemption; block: bigint }[] = [];
  /** The maximum number of blocks in one request for logs. */
  logRange = 1_000_000n;
  /** The requested ranges of logs, as block numbers, newest last. */
  readonly ranges: (readonly [bigint, bigint])[] = [];
  /** The contract voided the redemption's number, which also marks it as spent. */
  isVoided = false;
  /** The redemption's entry in the queue; undefined if it is not queued. `needsVotes`: its epoch's keys were stolen. */
  queue: { needsVotes: boolean } | undefined;
  /** The claim of every address. */
  claimable = 0n;
  /** FastPay's Council, FastPay and Council of another deployment, and an unrelated contract. */
  readonly others = { council: address(0xc0), fastPay: address(0xf1), itsCouncil: address(0xf2), stranger: address(0x5e) };
  /** The transaction that replaced the first one, which the node then no longer knows. */
  replacement: Hex | undefined;
  /** True if the node finds transactions by sender and nonce. */
  listsSenders = true;
  newest = 10n;
  final = 9n;
  /** The methods of all requests, newest last. */
  readonly asked: string[] = [];
  /** The data of the transactions that the wallet sent. */
  readonly sent: Hex[] = [];

  constructor(recipient: AccountId, amount: bigint) {
    this.recipient = recipient;
    this.amount = amount;
  }

  /** Spends a redemption's number at the contract. */
  spend(redemption: Redemption, event: SpendingEvent = "Redeemed", block = this.newest): void {
    this.isRedeemed = true;
    this.log.push({ event, redemption, block });
  }

  get contract(): Contract {
    const transport = custom({ request: (request) => this.#answer(request) }, { retryCount: 0 });
    return new Contract(createPublicClient({ transport, pollingInterval: 5 }), DOMAIN, "finalized");
  }

  get wallet() {
    return createWalletClient({ account: OWNER, transport: custom({ request: (request) => this.#answer(request) }) });
  }

  /** The answers of an authority that has credited the deposit, for `TestNode.lie`. */
  credit = ({ path }: Request): Answer | undefined => {
    const account = formatAccount(this.recipient);
    const deposit = { index: "1", recipient: account, asset: ETHER, amount: this.amount.toString() };
    if (path.endsWith("/deposits")) return { status: 200, body: { total: "1", deposits: [deposit] } };
    if (!path.endsWith(account)) return undefined;
    const counts = { nextSequence: "0", received: "0", deposits: "1" };
    return { status: 200, body: { ...counts, pending: null, holdings: [], truncated: false } };
  };

  async #answer({ method, params }: { method: string; params?: unknown }): Promise<unknown> {
    this.asked.push(method);
    if (this.isSilent) throw new Error("the node is away");
    const [first, second] = (params ?? []) as readonly unknown[];
    switch (method) {
      case "eth_chainId":
        return toHex(DOMAIN.chainId);
      case "eth_blockNumber":
        return toHex(this.newest);
      case "eth_getBlockByNumber":
        return { number: toHex(first === "finalized" ? this.final : this.newest), timestamp: "0x1", transactions: [] };
      case "eth_call":
        return this.#call(first as { to: Hex; data: Hex }, second as string);
      case "eth_getLogs":
        return this.#spendings(first as { topics: [Hex[], Hex]; fromBlock: Hex; toBlock: Hex });
      case "eth_getCode":
        return (Object.values(this.others) as unknown[]).includes(first) ? "0x00" : "0x";
      case "eth_sendTransaction":
        this.sent.push((first as { data: Hex }).data);
        return this.hash;
      case "eth_getTransactionByHash":
        return first === (this.replacement ?? this.hash) ? this.#transaction() : null;
      case "eth_getTransactionBySenderAndNonce":
        if (!this.listsSenders) throw new MethodNotFoundRpcError(new Error("no such method"), { method });
        return first === OWNER ? this.#transaction() : null;
      case "eth_getTransactionCount":
        return toHex(this.block !== undefined && this.block <= this.final ? NONCE + 1 : NONCE);
      case "eth_getTransactionReceipt":
        return this.block === undefined || first !== (this.replacement ?? this.hash) ? null : this.#receipt(this.block);
      default:
        throw new Error(`nobody knows ${method}`);
    }
  }

  #spendings({ topics: [kinds, sender], fromBlock, toBlock }: { topics: [Hex[], Hex]; fromBlock: Hex; toBlock: Hex }): object[] {
    const [from, to] = [BigInt(fromBlock), BigInt(toBlock)];
    if (to - from >= this.logRange) throw new Error("too many blocks");
    this.ranges.push([from, to]);
    const logs = this.log.map(({ event, redemption, block }) => {
      const { recipient, asset, amount, fee, sequence } = redemption;
      const digest = transferDigest(DOMAIN, redemption);
      const args = { ...redemption, index: 1n, relayer: OWNER, digest, epoch: 0n, executableAt: 1n };
      const topics = encodeEventTopics({ abi: FASTPAY_ABI, eventName: event, args: { sender: args.sender, recipient, asset } } as never);
      const facts = { Redeemed: [1n, sequence, amount, fee, OWNER, digest], RedemptionReleased: [1n, sequence, digest] };
      const values = event === "RedemptionQueued" ? [...facts.Redeemed, 0n, 1n] : facts[event];
      const inputs = FASTPAY_ABI.filter((item) => item.type === "event").find(({ name }) => name === event)?.inputs ?? [];
      const data = encodeAbiParameters(inputs.filter((input) => !("indexed" in input && input.indexed)) as never, values as never);
      const transactionHash = spentIn(block);
      return { address: DOMAIN.contract, blockNumber: toHex(block), transactionHash, topics, data, logIndex: "0x0" };
    });
    const isAsked = ({ topics, blockNumber }: (typeof logs)[number]): boolean => {
      const block = BigInt(blockNumber);
      return kinds.includes(topics[0] as Hex) && (topics[1] as Hex) === sender && from <= block && block <= to;
    };
    return logs.filter(isAsked);
  }

  /** Answers a call. The contract is not paused, no epoch has ended, and no call reverts. */
  #call({ to, data }: { to: Hex; data: Hex }, at: string): Hex {
    if (to.toLowerCase() === this.others.council) {
      const result = [this.isVoided ? 2 : 0, 0n, ETHER] as const;
      return encodeFunctionResult({ abi: COUNCIL_ABI, functionName: "unlockOf", result });
    }
    if (to !== DOMAIN.contract) return this.#identity(to, data);
    const { functionName } = decodeFunctionData({ abi: FASTPAY_ABI, data });
    const result = (value: unknown): Hex =>
      encodeFunctionResult({ abi: FASTPAY_ABI, functionName, result: value } as Parameters<typeof encodeFunctionResult>[0]);
    const isBefore = ({ block }: { block: bigint }): boolean => at === "latest" || block <= BigInt(at);
    if (functionName === "isRedeemed") return result(this.isRedeemed && this.log.every(isBefore));
    if (functionName === "queued") return result([this.queue ? 1n : 0n, ETHER, 0n, this.queue?.needsVotes ?? false]);
    if (functionName === "claimOf") return result(this.claimable);
    if (functionName === "council") return result(this.others.council);
    return functionName === "epochValidUntil" ? result(1n << 64n) : pad("0x0");
  }

  /** The identity of a contract other than this FastPay. */
  #identity(to: Hex, data: Hex): Hex {
    const { functionName } = decodeFunctionData({ abi: IDENTITY_ABI, data });
    if (functionName === "fastPay" && to === this.others.itsCouncil) {
      return encodeFunctionResult({ abi: IDENTITY_ABI, functionName, result: this.others.fastPay });
    }
    if (functionName === "fastPay") return "0x";
    const name = to === this.others.fastPay ? "FastPay" : "Stranger";
    const result = ["0x0f", name, "1", DOMAIN.chainId, to, pad("0x0"), []] as const;
    return to === this.others.itsCouncil ? "0x" : encodeFunctionResult({ abi: IDENTITY_ABI, functionName, result });
  }

  #transaction(): object {
    const at = this.block === undefined ? null : toHex(this.block);
    return { hash: this.replacement ?? this.hash, from: OWNER, nonce: toHex(NONCE), blockNumber: at };
  }

  #logs(block: bigint): object[] {
    const log = { address: DOMAIN.contract, blockNumber: toHex(block) };
    if (this.did === "deposit") {
      const args = { index: 1n, recipient: this.recipient, asset: ETHER };
      const data = encodeAbiParameters([{ type: "uint128" }, { type: "address" }], [this.amount, OWNER]);
      return [{ ...log, data, topics: encodeEventTopics({ abi: FASTPAY_ABI, eventName: "Funded", args }) }];
    }
    if (this.did === "nothing") return [];
    const args = { owner: OWNER, asset: ETHER, to: OWNER };
    const data = encodeAbiParameters([{ type: "uint256" }], [this.amount]);
    return [{ ...log, data, topics: encodeEventTopics({ abi: FASTPAY_ABI, eventName: "Claimed", args }) }];
  }

  #receipt(block: bigint): object {
    return {
      transactionHash: this.replacement ?? this.hash,
      blockHash: pad(toHex(block)),
      blockNumber: toHex(block),
      status: this.isReverted ? "0x0" : "0x1",
      logs: this.isReverted ? [] : this.#logs(block),
    };
  }
}
