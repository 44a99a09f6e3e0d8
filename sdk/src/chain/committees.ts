/** The committees of all epochs. Only the Primary defines them. */

import type { Committee } from "../committee.js";
import { isFastPayError } from "../errors.js";

/**
 * `get` reads the epoch at most once in this time, so that an authority that invents epochs causes no more requests.
 */
const LOOK_INTERVAL_MS = 1_000;

/** The source of committees: the Primary. */
export interface CommitteeSource {
  /** The newest final epoch. */
  epoch(): Promise<bigint>;
  /** The committee of an epoch that has started. */
  committee(epoch: bigint): Promise<Committee>;
  /** Whether checkpoints of an epoch count during the next one. */
  isClosing(epoch: bigint): Promise<boolean>;
}

/** The committees by epoch. A committee never changes within its epoch, so each is read once. */
export class Committees {
  readonly #source: CommitteeSource;
  readonly #known = new Map<bigint, Promise<Committee>>();
  #current: Committee;
  #lookedAtMs = Date.now();
  readonly #remember: (committee: Committee) => void;

  /** Starts from known committees: `first` of epoch 0, and the current one. `remember` receives each newer one. */
  constructor(
    source: CommitteeSource,
    current: Committee,
    first: Promise<Committee>,
    remember: (committee: Committee) => void = () => undefined,
  ) {
    this.#source = source;
    this.#known.set(0n, first);
    this.#current = current;
    this.#known.set(current.epoch, Promise.resolve(current));
    this.#remember = remember;
  }

  /** Reads the current committee; `first` is that of epoch 0. */
  static async readCurrent(source: CommitteeSource, first: Promise<Committee>): Promise<Committee> {
    const epoch = await source.epoch();
    return epoch === 0n ? first : source.committee(epoch);
  }

  /** The committee of the newest known epoch. */
  get current(): Committee {
    return this.#current;
  }

  /** Reads the Primary again. True if there is a newer epoch. */
  async refresh(): Promise<boolean> {
    this.#lookedAtMs = Date.now();
    const epoch = await this.#source.epoch();
    if (epoch <= this.#current.epoch) return false;
    const committee = await this.#source.committee(epoch);
    this.#known.set(epoch, Promise.resolve(committee));
    this.#current = committee;
    this.#remember(committee);
    return true;
  }

  /**
   * The committees whose checkpoints count: the current one, and the one before if the Primary says so.
   */
  async counting(): Promise<readonly Committee[]> {
    // Without an answer, the newest known committee counts, as for certificates.
    if (Date.now() - this.#lookedAtMs >= LOOK_INTERVAL_MS) await this.refresh().catch(() => false);
    const current = this.#current;
    const before = current.epoch - 1n;
    if (before < 0n || !(await this.#source.isClosing(before).catch(() => false))) return [current];
    const closing = await this.get(before);
    return closing === undefined ? [current] : [current, closing];
  }

  /** The committee of an epoch; undefined if the epoch has not started in a final block. */
  async get(epoch: bigint): Promise<Committee | undefined> {
    const isDue = Date.now() - this.#lookedAtMs >= LOOK_INTERVAL_MS;
    if (epoch > this.#current.epoch && isDue) await this.refresh();
    if (epoch > this.#current.epoch || epoch < 0n) return undefined;
    const known = this.#known.get(epoch);
    if (known !== undefined) return known;
    const asked = this.#source.committee(epoch);
    this.#known.set(epoch, asked);
    try {
      return await asked;
    } catch (error) {
      // The next call reads it again: the node may have been unreachable.
      this.#known.delete(epoch);
      if (isFastPayError(error, "reverted")) return undefined;
      throw error;
    }
  }
}
