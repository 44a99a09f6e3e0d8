/** Formats numbers, times and errors for people. */

import { formatAccount, formatAmount, isFastPayError, type AccountId, type Address, type FastPayErrorCode, type Payout } from "@fastpay/sdk";
import { getAddress } from "viem";

import type { ShownAsset } from "../data/queries";

const TITLES: Partial<Record<FastPayErrorCode, string>> = {
  "invalid-account": "This is not an account",
  "invalid-amount": "This is not an amount",
  "invalid-link": "This link cannot be used",
  "invalid-list": "This list cannot be paid",
  "invalid-certificate": "This certificate is not valid",
  "invalid-key-file": "This is not a key file",
  "wrong-passphrase": "Wrong passphrase",
  "signature-rejected": "You declined",
  "signature-unusable": "The wallet's signature cannot be used",
  "wallet-failed": "The wallet failed",
  "too-few-answers": "Too few authorities answer",
  "insufficient-funds": "Not enough money",
  conflict: "Another order has this number",
  frozen: "This account is being unlocked",
  voided: "Nothing was paid with this number",
  superseded: "Another order took its place",
  "other-copy": "Another device uses this account",
  "no-quorum": "Too few authorities answered",
  "epoch-ended": "The committee that certified this was replaced",
  "never-paid": "The redemption cannot be paid",
  "no-room": "The authorities accept no more orders for now",
  busy: "Another page uses this account",
  storage: "This browser cannot store data",
  paused: "The contract is paused",
  "no-relayer": "No relayer does this now",
  "wrong-chain": "Wrong network",
  "wrong-contract": "No FastPay contract here",
  reverted: "The contract refused",
  "chain-unreachable": "Ethereum does not answer",
  "needs-contract": "Not possible on a ledger",
  "not-found": "Not found",
  aborted: "Stopped",
};

/** A short title for an error. */
export function titleOfError(error: unknown): string {
  if (isFastPayError(error, "chain-unreachable") && error.details.primary === "ledger") return "The ledger does not answer";
  return (isFastPayError(error) && TITLES[error.code]) || "Something went wrong";
}

/** A clause as a sentence, with an initial capital and a full stop. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  const whole = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?…]$/.test(whole) ? whole : `${whole}.`;
}

/** An amount with its asset's label. Groups thousands and rounds nothing. */
export function money(units: bigint, asset: Pick<ShownAsset, "label" | "decimals">): string {
  return `${amountText(units, asset.decimals)} ${asset.label}`;
}

/** An amount without a label. Groups thousands and rounds nothing. */
export function amountText(units: bigint, decimals: number): string {
  const [whole = "", fraction] = formatAmount(units, decimals).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** Like `amountText`, but cut after `digits` decimals, which `…` marks. */
export function amountAtAGlance(units: bigint, decimals: number, digits = 6): string {
  const text = amountText(units, decimals);
  const point = text.indexOf(".");
  return point === -1 || text.length <= point + 1 + digits ? text : `${text.slice(0, point + 1 + digits)}…`;
}

/** Both ends of a long text. */
export function shorten(text: string, head = 8, tail = 6): string {
  return text.length <= head + tail + 1 ? text : `${text.slice(0, head)}…${text.slice(-tail)}`;
}

/** An account's text form, shortened. */
export function shortAccount(account: AccountId): string {
  return shorten(formatAccount(account));
}

/** An Ethereum address with its checksum, shortened. */
export function shortAddress(address: Address): string {
  return shorten(getAddress(address));
}

/** The recipients of a payout, shortened. */
export function recipientsText({ outputs }: Payout): string {
  const accounts = new Set(outputs.map(({ recipient }) => recipient));
  const [first] = accounts;
  return accounts.size === 1 && first !== undefined ? shortAccount(first) : `${accounts.size} accounts`;
}

/** A duration as text, from milliseconds to days. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(1, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.round(ms / 60_000);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(ms / 3_600_000);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}

const DATE_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** A point in time, in the reader's own clock. */
export function timeText(ms: number): string {
  return DATE_TIME.format(ms);
}

/** `1 vote`, `2 votes`. */
export function count(number: number | bigint, one: string, many = `${one}s`): string {
  return `${number} ${Number(number) === 1 ? one : many}`;
}
