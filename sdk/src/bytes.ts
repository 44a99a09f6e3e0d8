/** Bytes and their hexadecimal form. */

import { FastPayError } from "./errors.js";

/** `0x` and lower-case hexadecimal digits. */
export type Hex = `0x${string}`;

/** An address on the Primary. */
export type Address = Hex;

/** True if `value` is `0x` and the hexadecimal digits of exactly this number of bytes. */
export function isHex(value: unknown, bytes: number): value is Hex {
  return typeof value === "string" && value.length === 2 + 2 * bytes && /^0x[0-9a-fA-F]*$/.test(value);
}

/** The same digits in lower case. */
export function lower<T extends Hex>(hex: T): T {
  return hex.toLowerCase() as T;
}

/** The bytes of a hexadecimal text. Throws `invalid-argument` if the text is not hexadecimal. */
export function toBytes(hex: string): Uint8Array {
  if (!/^0x(?:[0-9a-fA-F]{2})*$/.test(hex)) {
    throw new FastPayError("invalid-argument", "this is not hexadecimal", "give 0x and pairs of digits");
  }
  const bytes = new Uint8Array((hex.length - 2) / 2);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = Number.parseInt(hex.slice(2 + 2 * i, 4 + 2 * i), 16);
  return bytes;
}

/** The hexadecimal form of bytes. */
export function toHex(bytes: Uint8Array): Hex {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return `0x${text}`;
}

/** Concatenates byte arrays. */
export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
