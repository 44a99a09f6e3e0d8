/**
 * The browser's own storage: IndexedDB, whose transactions are atomic and can be made to wait for the disk, and Web
 * Locks across pages. A browser may still clear it; what is unfinished then is found at the authorities.
 */

import { FastPayError, messageOf } from "../errors.js";
import { busy, LocalLocks } from "./memory.js";
import type { OrderStore } from "./store.js";

const OBJECTS = "entries";

/** An `OrderStore` in an IndexedDB database of this name. Throws `storage` where there is no IndexedDB. */
export async function browserStore(database = "fastpay"): Promise<OrderStore> {
  if (typeof indexedDB === "undefined") throw unusable("this environment has no IndexedDB");
  const opened = await open(database);
  // Without Web Locks (pages that are not served securely) each page has locks of its own. `create` keeps orders apart.
  const locks = globalThis.navigator?.locks === undefined ? new LocalLocks() : webLocks(database);
  return {
    get: async (key) => asText(await run(opened, "readonly", (objects) => objects.get(key))),
    create: (key, value) => create(opened, key, value),
    keys: async (prefix) => {
      const range = IDBKeyRange.bound(prefix, `${prefix}\uffff`);
      const keys = await run(opened, "readonly", (objects) => objects.getAllKeys(range));
      return keys.filter((key) => typeof key === "string").sort();
    },
    exclusively: (name, patienceMs, task) => locks.exclusively(name, patienceMs, task),
  };
}

function webLocks(database: string): Pick<OrderStore, "exclusively"> {
  return {
    async exclusively<T>(name: string, patienceMs: number, task: () => Promise<T>): Promise<T> {
      const signal = AbortSignal.timeout(patienceMs);
      let isOurs = false;
      try {
        return await navigator.locks.request(`${database}:${name}`, { signal }, () => {
          isOurs = true;
          return task();
        });
      } catch (error) {
        throw isOurs || !signal.aborted ? error : busy();
      }
    },
  };
}

function open(database: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(database, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(OBJECTS);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(unusable(messageOf(request.error)));
    request.onblocked = () => reject(unusable("another page holds an older version of it open"));
  });
}

function run<T>(
  database: IDBDatabase,
  mode: IDBTransactionMode,
  act: (objects: IDBObjectStore) => IDBRequest<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(OBJECTS, mode, { durability: "strict" });
    const request = act(transaction.objectStore(OBJECTS));
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = () => reject(request.error ?? transaction.error);
    transaction.onabort = () => reject(request.error ?? transaction.error);
  });
}

async function create(database: IDBDatabase, key: string, value: string): Promise<boolean> {
  try {
    await run(database, "readwrite", (objects) => objects.add(value, key));
    return true;
  } catch (error) {
    if (error instanceof DOMException && error.name === "ConstraintError") return false;
    throw unusable(messageOf(error));
  }
}

function asText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function unusable(why: string): FastPayError {
  const action = "allow this site to keep data, and make room on the disk; nothing was sent";
  return new FastPayError("storage", `the browser's storage cannot be used: ${why}`, action);
}
