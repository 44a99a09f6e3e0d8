/** Sanitizes untrusted text for display: memos, labels of links, names of tokens. */

/**
 * Control and formatting characters, and separators of lines and paragraphs. They can hide or reorder neighbouring
 * characters, so a text with them can imitate another one.
 */
const UNPLAIN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** True if the text has no control or formatting character, and no separator of lines or paragraphs. */
export function isPlainText(text: string): boolean {
  return !UNPLAIN.test(text);
}

/** The text on one line, cut after `lengthMax` characters, with spaces instead of control and formatting characters. */
export function plainText(text: string, lengthMax: number): string {
  const plain = text.split(UNPLAIN).join(" ").replace(/\s+/gu, " ").trim();
  return Array.from(plain).slice(0, lengthMax).join("");
}
