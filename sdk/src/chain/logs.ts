/** Reads the contract's log in ranges of blocks, because nodes limit the blocks of one request. */

import { toHex, type Log } from "viem";

import type { Address, Hex } from "../bytes.js";
import type { EthereumClient } from "../client.js";

/** The number of newest blocks that are searched, two weeks of Ethereum. */
const BLOCKS_SEARCHED_MAX = 100_000n;
/** Many nodes serve a range of about this many blocks. */
const RANGE_BLOCKS = 10_000n;
/** The range after a node has refused the larger one. Nearly all nodes serve about this many blocks. */
const RANGE_BLOCKS_REFUSED = 1_000n;

/** The ends of the chain, as block numbers. */
export interface Chain {
  readonly newest: bigint;
  readonly final: bigint;
  /** The block of the deployment. */
  readonly deployed: bigint;
}

/** Topics of a filter, as in `eth_getLogs`. */
export type Topics = readonly (Hex | readonly Hex[])[];

/** The oldest block that is searched. */
export function oldestSearched({ newest, deployed }: Chain): bigint {
  return newest - BLOCKS_SEARCHED_MAX > deployed ? newest - BLOCKS_SEARCHED_MAX : deployed;
}

/** The contract's log, read in ranges. */
export class ContractLogs {
  readonly #client: EthereumClient;
  readonly #contract: Address;
  #range = RANGE_BLOCKS;

  constructor(client: EthereumClient, contract: Address) {
    this.#client = client;
    this.#contract = contract;
  }

  /** The number of blocks that are read at once. */
  get range(): bigint {
    return this.#range;
  }

  /** The events in a range of blocks; undefined if the node needs a smaller range. Throws if it serves no log. */
  async read(topics: Topics, from: bigint, to: bigint): Promise<Log[] | undefined> {
    const filter = { address: this.#contract, topics, fromBlock: toHex(from), toBlock: toHex(to) };
    try {
      return (await this.#client.request({ method: "eth_getLogs", params: [filter as never] })) as unknown as Log[];
    } catch (error) {
      if (this.#range === RANGE_BLOCKS_REFUSED) throw error;
      this.#range = RANGE_BLOCKS_REFUSED;
      return undefined;
    }
  }

  /** The newest event with these topics; undefined if the newest blocks have none. */
  async newest(topics: Topics, chain: Chain): Promise<Log | undefined> {
    const oldest = oldestSearched(chain);
    for (let to = chain.newest; to >= oldest; ) {
      const from = to - this.#range + 1n > oldest ? to - this.#range + 1n : oldest;
      const logs = await this.read(topics, from, to);
      if (logs === undefined) continue;
      const last = logs.at(-1);
      if (last !== undefined) return last;
      to = from - 1n;
    }
    return undefined;
  }
}
