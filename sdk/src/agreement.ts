/**
 * The agreed state of an account, computed from answers that may be false or outdated. Pure. A value counts when f + 1
 * authorities report it, because one of them is honest. A sequence number is proven by the certificate before it.
 */

import type { Address } from "./bytes.js";
import type { AccountState, AgreedBalance } from "./views.js";

/** The balance of an authority that is further behind than this many orders is not carried forward. */
export const LAG_MAX = 1_000n;

function balanceOf(state: AccountState, asset: Address): bigint {
  return state.holdings.find((holding) => holding.asset === asset)?.balance ?? 0n;
}

/** The position of an authority's answer in the account's stream of events. */
export function positionOf({ nextSequence, received, deposits }: AccountState): string {
  return `${nextSequence}.${received}.${deposits}`;
}

/** The highest value that at least `trusted` balances meet or exceed; undefined if there are fewer balances. */
function supportedBy(balances: readonly bigint[], trusted: number): bigint | undefined {
  return [...balances].sort((a, b) => (a < b ? 1 : -1))[trusted - 1];
}

/**
 * The balance of an asset that at least `trusted` authorities confirm after subtracting the account's own orders before
 * `next`. Undefined if too few answers can be compared. `spent` returns the amount that the order of a number moved.
 */
export function supportedBalance(
  states: readonly AccountState[],
  next: bigint,
  asset: Address,
  trusted: number,
  spent: (sequence: bigint) => { asset: Address; amount: bigint } | undefined,
): bigint | undefined {
  const carried = states.map((state) => {
    if (state.nextSequence > next || next - state.nextSequence > LAG_MAX) return undefined;
    let balance = balanceOf(state, asset);
    for (let sequence = state.nextSequence; sequence < next; sequence += 1n) {
      const moved = spent(sequence);
      if (moved === undefined) return undefined;
      if (moved.asset === asset) balance -= moved.amount;
    }
    return balance;
  });
  return supportedBy(
    carried.filter((balance) => balance !== undefined),
    trusted,
  );
}

/**
 * The agreed balance of each asset. Omits assets that fewer than `trusted` authorities list, because a liar could list
 * many, and assets whose zero balance `trusted` authorities confirm.
 */
export function agreedBalances(states: readonly AccountState[], trusted: number): AgreedBalance[] {
  const holdings = states.map((state) => new Map(state.holdings.map(({ asset, balance }) => [asset, balance])));
  const listers = new Map<Address, number>();
  for (const asset of holdings.flatMap((listed) => [...listed.keys()])) {
    listers.set(asset, (listers.get(asset) ?? 0) + 1);
  }
  const assets = [...listers].flatMap(([asset, count]) => (count >= trusted ? [asset] : [])).sort();
  return assets
    .map((asset) => agreedOn(asset, states, holdings.map((listed) => listed.get(asset) ?? 0n), trusted))
    .filter((balance) => balance !== undefined)
    .filter((balance) => balance.balance !== 0n || balance.agreeing < trusted);
}

/** An authority's progress: the account's next number, and the number of credits received. */
interface Position {
  readonly sequence: bigint;
  readonly known: bigint;
}

function furthestFirst(a: Position, b: Position): number {
  return compare(b.sequence, a.sequence) || compare(b.known, a.known);
}

/** The agreed balance of one asset. Undefined if fewer than `trusted` authorities have answered. */
export function agreedBalance(
  states: readonly AccountState[],
  asset: Address,
  trusted: number,
): AgreedBalance | undefined {
  return agreedOn(asset, states, states.map((state) => balanceOf(state, asset)), trusted);
}

/** The agreed balance of an asset, given its balance in each of the states. */
function agreedOn(
  asset: Address,
  states: readonly AccountState[],
  balances: readonly bigint[],
  trusted: number,
): AgreedBalance | undefined {
  // The positions of the authorities that report a balance, by balance.
  const byBalance = new Map<bigint, Position[]>();
  for (const [number, state] of states.entries()) {
    const balance = balances[number] ?? 0n;
    const position = { sequence: state.nextSequence, known: state.received + state.deposits };
    byBalance.set(balance, [...(byBalance.get(balance) ?? []), position]);
  }
  const supported = [...byBalance].flatMap(([balance, positions]) => {
    // At least one honest authority is at this position or further; higher positions may be lies.
    const proven = positions.sort(furthestFirst)[trusted - 1];
    return proven === undefined ? [] : [{ balance, proven, count: positions.length }];
  });
  supported.sort((a, b) => furthestFirst(a.proven, b.proven) || b.count - a.count);
  const balance = supported[0]?.balance ?? supportedBy(balances, trusted);
  if (balance === undefined) return undefined;
  return { asset, balance, agreeing: byBalance.get(balance)?.length ?? 0, answered: states.length };
}

/** The next sequence numbers above `known` that authorities claim, highest first. Each still needs a proof. */
export function claimsAbove(states: readonly AccountState[], known: bigint): bigint[] {
  const claims = new Set(states.map((state) => state.nextSequence).filter((claim) => claim > known));
  return [...claims].sort((a, b) => compare(b, a));
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b);
}
