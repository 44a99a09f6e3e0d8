/** Checks, for each asset, that the contract holds at least what accounts hold. */

import type { Address, FastPayClient } from "@fastpay/sdk";

import type { AuthorityStatus } from "./statuses";

/** The amounts of an asset that the contract and the authorities report. */
export interface Solvency {
  /** The contract's balance. */
  readonly held: bigint;
  /** The amount that the contract holds for accounts. */
  readonly totalBalance: bigint;
  /** The amount that the contract holds for recipients that refused a payout. */
  readonly totalClaims: bigint;
  /** The highest sum of all accounts that f + 1 authorities report or exceed. Undefined if too few answer. */
  readonly accounts: bigint | undefined;
  /**
   * Whether the contract's balance covers its debts, and its debts cover the accounts' balances. Undefined if too few
   * authorities answer.
   */
  readonly isCovered: boolean | undefined;
}

/** The highest sum of all accounts that f + 1 authorities report or exceed; undefined if too few answer. */
export function sumOfAccounts(asset: Address, statuses: readonly AuthorityStatus[], faultsTolerated: number): bigint | undefined {
  const sums = statuses.map(({ shards }) =>
    shards.flatMap(({ totals }) => totals.filter((one) => one.asset === asset)).reduce((sum, { accounts }) => sum + accounts, 0n),
  );
  return sums.sort((a, b) => (a < b ? 1 : a > b ? -1 : 0))[faultsTolerated];
}

/**
 * Asks the authorities and then the contract. A deposit in between appears at the contract only, which does no harm. A
 * redemption in between makes the asset seem uncovered, so a shortfall is checked once more.
 */
export async function solvencyOf(client: FastPayClient, asset: Address, ask: () => Promise<readonly AuthorityStatus[]>): Promise<Solvency> {
  const first = await measure(client, asset, await ask());
  return first.isCovered === false ? measure(client, asset, await ask()) : first;
}

async function measure(client: FastPayClient, asset: Address, statuses: readonly AuthorityStatus[]): Promise<Solvency> {
  const { faultsTolerated } = await client.committee();
  const accounts = sumOfAccounts(asset, statuses, faultsTolerated);
  const { primary, domain: { contract } } = client;
  // A ledger holds for the accounts exactly what its state says.
  const asked = primary === "ledger" ? undefined : client.balanceOnChain(contract, asset);
  const [onChain, { totalBalance, totalClaims }] = await Promise.all([asked, client.assetStatus(asset)]);
  const held = onChain ?? totalBalance;
  const isHeld = held >= totalBalance + totalClaims;
  const isCovered = !isHeld ? false : accounts === undefined ? undefined : totalBalance >= accounts;
  return { held, totalBalance, totalClaims, accounts, isCovered };
}
