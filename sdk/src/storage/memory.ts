/** In-memory storage, for tests and for programs that store orders elsewhere. */

import { FastPayError } from "../errors.js";
import type { OrderStore } from "./store.js";

/** Locks within this program: tasks under the same name run one after another. */
export class LocalLocks {
  readonly #tails = new Map<string, Promise<void>>();

  /** See `OrderStore.exclusively`. */
  async exclusively<T>(name: string, patienceMs: number, task: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(name) ?? Promise.resolve();
    let release = (): void => undefined;
    const mine = new Promise<void>((resolve) => {
      release = resolve;
    });
    // Later callers wait for both, even if this one gives up waiting.
    const tail = before.then(() => mine);
    this.#tails.set(name, tail);
    void tail.then(() => {
      if (this.#tails.get(name) === tail) this.#tails.delete(name);
    });
    try {
      await orBusy(before, patienceMs);
      return await task();
    } finally {
      release();
    }
  }
}

async function orBusy(turn: Promise<void>, patienceMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(busy()), patienceMs);
  });
  try {
    await Promise.race([turn, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The error of a lock that is not released in time. */
export function busy(): FastPayError {
  const action = "wait for it to finish, then try again";
  return new FastPayError("busy", "another page or program is using this account", action);
}

/** An `OrderStore` in memory. Its orders, and the protection against a second order, are lost when the program ends. */
export function memoryStore(): OrderStore {
  const entries = new Map<string, string>();
  const locks = new LocalLocks();
  return {
    get: async (key) => entries.get(key),
    create: async (key, value) => {
      if (entries.has(key)) return false;
      entries.set(key, value);
      return true;
    },
    keys: async (prefix) => [...entries.keys()].filter((key) => key.startsWith(prefix)).sort(),
    exclusively: (name, patienceMs, task) => locks.exclusively(name, patienceMs, task),
  };
}
