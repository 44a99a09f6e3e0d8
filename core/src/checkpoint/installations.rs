//! The committees that the Primary installed, as checkpoints keep them.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::Epoch;
use crate::committee::Committee;
use crate::epochs::EpochsError;

/// A committee, as the Primary's `CommitteeInstalled` names it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct InstalledCommittee {
    /// The committee, with the epoch that it began.
    pub committee: Committee,
    /// The first epoch whose keys were out; the committee's own epoch if none were.
    pub compromised_since: Epoch,
    /// The digest of the checkpoint that the installation names, which counts for ever; zero for none.
    pub checkpoint: Digest,
}

impl InstalledCommittee {
    /// Whether this is the installation of a *recovery*: it says that an epoch before it ends at once, because more of its
    /// keys were out than its committee tolerates, or because nobody is left who has them. What such epochs certified
    /// proves nothing by itself, so the committee begins from one rebuilt checkpoint, which the Primary adopts. Nobody
    /// votes in its epoch before that, and nothing else of any epoch before it counts afterwards.
    #[must_use]
    pub fn is_recovery(&self) -> bool {
        self.compromised_since < self.committee.epoch()
    }
}

/// All committees from epoch 0 on, without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installations {
    past: Vec<InstalledCommittee>,
    current: InstalledCommittee,
}

impl Installations {
    /// The committee of the deployment alone.
    ///
    /// # Errors
    /// [`EpochsError::Gap`] if `first` is not of epoch 0.
    pub fn new(first: Committee) -> Result<Self, EpochsError> {
        let found = first.epoch();
        Self::from_first(InstalledCommittee { committee: first, compromised_since: Epoch(0), checkpoint: Digest::ZERO })
            .ok_or(EpochsError::Gap { expected: Epoch(0), found })
    }

    pub(super) fn from_first(first: InstalledCommittee) -> Option<Self> {
        (first.committee.epoch() == Epoch(0)).then(|| Self { past: Vec::new(), current: first })
    }

    /// Makes `next` the current committee.
    ///
    /// # Errors
    /// [`EpochsError::Gap`] if it is not of the epoch after the current one; nothing is changed then.
    pub fn install(&mut self, next: InstalledCommittee) -> Result<(), EpochsError> {
        let (expected, found) = (Epoch(self.epoch().0.saturating_add(1)), next.committee.epoch());
        if found != expected {
            return Err(EpochsError::Gap { expected, found });
        }
        self.past.push(std::mem::replace(&mut self.current, next));
        Ok(())
    }

    /// The current committee.
    #[must_use]
    pub fn current(&self) -> &InstalledCommittee {
        &self.current
    }

    /// The current epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.current.committee.epoch()
    }

    /// All of them, from epoch 0.
    pub fn iter(&self) -> impl Iterator<Item = &InstalledCommittee> {
        self.past.iter().chain(std::iter::once(&self.current))
    }

    /// The committee of an epoch, if it is known.
    #[must_use]
    pub fn get(&self, epoch: Epoch) -> Option<&InstalledCommittee> {
        self.iter().nth(usize::try_from(epoch.0).ok()?)
    }
}
