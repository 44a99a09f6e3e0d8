//! The hand-over from an epoch to the next: LIFE §3. Members close the epoch that ends. New members join with the
//! Closings of a quorum; so do members with new keys, and all if the committee becomes much smaller. Members that leave
//! serve until the next committee has what they executed.

use crate::protocol::{Action, Lie, Protocol};
use crate::rules::Rule;
use crate::state::{AUTHORITIES, Closing, Done, Orders, State, VoidVotes};

impl Protocol {
    /// The next actions of an authority when the committee changes.
    pub(crate) fn handover_actions(&self, state: &State, who: usize, actions: &mut Vec<Action>) {
        let authority = &state.authorities[who];
        let Some(closing) = state.epoch().checked_sub(1).filter(|_| !authority.left) else { return };
        if authority.epoch == 0 && state.epoch_at(state.final_events) > 0 && !self.rules.keep(Rule::InOrder) {
            actions.push(Action::TakeUp(who));
        }
        let epoch = usize::from(authority.epoch);
        let may_close = epoch > closing || !self.rules.keep(Rule::Closed);
        if self.setting.is_member(closing, who) && authority.closings[closing].is_none() && may_close {
            actions.push(Action::Close(who));
        }
        if self.must_join(epoch, who) && !authority.joined[epoch] && !self.is_stale(state, who) {
            self.joins(state, who, actions);
        }
        let has_closed = epoch > closing && authority.closings[closing].is_some();
        if self.setting.is_leaver(closing + 1, who) && has_closed && self.may_leave(state, who) {
            actions.push(Action::Leave(who));
        }
    }

    /// Whether a member of the epoch votes in it only once it has joined: the rule of `core/src/handover/full.rs`, of one
    /// epoch and the one before.
    pub(crate) fn must_join(&self, epoch: usize, who: usize) -> bool {
        let is_resized = epoch > 0 && !self.may_stay(epoch - 1, epoch);
        let joins_anew = if self.setting.is_rekeyed(who) { Rule::RekeyedJoins } else { Rule::Join };
        self.setting.is_member(epoch, who)
            && (self.setting.is_new(epoch, who) && self.rules.keep(joins_anew)
                || is_resized && self.rules.keep(Rule::ResizedJoins))
    }

    /// Whether those members of an epoch that know nothing of an order which it certified are no quorum of a later one,
    /// together with the Byzantine members of that.
    fn may_stay(&self, before: usize, after: usize) -> bool {
        let unaware = self.setting.n[before] - self.setting.quorum(before);
        unaware + self.setting.faults(after) < self.setting.quorum(after)
    }

    /// Whether all who must join the epoch have done so.
    pub(crate) fn have_all_joined(&self, state: &State, epoch: usize) -> bool {
        let mut members = self.setting.members(epoch);
        members.all(|who| !self.must_join(epoch, who) || state.authorities[who].joined[epoch])
    }

    /// Whether what an authority has of the number is still to be reported to those who join.
    pub(crate) fn reports(&self, state: &State, who: usize) -> bool {
        (0..self.setting.rotations()).any(|epoch| {
            let is_to_come = state.authorities[who].closings[epoch].is_none();
            self.setting.is_member(epoch, who) && is_to_come && !self.have_all_joined(state, epoch + 1)
        })
    }

    /// A join for each choice of Closings, with those of the Byzantine members or without.
    fn joins(&self, state: &State, who: usize, actions: &mut Vec<Action>) {
        let closed = usize::from(state.authorities[who].epoch) - 1;
        let needed = self.setting.quorum(closed) - usize::from(!self.rules.keep(Rule::QuorumClosings));
        for closers in 1..1_u8 << AUTHORITIES {
            let chosen = || (0..AUTHORITIES).filter(move |closer| closers & 1 << closer != 0);
            let are_readable = chosen().all(|closer| {
                let is_read = |closing: Closing| closing.read <= state.authorities[who].read;
                let closing = state.authorities[closer].closings[closed];
                closing.is_some_and(|it| is_read(it) || !self.rules.keep(Rule::ClosingIndex))
            });
            if !are_readable {
                continue;
            }
            if chosen().count() >= needed {
                actions.push(Action::Join(who, closers, None));
            }
            if chosen().count() + self.setting.byzantine[closed] >= needed {
                actions.push(Action::Join(who, closers, Some(Lie::Nothing)));
                for &order in self.setting.orders() {
                    actions.push(Action::Join(who, closers, Some(Lie::Lock(order))));
                    if state.is_certified(&self.setting, order) {
                        actions.push(Action::Join(who, closers, Some(Lie::Certificate(order))));
                    }
                }
            }
        }
    }

    /// A member signs its Closing: what it has of the number now.
    pub(crate) fn close(&self, state: &mut State, who: usize) {
        let closed = state.epoch() - 1;
        let is_reported = self.rules.keep(Rule::InheritedReported);
        let authority = &mut state.authorities[who];
        let executed = authority.executed().filter(|_| authority.base.is_none());
        let covered = authority.executed().zip(authority.base);
        let certificate = executed.or(authority.seen);
        let voted = authority.votes.into_iter().reduce(Orders::union).unwrap_or_default();
        let locks = if is_reported { authority.lock } else { authority.lock.intersection(voted) };
        authority.closings[closed] = Some(Closing { locks, certificate, covered, read: authority.read });
    }

    /// A new member takes over what the Closings say.
    pub(crate) fn join(&self, state: &mut State, who: usize, closers: u8, lie: Option<Lie>) {
        let epoch = usize::from(state.authorities[who].epoch);
        let mut locks = Orders::default();
        let mut certificates = Orders::default();
        let mut covered = None;
        for closer in (0..AUTHORITIES).filter(|closer| closers & 1 << closer != 0) {
            let closing = state.authorities[closer].closings[epoch - 1].unwrap_or_default();
            locks = locks.union(closing.locks);
            certificates = certificates.union(closing.certificate.into());
            covered = covered.or(closing.covered);
        }
        match lie {
            Some(Lie::Lock(order)) => locks.insert(order),
            Some(Lie::Certificate(order)) => certificates.insert(order),
            Some(Lie::Nothing) | None => {}
        }
        let is_upheld = certificates.first().is_some_and(|order| self.has_read_upheld(state, who, order));
        let is_frozen = self.is_frozen(state, who) && !is_upheld && self.rules.keep(Rule::FrozenJoin);
        let authority = &mut state.authorities[who];
        authority.joined[epoch] = true;
        if authority.done.is_some() {
            return;
        }
        if let Some((order, base)) = covered.filter(|_| self.rules.keep(Rule::JoinCheckpoint)) {
            return authority.begin_below(Done::Executed(order), Some(base));
        }
        let contested = locks.are_both() && !self.rules.keep(Rule::Contested);
        authority.lock = authority.lock.union(if contested { Orders::default() } else { locks });
        if !self.rules.keep(Rule::Certificates) {
            return;
        }
        match certificates.first() {
            Some(order) if is_frozen => authority.seen = authority.seen.or(Some(order)),
            Some(order) => authority.finish(Done::Executed(order)),
            None => {}
        }
    }

    /// Whether a leaver may go: a quorum of the next epoch has what it executed.
    fn may_leave(&self, state: &State, who: usize) -> bool {
        let Some(order) = state.authorities[who].executed() else { return true };
        let epoch = state.epoch();
        let is_upheld = state.upheld() == Some(order);
        let acknowledges = |who: &usize| {
            let authority = &state.authorities[*who];
            let says_firm = authority.void_votes[epoch] == VoidVotes::None || authority.lost_void_votes;
            let is_firm = says_firm || is_upheld || !self.rules.keep(Rule::LeaveFirm);
            authority.executed() == Some(order) || authority.seen == Some(order) && is_firm
        };
        let acknowledged = self.setting.members(epoch).filter(acknowledges).count() + self.setting.byzantine[epoch];
        let is_enough = is_upheld && !self.rules.keep(Rule::LeaveUpheld) || !self.rules.keep(Rule::Leave);
        acknowledged >= self.setting.quorum(epoch) || is_enough
    }
}
