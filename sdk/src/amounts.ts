/** Amounts in decimal notation. Exact: integers only, without rounding. */

import { FastPayError } from "./errors.js";

/** The largest amount that an order can move, in the asset's smallest unit. */
export const AMOUNT_MAX = (1n << 128n) - 1n;
/** The largest sequence number of an order, one below 2⁶⁴ − 1, because a next number must exist. */
export const SEQUENCE_MAX = (1n << 64n) - 2n;
/** A longer text is not an amount: 128 bits have 39 digits. */
const TEXT_LENGTH_MAX = 128;

/**
 * Parses a decimal amount in whole units, such as `1.5`, of an asset with `decimals` decimals. Returns it in the
 * asset's smallest unit. Throws `invalid-amount`.
 */
export function parseAmount(text: string, decimals: number): bigint {
  const match = text.length <= TEXT_LENGTH_MAX ? /^([0-9]+)(?:\.([0-9]+))?$/.exec(text) : null;
  if (match === null) {
    throw notAnAmount(text, "it is not a number", "write digits with at most one decimal point, such as 12 or 0.5");
  }
  const fraction = (match[2] ?? "").replace(/0+$/, "");
  if (fraction.length > decimals) {
    throw notAnAmount(text, `the asset has ${decimals} decimals`, "round it yourself");
  }
  const units = BigInt(`${match[1]}${fraction.padEnd(decimals, "0")}`);
  if (units > AMOUNT_MAX) throw notAnAmount(text, "it exceeds what any account can hold", "give less");
  return units;
}

/** Formats a number of the smallest unit, which may be negative, in whole units without trailing zeros. */
export function formatAmount(units: bigint, decimals: number): string {
  const sign = units < 0n ? "-" : "";
  const digits = (units < 0n ? -units : units).toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return fraction === "" ? `${sign}${whole}` : `${sign}${whole}.${fraction}`;
}

function notAnAmount(text: string, why: string, action: string): FastPayError {
  const message = `${JSON.stringify(text.slice(0, TEXT_LENGTH_MAX))} is not an amount: ${why}`;
  return new FastPayError("invalid-amount", message, action);
}
