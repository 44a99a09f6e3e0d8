/**
 * Unlocks a number whose owner signed two orders, if neither can get a quorum: the contract decides for one order, or
 * voids the number (docs/PROTOCOL.md, unlocking).
 *
 * ```text
 *  can an order still be finished? ─► resume: nothing to unlock
 *   no ─► request (bond) ─► final ─► ask all authorities ─┬─ a certificate exists ─► uphold ─► settle it
 *                                                         └─ none: all vote, or a quorum after the window ─► void
 * ```
 * Each round first follows pending transactions of this storage and reads the contract's state, so a repetition sends
 * nothing twice. No order for the next number is signed before the contract has decided.
 */

import { encodeFunctionData } from "viem";

import type { EthereumWallet } from "../client.js";
import { accountFromEthereum, ethereumAddressOf } from "../accounts.js";
import type { Hex } from "../bytes.js";
import { COUNCIL_ABI } from "../chain/abi.js";
import { answered, chainAccount, follow, send, type Call, type ChainAccount, type Follower } from "../chain/transactions.js";
import { FastPayError, isFastPayError } from "../errors.js";
import type { ChainStep, TransferStep } from "../progress.js";
import type { Operation } from "../quorum/certify.js";
import { voteUnlock, type UnlockBallot, type UnlockDecision } from "../quorum/unlock.js";
import { signUnlock, type Signer } from "../signers.js";
import type { OrderJournal } from "../storage/journal.js";
import type { Resumed, UnlockCost, UnlockReceipt, UnlockStatus, UnlockTransaction } from "../views.js";
import { Backoff } from "../waiting.js";
import type { OrderName } from "../wire.js";
import { journalOf, operationOf, type ContractContext } from "./context.js";
import { catchUp, leftOut, noteVoid } from "./finish.js";
import { haveRequested } from "./relayers.js";
import { LOCK_PATIENCE_MS, resume } from "./send.js";
import { note, sentBefore, toItsEnd, type Sent } from "./transactions.js";

/**
 * With a committee of 4, a request takes 67,200 gas with the owner's signature, and voiding 74,800 (docs/CONTRACT.md).
 */
const UNLOCK_GAS = 160_000n;
/** The longest wait between two rounds, as a multiple of `backoffMaxMs`. */
const POLL_BACKOFFS = 15;
/**
 * If f + 1 authorities ignore a final request for this many rounds in a row, a stranger made it: authorities read final
 * blocks within seconds. Repeating one's own request by mistake costs gas and changes nothing.
 */
const IGNORED_ROUNDS = 8;

/**
 * The number of rounds, some minutes, for which our Ethereum node may lag behind the authorities' nodes, or the
 * authorities behind it.
 */
const WAIT_ROUNDS = 20;

type Report = (step: ChainStep) => void;
type Step = Sent<"unlock">["step"];

/** The parameters of the work on one number. */
interface Job {
  readonly context: ContractContext;
  readonly from: Follower;
  /** Undefined if a relayer pays. It also submits the decision. */
  readonly payer: ChainAccount | undefined;
  readonly signer: Signer;
  readonly journal: OrderJournal;
  readonly operation: Operation;
  readonly number: OrderName;
  /** The number of rounds in a row in which f + 1 authorities ignored the request. */
  ignored: number;
  /**
   * The number of rounds in which authorities had read a request or a decision that our Ethereum node does not show.
   */
  ahead: number;
  /** The number of rounds in which our Ethereum node showed a decision that could not be finished. */
  behind: number;
  /** The owner's signature for a relayer. */
  authorization?: Hex;
}

/** Unlocks the first number of the signer's account of which no order can be finished. A wallet or a relayer pays. */
export async function unlock(
  context: ContractContext,
  wallet: EthereumWallet | "relayer",
  signer: Signer,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<UnlockReceipt> {
  const { account } = signer;
  const { contract } = context;
  const payer = wallet === "relayer" ? undefined : await chainAccount(contract, wallet, report, signal);
  const from = payer ?? { contract, report, signal };
  const journal = journalOf(context, account);
  const operation = operationOf(context, journal, (step) => delays(step, report), signal);
  const sequence = await firstOpenNumber(operation, journal);
  const number = { sender: account, sequence };
  const job: Job = { context, from, payer, signer, journal, operation, number, ignored: 0, ahead: 0, behind: 0 };
  const { backoffMaxMs } = context.timing;
  const backoff = new Backoff(backoffMaxMs / 2, backoffMaxMs * POLL_BACKOFFS);
  for (;;) {
    const done = await next(job);
    if (done !== undefined) {
      report({ type: "unlocked", outcome: done.outcome });
      return { sequence, ...done };
    }
    await backoff.wait(signal);
  }
}

/** Follows a transaction of an unlock until its block is final. */
export function followUnlock(
  context: ContractContext,
  sent: Sent<"unlock">,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<UnlockTransaction> {
  return toItsEnd(context, sent, report, signal, async (follower) => {
    return { hash: (await follow(follower, sent.hash)).transactionHash };
  });
}

/** The current cost to unlock a number. */
export async function unlockCost({ contract }: ContractContext): Promise<UnlockCost> {
  const [bond, gasPrice] = await Promise.all([
    contract.council("unlockBond", []),
    contract.ask(() => contract.client.getGasPrice()),
  ]);
  return { bond, gas: UNLOCK_GAS, gasPrice, wei: UNLOCK_GAS * gasPrice };
}

/** The number of the first order that is unfinished in this storage or left out by a recovery, or else the next one. */
export async function firstOpenNumber(operation: Operation, journal: OrderJournal): Promise<bigint> {
  const answers = await operation.network.accountStates(journal.account, undefined, operation.signal);
  const [left] = await leftOut(operation, journal, await journal.nextSequence(), answers);
  const [unfinished] = await journal.unfinished();
  if (left !== undefined && (unfinished === undefined || left.sequence < unfinished.sequence)) return left.sequence;
  return unfinished?.sequence ?? catchUp(operation, journal, answers);
}

/** Takes the next step. Undefined if more steps follow. */
async function next(job: Job): Promise<Omit<UnlockReceipt, "sequence"> | undefined> {
  const { context, from, operation, journal, number } = job;
  const { sender, sequence } = number;
  const earlier = await sentBefore(context, sender, "unlock", (sent) => sent.sequence === sequence);
  if (earlier !== undefined) {
    await followUnlock(context, earlier, from.report, from.signal).catch(ofNoMoment);
    return undefined;
  }
  const status = await statusOf(job);
  switch (status.state) {
    case "none": {
      const finished = await finishInstead(job);
      if (finished === "asked") return undefined;
      if (finished !== undefined) return { outcome: "finished", resumed: finished };
      await request(job, await context.contract.council("unlockBond", []));
      return undefined;
    }
    case "requested":
      if (status.isFinal && !status.isDecided) await decide(job, status.voidableFrom);
      return undefined;
    case "voided":
    case "upheld": {
      if (status.state === "voided" && (await journal.exclusively(LOCK_PATIENCE_MS, () => noteVoid(operation, journal, sequence)))) {
        return { outcome: "voided", resumed: [] };
      }
      // Authorities have not read the event yet, or one of them has a certificate.
      const done = (await adoptCertificate(job)) ? await finishNow(job) : undefined;
      job.behind += 1;
      if (done !== undefined || job.behind <= WAIT_ROUNDS) return done;
      const message = `the Ethereum node says that number ${sequence} is ${status.state}, and too few authorities do`;
      throw new FastPayError("too-few-answers", message, "try again later, or with another Ethereum node");
    }
  }
}

function statusOf({ context, from, number }: Job): Promise<UnlockStatus> {
  return answered(from, () => context.contract.unlockStatus(number.sender, number.sequence));
}

/**
 * Finishes an order of the number, if one can still be finished. Undefined if no order gets the votes of a quorum;
 * `asked` if authorities have read a request that our Ethereum node does not show. Throws on other failures, such as an
 * unsettled certificate or a new epoch: they are no reason to ask the contract.
 */
async function finishInstead(job: Job): Promise<readonly Resumed[] | "asked" | undefined> {
  const { operation, journal, number } = job;
  let resumed: readonly Resumed[];
  try {
    resumed = await resumeAll(job);
  } catch (error) {
    const isVotes = isFastPayError(error, "no-quorum") && error.details["what"] === "votes";
    if (isVotes || isFastPayError(error, "conflict") || isFastPayError(error, "insufficient-funds")) return undefined;
    const isDecided = isFastPayError(error, "frozen") || isFastPayError(error, "voided");
    // The error may be about a later number; then this one is finished. The wait for a lagging Ethereum node is
    // bounded.
    if (!isDecided || (await firstOpenNumber(operation, journal)) > number.sequence) throw error;
    job.ahead += 1;
    if (job.ahead > WAIT_ROUNDS) throw error;
    return "asked";
  }
  if ((await firstOpenNumber(operation, journal)) > number.sequence) return resumed;
  const message = `no order with number ${number.sequence} is pending: there is nothing to unlock`;
  throw new FastPayError("invalid-argument", message, "go on with the account as it is");
}

function resumeAll({ context, operation, journal }: Job): Promise<Resumed[]> {
  return resume(context, journal.account, operation.report, operation.signal);
}

/** Submits the request to the contract, or has a relayer submit it. `bond` is 0 after a stranger's request. */
async function request(job: Job, bond: bigint): Promise<void> {
  const { context, from, payer, number } = job;
  const { sender, sequence } = number;
  if (payer === undefined) {
    const relayer = await haveRequested(context, number, await authorize(job), from.signal);
    return from.report({ type: "relayed", relayer });
  }
  const isOwner = accountFromEthereum(payer.address) === sender;
  const authorization = isOwner ? "0x" : await authorize(job);
  const data = encodeFunctionData({ abi: COUNCIL_ABI, functionName: "requestUnlock", args: [sender, sequence, authorization] });
  await submit(job, payer, "request", { data, value: bond }, ({ state }) => state !== "none");
}

/** The owner's signature of the request. The owner signs once. */
async function authorize(job: Job): Promise<Hex> {
  if (job.authorization === undefined) {
    const { sender: account, sequence } = job.number;
    job.from.report({ type: "signing", what: "unlock-request", account, sequence });
    job.authorization = await signUnlock(job.signer, job.from.contract.domain, job.number.sequence);
  }
  return job.authorization;
}

/**
 * Collects the authorities' votes, and submits a decision to the contract. If there is no payer, a relayer submits it.
 */
async function decide(job: Job, voidableFrom: bigint): Promise<void> {
  const { context, from, payer, operation, number } = job;
  const { contract, network } = context;
  const [unanimousFrom, { timestamp }] = await answered(from, () =>
    Promise.all([contract.council("unanimousFrom", []), contract.block("latest"), network.committees.refresh()]),
  );
  const isEnough = (decision: UnlockDecision | undefined): decision is UnlockDecision =>
    decision?.type === "uphold" || (decision?.type === "void" && (!decision.unanimous || timestamp >= unanimousFrom));
  const ask = async (unanimous: boolean): Promise<UnlockBallot> => {
    const ballot = await voteUnlock(operation, number, unanimous);
    const { members, quorum } = ballot.committee;
    from.report({ type: "unlock-votes", ...ballot.counts, members: members.length, quorum, voidableFrom, unanimousFrom });
    return ballot;
  };
  const ballot = await ask(true);
  job.ignored = isIgnored(ballot, network.trusted) ? job.ignored + 1 : 0;
  // For Ethereum accounts, the contract itself verifies who requests.
  if (job.ignored === IGNORED_ROUNDS && ethereumAddressOf(number.sender) === undefined) return request(job, 0n);
  if (payer === undefined) return;
  let decision = ballot.decision();
  if (!isEnough(decision) && timestamp >= voidableFrom) decision = (await ask(false)).decision();
  if (!isEnough(decision)) return;
  // A pause stops voiding, but never upholding.
  if (decision.type === "void") await contract.checkNotPaused();
  const isDecided = (status: UnlockStatus): boolean => status.state !== "requested" || status.isDecided;
  await submit(job, payer, "decision", { data: decisionCall(number, decision) }, isDecided);
}

/** True if f + 1 authorities have read no request that the owner signed. */
function isIgnored(ballot: UnlockBallot, trusted: number): boolean {
  return ballot.refusals("not-requested") >= trusted;
}

function decisionCall({ sender, sequence }: OrderName, decision: UnlockDecision): Hex {
  if (decision.type === "uphold") {
    const args = [sender, sequence, decision.digest, decision.votes] as const;
    return encodeFunctionData({ abi: COUNCIL_ABI, functionName: "upholdSequence", args });
  }
  const args = [sender, sequence, decision.unanimous, decision.votes] as const;
  return encodeFunctionData({ abi: COUNCIL_ABI, functionName: "voidSequence", args });
}

/** Sends a call to the Council and follows it. Ignores a revert if `isDone`: then somebody else was first. */
async function submit(
  job: Job,
  payer: ChainAccount,
  step: Step,
  call: Omit<Call, "to">,
  isDone: (status: UnlockStatus) => boolean,
): Promise<void> {
  const { context, number } = job;
  const { sender: account, sequence } = number;
  try {
    const hash = await send(payer, { to: await context.contract.councilAddress(), ...call });
    const purpose = { type: "unlock", sequence, step } as const;
    await note(context, { account, hash }, purpose);
    await followUnlock(context, { account, hash, ...purpose }, payer.report, payer.signal);
  } catch (error) {
    if (!isFastPayError(error, "reverted") || !isDone(await statusOf(job))) throw error;
  }
}

/** Stores the certificate of the number, if an authority returns it. False if none does yet. */
async function adoptCertificate({ operation, journal, number }: Job): Promise<boolean> {
  const { certificate } = await voteUnlock(operation, number, true);
  if (certificate !== undefined) await journal.certify(certificate);
  return certificate !== undefined;
}

/** Settles the number's certificate. Undefined while too few authorities have read the contract's decision. */
async function finishNow(job: Job): Promise<Omit<UnlockReceipt, "sequence"> | undefined> {
  try {
    return { outcome: "finished", resumed: await resumeAll(job) };
  } catch (error) {
    if ((["frozen", "voided", "no-quorum"] as const).some((code) => isFastPayError(error, code))) return undefined;
    throw error;
  }
}

/** Ignores that an earlier transaction reverted or was replaced: the contract's state determines the next step. */
function ofNoMoment(error: unknown): void {
  if (!isFastPayError(error, "reverted") && !isFastPayError(error, "not-found")) throw error;
}

/** Reports only the delays of orders that are finished meanwhile. */
function delays(step: TransferStep, report: Report): void {
  if (step.type === "waiting" || step.type === "catching-up") report(step);
}
