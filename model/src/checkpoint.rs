//! Checkpoints: LIFE §4. A quorum certifies a cut, authorities forget the certificates below it, and one that is behind
//! takes the certified state.
//!
//! Signatures are no part of the state, since they follow from what an authority did. It can have signed a cut in an
//! epoch if at some moment of that epoch it was full and had all that the cut states. So every cut is certified as soon
//! as it can be, whoever proposes it.

use crate::protocol::{Action, Protocol};
use crate::rules::Rule;
use crate::state::{Authority, Checkpoint, Done, Event, Orders, State};

/// Rules of a rebase that a checkpoint which says nothing new can break.
const KEPT: &[Rule] = &[Rule::RebaseOwn, Rule::RebaseLock, Rule::RebaseSeen, Rule::RebaseVoidVoted, Rule::RebaseIndex];

impl Protocol {
    /// The next actions of an authority with checkpoints.
    pub(crate) fn checkpoint_actions(&self, state: &State, who: usize, actions: &mut Vec<Action>) {
        let authority = &state.authorities[who];
        if !self.setting.checkpoints || !self.is_active(state, who) {
            return;
        }
        if let Some(done) = authority.done.filter(|_| authority.executed().is_some() && authority.base.is_none()) {
            let proof = self.accepts(state, who, Checkpoint::Below(done)).next();
            actions.extend(proof.map(|_| Action::Prune(who)));
        }
        if self.rules.keep(Rule::PruneRebase) {
            let checkpoints = self.checkpoints(state).filter(|one| self.brings_news(authority, *one));
            let accepted = checkpoints.filter(|one| self.accepts(state, who, *one).next().is_some());
            actions.extend(accepted.map(|checkpoint| Action::Rebase(who, checkpoint)));
        }
    }

    /// Everything that a checkpoint can say of the number.
    fn checkpoints<'a>(&'a self, state: &State) -> impl Iterator<Item = Checkpoint> + 'a {
        let orders = self.setting.orders().iter().map(|order| Checkpoint::Below(Done::Executed(*order)));
        let voided = [Checkpoint::Below(Done::Voided)];
        orders.chain(voided).chain((0..=state.final_events).map(Checkpoint::Beyond))
    }

    /// Whether an authority has a use for the checkpoint. Where it has not, a mutant may have one.
    fn brings_news(&self, authority: &Authority, checkpoint: Checkpoint) -> bool {
        match checkpoint {
            Checkpoint::Below(_) => authority.done.is_none(),
            Checkpoint::Beyond(read) => read > authority.read || KEPT.iter().any(|rule| !self.rules.keep(*rule)),
        }
    }

    /// Whether an authority can have signed the checkpoint under the epoch.
    fn signs(&self, state: &State, who: usize, epoch: usize, checkpoint: Checkpoint) -> bool {
        let authority = &state.authorities[who];
        let has_joined = !self.must_join(epoch, who) || authority.joined[epoch];
        let (has_all, from) = match checkpoint {
            Checkpoint::Below(done) if self.rules.keep(Rule::CutExecuted) => {
                (authority.done == Some(done), authority.done_at)
            }
            Checkpoint::Below(_) => (true, 0),
            Checkpoint::Beyond(read) => (true, read),
        };
        let is_below = matches!(checkpoint, Checkpoint::Below(_)) && self.rules.keep(Rule::CutFrozen);
        let may_sign = |read: u8| state.epoch_at(read) == epoch && !(is_below && self.is_disputed(state, read));
        has_joined && has_all && (from..=authority.read).any(may_sign)
    }

    /// Whether the number is frozen and has no outcome, for one that has read so many events.
    fn is_disputed(&self, state: &State, read: u8) -> bool {
        let is_outcome = |event| matches!(event, Event::Upheld(_) | Event::Voided | Event::Paid(_));
        let is_requested = state.first_events(read).any(|event| event == Event::Requested);
        self.setting.genuine && is_requested && !state.first_events(read).any(is_outcome)
    }

    /// Whether so many Byzantine members and the honest ones can have certified the checkpoint in the epoch.
    fn is_checkpoint_of(&self, state: &State, epoch: usize, checkpoint: Checkpoint, byzantine: usize) -> bool {
        let signers = self.setting.members(epoch).filter(|who| self.signs(state, *who, epoch, checkpoint)).count();
        signers + byzantine + usize::from(!self.rules.keep(Rule::CutQuorum)) >= self.setting.quorum(epoch)
    }

    /// The epochs by which a checkpoint counts, for one that has taken up an epoch and read so many events. The current
    /// or the closing epoch certified it, or the installation of that epoch names it. Thieves of an old epoch's keys
    /// sign everything.
    fn proofs(&self, state: &State, current: usize, read: u8, checkpoint: Checkpoint) -> impl Iterator<Item = u8> {
        let first = if self.rules.keep(Rule::CutEpoch) { current.saturating_sub(1) } else { 0 };
        (0..=current)
            .filter(move |epoch| {
                let is_certified = || self.is_checkpoint_of(state, *epoch, checkpoint, self.setting.byzantine[*epoch]);
                let is_named = self.rules.keep(Rule::CutNamed) && is_named(state, *epoch, read, checkpoint);
                *epoch >= first && (is_certified() || self.is_stolen(state, *epoch)) || is_named
            })
            .map(|epoch| epoch as u8)
    }

    /// The same for an authority that prunes by it or takes its state.
    fn accepts(&self, state: &State, who: usize, checkpoint: Checkpoint) -> impl Iterator<Item = u8> {
        let Authority { epoch, read, .. } = state.authorities[who];
        let is_stale = self.is_stale(state, who) && self.rules.keep(Rule::CutLag);
        self.proofs(state, epoch.into(), read, checkpoint).filter(move |_| !is_stale)
    }

    /// Whether an authority gets the checkpoint with a proof without the help of Byzantine members: an honest one has
    /// both, or honest ones can make them. [`Authority::base`] notes the oldest proof, which convinces the fewest.
    pub(crate) fn is_served(&self, state: &State, who: usize, checkpoint: Checkpoint) -> bool {
        let is_served = |proof: u8| {
            let serves = |one: &Authority| {
                let has_state = one.done.is_some_and(|done| checkpoint == Checkpoint::Below(done));
                one.base == Some(proof) && has_state && !one.left
            };
            let is_named = is_named(state, proof.into(), state.final_events, checkpoint);
            state.authorities.iter().any(serves)
                || self.rules.keep(Rule::CutNamed) && is_named
                || self.is_checkpoint_of(state, proof.into(), checkpoint, 0)
        };
        self.accepts(state, who, checkpoint).any(is_served)
    }

    /// An authority forgets the certificate of what it executed.
    pub(crate) fn prune(&self, state: &mut State, who: usize) {
        let Some(done) = state.authorities[who].done else { return };
        let proof = self.accepts(state, who, Checkpoint::Below(done)).next();
        state.authorities[who].base = proof;
    }

    /// What an installation may name. A quorum announces it, and an honest member announces nothing older than the
    /// checkpoint that it pruned by or began from.
    pub(crate) fn nameable(&self, state: &State) -> Vec<Option<Done>> {
        let epoch = state.epoch();
        let announcers = |names_nothing: bool| {
            let members = self.setting.members(epoch).filter(|who| {
                let authority = &state.authorities[*who];
                let is_ready = usize::from(authority.epoch) == epoch && self.is_full(state, *who);
                is_ready && !(names_nothing && authority.base.is_some() && self.rules.keep(Rule::NameNewest))
            });
            members.count() + self.setting.byzantine[epoch] >= self.setting.quorum(epoch)
        };
        let counts = |done: &Done| {
            let mut proofs = self.proofs(state, epoch, state.final_events, Checkpoint::Below(*done));
            self.setting.checkpoints && proofs.next().is_some()
        };
        let orders = self.setting.orders().iter().map(|order| Done::Executed(*order));
        let named = orders.chain([Done::Voided]).filter(counts).filter(|_| announcers(false)).map(Some);
        let nothing = (!self.setting.checkpoints || announcers(true)).then_some(None);
        nothing.into_iter().chain(named).collect()
    }

    /// An authority takes the checkpoint's state, and keeps what it has itself beyond the cut.
    pub(crate) fn rebase(&self, state: &mut State, who: usize, checkpoint: Checkpoint) {
        let proof = self.accepts(state, who, checkpoint).next();
        let lost_void_votes = !self.rules.keep(Rule::RebaseVoidVoted);
        state.authorities[who].lost_void_votes |= lost_void_votes;
        match checkpoint {
            Checkpoint::Below(done) => state.authorities[who].begin_below(done, proof),
            Checkpoint::Beyond(read) => {
                let epoch = state.epoch_at(read) as u8;
                let authority = &mut state.authorities[who];
                if !self.rules.keep(Rule::RebaseOwn) {
                    (authority.done, authority.done_in, authority.done_at) = (None, 0, 0);
                    authority.base = None;
                }
                if !self.rules.keep(Rule::RebaseLock) {
                    authority.lock = Orders::default();
                }
                if !self.rules.keep(Rule::RebaseSeen) {
                    authority.seen = None;
                }
                if !self.rules.keep(Rule::RebaseIndex) && read < authority.read {
                    (authority.read, authority.epoch) = (read, epoch);
                }
                self.step_over(state, who, read);
            }
        }
    }

    /// The state at D has the requests and the outcomes, so taking it is as good as applying the events.
    fn step_over(&self, state: &mut State, who: usize, read: u8) {
        let leaves_out = !self.rules.keep(Rule::StateRequests) || !self.rules.keep(Rule::StateOutcomes);
        if leaves_out {
            state.authorities[who].skipped = read.max(state.authorities[who].skipped);
        }
        let had_read = self.has_read(state, who, Event::Requested);
        while state.authorities[who].read < read {
            self.read(state, who);
        }
        if !had_read && !self.rules.keep(Rule::RebaseWindow) {
            state.authorities[who].read_at = 0;
        }
    }
}

impl Authority {
    /// The authority takes the state of a checkpoint that has the number below V.
    pub(crate) fn begin_below(&mut self, done: Done, proof: Option<u8>) {
        self.finish(done);
        self.base = proof.filter(|_| self.executed().is_some());
    }
}

/// Whether the installation of the epoch names the checkpoint, and is among the first `read` events.
fn is_named(state: &State, epoch: usize, read: u8, checkpoint: Checkpoint) -> bool {
    let is_installation = |event: &Event| matches!(event, Event::Installed(_));
    let mut installations = state.first_events(read).filter(is_installation);
    let installation = epoch.checked_sub(1).and_then(|before| installations.nth(before));
    matches!(installation, Some(Event::Installed(Some(done))) if checkpoint == Checkpoint::Below(done))
}
