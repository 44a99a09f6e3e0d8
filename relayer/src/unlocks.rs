//! The durable part of unlocking: the numbers that are undecided at the contract, and the budget of the day. The state
//! file contains it, and metrics and status read it.

use alloy::primitives::U256;
use fastpay_core::{AccountId, SequenceNumber};
use fastpay_ethereum::Cursor;
use serde::{Deserialize, Serialize};

const DAY_MS: u64 = 86_400_000;

/// An account, and a number of its orders.
pub(crate) type Number = (AccountId, SequenceNumber);

/// The state that survives a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unlocks {
    /// How far the contract's events were read; `None` before the first read.
    pub cursor: Option<Cursor>,
    /// The numbers that are undecided in final blocks, in the order of the requests.
    pub open: Vec<OpenUnlock>,
    /// The day to which `spent_wei` applies, counted from 1970-01-01 in UTC.
    pub day: u64,
    /// The amount spent on that day in wei: bonds of requests, and gas beyond returned bonds.
    pub spent_wei: U256,
}

/// A number that its owner asked the contract to unlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenUnlock {
    /// The account.
    pub account: AccountId,
    /// The number.
    pub sequence: SequenceNumber,
    /// The time from which a quorum can void it, in seconds since 1970.
    pub voidable_from: u64,
    /// Whether this relayer paid its bond; false before the contract was asked.
    pub is_ours: bool,
    /// Whether f + 1 members report that the account is beyond it. Then its order is executed, and anybody can have it
    /// upheld at any time. `None` before contract and authorities were asked.
    #[serde(default)]
    pub is_below: Option<bool>,
    /// How often the authorities were asked.
    pub tries: u32,
    /// When they are asked next, in milliseconds since 1970.
    pub next_at_ms: u64,
    /// What the decision waits for.
    pub waits_for: String,
}

/// A transaction about a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnlockStep {
    /// The account.
    pub account: AccountId,
    /// The number.
    pub sequence: SequenceNumber,
    /// The kind of transaction.
    pub kind: UnlockStepKind,
}

/// The kinds of transactions about a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnlockStepKind {
    /// Submits the owner's request.
    Request,
    /// Upholds an order.
    Uphold,
    /// Voids the number.
    Void,
}

impl OpenUnlock {
    pub(crate) fn number(&self) -> Number {
        (self.account, self.sequence)
    }
}

impl UnlockStep {
    pub(crate) fn number(&self) -> Number {
        (self.account, self.sequence)
    }
}

impl Unlocks {
    pub(crate) fn position(&self, number: Number) -> Option<usize> {
        self.open.iter().position(|open| open.number() == number)
    }

    /// The rest of today's budget in wei. Setting the clock back does not renew the budget.
    pub(crate) fn left(&self, budget: U256, now_ms: u64) -> U256 {
        if now_ms / DAY_MS > self.day { budget } else { budget.saturating_sub(self.spent_wei) }
    }

    pub(crate) fn charge(&mut self, wei: U256, now_ms: u64) {
        let today = now_ms / DAY_MS;
        if today > self.day {
            (self.day, self.spent_wei) = (today, U256::ZERO);
        }
        self.spent_wei = self.spent_wei.saturating_add(wei);
    }

    /// When the budget is renewed, in milliseconds since 1970.
    pub(crate) fn again_at_ms(&self, now_ms: u64) -> u64 {
        self.day.max(now_ms / DAY_MS).saturating_add(1).saturating_mul(DAY_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_daily_and_setting_the_clock_back_does_not_renew_it() {
        let (budget, day) = (U256::from(100), 20_000 * DAY_MS);
        let mut unlocks = Unlocks::default();
        assert_eq!(unlocks.left(budget, day), budget);
        unlocks.charge(U256::from(70), day + 5);
        assert_eq!(unlocks.left(budget, day + 6), U256::from(30));
        assert_eq!(unlocks.left(budget, day - DAY_MS), U256::from(30));
        assert_eq!(unlocks.again_at_ms(day - DAY_MS), day + DAY_MS);
        unlocks.charge(U256::from(50), day + 7);
        assert_eq!((unlocks.left(budget, day + 8), unlocks.spent_wei), (U256::ZERO, U256::from(120)));
        assert_eq!(unlocks.left(budget, day + DAY_MS), budget);
        unlocks.charge(U256::from(1), day + DAY_MS);
        assert_eq!((unlocks.spent_wei, unlocks.day), (U256::from(1), 20_001));
        // It survives on disk.
        let text = serde_json::to_string(&unlocks).unwrap();
        assert_eq!(serde_json::from_str::<Unlocks>(&text).unwrap(), unlocks);
    }
}
