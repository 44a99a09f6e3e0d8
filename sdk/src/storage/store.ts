/**
 * Where a wallet keeps its orders: written ahead, so that a retry sends the same bytes and no second order is ever
 * signed for a number.
 */

/**
 * A durable map in which an entry is written once and never changed. `create` alone is what safety rests on; the lock
 * only keeps two pages from doing the same work.
 */
export interface OrderStore {
  /** What stands under `key`. */
  get(key: string): Promise<string | undefined>;
  /**
   * Writes `value` where nothing stands under `key`, in one step; on disk when the promise resolves. False, and no
   * change, where something stands there.
   */
  create(key: string, value: string): Promise<boolean>;
  /** All keys that begin with `prefix`, ascending. */
  keys(prefix: string): Promise<string[]>;
  /** Runs `task` while nobody else who uses the same storage runs one of this name. Throws `busy` after `patienceMs`. */
  exclusively<T>(name: string, patienceMs: number, task: () => Promise<T>): Promise<T>;
}

/** What has become of an order. */
export type OrderState =
  /** Written down; it may have been sent. */
  | "created"
  /** It has its certificate: final. */
  | "certified"
  /** Confirmed by a quorum. */
  | "settled"
  /** Another order took its number. */
  | "superseded";
