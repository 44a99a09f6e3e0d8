/**
 * An account's transactions on the Primary in a store, from the moment a wallet returned their hash until their end.
 *
 * ```text
 *  deposit-HASH.submitted ──► deposit-HASH.placed ──► deposit-HASH.ended      (payout-…, claim-…, unlock-…)
 * ```
 * A wallet returns the hash only after it has sent the transaction, so the hash is stored then, before anything else.
 * The sender and nonce are stored as soon as a node reports them, so that a replacement of the transaction is found.
 * Each entry is written once and never changed. The entries only show people what is pending, and keep them from
 * sending it twice.
 */

import type { AccountId } from "../accounts.js";
import type { Hex } from "../bytes.js";
import { hex, literal, object, optional, smallNumber, tagged, unsigned, type Decoder } from "../decode.js";
import type { Domain } from "../transfer.js";
import type { ChainPurpose, Place, SubmittedTransaction } from "../views.js";
import { parseJson } from "../wire.js";
import { placeOf } from "./deployments.js";
import type { OrderStore } from "./store.js";

type Step = "submitted" | "placed" | "ended";
/** The name of a transaction in the store. */
export type Named = Pick<SubmittedTransaction, "type" | "hash">;

const time = object({ atMs: smallNumber(Number.MAX_SAFE_INTEGER) });
const payoutState: Decoder<"open" | "queued"> = (value, at) => (value === "queued" ? value : literal("open")(value, at));
const unlockStep: Decoder<"request" | "decision"> = (value, at) => (value === "request" ? value : literal("decision")(value, at));
const purpose = tagged<ChainPurpose>({
  deposit: object({ type: literal("deposit"), asset: hex(20), amount: unsigned(256) }),
  payout: object({ type: literal("payout"), sequence: unsigned(64), from: payoutState, digest: optional(hex(32)) }),
  claim: object({ type: literal("claim"), asset: hex(20), amount: unsigned(256) }),
  unlock: object({ type: literal("unlock"), sequence: unsigned(64), step: unlockStep }),
});
const place = object<Place>({ from: hex(20), nonce: smallNumber(Number.MAX_SAFE_INTEGER) });

/** The transactions that concern one account in one deployment. */
export class TransactionJournal {
  readonly #account: AccountId;
  readonly #store: OrderStore;
  readonly #prefix: string;

  constructor(store: OrderStore, domain: Domain, account: AccountId) {
    this.#account = account;
    this.#store = store;
    this.#prefix = placeOf(domain, account);
  }

  /** Stores a sent transaction. */
  async submitted(hash: Hex, of: ChainPurpose): Promise<void> {
    const { type, ...facts } = of;
    const texts = Object.entries(facts).map(([name, fact]) => [name, String(fact)]);
    await this.#write({ type, hash }, "submitted", Object.fromEntries(texts));
  }

  /** Stores the sender and nonce of a transaction. */
  async placed(of: Named, { from, nonce }: Place): Promise<void> {
    await this.#write(of, "placed", { from, nonce });
  }

  /** Stores that a transaction has ended, successfully or not. */
  async end(of: Named): Promise<void> {
    await this.#write(of, "ended", {});
  }

  /** The transactions without a known outcome, oldest first. */
  async open(): Promise<SubmittedTransaction[]> {
    const names = (await this.#store.keys(this.#prefix)).flatMap((key) => this.#nameOf(key));
    const ended = new Set(names.filter(({ step }) => step === "ended").map(({ hash }) => hash));
    const sent = names.filter(({ step, hash }) => step === "submitted" && !ended.has(hash));
    const open = await Promise.all(sent.map((of) => this.#read(of)));
    return open.filter((one) => one !== undefined).sort((a, b) => a.submittedAtMs - b.submittedAtMs);
  }

  #nameOf(key: string): (Named & { step: string })[] {
    const match = /^(deposit|payout|claim|unlock)-(0x[0-9a-f]{64})\.([a-z]+)$/.exec(key.slice(this.#prefix.length));
    const [, type, hash, step = ""] = match ?? [];
    return match === null ? [] : [{ type: type as ChainPurpose["type"], hash: hash as Hex, step }];
  }

  async #read({ type, hash }: Named): Promise<SubmittedTransaction | undefined> {
    const [submitted, placed] = await Promise.all([this.#get({ type, hash }, "submitted"), this.#get({ type, hash }, "placed")]);
    if (submitted === undefined) return undefined;
    const at = `the stored ${type}`;
    return {
      hash,
      account: this.#account,
      ...purpose({ ...(submitted as object), type }, at),
      submittedAtMs: time(submitted, at).atMs,
      place: placed === undefined ? undefined : place(placed, at),
    };
  }

  async #get(of: Named, step: Step): Promise<unknown> {
    const key = this.#key(of, step);
    const found = await this.#store.get(key);
    return found === undefined ? undefined : parseJson(found, key);
  }

  async #write(of: Named, step: Step, content: object): Promise<void> {
    await this.#store.create(this.#key(of, step), JSON.stringify({ atMs: Date.now(), ...content }));
  }

  #key({ type, hash }: Named, step: Step): string {
    return `${this.#prefix}${type}-${hash.toLowerCase()}.${step}`;
  }
}
