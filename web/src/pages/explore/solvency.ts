/** Whether the contract holds what accounts hold, asset by asset. */

import type { Address, FastPayClient } from "@fastpay/sdk";

import type { AuthorityStatus } from "./statuses";

/** What the contract and the authorities say of an asset. */
export interface Solvency {
  /** The contract's balance. */
  readonly held: bigint;
  /** The amount that the contract holds for accounts and for recipients that refused a payout. */
  readonly totalBalance: bigint;
  readonly totalClaims: bigint;
  /** What accounts hold: f + 1 authorities say that it is so much or more. Undefined if too few answer. */
  readonly accounts: bigint | undefined;
  /**
   * Whether the contract's balance covers its debts, and its debts cover the accounts' balances. Undefined if too few
   * authorities answer.
   */
  readonly isCovered: boolean | undefined;
}

/** The sum of all accounts, as f + 1 authorities say that it is or exceeds; undefined if too few do. */
export function sumOfAccounts(asset: Address, statuses: readonly AuthorityStatus[], faultsTolerated: number): bigint | undefined {
  const sums = statuses.map(({ shards }) =>
    shards.flatMap(({ totals }) => totals.filter((one) => one.asset === asset)).reduce((sum, { accounts }) => sum + accounts, 0n),
  );
  return sums.sort((a, b) => (a < b ? 1 : a > b ? -1 : 0))[faultsTolerated];
}

/**
 * Asks the authorities and then the contract: what was deposited since is in the contract only. What was redeemed since
 * is not, so what seems uncovered is asked for once more.
 */
export async function solvencyOf(client: FastPayClient, asset: Address, ask: () => Promise<readonly AuthorityStatus[]>): Promise<Solvency> {
  const first = await look(client, asset, await ask());
  return first.isCovered === false ? look(client, asset, await ask()) : first;
}

async function look(client: FastPayClient, asset: Address, statuses: readonly AuthorityStatus[]): Promise<Solvency> {
  const { faultsTolerated } = await client.committee();
  const accounts = sumOfAccounts(asset, statuses, faultsTolerated);
  const { contract } = client.domain;
  const [held, { totalBalance, totalClaims }] = await Promise.all([client.balanceOnChain(contract, asset), client.assetStatus(asset)]);
  const isHeld = held >= totalBalance + totalClaims;
  const isCovered = !isHeld ? false : accounts === undefined ? undefined : totalBalance >= accounts;
  return { held, totalBalance, totalClaims, accounts, isCovered };
}
