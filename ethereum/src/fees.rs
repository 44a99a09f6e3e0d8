//! The fee offer of a transaction (EIP-1559), how it is raised while the transaction waits, and its gas limit.

use alloy::primitives::U256;
use alloy::serde::quantity;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::allowance::TRANSACTION_GAS_MAX;
use crate::error::PrimaryError;
use crate::primary::Primary;

/// A transaction takes at most this part of a block, a half: a larger one may wait long for a block with room.
const BLOCK_GAS_DIVISOR: u64 = 2;

/// An offer, in wei per gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fees {
    /// The most that is paid per gas in total.
    #[serde(with = "quantity")]
    pub max_fee_per_gas: u128,
    /// The part of it that the block's proposer gets.
    #[serde(with = "quantity")]
    pub max_priority_fee_per_gas: u128,
}

/// A sender's present offer, and the gas that the chain permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The newest block's base fee, in wei per gas.
    pub base_fee: u128,
    /// The offer.
    pub fees: Fees,
    /// The most gas that one transaction may have here.
    pub gas_max: u64,
}

impl Offer {
    /// The current gas price, in wei.
    #[must_use]
    pub fn price(&self) -> u128 {
        self.base_fee.saturating_add(self.fees.max_priority_fee_per_gas)
    }

    /// The most that this much gas can cost by this offer, in wei. The sender's balance must cover it.
    #[must_use]
    pub fn cost_max(&self, gas: u64) -> U256 {
        U256::from(gas).saturating_mul(U256::from(self.fees.max_fee_per_gas))
    }

    /// How much gas these wei pay for by this offer.
    #[must_use]
    pub fn gas_for(&self, wei: U256) -> u64 {
        wei.checked_div(U256::from(self.fees.max_fee_per_gas)).unwrap_or(U256::MAX).saturating_to()
    }
}

/// A sender's configuration. It is read from TOML; every value has a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SenderConfig {
    /// The highest total offer, in gwei per gas.
    pub max_fee_cap_gwei: u64,
    /// The highest offer to the proposer, in gwei per gas.
    pub max_priority_fee_cap_gwei: u64,
    /// The offer of a transaction that waits longer than this is raised, in milliseconds.
    pub stuck_after_ms: u64,
    /// The interval between reads of the chain, in milliseconds.
    pub poll_interval_ms: u64,
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self { max_fee_cap_gwei: 300, max_priority_fee_cap_gwei: 20, stuck_after_ms: 60_000, poll_interval_ms: 2_000 }
    }
}

impl SenderConfig {
    fn max_fee_cap(&self) -> u128 {
        u128::from(self.max_fee_cap_gwei).saturating_mul(1_000_000_000)
    }

    fn max_priority_fee_cap(&self) -> u128 {
        u128::from(self.max_priority_fee_cap_gwei).saturating_mul(1_000_000_000).min(self.max_fee_cap())
    }

    /// The first offer: room for the base fee to double, and the node's suggestion for the proposer, each up to its
    /// cap. If the base fee is above the cap, the transaction waits until it falls.
    pub(crate) fn first_offer(&self, base_fee: u128, suggested_priority_fee: u128) -> Fees {
        let max_priority_fee_per_gas = suggested_priority_fee.clamp(1, self.max_priority_fee_cap().max(1));
        let wanted = base_fee.saturating_mul(2).saturating_add(max_priority_fee_per_gas);
        let max_fee_per_gas = wanted.min(self.max_fee_cap()).max(max_priority_fee_per_gas);
        Fees { max_fee_per_gas, max_priority_fee_per_gas }
    }

    /// The offer that replaces `last`: each part is raised by at least an eighth, because nodes ignore a replacement
    /// that is less than a tenth higher, and is at least that of `fresh`. `None` if a cap prevents it.
    pub(crate) fn next_offer(&self, last: Fees, fresh: Fees) -> Option<Fees> {
        let raised = |fee: u128| fee.saturating_add(fee.div_ceil(8)).saturating_add(1);
        let max_priority_fee_per_gas = raised(last.max_priority_fee_per_gas).max(fresh.max_priority_fee_per_gas);
        let max_fee_per_gas = raised(last.max_fee_per_gas).max(fresh.max_fee_per_gas).max(max_priority_fee_per_gas);
        let within_caps =
            max_fee_per_gas <= self.max_fee_cap() && max_priority_fee_per_gas <= self.max_priority_fee_cap();
        within_caps.then_some(Fees { max_fee_per_gas, max_priority_fee_per_gas })
    }
}

impl Primary {
    /// The present offer of a sender with this configuration.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn current_offer(&self, config: &SenderConfig) -> Result<Offer, PrimaryError> {
        let head = self.latest_head().await?;
        let base_fee = head.base_fee_per_gas.unwrap_or_default().saturating_to::<u128>();
        let suggested: U256 = self.request("eth_maxPriorityFeePerGas", json!([])).await?;
        let fees = config.first_offer(base_fee, suggested.saturating_to());
        let gas_max = TRANSACTION_GAS_MAX.min(head.gas_limit() / BLOCK_GAS_DIVISOR);
        Ok(Offer { base_fee, fees, gas_max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GWEI: u128 = 1_000_000_000;

    #[test]
    fn offers_rise_by_an_eighth_until_the_cap() {
        let config = SenderConfig { max_fee_cap_gwei: 100, max_priority_fee_cap_gwei: 10, ..Default::default() };
        let mut fees = config.first_offer(20 * GWEI, GWEI);
        assert_eq!(fees, Fees { max_fee_per_gas: 41 * GWEI, max_priority_fee_per_gas: GWEI });
        let mut rounds = 0;
        while let Some(next) = config.next_offer(fees, config.first_offer(20 * GWEI, GWEI)) {
            assert!(next.max_fee_per_gas * 8 >= fees.max_fee_per_gas * 9);
            assert!(next.max_priority_fee_per_gas * 8 >= fees.max_priority_fee_per_gas * 9);
            assert!(next.max_fee_per_gas <= 100 * GWEI && next.max_priority_fee_per_gas <= 10 * GWEI);
            fees = next;
            rounds += 1;
        }
        assert_eq!(rounds, 7);
    }

    #[test]
    fn a_replacement_follows_the_base_fee() {
        let config = SenderConfig::default();
        let fresh = config.first_offer(50 * GWEI, 2 * GWEI);
        let next = config.next_offer(config.first_offer(10 * GWEI, GWEI), fresh).unwrap();
        assert_eq!(next, fresh);
    }

    #[test]
    fn no_offer_is_above_the_caps_or_inconsistent() {
        let config = SenderConfig { max_fee_cap_gwei: 5, max_priority_fee_cap_gwei: 50, ..Default::default() };
        let fees = config.first_offer(u128::MAX, u128::MAX);
        assert_eq!(fees, Fees { max_fee_per_gas: 5 * GWEI, max_priority_fee_per_gas: 5 * GWEI });
        assert_eq!(config.next_offer(fees, fees), None);
        let free = config.first_offer(0, 0);
        assert!(free.max_priority_fee_per_gas <= free.max_fee_per_gas);
    }
}
