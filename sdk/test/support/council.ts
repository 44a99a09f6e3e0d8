/**
 * The contract's Council, behind an Ethereum node and a wallet in this process. It upholds and voids numbers, and
 * checks the votes as the contract does. Its blocks are final at once, and authorities read them at once. The page's
 * tests (`web/test/unlock.spec.ts`) show that the real contract answers in the same way.
 */

import { createPublicClient, createWalletClient, custom, decodeFunctionData, encodeFunctionResult, keccak256, pad, toHex, type Hex } from "viem";

import { certificateVoteDigest, recoverSigner, voidVoteDigest, type AccountId, type Committee } from "../../src/index.js";
import { COUNCIL_ABI, FASTPAY_ABI } from "../../src/chain/abi.js";
import { Contract } from "../../src/chain/contract.js";
import { DOMAIN } from "./committee.js";
import type { TestNode } from "./node.js";

const COUNCIL: Hex = "0x00000000000000000000000000000000000000c0";
export const BOND = 5_000_000_000_000_000n;
export const WINDOW_S = 1_000n;
/** An address that pays for gas. */
export const PAYER: Hex = "0x00000000000000000000000000000000000000aa";

/** A transaction that the wallet sent. */
export type SentCall = ReturnType<typeof decodeFunctionData<typeof COUNCIL_ABI>> & { readonly value: bigint };

interface Entry {
  outcome: 0 | 1 | 2;
  voidableFrom: bigint;
}

export class TestCouncil {
  /** The chain's clock, in seconds since 1970. */
  now = 1_000n;
  unanimousFrom = 0n;
  pausedUntil = 0n;
  /** The transactions that the wallet sent, oldest first. */
  readonly sent: SentCall[] = [];
  /** While true, new blocks are not final, and authorities do not read them. */
  isHeld = false;
  readonly #nodes: readonly TestNode[];
  readonly #committee: () => Committee;
  readonly #newest = new Map<string, Entry>();
  #final = new Map<string, Entry>();
  readonly #hashes: Hex[] = [];
  #unread: (() => void)[] = [];
  #finalBlock = 0;

  constructor(nodes: readonly TestNode[], committee: () => Committee) {
    this.#nodes = nodes;
    this.#committee = committee;
  }

  get contract(): Contract {
    const transport = custom({ request: (request) => this.#answer(request) }, { retryCount: 0 });
    return new Contract(createPublicClient({ transport, pollingInterval: 5 }), DOMAIN, "finalized");
  }

  /** The wallet of an address. */
  walletOf(account: Hex) {
    return createWalletClient({ account, transport: custom({ request: (request) => this.#answer(request) }) });
  }

  /** A stranger requests to unlock a number, with a bond and without the owner's signature. Authorities ignore it. */
  requestAsStranger(account: AccountId, sequence: bigint): void {
    this.#newest.set(`${account}/${sequence}`, { outcome: 0, voidableFrom: this.now + WINDOW_S });
    this.finalize();
  }

  /** Makes all blocks final, and has the authorities read them. */
  finalize(): void {
    this.#final = new Map([...this.#newest].map(([key, entry]) => [key, { ...entry }]));
    this.#finalBlock = this.#hashes.length;
    const unread = this.#unread;
    this.#unread = [];
    for (const read of unread) read();
  }

  async #answer({ method, params }: { method: string; params?: unknown }): Promise<unknown> {
    const [first, second] = (params ?? []) as readonly unknown[];
    switch (method) {
      case "eth_chainId":
        return toHex(DOMAIN.chainId);
      case "eth_gasPrice":
        return "0x1";
      case "eth_blockNumber":
        return toHex(this.#hashes.length);
      case "eth_getBlockByNumber": {
        const number = first === "finalized" ? this.#finalBlock : this.#hashes.length;
        return { number: toHex(number), timestamp: toHex(this.now), transactions: [] };
      }
      case "eth_call":
        return this.#call(first as { to: Hex; data: Hex }, second === "finalized" ? this.#final : this.#newest);
      case "eth_sendTransaction":
        return this.#send(first as { data: Hex; value?: Hex; from: Hex });
      case "eth_getTransactionByHash": {
        const nonce = this.#hashes.indexOf(first as Hex);
        return nonce < 0 ? null : { hash: first, from: PAYER, nonce: toHex(nonce), blockNumber: toHex(nonce + 1) };
      }
      case "eth_getTransactionCount":
        return toHex(this.#finalBlock);
      case "eth_getTransactionReceipt": {
        const block = toHex(this.#hashes.indexOf(first as Hex) + 1);
        return { transactionHash: first, blockHash: pad(block), blockNumber: block, status: "0x1", logs: [] };
      }
      default:
        throw new Error(`nobody knows ${method}`);
    }
  }

  #call({ to, data }: { to: Hex; data: Hex }, entries: ReadonlyMap<string, Entry>): Hex {
    if (to === DOMAIN.contract) {
      const { functionName } = decodeFunctionData({ abi: FASTPAY_ABI, data });
      if (functionName === "council") return encodeFunctionResult({ abi: FASTPAY_ABI, functionName, result: COUNCIL });
      if (functionName === "pausedUntil") return encodeFunctionResult({ abi: FASTPAY_ABI, functionName, result: this.pausedUntil });
      throw new Error(`nobody knows ${functionName}`);
    }
    const { functionName, args } = decodeFunctionData({ abi: COUNCIL_ABI, data });
    switch (functionName) {
      case "unlockBond":
        return encodeFunctionResult({ abi: COUNCIL_ABI, functionName, result: BOND });
      case "unanimousFrom":
        return encodeFunctionResult({ abi: COUNCIL_ABI, functionName, result: this.unanimousFrom });
      case "unlockOf": {
        const { outcome, voidableFrom } = entries.get(args.join("/")) ?? { outcome: 0, voidableFrom: 0n };
        return encodeFunctionResult({ abi: COUNCIL_ABI, functionName, result: [outcome, voidableFrom, PAYER] });
      }
      default:
        // A simulation before a transaction is sent.
        return "0x";
    }
  }

  #send({ data, value = "0x0" }: { data: Hex; value?: Hex }): Hex {
    const call = decodeFunctionData({ abi: COUNCIL_ABI, data });
    this.sent.push({ ...call, value: BigInt(value) } as SentCall);
    const hash = keccak256(toHex(this.#hashes.length));
    this.#hashes.push(hash);
    this.#apply(call);
    if (!this.isHeld) this.finalize();
    return hash;
  }

  #apply({ functionName, args }: ReturnType<typeof decodeFunctionData<typeof COUNCIL_ABI>>): void {
    const [account, sequence] = args as readonly [AccountId, bigint];
    const key = `${account}/${sequence}`;
    const entry = this.#newest.get(key) ?? { outcome: 0, voidableFrom: 0n };
    const read = (act: (node: TestNode) => void): void => void this.#unread.push(() => this.#nodes.forEach(act));
    const { epoch, quorum, members } = this.#committee();
    if (functionName === "requestUnlock") {
      this.#newest.set(key, { outcome: 0, voidableFrom: this.now + WINDOW_S });
      read((node) => node.freeze(account));
    } else if (functionName === "voidSequence") {
      const [, , unanimous, votes] = args;
      if (this.now < (unanimous ? this.unanimousFrom : entry.voidableFrom)) throw new Error("NotVoidable");
      this.#check(votes, voidVoteDigest(DOMAIN, epoch, account, sequence, unanimous), unanimous ? members.length : quorum);
      this.#newest.set(key, { ...entry, outcome: 2 });
      read((node) => node.decide(account, undefined));
    } else if (functionName === "upholdSequence") {
      const [, , digest, votes] = args;
      this.#check(votes, certificateVoteDigest(DOMAIN, epoch, account, sequence, digest), quorum);
      this.#newest.set(key, { ...entry, outcome: 1 });
      read((node) => node.decide(account, digest));
    }
  }

  /** Checks votes like `Votes.check`: exactly `needed` valid votes, of members in ascending order. */
  #check(votes: Hex, digest: Hex, needed: number): void {
    const items = votes.slice(2).match(/.{132}/g) ?? [];
    const members = items.map((item) => Number.parseInt(item.slice(0, 2), 16));
    const isAscending = members.every((member, i) => i === 0 || member > (members[i - 1] as number));
    const isSigned = items.every((item, i) => {
      const key = this.#committee().members[members[i] as number]?.redemptionKey;
      return key !== undefined && recoverSigner(`0x${item.slice(2)}`, digest) === key;
    });
    if (items.length !== needed || `0x${items.join("")}` !== votes || !isAscending || !isSigned) throw new Error("votes");
  }
}
