//! Estimates the gas of a transaction without asking a node: a line through the figures that the contract's own tests
//! measure (`snapshots/gas.json`). The estimate decides between plans and whether waiting pays off.
//!
//! Also gives the gas limit of a transaction: its cost at most, whatever payees and tokens do. The limit includes the
//! full allowance of each payout, so no payee can make a transaction run out of gas. Unused gas costs nothing.

use fastpay_core::{Amount, Asset, Redemption};
use fastpay_ethereum::{CALL_GAS, ETHER_GAS, TOKEN_GAS};

/// A transaction by itself, and what its first redemption touches that the others share.
const TRANSACTION: u64 = 29_400;
/// One vote: its calldata, the recovery of its signer.
const VOTE: u64 = 4_420;
/// At most.
const VOTE_MAX: u64 = 6_000;
/// One redemption with its own votes, without the cost of the votes.
const CERTIFIED: u64 = 24_100;
/// One redemption among those that one quorum voted for together.
const BATCHED: u64 = 22_460;

/// A fee is a separate payout: in ETH, and in a token.
const ETHER_FEE: u64 = 7_100;
const TOKEN_FEE: u64 = 15_000;
/// A payout in a token, beyond one in ETH.
const TOKEN_PAYOUT: u64 = 8_500;

/// At most, a transaction by itself, with what its redemptions share and the rounding of a call's gas.
const TRANSACTION_MAX: u64 = 75_000;
/// At most, a redemption without its payouts: calldata, checks, events, and storage that it writes for the first time.
const ORDER_MAX: u64 = 36_000;
/// At most, a payout beyond its allowance: the call, and the claim that it becomes where it is refused.
const PAYOUT_MAX: u64 = 42_000;
/// At most, what a token adds: its own balance at the contract, and the sum of its claims.
const ASSET_MAX: u64 = 45_000;
/// At most, a fee in ETH: it goes to our own address, which runs no code.
const OWN_PAYOUT_MAX: u64 = 12_000;

/// The kind of payouts that a redemption makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Payouts {
    pub(crate) is_token: bool,
    pub(crate) has_fee: bool,
}

impl Payouts {
    pub(crate) fn of(redemption: &Redemption) -> Self {
        Self { is_token: redemption.asset != Asset::ETHER, has_fee: redemption.fee != Amount::ZERO }
    }

    /// The gas beyond that of a payout of ETH without a fee, by the model.
    pub(crate) fn gas(self) -> u64 {
        match (self.is_token, self.has_fee) {
            (false, false) => 0,
            (false, true) => ETHER_FEE,
            (true, false) => TOKEN_PAYOUT,
            (true, true) => TOKEN_PAYOUT.saturating_add(TOKEN_FEE),
        }
    }

    /// The most that they take, where every callee burns its allowance and refuses.
    fn gas_max(self) -> u64 {
        const ETHER: u64 = ETHER_GAS + PAYOUT_MAX;
        const TOKEN: u64 = TOKEN_GAS + PAYOUT_MAX;
        match (self.is_token, self.has_fee) {
            (false, false) => ETHER,
            (false, true) => ETHER + OWN_PAYOUT_MAX,
            (true, false) => ASSET_MAX + TOKEN,
            (true, true) => ASSET_MAX + TOKEN + TOKEN,
        }
    }
}

/// The contract call that submits redemptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plan {
    /// Each with its own certificate.
    Certificates,
    /// All under one vote of the current committee.
    Batch,
}

impl Plan {
    /// The gas of a transaction with this many redemptions and this many votes in a quorum.
    #[must_use]
    pub fn gas(self, quorum: usize, count: usize) -> u64 {
        let (quorum, count) = (to_u64(quorum), to_u64(count));
        let votes = VOTE.saturating_mul(quorum);
        let items = match self {
            Self::Certificates => CERTIFIED.saturating_add(votes).saturating_mul(count),
            Self::Batch => BATCHED.saturating_mul(count).saturating_add(votes),
        };
        TRANSACTION.saturating_add(items)
    }

    /// The most gas that a transaction without redemptions takes, with what the contract wants to see left at its last
    /// payout: a fee has its whole allowance then, of which our own address takes nothing.
    pub(crate) fn base_gas_max(self, quorum: usize) -> u64 {
        const LEFT_AT_FEE: u64 = ETHER_GAS + ETHER_GAS / 63 + CALL_GAS;
        let votes = if self == Self::Batch { VOTE_MAX.saturating_mul(to_u64(quorum)) } else { 0 };
        TRANSACTION_MAX.saturating_add(LEFT_AT_FEE).saturating_add(votes)
    }

    /// The most gas that a redemption adds.
    pub(crate) fn item_gas_max(self, quorum: usize, payouts: Payouts) -> u64 {
        let votes = if self == Self::Certificates { VOTE_MAX.saturating_mul(to_u64(quorum)) } else { 0 };
        ORDER_MAX.saturating_add(payouts.gas_max()).saturating_add(votes)
    }

    /// The gas limit of a transaction with these redemptions.
    pub(crate) fn gas_max(self, quorum: usize, items: impl IntoIterator<Item = Payouts>) -> u64 {
        let items = items.into_iter().map(|payouts| self.item_gas_max(quorum, payouts));
        items.fold(self.base_gas_max(quorum), u64::saturating_add)
    }

    /// The share of each of them, rounded up.
    #[must_use]
    pub fn gas_each(self, quorum: usize, count: usize) -> u64 {
        self.gas(quorum, count).div_ceil(to_u64(count.max(1)))
    }

    /// The plan for so many redemptions with certificates that the contract still takes. A single one is not
    /// worth the authorities' trouble.
    #[must_use]
    pub fn cheapest(quorum: usize, count: usize) -> Self {
        let batch_pays = count > 1 && Self::Batch.gas(quorum, count) < Self::Certificates.gas(quorum, count);
        if batch_pays { Self::Batch } else { Self::Certificates }
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Certificates => "certificates",
            Self::Batch => "batch",
        })
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUORUMS: [(usize, usize); 4] = [(4, 3), (10, 7), (20, 14), (100, 67)];

    fn quorum(n: usize) -> usize {
        QUORUMS.iter().find(|(size, _)| *size == n).unwrap().1
    }

    #[test]
    fn the_model_is_within_a_twentieth_of_what_is_measured() {
        let text = std::fs::read_to_string(fastpay_testkit::anvil::workspace_root().join("snapshots/gas.json"));
        let measured: std::collections::BTreeMap<String, u64> = serde_json::from_str(&text.unwrap()).unwrap();
        let figures = [
            ("redeem_n4", Plan::Certificates, 4, 1),
            ("redeem_n10", Plan::Certificates, 10, 1),
            ("redeem_n20", Plan::Certificates, 20, 1),
            ("bundle10_n4", Plan::Certificates, 4, 10),
            ("batch100_n4", Plan::Batch, 4, 100),
            ("batch100_n100", Plan::Batch, 100, 100),
        ];
        for (name, plan, n, count) in figures {
            let (found, expected) = (plan.gas_each(quorum(n), count), measured[name]);
            assert!(found.abs_diff(expected) * 20 <= expected, "{name}: {found} by the model, {expected} measured");
        }
    }

    #[test]
    fn fees_and_tokens_cost_what_is_measured() {
        // Whole transactions, by the contract's measurements.
        let check = |is_token, has_fee, expected: u64| {
            let found = Plan::Certificates.gas(3, 1) + Payouts { is_token, has_fee }.gas();
            assert!(found.abs_diff(expected) * 20 <= expected, "{found} by the model, {expected} measured");
        };
        check(false, false, 66_800);
        check(false, true, 73_900);
        check(true, false, 75_300);
    }

    #[test]
    fn the_most_is_never_below_what_is_expected() {
        for (_, quorum) in QUORUMS {
            for plan in [Plan::Certificates, Plan::Batch] {
                for (is_token, has_fee) in [(false, false), (false, true), (true, false), (true, true)] {
                    let payouts = Payouts { is_token, has_fee };
                    for count in [1, 2, 50] {
                        let most = plan.gas_max(quorum, vec![payouts; count]);
                        let burned = count as u64 * if is_token { TOKEN_GAS } else { ETHER_GAS };
                        assert!(most > plan.gas(quorum, count) + count as u64 * payouts.gas() + burned);
                    }
                }
            }
        }
        assert_eq!(Plan::Batch.gas_max(usize::MAX, []), u64::MAX);
    }

    #[test]
    fn one_goes_by_its_certificate_and_company_by_a_batch() {
        for (_, quorum) in QUORUMS {
            assert_eq!(Plan::cheapest(quorum, 1), Plan::Certificates);
            assert_eq!(Plan::cheapest(quorum, 2), Plan::Batch);
            assert_eq!(Plan::cheapest(quorum, 256), Plan::Batch);
        }
    }

    #[test]
    fn company_never_makes_a_share_dearer_and_nothing_overflows() {
        for plan in [Plan::Certificates, Plan::Batch] {
            assert!((1..256).all(|count| plan.gas_each(3, count + 1) <= plan.gas_each(3, count)));
            assert_eq!(plan.gas(usize::MAX, usize::MAX), u64::MAX);
            assert_eq!(plan.gas_each(3, 0), plan.gas(3, 0));
        }
    }
}
