//! From the authorities' redemption logs to waiting redemptions: verified, of an asset that is served, not yet redeemed, not known.

use std::time::Duration;

use fastpay_core::{Certificate, Committee, Epoch, Redemption, Transfer};
use fastpay_ethereum::{DepositsError, Payout, PrimaryError, Queued};
use fastpay_rpc::PAGE_ENTRIES_MAX;
use tokio::time::Instant;

use crate::gas::{Payouts, Plan};
use crate::metrics::Tick;
use crate::pending::{PendingRedemption, RedemptionId};
use crate::policy::BelowCost;
use crate::redemption_logs::{RedemptionPage, ShardKey};
use crate::relayer::{Relayer, RelayerError, wait_or_stop};
use crate::store::PENDING_MAX;

/// A fee that covers less than this part of the share of a full transaction will not do so later: gas would have to become
/// eight times cheaper while the redemption waits.
const HOPELESS_DIVISOR: u64 = 8;
/// About a block.
const GAS_PRICE_AGE_MAX: Duration = Duration::from_secs(12);

/// The result of reading an entry of a redemption log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// It is a pending redemption now, or needs no submission.
    Dealt,
    /// Its committee is not yet final on the chain: read the entry again later.
    Later,
}

/// The state of a redemption on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnChain {
    /// Not redeemed.
    Open,
    /// Redeemed or queued in a block that may still change, or by the answers of some nodes only.
    Settling,
    /// In the contract's queue, in a final block.
    Queued(Queued),
    /// Paid in a final block.
    Done,
}

impl Relayer {
    /// Takes one page of every redemption log. Cursors move only past entries that were dealt with.
    pub(crate) async fn take_feeds(&mut self) -> Result<Tick, RelayerError> {
        self.align_cursors();
        self.refresh_gas_price().await;
        if self.is_full() {
            tracing::warn!(
                items = PENDING_MAX,
                "redemption logs are not read until some of the waiting redemptions are done"
            );
            return Ok(Tick { answered: 1, ..Tick::default() });
        }
        let cursors = self.state.cursors.clone();
        let cursor = |shard: &ShardKey| {
            cursors.get(&shard.0).and_then(|shards| shards.get(shard.1)).copied().unwrap_or_default()
        };
        let (pages, silent) = self.redemption_logs.read(cursor).await;
        let mut tick = Tick { answered: pages.len(), silent, caught_up: true, ..Tick::default() };
        for page in pages {
            let (shard, total) = (page.shard, page.page.total);
            // A log that gives nothing, or nothing valid, has nothing, however long it claims to be.
            let (start, entries, invalid) = (page.start, page.page.entries.len() as u64, self.state.totals.invalid);
            let next = self.take_page(page).await?;
            let is_worthless = self.state.totals.invalid.saturating_sub(invalid) >= entries;
            tick.caught_up &= next >= total || (is_worthless && next >= start);
            self.set_cursor(shard, next);
        }
        Ok(tick)
    }

    /// An authority that changed its number of shards has other redemption logs: they are read from their start.
    fn align_cursors(&mut self) {
        for (authority, count) in self.redemption_logs.shards() {
            let cursors = self.state.cursors.entry(authority).or_default();
            if cursors.len() != count {
                *cursors = vec![0; count];
                self.changed = true;
            }
        }
    }

    fn set_cursor(&mut self, (authority, index): ShardKey, next: u64) {
        let cursor = self.state.cursors.get_mut(&authority).and_then(|shards| shards.get_mut(index));
        if let Some(cursor) = cursor
            && *cursor != next
        {
            *cursor = next;
            self.changed = true;
        }
    }

    /// Deals with the entries of a page, and returns the number of the first one that was not.
    async fn take_page(&mut self, page: RedemptionPage) -> Result<u64, RelayerError> {
        let RedemptionPage { shard, start, page } = page;
        if page.total < start {
            tracing::warn!(authority = %shard.0, shard = shard.1, start, total = page.total, "a redemption log became shorter; it is read again");
            return Ok(0);
        }
        let mut next = start;
        let invalid_before = self.state.totals.invalid;
        for certificate in page.entries.into_iter().take(PAGE_ENTRIES_MAX as usize) {
            if self.is_full() {
                break;
            }
            match self.take(certificate).await {
                Ok(Taken::Dealt) => next = next.saturating_add(1),
                Ok(Taken::Later) => break,
                Err(error) => {
                    wait_or_stop(error)?;
                    break;
                }
            }
        }
        let entries = self.state.totals.invalid.saturating_sub(invalid_before);
        if entries > 0 {
            tracing::warn!(authority = %shard.0, shard = shard.1, entries, "a redemption log has entries that are no valid redemptions");
        }
        Ok(next)
    }

    /// Adds a certificate, unless it is not needed.
    async fn take(&mut self, certificate: Certificate) -> Result<Taken, PrimaryError> {
        if let Transfer::Redemption(redemption) = &certificate.order.transfer {
            let id = RedemptionId { sender: redemption.sender, sequence: redemption.sequence };
            if self.finished.contains(&id) || self.state.position(&id).is_some() {
                return Ok(Taken::Dealt);
            }
        }
        let domain = self.sender.primary().domain();
        let epoch = certificate.epoch;
        if self.committee(epoch).is_none() && self.sender.primary().epoch().await? >= epoch {
            self.follow_committees().await?;
            // A rotation that is in the chain will be final; one that is not there is made up.
            if self.committee(epoch).is_none() {
                return Ok(Taken::Later);
            }
        }
        let (now_ms, since) = (self.clock.now_ms(), self.traces.now());
        let committee = self.committee(epoch);
        let item = committee.and_then(|committee| {
            let verified = certificate.verify(&domain, committee).ok()?;
            PendingRedemption::new(&verified, committee, now_ms)
        });
        let Some(mut item) = item else {
            // Only a faulty authority shows such an entry, and it harms nobody to pass it by.
            self.state.totals.invalid = self.state.totals.invalid.saturating_add(1);
            return Ok(Taken::Dealt);
        };
        let (id, fee, asset) = (item.id(), item.redemption.fee, item.redemption.asset);
        if !self.config.assets.serves(asset) {
            tracing::debug!(%asset, "not in [assets]");
            self.leave_unserved(id);
            return Ok(Taken::Dealt);
        }
        if self.is_hopeless(&item.redemption) {
            self.leave(id);
            return Ok(Taken::Dealt);
        }
        match self.on_chain(&id).await? {
            OnChain::Queued(queued) if self.is_ours(&queued) => {
                let spending = self.spending(&id).await;
                if spending.is_some_and(|spending| self.displaced(&item.redemption, &spending).is_some()) {
                    self.finished.insert(id);
                    return Ok(Taken::Dealt);
                }
                item.enqueue(queued);
                self.note_queued(id, &queued);
            }
            OnChain::Done | OnChain::Queued(_) => {
                self.finished.insert(id);
                return Ok(Taken::Dealt);
            }
            OnChain::Open | OnChain::Settling => {
                let digest = domain.transfer_digest(&item.redemption.clone().into());
                tracing::info!(sender = %id.sender, sequence = %id.sequence, %digest, %fee, "a redemption to bring to the contract");
            }
        }
        self.traces.seen(&item, since);
        self.state.items.push(item);
        self.changed = true;
        Ok(Taken::Dealt)
    }

    fn committee(&self, epoch: Epoch) -> Option<&Committee> {
        self.committees.as_ref()?.get(epoch).map(AsRef::as_ref)
    }

    /// Learns the committees of all epochs that began in a final block. If they cannot be learned now, what is
    /// known stays true.
    pub(crate) async fn follow_committees(&mut self) -> Result<(), PrimaryError> {
        let known = self.committees.as_ref().map(|committees| committees.current().epoch());
        match self.epochs.read(self.committees.as_ref()).await {
            Ok(committees) => {
                let epoch = committees.current().epoch();
                if known.is_some_and(|known| known < epoch) {
                    tracing::info!(%epoch, "the committee has changed");
                }
                self.committees = Some(committees);
            }
            Err(DepositsError::Alarm(alarm)) => {
                tracing::error!(%alarm, "the committees cannot be followed; look at the Ethereum nodes");
            }
            Err(DepositsError::Primary(error)) => return Err(error),
            Err(error) => tracing::warn!(%error, "waiting"),
        }
        Ok(())
    }

    /// Whether a fee is too small to cover its share of the gas in any transaction. Without this check anybody could
    /// fill all places with redemptions that cost nothing, and delay those of others.
    fn is_hopeless(&self, redemption: &Redemption) -> bool {
        let (Some((gas_price_wei, _)), Some(committees)) = (self.gas_price, &self.committees) else { return false };
        let bundle = &self.config.bundle;
        let share = Plan::Batch.gas_each(committees.current().quorum(), bundle.items_max);
        let gas = share.saturating_add(Payouts::of(redemption).gas()) / HOPELESS_DIVISOR;
        let worth = self.config.assets.worth(redemption.asset, redemption.fee).unwrap_or_default();
        bundle.below_cost == BelowCost::Leave && worth < u128::from(gas).saturating_mul(gas_price_wei)
    }

    /// Reads the gas price, if it matters and the last one is old.
    async fn refresh_gas_price(&mut self) {
        let is_fresh = self.gas_price.is_some_and(|(_, at)| at.elapsed() < GAS_PRICE_AGE_MAX);
        if is_fresh || self.config.bundle.below_cost != BelowCost::Leave {
            return;
        }
        self.gas_price = match self.sender.current_offer().await {
            Ok(offer) => Some((offer.price(), Instant::now())),
            Err(error) => {
                tracing::debug!(%error, "what gas costs is not known");
                None
            }
        };
    }

    fn is_full(&self) -> bool {
        self.state.counts().0 >= PENDING_MAX
    }

    /// The state of a redemption on the chain. One node's answer suffices to continue with it, never to end it.
    pub(crate) async fn on_chain(&mut self, id: &RedemptionId) -> Result<OnChain, PrimaryError> {
        if self.sender.primary().payout(id.sender, id.sequence).await? == Payout::Open {
            return Ok(OnChain::Open);
        }
        Ok(match self.final_payout(id).await? {
            None | Some(Payout::Open) => OnChain::Settling,
            Some(Payout::Queued(queued)) => OnChain::Queued(queued),
            Some(Payout::Done) => OnChain::Done,
        })
    }

    /// The state of a redemption in final blocks; none if the nodes do not agree.
    pub(crate) async fn final_payout(&mut self, id: &RedemptionId) -> Result<Option<Payout>, PrimaryError> {
        let primary = self.sender.primary();
        self.agreement.agree(async |node| primary.final_payout_by(node, id.sender, id.sequence).await).await
    }
}
