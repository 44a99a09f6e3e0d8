//! Turns the authorities' redemption logs into pending redemptions: new, verified, of a served asset, and not redeemed.

use std::collections::BTreeSet;
use std::time::Duration;

use fastpay_core::{Certificate, Committee, Epoch, Redemption, Transfer};
use fastpay_rpc::PAGE_ENTRIES_MAX;
use tokio::time::Instant;

use crate::metrics::Tick;
use crate::pending::{PendingRedemption, RedemptionId};
use crate::primary::{PrimarySide, Worth};
use crate::redemption_logs::{RedemptionPage, ShardKey};
use crate::relayer::{Relayer, RelayerError, wait_if_it_passes};
use crate::store::PENDING_MAX;

/// The maximum number of pages of each redemption log in a round, read one after the other: thousands of entries a
/// second, which is more than an authority takes from any address for long.
const PAGES_MAX: usize = 100;
/// No page is requested after this time, so that a slow authority does not delay transactions.
const READING: Duration = Duration::from_secs(2);

/// Why an entry of a redemption log is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PassBy {
    /// It waits, is under way, or is finished.
    Known,
    /// The relayer leaves it to others and to its owner.
    Left,
}

/// The result of reading an entry of a redemption log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// It is a pending redemption now, or needs no submission.
    Dealt,
    /// Its committee is not yet final on the chain: read the entry again later.
    Later,
}

/// The result of reading a page of a redemption log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    /// The number of the first unhandled entry.
    next: u64,
    /// Whether any checked entry was a redemption with a quorum's votes. A log that returns nothing valid counts as
    /// empty, however long it claims to be.
    is_of_use: bool,
}

impl<P: PrimarySide> Relayer<P> {
    /// Reads every redemption log to its end, or up to the limits of a round. Cursors move only past handled entries.
    pub(crate) async fn take_feeds(&mut self) -> Result<Tick, RelayerError> {
        self.align_cursors();
        let mut tick = Tick { answered: 1, ..Tick::default() };
        let began_at = Instant::now();
        let (mut behind, mut is_held_up) = (None::<BTreeSet<ShardKey>>, false);
        for number in 0..PAGES_MAX {
            if !self.has_room() {
                tracing::warn!(
                    items = PENDING_MAX,
                    "redemption logs are not read until some of the waiting redemptions are done"
                );
                break;
            }
            let cursors = self.state.cursors.clone();
            let cursor = |shard: &ShardKey| {
                cursors.get(&shard.0).and_then(|shards| shards.get(shard.1)).copied().unwrap_or_default()
            };
            let is_behind = |shard: &ShardKey| behind.as_ref().is_none_or(|behind| behind.contains(shard));
            let (pages, silent) = self.redemption_logs.read(is_behind, cursor).await;
            // Whatever these pages certify, its epoch has begun by now.
            self.newest_epoch = None;
            if number == 0 {
                (tick.answered, tick.silent) = (pages.len(), silent);
            }
            let mut further = BTreeSet::new();
            for page in pages {
                let (shard, start, total) = (page.shard, page.start, page.page.total);
                let Read { next, is_of_use } = self.take_page(page).await?;
                self.set_cursor(shard, next);
                let is_at_end = next >= total || (!is_of_use && next >= start);
                if !is_at_end && next > start {
                    further.insert(shard);
                }
                is_held_up |= !is_at_end && next <= start;
            }
            tick.caught_up = further.is_empty() && !is_held_up;
            if further.is_empty() || began_at.elapsed() >= READING {
                break;
            }
            behind = Some(further);
        }
        Ok(tick)
    }

    /// Resets the cursors of an authority that changed its number of shards: its redemption logs are new ones.
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

    /// Handles the entries of a page.
    async fn take_page(&mut self, page: RedemptionPage) -> Result<Read, RelayerError> {
        let RedemptionPage { shard, start, page } = page;
        if page.total < start {
            tracing::warn!(
                authority = %shard.0, shard = shard.1, start, total = page.total,
                "a redemption log became shorter; reading it again"
            );
            return Ok(Read { next: 0, is_of_use: true });
        }
        let mut next = start;
        let (entries, invalid_before) = (page.entries.len() as u64, self.state.totals.invalid);
        let (mut passed_by, mut sample) = (0_u64, None);
        for certificate in page.entries.into_iter().take(PAGE_ENTRIES_MAX as usize) {
            if !self.has_room() {
                break;
            }
            match self.why_pass_by(&certificate) {
                Some(PassBy::Known) => {
                    next = next.saturating_add(1);
                    continue;
                }
                Some(PassBy::Left) => {
                    (next, passed_by) = (next.saturating_add(1), passed_by.saturating_add(1));
                    sample = Some(certificate);
                    continue;
                }
                None => {}
            }
            match self.take(certificate).await {
                Ok(Taken::Dealt) => next = next.saturating_add(1),
                Ok(Taken::Later) => break,
                Err(error) => {
                    wait_if_it_passes(error)?;
                    break;
                }
            }
        }
        let mut invalid = self.state.totals.invalid.saturating_sub(invalid_before);
        if invalid > 0 {
            tracing::warn!(
                authority = %shard.0, shard = shard.1, entries = invalid,
                "a redemption log has entries that are no valid redemptions"
            );
        }
        if passed_by > 0 {
            tracing::debug!(
                authority = %shard.0, shard = shard.1, entries = passed_by,
                "left to others: the fee does not cover the gas, or the asset is not served"
            );
        }
        // One sample stands for all of them: it reveals a log of forged entries.
        if sample.is_some_and(|sample| !self.is_valid(sample)) {
            invalid = invalid.saturating_add(passed_by);
        }
        Ok(Read { next, is_of_use: invalid < entries })
    }

    /// Why an entry can be skipped, whoever signed it. This is checked before its signatures, which take a hundred
    /// times longer: entries with a worthless fee cost their makers next to nothing.
    fn why_pass_by(&mut self, certificate: &Certificate) -> Option<PassBy> {
        let Transfer::Redemption(redemption) = &certificate.order.transfer else { return None };
        let id = RedemptionId { sender: redemption.sender, sequence: redemption.sequence };
        let is_kept = self.item(&id).is_some_and(|item| !self.adds(item, redemption, certificate.epoch));
        if self.finished.contains(&id) || is_kept {
            return Some(PassBy::Known);
        }
        let digest = self.domain.transfer_digest(&certificate.order.transfer);
        if self.refused.contains(&(certificate.epoch, digest)) {
            return Some(PassBy::Known);
        }
        let worth = P::worth(self, redemption);
        if worth == Worth::Enough {
            return None;
        }
        if self.passed_by.insert(digest) {
            let totals = &mut self.state.totals;
            let total = if worth == Worth::TooLittle { &mut totals.below_cost } else { &mut totals.not_served };
            *total = total.saturating_add(1);
            self.changed = true;
        }
        Some(PassBy::Left)
    }

    /// Whether it has the votes of a known committee.
    fn is_valid(&self, certificate: Certificate) -> bool {
        let domain = self.domain;
        self.committee(certificate.epoch).is_some_and(|committee| certificate.verify(&domain, committee).is_ok())
    }

    /// The newest epoch of the Primary since the pages were read: an invented epoch costs one question for all of them.
    async fn newest_epoch(&mut self) -> Result<Epoch, RelayerError> {
        if let Some(epoch) = self.newest_epoch {
            return Ok(epoch);
        }
        Ok(*self.newest_epoch.insert(P::newest_epoch(self).await?))
    }

    /// Adds a certificate, unless it is not needed.
    async fn take(&mut self, certificate: Certificate) -> Result<Taken, RelayerError> {
        let domain = self.domain;
        let epoch = certificate.epoch;
        if self.committee(epoch).is_none() && self.newest_epoch().await? >= epoch {
            self.follow_committees().await?;
            // A rotation that the Primary has will become final; one that it has not is invented.
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
            // Only a faulty authority lists such an entry, and skipping it harms nobody.
            self.state.totals.invalid = self.state.totals.invalid.saturating_add(1);
            return Ok(Taken::Dealt);
        };
        let (id, fee) = (item.id(), item.redemption.fee);
        if self.item(&id).is_some() {
            P::appraise(self, &mut item).await?;
            self.keep_other(item);
            return Ok(Taken::Dealt);
        }
        if !P::is_to_do(self, &mut item).await? {
            self.finished.insert(id);
            return Ok(Taken::Dealt);
        }
        if item.queued.is_none() {
            P::appraise(self, &mut item).await?;
            let digest = domain.transfer_digest(&item.redemption.clone().into());
            tracing::info!(
                sender = %id.sender, sequence = %id.sequence, %digest, %fee,
                "a redemption to bring to the Primary"
            );
        }
        self.make_way();
        self.traces.seen(&item, since);
        self.state.items.push(item);
        self.changed = true;
        Ok(Taken::Dealt)
    }

    pub(crate) fn item(&self, id: &RedemptionId) -> Option<&PendingRedemption> {
        self.state.items.get(self.state.position(id)?)
    }

    /// Whether a certificate of a known number may be the one that counts, while the known one is of an ended epoch.
    fn adds(&self, known: &PendingRedemption, redemption: &Redemption, epoch: Epoch) -> bool {
        let current = self.current_epoch();
        current.is_some_and(|current| known.wants(redemption, epoch, current) && !self.state.is_under_way(&known.id()))
    }

    /// Keeps another certificate of a known number.
    fn keep_other(&mut self, other: PendingRedemption) {
        let (id, Some(current)) = (other.id(), self.current_epoch()) else { return };
        if !self.item(&id).is_some_and(|item| self.adds(item, &other.redemption, other.epoch)) {
            return;
        }
        let digest = self.domain.transfer_digest(&other.redemption.clone().into());
        tracing::warn!(sender = %id.sender, sequence = %id.sequence, %digest, "another certificate of a number");
        self.changed = true;
        self.make_way();
        match self.state.position(&id).and_then(|position| self.state.items.get_mut(position)) {
            Some(item) => item.keep(other, current),
            // The known one made way.
            None => self.state.items.push(other),
        }
    }

    /// Makes room for one more redemption if all places are taken.
    fn make_way(&mut self) {
        if self.state.counts().0 < PENDING_MAX {
            return;
        }
        if let Some(refused) = self.refused_to_make_way() {
            self.give_up_certificate(refused);
        } else if let Some(out) = P::dust_to_make_way(self) {
            self.leave(out);
        }
    }

    /// Reads the committees of all epochs of the Primary. If that fails now, the known ones stay valid.
    pub(crate) async fn follow_committees(&mut self) -> Result<(), RelayerError> {
        let known = self.committees.as_ref().map(|committees| committees.current().epoch());
        if let Some(committees) = P::read_committees(self).await? {
            let epoch = committees.current().epoch();
            if known.is_some_and(|known| known < epoch) {
                tracing::info!(%epoch, "the committee has changed");
            }
            self.committees = Some(committees);
        }
        Ok(())
    }

    pub(crate) fn current_epoch(&self) -> Option<Epoch> {
        self.committees.as_ref().map(|committees| committees.current().epoch())
    }

    fn committee(&self, epoch: Epoch) -> Option<&Committee> {
        self.committees.as_ref()?.get(epoch).map(AsRef::as_ref)
    }

    /// Whether one more redemption may wait.
    fn has_room(&self) -> bool {
        self.state.counts().0 < PENDING_MAX
            || self.refused_to_make_way().is_some()
            || P::dust_to_make_way(self).is_some()
    }

    /// The redemption of an ended epoch that members refused most often. Whoever has retired keys can make any number of
    /// them, so they make way first, whatever their fees.
    fn refused_to_make_way(&self) -> Option<RedemptionId> {
        let current = self.current_epoch()?;
        let refused = self.state.items.iter().filter(|item| item.is_refused(current) && self.may_make_way(item));
        refused.max_by_key(|item| item.failures()).map(PendingRedemption::id)
    }

    pub(crate) fn may_make_way(&self, item: &PendingRedemption) -> bool {
        item.queued.is_none() && !self.state.is_under_way(&item.id())
    }
}
