//! States that nothing that follows can tell apart are one.
//!
//! Three kinds of difference do not matter: the names of the two orders, the names of authorities of one kind, and what
//! no rule asks for any more. Counterexamples are replayed without merging, so a mistake here cannot invent one.

use crate::protocol::Protocol;
use crate::rules::Rule;
use crate::state::{AUTHORITIES, Closing, Done, EPOCHS, Order, Orders, State, VoidVotes};

/// The one state that stands for all that are like it.
pub fn merged(protocol: &Protocol, state: State) -> State {
    let state = forgotten(protocol, state);
    let same = sorted(protocol, state);
    if protocol.setting.equivocates { same.min(sorted(protocol, exchanged(state))) } else { same }
}

/// Nothing depends on how long an authority takes to read on that is done, or that is not active yet.
fn read_on(protocol: &Protocol, state: &mut State) {
    let (setting, rules) = (&protocol.setting, protocol.rules);
    for who in setting.everybody() {
        loop {
            let authority = &state.authorities[who];
            let reports = protocol.reports(state, who);
            let is_early = setting.is_early(who, authority.epoch.into());
            let has_begun = !setting.is_early(who, state.epoch_at(state.final_events));
            let is_coming = is_early && has_begun && rules.keep(Rule::InOrder) && rules.keep(Rule::Observer);
            let may_prune = setting.checkpoints && authority.executed().is_some() && authority.base.is_none();
            let is_idle = authority.done.is_some() && !reports && !may_prune;
            if authority.left || authority.read >= state.final_events || !is_idle && !is_coming {
                break;
            }
            protocol.read(state, who);
        }
    }
}

/// Without what no rule asks for any more.
fn forgotten(protocol: &Protocol, mut state: State) -> State {
    read_on(protocol, &mut state);
    let (setting, rules) = (&protocol.setting, protocol.rules);
    let is_decided = state.has_outcome() && rules.keep(Rule::UpheldNotVoided);
    if state.has_outcome() {
        state.held = 0;
        if state.now >= setting.clock.lag {
            state.now = setting.clock.horizon();
        }
    }
    let epochs_over = if rules.keep(Rule::CurrentEpoch) { state.epoch() } else { 0 };
    let all_joined: [_; EPOCHS - 1] = std::array::from_fn(|epoch| protocol.have_all_joined(&state, epoch + 1));
    for who in setting.everybody() {
        let is_frozen = protocol.is_frozen(&state, who) && rules.keep(Rule::FrozenVote);
        let is_ripe = is_decided || protocol.has_waited(&state, who);
        let reports = protocol.reports(&state, who);
        let authority = &mut state.authorities[who];
        let stays_frozen = rules.keep(Rule::RebaseIndex) && rules.keep(Rule::StateRequests);
        if is_frozen && stays_frozen && !reports {
            authority.lock = Orders::default();
        }
        if is_ripe || authority.done.is_some() {
            authority.read_at = 0;
        }
        if is_decided {
            authority.void_votes = Default::default();
        } else {
            authority.void_votes[..epochs_over].fill(VoidVotes::None);
        }
        if usize::from(authority.done_in) <= setting.first_epoch(who) {
            authority.done_in = 0;
        }
        if !setting.checkpoints {
            authority.done_at = 0;
        }
        for (epoch, closing) in authority.closings.iter_mut().enumerate() {
            if all_joined[epoch] && setting.is_member(epoch, who) {
                *closing = Some(Closing::default());
            }
        }
        if authority.left && !setting.checkpoints {
            authority.read = 0;
        }
    }
    if is_decided {
        state.final_time = 0;
    }
    for (epoch, order) in (0..EPOCHS).flat_map(|epoch| Order::BOTH.map(|order| (epoch, order))) {
        if state.is_certified_in(setting, epoch, order) {
            setting.members(epoch).for_each(|who| state.authorities[who].votes[epoch].insert(order));
        }
    }
    state
}

/// With the orders' names exchanged.
fn exchanged(mut state: State) -> State {
    for authority in &mut state.authorities {
        authority.lock = authority.lock.exchanged();
        authority.seen = authority.seen.map(|order| order.other());
        authority.forgotten = authority.forgotten.map(|order| order.other());
        authority.done = authority.done.map(Done::exchanged);
        authority.votes = authority.votes.map(Orders::exchanged);
        authority.closings = authority.closings.map(|closing| {
            closing.map(|closing| Closing {
                locks: closing.locks.exchanged(),
                certificate: closing.certificate.map(|order| order.other()),
                covered: closing.covered.map(|(order, base)| (order.other(), base)),
                read: closing.read,
            })
        });
    }
    state.exchange_events();
    state
}

/// With the authorities of each kind in order.
fn sorted(protocol: &Protocol, mut state: State) -> State {
    for (later, who) in (0..AUTHORITIES).flat_map(|later| (0..later).map(move |who| (later, who))) {
        let is_same_kind = protocol.setting.are_alike(who, later);
        if is_same_kind && state.authorities[later] < state.authorities[who] {
            state.authorities.swap(who, later);
        }
    }
    state
}
