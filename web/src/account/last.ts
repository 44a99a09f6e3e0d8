/** The last wallet or key used in this browser. Stores a wallet's id or a key's account, and no key. */

/** The `localStorage` key of the last used wallet's id. */
export const LAST_WALLET = "fastpay.wallet";
/** The `localStorage` key of the last used browser key's account. */
export const LAST_KEY = "fastpay.key";

/** True if a user connected a wallet or a key in this browser, and did not disconnect. */
export function wasUsed(): boolean {
  return [LAST_WALLET, LAST_KEY].some((place) => localStorage.getItem(place) !== null);
}
