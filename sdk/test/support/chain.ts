/**
 * An Ethereum node and a wallet in this process, which know one transaction, and maybe one that took its place: a deposit
 * of ETH, a payout or a claim. That a real node answers like this is what the live tests and those of the page show; here
 * it falls silent, and loses transactions, when a test says so.
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

import { formatAccount, type AccountId } from "../../src/index.js";
import { FASTPAY_ABI } from "../../src/chain/abi.js";
import { Contract } from "../../src/chain/contract.js";
import { DOMAIN } from "./committee.js";
import type { Answer, Request } from "./node.js";

export const OWNER: Hex = "0x00000000000000000000000000000000000000aa";
/** The sender's number of the transaction. */
const NONCE = 7;
const ETHER: Hex = "0x0000000000000000000000000000000000000000";

export class TestChain {
  readonly hash = pad("0xd0");
  readonly recipient: AccountId;
  readonly amount: bigint;
  /** Answers nothing, as long as it is. */
  isSilent = false;
  /** The block of the transaction; none while it waits for one. */
  block: bigint | undefined;
  isReverted = false;
  /** What the transaction did. */
  did: "deposit" | "claim" | "nothing" = "deposit";
  /** The redemption is paid, by whomever. */
  isRedeemed = false;
  /** The transaction that took its place; the node knows the first one no more then. */
  replacement: Hex | undefined;
  /** The node lists transactions by their senders. */
  listsSenders = true;
  newest = 10n;
  final = 9n;
  /** What was asked, newest last. */
  readonly asked: string[] = [];

  constructor(recipient: AccountId, amount: bigint) {
    this.recipient = recipient;
    this.amount = amount;
  }

  get contract(): Contract {
    const transport = custom({ request: (request) => this.#answer(request) }, { retryCount: 0 });
    return new Contract(createPublicClient({ transport, pollingInterval: 5 }), DOMAIN, "finalized");
  }

  get wallet() {
    return createWalletClient({ account: OWNER, transport: custom({ request: (request) => this.#answer(request) }) });
  }

  /** What an authority tells of the deposit once it has credited it; for `TestNode.lie`. */
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
    const [first] = (params ?? []) as readonly unknown[];
    switch (method) {
      case "eth_chainId":
        return toHex(DOMAIN.chainId);
      case "eth_blockNumber":
        return toHex(this.newest);
      case "eth_getBlockByNumber":
        return { number: toHex(first === "finalized" ? this.final : this.newest), timestamp: "0x1", transactions: [] };
      case "eth_call":
        return this.#call((first as { data: Hex }).data);
      case "eth_sendTransaction":
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

  /** Not paused, no epoch has ended; and nothing reverts. */
  #call(data: Hex): Hex {
    const { functionName } = decodeFunctionData({ abi: FASTPAY_ABI, data });
    const result = (value: unknown): Hex =>
      encodeFunctionResult({ abi: FASTPAY_ABI, functionName, result: value } as Parameters<typeof encodeFunctionResult>[0]);
    if (functionName === "isRedeemed") return result(this.isRedeemed);
    if (functionName === "queued") return result([0n, ETHER]);
    return functionName === "epochValidUntil" ? result(1n << 64n) : pad("0x0");
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
