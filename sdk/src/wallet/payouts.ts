/** A redemption's way out of the contract without a relayer, through the contract's queue, and claims. */

import { encodeFunctionData, type WalletClient } from "viem";

import type { Address, Hex } from "../bytes.js";
import { packRedemptionVotes, type VerifiedCertificate } from "../certificate.js";
import { FASTPAY_ABI } from "../chain/abi.js";
import { chainAccount, follow, send, type ChainAccount } from "../chain/transactions.js";
import { voteAgain } from "../drive/vote-again.js";
import { FastPayError, isFastPayError } from "../errors.js";
import type { ChainStep, TransferStep } from "../progress.js";
import type { Redemption } from "../transfer.js";
import type { PayoutReceipt, RedemptionCost, RedemptionStatus } from "../views.js";
import type { Context } from "./context.js";

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
  return payOut(from, redemption, "open", () => redemptionCall(context, certificate, redemption, tell, signal));
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
  { contract }: Context,
  wallet: WalletClient,
  redemption: Redemption,
  tell: Tell,
  signal: AbortSignal | undefined,
): Promise<PayoutReceipt> {
  const data = encodeFunctionData({ abi: FASTPAY_ABI, functionName: "executeQueued", args: [redemption] });
  return payOut(await chainAccount(contract, wallet, tell, signal), redemption, "queued", async () => data);
}

/** Carries out what anyone can do, as long as the redemption stands where it did. */
async function payOut(
  from: ChainAccount,
  redemption: Redemption,
  state: RedemptionStatus["state"],
  call: () => Promise<Hex>,
): Promise<PayoutReceipt> {
  const { contract } = from;
  const standing = (): Promise<RedemptionStatus> => contract.redemptionStatus(redemption.sender, redemption.sequence);
  const before = await standing();
  if (before.state !== state) return { hash: undefined, redemption, status: before };
  await contract.checkNotPaused();
  try {
    const data = await call();
    const { transactionHash } = await follow(from, await send(from, { to: contract.domain.contract, data }));
    return { hash: transactionHash, redemption, status: await standing() };
  } catch (error) {
    const now = isFastPayError(error, "reverted") ? await standing() : before;
    // A relayer may have come first.
    if (now.state === state) throw error;
    return { hash: undefined, redemption, status: now };
  }
}

/** Collects what could not be paid out earlier. */
export async function claim(
  { contract }: Context,
  wallet: WalletClient,
  asset: Address,
  to: Address | undefined,
  tell: Tell,
  signal: AbortSignal | undefined,
): Promise<Hex> {
  const from = await chainAccount(contract, wallet, tell, signal);
  await contract.checkNotPaused();
  const data =
    to === undefined
      ? encodeFunctionData({ abi: FASTPAY_ABI, functionName: "claim", args: [asset] })
      : encodeFunctionData({ abi: FASTPAY_ABI, functionName: "claimTo", args: [asset, to] });
  return (await follow(from, await send(from, { to: contract.domain.contract, data }))).transactionHash;
}

/** What bringing one redemption to the contract costs now. */
export async function redemptionCost({ contract }: Context): Promise<RedemptionCost> {
  const gasPrice = await contract.ask(() => contract.client.getGasPrice());
  return { gas: REDEMPTION_GAS, gasPrice, wei: REDEMPTION_GAS * gasPrice };
}
