//! The contract: LIFE §1, "Contract", and as much of §2 as unlocking needs.

use crate::protocol::{Action, Protocol};
use crate::rules::Rule;
use crate::state::{Event, Order, State, VoidVotes};

impl Protocol {
    /// The transactions that the contract would take now.
    pub(crate) fn contract_actions(&self, state: &State, actions: &mut Vec<Action>) {
        if self.setting.requests && !state.has(Event::Requested) {
            actions.push(Action::Request);
        }
        if self.takes_install(state) {
            actions.extend(self.nameable(state).into_iter().map(Action::Install));
        }
        if self.takes_void(state, true) {
            actions.push(Action::Void);
        }
        for &order in self.setting.orders() {
            if self.takes_uphold(state, order, true) {
                actions.push(Action::Uphold(order));
            }
            if self.takes_redemption(state, order) {
                actions.push(Action::Redeem(order));
            }
        }
    }

    /// `install`. The second comes so late that everybody has joined after the first.
    fn takes_install(&self, state: &State) -> bool {
        state.epoch() < self.setting.rotations() && self.have_all_joined(state, state.epoch())
    }

    /// `upholdSequence`. Byzantine members attest everything, if they do.
    pub(crate) fn takes_uphold(&self, state: &State, order: Order, with_byzantine: bool) -> bool {
        let epoch = state.epoch();
        let byzantine = if with_byzantine { self.setting.byzantine[epoch] } else { 0 };
        let keeps = self.rules.keep(Rule::Attesters);
        let needed = if keeps { self.setting.quorum(epoch) } else { self.setting.faults(epoch) + 1 };
        let members = self.setting.members(epoch);
        let attesters = members.filter(|who| self.attests(state, *who, order)).count() + byzantine;
        let excluded = state.has(Event::Voided) && self.rules.keep(Rule::VoidedNotUpheld)
            || state.paid().is_some() && !self.rules.keep(Rule::UpholdPaid);
        state.has(Event::Requested) && state.upheld().is_none() && !excluded && attesters >= needed
    }

    /// `voidSequence`. Byzantine members sign every VoidVote, if they do.
    pub(crate) fn takes_void(&self, state: &State, with_byzantine: bool) -> bool {
        let excluded = state.has(Event::Voided)
            || state.upheld().is_some() && self.rules.keep(Rule::UpheldNotVoided)
            || state.paid().is_some() && self.rules.keep(Rule::VoidNeedsBit);
        if !state.has(Event::Requested) || excluded {
            return false;
        }
        let epochs =
            if self.rules.keep(Rule::CurrentEpoch) { state.epoch()..=state.epoch() } else { 0..=state.epoch() };
        epochs.into_iter().any(|epoch| {
            let byzantine = if with_byzantine { self.setting.byzantine[epoch] } else { 0 };
            let votes = |least: VoidVotes| {
                let members = self.setting.members(epoch);
                members.filter(|who| state.authorities[*who].void_votes[epoch] >= least).count() + byzantine
            };
            let least = if self.rules.keep(Rule::Unanimous) { VoidVotes::Both } else { VoidVotes::Unanimous };
            let is_voidable = state.now >= self.window() || !self.rules.keep(Rule::ContractWindow);
            let all = if self.rules.keep(Rule::AllMembers) { self.setting.n[epoch] } else { self.setting.n[epoch] - 1 };
            votes(least) >= self.setting.quorum(epoch) && is_voidable
                || votes(VoidVotes::Unanimous) >= all && self.takes_all(state)
        })
    }

    /// Whether all n votes count without the window: in epoch 0, or once V has passed since the installation. What is
    /// said of V is that it suffices for those who leave to hand over.
    fn takes_all(&self, state: &State) -> bool {
        let mut leavers = self.setting.everybody().filter(|who| self.setting.is_leaver(state.epoch(), *who));
        state.epoch() == 0
            || leavers.all(|who| state.authorities[who].left)
            || !self.rules.keep(Rule::AllAfterV)
            || self.setting.compromised && !self.rules.keep(Rule::AllWhateverEnded)
    }

    /// `redeem…`, for an order that is a redemption. A compromised epoch's votes do not count.
    fn takes_redemption(&self, state: &State, order: Order) -> bool {
        let first = if self.setting.compromised { state.epoch() } else { 0 };
        let is_spent = state.paid().is_some() || state.has(Event::Voided) && self.rules.keep(Rule::VoidSetsBit);
        self.setting.redeems
            && !is_spent
            && (first..=state.epoch()).any(|epoch| state.is_certified_in(&self.setting, epoch, order))
    }
}
