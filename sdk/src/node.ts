/** For Node.js: storage in a folder. Imported as `@fastpay/sdk/node`. */

import { randomBytes } from "node:crypto";
import { link, mkdir, open, readdir, readFile, unlink } from "node:fs/promises";
import { join } from "node:path";

import { FastPayError, messageOf } from "./errors.js";
import { LocalLocks } from "./storage/memory.js";
import type { OrderStore } from "./storage/store.js";

/**
 * An `OrderStore` in a folder. Each entry is a file, which is written, synced, and then atomically linked under its
 * name. Two programs may use one folder, because `create` never overwrites an entry. Throws `storage`.
 */
export async function folderStore(folder: string): Promise<OrderStore> {
  await orUnusable(mkdir(folder, { recursive: true, mode: 0o700 }));
  const locks = new LocalLocks();
  return {
    get: (key) => orUnusable(readIfThere(join(folder, encodeURIComponent(key)))),
    create: (key, value) => orUnusable(create(folder, encodeURIComponent(key), value)),
    keys: async (prefix) => {
      const names = await orUnusable(readdir(folder));
      const keys = names.filter((name) => !name.startsWith(".")).map(decodeURIComponent);
      return keys.filter((key) => key.startsWith(prefix)).sort();
    },
    exclusively: (name, patienceMs, task) => locks.exclusively(name, patienceMs, task),
  };
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function create(folder: string, name: string, value: string): Promise<boolean> {
  const draft = join(folder, `.${randomBytes(8).toString("hex")}`);
  try {
    await writeDown(draft, value);
    // Unlike a rename, a link never replaces an existing file.
    await link(draft, join(folder, name));
    await syncFolder(folder);
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  } finally {
    await unlink(draft);
  }
}

async function writeDown(path: string, value: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(value);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

async function orUnusable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const action = "free disk space, and check the folder's permissions";
    throw new FastPayError("storage", `the folder cannot be used: ${messageOf(error)}`, action, { cause: error });
  }
}
