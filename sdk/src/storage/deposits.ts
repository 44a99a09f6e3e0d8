/**
 * An account's deposits in a store, from the moment a wallet has told their transaction until they are credited.
 *
 * ```text
 *  deposit-HASH.submitted ──► deposit-HASH.ended
 * ```
 * A wallet tells the hash of a transaction only after it was sent, so it is written down then, before anything else is
 * done. Each entry is written once and never changed. Nothing rests on them but that a person sees what is on its way.
 */

import type { AccountId } from "../accounts.js";
import type { Hex } from "../bytes.js";
import { hex, object, smallNumber, unsigned } from "../decode.js";
import type { Domain } from "../transfer.js";
import type { SubmittedDeposit } from "../views.js";
import { parseJson } from "../wire.js";
import type { OrderStore } from "./store.js";

const stored = object({ atMs: smallNumber(Number.MAX_SAFE_INTEGER), asset: hex(20), amount: unsigned(256) });
const HASH_LENGTH = "0x".length + 64;

/** The deposits into one account in one deployment. */
export class DepositJournal {
  readonly #account: AccountId;
  readonly #store: OrderStore;
  readonly #prefix: string;

  constructor(store: OrderStore, domain: Domain, account: AccountId) {
    this.#account = account;
    this.#store = store;
    this.#prefix = `${domain.chainId}/${domain.contract.toLowerCase()}/${account}/deposit-`;
  }

  /** Writes a deposit down whose transaction was sent. */
  async submitted({ hash, asset, amount }: Pick<SubmittedDeposit, "hash" | "asset" | "amount">): Promise<void> {
    await this.#write(hash, "submitted", { asset, amount: amount.toString() });
  }

  /** Notes that a deposit was credited, or will never be. */
  async end(hash: Hex): Promise<void> {
    await this.#write(hash, "ended", {});
  }

  /** Those of which the end is not known here, oldest first. */
  async open(): Promise<SubmittedDeposit[]> {
    const keys = await this.#store.keys(this.#prefix);
    const ended = new Set(keys.filter((key) => key.endsWith(".ended")).map((key) => this.#hashOf(key)));
    const hashes = keys.filter((key) => key.endsWith(".submitted")).map((key) => this.#hashOf(key));
    const open = await Promise.all(hashes.filter((hash) => !ended.has(hash)).map((hash) => this.#read(hash)));
    return open.filter((deposit) => deposit !== undefined).sort((a, b) => a.submittedAtMs - b.submittedAtMs);
  }

  #hashOf(key: string): Hex {
    return key.slice(this.#prefix.length, this.#prefix.length + HASH_LENGTH) as Hex;
  }

  async #read(hash: Hex): Promise<SubmittedDeposit | undefined> {
    const key = `${this.#prefix}${hash}.submitted`;
    const found = await this.#store.get(key);
    if (found === undefined) return undefined;
    const { atMs, asset, amount } = stored(parseJson(found, key), key);
    return { hash, account: this.#account, asset, amount, submittedAtMs: atMs };
  }

  async #write(hash: Hex, what: "submitted" | "ended", content: object): Promise<void> {
    await this.#store.create(`${this.#prefix}${hash}.${what}`, JSON.stringify({ atMs: Date.now(), ...content }));
  }
}
