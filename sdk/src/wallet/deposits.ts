/** Deposits: from the transaction on the Primary to the credit by a quorum of authorities. */

import { encodeFunctionData, parseEventLogs, type TransactionReceipt } from "viem";

import type { EthereumWallet } from "../client.js";
import { accountFromBytes32, accountFromEthereum, accountOf, type AccountId } from "../accounts.js";
import { AMOUNT_MAX, formatAmount } from "../amounts.js";
import type { AuthorityClient } from "../authority.js";
import { lower, type Address, type Hex } from "../bytes.js";
import { FASTPAY_ABI, TOKEN_ABI } from "../chain/abi.js";
import { Token } from "../chain/tokens.js";
import { chainAccount, follow, included, send, type Call, type ChainAccount } from "../chain/transactions.js";
import { FastPayError, isFastPayError } from "../errors.js";
import { membersAmong, type Network } from "../network.js";
import { prunedOf } from "../problem.js";
import type { ChainStep } from "../progress.js";
import { normalizeSignature } from "../signatures.js";
import { ETHER } from "../transfer.js";
import type { DepositEntry, DepositReceipt, DepositStatus } from "../views.js";
import { walletError } from "../wallet-errors.js";
import { Backoff, throwIfAborted } from "../waiting.js";
import type { DepositItem } from "../wire.js";
import type { ContractContext } from "./context.js";
import { note, toItsEnd, type Sent } from "./transactions.js";

/** The validity of a permit: a transaction may wait for fees to fall. */
const PERMIT_LIFETIME_S = 24n * 3600n;
/** The number of entries on an honest authority's page. */
const PAGE_ENTRIES = 100n;
/** The maximum number of pages to read: a list of 2⁶⁴ entries can be halved this often. */
const PAGES_MAX = 64;
const POLL_MIN_MS = 100;
const POLL_MAX_MS = 2_000;

/** A deposit to make. */
export interface DepositIntent {
  /** An account or its text. Default: the account of the wallet's own address. */
  readonly recipient?: AccountId | string;
  readonly asset: Address;
  readonly amount: bigint;
}

/** Makes a deposit. Resolves when a quorum has credited it. */
export async function deposit(
  context: ContractContext,
  wallet: EthereumWallet,
  intent: DepositIntent,
  report: (step: ChainStep) => void,
  signal: AbortSignal | undefined,
): Promise<DepositReceipt> {
  const { contract } = context;
  const given = intent.recipient === undefined ? undefined : accountOf(intent.recipient);
  const from = await chainAccount(contract, wallet, report, signal);
  const { amount } = intent;
  if (amount <= 0n || amount > AMOUNT_MAX) {
    throw new FastPayError("invalid-argument", "the amount to deposit is zero or out of range", "change the amount");
  }
  await contract.checkNotPaused();
  const recipient = given ?? accountFromEthereum(from.address);
  const asset = lower(intent.asset);
  const hash =
    asset === ETHER ? await depositEther(from, recipient, amount) : await depositToken(from, recipient, asset, amount);
  const [sent, purpose] = [{ account: recipient, hash }, { type: "deposit", asset, amount } as const];
  await note(context, sent, purpose);
  return followDeposit(context, { ...sent, ...purpose }, report, signal);
}

/** Follows a sent deposit. Resolves when a quorum has credited it. */
export function followDeposit(
  context: ContractContext,
  sent: Sent<"deposit">,
  report: (step: ChainStep) => void,
  signal: AbortSignal | undefined,
): Promise<DepositReceipt> {
  const { network } = context;
  return toItsEnd(context, sent, report, signal, async (follower) => {
    const stays = await follow(follower, sent.hash);
    const funded = fundedBy(follower.contract.domain.contract, stays);
    const { quorum } = network.committee;
    const authorities = await credited(network, funded, signal, (count) =>
      report({ type: "credited", authorities: count, quorum }),
    );
    return { hash: stays.transactionHash, block: stays.blockNumber, deposit: { ...funded, authorities } };
  });
}

async function depositEther(from: ChainAccount, recipient: AccountId, amount: bigint): Promise<Hex> {
  const data = encodeFunctionData({ abi: FASTPAY_ABI, functionName: "depositEther", args: [recipient] });
  return send(from, { to: from.contract.domain.contract, data, value: amount });
}

async function depositToken(from: ChainAccount, recipient: AccountId, asset: Address, amount: bigint): Promise<Hex> {
  const token = new Token(from.contract, asset);
  const held = await token.balanceOf(from.address);
  if (held < amount) {
    const { symbol, decimals } = await token.info();
    const [has, wants] = [held, amount].map((units) => `${formatAmount(units, decimals)} ${symbol}`);
    const message = `the address holds ${has}, less than the ${wants} to deposit`;
    throw new FastPayError("insufficient-funds", message, "deposit less", {
      details: { needed: amount, available: held },
    });
  }
  const args = [recipient, asset, amount] as const;
  const plain = {
    to: from.contract.domain.contract,
    data: encodeFunctionData({ abi: FASTPAY_ABI, functionName: "depositToken", args }),
  };
  if ((await token.allowance(from.address)) >= amount) return send(from, plain);
  const permitted = await permittedCall(from, token, recipient, amount);
  if (permitted !== undefined) {
    try {
      return await send(from, permitted);
    } catch (error) {
      // Some tokens have permits of another kind. Use an approval then.
      if (!isFastPayError(error, "reverted")) throw error;
    }
  }
  await approve(from, token, amount);
  return send(from, plain);
}

/** The call that deposits with a permit; undefined if the token has no permit that the wallet can sign. */
async function permittedCall(
  from: ChainAccount,
  token: Token,
  recipient: AccountId,
  amount: bigint,
): Promise<Call | undefined> {
  const domain = await token.permitDomain();
  if (domain === undefined) return undefined;
  const { contract } = from.contract.domain;
  // Tokens compare the deadline with the chain's time, so use that.
  const [{ timestamp }, nonce] = await Promise.all([from.contract.block("latest"), token.nonce(from.address)]);
  const deadline = timestamp + PERMIT_LIFETIME_S;
  const message = { owner: from.address, spender: contract, value: amount, nonce, deadline };
  from.report({ type: "signing", what: "permit" });
  let signature: Hex;
  try {
    signature = await from.wallet.signTypedData({
      account: from.account,
      domain: { ...domain },
      types: { Permit: PERMIT },
      primaryType: "Permit",
      message,
    });
  } catch (error) {
    throw walletError(error);
  }
  const signed = normalizeSignature(signature);
  // A contract wallet has no key that could sign. Use an approval then.
  if (signed === undefined) return undefined;
  const [r, s, v] = [signed.slice(2, 66), signed.slice(66, 130), signed.slice(130)];
  const args = [recipient, token.address, amount, deadline, Number.parseInt(v, 16), `0x${r}`, `0x${s}`] as const;
  return { to: contract, data: encodeFunctionData({ abi: FASTPAY_ABI, functionName: "depositTokenWithPermit", args }) };
}

const PERMIT = [
  { name: "owner", type: "address" },
  { name: "spender", type: "address" },
  { name: "value", type: "uint256" },
  { name: "nonce", type: "uint256" },
  { name: "deadline", type: "uint256" },
] as const;

/** Lets the contract take `amount`. Waits for a block only, not for finality: the deposit cannot happen without it. */
async function approve(from: ChainAccount, token: Token, amount: bigint): Promise<void> {
  const allow = async (value: bigint): Promise<void> => {
    const args = [from.contract.domain.contract, value] as const;
    const data = encodeFunctionData({ abi: TOKEN_ABI, functionName: "approve", args });
    const hash = await send(from, { to: token.address, data }, "approval");
    from.report({ type: "approval-submitted", hash });
    await included(from, hash);
  };
  try {
    await allow(amount);
  } catch (error) {
    // Some tokens accept a new allowance only after it was set to zero.
    if (!isFastPayError(error, "reverted") || (await token.allowance(from.address)) === 0n) throw error;
    await allow(0n);
    await allow(amount);
  }
}

/** The deposit that a transaction made. */
function fundedBy(contract: Address, receipt: TransactionReceipt): DepositEntry {
  const logs = parseEventLogs({ abi: FASTPAY_ABI, eventName: "Funded", logs: receipt.logs });
  const ours = logs.find((log) => log.address.toLowerCase() === contract.toLowerCase());
  if (ours === undefined) {
    const action = "it was cancelled in the wallet, or did something else: check the wallet before you deposit again";
    throw new FastPayError("not-found", `the transaction ${receipt.transactionHash} made no deposit`, action);
  }
  const { index, recipient, asset, amount } = ours.args;
  return {
    index,
    recipient: accountFromBytes32(recipient),
    asset: lower(asset),
    amount,
    authorities: 0,
  };
}

/** The state of a deposit, by its transaction. */
export async function depositStatus({ network, contract }: ContractContext, hash: Hex): Promise<DepositStatus> {
  const receipt = await contract.receipt(hash);
  if (receipt === undefined) return { state: "pending" };
  const block = receipt.blockNumber;
  if (receipt.status === "reverted") return { state: "reverted", block };
  const funded = fundedBy(contract.domain.contract, receipt);
  const newest = await contract.block(contract.finality);
  if (newest.number < block) return { state: "included", block, deposit: funded };
  // Wait only until a quorum has credited the deposit: a slow authority cannot change the result then.
  const authorities = await countCredits(network, funded, { counts: (hasCredited) => hasCredited });
  const state = authorities >= network.committee.quorum ? "credited" : "final";
  return { state, block, deposit: { ...funded, authorities } };
}

/** Waits until a quorum has credited a deposit. */
async function credited(
  network: Network,
  funded: DepositEntry,
  signal: AbortSignal | undefined,
  report: (count: number) => void,
): Promise<number> {
  const backoff = new Backoff(POLL_MIN_MS, POLL_MAX_MS);
  let lastReported = 0;
  for (;;) {
    throwIfAborted(signal);
    const count = await countCredits(network, funded, { signal });
    if (count > lastReported) {
      report(count);
      lastReported = count;
    }
    if (count >= network.committee.quorum) return count;
    await backoff.wait(signal);
  }
}

/** The number of members that have credited a deposit. `options` are those of `askAll`. */
export async function countCredits(
  network: Network,
  funded: DepositEntry,
  options: { signal?: AbortSignal | undefined; counts?: (hasCredited: boolean) => boolean },
): Promise<number> {
  const answers = await network.askAll((authority, until) => hasCredited(authority, funded, until), options);
  return membersAmong(answers.filter(({ answer }) => answer === true).map(({ authority }) => authority), network.committee);
}

/** True if an authority has credited a deposit, however many deposits the account has received since. */
export async function hasCredited(authority: AuthorityClient, funded: DepositEntry, signal: AbortSignal): Promise<boolean> {
  try {
    return await isListed(authority, funded, signal);
  } catch (error) {
    if (prunedOf(error) === undefined) throw error;
  }
  // It has pruned a part of the list. It applies the contract's events in their order, so it has credited the deposit if
  // its base is behind it.
  try {
    return isSame(await authority.deposit(funded.index, signal), funded);
  } catch (error) {
    const first = prunedOf(error)?.first;
    if (first === undefined) throw error;
    return funded.index < first;
  }
}

async function isListed(authority: AuthorityClient, funded: DepositEntry, signal: AbortSignal): Promise<boolean> {
  const { recipient, index } = funded;
  // The list is sorted by index: read the newest page first, then bisect.
  let from = 0n;
  let { deposits: to } = await authority.account(recipient, undefined, signal);
  let start = to > PAGE_ENTRIES ? to - PAGE_ENTRIES : 0n;
  for (let page = 0; page < PAGES_MAX && from < to; page += 1) {
    const { entries } = await authority.deposits(recipient, start, signal);
    if (entries.some((entry) => isSame(entry, funded))) return true;
    const [oldest, newest] = [entries[0], entries.at(-1)];
    if (oldest === undefined || newest === undefined) return false;
    if (index < oldest.index) to = start;
    else if (index > newest.index) from = start + BigInt(entries.length);
    else return false;
    start = (from + to) / 2n;
  }
  return false;
}

function isSame(entry: DepositItem, funded: DepositEntry): boolean {
  const { index, recipient, asset, amount } = funded;
  return entry.index === index && entry.recipient === recipient && entry.asset === asset && entry.amount === amount;
}
