//! Turns pending redemptions into transactions, when the policy decides so and by the cheapest plan that the
//! authorities support. Redemptions that shared a transaction without effect get one each from then on.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use alloy::primitives::U256;
use fastpay_core::{Committees, Epoch};
use fastpay_ethereum::{Call, Offer, PrimaryError, SendError, Sender, Submission, gas_limit, utc};

use crate::bundle::{Ready, Sifted, Trial, by_certificates, sift};
use crate::ethereum::OnChain;
use crate::gas::Plan;
use crate::means::Means;
use crate::pending::{PendingRedemption, RedemptionId};
use crate::policy::{Conditions, Decision, Reason, Room, Waiting, judge};
use crate::relayer::{Relayer, RelayerError, wait_if_it_passes};
use crate::store::Bundle;
use crate::votes::Asked;

/// Votes of an epoch that ends within this many seconds are not used, because a transaction may wait for its block.
const ENDING_MARGIN_S: u64 = 600;

/// The gas of an empty transaction: a payment of nothing to ourselves costs 21,000, and more if the key is delegated to
/// code (EIP-7702).
const FILLER_GAS: u64 = 100_000;

/// The conditions on the chain.
struct Outlook {
    committees: Committees,
    /// Epochs of pending redemptions whose votes the contract no longer accepts, or not for long.
    ended: BTreeSet<Epoch>,
    means: Means,
}

impl Outlook {
    fn quorum(&self) -> usize {
        self.committees.current().quorum()
    }
}

impl Relayer {
    /// Executes the due redemptions of the contract's queue, and submits pending ones when the policy decides so.
    pub(crate) async fn submit_bundles(&mut self, eager: bool) -> Result<(), RelayerError> {
        let submitted = self.submit_all(eager).await;
        // The next transaction gets the free nonce. Without one, fill the gap: later transactions wait for it.
        let filled = self.fill_gap().await;
        for outcome in [submitted, filled] {
            outcome.or_else(wait_if_it_passes)?;
        }
        Ok(())
    }

    async fn submit_all(&mut self, eager: bool) -> Result<(), RelayerError> {
        self.leave_what_is_not_served();
        let (open, queued) = (self.open_items(), self.state.counts().1);
        if open.is_empty() && queued == 0 {
            self.note_pause(None);
            self.note_decision(Decision::default());
            return Ok(());
        }
        let primary = self.primary.sender.primary();
        let now = primary.latest_head().await?.timestamp();
        let paused_until = primary.paused_until().await?;
        self.note_pause(paused_until);
        if paused_until.is_some() {
            let decision = Decision { reason: Reason::Paused, items: open.len(), ..Decision::default() };
            self.note_decision(decision);
            return Ok(());
        }
        let due = self.due(now);
        if open.is_empty() && due.is_empty() {
            self.note_decision(Decision::default());
            return Ok(());
        }
        self.follow_committees().await?;
        let Some(committees) = self.committees.clone() else { return Ok(()) };
        let ended = self.ended(&committees, &open, now).await?;
        let mut outlook = Outlook { committees, ended, means: self.means().await? };
        let quorum = outlook.quorum();
        self.execute_due(due, now, quorum, &mut outlook.means).await?;
        if open.is_empty() {
            self.note_decision(Decision::default());
            return Ok(());
        }
        self.submit_singly(&mut outlook).await?;
        while self.has_place() && self.submit_some(&mut outlook, eager).await? {}
        // Those that were singled out meanwhile, because their payees may spend gas.
        self.submit_singly(&mut outlook).await
    }

    /// Whether one more transaction may be under way.
    pub(crate) fn has_place(&self) -> bool {
        self.state.bundles.len() < self.config.bundle.in_flight_max
    }

    /// Uses a free nonce for an empty transaction if later transactions wait for it.
    async fn fill_gap(&mut self) -> Result<(), RelayerError> {
        if !self.state.has_gap() {
            return Ok(());
        }
        let offer = self.primary.sender.current_offer().await?;
        let call = Call { to: self.address(), value: Default::default(), data: Default::default() };
        let submission = self.primary.sender.prepare_within(call, &offer, FILLER_GAS).await?;
        tracing::info!(nonce = submission.nonce, "sending an empty transaction to use a free nonce");
        self.send(submission, &[]).await
    }

    /// Gives a transaction of its own to each redemption that shared one without effect, or that pays a contract. It
    /// was worth its gas once, so it is not judged again.
    async fn submit_singly(&mut self, outlook: &mut Outlook) -> Result<(), RelayerError> {
        let alone: Vec<PendingRedemption> = self.open_items().into_iter().filter(|item| item.alone).collect();
        for item in alone {
            if !self.has_place() {
                break;
            }
            if !self.is_open(item.id()).await? {
                continue;
            }
            if outlook.ended.contains(&item.epoch) {
                self.submit_batch(outlook, vec![item]).await?;
            } else {
                self.submit_certificates(outlook, vec![item]).await?;
            }
        }
        Ok(())
    }

    async fn ended(
        &self,
        committees: &Committees,
        items: &[PendingRedemption],
        now: u64,
    ) -> Result<BTreeSet<Epoch>, PrimaryError> {
        let epochs: BTreeSet<Epoch> = items.iter().map(|item| item.epoch).collect();
        let mut ended = BTreeSet::new();
        for epoch in epochs.into_iter().filter(|epoch| *epoch != committees.current().epoch()) {
            let valid_until = self.primary.sender.primary().epoch_valid_until(epoch).await?;
            if valid_until < now.saturating_add(ENDING_MARGIN_S) {
                ended.insert(epoch);
            }
        }
        Ok(ended)
    }

    /// Submits one transaction, unless there is nothing to submit now.
    async fn submit_some(&mut self, outlook: &mut Outlook, eager: bool) -> Result<bool, RelayerError> {
        let means = &outlook.means;
        let (quorum, gas_price_wei, room) = (outlook.quorum(), means.offer.price(), means.room());
        let conditions = Conditions { quorum, gas_price_wei, room };
        let policy = self.config.bundle.policy();
        let is_queued = self.above_outflow_limit().await?;
        let (mut out, mut checked) = (HashSet::new(), HashSet::new());
        let (plan, items) = loop {
            let mut open = self.open_items();
            open.retain(|item| !item.alone && !out.contains(&item.id()));
            let now = self.clock.now_ms();
            let waiting: Vec<_> = open
                .iter()
                .map(|item| Waiting {
                    waited_ms: if eager { u64::MAX } else { now.saturating_sub(item.seen_at_ms) },
                    fee_wei: self.config.assets.worth(item.redemption.asset, item.redemption.fee).unwrap_or_default(),
                    payouts: item.payouts(),
                    is_queued: is_queued.contains(&item.id()),
                    needs_batch: outlook.ended.contains(&item.epoch),
                })
                .collect();
            let judged = judge(&waiting, conditions, policy);
            let left: Vec<_> =
                judged.leave.iter().filter_map(|index| open.get(*index).map(PendingRedemption::id)).collect();
            left.into_iter().for_each(|id| self.leave(id));
            self.note_decision(judged.decision);
            let Some((plan, positions)) = judged.submit else { return Ok(false) };
            let chosen: Vec<PendingRedemption> =
                positions.iter().filter_map(|index| open.get(*index).cloned()).collect();
            let before = out.len();
            for (item, position) in chosen.iter().zip(positions) {
                let id = item.id();
                if checked.contains(&id) {
                    continue;
                }
                if !self.is_open(id).await? {
                    out.insert(id);
                } else if self.may_spend_gas(item).await? {
                    if let Some(waiting) = waiting.get(position) {
                        self.single_out(item, *waiting, conditions);
                    }
                    out.insert(id);
                } else {
                    checked.insert(id);
                }
            }
            if out.len() == before {
                break (plan, chosen);
            }
        };
        match plan {
            Plan::Certificates => self.submit_certificates(outlook, items).await,
            Plan::Batch => self.submit_batch(outlook, items).await,
        }
    }

    /// The pending redemptions for which the outflow limit leaves no room, if the oldest go first.
    async fn above_outflow_limit(&self) -> Result<BTreeSet<RedemptionId>, PrimaryError> {
        let (mut left, mut above) = (BTreeMap::new(), BTreeSet::new());
        for item in self.open_items() {
            let (asset, amount) = (item.redemption.asset, U256::from(item.redemption.amount.0));
            let available = match left.get(&asset) {
                Some(available) => *available,
                None => self.primary.sender.primary().outflow_available(asset).await?,
            };
            let rest = available.checked_sub(amount);
            left.insert(asset, rest.unwrap_or(available));
            if rest.is_none() {
                above.insert(item.id());
            }
        }
        Ok(above)
    }

    /// Whether a redemption is still to be redeemed. If others have redeemed it, notes that.
    async fn is_open(&mut self, id: RedemptionId) -> Result<bool, PrimaryError> {
        match self.on_chain(&id).await? {
            OnChain::Open => return Ok(true),
            // A reorganisation may still revert it.
            OnChain::Settling => {}
            OnChain::Queued(queued) => drop(self.take_queued(id, queued).await),
            OnChain::Done => drop(self.finish_by_others(id).await),
        }
        Ok(false)
    }

    async fn submit_certificates(
        &mut self,
        outlook: &mut Outlook,
        items: Vec<PendingRedemption>,
    ) -> Result<bool, RelayerError> {
        let contract = self.primary.sender.primary().contract();
        let trials = Trials::new(&self.primary.sender, Plan::Certificates, outlook);
        let sifted = sift(items, async |part| trials.attempt(part, by_certificates(contract, part)).await).await?;
        self.submit_sifted(outlook, sifted).await
    }

    /// Asks the current committee for one vote on the redemptions together. Those that get none are submitted by their
    /// certificates, if the contract still accepts these.
    async fn submit_batch(
        &mut self,
        outlook: &mut Outlook,
        items: Vec<PendingRedemption>,
    ) -> Result<bool, RelayerError> {
        let (domain, contract) = (self.domain, self.primary.sender.primary().contract());
        let trials = Trials::new(&self.primary.sender, Plan::Batch, outlook);
        let (voters, committees) = (&mut self.voters, &outlook.committees);
        let Asked { agreement, refused, unknown } = voters.agree(&domain, committees, items).await;
        let sifted = match agreement {
            None => Sifted::default(),
            Some(agreement) => {
                let agreed = agreement.items.clone();
                let mut first = Some(agreement);
                let trial = async |part: &[PendingRedemption]| {
                    let agreement = match first.take() {
                        Some(agreement) => Some(agreement),
                        // Faulty redemptions were removed, so the others need votes of their own.
                        None => voters.agree(&domain, committees, part.to_vec()).await.agreement,
                    };
                    let Some(agreement) = agreement.filter(|agreement| agreement.items == part) else {
                        return Ok(Trial::Unsigned);
                    };
                    let redemptions: Vec<_> = part.iter().map(|item| item.redemption.clone()).collect();
                    let call = Call::redeem_batch(contract, &redemptions, agreement.epoch, agreement.votes);
                    trials.attempt(part, call).await
                };
                sift(agreed, trial).await?
            }
        };
        let sent = self.submit_sifted(outlook, sifted).await?;
        if refused.is_empty() {
            return Ok(sent);
        }
        tracing::warn!(items = refused.len(), "no quorum votes for some redemptions together");
        let (ended, live): (Vec<_>, Vec<_>) = refused.into_iter().partition(|item| outlook.ended.contains(&item.epoch));
        for id in ended.iter().map(PendingRedemption::id) {
            if unknown.contains(&id) {
                self.refuse(id);
            } else {
                self.postpone(id, "its epoch has ended, and too few authorities certify it again".into());
            }
        }
        Ok(self.submit_certificates(outlook, live).await? || sent)
    }

    async fn submit_sifted(&mut self, outlook: &mut Outlook, sifted: Sifted) -> Result<bool, RelayerError> {
        for (item, revert) in sifted.bad {
            if revert.is_of_the_moment() {
                self.postpone(item.id(), revert.to_string());
            } else {
                self.park(item.id(), revert.to_string());
            }
        }
        self.save()?;
        let Some((items, Ready { call, gas_limit })) = sifted.good else { return Ok(false) };
        let submission = self.primary.sender.prepare_within(call, &outlook.means.offer, gas_limit).await?;
        outlook.means.spend(gas_limit);
        self.send(submission, &items).await?;
        Ok(true)
    }

    pub(crate) async fn send(
        &mut self,
        submission: Submission,
        items: &[PendingRedemption],
    ) -> Result<(), RelayerError> {
        let hash = submission.attempts.last().map(|attempt| attempt.hash).unwrap_or_default();
        let (nonce, gas_limit) = (submission.nonce, submission.gas_limit);
        tracing::info!(items = items.len(), nonce, gas_limit, transaction = %hash, "submitting");
        self.traces.submitted(&submission, items);
        let items = items.iter().map(PendingRedemption::id).collect();
        self.send_bundle(Bundle { submission, items, unlock: None }).await
    }

    /// Writes a transaction to disk, and sends it.
    pub(crate) async fn send_bundle(&mut self, bundle: Bundle) -> Result<(), RelayerError> {
        let submission = bundle.submission.clone();
        self.primary.offered_at.insert(submission.nonce, tokio::time::Instant::now());
        self.metrics.submitted.inc();
        // Somebody else has used the free nonces below it.
        self.state.free_nonces.retain(|free| *free > submission.nonce);
        self.state.bundles.push(bundle);
        self.changed = true;
        // Write it to disk before sending it: a restart then finds this transaction and sends no second one.
        self.save()?;
        match self.primary.sender.broadcast(&submission).await {
            Ok(()) => Ok(()),
            Err(SendError::Unsendable { reason, .. }) => {
                let newest = self.state.bundles.len().saturating_sub(1);
                self.take_apart(newest, &reason.to_string());
                self.save()
            }
            Err(error) => wait_if_it_passes(error.into()),
        }
    }

    fn note_decision(&mut self, decision: Decision) {
        let shown = |of: &Decision| (of.reason, of.plan, of.items);
        if shown(&decision) == shown(&self.state.decision) {
            return;
        }
        let Decision { reason, plan, items, gas_each, gas_price_wei } = decision;
        let gas_price_gwei = gas_price_wei / 1_000_000_000;
        tracing::info!(items, ?plan, gas_each, gas_price_gwei, "{}", reason.text());
        self.state.decision = decision;
        self.changed = true;
    }

    fn note_pause(&mut self, until: Option<u64>) {
        if self.state.paused_until == until {
            return;
        }
        match until {
            Some(until) => tracing::warn!(until = utc(until), "the contract is paused; waiting"),
            None => tracing::info!("the contract is no longer paused"),
        }
        self.state.paused_until = until;
        self.changed = true;
    }
}

/// Simulates calls, each with the offer and the gas of its transaction.
pub(crate) struct Trials<'a> {
    sender: &'a Sender,
    plan: Plan,
    quorum: usize,
    offer: Offer,
    room: Room,
}

impl<'a> Trials<'a> {
    fn new(sender: &'a Sender, plan: Plan, outlook: &Outlook) -> Self {
        Self::with(sender, plan, outlook.quorum(), &outlook.means)
    }

    pub(crate) fn with(sender: &'a Sender, plan: Plan, quorum: usize, means: &Means) -> Self {
        Self { sender, plan, quorum, offer: means.offer, room: means.room() }
    }

    pub(crate) async fn attempt(&self, items: &[PendingRedemption], call: Call) -> Result<Trial, PrimaryError> {
        let most = self.plan.gas_max(self.quorum, items.iter().map(PendingRedemption::payouts));
        let room = self.room.of(items.len());
        if most > room {
            return Ok(Trial::TooLarge);
        }
        match self.sender.simulate(&call, &self.offer, room).await {
            // Trust the node if it estimates more: gas prices may have changed since this model was written.
            Ok(estimate) => {
                let gas_limit = most.max(gas_limit(estimate));
                Ok(if gas_limit > room { Trial::TooLarge } else { Trial::Succeeds(Ready { call, gas_limit }) })
            }
            Err(PrimaryError::Reverted(revert)) => Ok(Trial::Reverts(revert)),
            Err(error) => Err(error),
        }
    }
}
