/**
 * Lists of payments. A list is checked completely before anything is signed, and split into as few orders as possible.
 * Pure. A page is the part of a list that one order pays. The order's memo is the page's name, as on the command line,
 * so an order or certificate identifies the page that it pays.
 */

import { keccak_256 } from "@noble/hashes/sha3.js";

import { accountOf, type AccountId } from "./accounts.js";
import { AMOUNT_MAX } from "./amounts.js";
import { concat, isHex, lower, toBytes, toHex, type Address, type Hex } from "./bytes.js";
import { FastPayError, isFastPayError } from "./errors.js";
import { NO_MEMO } from "./memo.js";
import { checkOutput, PAYOUT_OUTPUTS_MAX, type Domain, type Output, type TransferFault } from "./transfer.js";
import type { ListError, ListPayment, PayListLine } from "./views.js";

/** The maximum number of lines: more than a person reviews. */
export const LIST_LINES_MAX = 100_000;
/** The maximum number of errors in the message. The details have all of them. */
const ERRORS_SHOWN_MAX = 3;

/** The payments of one order of a list. */
export interface PayListPage {
  readonly asset: Address;
  readonly outputs: readonly Output[];
  readonly total: bigint;
}

/** A checked list, split into orders. */
export interface PayListPlan {
  /** Identifies the payments and their order. */
  readonly digest: Hex;
  readonly payments: readonly ListPayment[];
  readonly pages: readonly PayListPage[];
}

/** The error of an invalid list. */
export function invalidList(errors: readonly ListError[], action = "correct them, then try again"): FastPayError {
  const shown = errors.slice(0, ERRORS_SHOWN_MAX).map(({ line, message }) => (line === undefined ? message : `line ${line}: ${message}`));
  const more = errors.length > shown.length ? [`and ${errors.length - shown.length} more`] : [];
  const message = `the list cannot be paid: ${[...shown, ...more].join("; ")}`;
  return new FastPayError("invalid-list", message, `nothing was signed; ${action}`, { details: { errors } });
}

/**
 * Checks all payments of a list of `sender`, and splits it by asset, in the order of the lines, into orders of at most
 * `maxOutputs` payments. Throws `invalid-list`, with all faults in `details.errors`, or `invalid-argument` if
 * `maxOutputs` is out of range.
 */
export function planList(
  lines: readonly PayListLine[],
  maxOutputs: number,
  domain: Domain,
  sender?: AccountId,
): PayListPlan {
  if (!Number.isInteger(maxOutputs) || maxOutputs < 1 || maxOutputs > PAYOUT_OUTPUTS_MAX) {
    const message = `an order cannot have ${maxOutputs} outputs`;
    throw new FastPayError("invalid-argument", message, `give a whole number from 1 to ${PAYOUT_OUTPUTS_MAX}`);
  }
  if (lines.length === 0) throw invalidList([wholeList("no-outputs", "the list is empty")], "give at least one payment");
  if (lines.length > LIST_LINES_MAX) {
    throw invalidList([wholeList("too-many-lines", `it has more than ${LIST_LINES_MAX} payments`)], "split it");
  }
  const errors = lines.flatMap((line, i) => faultOf(line, i + 1, domain, sender));
  if (errors.length > 0) throw invalidList(errors);
  const whole = lines.map(({ recipient, asset, amount, memo = NO_MEMO, line }, i) => ({
    recipient: accountOf(recipient),
    asset: lower(asset),
    amount,
    memo: lower(memo),
    line: line ?? i + 1,
  }));
  const byAsset = new Map<Address, number[]>();
  for (const [i, { asset }] of whole.entries()) {
    const ofAsset = byAsset.get(asset);
    if (ofAsset === undefined) byAsset.set(asset, [i]);
    else ofAsset.push(i);
  }
  const tooLarge = [...byAsset].filter(([, places]) => sum(places.map((i) => whole[i]?.amount ?? 0n)) > AMOUNT_MAX);
  if (tooLarge.length > 0) {
    const message = (asset: Address): string => `the payments of ${nameOfAsset(asset)} have a sum of more than 128 bits`;
    throw invalidList(tooLarge.map(([asset]) => wholeList("sum-too-large", message(asset))), "split it");
  }
  const pages: PayListPage[] = [];
  const places: { page: number; output: number }[] = [];
  for (const [asset, ofAsset] of [...byAsset].sort(([a], [b]) => (a < b ? -1 : 1))) {
    for (let at = 0; at < ofAsset.length; at += maxOutputs) {
      const chunk = ofAsset.slice(at, at + maxOutputs);
      const outputs = chunk.flatMap((i): Output[] => {
        const line = whole[i];
        return line === undefined ? [] : [{ recipient: line.recipient, amount: line.amount, memo: line.memo }];
      });
      chunk.forEach((i, output) => (places[i] = { page: pages.length, output }));
      pages.push({ asset, outputs, total: sum(outputs.map(({ amount }) => amount)) });
    }
  }
  const payments = whole.map((line, i) => ({ ...line, ...(places[i] ?? { page: 0, output: 0 }) }));
  return { digest: digestOf(whole), payments, pages };
}

/** The memo of the order that pays a page. */
export function pageName(list: Hex, page: number): Hex {
  const number = new Uint8Array(8);
  new DataView(number.buffer).setBigUint64(0, BigInt(page));
  return toHex(keccak_256(concat(new TextEncoder().encode("fastpay/payout"), toBytes(list), number)));
}

/** A fault of a whole list. */
export function wholeList(fault: ListError["fault"], message: string): ListError {
  return { line: undefined, fault, message };
}

function faultOf(
  { recipient, asset, amount, memo = NO_MEMO, line }: PayListLine,
  place: number,
  domain: Domain,
  sender: AccountId | undefined,
): ListError[] {
  const wrong = (fault: ListError["fault"], message: string): ListError[] => [{ line: line ?? place, fault, message }];
  if (!isHex(asset, 20)) return wrong("malformed", "the asset is not an address");
  if (!isHex(memo, 32)) return wrong("malformed", "the memo has not 32 bytes; use encodeMemo");
  if (typeof amount !== "bigint") return wrong("malformed", "the amount is not a bigint");
  try {
    const account = accountOf(recipient);
    if (account === sender) return wrong("own-account", "the recipient is the paying account itself");
    checkOutput(account, amount, domain);
    return [];
  } catch (error) {
    if (!isFastPayError(error)) throw error;
    if (error.code === "invalid-account") return wrong("recipient", `${error.message}; ${error.action}`);
    return wrong(error.details["fault"] as TransferFault, `${error.message}; ${error.action}`);
  }
}

function digestOf(lines: readonly (Required<PayListLine> & { recipient: AccountId })[]): Hex {
  const facts = lines.map(({ recipient, asset, amount, memo }) => [recipient, asset, amount.toString(), memo]);
  return toHex(keccak_256(new TextEncoder().encode(`fastpay/list${JSON.stringify(facts)}`)));
}

function nameOfAsset(asset: Address): string {
  return /^0x0+$/.test(asset) ? "ETH" : `token ${asset}`;
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}
