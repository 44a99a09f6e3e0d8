/** Puts amounts into error messages, in whole units and with the asset's symbol. */

import { formatAccount, type AccountId } from "../accounts.js";
import { formatAmount } from "../amounts.js";
import type { Address } from "../bytes.js";
import { FastPayError, isFastPayError } from "../errors.js";
import type { Primary } from "../primary.js";

/** An amount of an asset, or the token's address alone if its decimals are unknown. */
async function moneyText(primary: Primary, asset: Address, units: bigint): Promise<string> {
  const info = await primary.assetInfo(asset).catch(() => undefined);
  return info === undefined ? `an amount of token ${asset}` : `${formatAmount(units, info.decimals)} ${info.symbol}`;
}

/** Adds the balance and the needed amount to the message of `insufficient-funds`. */
export async function worded<T>(primary: Primary, act: Promise<T>): Promise<T> {
  try {
    return await act;
  } catch (error) {
    if (!isFastPayError(error, "insufficient-funds")) throw error;
    const { account, asset, needed, available } = error.details;
    if (typeof account !== "string" || typeof asset !== "string" || typeof needed !== "bigint" || typeof available !== "bigint") throw error;
    const [has, needs] = await Promise.all([available, needed].map((units) => moneyText(primary, asset as Address, units)));
    const message = `account ${formatAccount(account as AccountId)} has ${has} and needs ${needs}`;
    throw new FastPayError("insufficient-funds", message, error.action, { details: error.details, cause: error });
  }
}
