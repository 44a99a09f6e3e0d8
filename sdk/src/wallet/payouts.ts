/** Submits redemptions without a relayer, executes queued ones, and collects claims. */

import { encodeFunctionData, parseEventLogs } from "viem";

import { accountFromEthereum } from "../accounts.js";
import { lower, type Address, type Hex } from "../bytes.js";
import { packRedemptionVotes, type VerifiedCertificate } from "../certificate.js";
import type { ClaimIntent, EthereumWallet } from "../client.js";
import { FASTPAY_ABI } from "../chain/abi.js";
import { answered, chainAccount, follow, naming, send, type ChainAccount, type Follower } from "../chain/transactions.js";
import { voteAgain, type BatchVotes } from "../quorum/vote-again.js";
import { transferDigest } from "../eip712.js";
import { FastPayError, isFastPayError } from "../errors.js";
import type { ChainStep, TransferStep } from "../progress.js";
import type { Redemption } from "../transfer.js";
import type { ClaimReceipt, PayoutReceipt, RedemptionCost, RedemptionStatus } from "../views.js";
import type { Primary } from "../primary.js";
import type { Context, ContractContext } from "./context.js";
import { forgetTransaction, note, sentBefore, toItsEnd, type Sent, type Submitted } from "./transactions.js";

/** Votes of an epoch that ends within this many seconds are not used, because a transaction may wait for its block. */
const ENDING_MARGIN_S = 120n;
/**
 * A redemption of ETH with a committee of 4 takes 65,499 gas to an account seen before, and 83,471 to a new one. A
 * token adds its own gas (docs/CONTRACT.md).
 */
const REDEMPTION_GAS = 100_000n;

type Report = (step: ChainStep) => void;

/**
 * Throws `recipient-is-fastpay` if money would be lost. While the Ethereum node is unreachable, no recipient is
 * refused, so that redemptions can still be ordered.
 */
export async function checkRecipient(primary: Primary, recipient: Address): Promise<void> {
  const isLost = await primary.isFastPay(recipient).catch((error: unknown) => {
    if (isFastPayError(error, "chain-unreachable")) return false;
    throw error;
  });
  if (!isLost) return;
  const message = `${recipient} is a contract of FastPay: nobody could move money paid to it`;
  const action = "nothing was signed; redeem to your own address. To move money between accounts, pay";
  throw new FastPayError("recipient-is-fastpay", message, action, { details: { recipient } });
}

/** Submits a redemption with the wallet's own transaction. */
export async function redeemOnChain(
  context: ContractContext,
  wallet: EthereumWallet,
  certificate: VerifiedCertificate,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<PayoutReceipt> {
  const { contract } = context;
  const redemption = certificate.order.transfer;
  if (redemption.type !== "redemption") {
    throw new FastPayError("invalid-argument", "this is the certificate of a payment", "give that of a redemption");
  }
  const from = await chainAccount(contract, wallet, report, signal);
  return payOut(context, from, redemption, "open", () => redemptionCall(context, certificate, redemption, report, signal));
}

/**
 * The call that redeems. It has the certificate's own votes if the contract still takes their epoch, otherwise votes of
 * the current committee for the same redemption.
 */
export async function redemptionCall(
  context: ContractContext,
  certificate: VerifiedCertificate,
  redemption: Redemption,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<Hex> {
  const { contract, network } = context;
  const { epoch } = certificate;
  const [until, { timestamp }, committee] = await Promise.all([
    contract.epochValidUntil(epoch),
    contract.block("latest"),
    network.committees.get(epoch),
  ]);
  if (committee !== undefined && until >= timestamp + ENDING_MARGIN_S) {
    const args = [redemption, epoch, packRedemptionVotes(certificate, committee)] as const;
    return encodeFunctionData({ abi: FASTPAY_ABI, functionName: "redeem", args });
  }
  const voted = await currentVotes(context, certificate, redemption, report, signal);
  const args = [[redemption], voted.epoch, voted.votes] as const;
  return encodeFunctionData({ abi: FASTPAY_ABI, functionName: "redeemBatch", args });
}

/** Executes a due redemption from the contract's queue. */
export async function executeQueued(
  context: ContractContext,
  wallet: EthereumWallet,
  redemption: Redemption,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<PayoutReceipt> {
  const from = await chainAccount(context.contract, wallet, report, signal);
  return payOut(context, from, redemption, "queued", (status) => executeCall(context, redemption, status, report, signal));
}

/**
 * The call that executes a queued redemption. It has votes of the current committee if its epoch's keys were stolen.
 */
async function executeCall(
  context: ContractContext,
  redemption: Redemption,
  status: RedemptionStatus,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<Hex> {
  const needsVotes = status.state === "queued" && status.needsVotes;
  const votes = needsVotes ? (await certifiedVotes(context, redemption, report, signal)).votes : "0x";
  return encodeFunctionData({ abi: FASTPAY_ABI, functionName: "executeQueued", args: [redemption, votes] });
}

/** Votes of the current committee for a redemption that has a certificate. */
async function certifiedVotes(
  context: ContractContext,
  redemption: Redemption,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<BatchVotes> {
  const { network } = context;
  const certificate = await network.findCertificate(redemption.sender, redemption.sequence, { signal });
  const digest = transferDigest(network.domain, redemption);
  if (certificate?.digest !== digest) {
    const message = "the keys of its epoch were stolen, and no authority has this redemption's certificate";
    const action = "the committee votes only for what it has confirmed; ask its operators where you signed this one";
    throw new FastPayError("not-found", message, action, { details: { digest } });
  }
  return currentVotes(context, certificate, redemption, report, signal);
}

function currentVotes(
  { network, primary, timing }: Context,
  certificate: VerifiedCertificate,
  redemption: Redemption,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<BatchVotes> {
  const bringing = (step: TransferStep): void => {
    if (step.type === "vote" || step.type === "waiting" || step.type === "catching-up") report(step);
  };
  const operation = { network, primary, timing, report: bringing, signal, stored: async () => undefined };
  return voteAgain(operation, certificate, redemption);
}

/**
 * Sends a payout transaction and follows it. Follows a pending one instead, and sends nothing if the redemption's state
 * is not `from`.
 */
async function payOut(
  context: ContractContext,
  chain: ChainAccount,
  redemption: Redemption,
  from: "open" | "queued",
  call: (before: RedemptionStatus) => Promise<Hex>,
): Promise<PayoutReceipt> {
  const { contract, report, signal } = chain;
  const { sender: account, sequence } = redemption;
  const digest = transferDigest(contract.domain, redemption);
  const readStatus = (): Promise<RedemptionStatus> => contract.redemptionStatus(account, sequence, digest);
  const before = await readStatus();
  if (before.state !== from) return payable({ hash: undefined, status: before });
  const isSame = (sent: Submitted<"payout">): boolean =>
    sent.sequence === sequence && sent.from === from && (sent.digest ?? digest) === digest;
  const earlier = await sentBefore(context, account, "payout", isSame);
  if (earlier !== undefined) return followPayout(context, { ...earlier, digest }, report, signal);
  await contract.checkNotPaused();
  let hash: Hex;
  try {
    hash = await send(chain, { to: contract.domain.contract, data: await call(before) });
  } catch (error) {
    const now = isFastPayError(error, "reverted") ? await readStatus() : before;
    // A relayer may have paid it first.
    if (now.state === from) throw error;
    return payable({ hash: undefined, status: now });
  }
  const purpose = { type: "payout", sequence, from, digest } as const;
  await note(context, { account, hash }, purpose);
  return followPayout(context, { account, hash, ...purpose }, report, signal);
}

/** Follows a sent payout until its block is final. Throws if the redemption's state has not changed then. */
export async function followPayout(
  context: ContractContext,
  sent: Sent<"payout">,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<PayoutReceipt> {
  const { hash, from } = sent;
  const receipt = await toItsEnd(context, sent, report, signal, async (follower) => {
    try {
      const { transactionHash } = await follow(follower, hash);
      const status = await statusOf(follower, sent);
      if (status.state === from) throw undone(transactionHash);
      return { hash: transactionHash, status };
    } catch (error) {
      if (!isFastPayError(error, "reverted") && !isFastPayError(error, "not-found")) throw error;
      const status = await statusOf(follower, sent);
      // A relayer may have paid it first.
      if (status.state === from) throw error;
      return { hash: undefined, status };
    }
  });
  return payable(receipt);
}

/** Returns the receipt. Throws `never-paid` if the redemption has ended without a payout. */
function payable(receipt: PayoutReceipt): PayoutReceipt {
  const { status } = receipt;
  const why = status.state in NEVER_PAID ? NEVER_PAID[status.state as keyof typeof NEVER_PAID] : undefined;
  if (why === undefined) return receipt;
  throw new FastPayError("never-paid", `the redemption is never paid: ${why.message}`, why.action, { details: { status } });
}

const CREDITED_BACK = "the authorities credit the amount back to the account";
const NEVER_PAID = {
  displaced: {
    message: "its number was spent on another order, which its owner did not sign",
    action: `tell the operators: keys of the committee were stolen; ${CREDITED_BACK}`,
  },
  released: { message: "it was taken out of the contract's queue", action: CREDITED_BACK },
  voided: { message: "the contract voided its number", action: "its amount never left the account" },
};

/**
 * Like `followPayout`, for a stored transaction. If the redemption's state has changed meanwhile, forgets the
 * transaction, which may never be included.
 */
export async function resumePayout(
  context: ContractContext,
  sent: Sent<"payout">,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<PayoutReceipt> {
  report({ type: "submitted", hash: sent.hash });
  const follower = { contract: context.contract, report, signal };
  const status = await naming(sent.hash, () => statusOf(follower, sent));
  if (status.state === sent.from) return followPayout(context, sent, report, signal);
  await forgetTransaction(context, sent).catch(() => undefined);
  return payable({ hash: undefined, status });
}

function statusOf(follower: Follower, { account, sequence, digest }: Sent<"payout">): Promise<RedemptionStatus> {
  return answered(follower, () => follower.contract.redemptionStatus(account, sequence, digest));
}

/** Collects a claim or a part of it. Follows a pending transaction for it instead of sending another. */
export async function claim(
  context: ContractContext,
  wallet: EthereumWallet,
  intent: ClaimIntent,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<ClaimReceipt> {
  const { contract } = context;
  const from = await chainAccount(contract, wallet, report, signal);
  const { asset, owner = from.address, to = owner } = intent;
  const isOwn = owner.toLowerCase() === from.address.toLowerCase();
  if (!isOwn && to.toLowerCase() !== owner.toLowerCase()) {
    const message = `only ${owner} can collect this claim to another address`;
    throw new FastPayError("invalid-argument", message, "leave `to` out: the claim is paid to its owner");
  }
  if (intent.to !== undefined) await checkRecipient(contract, to);
  const account = accountFromEthereum(owner);
  const earlier = await sentBefore(context, account, "claim", (sent) => sent.asset === asset);
  if (earlier !== undefined) return followClaim(context, earlier, report, signal);
  await contract.checkNotPaused();
  const amount = intent.amount ?? (await contract.view("claimOf", [owner, asset]));
  const data = isOwn
    ? encodeFunctionData({ abi: FASTPAY_ABI, functionName: "claim", args: [asset, to, amount] })
    : encodeFunctionData({ abi: FASTPAY_ABI, functionName: "claimFor", args: [owner, asset, amount] });
  const hash = await send(from, { to: contract.domain.contract, data });
  const purpose = { type: "claim", asset, amount } as const;
  await note(context, { account, hash }, purpose);
  return followClaim(context, { account, hash, ...purpose }, report, signal);
}

/** Follows a sent claim until its block is final. */
export function followClaim(
  context: ContractContext,
  sent: Sent<"claim">,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<ClaimReceipt> {
  const { account, asset, hash } = sent;
  const contract = context.contract.domain.contract.toLowerCase();
  return toItsEnd(context, sent, report, signal, async (follower) => {
    const { logs, transactionHash } = await follow(follower, hash);
    const collected = parseEventLogs({ abi: FASTPAY_ABI, eventName: "Claimed", logs }).find(
      ({ address, args }) =>
        address.toLowerCase() === contract &&
        accountFromEthereum(args.owner) === account &&
        args.asset.toLowerCase() === asset.toLowerCase(),
    );
    if (collected === undefined) throw undone(transactionHash);
    return { hash: transactionHash, amount: collected.args.amount, to: lower(collected.args.to) };
  });
}

/** The error of a transaction that replaced the intended one. */
function undone(hash: Hex): FastPayError {
  const message = `the transaction ${hash} took its place and paid nothing out: it was cancelled in the wallet`;
  return new FastPayError("not-found", message, "try again if you did not mean to cancel it");
}

/** The current gas cost of one redemption. */
export async function redemptionCost({ contract }: ContractContext): Promise<RedemptionCost> {
  const gasPrice = await contract.ask(() => contract.client.getGasPrice());
  return { gas: REDEMPTION_GAS, gasPrice, wei: REDEMPTION_GAS * gasPrice };
}
