/**
 * Decodes untrusted answers of authorities: checks every field, bounds lists, and ignores unknown fields. Throws
 * `malformed-answer`.
 */

import { isHex, lower, type Hex } from "./bytes.js";
import { FastPayError } from "./errors.js";

/** Decodes a value. `at` is its position, for error messages. */
export type Decoder<T> = (value: unknown, at: string) => T;

/** The default bound of a list, above the length of any honest answer. */
const LIST_LENGTH_MAX = 10_000;

/** The error of an answer that cannot be decoded. */
export function malformed(at: string, what: string): FastPayError {
  const action = "this authority is faulty or runs another version; ask the others";
  return new FastPayError("malformed-answer", `${at} is not ${what}`, action);
}

/** An object with these fields. */
export function object<T>(fields: { readonly [K in keyof T]: Decoder<T[K]> }): Decoder<T> {
  return (value, at) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw malformed(at, "an object");
    const source = value as Record<string, unknown>;
    const read = Object.entries(fields).map(([key, decode]) => [
      key,
      (decode as Decoder<unknown>)(Object.hasOwn(source, key) ? source[key] : undefined, `${at}.${key}`),
    ]);
    return Object.fromEntries(read) as T;
  };
}

/** One of several objects, distinguished by `type`. */
export function tagged<T>(kinds: Readonly<Record<string, Decoder<T>>>): Decoder<T> {
  const tag = object({ type: text });
  return (value, at) => {
    const { type } = tag(value, at);
    const decode = Object.hasOwn(kinds, type) ? kinds[type] : undefined;
    if (decode === undefined) throw malformed(`${at}.type`, `one of ${Object.keys(kinds).join(", ")}`);
    return decode(value, at);
  };
}

/** The constant `value`. */
export function literal<T extends string>(value: T): Decoder<T> {
  return (found, at) => {
    if (found !== value) throw malformed(at, JSON.stringify(value));
    return value;
  };
}

/** A list. */
export function list<T>(item: Decoder<T>, lengthMax = LIST_LENGTH_MAX): Decoder<readonly T[]> {
  return (value, at) => {
    if (!Array.isArray(value) || value.length > lengthMax) throw malformed(at, `a list of at most ${lengthMax}`);
    return value.map((entry, i) => item(entry, `${at}[${i}]`));
  };
}

/** A value that may be null or left out. */
export function optional<T>(decode: Decoder<T>): Decoder<T | undefined> {
  return (value, at) => (value === null || value === undefined ? undefined : decode(value, at));
}

/** A text. */
export function text(value: unknown, at: string): string {
  if (typeof value !== "string") throw malformed(at, "a text");
  return value;
}

/** True or false. */
export function flag(value: unknown, at: string): boolean {
  if (typeof value !== "boolean") throw malformed(at, "true or false");
  return value;
}

/** A whole number from 0 to `max`. */
export function smallNumber(max: number): Decoder<number> {
  return (value, at) => {
    if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > max) {
      throw malformed(at, `a whole number up to ${max}`);
    }
    return value;
  };
}

/** Exactly this number of bytes in hexadecimal; converted to lower case. */
export function hex(bytes: number): Decoder<Hex> {
  return (value, at) => {
    if (!isHex(value, bytes)) throw malformed(at, `${bytes} bytes in hexadecimal`);
    return lower(value);
  };
}

/** A decimal number of at most this many bits as text, because JSON numbers lose precision. */
export function unsigned(bits: number): Decoder<bigint> {
  const max = (1n << BigInt(bits)) - 1n;
  return (value, at) => {
    const isDecimal = typeof value === "string" && /^(?:0|[1-9][0-9]{0,77})$/.test(value);
    const number = isDecimal ? BigInt(value) : -1n;
    if (number < 0n || number > max) throw malformed(at, `a decimal number of ${bits} bits`);
    return number;
  };
}

/** A signed decimal number of at most 256 bits, as text. */
export function signed(value: unknown, at: string): bigint {
  const isDecimal = typeof value === "string" && /^-?(?:0|[1-9][0-9]{0,77})$/.test(value);
  const number = isDecimal ? BigInt(value) : undefined;
  if (number === undefined || BigInt.asIntN(256, number) !== number) throw malformed(at, "a number of 256 bits");
  return number;
}
