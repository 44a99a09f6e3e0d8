/** The user's balances, in FastPay and on the chain, by asset. */

import type { AccountId, AccountView, Address } from "@fastpay/sdk";

import { useNetwork } from "../network/NetworkProvider";
import { useKnownAssets } from "./assets";
import { useAccount, useNamings, useChainBalances, type Naming } from "./queries";

/** One asset of the user. Undefined means unknown. */
export interface Holding {
  readonly asset: Address;
  readonly naming: Naming;
  /** In FastPay. */
  readonly balance: bigint | undefined;
  /** On the chain, at the address that owns the account. */
  readonly onChain: bigint | undefined;
}

/** All balances of the user, with their source. */
export interface Holdings {
  readonly list: readonly Holding[];
  readonly view: AccountView | undefined;
  readonly error: unknown;
  readonly chainError: unknown;
}

/** The user's balances. `owner` is the address whose balances on Ethereum are read. */
export function useHoldings(account: AccountId | undefined, owner: Address | undefined): Holdings {
  const { assets: known } = useKnownAssets();
  const { ledger } = useNetwork().config;
  const accountQuery = useAccount(account, known);
  const view = accountQuery.data;
  const others = (view?.balances ?? []).filter(({ asset, balance }) => balance !== 0n && !known.includes(asset));
  const assets = [...known, ...others.map(({ asset }) => asset)];
  const namings = useNamings(assets);
  const chain = useChainBalances(ledger === undefined ? owner : undefined, assets);
  const list = assets.map((asset, index) => ({
    asset,
    naming: namings[index] ?? {},
    // No authority lists an asset that the account never had.
    balance: view && (view.balances.find((one) => one.asset === asset)?.balance ?? 0n),
    onChain: chain[index]?.data,
  }));
  const chainError = [...namings, ...chain].find(({ error }) => error !== undefined && error !== null)?.error;
  return { list, view, error: accountQuery.error ?? undefined, chainError };
}
