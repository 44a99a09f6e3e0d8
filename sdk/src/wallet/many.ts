/**
 * Pays many people: splits a list into payouts of up to 256 outputs, and sends them one after another.
 *
 * ```text
 *  check all ─► lock ─► finish unfinished orders ─► which pages have an order? ─► is there money for the others?
 *    ─► store the list ─► page by page: sign ─► store the order ─► certify ─┬─► settle, while the next page is certified
 * ```
 * Invariants: the memo of a page's order is the page's name, so an order in the storage, or its certificate, shows that
 * the page is paid, whatever else is lost. No page is signed again while an order with its name may still be executed,
 * nor while it is unknown what became of one of the account's numbers.
 * So paying a list again, after a crash or by mistake, pays nobody twice.
 */

import type { AccountId } from "../accounts.js";
import { lower, type Address, type Hex } from "../bytes.js";
import type { ManyOptions } from "../client.js";
import type { Operation } from "../quorum/certify.js";
import { transferDigest } from "../eip712.js";
import { FastPayError } from "../errors.js";
import { invalidList, pageName, planList, wholeList, type PayListPage, type PayListPlan } from "../pay-list.js";
import type { ManyStep, TransferStep } from "../progress.js";
import { signOrder, type Signer } from "../signers.js";
import { transferOf, type OrderJournal, type Stored } from "../storage/journal.js";
import { ListJournal, type BegunList } from "../storage/lists.js";
import { PAYOUT_OUTPUTS_MAX, type Payout } from "../transfer.js";
import type { ListOrder, ListStatus, PayListLine } from "../views.js";
import { throwIfAborted } from "../waiting.js";
import { operationOf, journalOf, type Context } from "./context.js";
import { certifyOne, finish, learnAll, settleStored } from "./finish.js";
import { ADOPTIONS_MAX, checkAgreedState, finishingFirst, LOCK_PATIENCE_MS, otherCopy, writeDown, type Need } from "./send.js";

/** The maximum number of pages that are certified but not settled. */
const PAGES_UNDER_WAY_MAX = 8;

type Report = (step: ManyStep) => void;
/** The state of a page's order; undefined if it has none. */
type PageState = Pick<ListOrder, "state" | "sequence" | "digest"> | undefined;

/** A list to pay or to view. */
interface Job {
  readonly name: Hex;
  readonly account: AccountId;
  readonly maxOutputs: number;
  readonly plan: PayListPlan;
  readonly begunAtMs: number | undefined;
}

/** Pays the unpaid part of a list. Resolves when all its orders are settled. */
export async function payMany(
  context: Context,
  signer: Signer,
  lines: readonly PayListLine[],
  options: ManyOptions,
  report: Report,
): Promise<ListStatus> {
  const job = await jobOf(context, signer.account, lines, options);
  const journal = journalOf(context, signer.account);
  const operation = operationOf(context, journal, (step) => reportOf(step, report), options.signal);
  return journal.exclusively(LOCK_PATIENCE_MS, async () => {
    try {
      return await payLocked(context, operation, journal, signer, job, report);
    } catch (error) {
      // Reports the progress even after a failure.
      const status = await statusOf(context, journal, job).catch(() => undefined);
      if (status !== undefined) report({ type: "list", status });
      throw error;
    }
  });
}

/** The progress of a list according to this storage. Throws the errors of `payMany`, except `insufficient-funds`. */
export async function viewList(
  context: Context,
  account: AccountId,
  lines: readonly PayListLine[],
  options: ManyOptions,
): Promise<ListStatus> {
  return statusOf(context, journalOf(context, account), await jobOf(context, account, lines, options));
}

/** The lists of an account that were started and are not closed, oldest first. */
export async function openLists(context: Context, account: AccountId): Promise<ListStatus[]> {
  const begun = await listsOf(context).open(account);
  const lists = await Promise.all(begun.map(({ name, lines, maxOutputs }) => viewList(context, account, lines, { name, maxOutputs })));
  // A crash may have happened after a list's last order was settled and before the list was closed.
  const isOver = ({ orders }: ListStatus): boolean => orders.every(({ state }) => state === "settled");
  await Promise.all(lists.filter(isOver).map(({ name }) => closeList(context, name)));
  return lists.filter((status) => !isOver(status));
}

/** The lines of a list that was started. Throws `not-found`. */
export async function linesOf(context: Context, name: Hex): Promise<BegunList> {
  const begun = await listsOf(context).find(lower(name));
  if (begun !== undefined) return begun;
  throw new FastPayError("not-found", "no list of this name was started here", "give the list itself");
}

/** Marks a list as closed. */
export function closeList(context: Context, name: Hex): Promise<void> {
  return listsOf(context).close(name);
}

function listsOf(context: Context): ListJournal {
  const { store, network } = context;
  if (store === undefined) throw new FastPayError("storage", "there is no storage for lists", "give the client a storage");
  return new ListJournal(store, network.domain);
}

/** Checks a list and prepares it. If an earlier call started the list, keeps its way of splitting. */
async function jobOf(
  context: Context,
  account: AccountId,
  lines: readonly PayListLine[],
  options: ManyOptions,
): Promise<Job> {
  const { domain } = context.network;
  const plan = planList(lines, options.maxOutputs ?? PAYOUT_OUTPUTS_MAX, domain, account);
  const name = (options.name?.toLowerCase() as Hex | undefined) ?? plan.digest;
  if (!/^0x[0-9a-f]{64}$/.test(name)) {
    throw new FastPayError("invalid-argument", "a list's name has 32 bytes", "give 0x and 64 digits, such as a hash");
  }
  const begun = await listsOf(context).find(name);
  if (begun === undefined) {
    return { name, account, maxOutputs: options.maxOutputs ?? PAYOUT_OUTPUTS_MAX, plan, begunAtMs: undefined };
  }
  if (begun.account !== account) {
    const message = "another account started this list";
    throw invalidList([wholeList("begun-by-another-account", message)], "continue with that account's key, or change the list");
  }
  if (begun.digest !== plan.digest) throw changed();
  const { maxOutputs, begunAtMs } = begun;
  const isSplitAlike = maxOutputs === (options.maxOutputs ?? PAYOUT_OUTPUTS_MAX);
  return { name, account, maxOutputs, plan: isSplitAlike ? plan : planList(lines, maxOutputs, domain), begunAtMs };
}

function changed(): FastPayError {
  const message = "a list of this name was started and pays something else";
  return invalidList([wholeList("changed", message)], "pay it as it was, or give the changed one another name");
}

async function payLocked(
  context: Context,
  operation: Operation,
  journal: OrderJournal,
  signer: Signer,
  job: Job,
  report: Report,
): Promise<ListStatus> {
  for (let round = 0; round < ADOPTIONS_MAX; round += 1) {
    for (const entry of await journal.unfinished()) await finish(finishingFirst(operation, entry), journal, entry);
    const states = await pageStates(operation, journal, job);
    const reportStates = (): void => report({ type: "list", status: statusWith(job, states) });
    reportStates();
    if (states.every((state) => state !== undefined)) {
      await listsOf(context).close(job.name);
      return statusWith(job, states);
    }
    const sequence = await checkFunds(operation, journal, job, states);
    if (sequence === undefined) continue;
    // Orders of another copy of this wallet may become known only now.
    await learnAll(operation, journal, sequence);
    const now = await pageStates(operation, journal, job);
    if (now.some((state, page) => state?.digest !== states[page]?.digest) || (await journal.unfinished()).length > 0) continue;
    const { name, account, maxOutputs, plan } = job;
    const begun = await listsOf(context).begin({ name, account, maxOutputs, digest: plan.digest, payments: plan.payments });
    // Another browser page may have started it in the meantime, with other contents.
    if (begun.account !== account || begun.digest !== plan.digest || begun.maxOutputs !== maxOutputs) throw changed();
    await payPages(operation, journal, signer, job, states, sequence, reportStates);
  }
  throw otherCopy(journal.account);
}

/**
 * The number of the next order. Throws if the account holds too little for all pages without an order; undefined if
 * another copy's order must be finished first.
 */
async function checkFunds(
  operation: Operation,
  journal: OrderJournal,
  { plan }: Job,
  states: readonly PageState[],
): Promise<bigint | undefined> {
  const needs = new Map<Address, bigint>();
  plan.pages.forEach(({ asset, total }, page) => {
    if (states[page] === undefined) needs.set(asset, (needs.get(asset) ?? 0n) + total);
  });
  let next: bigint | undefined;
  for (const [asset, amount] of needs) {
    const need: Need = { asset, amount };
    next = await checkAgreedState(operation, journal, need);
    if (next === undefined) return undefined;
  }
  return next;
}

async function payPages(
  operation: Operation,
  journal: OrderJournal,
  signer: Signer,
  { name, account, plan }: Job,
  states: PageState[],
  first: bigint,
  reportStates: () => void,
): Promise<void> {
  const { domain } = operation.network;
  const settling = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let sequence = first;
  try {
    for (const [page, { asset, outputs }] of plan.pages.entries()) {
      if (states[page] !== undefined) continue;
      if (failures.length > 0) break;
      throwIfAborted(operation.signal);
      const memo = pageName(name, page);
      const transfer: Payout = { type: "payout", sender: account, asset, outputs, sequence, memo };
      operation.report({ type: "signing", transfer });
      const order = await signOrder(signer, domain, transfer);
      await writeDown(journal, order);
      const { digest } = order;
      const become = (state: ListOrder["state"], number: bigint): void => {
        states[page] = { state, sequence: number, digest };
        reportStates();
      };
      become("ordered", sequence);
      const certificate = await certifyOne(operation, order, order);
      const isOurs = certificate.digest === digest;
      // Another copy took the number, so this page gets another number.
      if (!isOurs) states[page] = undefined;
      else become("certified", sequence);
      await journal.certify(certificate).catch(() => undefined);
      const number = sequence;
      const settled: Promise<void> = settleStored(operation, journal, certificate)
        .then(() => (isOurs ? become("settled", number) : undefined))
        .catch((error: unknown) => void failures.push(error))
        .finally(() => settling.delete(settled));
      settling.add(settled);
      if (!isOurs) break;
      if (settling.size >= PAGES_UNDER_WAY_MAX) await Promise.race(settling);
      sequence += 1n;
    }
  } finally {
    await Promise.all(settling);
  }
  if (failures.length > 0) throw failures[0];
}

/**
 * The states of the pages according to this storage. Throws `invalid-list` if an order with a page's name pays
 * something else.
 */
async function pageStates(
  { network }: Pick<Operation, "network">,
  journal: OrderJournal,
  { name, plan }: Job,
): Promise<PageState[]> {
  const pages = new Map(plan.pages.map((_, page) => [pageName(name, page), page]));
  const states: PageState[] = plan.pages.map(() => undefined);
  for (const entry of await journal.entries()) {
    // An order with a void number paid nobody, so its page gets another number.
    const transfer = entry.state === "voided" ? undefined : transferOf(entry);
    const place = transfer?.type === "payout" ? pages.get(transfer.memo) : undefined;
    const page = place === undefined ? undefined : plan.pages[place];
    if (transfer?.type !== "payout" || place === undefined || page === undefined) continue;
    if (!pays(transfer, page)) throw changed();
    const digest = transferDigest(network.domain, transfer);
    states[place] = { state: stateOf(entry), sequence: entry.sequence, digest };
  }
  return states;
}

function pays({ asset, outputs }: Payout, page: PayListPage): boolean {
  const isSame = (output: Payout["outputs"][number], i: number): boolean => {
    const other = page.outputs[i];
    return other !== undefined && output.recipient === other.recipient && output.amount === other.amount && output.memo === other.memo;
  };
  return asset === page.asset && outputs.length === page.outputs.length && outputs.every(isSame);
}

/** The state of a page's order. A certificate counts, whichever copy of the wallet signed the order. */
function stateOf({ state, settledAtMs }: Stored): ListOrder["state"] {
  if (settledAtMs !== undefined) return "settled";
  return state === "created" ? "ordered" : "certified";
}

async function statusOf(context: Context, journal: OrderJournal, job: Job): Promise<ListStatus> {
  return statusWith(job, await pageStates(context, journal, job));
}

function statusWith({ name, account, maxOutputs, plan, begunAtMs }: Job, states: readonly PageState[]): ListStatus {
  const open = { state: "open", sequence: undefined, digest: undefined } as const;
  const orders = plan.pages.map((page, number): ListOrder => ({ ...page, memo: pageName(name, number), ...(states[number] ?? open) }));
  return { name, account, maxOutputs, begunAtMs, orders, payments: plan.payments };
}

/** Omits the other steps of single orders, because the step `list` reports their progress. */
function reportOf(step: TransferStep, report: Report): void {
  switch (step.type) {
    case "finishing":
    case "signing":
    case "adopted":
    case "waiting":
    case "catching-up":
      return report(step);
    default:
      return undefined;
  }
}
