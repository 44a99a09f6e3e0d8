//! The protocol as a transition system: in each state, all that anybody may do next.

use stateright::{Model, Property};

use crate::authority::Taken;
use crate::claims::{Claim, reached};
use crate::merge::merged;
use crate::rules::Rules;
use crate::setting::Setting;
use crate::state::{Checkpoint, Done, Event, Order, State};

/// The content of the Byzantine members' Closings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lie {
    /// They know of nothing.
    Nothing,
    /// They have a lock on the order, which its owner signed.
    Lock(Order),
    /// They executed it. They can say so only where there is a certificate.
    Certificate(Order),
}

/// A step. Authorities are meant by their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// An authority votes for an order.
    Vote(usize, Order),
    /// Somebody shows it the order's certificate.
    Show(usize, Order),
    /// It applies the next final event of the contract's order.
    Read(usize),
    /// It signs a VoidVote: the one with `unanimous`, later the other.
    SignVoid(usize),
    /// An older copy of its folder is put back.
    Restore(usize),
    /// It takes up epoch 1 before the events that come earlier.
    TakeUp(usize),
    /// It signs its Closing of the epoch before the newest one.
    Close(usize),
    /// It joins the epoch that it has taken up with the Closings of these honest members, as bits, and those of the Byzantine ones.
    Join(usize, u8, Option<Lie>),
    /// It leaves.
    Leave(usize),
    /// It forgets the certificate of what it executed, since a checkpoint covers it.
    Prune(usize),
    /// It takes the state of a checkpoint.
    Rebase(usize, Checkpoint),
    /// `requestUnlock` is mined.
    Request,
    /// `upholdSequence` is mined.
    Uphold(Order),
    /// `voidSequence` is mined.
    Void,
    /// `redeem…` is mined.
    Redeem(Order),
    /// `install` is mined. The checkpoint that it names covers the number, which was done so, or does not.
    Install(Option<Done>),
    /// Time passes.
    Tick,
    /// Ethereum finalizes all blocks so far.
    Finalize,
}

/// The protocol with some rules in some setting.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// The configuration.
    pub setting: Setting,
    /// The rules that are kept.
    pub rules: Rules,
    /// Whether states that nobody can ever tell apart are one ([`merged`]).
    pub merges: bool,
}

impl Protocol {
    /// Whether an action happens by itself sooner or later, without Byzantine members or the owner.
    pub(crate) fn is_fair(&self, state: &State, action: Action) -> bool {
        match action {
            Action::Read(_) | Action::SignVoid(_) | Action::Close(_) | Action::Tick | Action::Finalize => true,
            Action::Show(who, order) => {
                let mut epochs = 0..=state.authorities[who].epoch;
                state.is_known(order) && epochs.any(|epoch| self.counts(state, who, epoch.into(), order, 0))
            }
            Action::Rebase(who, checkpoint) => self.is_served(state, who, checkpoint),
            Action::Join(who, closers, lie) => lie.is_none() && self.is_quorum_before(state, who, closers),
            Action::Uphold(order) => self.takes_uphold(state, order, false),
            Action::Void => self.takes_void(state, false),
            Action::Vote(..) | Action::Restore(_) | Action::TakeUp(_) | Action::Leave(_) | Action::Prune(_) => false,
            Action::Request | Action::Redeem(_) | Action::Install(_) => false,
        }
    }

    /// Whether these are a quorum of the epoch before the one that an authority has taken up.
    fn is_quorum_before(&self, state: &State, who: usize, closers: u8) -> bool {
        let closed = usize::from(state.authorities[who].epoch) - 1;
        closers.count_ones() as usize >= self.setting.quorum(closed)
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        // Merging gives authorities of one kind new places, and the steps mean the old ones.
        let plain = Self { merges: false, ..*self };
        let first = self.setting.begins.iter().try_fold(State::new(), |state, step| plain.next_state(&state, *step));
        first.map(|state| if self.merges { merged(self, state) } else { state }).into_iter().collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for who in self.setting.everybody() {
            self.authority_actions(state, who, actions);
            self.handover_actions(state, who, actions);
            self.checkpoint_actions(state, who, actions);
        }
        self.contract_actions(state, actions);
        self.clock_actions(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = *last;
        match action {
            Action::Vote(who, order) => {
                let authority = &mut state.authorities[who];
                authority.lock.insert(order);
                authority.votes[usize::from(authority.epoch)].insert(order);
            }
            Action::Show(who, order) => match self.takes_certificate(last, who, order)? {
                Taken::Executed => state.authorities[who].finish(Done::Executed(order)),
                Taken::Seen => {
                    state.authorities[who].seen = Some(order);
                    state.authorities[who].seen_stale = self.setting.retired_stolen && self.is_stale(last, who);
                }
                Taken::Refused => state.authorities[who].refused = true,
            },
            Action::Read(who) => self.read(&mut state, who),
            Action::SignVoid(who) => {
                let authority = &mut state.authorities[who];
                authority.void_votes[usize::from(authority.epoch)] = self.next_void_vote(last, who)?;
            }
            Action::Restore(who) => state.authorities[who].restore(),
            Action::TakeUp(who) => state.authorities[who].epoch = 1,
            Action::Close(who) => self.close(&mut state, who),
            Action::Join(who, closers, lie) => self.join(&mut state, who, closers, lie),
            Action::Leave(who) => state.authorities[who].left = true,
            Action::Prune(who) => self.prune(&mut state, who),
            Action::Rebase(who, checkpoint) => self.rebase(&mut state, who, checkpoint),
            Action::Request => state.emit(Event::Requested),
            Action::Uphold(order) => state.emit(Event::Upheld(order)),
            Action::Void => state.emit(Event::Voided),
            Action::Redeem(order) => state.emit(Event::Paid(order)),
            Action::Install(named) => state.emit(Event::Installed(named)),
            Action::Tick => self.tick(&mut state),
            Action::Finalize => Self::finalize(&mut state),
        }
        if self.setting.clock.stall.is_none() {
            Self::finalize(&mut state);
        }
        Some(if self.merges { merged(self, state) } else { state })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let claims = self.setting.claims.iter().map(|claim| Property::always(claim.name(), claim.condition()));
        let reached = reached(&self.setting).into_iter().map(|(name, condition)| Property::sometimes(name, condition));
        claims.chain(reached).collect()
    }
}

impl Claim {
    /// The claim as a condition on every state.
    fn condition(self) -> fn(&Protocol, &State) -> bool {
        match self {
            Claim::OneCertificate => Protocol::has_one_certificate,
            Claim::OneExecution => Protocol::has_one_execution,
            Claim::ExecutedNotVoided => Protocol::voids_nothing_executed,
            Claim::SettledNotVoided => Protocol::voids_nothing_settled,
            Claim::OneOutcome => Protocol::has_one_outcome,
            Claim::PaidNotVoided => Protocol::voids_nothing_paid,
            Claim::UpheldIsCertified => Protocol::upholds_certificates,
            Claim::NoVoidUnasked => Protocol::voids_on_request,
            Claim::ShownNotVoided => Protocol::voids_nothing_shown,
            Claim::Unlocked => Protocol::comes_to_an_end,
            Claim::SettledForAll => Protocol::settles_for_all,
        }
    }
}
