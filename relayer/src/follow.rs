//! From transactions to final ones: sent again, with a better offer, and settled by what the chain says.

use std::time::Duration;

use fastpay_ethereum::{Inclusion, Payout, PrimaryError, Status, Submission};
use tokio::time::Instant;

use crate::item::ItemId;
use crate::relayer::{Relayer, RelayerError, wait_or_stop};
use crate::store::Bundle;
use crate::submit::wait_or_stop_sending;

/// What a final transaction did for an item, in a word.
fn outcome(state: &Payout, was_queued: bool, success: bool) -> Result<&'static str, &'static str> {
    match (state, success) {
        (Payout::Done, true) if was_queued => Ok("executed"),
        (Payout::Done, true) => Ok("redeemed"),
        (Payout::Done, false) => Ok("by-others"),
        (Payout::Queued(_), _) if !was_queued => Ok("queued"),
        (_, true) => Err("no-effect"),
        (_, false) => Err("reverted"),
    }
}

impl Relayer {
    /// Looks after every transaction that is not final: sends it again, raises its offer, or settles what
    /// it did.
    pub(crate) async fn follow_bundles(&mut self) -> Result<(), RelayerError> {
        let mut index = 0;
        while let Some(submission) = self.state.bundles.get(index).map(|bundle| bundle.submission.clone()) {
            match self.sender.status(&submission).await {
                Ok(Status::Final(inclusion)) => {
                    if let Err(error) = self.settle(index, &inclusion).await {
                        return wait_or_stop(error);
                    }
                }
                Ok(Status::Superseded) => {
                    tracing::warn!(nonce = submission.nonce, "another transaction of the gas key took this nonce");
                    self.drop_bundle(index);
                }
                Ok(Status::Included(inclusion)) => {
                    self.trace_included(index, &inclusion);
                    self.offered_at.insert(submission.nonce, Instant::now());
                    index = index.saturating_add(1);
                }
                Ok(Status::Pending { known }) => {
                    self.push_on(index, submission, known).await?;
                    index = index.saturating_add(1);
                }
                Err(error) => return wait_or_stop(error),
            }
            self.save()?;
        }
        Ok(())
    }

    /// Forgets a final transaction, and the items that it redeemed. Others wait again.
    async fn settle(&mut self, index: usize, inclusion: &Inclusion) -> Result<(), PrimaryError> {
        let Some(Bundle { submission, items }) = self.state.bundles.get(index) else { return Ok(()) };
        let (nonce, items) = (submission.nonce, items.clone());
        let final_block = self.sender.primary().final_head().await?.number();
        let mut states = Vec::with_capacity(items.len());
        for id in items {
            states.push((id, self.sender.primary().payout_at(id.sender, id.sequence, final_block).await?));
        }
        self.trace_included(index, inclusion);
        let included_at = self.traces.forget(nonce);
        self.drop_bundle(index);
        self.metrics.observe_gas(inclusion);
        if !inclusion.success {
            self.metrics.reverted.inc();
        }
        for (id, state) in states {
            let item = self.state.position(&id).and_then(|position| self.state.items.get(position));
            let was_queued = item.is_some_and(|item| item.queued.is_some());
            if let Some(item) = item {
                self.traces.ended(item, included_at, outcome(&state, was_queued, inclusion.success));
            }
            match (state, inclusion.success) {
                (Payout::Done, true) => self.finish_by_us(id, was_queued, inclusion),
                (Payout::Done, false) => self.finish_by_others(id),
                (Payout::Queued(queued), _) if !was_queued => self.take_queued(id, queued),
                // Not seen by the node that was asked; it will be, or the item is tried again.
                (_, true) => self.park(id, format!("transaction {} is final and had no effect yet", inclusion.hash)),
                (_, false) => self.park(id, format!("transaction {} reverted", inclusion.hash)),
            }
        }
        Ok(())
    }

    fn trace_included(&mut self, index: usize, inclusion: &Inclusion) {
        let Some(bundle) = self.state.bundles.get(index) else { return };
        let items = bundle.items.iter().filter_map(|id| self.state.items.get(self.state.position(id)?));
        self.traces.included(bundle.submission.nonce, inclusion, items);
    }

    fn drop_bundle(&mut self, index: usize) {
        let bundle = self.state.bundles.remove(index);
        self.traces.forget(bundle.submission.nonce);
        self.offered_at.remove(&bundle.submission.nonce);
        self.changed = true;
    }

    /// Sends a transaction again that the nodes forgot, or with a better offer where it waits too long.
    async fn push_on(&mut self, index: usize, mut submission: Submission, known: bool) -> Result<(), RelayerError> {
        let offered_at = *self.offered_at.entry(submission.nonce).or_insert_with(Instant::now);
        let stuck = offered_at.elapsed() >= Duration::from_millis(self.sender.config().stuck_after_ms);
        let mut send = !known;
        if stuck {
            self.offered_at.insert(submission.nonce, Instant::now());
            match self.sender.raised(&submission).await {
                Ok(Some(raised)) => {
                    tracing::info!(nonce = raised.nonce, attempts = raised.attempts.len(), "raising the offer");
                    if let Some(bundle) = self.state.bundles.get_mut(index) {
                        bundle.submission = raised.clone();
                    }
                    self.changed = true;
                    self.save()?;
                    (submission, send) = (raised, true);
                }
                Ok(None) => tracing::warn!(nonce = submission.nonce, "the fee is at its cap; waiting"),
                Err(error) => wait_or_stop_sending(error)?,
            }
        }
        if send && let Err(error) = self.sender.broadcast(&submission).await {
            wait_or_stop_sending(error)?;
        }
        Ok(())
    }

    fn finish_by_us(&mut self, id: ItemId, was_queued: bool, inclusion: &Inclusion) {
        let done = if was_queued { "executed" } else { "redeemed" };
        tracing::info!(sender = %id.sender, sequence = %id.sequence, transaction = %inclusion.hash, "{done}");
        let totals = &mut self.state.totals;
        let total = if was_queued { &mut totals.executed } else { &mut totals.redeemed };
        *total = total.saturating_add(1);
        self.finish(id);
    }

    pub(crate) fn finish_by_others(&mut self, id: ItemId) {
        tracing::info!(sender = %id.sender, sequence = %id.sequence, "redeemed by somebody else");
        self.state.totals.redeemed_by_others = self.state.totals.redeemed_by_others.saturating_add(1);
        self.finish(id);
    }

    /// Leaves an item out for a while, or for good where it has failed too often.
    pub(crate) fn park(&mut self, id: ItemId, reason: String) {
        tracing::warn!(sender = %id.sender, sequence = %id.sequence, reason, "a redemption fails and is left out for a while");
        self.changed = true;
        let now_ms = self.clock.now_ms();
        let Some(position) = self.state.position(&id) else { return };
        let again = self.state.items.get_mut(position).is_some_and(|item| item.park(reason, now_ms));
        if !again {
            tracing::error!(sender = %id.sender, sequence = %id.sequence, "given up; its owner can still redeem it");
            self.state.totals.given_up = self.state.totals.given_up.saturating_add(1);
            self.finish(id);
        }
    }

    /// Leaves an item out for a while without holding it against it: the fault is elsewhere.
    pub(crate) fn postpone(&mut self, id: ItemId, reason: String) {
        tracing::warn!(sender = %id.sender, sequence = %id.sequence, reason, "a redemption waits");
        let now_ms = self.clock.now_ms();
        if let Some(item) = self.state.position(&id).and_then(|position| self.state.items.get_mut(position)) {
            item.postpone(reason, now_ms);
            self.changed = true;
        }
    }

    /// Leaves an item to others and to its owner, because its fee does not cover the gas.
    pub(crate) fn leave(&mut self, id: ItemId) {
        tracing::info!(sender = %id.sender, sequence = %id.sequence, "left to others: the fee does not cover the gas");
        self.state.totals.below_cost = self.state.totals.below_cost.saturating_add(1);
        self.finish(id);
    }
}
