/** Memos: 32 bytes chosen by the sender, and the text form that all wallets use. */

import { isHex, toBytes, toHex, type Hex } from "./bytes.js";
import { FastPayError } from "./errors.js";
import { isPlainText } from "./plain-text.js";

/** No memo. */
export const NO_MEMO: Hex = `0x${"0".repeat(64)}`;
/** The maximum number of UTF-8 bytes of a text. */
export const MEMO_BYTES_MAX = 32;

/**
 * The memo of a text: its UTF-8 bytes, padded with zeros. `0x` and 64 hexadecimal digits stand for those 32 bytes.
 * Throws `invalid-argument` if the text is too long, or if the digits are not hexadecimal.
 */
export function encodeMemo(text: string): Hex {
  if (text.startsWith("0x") && text.length === 66) {
    if (isHex(text, 32)) return text.toLowerCase() as Hex;
    throw new FastPayError("invalid-argument", "the memo is not hexadecimal", "give 0x and 64 digits, or text");
  }
  const bytes = new TextEncoder().encode(text);
  if (bytes.length > MEMO_BYTES_MAX) {
    const message = `the memo has ${bytes.length} bytes; at most ${MEMO_BYTES_MAX} fit`;
    throw new FastPayError("invalid-argument", message, "shorten it, or give the hash of a longer text");
  }
  const memo = new Uint8Array(MEMO_BYTES_MAX);
  memo.set(bytes);
  return toHex(memo);
}

/** A memo for display: as text if it is plain text, otherwise as hexadecimal. */
export function decodeMemo(memo: Hex): string {
  const bytes = toBytes(memo);
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end -= 1;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes.subarray(0, end));
    return isPlainText(text) ? text : memo;
  } catch {
    return memo;
  }
}
