//! The budget of the next transactions: the offered gas price, and the balance of the gas key.

use alloy::primitives::U256;
use fastpay_ethereum::{Offer, SendError, Submission};

use crate::policy::Room;
use crate::relayer::Relayer;

/// The maximum offered cost of a transaction with several redemptions, in wei: one ETH. A usual node refuses a
/// transaction above that (geth's `--rpc.txfeecap`), however much gas it would leave unused.
const COST_MAX: U256 = U256::from_limbs([1_000_000_000_000_000_000, 0, 0, 0]);

/// The budget for gas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Means {
    pub(crate) offer: Offer,
    /// The key's balance, less the maximal cost of its transactions that are in no block.
    spendable: U256,
}

impl Means {
    pub(crate) fn room(&self) -> Room {
        let alone = self.offer.gas_max.min(self.offer.gas_for(self.spendable));
        Room { alone, together: alone.min(self.offer.gas_for(COST_MAX)) }
    }

    /// The most gas that a transaction with this `value` may have.
    pub(crate) fn gas_beside(&self, value: U256) -> u64 {
        self.offer.gas_max.min(self.offer.gas_for(self.spendable.saturating_sub(value)))
    }

    /// Reserves the cost of a transaction with this gas limit.
    pub(crate) fn spend(&mut self, gas_limit: u64) {
        self.spendable = self.spendable.saturating_sub(self.offer.cost_max(gas_limit));
    }
}

impl Relayer {
    /// The budget now.
    pub(crate) async fn means(&self) -> Result<Means, SendError> {
        let offer = self.primary.sender.current_offer().await?;
        let mined = self.primary.sender.mined().await?;
        let balance = self.primary.sender.primary().ether_balance(self.address()).await?;
        let waiting = self.state.bundles.iter().map(|bundle| &bundle.submission);
        let waiting = waiting.filter(|submission| submission.nonce >= mined).map(cost_max);
        let reserved = waiting.fold(U256::ZERO, U256::saturating_add);
        Ok(Means { offer, spendable: balance.saturating_sub(reserved) })
    }
}

/// The most that a transaction can cost, in wei.
fn cost_max(submission: &Submission) -> U256 {
    let price = submission.attempts.last().map_or(0, |attempt| attempt.fees.max_fee_per_gas);
    U256::from(submission.gas_limit).saturating_mul(U256::from(price)).saturating_add(submission.call.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_ethereum::Fees;

    #[test]
    fn a_transaction_has_the_gas_that_the_chain_allows_and_the_key_can_pay_for() {
        let gwei = 1_000_000_000;
        let fees = Fees { max_fee_per_gas: 100 * gwei, max_priority_fee_per_gas: gwei };
        let offer = Offer { base_fee: 40 * gwei, fees, gas_max: 15_000_000 };
        let room = |wei: u128| Means { offer, spendable: U256::from(wei) }.room();
        let ether = 1_000_000_000_000_000_000;
        // At 100 gwei, an ETH pays for ten million gas.
        assert_eq!(room(9 * ether), Room { alone: 15_000_000, together: 10_000_000 });
        assert_eq!(room(ether / 2), Room { alone: 5_000_000, together: 5_000_000 });
        assert_eq!(room(0), Room { alone: 0, together: 0 });
        let mut means = Means { offer, spendable: U256::from(ether) };
        means.spend(4_000_000);
        assert_eq!(means.room().alone, 6_000_000);
        assert_eq!(means.gas_beside(U256::from(ether / 10)), 5_000_000);
        means.spend(7_000_000);
        assert_eq!((means.room().alone, means.gas_beside(U256::ZERO)), (0, 0));
    }
}
