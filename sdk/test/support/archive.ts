/** An archive of certified checkpoints in memory, as an authority builds and serves it. */

import { blake3 } from "@noble/hashes/blake3.js";

import { checkpointDigest, type AccountId, type Certificate, type Checkpoint, type Hex, type Redemption, type Transfer } from "../../src/index.js";
import { concat, toBytes, toHex } from "../../src/bytes.js";
import type { Keys } from "./committee.js";

/** A number of an account. `isPaid`: a recovery debited it without its order. */
type Taken = { transfer: Transfer; isPaid?: boolean } | { account: AccountId; sequence: bigint };

interface Segment {
  readonly numbers: readonly Taken[];
  readonly header: Checkpoint;
}

/** The entry of a page in the form of the HTTP API. */
interface Entry {
  leaf: Hex;
  checkpoint: string;
  directions: string;
  siblings: Hex[];
}

/** A page in the form of the HTTP API. */
export interface Page {
  entries: Entry[];
  headers: Record<string, string>[];
  votes: { authority: Hex; signature: Hex }[];
  next?: string;
}

export class TestArchive {
  readonly #segments: Segment[] = [];
  readonly #keys: readonly [Keys, ...Keys[]];
  readonly #epoch: bigint;
  /** The maximum number of entries in a page. */
  entriesMax = 100;

  /** `keys` sign the newest checkpoint: those of a quorum, in the order of their names. */
  constructor(keys: readonly Keys[], epoch = 0n) {
    const [first, ...others] = keys;
    if (first === undefined) throw new Error("somebody must sign");
    this.#keys = [first, ...others];
    this.#epoch = epoch;
  }

  /** Certifies a checkpoint of these numbers, after those of earlier ones. A recovery debited what is `paid`. */
  add(certificates: readonly Certificate[], voids: readonly { account: AccountId; sequence: bigint }[] = [], paid: readonly Redemption[] = []): void {
    const debited = paid.map((transfer) => ({ transfer, isPaid: true }));
    const numbers: Taken[] = [...certificates.map(({ order }) => ({ transfer: order.transfer })), ...voids, ...debited];
    numbers.sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
    const newest = this.#segments.at(-1)?.header;
    const header = {
      epoch: this.#epoch,
      number: BigInt(this.#segments.length + 1),
      previous: newest === undefined ? hash("first") : checkpointDigest(this.#keys[0].domain, newest),
      transactionIndex: 0n,
      cut: hash("cut"),
      state: hash("state"),
      segment: toHex(rootOf(numbers.map((number) => leafHash(leafOf(number))))),
    };
    this.#segments.push({ numbers, header });
  }

  /** Undefined if the list has what a recovery debited, and the client does not ask for that. */
  sent(account: AccountId, from: bigint, limit: number, withPaid: boolean): Page | undefined {
    const isListed = (number: Taken): boolean => accountOf(number) === account && sequenceOf(number) >= from;
    if (!withPaid && this.#found((number) => isListed(number) && isPaid(number)).length > 0) return undefined;
    // It may be behind a gap: it is shown to whoever asks for exactly this number.
    const found = this.#found((number) => isListed(number) && (!isPaid(number) || sequenceOf(number) === from));
    return this.#page(found.slice(0, Math.min(limit, this.entriesMax)), undefined);
  }

  received(account: AccountId, cursor: string, limit: number): Page {
    const [checkpoint = 0, entry = 0] = cursor.split(".").map(Number);
    const isBehind = (number: number, position: number): boolean => number > checkpoint || (number === checkpoint && position >= entry);
    const found = this.#found((number) => "transfer" in number && pays(number.transfer, account));
    const rest = found.filter(({ segment, position }) => isBehind(segment + 1, position));
    const count = Math.min(limit, this.entriesMax);
    const next = rest[count];
    return this.#page(rest.slice(0, count), next && `${next.segment + 1}.${next.position}`);
  }

  #found(isWanted: (number: Taken) => boolean): { segment: number; position: number }[] {
    return this.#segments.flatMap(({ numbers }, segment) =>
      [...numbers.entries()].flatMap(([position, number]) => (isWanted(number) ? [{ segment, position }] : [])),
    );
  }

  #page(found: readonly { segment: number; position: number }[], next: string | undefined): Page {
    const lowest = found[0]?.segment ?? this.#segments.length - 1;
    const headers = this.#segments.slice(lowest).map(({ header }) => header);
    const newest = headers.at(-1) as Checkpoint;
    const entries = found.map(({ segment, position }) => {
      const leaves = (this.#segments[segment] as Segment).numbers.map(leafOf);
      return { leaf: toHex(leaves[position] as Uint8Array), checkpoint: String(segment + 1), ...pathOf(leaves, position) };
    });
    const votes = this.#keys.map((keys) => keys.checkpointVote(newest));
    const texts = headers.map((header) => Object.fromEntries(Object.entries(header).map(([name, value]) => [name, String(value)])));
    return { entries, headers: texts, votes, ...(next === undefined ? {} : { next }) };
  }
}

function isPaid(number: Taken): boolean {
  return "transfer" in number && number.isPaid === true;
}

function accountOf(number: Taken): AccountId {
  return "transfer" in number ? number.transfer.sender : number.account;
}

function sequenceOf(number: Taken): bigint {
  return "transfer" in number ? number.transfer.sequence : number.sequence;
}

function placeOf(number: Taken): string {
  return `${accountOf(number)}/${sequenceOf(number).toString().padStart(20, "0")}`;
}

function pays(transfer: Transfer, account: AccountId): boolean {
  if (transfer.type === "payout") return transfer.outputs.some(({ recipient }) => recipient === account);
  return transfer.recipient === account;
}

function hash(text: string): Hex {
  return toHex(blake3(new TextEncoder().encode(text)));
}

function little(value: bigint, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => Number((value >> BigInt(8 * i)) & 0xffn));
}

/** A leaf: a kind byte and borsh fields. */
function leafOf(number: Taken): Uint8Array {
  if (!("transfer" in number)) return concat(Uint8Array.of(0x23), toBytes(number.account), little(number.sequence, 8));
  const { transfer } = number;
  const { sender, asset, sequence, memo } = transfer;
  const end = [little(sequence, 8), toBytes(memo)];
  switch (transfer.type) {
    case "payment": {
      const fields = [toBytes(sender), toBytes(transfer.recipient), toBytes(asset), little(transfer.amount, 16)];
      return concat(Uint8Array.of(0x22, 0), ...fields, ...end);
    }
    case "redemption": {
      const amounts = [little(transfer.amount, 16), little(transfer.fee, 16)];
      const kind = isPaid(number) ? Uint8Array.of(0x24) : Uint8Array.of(0x22, 1);
      return concat(kind, toBytes(sender), toBytes(transfer.recipient), toBytes(asset), ...amounts, ...end);
    }
    case "payout": {
      const outputs = transfer.outputs.flatMap((output) => [toBytes(output.recipient), little(output.amount, 16), toBytes(output.memo)]);
      const count = little(BigInt(transfer.outputs.length), 4);
      return concat(Uint8Array.of(0x22, 2), toBytes(sender), toBytes(asset), count, ...outputs, ...end);
    }
  }
}

function leafHash(leaf: Uint8Array): Uint8Array {
  return blake3(concat(Uint8Array.of(0), leaf));
}

/** The level above: pairs are hashed, and a node without a right sibling is carried up. */
function above(level: readonly Uint8Array[]): Uint8Array[] {
  const pairs = Array.from({ length: Math.ceil(level.length / 2) }, (_, i) => level.slice(2 * i, 2 * i + 2));
  return pairs.map(([left, right]) => (right === undefined ? (left as Uint8Array) : blake3(concat(Uint8Array.of(1), left as Uint8Array, right))));
}

function rootOf(level: readonly Uint8Array[]): Uint8Array {
  return level.length === 1 ? (level[0] as Uint8Array) : rootOf(above(level));
}

function pathOf(leaves: readonly Uint8Array[], position: number): { directions: string; siblings: Hex[] } {
  const siblings: Hex[] = [];
  let directions = 0n;
  for (let level = leaves.map(leafHash), at = position; level.length > 1; level = above(level), at >>= 1) {
    const sibling = level[at ^ 1];
    if (sibling === undefined) continue;
    if (at % 2 === 1) directions |= 1n << BigInt(siblings.length);
    siblings.push(toHex(sibling));
  }
  return { directions: directions.toString(), siblings };
}
