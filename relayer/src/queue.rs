//! Redemptions that exceeded the contract's outflow limit: queued there until a time from which on anyone can
//! have them paid. We do that for those that we brought, since their fees are ours, and for others where the
//! operator wishes.

use fastpay_ethereum::{Call, PrimaryError, Queued, SendError, utc};

use crate::intake::OnChain;
use crate::item::{Item, ItemId};
use crate::relayer::{Relayer, RelayerError};
use crate::store::QUEUED_MAX;

impl Relayer {
    /// Whether a redemption in the contract's queue is ours to execute.
    pub(crate) fn is_ours(&self, queued: &Queued) -> bool {
        let (_, count) = self.state.counts();
        let wanted = queued.relayer == self.address() || self.config.bundle.execute_others;
        if wanted && count >= QUEUED_MAX {
            tracing::warn!(queued = count, "no more queued redemptions are followed until some are executed");
        }
        wanted && count < QUEUED_MAX
    }

    /// Takes note that the contract has an item in its queue, in a final block.
    pub(crate) fn take_queued(&mut self, id: ItemId, queued: Queued) {
        if !self.is_ours(&queued) {
            self.finish_by_others(id);
            return;
        }
        let Some(item) = self.state.position(&id).and_then(|position| self.state.items.get_mut(position)) else {
            return;
        };
        item.enqueue(queued);
        self.note_queued(id, &queued);
    }

    pub(crate) fn note_queued(&mut self, id: ItemId, queued: &Queued) {
        let until = utc(queued.executable_at);
        tracing::info!(sender = %id.sender, sequence = %id.sequence, until, "queued by the outflow limit");
        self.state.totals.queued = self.state.totals.queued.saturating_add(1);
        self.changed = true;
    }

    /// Has what is due paid, by the chain's clock `now` in seconds.
    pub(crate) async fn execute_due(&mut self, now: u64) -> Result<(), RelayerError> {
        let at_ms = self.clock.now_ms();
        let due: Vec<Item> = self
            .state
            .items
            .iter()
            .filter(|item| item.queued.is_some_and(|queued| queued.executable_at <= now))
            .filter(|item| !item.is_parked(at_ms) && !self.state.is_under_way(&item.id()))
            .cloned()
            .collect();
        for item in due {
            if self.state.bundles.len() >= self.config.bundle.in_flight_max {
                break;
            }
            match self.on_chain(&item.id()).await? {
                OnChain::Queued(_) => self.execute(item).await?,
                OnChain::Done => self.finish_by_others(item.id()),
                OnChain::Open | OnChain::Settling => {}
            }
        }
        Ok(())
    }

    async fn execute(&mut self, item: Item) -> Result<(), RelayerError> {
        let call = Call::execute_queued(self.sender.primary().contract(), &item.redemption);
        match self.sender.prepare(call).await {
            Ok(submission) => self.send(submission, &[item]).await,
            Err(SendError::Primary(PrimaryError::Reverted(revert))) if revert.paused_until().is_none() => {
                self.park(item.id(), revert.to_string());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}
