/** Puts amounts into error messages, in whole units and with the asset's symbol. */

import { formatAccount, type AccountId } from "../accounts.js";
import { formatAmount } from "../amounts.js";
import type { Address } from "../bytes.js";
import type { Contract } from "../chain/contract.js";
import { assetInfo } from "../chain/tokens.js";
import { FastPayError, isFastPayError } from "../errors.js";
import { ETHER } from "../transfer.js";

/** An amount of an asset, or the token's address alone if its decimals are unknown. */
async function moneyText(contract: Contract, asset: Address, units: bigint): Promise<string> {
  if (asset === ETHER) return `${formatAmount(units, 18)} ETH`;
  const info = await assetInfo(contract, asset).catch(() => undefined);
  return info === undefined ? `an amount of token ${asset}` : `${formatAmount(units, info.decimals)} ${info.symbol}`;
}

/** Adds the balance and the needed amount to the message of `insufficient-funds`. */
export async function worded<T>(contract: Contract, act: Promise<T>): Promise<T> {
  try {
    return await act;
  } catch (error) {
    if (!isFastPayError(error, "insufficient-funds")) throw error;
    const { account, asset, needed, available } = error.details;
    if (typeof account !== "string" || typeof asset !== "string" || typeof needed !== "bigint" || typeof available !== "bigint") throw error;
    const [has, needs] = await Promise.all([available, needed].map((units) => moneyText(contract, asset as Address, units)));
    const message = `account ${formatAccount(account as AccountId)} has ${has} and needs ${needs}`;
    throw new FastPayError("insufficient-funds", message, error.action, { details: error.details, cause: error });
  }
}
