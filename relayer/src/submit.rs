//! From waiting items to final transactions.

use std::time::{Duration, Instant};

use fastpay_ethereum::{Inclusion, PrimaryError, SendError, Status, Submission};

use crate::bundle::{Sifted, call, sift};
use crate::intake::OnChain;
use crate::item::{Item, ItemId};
use crate::relayer::{Relayer, RelayerError, now_ms, wait_or_stop};
use crate::store::Bundle;

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
                Ok(Status::Included(_)) => {
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
        let items = self.state.bundles.get(index).map(|bundle| bundle.items.clone()).unwrap_or_default();
        let final_block = self.sender.primary().final_head().await?.number();
        let mut states = Vec::with_capacity(items.len());
        for id in items {
            states.push((id, self.on_chain(&id, final_block).await?));
        }
        self.drop_bundle(index);
        for (id, state) in states {
            match (state, inclusion.success) {
                (OnChain::Done, true) => {
                    tracing::info!(sender = %id.sender, sequence = %id.sequence, transaction = %inclusion.hash, "redeemed");
                    self.state.totals.redeemed = self.state.totals.redeemed.saturating_add(1);
                    self.finish(id);
                }
                (OnChain::Done, false) => self.finish_by_others(id),
                // Not seen by the node that was asked; it will be, or the item is tried again.
                (_, true) => self.park(id, format!("transaction {} is final and had no effect yet", inclusion.hash)),
                (_, false) => self.park(id, format!("transaction {} reverted", inclusion.hash)),
            }
        }
        Ok(())
    }

    fn drop_bundle(&mut self, index: usize) {
        let bundle = self.state.bundles.remove(index);
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

    /// Submits what waits, in bundles, as long as there is enough of it or it has waited long enough.
    pub(crate) async fn submit_bundles(&mut self, eager: bool) -> Result<(), RelayerError> {
        while self.state.bundles.len() < self.config.bundle.in_flight_max {
            let candidates = match self.candidates(eager).await {
                Ok(candidates) if candidates.is_empty() => return Ok(()),
                Ok(candidates) => candidates,
                Err(error) => return wait_or_stop(error),
            };
            let contract = self.sender.primary().contract();
            let sender = &self.sender;
            let simulate = |items: Vec<Item>| async move { sender.simulate(&call(contract, &items)).await.map(drop) };
            let Sifted { good, bad } = match sift(candidates, simulate).await {
                Ok(sifted) => sifted,
                Err(error) => return wait_or_stop(error),
            };
            for (item, reason) in bad {
                self.park(item.id(), reason);
            }
            self.save()?;
            if good.is_empty() {
                return Ok(());
            }
            let submission = match self.sender.prepare(call(contract, &good)).await {
                Ok(submission) => submission,
                Err(error) => return wait_or_stop_sending(error),
            };
            self.send(submission, &good).await?;
        }
        Ok(())
    }

    async fn send(&mut self, submission: Submission, items: &[Item]) -> Result<(), RelayerError> {
        let hash = submission.attempts.last().map(|attempt| attempt.hash).unwrap_or_default();
        tracing::info!(items = items.len(), nonce = submission.nonce, transaction = %hash, "submitting");
        let items = items.iter().map(Item::id).collect();
        self.offered_at.insert(submission.nonce, Instant::now());
        self.state.bundles.push(Bundle { submission: submission.clone(), items });
        self.changed = true;
        // On disk before it leaves: a restart finds the same transaction, not a second one.
        self.save()?;
        match self.sender.broadcast(&submission).await {
            Ok(()) => Ok(()),
            Err(error) => wait_or_stop_sending(error),
        }
    }

    /// The oldest items to submit now, at most a bundle of them; none where it is worth waiting for more.
    async fn candidates(&mut self, eager: bool) -> Result<Vec<Item>, PrimaryError> {
        let now = now_ms();
        let waiting: Vec<Item> = self
            .state
            .items
            .iter()
            .filter(|item| !item.is_parked(now) && !self.state.is_under_way(&item.id()))
            .cloned()
            .collect();
        let limits = &self.config.bundle;
        let (items_max, wait_ms_max) = (limits.items_max, limits.wait_ms_max);
        let has_waited = |item: &Item| item.seen_at_ms.saturating_add(wait_ms_max) <= now;
        let ready = eager || waiting.len() >= items_max || waiting.iter().any(has_waited);
        if !ready || waiting.is_empty() {
            return Ok(Vec::new());
        }
        let final_block = self.sender.primary().final_head().await?.number();
        let mut candidates = Vec::new();
        for item in waiting {
            if candidates.len() >= items_max {
                break;
            }
            match self.on_chain(&item.id(), final_block).await? {
                OnChain::Open => candidates.push(item),
                // Somebody else did it; a reorganisation may still undo that.
                OnChain::Settling => {}
                OnChain::Done => self.finish_by_others(item.id()),
            }
        }
        Ok(candidates)
    }

    fn finish_by_others(&mut self, id: ItemId) {
        tracing::info!(sender = %id.sender, sequence = %id.sequence, "redeemed by somebody else");
        self.state.totals.redeemed_by_others = self.state.totals.redeemed_by_others.saturating_add(1);
        self.finish(id);
    }

    /// Leaves an item out for a while, or for good where it has failed too often.
    fn park(&mut self, id: ItemId, reason: String) {
        tracing::warn!(sender = %id.sender, sequence = %id.sequence, reason, "a redemption fails and is left out for a while");
        self.changed = true;
        let Some(position) = self.state.position(&id) else { return };
        let again = self.state.items.get_mut(position).is_some_and(|item| item.park(reason, now_ms()));
        if !again {
            tracing::error!(sender = %id.sender, sequence = %id.sequence, "given up; its owner can still redeem it");
            self.state.totals.given_up = self.state.totals.given_up.saturating_add(1);
            self.finish(id);
        }
    }
}

fn wait_or_stop_sending(error: SendError) -> Result<(), RelayerError> {
    match error {
        SendError::Primary(error) => wait_or_stop(error),
        error if error.is_retryable() => {
            tracing::warn!(%error, "waiting");
            Ok(())
        }
        error => Err(error.into()),
    }
}
