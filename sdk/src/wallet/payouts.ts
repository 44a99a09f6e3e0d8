/** A redemption's way out of the contract without a relayer, through the contract's queue, and claims. */

import { encodeFunctionData, parseEventLogs, type WalletClient } from "viem";

import { accountFromEthereum } from "../accounts.js";
import type { Address, Hex } from "../bytes.js";
import { packRedemptionVotes, type VerifiedCertificate } from "../certificate.js";
import { FASTPAY_ABI } from "../chain/abi.js";
import { answered, chainAccount, follow, naming, send, type ChainAccount, type Follower } from "../chain/transactions.js";
import { voteAgain } from "../drive/vote-again.js";
import { FastPayError, isFastPayError } from "../errors.js";
import type { ChainStep, TransferStep } from "../progress.js";
import type { Redemption } from "../transfer.js";
import type { ClaimReceipt, PayoutReceipt, RedemptionCost, RedemptionStatus } from "../views.js";
import type { Context } from "./context.js";
import { forgetTransaction, note, sentBefore, toItsEnd, type Sent, type Submitted } from "./transactions.js";

/** Votes of an epoch that ends within so many seconds are not relied on: a transaction may wait for its block. */
const ENDING_MARGIN_S = 120n;
/** A redemption of ETH with a committee of 4 takes 65,499 gas to an account seen before, and 83,471 to a new one; a
 * token's own work comes on top (docs/CONTRACT.md). */
const REDEMPTION_GAS = 100_000n;

type Tell = (step: ChainStep) => void;

/** Brings a redemption to the contract oneself. */
export async function redeemOnChain(
  context: Context,
  wallet: WalletClient,
  certificate: VerifiedCertificate,
  tell: Tell,
  signal: AbortSignal | undefined,
): Promise<PayoutReceipt> {
  const { contract } = context;
  const redemption = certificate.order.transfer;
  if (redemption.type !== "redemption") {
    throw new FastPayError("invalid-argument", "this is the certificate of a payment", "give that of a redemption");
  }
  const from = await chainAccount(contract, wallet, tell, signal);
  return payOut(context, from, redemption, "open", () => redemptionCall(context, certificate, redemption, tell, signal));
}

/**
 * The call that redeems: with the certificate's own votes where the contract still takes their epoch, else with votes of
 * the current committee for the same redemption.
 */
export async function redemptionCall(
  { contract, network, timing }: Context,
  certificate: VerifiedCertificate,
  redemption: Redemption,
  tell: Tell,
  signal: AbortSignal | undefined,
): Promise<Hex> {
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
  const report = (step: TransferStep): void => {
    if (step.type === "vote" || step.type === "waiting" || step.type === "catching-up") tell(step);
  };
  const drive = { network, timing, tell: report, signal, stored: async () => undefined };
  const voted = await voteAgain(drive, certificate, redemption);
  const args = [[redemption], voted.epoch, voted.votes] as const;
  return encodeFunctionData({ abi: FASTPAY_ABI, functionName: "redeemBatch", args });
}

/** Has a redemption paid that waited in the contract's queue and is due. */
export async function executeQueued(
  context: Context,
  wallet: WalletClient,
  redemption: Redemption,
  tell: Tell,
  signal: AbortSignal | undefined,
): Promise<PayoutReceipt> {
  const data = encodeFunctionData({ abi: FASTPAY_ABI, functionName: "executeQueued", args: [redemption] });
  const from = await chainAccount(context.contract, wallet, tell, signal);
  return payOut(context, from, redemption, "queued", async () => data);
}

/** Carries out what anyone can do, as long as the redemption stands where it did. What was sent for it is not sent again. */
async function payOut(
  context: Context,
  chain: ChainAccount,
  redemption: Redemption,
  from: "open" | "queued",
  call: () => Promise<Hex>,
): Promise<PayoutReceipt> {
  const { contract, tell, signal } = chain;
  const { sender: account, sequence } = redemption;
  const standing = (): Promise<RedemptionStatus> => contract.redemptionStatus(account, sequence);
  const before = await standing();
  if (before.state !== from) return { hash: undefined, status: before };
  const isSame = (sent: Submitted<"payout">): boolean => sent.sequence === sequence && sent.from === from;
  const earlier = await sentBefore(context, account, "payout", isSame);
  if (earlier !== undefined) return followPayout(context, earlier, tell, signal);
  await contract.checkNotPaused();
  let hash: Hex;
  try {
    hash = await send(chain, { to: contract.domain.contract, data: await call() });
  } catch (error) {
    const now = isFastPayError(error, "reverted") ? await standing() : before;
    // A relayer may have come first.
    if (now.state === from) throw error;
    return { hash: undefined, status: now };
  }
  const purpose = { type: "payout", sequence, from } as const;
  await note(context, { account, hash }, purpose);
  return followPayout(context, { account, hash, ...purpose }, tell, signal);
}

/** Follows a payout whose transaction was sent, until the redemption no longer stands where it did. */
export function followPayout(
  context: Context,
  sent: Sent<"payout">,
  tell: Tell,
  signal: AbortSignal | undefined,
): Promise<PayoutReceipt> {
  const { hash, from } = sent;
  return toItsEnd(context, sent, tell, signal, async (follower) => {
    try {
      const { transactionHash } = await follow(follower, hash);
      const status = await standingOf(follower, sent);
      if (status.state === from) throw undone(transactionHash);
      return { hash: transactionHash, status };
    } catch (error) {
      if (!isFastPayError(error, "reverted") && !isFastPayError(error, "not-found")) throw error;
      const status = await standingOf(follower, sent);
      // A relayer may have come first.
      if (status.state === from) throw error;
      return { hash: undefined, status };
    }
  });
}

/** The same for one of an earlier visit, unless the redemption was paid out meanwhile: then its transaction may never end. */
export async function resumePayout(
  context: Context,
  sent: Sent<"payout">,
  tell: Tell,
  signal: AbortSignal | undefined,
): Promise<PayoutReceipt> {
  tell({ type: "submitted", hash: sent.hash });
  const follower = { contract: context.contract, tell, signal };
  const status = await naming(sent.hash, () => standingOf(follower, sent));
  if (status.state === sent.from) return followPayout(context, sent, tell, signal);
  await forgetTransaction(context, sent).catch(() => undefined);
  return { hash: undefined, status };
}

function standingOf(follower: Follower, { account, sequence }: Sent<"payout">): Promise<RedemptionStatus> {
  return answered(follower, () => follower.contract.redemptionStatus(account, sequence));
}

/** Collects what could not be paid out earlier. What was sent for it is not sent again. */
export async function claim(
  context: Context,
  wallet: WalletClient,
  asset: Address,
  to: Address | undefined,
  tell: Tell,
  signal: AbortSignal | undefined,
): Promise<ClaimReceipt> {
  const { contract } = context;
  const from = await chainAccount(contract, wallet, tell, signal);
  const account = accountFromEthereum(from.address);
  const earlier = await sentBefore(context, account, "claim", (sent) => sent.asset === asset);
  if (earlier !== undefined) return followClaim(context, earlier, tell, signal);
  await contract.checkNotPaused();
  const data =
    to === undefined
      ? encodeFunctionData({ abi: FASTPAY_ABI, functionName: "claim", args: [asset] })
      : encodeFunctionData({ abi: FASTPAY_ABI, functionName: "claimTo", args: [asset, to] });
  const hash = await send(from, { to: contract.domain.contract, data });
  const purpose = { type: "claim", asset } as const;
  await note(context, { account, hash }, purpose);
  return followClaim(context, { account, hash, ...purpose }, tell, signal);
}

/** Follows a claim whose transaction was sent, until its block stays. */
export function followClaim(
  context: Context,
  sent: Sent<"claim">,
  tell: Tell,
  signal: AbortSignal | undefined,
): Promise<ClaimReceipt> {
  const { account, asset, hash } = sent;
  const contract = context.contract.domain.contract.toLowerCase();
  return toItsEnd(context, sent, tell, signal, async (follower) => {
    const { logs, transactionHash } = await follow(follower, hash);
    const collected = parseEventLogs({ abi: FASTPAY_ABI, eventName: "Claimed", logs }).find(
      ({ address, args }) =>
        address.toLowerCase() === contract &&
        accountFromEthereum(args.owner) === account &&
        args.asset.toLowerCase() === asset.toLowerCase(),
    );
    if (collected === undefined) throw undone(transactionHash);
    return { hash: transactionHash, amount: collected.args.amount };
  });
}

/** The error of a transaction that stands in the place of the one that was meant. */
function undone(hash: Hex): FastPayError {
  const message = `the transaction ${hash} stands in its place and paid nothing out: it was cancelled in the wallet`;
  return new FastPayError("not-found", message, "try again where it was not meant to be cancelled");
}

/** What bringing one redemption to the contract costs now. */
export async function redemptionCost({ contract }: Context): Promise<RedemptionCost> {
  const gasPrice = await contract.ask(() => contract.client.getGasPrice());
  return { gas: REDEMPTION_GAS, gasPrice, wei: REDEMPTION_GAS * gasPrice };
}
