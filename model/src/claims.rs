//! The protocol's claims. Each is checked in every reachable state.

use crate::protocol::{Action, Protocol};
use crate::rules::Rule;
use crate::setting::Setting;
use crate::state::{Authority, Done, Event, Order, State, VoidVotes};
use stateright::Model;

/// A claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Only one of the two orders ever has a certificate, of whatever epoch.
    OneCertificate,
    /// Honest authorities execute only one of them, and only what is upheld.
    OneExecution,
    /// A number that an honest authority executed is never voided.
    ExecutedNotVoided,
    /// A settled number is never voided.
    SettledNotVoided,
    /// A number is upheld or voided, not both.
    OneOutcome,
    /// A number that the contract paid is neither voided nor upheld as another order.
    PaidNotVoided,
    /// An upheld order has a certificate.
    UpheldIsCertified,
    /// Nothing is voided that the owner did not ask for.
    NoVoidUnasked,
    /// A number is never voided if every authority was shown its certificate before it had read the request.
    ShownNotVoided,
    /// Once a request is final, everybody honest is done with the number sooner or later.
    Unlocked,
    /// What a quorum executed in one epoch, every honest member executes sooner or later.
    SettledForAll,
}

impl Claim {
    /// With the assumption on time.
    pub const ALL: &[Claim] = &[
        Claim::OneCertificate,
        Claim::OneExecution,
        Claim::ExecutedNotVoided,
        Claim::SettledNotVoided,
        Claim::OneOutcome,
        Claim::PaidNotVoided,
        Claim::UpheldIsCertified,
        Claim::ShownNotVoided,
        Claim::Unlocked,
    ];
    /// Without it, what one authority executed may be voided.
    pub const UNTIMED: &[Claim] = &[
        Claim::OneCertificate,
        Claim::OneExecution,
        Claim::SettledNotVoided,
        Claim::OneOutcome,
        Claim::PaidNotVoided,
        Claim::UpheldIsCertified,
        Claim::ShownNotVoided,
        Claim::Unlocked,
    ];
    /// With checkpoints, and the assumption on time.
    pub const CHECKPOINTS: &[Claim] = &[
        Claim::OneCertificate,
        Claim::OneExecution,
        Claim::ExecutedNotVoided,
        Claim::SettledNotVoided,
        Claim::OneOutcome,
        Claim::Unlocked,
        Claim::SettledForAll,
    ];
    /// With checkpoints, and without it.
    pub const CHECKPOINTS_UNTIMED: &[Claim] = &[
        Claim::OneCertificate,
        Claim::OneExecution,
        Claim::SettledNotVoided,
        Claim::OneOutcome,
        Claim::Unlocked,
        Claim::SettledForAll,
    ];
    /// With a restored authority beside f Byzantine ones, a number may also stay stuck.
    pub const RESTORED: &[Claim] = &[
        Claim::OneCertificate,
        Claim::OneExecution,
        Claim::SettledNotVoided,
        Claim::OneOutcome,
        Claim::PaidNotVoided,
        Claim::UpheldIsCertified,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Claim::OneCertificate => "a number has one certificate",
            Claim::OneExecution => "honest authorities execute one order",
            Claim::ExecutedNotVoided => "what is executed is never voided",
            Claim::SettledNotVoided => "what is settled is never voided",
            Claim::OneOutcome => "upheld and voided exclude each other",
            Claim::PaidNotVoided => "paid and voided exclude each other",
            Claim::UpheldIsCertified => "what is upheld is certified",
            Claim::NoVoidUnasked => "nothing is voided unasked",
            Claim::ShownNotVoided => "what was shown to everybody is never voided",
            Claim::Unlocked => "a stuck account is unlocked",
            Claim::SettledForAll => "what is settled reaches everybody",
        }
    }
}

impl Protocol {
    pub(crate) fn has_one_certificate(&self, state: &State) -> bool {
        !Order::BOTH.iter().all(|order| state.is_certified(&self.setting, *order))
    }

    pub(crate) fn has_one_execution(&self, state: &State) -> bool {
        let executed: Vec<_> = state.authorities.iter().filter_map(Authority::executed).chain(state.upheld()).collect();
        executed.windows(2).all(|pair| pair[0] == pair[1])
    }

    pub(crate) fn voids_nothing_executed(&self, state: &State) -> bool {
        !state.has(Event::Voided) || state.authorities.iter().all(|authority| authority.executed().is_none())
    }

    pub(crate) fn voids_nothing_settled(&self, state: &State) -> bool {
        let is_settled = |order| (0..=state.epoch()).any(|epoch| self.is_settled_in(state, epoch, order));
        !state.has(Event::Voided) || !Order::BOTH.into_iter().any(is_settled)
    }

    /// Whether a quorum of the epoch's committee confirms the order's certificate. An authority confirms in the epoch
    /// that it has taken up. It confirmed in an epoch what it executed before it took up the next one, and in none what
    /// was void when the epoch began.
    fn is_settled_in(&self, state: &State, epoch: usize, order: Order) -> bool {
        let voided_at = state.events().position(|event| event == Event::Voided);
        let is_void = voided_at.is_some_and(|place| state.epoch_at(place as u8) < epoch);
        let is_void = is_void && self.rules.keep(Rule::VoidUnconfirmed);
        let confirms = |who: &usize| {
            let authority = &state.authorities[*who];
            let is_in_epoch = usize::from(authority.done_in) <= epoch && usize::from(authority.epoch) >= epoch;
            let in_epoch = is_in_epoch || !self.rules.keep(Rule::OneEpoch);
            let has_it = authority.done == Some(Done::Executed(order)) && in_epoch && !is_void;
            let says_already = authority.done == Some(Done::Voided)
                && !self.rules.keep(Rule::AnswersVoided)
                && state.is_certified(&self.setting, order);
            has_it || says_already || authority.forgotten == Some(order)
        };
        let confirmed = self.setting.members(epoch).filter(confirms).count();
        confirmed + self.setting.byzantine[epoch] >= self.setting.quorum(epoch)
    }

    pub(crate) fn has_one_outcome(&self, state: &State) -> bool {
        !(state.has(Event::Voided) && state.upheld().is_some())
    }

    pub(crate) fn voids_nothing_paid(&self, state: &State) -> bool {
        let Some(paid) = state.paid() else { return true };
        !state.has(Event::Voided) && state.upheld().is_none_or(|upheld| upheld == paid)
    }

    pub(crate) fn upholds_certificates(&self, state: &State) -> bool {
        state.upheld().is_none_or(|order| state.is_certified(&self.setting, order))
    }

    pub(crate) fn voids_on_request(&self, state: &State) -> bool {
        self.setting.genuine || !state.has(Event::Voided)
    }

    pub(crate) fn voids_nothing_shown(&self, state: &State) -> bool {
        let was_shown = |who: usize| state.authorities[who].refused || state.authorities[who].executed().is_some();
        !state.has(Event::Voided) || !self.setting.members(0).all(was_shown)
    }

    /// The states only grow. So a state in which nothing happens by itself any more is where every fair run ends, and
    /// there everybody must be done. An order that was paid, and whose certificate its owner hides, is up to the owner:
    /// the chain has decided for it.
    pub(crate) fn comes_to_an_end(&self, state: &State) -> bool {
        let mut members = self.setting.members(state.epoch());
        let is_hidden = state.paid().is_some_and(|order| !state.is_known(order));
        if !state.is_final(Event::Requested) || is_hidden || members.all(|who| state.authorities[who].done.is_some()) {
            return true;
        }
        self.goes_on(state)
    }

    pub(crate) fn settles_for_all(&self, state: &State) -> bool {
        let is_settled = |order: &Order| (0..=state.epoch()).any(|epoch| self.is_settled_in(state, epoch, *order));
        let Some(order) = Order::BOTH.into_iter().find(is_settled) else { return true };
        let has_executed = |who: usize| state.authorities[who].executed() == Some(order);
        self.setting.members(state.epoch()).all(has_executed) || self.goes_on(state)
    }

    /// Whether something more happens by itself.
    fn goes_on(&self, state: &State) -> bool {
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        actions.iter().any(|action| self.is_fair(state, *action) && self.next_state(state, *action) != Some(*state))
    }
}

type Condition = fn(&Protocol, &State) -> bool;

/// Conditions that must be reachable in the setting. Otherwise the claims hold because nothing happens.
pub fn reached(setting: &Setting) -> Vec<(&'static str, Condition)> {
    let mut reached: Vec<(&'static str, Condition)> = Vec::new();
    let is_executed = setting.begins.iter().any(|step| matches!(step, Action::Show(..)));
    let is_requested = setting.begins.contains(&Action::Request);
    let is_voidable = !is_executed || setting.clock.hold.is_none();
    if setting.claims.contains(&Claim::Unlocked) && is_voidable {
        reached.push(("reached: everybody has applied the void", |protocol, state| {
            let is_void = |who: usize| state.authorities[who].done == Some(Done::Voided);
            protocol.setting.members(state.epoch()).all(is_void)
        }));
        reached.push(("reached: void although a certificate is hidden", |protocol, state| {
            state.has(Event::Voided) && state.is_certified(&protocol.setting, Order::A)
        }));
    }
    if setting.claims.contains(&Claim::Unlocked) {
        reached.push(("reached: everybody has executed what was upheld", |protocol, state| {
            let is_upheld = |who: usize| state.authorities[who].executed() == state.upheld();
            state.upheld().is_some() && protocol.setting.members(state.epoch()).all(is_upheld)
        }));
        reached.push(("reached: can be upheld although VoidVotes were given", |protocol, state| {
            let epoch = state.epoch();
            let votes = |who: usize| state.authorities[who].void_votes[epoch] == VoidVotes::Both;
            protocol.setting.members(epoch).any(votes) && protocol.takes_uphold(state, Order::A, false)
        }));
    }
    if setting.redeems && setting.claims.contains(&Claim::Unlocked) {
        reached.push(("reached: paid after the request", |_, state| {
            state.paid().is_some() && state.events().next() == Some(Event::Requested)
        }));
    }
    if setting.rotates() && setting.requests {
        reached.push(("reached: an outcome in epoch 1", |_, state| state.epoch() == 1 && state.has_outcome()));
    }
    // Where the number is frozen before the rotation or settled, nobody needs to vote for it after that.
    if setting.rotates() && !is_requested && !is_executed {
        reached.push(("reached: a certificate of epoch 1", |protocol, state| {
            state.is_certified_in(&protocol.setting, 1, Order::A)
        }));
    }
    if setting.checkpoints {
        reached.push(("reached: everybody executed the order or took a checkpoint's state", |protocol, state| {
            let members = || protocol.setting.members(state.epoch());
            let has_executed = |who: usize| state.authorities[who].executed().is_some();
            members().all(has_executed) && members().any(|who| state.authorities[who].base.is_some())
        }));
    }
    if setting.rotations() > 1 && setting.checkpoints {
        reached.push(("reached: a checkpoint of an old epoch that an installation names", |protocol, state| {
            let is_old = |who: usize| state.authorities[who].base == Some(0) && state.authorities[who].epoch == 2;
            let names = |event| matches!(event, Event::Installed(Some(_)));
            protocol.setting.members(2).any(is_old) && state.events().any(names)
        }));
    }
    reached
}
