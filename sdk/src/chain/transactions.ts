/** Transactions on the Primary. The user's wallet sends them; the SDK follows them until their block is final. */

import type { Account, TransactionReceipt } from "viem";

import type { EthereumWallet } from "../client.js";
import type { Address, Hex } from "../bytes.js";
import { FastPayError, isFastPayError } from "../errors.js";
import type { ChainStep } from "../progress.js";
import type { Place } from "../views.js";
import { chainError, walletError } from "../wallet-errors.js";
import { aborted, Backoff, sleep, throwIfAborted } from "../waiting.js";
import type { Contract } from "./contract.js";

/** The longest delay between requests to a node that does not answer. */
const AGAIN_MAX_MS = 15_000;

/** The environment for following transactions on the contract's chain. */
export interface Follower {
  readonly contract: Contract;
  readonly report: (step: ChainStep) => void;
  readonly signal: AbortSignal | undefined;
  /** The transaction's sender and nonce, if known. */
  readonly place?: Place | undefined;
  /** Called with the sender and nonce once they are known. */
  readonly placed?: (place: Place) => void;
}

/** A wallet's account on the contract's chain, with a listener. */
export interface ChainAccount extends Follower {
  readonly wallet: EthereumWallet;
  /** A local account signs by itself. For an address, the wallet signs. */
  readonly account: Account | Address;
  readonly address: Address;
}

/** Checks that a wallet has an account and is on the right chain. Throws `wrong-chain`, `invalid-argument`. */
export async function chainAccount(
  contract: Contract,
  wallet: EthereumWallet,
  report: (step: ChainStep) => void,
  signal: AbortSignal | undefined,
): Promise<ChainAccount> {
  throwIfAborted(signal);
  const account = wallet.account;
  if (account === undefined) {
    throw new FastPayError("invalid-argument", "the wallet has no account", "give a WalletClient with its account");
  }
  let chain: number;
  try {
    chain = await wallet.getChainId();
  } catch (error) {
    throw walletError(error);
  }
  if (BigInt(chain) !== contract.domain.chainId) {
    const message = `the wallet is on chain ${chain}, not on ${contract.domain.chainId}`;
    throw new FastPayError("wrong-chain", message, "switch the wallet to the right network, then try again");
  }
  return { contract, wallet, account, address: account.address, report, signal };
}

/** A call of a contract, encoded. */
export interface Call {
  readonly to: Address;
  readonly data: Hex;
  readonly value?: bigint;
}

/** Simulates a call, then has the wallet sign and send it. */
export async function send(
  from: ChainAccount,
  call: Call,
  what: "approval" | "transaction" = "transaction",
): Promise<Hex> {
  throwIfAborted(from.signal);
  await from.contract.ask(() => from.contract.client.call({ account: from.address, ...call }));
  from.report({ type: "signing", what });
  try {
    return await from.wallet.sendTransaction({
      account: from.account,
      chain: from.wallet.chain ?? null,
      to: call.to,
      data: call.data,
      value: call.value ?? 0n,
    });
  } catch (error) {
    throw walletError(error);
  }
}

/**
 * Follows a sent transaction until its block is final, however long the node is unreachable. Errors have the hash in
 * `details.hash`.
 */
export function follow(from: Follower, hash: Hex): Promise<TransactionReceipt> {
  return naming(hash, async () => {
    from.report({ type: "submitted", hash });
    const receipt = await included(from, hash);
    from.report({ type: "included", hash: receipt.transactionHash, block: receipt.blockNumber });
    const stays = await final(from, receipt);
    from.report({ type: "final", hash: stays.transactionHash, block: stays.blockNumber });
    return stays;
  });
}

/** Runs `act` for a sent transaction, and adds the transaction's hash to errors as `details.hash`. */
export async function naming<T>(hash: Hex, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!isFastPayError(error) || "hash" in error.details) throw error;
    const { code, message, action, details } = error;
    throw new FastPayError(code, message, action, { details: { ...details, hash }, cause: error });
  }
}

/**
 * Waits until a transaction, or its replacement, is included. Throws `reverted` if it reverted, and `not-found` if it
 * will never be included.
 */
export async function included(from: Follower, hash: Hex): Promise<TransactionReceipt> {
  const { contract, signal } = from;
  const ended = new AbortController();
  const until = signal === undefined ? ended.signal : AbortSignal.any([ended.signal, signal]);
  // viem finds replacements from now on, but hides that the node does not answer.
  const receipt = await Promise.race([
    // The loser of this race is aborted; otherwise it would poll the node for ever.
    answered({ ...from, signal: until }, () => contract.client.waitForTransactionReceipt({ hash, timeout: 0, signal: until })),
    replacedEarlier({ ...from, signal: until }, hash),
  ]).finally(() => ended.abort());
  if (receipt.status === "success") return receipt;
  const action = "nothing happened, but the gas is spent; check the transaction, then try again";
  throw new FastPayError("reverted", `the transaction ${receipt.transactionHash} was reverted`, action, {
    details: { hash: receipt.transactionHash, block: receipt.blockNumber },
  });
}

/**
 * The receipt of the transaction that took this sender and nonce in a final block, even before this call. Throws
 * `not-found` if the node cannot find that transaction. These requests also show whether the node answers at all.
 */
async function replacedEarlier(from: Follower, hash: Hex): Promise<TransactionReceipt> {
  const { contract, signal } = from;
  let { place } = from;
  for (;;) {
    if (place === undefined) {
      place = await answered(from, () => contract.placeOf(hash));
      if (place !== undefined) from.placed?.(place);
    } else if (await answered(from, () => contract.isTaken(place as Place))) {
      const receipt = await answered(from, async () => (await contract.receipt(hash)) ?? contract.receiptAt(place as Place));
      if (receipt !== undefined) return receipt;
      const message = `the transaction ${hash} was cancelled or replaced in the wallet`;
      throw new FastPayError("not-found", message, "check the wallet: its replacement may have done the same");
    }
    await sleep(contract.client.pollingInterval, signal);
  }
}

/** Waits until the block of a transaction is final. */
async function final(from: Follower, receipt: TransactionReceipt): Promise<TransactionReceipt> {
  const { contract } = from;
  let known = receipt;
  let lastReported: bigint | undefined;
  for (;;) {
    const newest = await answered(from, () => contract.block(contract.finality));
    if (newest.number >= known.blockNumber) {
      const now = await answered(from, () => contract.receipt(known.transactionHash));
      if (now?.blockHash === known.blockHash) return now;
      // Its block was undone; the transaction waits for another block.
      known = now ?? (await included(from, known.transactionHash));
    } else if (newest.number !== lastReported) {
      lastReported = newest.number;
      from.report({ type: "finalizing", hash: known.transactionHash, blocks: known.blockNumber - newest.number });
    }
    await sleep(contract.client.pollingInterval, from.signal);
  }
}

/**
 * Repeats a request until the node answers. The transaction proceeds meanwhile, and a caller that got an error would
 * send it twice. Throws `aborted`, or an error other than `chain-unreachable`.
 */
export async function answered<T>({ contract, report, signal }: Follower, ask: () => Promise<T>): Promise<T> {
  const backoff = new Backoff(contract.client.pollingInterval, AGAIN_MAX_MS);
  let isSilent = false;
  for (;;) {
    throwIfAborted(signal);
    try {
      const answer = await ask();
      if (isSilent) report({ type: "node", failure: undefined });
      return answer;
    } catch (error) {
      if (signal?.aborted) throw aborted();
      const known = chainError(error);
      if (known.code !== "chain-unreachable") throw known;
      if (!isSilent) report({ type: "node", failure: known.message });
      isSilent = true;
    }
    await backoff.wait(signal);
  }
}
