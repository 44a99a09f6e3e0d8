//! An honest authority: LIFE §1, "Authority".

use crate::protocol::{Action, Protocol};
use crate::rules::Rule;
use crate::state::{Authority, Done, Event, Order, Orders, State, VoidVotes};

impl Protocol {
    /// The next actions of an authority. Anything that exists may be brought to it.
    pub(crate) fn authority_actions(&self, state: &State, who: usize, actions: &mut Vec<Action>) {
        let authority = &state.authorities[who];
        if authority.read < state.final_events {
            actions.push(Action::Read(who));
        }
        if !self.is_active(state, who) {
            return;
        }
        for &order in self.setting.orders() {
            if self.votes_for(state, who, order) {
                actions.push(Action::Vote(who, order));
            }
            if self.takes_certificate(state, who, order).is_some() {
                actions.push(Action::Show(who, order));
            }
        }
        if self.next_void_vote(state, who).is_some() {
            actions.push(Action::SignVoid(who));
        }
        let is_first = state.authorities.iter().all(|one| !one.restored);
        if self.setting.restores && is_first && *authority != Authority::default() {
            actions.push(Action::Restore(who));
        }
    }

    /// A newcomer acts once it has taken up its first epoch.
    pub(crate) fn is_active(&self, state: &State, who: usize) -> bool {
        let authority = &state.authorities[who];
        let is_early = self.setting.is_early(who, authority.epoch.into()) && self.rules.keep(Rule::Observer);
        !authority.left && !is_early
    }

    /// Whether the authority has applied the event.
    pub(crate) fn has_read(&self, state: &State, who: usize, event: Event) -> bool {
        let read = state.authorities[who].read;
        let mut places = state.first_events(read).enumerate();
        places.any(|(place, one)| one == event && self.is_told(state, who, place, one))
    }

    /// Whether an authority knows the event. A checkpoint whose state lacks it has stepped over it.
    fn is_told(&self, state: &State, who: usize, place: usize, event: Event) -> bool {
        let is_in_state = match event {
            Event::Requested => self.rules.keep(Rule::StateRequests),
            Event::Upheld(_) | Event::Voided | Event::Paid(_) => self.rules.keep(Rule::StateOutcomes),
            Event::Installed(_) => true,
        };
        is_in_state || place >= state.authorities[who].skipped.into()
    }

    /// Whether the number is frozen: the authority has read the request, and the owner signed it.
    pub(crate) fn is_frozen(&self, state: &State, who: usize) -> bool {
        self.setting.genuine && self.has_read(state, who, Event::Requested)
    }

    /// Whether the chain told it to execute the order.
    pub(crate) fn has_read_upheld(&self, state: &State, who: usize, order: Order) -> bool {
        self.has_read(state, who, Event::Upheld(order))
            || self.rules.keep(Rule::PaidUpholds) && self.has_read(state, who, Event::Paid(order))
    }

    /// Whether it may sign everything in the epoch that it has taken up.
    pub(crate) fn is_full(&self, state: &State, who: usize) -> bool {
        let authority = &state.authorities[who];
        let epoch = usize::from(authority.epoch);
        let is_member = self.setting.is_member(epoch, who) || epoch == 0 && self.setting.is_rekeyed(who);
        is_member && (!self.must_join(epoch, who) || authority.joined[epoch])
    }

    /// A vote for the order: once for a number, but again for the same order in a new epoch.
    fn votes_for(&self, state: &State, who: usize, order: Order) -> bool {
        let authority = &state.authorities[who];
        let is_free = authority.done.is_none() && !authority.lock.contains(order.other());
        let is_frozen = self.is_frozen(state, who) && self.rules.keep(Rule::FrozenVote);
        let is_stale = self.is_stale(state, who) && self.rules.keep(Rule::Lag);
        let is_below_floor = authority.restored && self.rules.keep(Rule::RestoredNoVote);
        // `merged` adds votes for an order that has its certificate, so the lock is asked for, too.
        let is_again = authority.votes[usize::from(authority.epoch)].contains(order) && authority.lock.contains(order);
        self.is_full(state, who) && is_free && !is_frozen && !is_stale && !is_below_floor && !is_again
    }

    /// An authority's reaction to a certificate.
    pub(crate) fn takes_certificate(&self, state: &State, who: usize, order: Order) -> Option<Taken> {
        let authority = &state.authorities[who];
        let byzantine = self.setting.byzantine[usize::from(authority.epoch)];
        let is_valid = (0..=authority.epoch).any(|epoch| self.counts(state, who, epoch.into(), order, byzantine));
        if !is_valid || authority.done.is_some() {
            return None;
        }
        let is_seen = authority.seen.is_some();
        if self.is_frozen(state, who) {
            match self.has_read_upheld(state, who, order) || !self.rules.keep(Rule::Freeze) {
                true => Some(Taken::Executed),
                false => (!is_seen).then_some(Taken::Seen),
            }
        } else if self.is_stale(state, who) && self.rules.keep(Rule::Lag) {
            match self.rules.keep(Rule::LagSeen) {
                true => (!is_seen).then_some(Taken::Seen),
                false => (!authority.refused).then_some(Taken::Refused),
            }
        } else {
            Some(Taken::Executed)
        }
    }

    /// Whether it would sign a CertificateVote in the contract's epoch.
    pub(crate) fn attests(&self, state: &State, who: usize, order: Order) -> bool {
        let authority = &state.authorities[who];
        let is_of_epoch = usize::from(authority.epoch) == state.epoch();
        let executed = authority.executed().filter(|_| self.attests_executed(authority));
        let has_it = [executed, authority.seen, authority.forgotten].contains(&Some(order));
        let was_shown = !self.rules.keep(Rule::SeenStored) && state.is_certified(&self.setting, order);
        is_of_epoch && self.is_frozen(state, who) && (has_it || was_shown)
    }

    /// The next VoidVote that it would sign.
    pub(crate) fn next_void_vote(&self, state: &State, who: usize) -> Option<VoidVotes> {
        let authority = &state.authorities[who];
        let is_done = authority.done == Some(Done::Voided)
            || Order::BOTH.iter().any(|order| self.has_read(state, who, Event::Upheld(*order)))
            || authority.executed().is_some() && self.rules.keep(Rule::ExecutedNoVoid);
        let has_seen = authority.seen.is_some() && self.rules.keep(Rule::SeenNoVoid);
        let is_paid = Order::BOTH.iter().any(|order| self.has_read(state, who, Event::Paid(*order)));
        let is_restored = authority.restored && self.rules.keep(Rule::RestoredNoVoid);
        let is_bit_set = is_paid && self.rules.keep(Rule::VoidVoteBit);
        if !self.is_full(state, who) || !self.is_frozen(state, who) || is_done || has_seen || is_bit_set || is_restored
        {
            return None;
        }
        let may_wait = self.has_waited(state, who) || !self.rules.keep(Rule::Window);
        match authority.void_votes[usize::from(authority.epoch)] {
            VoidVotes::None => Some(VoidVotes::Unanimous),
            VoidVotes::Unanimous if may_wait => Some(VoidVotes::Both),
            _ => None,
        }
    }

    /// The authority applies the next final event.
    pub(crate) fn read(&self, state: &mut State, who: usize) {
        let read = state.authorities[who].read;
        let event = state.events().nth(read.into()).filter(|one| self.is_told(state, who, read.into(), *one));
        let final_time = state.final_time;
        let epoch = state.epoch_at(read + 1) as u8;
        let authority = &mut state.authorities[who];
        authority.read += 1;
        match event {
            Some(Event::Requested) if self.rules.keep(Rule::ReadTime) => authority.read_at = final_time,
            Some(Event::Voided) if authority.done.is_none() => authority.finish(Done::Voided),
            Some(Event::Installed(_)) => authority.epoch = epoch.max(authority.epoch),
            _ => {}
        }
        self.judge_seen(state, who);
        let executes = |order: &Order| self.has_read_upheld(state, who, *order) && self.rules.keep(Rule::UpheldSeen);
        if let Some(order) = state.authorities[who].seen.filter(executes) {
            state.authorities[who].finish(Done::Executed(order));
        }
    }
}

/// The fate of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was executed.
    Executed,
    /// It was stored.
    Seen,
    /// It is as if it had not been shown.
    Refused,
}

impl Authority {
    /// The authority is done with the number.
    pub(crate) fn finish(&mut self, done: Done) {
        (self.done_in, self.done_at) = (self.epoch, self.read);
        (self.done, self.lock) = (Some(done), Orders::default());
        (self.seen, self.seen_stale) = (None, false);
    }

    /// An older copy of the folder is put back. What was signed and said remains so; the chain is read again.
    pub(crate) fn restore(&mut self) {
        *self = Self {
            restored: true,
            forgotten: self.executed(),
            votes: self.votes,
            void_votes: self.void_votes,
            ..Self::default()
        };
    }
}
