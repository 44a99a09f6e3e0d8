/** Creates clients. */

import { AuthorityClient } from "./authority.js";
import { isHex, lower, type Address, type Hex } from "./bytes.js";
import { Committees } from "./chain/committees.js";
import { Contract } from "./chain/contract.js";
import { balanceOnChain } from "./chain/tokens.js";
import type { AuthorityEndpoint, ContractOptions, FastPayClient, FastPayOptions, ManyOptions } from "./client.js";
import { memberOf, type Committee } from "./committee.js";
import { DEFAULT_TIMING } from "./quorum/certify.js";
import { transferDigest } from "./eip712.js";
import { FastPayError, isFastPayError } from "./errors.js";
import { HTTP_BASE } from "./http.js";
import { Network } from "./network.js";
import { readPayList } from "./pay-list-csv.js";
import type { ContractOperation, Primary } from "./primary.js";
import type { ChainStep, ManyStep, TransferStep } from "./progress.js";
import { browserStore } from "./storage/browser.js";
import { rememberCommittee, storedCommittees, type StoredCommittees } from "./storage/committees.js";
import { deploymentDigest, deploymentStore } from "./storage/deployments.js";
import { rememberEndpoint, storedEndpoints } from "./storage/endpoints.js";
import type { OrderStore } from "./storage/store.js";
import { ETHER } from "./transfer.js";
import { sleep } from "./waiting.js";
import { listOrders, listUnfinished, viewAccount } from "./wallet/account.js";
import type { Context, ContractContext } from "./wallet/context.js";
import { deposit, depositStatus, followDeposit } from "./wallet/deposits.js";
import { findDeposit, gatherEvidence } from "./wallet/evidence.js";
import { readHistory } from "./wallet/history.js";
import { paymentIntent, redemptionIntent } from "./wallet/intents.js";
import { LatestTransfers } from "./wallet/latest.js";
import { closeList, linesOf, openLists, payMany, viewList } from "./wallet/many.js";
import { checkRecipient, claim, executeQueued, followClaim, redeemOnChain, redemptionCost, resumePayout } from "./wallet/payouts.js";
import { RELAYERS_MAX, relayerFees } from "./wallet/relayers.js";
import { resume, send, signerUntil } from "./wallet/send.js";
import { forgetTransaction, unfinishedTransactions } from "./wallet/transactions.js";
import { followUnlock, unlock, unlockCost } from "./wallet/unlock.js";
import { watchAccount } from "./wallet/watch.js";
import { worded } from "./wallet/wording.js";
import type { Signer } from "./signers.js";
import type { ListStatus, PayListLine, SubmittedTransaction, TransactionReceipt } from "./views.js";

/** The default number of entries of each list in a history. */
const HISTORY_LIMIT = 25;
const HISTORY_LIMIT_MAX = 500;
/** The time for which `create` waits for the Primary if the storage has the committees. */
const PRIMARY_PATIENCE_MS = 3_000;

/** Creates clients. */
export const FastPay = {
  /**
   * Creates a client of one deployment. Reads the committee from the contract or the ledger, and asks authorities only
   * if fewer than a quorum are listed, or one under a name that is no member's: they may know where the others are.
   * Throws `invalid-argument`, `wrong-chain`, `wrong-contract`, `other-deployment`, `chain-unreachable` or `storage`.
   */
  async create(options: FastPayOptions): Promise<FastPayClient> {
    // Only `openLedger` makes ledgers.
    const primary = options.ledger === undefined ? contractOf(options) : (options.ledger as unknown as Primary);
    const { domain } = primary;
    const reading = readCommittees(primary);
    reading.catch(() => undefined);
    const storage = options.storage ?? (await defaultStore());
    // `setAside` is for a new deployment, so the stored committees are not used.
    const known = storage && options.setAside !== true ? await storedCommittees(storage, domain).catch(() => undefined) : undefined;
    const { first, newest, committeesFrom } = await startingCommittees(primary, reading, known, options.authorities);
    const timing = { ...DEFAULT_TIMING, ...options.timing };
    const authorities = readEndpoints(options.authorities, newest, timing.requestMs);
    const relayers = readRelayers(options.relayers ?? []);
    const store = storage && (await deploymentStore(storage, domain, first, options.setAside ?? false));
    const remember = (committee: Committee): void => void (store && rememberCommittee(store, domain, committee));
    [first, newest].forEach(remember);
    const committees = new Committees(primary, newest, Promise.resolve(first), remember);
    const closing = new AbortController();
    const network = new Network(domain, committees, authorities, timing, closing.signal);
    const told = store && (await storedEndpoints(store, domain).catch(() => []));
    network.learn(told ?? [], (endpoint) => void (store && rememberEndpoint(store, domain, endpoint)));
    // A listed name that is no member's may be that of an authority that has left.
    const isMember = ({ name }: AuthorityClient): boolean => name === undefined || memberOf(newest, name) !== undefined;
    if (network.authorities.length < newest.quorum || !authorities.every(isMember)) await network.findMembers();
    if (network.authorities.length < newest.quorum) throw misfit(network.authorities.length, newest);
    return clientOf({ network, primary, timing, relayers, store }, deploymentDigest(first), committeesFrom, closing);
  },
};

function contractOf({ contract, chainId, publicClient, finality = "finalized" }: ContractOptions): Primary {
  if (!isHex(contract, 20)) throw unusable("the contract is not an address");
  return new Contract(publicClient, { chainId: BigInt(chainId), contract: lower(contract) }, finality);
}

/** Reads chain, first and current committee at the same time. Reports an error of the chain check before the others. */
async function readCommittees(primary: Primary): Promise<StoredCommittees> {
  const [checking, first] = [primary.check(), primary.committee(0n)];
  const reading = Committees.readCurrent(primary, first);
  for (const asked of [reading, first]) asked.catch(() => undefined);
  await checking;
  return { newest: await reading, first: await first };
}

/**
 * The committees to start with: from the Primary, or from the storage if it has them and the Primary fails or does not
 * answer within `PRIMARY_PATIENCE_MS`. Stored committees are used only if every listed name is a member of
 * the newest one: another name means another deployment, or keys that have changed since.
 *
 * A ledger's domain identifies the deployment, and its members may answer with a state of before a rotation. So the
 * stored committees are used there if they are newer.
 */
async function startingCommittees(
  { kind }: Primary,
  reading: Promise<StoredCommittees>,
  stored: StoredCommittees | undefined,
  endpoints: readonly AuthorityEndpoint[],
): Promise<StoredCommittees & Pick<FastPayClient, "committeesFrom">> {
  const isUsable = stored !== undefined && endpoints.every(({ name }) => name === undefined || memberOf(stored.newest, lower(name)) !== undefined);
  const newer = (read: StoredCommittees): StoredCommittees & Pick<FastPayClient, "committeesFrom"> => {
    const isBehind = kind === "ledger" && stored !== undefined && stored.newest.epoch > read.newest.epoch;
    return isBehind ? { ...stored, committeesFrom: "storage" } : { ...read, committeesFrom: kind };
  };
  if (!isUsable) return newer(await reading);
  const ended = new AbortController();
  const patience = sleep(PRIMARY_PATIENCE_MS, ended.signal).then(() => undefined);
  const read = await Promise.race([reading, patience])
    .catch((error: unknown) => {
      if (!isFastPayError(error, "chain-unreachable")) throw error;
      return undefined;
    })
    .finally(() => ended.abort());
  return read === undefined ? { ...stored, committeesFrom: "storage" } : newer(read);
}

async function defaultStore(): Promise<OrderStore | undefined> {
  return typeof indexedDB === "undefined" ? undefined : browserStore();
}

function readEndpoints(
  endpoints: readonly AuthorityEndpoint[],
  committee: Committee,
  timeoutMs: number,
): AuthorityClient[] {
  if (endpoints.length === 0 || endpoints.length > committee.members.length) throw misfit(endpoints.length, committee);
  const clients = endpoints.map(({ http, name }) => {
    if (!HTTP_BASE.test(http)) throw unusable(`${http} is not the base of an HTTP API`);
    if (name !== undefined && !isHex(name, 32)) throw unusable(`${String(name)} is not an authority's name`);
    return new AuthorityClient(http, name && lower(name), timeoutMs);
  });
  // Each address counts once, so a repeated one would count twice.
  if (new Set(clients.map(({ url }) => url)).size < clients.length) throw unusable("an address is listed twice");
  const names = clients.flatMap(({ name }) => name ?? []);
  if (new Set(names).size < names.length) throw unusable("an authority is listed twice");
  return clients;
}

function misfit(addresses: number, { members, quorum }: Committee): FastPayError {
  return unusable(`there are ${members.length} authorities and ${addresses} addresses; ${quorum} are needed`);
}

function readRelayers(urls: readonly string[]): string[] {
  if (urls.length > RELAYERS_MAX) throw unusable(`there are ${urls.length} relayers; ${RELAYERS_MAX} are asked at most`);
  const bad = urls.find((url) => !HTTP_BASE.test(url));
  if (bad !== undefined) throw unusable(`${bad} is not the base of a relayer's address`);
  return [...new Set(urls.map((url) => url.replace(/\/+$/, "")))];
}

function unusable(message: string): FastPayError {
  return new FastPayError("invalid-argument", message, "correct the client's options");
}

/** Reports steps with the time since this call. An error that the listener throws does not stop the caller. */
function timed<T extends object>(
  listener: ((progress: T & { readonly afterMs: number }) => void) | undefined,
): (step: T) => void {
  const start = performance.now();
  return (step) => {
    const progress = { ...step, afterMs: performance.now() - start };
    queueMicrotask(() => listener?.(progress));
  };
}

/** The number of decimals of an asset. Reads each asset's once. */
function decimalsOf(primary: Primary): (asset: Address) => Promise<number> {
  const known = new Map<Address, Promise<number>>();
  return (asset) => {
    const asked = known.get(asset) ?? primary.assetInfo(asset).then(({ decimals }) => decimals);
    known.set(asset, asked);
    return asked;
  };
}

/** Progress and cancellation of what takes a while. */
interface Following<T extends object> {
  readonly onProgress?: (progress: T & { readonly afterMs: number }) => void;
  readonly signal?: AbortSignal;
}

function resumeTransaction(
  context: ContractContext,
  sent: SubmittedTransaction,
  report: (step: ChainStep) => void,
  signal: AbortSignal | undefined,
): Promise<TransactionReceipt> {
  switch (sent.type) {
    case "deposit":
      return followDeposit(context, sent, report, signal);
    case "payout":
      return resumePayout(context, sent, report, signal);
    case "claim":
      return followClaim(context, sent, report, signal);
    case "unlock":
      return followUnlock(context, sent, report, signal);
  }
}

function clientOf(context: Context, deployment: Hex, committeesFrom: FastPayClient["committeesFrom"], closing: AbortController): FastPayClient {
  const { network, primary } = context;
  const onContract = async <T>(operation: ContractOperation, act: (context: ContractContext) => T): Promise<Awaited<T>> =>
    await act({ ...context, contract: primary.contractFor(operation) });
  const until = (signal?: AbortSignal): AbortSignal =>
    signal === undefined ? closing.signal : AbortSignal.any([closing.signal, signal]);
  /** The last two arguments of everything that takes a while. */
  const following = <T extends object>(options: Following<T> = {}) => [timed<T>(options.onProgress), until(options.signal)] as const;
  const latest = new LatestTransfers(network);
  const payList = (signer: Signer, list: readonly PayListLine[], options: ManyOptions = {}): Promise<ListStatus> => {
    const [report, signal] = following<ManyStep>(options);
    return worded(primary, payMany(context, signer, list, { ...options, signal }, report));
  };
  return {
    domain: network.domain,
    primary: primary.kind,
    committeesFrom,
    close: () => closing.abort(),
    isCurrent: async () => deploymentDigest(await primary.committee(0n)) === deployment,
    get authorities() {
      return network.authorities;
    },
    async committee(epoch) {
      if (epoch === undefined) return network.committee;
      const committee = await network.committees.get(epoch);
      if (committee !== undefined) return committee;
      throw new FastPayError("not-found", `the Primary knows of no epoch ${epoch}`, "ask for an earlier one");
    },

    pay: async (signer, intent, options) => {
      const payment = paymentIntent(signer, intent);
      const within = signerUntil(signer, intent.expires);
      return worded(primary, send(context, within, payment, ...following<TransferStep>(options)));
    },
    redeem: async (signer, intent, options) => {
      const redemption = redemptionIntent(signer, intent);
      await checkRecipient(primary, intent.recipient);
      return worded(primary, send(context, signer, redemption, ...following<TransferStep>(options)));
    },
    payMany: payList,
    listStatus: (account, list, options = {}) => viewList(context, account, list, options),
    readList: (content, { asset = ETHER } = {}) =>
      readPayList(content, { domain: network.domain, asset, decimals: decimalsOf(primary) }),
    unfinishedLists: (account) => openLists(context, account),
    async resumeList(signer, name, options = {}) {
      const { lines, maxOutputs } = await linesOf(context, name);
      return payList(signer, lines, { ...options, name, maxOutputs });
    },
    closeList: (name) => closeList(context, name),
    resume: (account, options) =>
      worded(primary, resume(context, account, ...following<TransferStep>(options))),
    orders: (account) => listOrders(context, account),
    unfinished: (account) => listUnfinished(context, account),

    account: (account, assets = [], { graceMs } = {}) => viewAccount(context, account, assets, graceMs),
    history: (account, { limit = HISTORY_LIMIT, cursor, view } = {}) =>
      readHistory(context, account, Math.min(Math.max(limit, 1), HISTORY_LIMIT_MAX), cursor, view),
    watch: (account, { from, signal } = {}) => watchAccount(context, account, from, until(signal)),
    evidence: (of) => gatherEvidence(context, of),
    latestTransfers: () => latest.read(),
    certificate: (account, sequence) => network.findCertificate(account, sequence),

    deposit: (wallet, intent, options) => onContract("deposit", (on) => deposit(on, wallet, intent, ...following<ChainStep>(options))),
    unfinishedTransactions: (account) => unfinishedTransactions(context, account),
    resumeTransaction: (sent, options) =>
      onContract("transaction", (on) => resumeTransaction(on, sent, ...following<ChainStep>(options))),
    forgetTransaction: (sent) => forgetTransaction(context, sent),
    depositStatus: (hash) => onContract("transaction", (on) => depositStatus(on, hash)),
    contractTransaction: (hash) => onContract("transaction", ({ contract }) => contract.transaction(hash)),
    depositTransaction: (index) => onContract("transaction", ({ contract }) => contract.depositTransaction(index)),
    depositByIndex: (index) => findDeposit(context, index),
    redeemOnChain: (wallet, certificate, options) =>
      onContract("payout", (on) => redeemOnChain(on, wallet, certificate, ...following<ChainStep>(options))),
    executeQueued: (wallet, of, options) =>
      onContract("queue", (on) => executeQueued(on, wallet, of, ...following<ChainStep>(options))),
    redemptionStatus: async (redemption) =>
      primary.redemptionStatus(redemption.sender, redemption.sequence, transferDigest(network.domain, redemption)),
    claimable: (owner, asset) => onContract("claim", ({ contract }) => contract.view("claimOf", [owner, asset])),
    claim: (wallet, intent, options) =>
      onContract("claim", (on) => claim(on, wallet, { ...intent, asset: lower(intent.asset) }, ...following<ChainStep>(options))),
    unlock: (payer, signer, options) =>
      onContract("unlock", (on) => unlock(on, payer, signer, ...following<ChainStep>(options))),
    unlockStatus: (account, sequence) => primary.unlockStatus(account, sequence),
    unlockCost: () => onContract("unlock", unlockCost),
    isFastPay: (address) => primary.isFastPay(address),
    contractStatus: () => primary.status(),
    assetStatus: (asset: Address) => primary.assetStatus(asset),
    assetInfo: (asset: Address) => primary.assetInfo(lower(asset)),
    balanceOnChain: (owner, asset) => onContract("balance", ({ contract }) => balanceOnChain(contract, owner, lower(asset))),
    redemptionCost: () => onContract("gas", redemptionCost),
    relayerFees: (asset) => relayerFees(context, lower(asset)),
  };
}
