//! Redemptions that exceeded the contract's outflow limit. The contract queues each until a time from which anyone can
//! have it paid. We execute those that we submitted, since their fees are ours, and others if the operator wishes.

use alloy::primitives::Bytes;
use fastpay_core::{Asset, Redemption};
use fastpay_ethereum::{Call, Queued, utc};

use crate::bundle::{Ready, Trial};
use crate::ethereum::OnChain;
use crate::follow::{DISPLACED, Outcome};
use crate::gas::Plan;
use crate::means::Means;
use crate::pending::{PendingRedemption, RedemptionId};
use crate::policy::BelowCost;
use crate::relayer::{Relayer, RelayerError};
use crate::store::QUEUED_MAX;
use crate::submit::Trials;

/// A queued redemption whose fee does not cover its execution waits this long for cheaper gas: a week.
const PATIENCE_S: u64 = 7 * 86_400;

impl Relayer {
    /// Whether this relayer is to execute a redemption in the contract's queue.
    pub(crate) fn is_ours(&self, queued: &Queued) -> bool {
        let (_, count) = self.state.counts();
        let wanted = queued.relayer == self.address() || self.config.bundle.execute_others;
        if wanted && count >= QUEUED_MAX {
            tracing::warn!(queued = count, "no more queued redemptions are tracked until some are executed");
        }
        wanted && count < QUEUED_MAX
    }

    /// Notes that the contract has an item in its queue, in a final block.
    pub(crate) async fn take_queued(&mut self, id: RedemptionId, queued: Queued) -> Outcome {
        let spending = self.spending(&id).await;
        if spending.is_some_and(|spending| self.leave_displaced(id, &spending)) {
            return Err(DISPLACED);
        }
        if !self.is_ours(&queued) {
            return self.finish_by_others(id).await;
        }
        if let Some(item) = self.state.position(&id).and_then(|position| self.state.items.get_mut(position)) {
            item.enqueue(queued);
            self.note_queued(id, &queued);
        }
        Ok("queued")
    }

    pub(crate) fn note_queued(&mut self, id: RedemptionId, queued: &Queued) {
        let until = utc(queued.executable_at);
        tracing::info!(sender = %id.sender, sequence = %id.sequence, until, "queued by the outflow limit");
        self.state.totals.queued = self.state.totals.queued.saturating_add(1);
        self.changed = true;
    }

    /// The redemptions that can be executed at `now`, the chain's time in seconds.
    pub(crate) fn due(&self, now: u64) -> Vec<PendingRedemption> {
        let at_ms = self.clock.now_ms();
        let is_due = |item: &&PendingRedemption| {
            item.queued.is_some_and(|queued| queued.executable_at <= now)
                && !item.is_parked(at_ms)
                && !self.state.is_under_way(&item.id())
        };
        self.state.items.iter().filter(is_due).cloned().collect()
    }

    /// Notes that a redemption in the contract's queue waits longer.
    fn requeue(&mut self, id: RedemptionId, queued: Queued) {
        let until = utc(queued.executable_at);
        tracing::info!(sender = %id.sender, sequence = %id.sequence, until, "postponed by the guardian");
        if let Some(item) = self.state.position(&id).and_then(|position| self.state.items.get_mut(position)) {
            item.enqueue(queued);
            self.changed = true;
        }
    }

    /// Executes the queued redemptions that are due `now`, by the chain's clock.
    pub(crate) async fn execute_due(
        &mut self,
        due: Vec<PendingRedemption>,
        now: u64,
        quorum: usize,
        means: &mut Means,
    ) -> Result<(), RelayerError> {
        for item in due {
            if !self.has_place() {
                break;
            }
            let Some(stored) = item.queued else { continue };
            // Check this without asking the chain, because there may be many.
            if !self.covers_execution(&item, &stored, quorum, means) {
                if stored.executable_at.saturating_add(PATIENCE_S) <= now {
                    self.leave(item.id());
                }
                continue;
            }
            match self.on_chain(&item.id()).await? {
                // The guardian has postponed it.
                OnChain::Queued(queued) if queued.executable_at > now => self.requeue(item.id(), queued),
                OnChain::Queued(queued) => self.execute(item, queued.needs_votes, quorum, means).await?,
                OnChain::Done => drop(self.finish_by_others(item.id()).await),
                OnChain::Open | OnChain::Settling => {}
            }
        }
        Ok(())
    }

    /// Whether the fee of a queued redemption covers the gas of its execution now, with what its payee is known to
    /// spend. If another relayer submitted it, its fee is not ours: the operator has chosen to pay for the execution.
    fn covers_execution(&self, item: &PendingRedemption, queued: &Queued, quorum: usize, means: &Means) -> bool {
        let Redemption { asset, recipient, fee, .. } = item.redemption;
        let payee = if asset == Asset::ETHER { self.state.payees.get(&recipient).copied() } else { None };
        let votes = if queued.needs_votes { quorum } else { 0 };
        let gas = Plan::Certificates.gas(votes, 1).saturating_add(item.payouts().gas());
        let gas = gas.saturating_add(payee.unwrap_or_default());
        let cost = u128::from(gas).saturating_mul(means.offer.price());
        queued.relayer != self.address()
            || self.config.bundle.below_cost == BelowCost::Pay
            || self.config.assets.worth(asset, fee).unwrap_or_default() >= cost
    }

    /// Has a redemption paid. If the votes are of a compromised epoch, the current committee votes for it first.
    async fn execute(
        &mut self,
        item: PendingRedemption,
        needs_votes: bool,
        quorum: usize,
        means: &mut Means,
    ) -> Result<(), RelayerError> {
        let votes = match needs_votes {
            false => Bytes::new(),
            true => {
                self.follow_committees().await?;
                let Some(committees) = self.committees.clone() else { return Ok(()) };
                let domain = self.domain;
                let agreement = self.voters.agree(&domain, &committees, vec![item.clone()]).await.agreement;
                let Some(agreement) = agreement else {
                    self.postpone(item.id(), "too few authorities of the current committee certify it again".into());
                    return Ok(());
                };
                agreement.votes
            }
        };
        let call = Call::execute_queued(self.primary.sender.primary().contract(), &item.redemption, votes);
        let trials = Trials::with(&self.primary.sender, Plan::Certificates, quorum, means);
        match trials.attempt(std::slice::from_ref(&item), call).await? {
            Trial::Succeeds(Ready { call, gas_limit }) => {
                let submission = self.primary.sender.prepare_within(call, &means.offer, gas_limit).await?;
                means.spend(gas_limit);
                self.send(submission, &[item]).await
            }
            Trial::Reverts(revert) if revert.is_of_the_moment() => {
                self.postpone(item.id(), revert.to_string());
                Ok(())
            }
            Trial::Reverts(revert) => {
                self.park(item.id(), revert.to_string());
                Ok(())
            }
            Trial::TooLarge | Trial::Unsigned => Ok(()),
        }
    }
}
