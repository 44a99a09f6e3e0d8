/** Who used this page before, in this browser: names of a wallet and an account, no address and no key. */

/** The place of the wallet to come back to. */
export const LAST_WALLET = "fastpay.wallet";
/** The place of the account of the last used key. */
export const LAST_KEY = "fastpay.key";

/** True if somebody used this page with a wallet or a key, and did not disconnect. */
export function wasUsed(): boolean {
  return [LAST_WALLET, LAST_KEY].some((place) => localStorage.getItem(place) !== null);
}
