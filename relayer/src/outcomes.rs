//! Which redemptions can be submitted, and what becomes of one that is not paid now: it is parked, left to others, or
//! given up.

use crate::pending::{PendingRedemption, RedemptionId};
use crate::primary::{PrimarySide, Worth};
use crate::relayer::Relayer;
use crate::store::Left;

impl<P: PrimarySide> Relayer<P> {
    /// The redemptions that can be submitted, the oldest first. Those of ended epochs, which retired keys may have made, come
    /// after the others, and those that members refused come last.
    pub(crate) fn open_items(&self) -> Vec<PendingRedemption> {
        let now = self.clock.now_ms();
        let is_open = |item: &&PendingRedemption| {
            item.queued.is_none() && !item.is_parked(now) && !self.state.is_under_way(&item.id())
        };
        let mut open: Vec<_> = self.state.items.iter().filter(is_open).cloned().collect();
        if let Some(current) = self.current_epoch() {
            open.sort_by_key(|item| (item.is_unproven(current), item.is_refused(current)));
        }
        open
    }

    /// Removes a redemption that is finally redeemed.
    pub(crate) fn finish(&mut self, id: RedemptionId) {
        if let Some(position) = self.state.position(&id) {
            self.state.items.remove(position);
            self.changed = true;
        }
        self.finished.insert(id);
    }

    /// Gives a redemption transactions of its own from now on.
    pub(crate) fn set_alone(&mut self, id: RedemptionId) {
        if let Some(item) = self.state.position(&id).and_then(|position| self.state.items.get_mut(position)) {
            item.alone = true;
            self.changed = true;
        }
    }

    /// Parks a redemption that failed; after too many failures, gives it up.
    pub(crate) fn park(&mut self, id: RedemptionId, reason: String) {
        tracing::warn!(
            sender = %id.sender, sequence = %id.sequence, reason,
            "a redemption fails and is skipped for a while"
        );
        self.changed = true;
        let now_ms = self.clock.now_ms();
        let Some(position) = self.state.position(&id) else { return };
        let again = self.state.items.get_mut(position).is_some_and(|item| item.park(reason.clone(), now_ms));
        if !again {
            self.state.remember(Left { item: id, reason, transaction: None });
            tracing::error!(sender = %id.sender, sequence = %id.sequence, "given up; its owner can still redeem it");
            self.state.totals.given_up = self.state.totals.given_up.saturating_add(1);
            self.finish(id);
        }
    }

    /// Parks a certificate of an ended epoch that members do not know. Another one of its number takes its place, and it
    /// that one's; after too many refusals, it is given up.
    pub(crate) fn refuse(&mut self, id: RedemptionId) {
        let reason = "its epoch has ended, and members of the current committee do not know it";
        tracing::warn!(sender = %id.sender, sequence = %id.sequence, reason, "a redemption waits");
        let now_ms = self.clock.now_ms();
        let Some(item) = self.state.position(&id).and_then(|position| self.state.items.get_mut(position)) else {
            return;
        };
        self.changed = true;
        if !item.park(reason.into(), now_ms) {
            return self.give_up_certificate(id);
        }
        item.rotate();
    }

    /// Gives up a certificate of an ended epoch that members refused.
    pub(crate) fn give_up_certificate(&mut self, id: RedemptionId) {
        tracing::warn!(sender = %id.sender, sequence = %id.sequence, "a certificate of an ended epoch is given up");
        self.state.totals.given_up = self.state.totals.given_up.saturating_add(1);
        self.set_aside(id);
    }

    /// Removes a redemption that is left to others. If its certificate is of an ended epoch, removes nothing else of its
    /// number: another order of it may be the executed one, and a certificate of a later epoch may come.
    fn set_aside(&mut self, id: RedemptionId) {
        let current = self.current_epoch();
        let is_unproven = |item: &PendingRedemption| {
            item.queued.is_none() && current.is_some_and(|current| item.is_unproven(current))
        };
        let position = self.state.position(&id);
        let position = position.filter(|position| self.state.items.get(*position).is_some_and(is_unproven));
        let Some(position) = position else { return self.finish(id) };
        let mut item = self.state.items.remove(position);
        let digest = self.domain.transfer_digest(&item.redemption.clone().into());
        self.refused.insert((item.epoch, digest));
        self.changed = true;
        if let Some(next) = item.take_next() {
            self.state.items.insert(position, next);
        }
    }

    /// Parks a redemption without counting a failure: the fault is elsewhere.
    pub(crate) fn postpone(&mut self, id: RedemptionId, reason: String) {
        tracing::warn!(sender = %id.sender, sequence = %id.sequence, reason, "a redemption waits");
        let now_ms = self.clock.now_ms();
        if let Some(item) = self.state.position(&id).and_then(|position| self.state.items.get_mut(position)) {
            item.postpone(reason, now_ms);
            self.changed = true;
        }
    }

    /// Leaves redemptions of assets that the operator's list no longer contains.
    pub(crate) fn leave_what_is_not_served(&mut self) {
        let is_left = |item: &&PendingRedemption| {
            P::worth(self, &item.redemption) == Worth::NotServed && !self.state.is_under_way(&item.id())
        };
        let left: Vec<_> = self.state.items.iter().filter(is_left).map(PendingRedemption::id).collect();
        left.into_iter().for_each(|id| self.leave_unserved(id));
    }

    /// Leaves a redemption to others and to its owner, because its fee is too small.
    pub(crate) fn leave(&mut self, id: RedemptionId) {
        tracing::info!(sender = %id.sender, sequence = %id.sequence, "left to others: the fee is too small");
        self.state.totals.below_cost = self.state.totals.below_cost.saturating_add(1);
        self.changed = true;
        self.set_aside(id);
    }

    /// Leaves a redemption to others and to its owner, because the operator does not serve its asset.
    pub(crate) fn leave_unserved(&mut self, id: RedemptionId) {
        tracing::info!(sender = %id.sender, sequence = %id.sequence, "left to others: its asset is not listed");
        self.state.totals.not_served = self.state.totals.not_served.saturating_add(1);
        self.changed = true;
        self.set_aside(id);
    }
}
