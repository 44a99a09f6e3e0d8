//! The gas key's balance, and the number of redemptions that it pays for, read from the chain for `fastpay-relayer
//! status`.

use alloy::primitives::{Address, U256};
use fastpay_ethereum::{Primary, PrimaryConfig, PrimaryError};

use crate::config::Config;
use crate::gas::{Firsts, Payouts, Plan};
use crate::store::State;

/// The gas key.
#[derive(Debug)]
pub struct GasBalance {
    /// Its address.
    pub address: Address,
    /// The balance now, or the reason why it is unknown.
    pub funds: Result<Funds, PrimaryError>,
}

/// The gas key's balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Funds {
    /// The balance, in wei.
    pub balance_wei: U256,
    /// The current gas price, in wei.
    pub gas_price_wei: u128,
    /// The number of redemptions that it pays for, each alone, at this price and without earned fees. This is a lower
    /// bound, because bundled redemptions take less. `None` if gas costs nothing.
    pub redemptions: Option<u64>,
}

impl GasBalance {
    /// Asks the configured nodes for the balance of the address that the relayer last ran with. `None` if no address is
    /// stored.
    pub async fn ask(config: &Config, state: &State) -> Option<Self> {
        let address = state.address?;
        // The nodes must be on the chain that the state is about.
        let (chain_id, contract) = (state.chain_id, state.contract);
        let primary = PrimaryConfig { chain_id, contract, ..config.primary.clone() };
        Some(Self { address, funds: Funds::ask(primary, config, address).await })
    }
}

impl Funds {
    async fn ask(primary: PrimaryConfig, config: &Config, address: Address) -> Result<Self, PrimaryError> {
        let primary = Primary::connect(primary).await?;
        let balance_wei = primary.ether_balance(address).await?;
        let quorum = primary.committee(primary.epoch().await?).await?.quorum();
        let offer = primary.current_offer(&config.sender).await?;
        let gas_price_wei = offer.price();
        let payouts = Payouts { is_token: false, has_fee: true, firsts: Firsts::ALL };
        let gas = Plan::Certificates.gas(quorum, 1).saturating_add(payouts.gas());
        let gas_max = Plan::Certificates.gas_max(quorum, [payouts]);
        let redemptions = suffices_for(balance_wei, gas, gas_price_wei, offer.cost_max(gas_max));
        Ok(Self { balance_wei, gas_price_wei, redemptions })
    }
}

/// The number of transactions of `gas` that a balance pays for. A node accepts the last one only if the balance covers
/// the whole offer, although the transaction costs less.
fn suffices_for(balance_wei: U256, gas: u64, price_wei: u128, offered: U256) -> Option<u64> {
    let cost = U256::from(gas).saturating_mul(U256::from(price_wei));
    if cost.is_zero() {
        return None;
    }
    let before_last = balance_wei.checked_sub(offered).and_then(|rest| rest.checked_div(cost));
    Some(before_last.map_or(0, |count| count.saturating_to::<u64>().saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_for_the_last_one_must_be_there() {
        let (gas, price, offer) = (65_000, 10, U256::from(125_000 * 21));
        let check = |balance: u64, expected: Option<u64>| {
            assert_eq!(suffices_for(U256::from(balance), gas, price, offer), expected, "{balance}");
        };
        let (needed, cost) = (125_000 * 21, 650_000);
        check(0, Some(0));
        check(needed - 1, Some(0));
        check(needed, Some(1));
        check(needed + cost - 1, Some(1));
        check(needed + 9 * cost, Some(10));
        assert_eq!(suffices_for(U256::MAX, gas, price, offer), Some(u64::MAX));
        assert_eq!(suffices_for(U256::MAX, gas, 0, offer), None);
        assert_eq!(suffices_for(U256::from(u128::MAX), u64::MAX, u128::MAX, U256::MAX), Some(0));
    }
}
