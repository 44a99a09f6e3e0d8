/**
 * An Ethereum node and a wallet in this process, which know one transaction: a deposit of ETH. That a real node answers
 * like this is what the live tests show; here it falls silent, and undoes blocks, when a test says so.
 */

import {
  createPublicClient,
  createWalletClient,
  custom,
  encodeAbiParameters,
  encodeEventTopics,
  pad,
  toHex,
  type Hex,
} from "viem";

import { formatAccount, type AccountId } from "../../src/index.js";
import { FASTPAY_ABI } from "../../src/chain/abi.js";
import { Contract } from "../../src/chain/contract.js";
import { DOMAIN } from "./committee.js";
import type { Answer, Request } from "./node.js";

const OWNER: Hex = "0x00000000000000000000000000000000000000aa";
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
      // Not paused; and the call does not revert.
      case "eth_call":
        return pad("0x0");
      case "eth_sendTransaction":
        return this.hash;
      case "eth_getTransactionByHash":
        return { hash: this.hash, from: OWNER, nonce: "0x0", blockNumber: null };
      case "eth_getTransactionReceipt":
        return this.block === undefined ? null : this.#receipt(this.block);
      default:
        throw new Error(`nobody knows ${method}`);
    }
  }

  #receipt(block: bigint): object {
    const args = { index: 1n, recipient: this.recipient, asset: ETHER };
    const log = {
      address: DOMAIN.contract,
      topics: encodeEventTopics({ abi: FASTPAY_ABI, eventName: "Funded", args }),
      data: encodeAbiParameters([{ type: "uint128" }, { type: "address" }], [this.amount, OWNER]),
      blockNumber: toHex(block),
    };
    return {
      transactionHash: this.hash,
      blockHash: pad(toHex(block)),
      blockNumber: toHex(block),
      status: this.isReverted ? "0x0" : "0x1",
      logs: this.isReverted ? [] : [log],
    };
  }
}
