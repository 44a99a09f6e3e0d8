//! Payees of ETH that spend gas: contracts, and accounts that are delegated to one (EIP-7702), perhaps for a single
//! block. Each gets a transaction of its own, which measures what it spends; no simulation is believed about that.

use std::collections::BTreeSet;

use alloy::primitives::Address;
use alloy::sol_types::SolCall;
use fastpay_core::{Asset, Redemption};
use fastpay_ethereum::{IFastPay, Inclusion, ORDERS_IN_A_WORD, PrimaryError, Submission};

use crate::gas::Plan;
use crate::pending::{PendingRedemption, RedemptionId};
use crate::policy::{Alone, Conditions, Waiting, judge_alone};
use crate::relayer::Relayer;

/// A payee is blamed only for gas beyond the model by more than this, and by more than a twentieth of the model.
const MODEL_ERROR_MIN: u64 = 20_000;
const MODEL_ERROR_DIVISOR: u64 = 20;
/// A token may take this much more than the model.
const TOKEN_ERROR: u64 = 60_000;
/// The additional gas of a redemption that is queued instead of paid.
const QUEUED_GAS: u64 = 70_000;

impl Relayer {
    /// Whether it pays ETH to a contract, which may spend all its allowed gas whatever it does in a simulation, or to
    /// an address that may have been a contract in the block of an earlier transaction.
    pub(crate) async fn may_spend_gas(&self, item: &PendingRedemption) -> Result<bool, PrimaryError> {
        let Redemption { asset, recipient, .. } = item.redemption;
        Ok(asset == Asset::ETHER
            && (self.state.payees.contains_key(&recipient)
                || self.primary.sender.primary().has_code(recipient).await?))
    }

    /// Decides about a redemption whose payee may spend gas. Only a transaction of its own shows how much.
    pub(crate) fn single_out(&mut self, item: &PendingRedemption, waiting: Waiting, conditions: Conditions) {
        let payee_gas = self.state.payees.get(&item.redemption.recipient).copied().unwrap_or_default();
        match judge_alone(waiting, payee_gas, conditions, self.config.bundle.policy()) {
            Alone::Goes => self.set_alone(item.id()),
            Alone::Waits => {}
            Alone::Left => self.leave(item.id()),
        }
    }

    /// Measures which payees spend gas when paid ETH. For a single payee, it learns how much. If a transaction with
    /// several payees took more than usual, each of them, whatever code it had or has, is paid alone from now on, until
    /// that shows that it spends none.
    pub(crate) fn measure_payees(
        &mut self,
        submission: &Submission,
        items: &[RedemptionId],
        queued: usize,
        inclusion: &Inclusion,
    ) {
        let Some(committees) = &self.committees else { return };
        let items: Vec<_> = items.iter().filter_map(|id| self.state.items.get(self.state.position(id)?)).collect();
        if items.is_empty() {
            return;
        }
        let plan = match submission.call.data.starts_with(&IFastPay::redeemBatchCall::SELECTOR) {
            true => Plan::Batch,
            false => Plan::Certificates,
        };
        let usual = plan.gas(committees.current().quorum(), items.len());
        let extra = extra_gas(&items);
        let usual = usual.saturating_add(extra).saturating_add(QUEUED_GAS.saturating_mul(queued as u64));
        let tokens = items.iter().filter(|item| item.payouts().is_token).count() as u64;
        let error =
            (usual / MODEL_ERROR_DIVISOR).max(MODEL_ERROR_MIN).saturating_add(TOKEN_ERROR.saturating_mul(tokens));
        let spent = inclusion.gas_used.saturating_sub(usual);
        let of_ether = items.iter().filter(|item| item.redemption.asset == Asset::ETHER);
        let payees: Vec<Address> = of_ether.map(|item| item.redemption.recipient).collect();
        match (payees.as_slice(), spent > error) {
            ([payee], true) if items.len() == 1 => {
                tracing::warn!(%payee, spent, "a payee spends gas; its redemptions require a higher fee from now on");
                self.state.note_payee(*payee, spent);
            }
            ([payee], false) if items.len() == 1 => self.state.acquit_payee(payee),
            (payees, true) => {
                let count = payees.len();
                tracing::warn!(
                    transaction = %inclusion.hash, spent, payees = count,
                    "some payee spends gas; each is paid in a transaction of its own from now on"
                );
                payees.iter().for_each(|payee| self.state.note_payee(*payee, 0));
            }
            (_, false) => return,
        }
        self.changed = true;
    }
}

/// The additional gas of a transaction's redemptions. Only one is the first of its word, or to its payee.
fn extra_gas(items: &[&PendingRedemption]) -> u64 {
    let (mut words, mut payees) = (BTreeSet::new(), BTreeSet::new());
    let gas = items.iter().map(|item| {
        let Redemption { sender, sequence, recipient, asset, .. } = item.redemption;
        let mut payouts = item.payouts();
        payouts.firsts.order &= words.insert((sender, sequence.0 / ORDERS_IN_A_WORD));
        payouts.firsts.payee &= payees.insert((recipient, asset));
        payouts.gas()
    });
    gas.fold(0, u64::saturating_add)
}
