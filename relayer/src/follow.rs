//! Follows transactions until they are final: sends them again, raises their offers, takes apart those that no node
//! will accept, and settles them by what the nodes agree on.

use std::time::Duration;

use alloy::primitives::B256;
use fastpay_core::Redemption;
use fastpay_ethereum::{Inclusion, Payout, PrimaryError, SendError, Spending, SpendingState, Status, Submission};
use tokio::time::Instant;

use crate::pending::RedemptionId;
use crate::relayer::{Relayer, RelayerError, wait_if_it_passes};
use crate::store::{Bundle, Left};

/// A transaction is given up if nodes refuse it for this long and no node knows it.
const REFUSED_MAX: Duration = Duration::from_secs(3_600);

/// The cause of a revert in a final transaction.
enum Fault {
    /// It did not revert.
    None,
    /// It redeemed several redemptions, so the cause is unknown.
    Unknown,
    /// Its one redemption is not at fault: the cause is a pause, another epoch, or another relayer.
    Moment(String),
    /// Its one redemption failed by itself.
    Redemption(String),
}

/// The outcome of a redemption that is never paid.
pub(crate) const DISPLACED: &str = "displaced";

/// The outcome of a redemption in a final block, as a word for its trace.
pub(crate) type Outcome = Result<&'static str, &'static str>;

impl Relayer {
    /// Handles every transaction that is not final: sends it again, raises its offer, or settles its effects.
    pub(crate) async fn follow_bundles(&mut self) -> Result<(), RelayerError> {
        let mut index = 0;
        while let Some(submission) = self.state.bundles.get(index).map(|bundle| bundle.submission.clone()) {
            match self.primary.sender.status(&submission).await {
                Ok(Status::Final(inclusion)) => match self.settle(index, &inclusion).await {
                    Ok(true) => {}
                    Ok(false) => index = index.saturating_add(1),
                    Err(error) => return wait_if_it_passes(error.into()),
                },
                Ok(Status::Superseded) => {
                    tracing::warn!(nonce = submission.nonce, "another transaction of the gas key took this nonce");
                    self.drop_bundle(index);
                }
                Ok(Status::Included { inclusion, .. }) => {
                    self.trace_included(index, &inclusion);
                    self.primary.offered_at.insert(submission.nonce, Instant::now());
                    self.primary.refused_since.remove(&submission.nonce);
                    index = index.saturating_add(1);
                }
                Ok(Status::Pending { known }) => {
                    if known {
                        self.primary.refused_since.remove(&submission.nonce);
                    }
                    if self.push_on(index, submission, known).await? {
                        index = index.saturating_add(1);
                    }
                }
                Err(error) => return wait_if_it_passes(error.into()),
            }
            self.save()?;
        }
        Ok(())
    }

    /// Removes a final transaction, and the redemptions that it redeemed. Its other redemptions wait again, or are
    /// left. Returns false if the nodes do not agree on what happened; then nothing is removed.
    async fn settle(&mut self, index: usize, inclusion: &Inclusion) -> Result<bool, PrimaryError> {
        let Some(bundle) = self.state.bundles.get(index).cloned() else { return Ok(false) };
        let Bundle { submission, items, unlock } = bundle;
        let sender = &self.primary.sender;
        let agreed = self.primary.agreement.agree(async |node| {
            Ok(match sender.status_by(node, &submission).await? {
                Status::Final(seen) => Some((seen.hash, seen.success)),
                _ => None,
            })
        });
        if agreed.await? != Some(Some((inclusion.hash, inclusion.success))) {
            tracing::info!(transaction = %inclusion.hash, "not every Ethereum node has it in a final block");
            return Ok(false);
        }
        let mut states = Vec::with_capacity(items.len());
        for id in &items {
            let Some(state) = self.final_payout(id).await? else { return Ok(false) };
            states.push((*id, state));
        }
        // This omits redemptions that the bundle skipped because another transaction came first.
        let ours = self.primary.sender.primary().spendings_of(inclusion.hash).await?;
        let fault = match &*items {
            _ if inclusion.success => Fault::None,
            [_] => self.fault(&submission, inclusion).await?,
            _ => Fault::Unknown,
        };
        if inclusion.success {
            let spent = |state| ours.values().filter(|spending| spending.state == state).count();
            self.measure_payees(&submission, &items, spent(SpendingState::Queued), inclusion);
        }
        self.trace_included(index, inclusion);
        let included_at = self.traces.forget(submission.nonce);
        self.drop_bundle(index);
        self.metrics.observe_gas(inclusion);
        if !inclusion.success {
            self.metrics.reverted.inc();
        }
        if let Some(step) = unlock {
            self.settle_step(step, inclusion);
        }
        for (id, state) in states {
            let item = self.state.position(&id).and_then(|position| self.state.items.get(position)).cloned();
            let was_queued = item.as_ref().is_some_and(|item| item.queued.is_some());
            let spending = ours.get(&(id.sender, id.sequence));
            let by_us = spending.is_some_and(|spending| matches!(spending.state, SpendingState::Paid { .. }));
            let outcome = match (state, inclusion.success) {
                (Payout::Done, _) if by_us => self.finish_by_us(id, was_queued, inclusion),
                (Payout::Done, _) => self.finish_by_others(id).await,
                (Payout::Queued(queued), _) if !was_queued => self.take_queued(id, queued).await,
                (_, true) => {
                    self.postpone(id, format!("transaction {} had no effect on it", inclusion.hash));
                    Err("no-effect")
                }
                (_, false) => {
                    self.blame(id, &fault, inclusion);
                    Err("reverted")
                }
            };
            if let Some(item) = item {
                self.traces.ended(&item, included_at, outcome);
            }
        }
        Ok(true)
    }

    /// Finds the cause of the revert of a transaction with one redemption.
    async fn fault(&self, submission: &Submission, inclusion: &Inclusion) -> Result<Fault, PrimaryError> {
        let unexplained =
            "for no known reason: its payee or token may behave differently in transactions than in simulations";
        Ok(match self.primary.sender.why_reverted(submission, inclusion).await {
            Ok(Some(revert)) if revert.is_of_the_moment() => Fault::Moment(revert.to_string()),
            Ok(Some(revert)) => Fault::Redemption(revert.to_string()),
            Ok(None) => Fault::Redemption(unexplained.into()),
            // The node no longer has the state of that block, and will not have it again.
            Err(PrimaryError::Refused { .. }) => Fault::Redemption(unexplained.into()),
            Err(error) => return Err(error),
        })
    }

    /// Handles a redemption whose transaction reverted.
    fn blame(&mut self, id: RedemptionId, fault: &Fault, inclusion: &Inclusion) {
        let transaction = inclusion.hash;
        match fault {
            Fault::None | Fault::Unknown => self.set_alone(id),
            Fault::Moment(reason) => self.postpone(id, format!("transaction {transaction} reverted: {reason}")),
            Fault::Redemption(reason) => {
                let reason = format!("its own transaction {transaction} reverted: {reason}");
                tracing::error!(sender = %id.sender, sequence = %id.sequence, reason, "left to its owner");
                self.state.totals.failed_alone = self.state.totals.failed_alone.saturating_add(1);
                self.state.remember(Left { item: id, reason, transaction: Some(transaction) });
                self.finish(id);
            }
        }
    }

    /// Gives up a transaction that no node will accept. Its redemptions are submitted singly from now on, and the next
    /// transaction gets its nonce. A redemption that was alone waits for a while, because the fault is not its own.
    pub(crate) fn take_apart(&mut self, index: usize, reason: &str) {
        let Some(Bundle { submission, items, .. }) = self.state.bundles.get(index).cloned() else { return };
        let nonce = submission.nonce;
        tracing::error!(nonce, items = items.len(), reason, "no Ethereum node accepts a transaction; it is split");
        self.drop_bundle(index);
        self.primary.sender.release(nonce);
        self.state.free_nonces.push(nonce);
        self.metrics.taken_apart.inc();
        match *items {
            [id] => self.postpone(id, format!("no Ethereum node accepts its transaction: {reason}")),
            _ => items.into_iter().for_each(|id| self.set_alone(id)),
        }
    }

    fn trace_included(&mut self, index: usize, inclusion: &Inclusion) {
        let Some(bundle) = self.state.bundles.get(index) else { return };
        let items = bundle.items.iter().filter_map(|id| self.state.items.get(self.state.position(id)?));
        self.traces.included(bundle.submission.nonce, inclusion, items);
    }

    fn drop_bundle(&mut self, index: usize) {
        let bundle = self.state.bundles.remove(index);
        self.traces.forget(bundle.submission.nonce);
        self.primary.offered_at.remove(&bundle.submission.nonce);
        self.primary.refused_since.remove(&bundle.submission.nonce);
        self.changed = true;
    }

    /// Sends a transaction again if the nodes forgot it, with a higher offer if it waits too long. Returns false if it
    /// was taken apart.
    async fn push_on(&mut self, index: usize, mut submission: Submission, known: bool) -> Result<bool, RelayerError> {
        let offered_at = *self.primary.offered_at.entry(submission.nonce).or_insert_with(Instant::now);
        let stuck = offered_at.elapsed() >= Duration::from_millis(self.primary.sender.config().stuck_after_ms);
        let mut send = !known;
        if stuck {
            self.primary.offered_at.insert(submission.nonce, Instant::now());
            match self.primary.sender.raised(&submission).await {
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
                Err(error) => wait_if_it_passes(error.into())?,
            }
        }
        if !send {
            return Ok(true);
        }
        match self.primary.sender.broadcast(&submission).await {
            Ok(()) => drop(self.primary.refused_since.remove(&submission.nonce)),
            Err(SendError::Unsendable { reason, .. }) => {
                self.take_apart(index, &reason.to_string());
                return Ok(false);
            }
            Err(error) => {
                if self.is_given_up(&submission, &error).await? {
                    self.take_apart(index, &error.to_string());
                    return Ok(false);
                }
                wait_if_it_passes(error.into())?;
            }
        }
        Ok(true)
    }

    /// Whether a refused transaction is given up, whatever the reason: all later ones wait for it. If it is still
    /// included, the transaction that has its nonce then is not.
    async fn is_given_up(&mut self, submission: &Submission, error: &SendError) -> Result<bool, RelayerError> {
        if !matches!(error, SendError::Primary(PrimaryError::Refused { .. })) {
            return Ok(false);
        }
        let since = *self.primary.refused_since.entry(submission.nonce).or_insert_with(Instant::now);
        Ok(since.elapsed() >= REFUSED_MAX && !self.primary.sender.is_known_anywhere(submission).await)
    }

    fn finish_by_us(&mut self, id: RedemptionId, was_queued: bool, inclusion: &Inclusion) -> Outcome {
        let done = if was_queued { "executed" } else { "redeemed" };
        tracing::info!(sender = %id.sender, sequence = %id.sequence, transaction = %inclusion.hash, "{done}");
        let totals = &mut self.state.totals;
        let total = if was_queued { &mut totals.executed } else { &mut totals.redeemed };
        *total = total.saturating_add(1);
        self.finish(id);
        Ok(done)
    }

    /// The redemption on which the contract spent a number, from its log in final blocks. `None` if it is unknown, or
    /// the nodes disagree.
    pub(crate) async fn spending(&mut self, id: &RedemptionId) -> Option<Spending> {
        let primary = self.primary.sender.primary();
        let ask = async |node| {
            let answer = primary.final_spending_by(node, id.sender, id.sequence).await;
            // This node may still answer all other requests.
            Ok(answer
                .inspect_err(
                    |error| tracing::warn!(node, %error, "the logs do not show which order a number was spent on"),
                )
                .ok())
        };
        self.primary.agreement.agree(ask).await.ok().flatten().flatten().flatten()
    }

    /// Why a redemption is never paid, and the transaction that proves it. Either its number was spent on another
    /// order, which takes the redemption keys of a quorum, or a quorum released it from the queue. The bit of its
    /// number does not distinguish the two.
    pub(crate) fn displaced(&self, redemption: &Redemption, spending: &Spending) -> Option<(&'static str, B256)> {
        let digest = self.domain.transfer_digest(&redemption.clone().into());
        let why = match spending.state {
            _ if spending.digest != digest => "its number was spent on another order: redemption keys are stolen",
            SpendingState::Released => "it was released from the contract's queue",
            SpendingState::Paid { .. } | SpendingState::Queued => return None,
        };
        Some((why, spending.transaction))
    }

    /// Removes an item that somebody else redeemed, or that nobody can redeem any more. It counts as redeemed only if
    /// it is known to be paid.
    pub(crate) async fn finish_by_others(&mut self, id: RedemptionId) -> Outcome {
        let spending = self.spending(&id).await;
        if spending.is_some_and(|spending| self.leave_displaced(id, &spending)) {
            return Err(DISPLACED);
        }
        self.finish(id);
        if spending.is_none() {
            return Err("unknown");
        }
        tracing::info!(sender = %id.sender, sequence = %id.sequence, "redeemed by another account");
        self.state.totals.redeemed_by_others = self.state.totals.redeemed_by_others.saturating_add(1);
        Ok("by-others")
    }

    /// Removes a redemption that is never paid. Returns false if it may still be paid.
    pub(crate) fn leave_displaced(&mut self, id: RedemptionId, spending: &Spending) -> bool {
        let item = self.state.position(&id).and_then(|position| self.state.items.get(position));
        let item = item.filter(|item| {
            // Retired keys made it, or another certificate of its number is the genuine one.
            let is_refused = self.current_epoch().is_some_and(|current| item.is_refused(current));
            let mut others = item.alternatives.iter();
            !is_refused && others.all(|other| self.displaced(&other.redemption, spending).is_some())
        });
        let Some((why, transaction)) = item.and_then(|item| self.displaced(&item.redemption, spending)) else {
            return false;
        };
        tracing::error!(
            sender = %id.sender, sequence = %id.sequence, %transaction, why,
            "a redemption cannot be paid any more"
        );
        self.state.totals.displaced = self.state.totals.displaced.saturating_add(1);
        self.state.remember(Left { item: id, reason: why.into(), transaction: Some(transaction) });
        self.finish(id);
        true
    }
}
