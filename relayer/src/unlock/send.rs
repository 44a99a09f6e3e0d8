//! Sends the transactions about numbers, within the budget of the day and the balance of the gas key.

use alloy::primitives::{B256, U256};
use fastpay_ethereum::{Call, Inclusion, PrimaryError, Revert, gas_limit, utc};

use super::{UnlockStep, UnlockStepKind};
use crate::relayer::{Relayer, RelayerError};
use crate::store::Bundle;

/// The gas limit of a step: the votes of 127 members cost less.
const STEP_GAS_MAX: u64 = 1_500_000;
/// The minimum gas of a step.
const STEP_GAS_MIN: u64 = 50_000;

/// Why a transaction is not sent now.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsent {
    #[error("too many transactions are in flight")]
    Full,
    #[error("the gas key has too little ETH")]
    Funds,
    #[error("the daily budget is spent; it is renewed at {}", utc(.again_at_ms / 1_000))]
    Budget { again_at_ms: u64 },
    #[error("{0}")]
    Refused(Box<Revert>),
}

impl Relayer {
    /// Counts a step in a final block. One that reverted returned no bond, so its gas is charged to the budget.
    pub(crate) fn settle_step(&mut self, step: UnlockStep, inclusion: &Inclusion) {
        if !inclusion.success {
            // A request was charged in full before it was sent.
            let is_charged = step.kind == UnlockStepKind::Request;
            let cost = inclusion.cost_wei().filter(|_| !is_charged).unwrap_or_default();
            return self.state.unlock.charge(cost, self.clock.now_ms());
        }
        let totals = &mut self.state.totals;
        let total = match step.kind {
            UnlockStepKind::Request => &mut totals.unlock_requested,
            UnlockStepKind::Uphold => &mut totals.unlock_upheld,
            UnlockStepKind::Void => &mut totals.unlock_voided,
        };
        *total = total.saturating_add(1);
    }

    /// Sends a transaction about a number, unless a condition prevents it. `returned` is the bond that it returns, in
    /// wei: only the cost beyond that is charged to the budget.
    pub(super) async fn send_step(
        &mut self,
        step: UnlockStep,
        call: Call,
        returned: U256,
    ) -> Result<Result<B256, Unsent>, RelayerError> {
        if !self.has_place() {
            return Ok(Err(Unsent::Full));
        }
        let means = self.means().await?;
        let (offer, gas_max) = (means.offer, means.gas_beside(call.value).min(STEP_GAS_MAX));
        if gas_max < STEP_GAS_MIN {
            return Ok(Err(Unsent::Funds));
        }
        let gas = match self.primary.sender.simulate(&call, &offer, gas_max).await {
            Ok(gas) => gas,
            Err(PrimaryError::InsufficientFunds) => return Ok(Err(Unsent::Funds)),
            Err(PrimaryError::Reverted(_)) if gas_max < STEP_GAS_MAX => return Ok(Err(Unsent::Funds)),
            Err(PrimaryError::Reverted(revert)) => return Ok(Err(Unsent::Refused(revert))),
            Err(error) => return Err(error.into()),
        };
        let gas_limit = gas_limit(gas);
        if gas_limit > gas_max {
            return Ok(Err(Unsent::Funds));
        }
        let cost = U256::from(gas).saturating_mul(U256::from(offer.price())).saturating_add(call.value);
        let (cost, now_ms) = (cost.saturating_sub(returned), self.clock.now_ms());
        if cost > self.state.unlock.left(self.config.unlock.daily_budget_wei, now_ms) {
            return Ok(Err(Unsent::Budget { again_at_ms: self.state.unlock.again_at_ms(now_ms) }));
        }
        let submission = self.primary.sender.prepare_within(call, &offer, gas_limit).await?;
        // Written to disk with the transaction, so that a restart does not renew the budget.
        self.state.unlock.charge(cost, now_ms);
        let hash = submission.attempts.last().map(|attempt| attempt.hash).unwrap_or_default();
        let (account, sequence, kind) = (step.account, step.sequence, step.kind);
        tracing::info!(%account, %sequence, ?kind, transaction = %hash, %cost, "a step to unlock a number");
        self.send_bundle(Bundle { submission, items: Vec::new(), unlock: Some(step) }).await?;
        Ok(Ok(hash))
    }
}
