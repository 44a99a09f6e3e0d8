/**
 * An account's orders in a store, written ahead.
 *
 * ```text
 *  NNN.order ──► NNN.certificate ──► NNN.settled         (entries of an account, by sequence number)
 *  created       certified           settled
 *      ├───────► NNN.archived          settled, without its certificate: authorities have pruned it
 *      ├───────► NNN.void              voided
 *      └───────► NNN.paid              settled: the contract paid the redemption, and a recovery ended its certificate
 * ```
 * NNN.renewed.0, .1, … are later certificates of the number: each takes the place of the one before, whose epoch a
 * recovery ended, or whose order was not executed. All are kept: another recovery may count them.
 * Each entry is written once and never changed, so a crash leaves one of these states and nothing in between. If
 * the last certificate or NNN.archived has another order than NNN.order, signed by a copy of this wallet, then our order
 * is superseded. Entries are untrusted: callers verify them again before use.
 */

import type { AccountId } from "../accounts.js";
import type { Hex } from "../bytes.js";
import type { Certificate, VerifiedCertificate } from "../certificate.js";
import { hex, object, smallNumber, text } from "../decode.js";
import { FastPayError } from "../errors.js";
import type { Domain, Transfer, TransferOrder } from "../transfer.js";
import type { VerifiedOrder } from "../verify.js";
import type { ProvenTransfer } from "../views.js";
import {
  decodeBareTransfer,
  decodeOrder,
  encodeBareTransfer,
  encodeCertificate,
  encodeOrder,
  parseCertificate,
  parseJson,
} from "../wire.js";
import { placeOf } from "./deployments.js";
import type { OrderState, OrderStore } from "./store.js";

type Kind = "order" | "certificate" | `renewed.${number}` | "settled" | "archived" | "void" | "paid";

/** The stored entries of a number. */
export interface Stored {
  readonly sequence: bigint;
  /** This wallet's order; undefined if the number is void, or only another copy's certificate is known. */
  readonly order: TransferOrder | undefined;
  readonly certificate: Certificate | undefined;
  /** The transfer that took the number according to the committee's archive. */
  readonly archived: Transfer | undefined;
  readonly state: OrderState;
  readonly createdAtMs: number | undefined;
  readonly certifiedAtMs: number | undefined;
  readonly settledAtMs: number | undefined;
}

type StoredText = ReturnType<typeof storedText>;

const storedText = object({ atMs: smallNumber(Number.MAX_SAFE_INTEGER), digest: hex(32), content: text });
const storedDigest = object({ atMs: smallNumber(Number.MAX_SAFE_INTEGER), digest: hex(32) });
const storedTime = object({ atMs: smallNumber(Number.MAX_SAFE_INTEGER) });

/** The transfer under the number of an entry, whether certified or only ordered. */
export function transferOf(stored: Stored): Transfer | undefined {
  return stored.certificate?.order.transfer ?? stored.archived ?? stored.order?.transfer;
}

/** One account's orders in one deployment. */
export class OrderJournal {
  readonly account: AccountId;
  readonly #store: OrderStore;
  readonly #prefix: string;

  constructor(store: OrderStore, domain: Domain, account: AccountId) {
    this.account = account;
    this.#store = store;
    this.#prefix = placeOf(domain, account);
  }

  /** Runs `task` under this account's lock in the store. */
  exclusively<T>(patienceMs: number, task: () => Promise<T>): Promise<T> {
    return this.#store.exclusively(this.#prefix, patienceMs, task);
  }

  /** Stores an order before it is sent. Throws `busy` if another order has the number. */
  async create(order: VerifiedOrder): Promise<void> {
    const { sequence } = order.transfer;
    if (await this.#write(sequence, "order", { digest: order.digest, content: encodeOrder(order) })) return;
    const existing = await this.#read(sequence, "order", storedText);
    if (existing?.digest === order.digest) return;
    const action = "finish that one first, then order this one again";
    const message = `another page or program has just used number ${sequence} for another order`;
    throw new FastPayError("busy", message, action, { details: { sequence } });
  }

  /**
   * Stores the certificate of a number: that of this wallet's order, or of an order that superseded it. One of a later
   * epoch takes the place of one that a recovery ended, and one that is settled that of one for another order.
   */
  async certify(certificate: VerifiedCertificate, isSettled = false): Promise<void> {
    const { digest, order, epoch } = certificate;
    const { sequence } = order.transfer;
    const content = { digest, content: encodeCertificate(certificate) };
    if (await this.#write(sequence, "certificate", content)) return;
    const { last, renewals } = await this.#certified(sequence);
    if (last === undefined) return;
    const isNewer = parseCertificate(last.content).epoch < epoch || (isSettled && last.digest !== digest);
    // Another page may have stored one at the same moment.
    if (isNewer && !(await this.#write(sequence, `renewed.${renewals}`, content))) await this.certify(certificate, isSettled);
  }

  /** The last certificate of a number, and how many have taken the place of an earlier one. */
  async #certified(sequence: bigint): Promise<{ last: StoredText | undefined; renewals: number }> {
    let last = await this.#read(sequence, "certificate", storedText);
    let renewals = 0;
    for (let next = last; next !== undefined; ) {
      last = next;
      next = await this.#read(sequence, `renewed.${renewals}`, storedText);
      if (next !== undefined) renewals += 1;
    }
    return { last, renewals };
  }

  /**
   * Stores that the last certificate of a number is settled. The certificate must be stored before, because
   * `unfinished` skips settled numbers.
   */
  async settle(sequence: bigint): Promise<void> {
    if ((await this.#store.get(this.#key(sequence, "certificate"))) === undefined) {
      throw new Error(`number ${sequence} cannot be settled: its certificate is not in the storage`);
    }
    await this.#write(sequence, "settled", {});
  }

  /** Stores the transfer that took a number, if a checkpoint proves it because authorities have pruned the certificate. */
  async archive({ transfer, digest }: ProvenTransfer): Promise<void> {
    await this.#write(transfer.sequence, "archived", { digest, content: encodeBareTransfer(transfer) });
  }

  /** Stores that the contract voided a number. Its order is never sent again. */
  async void(sequence: bigint): Promise<void> {
    await this.#write(sequence, "void", {});
  }

  /**
   * Stores that the contract paid or queued the redemption that was ordered under a number, and that no order of the
   * number is executed any more.
   */
  async notePaid(sequence: bigint, digest: Hex): Promise<void> {
    await this.#write(sequence, "paid", { digest });
  }

  /** The number after the last known used number. */
  async nextSequence(): Promise<bigint> {
    const last = (await this.#sequences()).at(-1);
    return last === undefined ? 0n : last + 1n;
  }

  /** The numbers from `from` up to `to` (exclusive) of which nothing is stored, newest first. */
  async missing(from: bigint, to: bigint): Promise<bigint[]> {
    const taken = new Set(await this.#sequences());
    const numbers = Array.from({ length: Number(to - from) }, (_, i) => to - 1n - BigInt(i));
    return numbers.filter((sequence) => !taken.has(sequence));
  }

  /** All entries, oldest first. */
  async entries(): Promise<Stored[]> {
    const entries = await Promise.all((await this.#sequences()).map((sequence) => this.entry(sequence)));
    return entries.filter((entry) => entry !== undefined);
  }

  /**
   * The entries that are not settled, archived, void or paid, oldest first. They include superseded orders whose
   * winning certificate is not settled: its payee waits, and this storage may have the only copy of it.
   */
  async unfinished(): Promise<Stored[]> {
    const names = await this.#names();
    const isEnd = ({ kind }: { kind: string }): boolean => ["settled", "archived", "void", "paid"].includes(kind);
    const ended = new Set(names.filter(isEnd).map(({ sequence }) => sequence));
    const open = [...new Set(names.map(({ sequence }) => sequence))].filter((sequence) => !ended.has(sequence));
    const entries = await Promise.all(open.sort(ascending).map((sequence) => this.entry(sequence)));
    return entries.filter((entry) => entry !== undefined);
  }

  /** The entry of a number; undefined if nothing is stored for it. */
  async entry(sequence: bigint): Promise<Stored | undefined> {
    const [order, { last: certified }, settled, archived, voided, paid] = await Promise.all([
      this.#read(sequence, "order", storedText),
      this.#certified(sequence),
      this.#read(sequence, "settled", storedTime),
      this.#read(sequence, "archived", storedText),
      this.#read(sequence, "void", storedTime),
      this.#read(sequence, "paid", storedDigest),
    ]);
    if ([order, certified, archived, voided].every((part) => part === undefined)) return undefined;
    // A certificate that a recovery ended does not count if another order took its number.
    const ended = archived ?? paid;
    const certificate = ended === undefined || ended.digest === certified?.digest ? certified : undefined;
    const taker = certificate?.digest ?? ended?.digest;
    const isSettled = settled !== undefined || ended !== undefined;
    return {
      sequence,
      order: order && decodeOrder(parseJson(order.content, "the stored order"), "the stored order"),
      certificate: certificate && parseCertificate(certificate.content),
      archived: archived && decodeBareTransfer(parseJson(archived.content, "the archived transfer"), "the archived transfer"),
      state: voided !== undefined ? "voided" : stateOf(order?.digest, taker, isSettled),
      createdAtMs: order?.atMs,
      certifiedAtMs: certificate?.atMs,
      settledAtMs: (settled ?? ended)?.atMs,
    };
  }

  #key(sequence: bigint, kind: Kind): string {
    return `${this.#prefix}${sequence.toString().padStart(20, "0")}.${kind}`;
  }

  #write(sequence: bigint, kind: Kind, content: object): Promise<boolean> {
    return this.#store.create(this.#key(sequence, kind), JSON.stringify({ atMs: Date.now(), ...content }));
  }

  async #read<T>(sequence: bigint, kind: Kind, decode: (value: unknown, at: string) => T): Promise<T | undefined> {
    const key = this.#key(sequence, kind);
    const found = await this.#store.get(key);
    return found === undefined ? undefined : decode(parseJson(found, key), key);
  }

  async #names(): Promise<{ sequence: bigint; kind: string }[]> {
    const keys = await this.#store.keys(this.#prefix);
    const names = keys.map((key) => /^([0-9]{20})\.([a-z]+)(?:\.[0-9]+)?$/.exec(key.slice(this.#prefix.length)));
    return names
      .filter((match) => match !== null)
      .map((match) => ({
        sequence: BigInt(match[1] ?? ""),
        kind: match[2] ?? "",
      }));
  }

  async #sequences(): Promise<bigint[]> {
    const taken = (await this.#names()).filter(({ kind }) => kind !== "settled").map(({ sequence }) => sequence);
    return [...new Set(taken)].sort(ascending);
  }
}

function stateOf(order: Hex | undefined, taker: Hex | undefined, isSettled: boolean): OrderState {
  if (taker === undefined) return "created";
  if (order !== undefined && order !== taker) return "superseded";
  return isSettled ? "settled" : "certified";
}

function ascending(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b);
}
