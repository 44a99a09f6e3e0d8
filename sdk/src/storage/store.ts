/**
 * The wallet's store. Orders are stored before they are sent, so that a retry sends the same bytes and no number gets a
 * second order.
 */

/**
 * A durable map whose entries are written once and never changed. Safety depends on `create` alone; the lock only
 * prevents two pages from duplicating work.
 */
export interface OrderStore {
  /** The value of `key`; undefined if `key` does not exist. */
  get(key: string): Promise<string | undefined>;
  /**
   * Atomically writes `value` if `key` does not exist; on disk when the promise resolves. Returns false, without a
   * change, if `key` exists.
   */
  create(key: string, value: string): Promise<boolean>;
  /** All keys that begin with `prefix`, ascending. */
  keys(prefix: string): Promise<string[]>;
  /** Runs `task` under the lock `name` of this storage. Throws `busy` if the lock is not free within `patienceMs`. */
  exclusively<T>(name: string, patienceMs: number, task: () => Promise<T>): Promise<T>;
}

/** The state of an order. */
export type OrderState =
  /** Stored; it may have been sent. */
  | "created"
  /** Its certificate is stored. */
  | "certified"
  /** Confirmed by a quorum. */
  | "settled"
  /** Another order used its number. */
  | "superseded"
  /** The contract voided its number: nothing was paid. */
  | "voided";
