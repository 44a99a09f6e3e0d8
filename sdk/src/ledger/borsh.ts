/**
 * Reads and writes borsh, in which the ledger encodes its statements. A value has one encoding, so a reader that has
 * read everything has read exactly these bytes.
 */

import { concat, toHex, type Hex } from "../bytes.js";
import { malformed } from "../decode.js";

/** Reads values one after another. Throws `malformed-answer`. */
export class BorshReader {
  readonly #bytes: Uint8Array;
  readonly #what: string;
  #at = 0;

  /** `what` names the statement in errors. */
  constructor(bytes: Uint8Array, what: string) {
    this.#bytes = bytes;
    this.#what = what;
  }

  bytes(count: number): Uint8Array {
    const end = this.#at + count;
    if (end > this.#bytes.length) throw malformed(this.#what, "complete");
    const read = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return read;
  }

  hex(count: number): Hex {
    return toHex(this.bytes(count));
  }

  u8(): number {
    return this.bytes(1)[0] ?? 0;
  }

  u32(): number {
    return Number(this.#integer(4));
  }

  u64(): bigint {
    return this.#integer(8);
  }

  #integer(size: number): bigint {
    return this.bytes(size).reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
  }

  /** A list. Each item takes a byte at least, so a count above the length of the rest is refused before it is read. */
  list<T>(item: () => T): T[] {
    const count = this.u32();
    if (count > this.#bytes.length - this.#at) throw malformed(this.#what, "complete");
    return Array.from({ length: count }, item);
  }

  option<T>(item: () => T): T | undefined {
    const isThere = this.u8();
    if (isThere > 1) throw malformed(this.#what, "in the one encoding of an option");
    return isThere === 1 ? item() : undefined;
  }

  /** Checks that nothing is left. */
  end(): void {
    if (this.#at < this.#bytes.length) throw malformed(this.#what, "without a rest");
  }
}

/** The encoding of an unsigned integer. */
export function integer(value: number | bigint, size: 1 | 4 | 8): Uint8Array {
  return Uint8Array.from({ length: size }, (_, at) => Number((BigInt(value) >> BigInt(8 * at)) & 0xffn));
}

/** The encoding of bytes whose number is not fixed. */
export function byteList(bytes: Uint8Array): Uint8Array {
  return concat(integer(bytes.length, 4), bytes);
}
