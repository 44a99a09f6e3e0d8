/** The browser's encrypted keys. No secret is stored unencrypted. */

import { FastPayError, messageOf, readKeyFile, type AccountId, type KeyFile } from "@fastpay/sdk";

const STORED = "fastpay.keys";

/** All key files stored in this browser. */
export function storedKeys(): readonly KeyFile[] {
  try {
    return texts().flatMap((text) => readable(text) ?? []);
  } catch {
    return [];
  }
}

/** Stores a key file, and checks that it is stored. Throws `storage`. */
export function storeKey(file: KeyFile): void {
  write([...others(file.account), file.text]);
  if (!texts().includes(file.text)) throw unusable("the key was not stored");
}

/** Deletes a key file. Throws `storage`. */
export function forgetKey(account: AccountId): void {
  write(others(account));
}

/** The stored entries except an account's key. Includes unreadable ones, so that none is lost. */
function others(account: AccountId): string[] {
  return texts().filter((text) => readable(text)?.account !== account);
}

/** The stored entries. Throws `storage` if they are unreadable, because a new key must not overwrite them. */
function texts(): string[] {
  let kept: unknown;
  try {
    kept = JSON.parse(localStorage.getItem(STORED) ?? "[]");
  } catch (error) {
    throw unusable(messageOf(error));
  }
  if (!Array.isArray(kept) || !kept.every((text) => typeof text === "string")) throw unusable("the stored key differs");
  return kept;
}

function readable(text: string): KeyFile | undefined {
  try {
    return readKeyFile(text);
  } catch {
    return undefined;
  }
}

/** Calls back when another page of this browser has stored or deleted a key. Returns a function that stops it. */
export function onStoredElsewhere(listener: () => void): () => void {
  const changed = ({ key }: StorageEvent): void => {
    if (key === STORED || key === null) listener();
  };
  window.addEventListener("storage", changed);
  return () => window.removeEventListener("storage", changed);
}

function write(kept: readonly string[]): void {
  try {
    localStorage.setItem(STORED, JSON.stringify(kept));
  } catch (error) {
    throw unusable(messageOf(error));
  }
}

function unusable(why: string): FastPayError {
  const action = "allow this site to store data, or free disk space";
  return new FastPayError("storage", `the browser's storage cannot be used: ${why}`, action);
}
