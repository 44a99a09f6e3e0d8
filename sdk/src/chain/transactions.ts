/** Transactions on the Primary: asked of the user's wallet, followed until their block stays. */

import type { Account, TransactionReceipt, WalletClient } from "viem";

import type { Address, Hex } from "../bytes.js";
import { FastPayError } from "../errors.js";
import type { ChainStep } from "../progress.js";
import { chainError, walletError } from "../wallet-errors.js";
import { aborted, sleep, throwIfAborted } from "../waiting.js";
import type { Contract } from "./contract.js";

/** A wallet's account on the contract's chain, with whoever watches. */
export interface ChainAccount {
  readonly contract: Contract;
  readonly wallet: WalletClient;
  /** A local account signs by itself; an address is passed on to the wallet. */
  readonly account: Account | Address;
  readonly address: Address;
  readonly tell: (step: ChainStep) => void;
  readonly signal: AbortSignal | undefined;
}

/** Checks that a wallet has an account and is on the right chain. Throws `wrong-chain`, `invalid-argument`. */
export async function chainAccount(
  contract: Contract,
  wallet: WalletClient,
  tell: (step: ChainStep) => void,
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
    const message = `the wallet is on chain ${chain}, and ${contract.domain.chainId} is meant`;
    throw new FastPayError("wrong-chain", message, "switch the wallet to the right network, then try again");
  }
  return { contract, wallet, account, address: account.address, tell, signal };
}

/** A call of a contract, encoded. */
export interface Call {
  readonly to: Address;
  readonly data: Hex;
  readonly value?: bigint;
}

/** Has a call signed and sent. What it would be refused for is found out before the wallet is asked. */
export async function send(
  from: ChainAccount,
  call: Call,
  what: "approval" | "transaction" = "transaction",
): Promise<Hex> {
  throwIfAborted(from.signal);
  await from.contract.ask(() => from.contract.client.call({ account: from.address, ...call }));
  from.tell({ type: "signing", what });
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

/** Follows a transaction that was sent until its block stays. */
export async function follow(from: ChainAccount, hash: Hex): Promise<TransactionReceipt> {
  from.tell({ type: "submitted", hash });
  const receipt = await included(from, hash);
  from.tell({ type: "included", hash: receipt.transactionHash, block: receipt.blockNumber });
  const stays = await final(from, receipt);
  from.tell({ type: "final", hash: stays.transactionHash, block: stays.blockNumber });
  return stays;
}

/** Waits until a transaction, or what replaced it, is in a block. Throws `reverted` where it did nothing. */
export async function included(from: ChainAccount, hash: Hex): Promise<TransactionReceipt> {
  const receipt = await orAborted(from.signal, () =>
    from.contract.client.waitForTransactionReceipt({ hash, timeout: 0 }),
  );
  if (receipt.status === "success") return receipt;
  const action = "nothing happened but the gas is spent; look at the transaction, then try again";
  throw new FastPayError("reverted", `the transaction ${receipt.transactionHash} was reverted`, action, {
    details: { hash: receipt.transactionHash, block: receipt.blockNumber },
  });
}

/** Waits until the block of a transaction stays. */
async function final(from: ChainAccount, receipt: TransactionReceipt): Promise<TransactionReceipt> {
  let known = receipt;
  for (;;) {
    throwIfAborted(from.signal);
    const newest = await from.contract.block(from.contract.finality);
    if (newest.number >= known.blockNumber) {
      const now = await from.contract.receipt(known.transactionHash);
      if (now?.blockHash === known.blockHash) return now;
      // Its block was undone; the transaction waits for another one.
      known = now ?? (await included(from, known.transactionHash));
    }
    await sleep(from.contract.client.pollingInterval, from.signal);
  }
}

async function orAborted<T>(signal: AbortSignal | undefined, act: () => Promise<T>): Promise<T> {
  throwIfAborted(signal);
  const given = new Promise<never>((_, reject) => {
    signal?.addEventListener("abort", () => reject(aborted()), { once: true });
  });
  try {
    return await Promise.race([act(), given]);
  } catch (error) {
    throw chainError(error);
  }
}
