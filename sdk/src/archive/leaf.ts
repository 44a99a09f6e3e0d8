/**
 * The leaves of a segment that say what became of an account's numbers: one kind byte, and the borsh encoding of the
 * fields (docs/PROTOCOL.md, "Checkpoints").
 */

import { accountFromBytes32, type AccountId } from "../accounts.js";
import { toHex, type Address, type Hex } from "../bytes.js";
import { PAYOUT_OUTPUTS_MAX, type Redemption, type Transfer } from "../transfer.js";

/** What became of a number of an account. */
export type NumberLeaf =
  /** The order of this transfer was executed. */
  | { readonly type: "executed"; readonly transfer: Transfer }
  /** A recovery debited this redemption without its owner's order, because the contract had paid or queued it. */
  | { readonly type: "paid"; readonly transfer: Redemption }
  /** The number is void. */
  | { readonly type: "void"; readonly account: AccountId; readonly sequence: bigint };

const EXECUTED = 0x22;
const VOID = 0x23;
const PAID = 0x24;

/** Decodes a leaf; undefined if the bytes are no leaf of these kinds. A leaf has one encoding. */
export function decodeLeaf(bytes: Uint8Array): NumberLeaf | undefined {
  const fields = new Fields(bytes);
  try {
    const leaf = readLeaf(fields);
    return fields.isAtEnd() ? leaf : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function readLeaf(fields: Fields): NumberLeaf | undefined {
  switch (fields.byte()) {
    case EXECUTED: {
      const transfer = readTransfer(fields);
      return transfer && { type: "executed", transfer };
    }
    case VOID:
      return { type: "void", account: fields.account(), sequence: fields.unsigned(8) };
    case PAID:
      return { type: "paid", transfer: readRedemption(fields) };
    default:
      return undefined;
  }
}

function readTransfer(fields: Fields): Transfer | undefined {
  switch (fields.byte()) {
    case 0: {
      const [sender, recipient] = [fields.account(), fields.account()];
      const [asset, amount] = [fields.address(), fields.unsigned(16)];
      return { type: "payment", sender, recipient, asset, amount, sequence: fields.unsigned(8), memo: fields.hex(32) };
    }
    case 1:
      return readRedemption(fields);
    case 2: {
      const [sender, asset, count] = [fields.account(), fields.address(), Number(fields.unsigned(4))];
      if (count === 0 || count > PAYOUT_OUTPUTS_MAX) return undefined;
      const outputs = Array.from({ length: count }, () => {
        return { recipient: fields.account(), amount: fields.unsigned(16), memo: fields.hex(32) };
      });
      return { type: "payout", sender, asset, outputs, sequence: fields.unsigned(8), memo: fields.hex(32) };
    }
    default:
      return undefined;
  }
}

function readRedemption(fields: Fields): Redemption {
  const [sender, recipient] = [fields.account(), fields.address()];
  const [asset, amount, fee] = [fields.address(), fields.unsigned(16), fields.unsigned(16)];
  return { type: "redemption", sender, recipient, asset, amount, fee, sequence: fields.unsigned(8), memo: fields.hex(32) };
}

/** Reads fields in their order. Every method throws a `RangeError` at the end of the bytes. */
class Fields {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  byte(): number {
    return Number(this.unsigned(1));
  }

  /** A little-endian number of this many bytes. */
  unsigned(length: number): bigint {
    return this.#take(length).reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
  }

  hex(length: number): Hex {
    return toHex(this.#take(length));
  }

  address(): Address {
    return this.hex(20);
  }

  account(): AccountId {
    return accountFromBytes32(this.hex(32));
  }

  #take(length: number): Uint8Array {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new RangeError("the leaf is too short");
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}
