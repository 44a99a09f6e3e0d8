/** The user's names for accounts, stored in this browser. */

import type { AccountId } from "@fastpay/sdk";
import { useLocalStorage } from "@mantine/hooks";
import { useCallback } from "react";

/** A longer name would not fit beside an amount. */
export const CONTACT_NAME_MAX = 40;
/** About 100 kB of the 5 MB that a browser allows a host. */
const CONTACTS_MAX = 1_000;

/** Names by account, and a function to change them. */
export interface Contacts {
  readonly names: ReadonlyMap<AccountId, string>;
  /**
   * Names an account; an empty name removes it. False if another account has the name, or if there are too many names.
   */
  readonly rename: (account: AccountId, name: string) => boolean;
}

/** The names stored in this browser. */
export function useContacts(): Contacts {
  const [names, setNames] = useLocalStorage<ReadonlyMap<AccountId, string>>({
    key: "fastpay.contacts",
    defaultValue: NOBODY,
    serialize: (map) => JSON.stringify([...map]),
    deserialize: readNames,
    getInitialValueInEffect: false,
  });
  const rename = useCallback(
    (account: AccountId, name: string) => {
      const others = [...names].filter(([known]) => known !== account);
      const text = name.trim().slice(0, CONTACT_NAME_MAX);
      if (others.length >= CONTACTS_MAX || others.some(([, known]) => isSameName(known, text))) return false;
      setNames(new Map(text === "" ? others : [...others, [account, text]]));
      return true;
    },
    [names, setNames],
  );
  return { names, rename };
}

const NOBODY: ReadonlyMap<AccountId, string> = new Map();

/** True if people could confuse the two names: they differ at most in case and outer spaces. */
export function isSameName(one: string, other: string): boolean {
  return one.trim().toLowerCase() === other.trim().toLowerCase();
}

function readNames(text: string | undefined): ReadonlyMap<AccountId, string> {
  try {
    const entries: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(entries)) return NOBODY;
    return new Map(entries.filter(([account, name]) => /^0x[0-9a-f]{64}$/.test(account) && typeof name === "string"));
  } catch {
    return NOBODY;
  }
}
