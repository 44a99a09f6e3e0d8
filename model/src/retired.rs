//! Epochs that are over: LIFE §3.6. Their members' keys are guarded for a while and stolen after that.
//!
//! LIFE counts days. Here, an epoch is old from the second installation after it on, which comes so late.

use crate::protocol::Protocol;
use crate::rules::Rule;
use crate::state::{Authority, Order, State};

impl Protocol {
    /// Whether the keys of an epoch's members are in a thief's hands: retired keys are guarded no more.
    pub(crate) fn is_stolen(&self, state: &State, epoch: usize) -> bool {
        self.setting.retired_stolen && epoch + 1 < state.epoch()
    }

    /// Whether an authority takes a certificate of that epoch. That of an old one counts only with f+1 votes of the
    /// current epoch.
    pub(crate) fn counts(&self, state: &State, who: usize, epoch: usize, order: Order, byzantine: usize) -> bool {
        let current = usize::from(state.authorities[who].epoch);
        let exists = state.is_certified_in(&self.setting, epoch, order) || self.is_stolen(state, epoch);
        let voters = || {
            let votes = |one: &usize| {
                let authority = &state.authorities[*one];
                let knows = authority.executed() == Some(order) && self.attests_executed(authority);
                usize::from(authority.epoch) == current && (knows || authority.seen == Some(order))
            };
            self.setting.members(current).filter(votes).count() + byzantine
        };
        let is_vouched = || self.rules.keep(Rule::OldVouched) && voters() > self.setting.faults(current);
        exists && (epoch + 1 >= current || !self.rules.keep(Rule::OldCertificates) || is_vouched())
    }

    /// What an authority stored as Seen on an old view it judges once it has read on.
    pub(crate) fn judge_seen(&self, state: &mut State, who: usize) {
        let Authority { seen, seen_stale, epoch, .. } = state.authorities[who];
        let Some(order) = seen.filter(|_| seen_stale && !self.is_stale(state, who)) else { return };
        (state.authorities[who].seen, state.authorities[who].seen_stale) = (None, false);
        let is_kept = (0..=epoch).any(|epoch| self.counts(state, who, epoch.into(), order, 0));
        if is_kept || !self.rules.keep(Rule::OldSeen) {
            state.authorities[who].seen = seen;
        }
    }

    /// Whether an authority can attest what it executed. The archive has the orders below a cut.
    pub(crate) fn attests_executed(&self, authority: &Authority) -> bool {
        authority.base.is_none() || self.rules.keep(Rule::PrunedAttests)
    }
}
