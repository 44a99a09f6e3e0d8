//! Estimates the gas of a transaction without asking a node, by a linear model of the figures that the contract's own
//! tests measure (`snapshots/gas.json`). The estimate decides between plans and whether waiting pays off.
//!
//! It also gives gas limits: the most that a transaction can take, whatever payees and tokens do. A limit includes the
//! full allowance of each payout, so no payee can make a transaction run out of gas. Unused gas costs nothing.

use fastpay_core::{Amount, Asset, Redemption};
use fastpay_ethereum::{CALL_GAS, ETHER_GAS, TOKEN_GAS};
use serde::{Deserialize, Serialize};

/// A transaction itself, and the costs that its redemptions share and the first one pays.
const TRANSACTION: u64 = 29_400;
/// One vote: its calldata, and the recovery of its signer.
const VOTE: u64 = 4_420;
/// The upper bound of a vote.
const VOTE_MAX: u64 = 6_000;
/// A redemption with its own votes, without the cost of the votes.
const CERTIFIED: u64 = 24_100;
/// A redemption among those that one quorum voted for together.
const BATCHED: u64 = 22_460;

/// A fee, which is a separate payout: in ETH, and in a token.
const ETHER_FEE: u64 = 7_100;
const TOKEN_FEE: u64 = 15_000;
/// A payout in a token, beyond one in ETH.
const TOKEN_PAYOUT: u64 = 8_500;
/// The first of 256 orders of an account, which writes a word of the contract's bitmap for the first time.
const FIRST_ORDER: u64 = 17_100;
/// A new payee: without ETH, it becomes an account; without tokens, it gets a slot in the token's storage.
const NEW_ETHER_PAYEE: u64 = 25_000;
const NEW_TOKEN_PAYEE: u64 = 17_100;

/// The upper bound of a transaction itself, with the shared costs of its redemptions and the rounding of a call's gas.
const TRANSACTION_MAX: u64 = 75_000;
/// The upper bound of a redemption without its payouts: calldata, checks and events.
const ORDER_MAX: u64 = 14_000;
/// The upper bound of what a certificate of its own adds to a redemption, besides its votes.
const CERTIFICATE_MAX: u64 = 3_000;
/// The upper bound of a payout of ETH beyond its allowance: the call, and the claim that a refused payout becomes.
const PAYOUT_MAX: u64 = 36_500;
/// The upper bound of what a token adds to that: its own balance at the contract, and the sum of its claims.
const ASSET_MAX: u64 = 60_000;
/// The upper bound of a fee in ETH: it goes to our own address, which runs no code.
const OWN_PAYOUT_MAX: u64 = 8_000;

/// The properties of a redemption that change its gas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Payouts {
    pub(crate) is_token: bool,
    pub(crate) has_fee: bool,
    pub(crate) firsts: Firsts,
}

/// Whether a redemption would be the first of a kind, by the newest block when it was seen. Both only turn false later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Firsts {
    /// None of the 256 orders that share a word of the bitmap with it has been redeemed.
    pub order: bool,
    /// Its payee owns nothing of the asset.
    pub payee: bool,
}

impl Firsts {
    /// The most expensive case.
    pub(crate) const ALL: Self = Self { order: true, payee: true };
}

impl Payouts {
    pub(crate) fn of(redemption: &Redemption, firsts: Firsts) -> Self {
        Self { is_token: redemption.asset != Asset::ETHER, has_fee: redemption.fee != Amount::ZERO, firsts }
    }

    /// The gas beyond that of a payout of ETH without a fee to a known payee, by the model.
    pub(crate) fn gas(self) -> u64 {
        let usual = match (self.is_token, self.has_fee) {
            (false, false) => 0,
            (false, true) => ETHER_FEE,
            (true, false) => TOKEN_PAYOUT,
            (true, true) => TOKEN_PAYOUT.saturating_add(TOKEN_FEE),
        };
        let payee = if self.is_token { NEW_TOKEN_PAYEE } else { NEW_ETHER_PAYEE };
        let payee = if self.firsts.payee { payee } else { 0 };
        usual.saturating_add(self.first_order_gas()).saturating_add(payee)
    }

    fn first_order_gas(self) -> u64 {
        if self.firsts.order { FIRST_ORDER } else { 0 }
    }

    /// The upper bound of its gas, reached if every callee burns its allowance and refuses. A payee that becomes an
    /// account has no code to burn it.
    fn gas_max(self) -> u64 {
        const ETHER: u64 = ETHER_GAS + PAYOUT_MAX;
        const TOKEN: u64 = TOKEN_GAS + PAYOUT_MAX;
        let payouts = match (self.is_token, self.has_fee) {
            (false, false) => ETHER,
            (false, true) => ETHER + OWN_PAYOUT_MAX,
            (true, false) => ASSET_MAX + TOKEN,
            (true, true) => ASSET_MAX + TOKEN + TOKEN,
        };
        payouts.saturating_add(self.first_order_gas())
    }
}

/// The contract call that submits redemptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plan {
    /// Each redemption has its own certificate.
    Certificates,
    /// All redemptions share one vote of the current committee.
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

    /// The gas limit of a transaction with these redemptions.
    pub(crate) fn gas_max(self, quorum: usize, items: impl IntoIterator<Item = Payouts>) -> u64 {
        let most = items.into_iter().fold(Most::of(self, quorum), Most::with);
        most.gas()
    }

    /// The share of each redemption, rounded up.
    #[must_use]
    pub fn gas_each(self, quorum: usize, count: usize) -> u64 {
        self.gas(quorum, count).div_ceil(to_u64(count.max(1)))
    }

    /// The cheapest plan for `count` redemptions with certificates that the contract still accepts. A single redemption
    /// is not worth the authorities' work.
    #[must_use]
    pub fn cheapest(quorum: usize, count: usize) -> Self {
        let batch_pays = count > 1 && Self::Batch.gas(quorum, count) < Self::Certificates.gas(quorum, count);
        if batch_pays { Self::Batch } else { Self::Certificates }
    }
}

/// The most gas that a transaction can take, added up redemption by redemption.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    gas: u64,
    votes_each: u64,
    has_fee: bool,
}

impl Most {
    /// The bound of a transaction without redemptions.
    pub(crate) fn of(plan: Plan, quorum: usize) -> Self {
        let votes = VOTE_MAX.saturating_mul(to_u64(quorum));
        let (shared, votes_each) = match plan {
            Plan::Certificates => (0, votes.saturating_add(CERTIFICATE_MAX)),
            Plan::Batch => (votes, 0),
        };
        Self { gas: TRANSACTION_MAX.saturating_add(shared), votes_each, has_fee: false }
    }

    /// The bound with one more redemption.
    pub(crate) fn with(self, payouts: Payouts) -> Self {
        let item = ORDER_MAX.saturating_add(payouts.gas_max()).saturating_add(self.votes_each);
        Self { gas: self.gas.saturating_add(item), has_fee: self.has_fee || payouts.has_fee, ..self }
    }

    /// The bound, with the gas that the contract requires to be left at the last payout. A payee may use all of that
    /// except what the contract keeps for the call. Our own address, with the same allowance for a fee, uses nothing.
    pub(crate) fn gas(self) -> u64 {
        const LEFT_AT_FEE: u64 = ETHER_GAS + ETHER_GAS / 63 + CALL_GAS;
        const LEFT_AT_PAYEE: u64 = LEFT_AT_FEE - ETHER_GAS - PAYOUT_MAX;
        self.gas.saturating_add(if self.has_fee { LEFT_AT_FEE } else { LEFT_AT_PAYEE })
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
        // Compare whole transactions with the contract's measurements.
        let check = |payouts: Payouts, expected: u64| {
            let found = Plan::Certificates.gas(3, 1) + payouts.gas();
            assert!(found.abs_diff(expected) * 20 <= expected, "{found} by the model, {expected} measured");
        };
        let (usual, first) = (Payouts::default(), Firsts { order: true, payee: false });
        check(usual, 66_800);
        check(Payouts { has_fee: true, ..usual }, 73_900);
        check(Payouts { is_token: true, ..usual }, 75_300);
        check(Payouts { firsts: first, ..usual }, 83_900);
        check(Payouts { firsts: Firsts::ALL, ..usual }, 108_900);
    }

    #[test]
    fn the_most_is_never_below_what_is_expected() {
        for (_, quorum) in QUORUMS {
            for plan in [Plan::Certificates, Plan::Batch] {
                for (is_token, has_fee) in [(false, false), (false, true), (true, false), (true, true)] {
                    let payouts = Payouts { is_token, has_fee, firsts: Firsts::ALL };
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
    fn a_hundred_payouts_of_ether_fit_into_one_transaction() {
        let fit = |payouts: Payouts| {
            let most = |count| Plan::Batch.gas_max(3, vec![payouts; count]);
            (1..256).take_while(|count| most(*count) <= fastpay_ethereum::TRANSACTION_GAS_MAX).count()
        };
        let with_fee = Payouts { has_fee: true, ..Payouts::default() };
        let first = Payouts { firsts: Firsts::ALL, ..with_fee };
        assert_eq!([Payouts::default(), with_fee, first].map(fit), [100, 95, 86]);
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
