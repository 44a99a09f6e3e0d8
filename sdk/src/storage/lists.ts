/**
 * Started lists of payments in a store.
 *
 * ```text
 *  lists/NAME.begun ──► lists/NAME.closed
 * ```
 * A list is stored before its first order is signed, and never changed: the same list always makes the same orders of
 * the same account. `closed` only removes it from the unfinished lists.
 */

import { formatAccount, parseAccount, type AccountId } from "../accounts.js";
import type { Hex } from "../bytes.js";
import { hex, list, malformed, object, smallNumber, text, unsigned, type Decoder } from "../decode.js";
import { LIST_LINES_MAX } from "../pay-list.js";
import type { Domain } from "../transfer.js";
import type { ListPayment, PayListLine } from "../views.js";
import { parseJson } from "../wire.js";
import { placeOf } from "./deployments.js";
import type { OrderStore } from "./store.js";

/** A started list. */
export interface BegunList {
  readonly name: Hex;
  /** The sender. */
  readonly account: AccountId;
  readonly maxOutputs: number;
  /** The digest of the payments; see `PayListPlan.digest`. */
  readonly digest: Hex;
  readonly lines: readonly PayListLine[];
  readonly begunAtMs: number;
}

const account: Decoder<AccountId> = (value, at) => {
  try {
    return parseAccount(text(value, at));
  } catch {
    throw malformed(at, "an account");
  }
};
const begun = object({
  atMs: smallNumber(Number.MAX_SAFE_INTEGER),
  account,
  maxOutputs: smallNumber(Number.MAX_SAFE_INTEGER),
  digest: hex(32),
  lines: list(
    object({
      line: smallNumber(Number.MAX_SAFE_INTEGER),
      recipient: account,
      asset: hex(20),
      amount: unsigned(128),
      memo: hex(32),
    }),
    LIST_LINES_MAX,
  ),
});

/** The started lists of one deployment. */
export class ListJournal {
  readonly #store: OrderStore;
  readonly #prefix: string;

  constructor(store: OrderStore, domain: Domain) {
    this.#store = store;
    this.#prefix = placeOf(domain, "lists");
  }

  /** The list with this name; undefined if it was not started. */
  async find(name: Hex): Promise<BegunList | undefined> {
    const key = this.#key(name, "begun");
    const found = await this.#store.get(key);
    if (found === undefined) return undefined;
    const { atMs, ...rest } = begun(parseJson(found, key), key);
    return { name, ...rest, begunAtMs: atMs };
  }

  /** Starts a list, or returns the started one. */
  async begin(of: Omit<BegunList, "begunAtMs" | "lines"> & { payments: readonly ListPayment[] }): Promise<BegunList> {
    const lines = of.payments.map(({ line, recipient, asset, amount, memo }) => ({
      line,
      recipient: formatAccount(recipient),
      asset,
      amount: amount.toString(),
      memo,
    }));
    const content = { atMs: Date.now(), account: formatAccount(of.account), maxOutputs: of.maxOutputs, digest: of.digest, lines };
    await this.#store.create(this.#key(of.name, "begun"), JSON.stringify(content));
    const found = await this.find(of.name);
    if (found === undefined) throw new Error("a stored list is missing");
    return found;
  }

  /** Marks a list as closed. */
  async close(name: Hex): Promise<void> {
    await this.#store.create(this.#key(name, "closed"), JSON.stringify({ atMs: Date.now() }));
  }

  /** The lists of an account that are not closed, oldest first. */
  async open(of: AccountId): Promise<BegunList[]> {
    const names = (await this.#store.keys(this.#prefix)).flatMap((key) => {
      const [, name, step] = /^(0x[0-9a-f]{64})\.(begun|closed)$/.exec(key.slice(this.#prefix.length)) ?? [];
      return name === undefined ? [] : [{ name: name as Hex, step }];
    });
    const closed = new Set(names.filter(({ step }) => step === "closed").map(({ name }) => name));
    const open = names.filter(({ name, step }) => step === "begun" && !closed.has(name));
    const lists = await Promise.all(open.map(({ name }) => this.find(name)));
    return lists
      .filter((one) => one !== undefined)
      .filter((one) => one.account === of)
      .sort((a, b) => a.begunAtMs - b.begunAtMs);
  }

  #key(name: Hex, step: "begun" | "closed"): string {
    return `${this.#prefix}${name.toLowerCase()}.${step}`;
  }
}
