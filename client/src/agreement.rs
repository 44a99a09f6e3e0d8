//! Derives an account's state from the answers of authorities, some of which may be false or outdated. Pure rules.
//!
//! A value is agreed if f + 1 authorities report it, because one of them is honest. Sequence numbers are not agreed:
//! the certificate before a number proves it.

use std::collections::BTreeMap;

use crate::ClientError;
use fastpay_core::{Amount, Asset, AuthorityName, Balance, SequenceNumber};
use fastpay_rpc::AccountState;
use serde::Serialize;

/// A balance is carried forward over at most this many orders.
const LAG_MAX: u64 = 1000;

/// The highest balance of an asset that at least `trusted` authorities report or exceed, after deduction of the
/// account's own orders before `next`. `None` if fewer than `trusted` balances can be carried forward to `next`.
///
/// `spent` returns the asset and amount that the order of a number moved, or `None` if that is unknown.
#[must_use]
pub fn supported_balance(
    states: &[&AccountState],
    next: SequenceNumber,
    asset: Asset,
    trusted: usize,
    spent: impl Fn(SequenceNumber) -> Option<(Asset, Amount)>,
) -> Option<Balance> {
    let carried = |state: &AccountState| {
        if state.next_sequence > next || next.0.saturating_sub(state.next_sequence.0) > LAG_MAX {
            return None;
        }
        let mut balance = state.balance(asset);
        for sequence in state.next_sequence.0..next.0 {
            let (moved, amount) = spent(SequenceNumber(sequence))?;
            if moved == asset {
                balance = balance.debit(amount);
            }
        }
        Some(balance)
    };
    let mut balances: Vec<_> = states.iter().filter_map(|state| carried(state)).collect();
    balances.sort_unstable();
    balances.iter().nth_back(trusted.saturating_sub(1)).copied()
}

/// The committee's agreed balance of one asset of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgreedBalance {
    /// The asset.
    pub asset: Asset,
    /// The balance that f + 1 authorities report; without such a balance, the highest that f + 1 authorities report or
    /// exceed.
    pub balance: Balance,
    /// The number of authorities that report exactly this balance.
    pub agreeing: usize,
    /// How many answered.
    pub answered: usize,
}

/// The agreed balances, asset by asset, without assets of which every authority reports zero.
#[must_use]
pub fn agreed_balances(states: &[&AccountState], trusted: usize) -> Vec<AgreedBalance> {
    let assets = states.iter().flat_map(|state| state.holdings.iter().map(|(asset, _)| *asset));
    let assets: std::collections::BTreeSet<_> = assets.collect();
    let agreed = assets.into_iter().filter_map(|asset| agreed_balance(states, asset, trusted));
    agreed.filter(|agreed| agreed.balance != Balance::ZERO || agreed.agreeing < trusted).collect()
}

fn agreed_balance(states: &[&AccountState], asset: Asset, trusted: usize) -> Option<AgreedBalance> {
    // By value: how many authorities report it, and the most advanced state among them (next number, then credits).
    let mut by_balance: BTreeMap<Balance, (usize, SequenceNumber, u64)> = BTreeMap::new();
    for state in states {
        let entry = by_balance.entry(state.balance(asset)).or_default();
        entry.0 = entry.0.saturating_add(1);
        let known = state.received.saturating_add(state.deposits);
        (entry.1, entry.2) = (entry.1, entry.2).max((state.next_sequence, known));
    }
    let confirmed = by_balance.iter().filter(|(_, (count, ..))| *count >= trusted);
    let newest = confirmed.max_by_key(|(_, (count, sequence, known))| (*sequence, *known, *count));
    let (balance, agreeing) = match newest {
        Some((balance, (count, ..))) => (*balance, *count),
        None => {
            let mut all: Vec<_> = states.iter().map(|state| state.balance(asset)).collect();
            all.sort_unstable();
            let balance = *all.iter().nth_back(trusted.saturating_sub(1))?;
            (balance, by_balance.get(&balance).map_or(0, |(count, ..)| *count))
        }
    };
    Some(AgreedBalance { asset, balance, agreeing, answered: states.len() })
}

/// The reported next sequence numbers above `known`, highest first. The caller must have each of them proven.
#[must_use]
pub fn claims_above(
    answers: &[(AuthorityName, Result<AccountState, ClientError>)],
    known: SequenceNumber,
) -> Vec<SequenceNumber> {
    let states = answers.iter().filter_map(|(_, answer)| answer.as_ref().ok());
    let mut claims: Vec<_> = states.map(|state| state.next_sequence).filter(|claim| *claim > known).collect();
    claims.sort_unstable_by(|a, b| b.cmp(a));
    claims.dedup();
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(next: u64, balance: i64) -> AccountState {
        let amount = Amount(u128::from(balance.unsigned_abs()));
        let balance = if balance < 0 { Balance::ZERO.debit(amount) } else { Balance::from(amount) };
        AccountState {
            next_sequence: SequenceNumber(next),
            holdings: vec![(Asset::ETHER, balance)],
            ..AccountState::default()
        }
    }

    fn supported(states: &[AccountState], next: u64) -> Option<i64> {
        let states: Vec<_> = states.iter().collect();
        let spent = |sequence: SequenceNumber| (sequence.0 >= 3).then_some((Asset::ETHER, Amount(10)));
        supported_balance(&states, SequenceNumber(next), Asset::ETHER, 2, spent)
            .map(|balance| balance.to_string().parse().unwrap())
    }

    #[test]
    fn a_single_authority_cannot_make_up_or_hide_money() {
        assert_eq!(supported(&[state(5, 100), state(5, 100), state(5, 1_000_000)], 5), Some(100));
        assert_eq!(supported(&[state(5, 100), state(5, 100), state(5, -7)], 5), Some(100));
    }

    #[test]
    fn authorities_that_lag_are_carried_forward_by_known_orders() {
        // Two have not seen orders 3 and 4, which moved 10 each.
        assert_eq!(supported(&[state(5, 80), state(3, 100), state(3, 100)], 5), Some(80));
        // What order 2 moved is not known, so these two cannot be judged.
        assert_eq!(supported(&[state(5, 80), state(2, 100), state(2, 100)], 5), None);
        // Claims of the future are not believed.
        assert_eq!(supported(&[state(5, 80), state(9, 100), state(9, 100)], 5), None);
    }

    #[test]
    fn balances_are_what_an_honest_authority_says_and_the_newest_of_that() {
        let check = |states: &[AccountState], expected: &[(i64, usize)]| {
            let states: Vec<_> = states.iter().collect();
            let agreed = agreed_balances(&states, 2);
            let found: Vec<_> =
                agreed.iter().map(|a| (a.balance.to_string().parse::<i64>().unwrap(), a.agreeing)).collect();
            assert_eq!(found, expected);
        };
        check(&[state(1, 50), state(1, 50), state(1, 50), state(0, 60)], &[(50, 3)]);
        check(&[state(1, 50), state(1, 50), state(0, 60), state(0, 60)], &[(50, 2)]);
        check(&[state(1, 50), state(1, 60), state(1, 70)], &[(60, 1)]);
        check(&[state(1, 0), state(1, 0), state(1, 0)], &[]);
        // A lone liar's asset is shown to hold nothing.
        check(&[AccountState::default(), AccountState::default(), state(9, 9)], &[]);
        check(&[], &[]);
    }
}
