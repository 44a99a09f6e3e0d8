/** Sanitizes untrusted text for display: memos, labels of links, names of tokens. */

/**
 * Control and formatting characters, which hide or turn around what stands beside them, and separators of lines and
 * paragraphs: with them a text can pass for something else.
 */
const UNPLAIN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** The text is nothing but characters that are seen, and spaces. */
export function isPlainText(text: string): boolean {
  return !UNPLAIN.test(text);
}

/** The text on one line, with a space in place of all that is not plain, and cut after so many characters. */
export function plainText(text: string, lengthMax: number): string {
  const plain = text.split(UNPLAIN).join(" ").replace(/\s+/gu, " ").trim();
  return Array.from(plain).slice(0, lengthMax).join("");
}
