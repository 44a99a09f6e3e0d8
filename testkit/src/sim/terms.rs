//! The committees of a run. All are known from the beginning, so that authorities have their keys before they need them.

use std::collections::BTreeMap;

use fastpay_core::{AuthorityKeys, Domain, Epoch};

use super::plan::Plan;
use crate::{TestCommittee, authority_keys};

/// The committee of an epoch, and who is behind its members.
#[derive(Clone)]
pub struct Term {
    /// The committee, with its members' keys.
    pub committee: TestCommittee,
    /// The authority behind each member, in the committee's order.
    pub behind: Vec<usize>,
    /// The faulty members, each with the epoch from which on its keys of this one are misused.
    pub faulty: BTreeMap<usize, u64>,
}

impl Term {
    /// Those of all epochs of a plan.
    #[must_use]
    pub fn all(plan: &Plan, domain: Domain) -> Vec<Self> {
        let epochs = plan.rotations + plan.straddles + 1;
        if let Some(kind) = plan.hand_over {
            let term = |epoch| Self {
                faulty: plan.faulty(kind, epoch),
                ..Self::of(&plan.seats(kind, epoch), domain, Epoch(epoch))
            };
            return (0..epochs).map(term).collect();
        }
        let first = TestCommittee::with(plan.authorities(), domain, Epoch(0));
        // A restored member keeps its keys, and votes on under them.
        let next = |last: &TestCommittee| match plan.is_restored {
            true => TestCommittee::of(last.keys.clone(), domain, Epoch(last.committee.epoch().0 + 1)),
            false => last.rotated(),
        };
        let all = std::iter::successors(Some(first), |last| Some(next(last)));
        let behind = |committee: &TestCommittee| (0..committee.keys.len()).collect();
        let faulty: BTreeMap<_, _> = (plan.honest()..plan.authorities()).map(|authority| (authority, 0)).collect();
        all.take(usize::try_from(epochs).expect("few epochs"))
            .map(|committee| Self { behind: behind(&committee), committee, faulty: faulty.clone() })
            .collect()
    }

    /// The committee of these authorities, each with the number of times that its keys have changed.
    fn of(seats: &[(usize, u64)], domain: Domain, epoch: Epoch) -> Self {
        let keys = |(authority, changes): &(usize, u64)| authority_keys(1_000 * changes + *authority as u64 + 1);
        let committee = TestCommittee::of(seats.iter().map(keys).collect(), domain, epoch);
        let behind = committee.keys.iter().map(|member| {
            let seat = seats.iter().find(|seat| keys(seat).public() == member.public());
            seat.expect("each member has a seat").0
        });
        Self { behind: behind.collect(), committee, faulty: BTreeMap::new() }
    }

    /// Whether an authority has no member's keys that are misused when this epoch begins.
    #[must_use]
    pub fn begins_honest(&self, authority: usize) -> bool {
        self.faulty.get(&authority).is_none_or(|since| *since > self.committee.committee.epoch().0)
    }

    /// The keys of an authority, if it is a member.
    #[must_use]
    pub fn keys_of(&self, authority: usize) -> Option<&AuthorityKeys> {
        self.behind.iter().position(|behind| *behind == authority).map(|member| &self.committee.keys[member])
    }
}
