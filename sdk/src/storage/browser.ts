/**
 * Storage in the browser: IndexedDB, whose transactions are atomic and can wait for the disk, and Web Locks across
 * pages. A browser may still clear it. Then authorities report the unfinished orders that they received.
 */

import { FastPayError, messageOf } from "../errors.js";
import { busy, LocalLocks } from "./memory.js";
import type { OrderStore } from "./store.js";

const OBJECTS = "entries";
const VERSION = 1;

/** An `OrderStore` in an IndexedDB database of this name. Throws `storage` if IndexedDB cannot be used. */
export async function browserStore(database = "fastpay"): Promise<OrderStore> {
  if (typeof indexedDB === "undefined") throw unusable("this environment has no IndexedDB");
  const connection = new Connection(database);
  await connection.get();
  // Without Web Locks (on pages that are not served securely) each page has its own locks. `create` alone keeps an
  // order from replacing another.
  const locks = globalThis.navigator?.locks === undefined ? new LocalLocks() : webLocks(database);
  return {
    get: async (key) => asText(await run(connection, "readonly", (objects) => objects.get(key))),
    create: (key, value) => create(connection, key, value),
    keys: async (prefix) => {
      const range = IDBKeyRange.bound(prefix, `${prefix}\uffff`);
      const keys = await run(connection, "readonly", (objects) => objects.getAllKeys(range));
      return keys.filter((key) => typeof key === "string").sort();
    },
    exclusively: (name, patienceMs, task) => locks.exclusively(name, patienceMs, task),
  };
}

function webLocks(database: string): Pick<OrderStore, "exclusively"> {
  return {
    async exclusively<T>(name: string, patienceMs: number, task: () => Promise<T>): Promise<T> {
      const signal = AbortSignal.timeout(patienceMs);
      let begun: Promise<T> | undefined;
      try {
        return await navigator.locks.request(`${database}:${name}`, { signal }, () => (begun = task()));
      } catch (error) {
        // A task that has begun completes, even if another page takes the lock: `create` never replaces an order.
        if (begun !== undefined) return begun;
        throw signal.aborted ? busy() : unusable(`its locks fail: ${messageOf(error)}`, error);
      }
    },
  };
}

/** A database connection. Reopens the database after the browser, or a newer version of this page, has closed it. */
class Connection {
  readonly #name: string;
  #opened: Promise<IDBDatabase> | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  get(): Promise<IDBDatabase> {
    this.#opened ??= this.#open().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  async #open(): Promise<IDBDatabase> {
    const database = await open(this.#name);
    const forget = (): void => void (this.#opened = undefined);
    // An open connection would block a newer version of the page.
    database.onversionchange = () => {
      forget();
      database.close();
    };
    // The user cleared the database, or the disk failed.
    database.onclose = forget;
    return database;
  }
}

function open(database: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(database, VERSION);
    request.onupgradeneeded = () => request.result.createObjectStore(OBJECTS);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => {
      const isNewer = request.error?.name === "VersionError";
      reject(isNewer ? outdated() : unusable(messageOf(request.error)));
    };
  });
}

/** Runs one transaction. Resolves when it is on disk. If it throws `storage`, nothing was changed. */
async function run<T>(
  connection: Connection,
  mode: IDBTransactionMode,
  act: (objects: IDBObjectStore) => IDBRequest<T>,
): Promise<T> {
  const database = await connection.get();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(OBJECTS, mode, { durability: "strict" });
      const request = act(transaction.objectStore(OBJECTS));
      transaction.oncomplete = () => resolve(request.result);
      // An error at the end, such as a full disk, is reported by the transaction; an earlier error, by the request.
      transaction.onabort = () => reject(transaction.error ?? request.error ?? new Error("it aborted the change"));
    });
  } catch (error) {
    const isFull = error instanceof Error && error.name === "QuotaExceededError";
    throw unusable(isFull ? "it is full" : messageOf(error), error);
  }
}

async function create(connection: Connection, key: string, value: string): Promise<boolean> {
  try {
    await run(connection, "readwrite", (objects) => objects.add(value, key));
    return true;
  } catch (error) {
    const { cause } = error as Error;
    if (cause instanceof DOMException && cause.name === "ConstraintError") return false;
    throw error;
  }
}

function asText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function unusable(why: string, cause?: unknown): FastPayError {
  const action = "allow this site to store data, and free disk space";
  return new FastPayError("storage", `the browser's storage cannot be used: ${why}`, action, { cause });
}

function outdated(): FastPayError {
  const message = "a newer version of this page changed the browser's storage";
  return new FastPayError("storage", message, "reload this page");
}
