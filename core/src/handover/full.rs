//! Who is *full* in an epoch: whose folder has all that its authority must know in order to sign everything there. Nodes
//! and the random tests follow this one rule [LIFE §3.2].
//!
//! A folder is full in an epoch in which it began, and in those that follow while the same pair of keys is a member and
//! the committee does not become so small that those who know nothing of an order decide. Everybody else joins, and
//! begins anew with that. A key that is new may have voted elsewhere before, and so may a folder of which a later copy
//! was in use.

use crate::amount::Epoch;
use crate::committee::{Authority, Committee};

/// An epoch, as one authority's folder goes through it.
#[derive(Clone, Copy, Debug)]
pub struct Term<'a> {
    /// The committee.
    pub committee: &'a Committee,
    /// The pair of keys under which the authority is a member; none if it is none.
    pub member: Option<Authority>,
}

/// Whether a folder may lack votes of its authority: it is an older copy, or was made anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stale {
    /// It has all.
    #[default]
    No,
    /// It may lack votes of this epoch and of those before: of the newest one in which its authority can have voted with
    /// another folder.
    UpTo(Epoch),
    /// It may lack votes, and it is not known yet up to which epoch.
    Unknown,
}

impl Stale {
    /// Whether a folder that began in the epoch has all votes since.
    fn allows(self, begun: Epoch) -> bool {
        match self {
            Self::No => true,
            Self::UpTo(last) => begun > last,
            Self::Unknown => false,
        }
    }
}

/// Since which epoch a folder is full in the last of these terms, which are in the order of epochs; none if it is not. It
/// was full in the epochs `begun`, as a founder or because it joined them, unless it is stale in them.
#[must_use]
pub fn full_since(terms: &[Term<'_>], begun: impl IntoIterator<Item = Epoch>, stale: Stale) -> Option<Epoch> {
    let stays = |begun: &Epoch| {
        let since = terms.iter().position(|term| term.committee.epoch() == *begun);
        since.and_then(|since| terms.get(since..)).is_some_and(goes_on)
    };
    begun.into_iter().filter(|begun| stale.allows(*begun)).filter(stays).min()
}

/// Whether what a member knew in the first of these terms is enough in the last.
fn goes_on(terms: &[Term<'_>]) -> bool {
    let Some(last) = terms.last() else { return false };
    let has_same_keys = terms.iter().all(|term| term.member.is_some() && term.member == last.member);
    let may_go_on = |(place, after): (usize, &Term<'_>)| {
        terms.iter().take(place).all(|before| may_stay(before.committee, after.committee))
    };
    has_same_keys && terms.iter().enumerate().all(may_go_on)
}

/// Whether members of `before` may vote in the later epoch of `after` with their own memory, whatever else has changed
/// between: those of them that know nothing of an order that `before` certified are no quorum of `after`, not even
/// together with its faulty members. A committee that does not become smaller has this property.
#[must_use]
pub fn may_stay(before: &Committee, after: &Committee) -> bool {
    let unaware = before.members().len().saturating_sub(before.quorum());
    unaware.saturating_add(after.faults_tolerated()) < after.quorum()
}

/// Of committees of consecutive epochs, one whose members may not stay in `after` with the memory that they had in it, so
/// that all members of `after` join; none if those who stay go on. Where all joined one of these epochs, those before it
/// count no more.
#[must_use]
pub fn all_join_after<'a>(
    committees: impl IntoIterator<Item = &'a Committee>,
    after: &Committee,
) -> Option<&'a Committee> {
    let mut counting: Vec<&Committee> = Vec::new();
    for committee in committees {
        if !counting.iter().all(|before| may_stay(before, committee)) {
            counting.clear();
        }
        counting.push(committee);
    }
    counting.into_iter().find(|before| !may_stay(before, after))
}
