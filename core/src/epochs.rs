//! The committees of all epochs so far. A certificate is checked against the committee of its own epoch, whichever that
//! is. How far it counts by itself once its epoch has ended, [`EpochEnd`] says.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::amount::Epoch;
use crate::committee::{Authority, Committee, CommitteeError};
use crate::standing::EpochEnd;

/// The newest recovery ([`crate::checkpoint::InstalledCommittee::is_recovery`]): its committee begins from one rebuilt
/// checkpoint, and nothing else of earlier epochs counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// The epoch that it installed.
    pub epoch: Epoch,
    /// The digest of the checkpoint that the contract has adopted; none yet.
    pub adopted: Option<Digest>,
}

/// Every committee that the contract ever installed, from epoch 0, as far as it is known here. Cheap to
/// clone. In JSON: the list of the epochs' lists of members, and beside it what there is of the newest recovery and of the
/// ends of epochs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Committees {
    past: Vec<Arc<Committee>>,
    current: Arc<Committee>,
    recovery: Option<Recovery>,
    /// One that is not here counts as ended at once.
    ends: BTreeMap<Epoch, EpochEnd>,
}

/// [`Committees`] in JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Lists(Vec<Vec<Authority>>),
    WithEnds {
        committees: Vec<Vec<Authority>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recovery: Option<Recovery>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ends: Vec<(Epoch, EpochEnd)>,
    },
}

impl Committees {
    /// The committees of a deployment that was never rotated.
    ///
    /// # Errors
    /// [`EpochsError::Gap`] where `first` is not of epoch 0.
    pub fn new(first: Committee) -> Result<Self, EpochsError> {
        if first.epoch() != Epoch(0) {
            return Err(EpochsError::Gap { expected: Epoch(0), found: first.epoch() });
        }
        Ok(Self { past: Vec::new(), current: Arc::new(first), recovery: None, ends: BTreeMap::new() })
    }

    /// The committee that votes now.
    #[must_use]
    pub fn current(&self) -> &Arc<Committee> {
        &self.current
    }

    /// The committee of an epoch, or `None` if it is not known here (yet).
    #[must_use]
    pub fn get(&self, epoch: Epoch) -> Option<&Arc<Committee>> {
        if epoch == self.current.epoch() {
            return Some(&self.current);
        }
        self.past.get(usize::try_from(epoch.0).ok()?)
    }

    /// The epoch that would follow.
    #[must_use]
    pub fn next_epoch(&self) -> Epoch {
        Epoch(self.current.epoch().0.saturating_add(1))
    }

    /// Makes `next` the current committee.
    ///
    /// # Errors
    /// [`EpochsError::Gap`] where it is not of the epoch after the current one; nothing is changed then.
    pub fn install(&mut self, next: Committee) -> Result<(), EpochsError> {
        let expected = self.next_epoch();
        if next.epoch() != expected {
            return Err(EpochsError::Gap { expected, found: next.epoch() });
        }
        self.past.push(std::mem::replace(&mut self.current, Arc::new(next)));
        Ok(())
    }

    /// The end of an epoch before the current one. At no time where it is not known.
    #[must_use]
    pub fn end(&self, epoch: Epoch) -> EpochEnd {
        self.known_end(epoch).unwrap_or_default()
    }

    /// The same; none where it is not known.
    #[must_use]
    pub fn known_end(&self, epoch: Epoch) -> Option<EpochEnd> {
        self.ends.get(&epoch).copied()
    }

    /// The epochs whose end is known.
    pub fn ended(&self) -> impl Iterator<Item = Epoch> {
        self.ends.keys().copied()
    }

    /// Notes the end of an epoch.
    pub fn note_end(&mut self, epoch: Epoch, end: EpochEnd) {
        self.ends.insert(epoch, end);
    }

    /// The newest recovery, if there was one.
    #[must_use]
    pub fn recovery(&self) -> Option<Recovery> {
        self.recovery
    }

    /// Notes the newest recovery, or what it has adopted.
    ///
    /// # Errors
    /// [`EpochsError::NoRecovery`] where its epoch is the first one, or is not known here; nothing is changed then.
    pub fn recover(&mut self, recovery: Recovery) -> Result<(), EpochsError> {
        if recovery.epoch == Epoch(0) || recovery.epoch > self.current.epoch() {
            return Err(EpochsError::NoRecovery(recovery.epoch));
        }
        self.recovery = Some(recovery);
        Ok(())
    }

    /// The epoch from which on certificates count; earlier ones ended with a recovery, whatever they certify.
    #[must_use]
    pub fn counting_since(&self) -> Epoch {
        self.recovery.map_or(Epoch(0), |recovery| recovery.epoch)
    }

    /// A key of `next` that stood beside another key in an earlier epoch, or stands so in the current one: that epoch, the
    /// pair in it, and the pair in `next`. A pair that stays as it was is none.
    #[must_use]
    pub fn other_pair(&self, next: &Committee) -> Option<(Epoch, Authority, Authority)> {
        let shares_one_key = |before: &Authority, now: &Authority| {
            (before.name == now.name) != (before.redemption_key == now.redemption_key)
        };
        self.iter().find_map(|committee| {
            committee.members().iter().find_map(|before| {
                let now = next.members().iter().find(|now| shares_one_key(before, now))?;
                Some((committee.epoch(), *before, *now))
            })
        })
    }

    /// All committees, from epoch 0.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Committee>> {
        self.past.iter().chain(std::iter::once(&self.current))
    }
}

impl TryFrom<Stored> for Committees {
    type Error = EpochsError;

    fn try_from(stored: Stored) -> Result<Self, EpochsError> {
        let (lists, recovery, ends) = match stored {
            Stored::Lists(lists) => (lists, None, Vec::new()),
            Stored::WithEnds { committees, recovery, ends } => (committees, recovery, ends),
        };
        let mut committees =
            (0..).zip(lists).map(|(epoch, members)| Committee::new(Epoch(epoch), members).map_err(EpochsError::from));
        let mut all = Self::new(committees.next().ok_or(EpochsError::Empty)??)?;
        committees.try_for_each(|next| all.install(next?))?;
        recovery.map_or(Ok(()), |recovery| all.recover(recovery))?;
        ends.into_iter().for_each(|(epoch, end)| all.note_end(epoch, end));
        Ok(all)
    }
}

impl From<Committees> for Stored {
    fn from(committees: Committees) -> Self {
        let lists = committees.iter().map(|committee| committee.members().to_vec()).collect();
        let Committees { recovery, ends, .. } = committees;
        match (recovery, ends) {
            (None, ends) if ends.is_empty() => Self::Lists(lists),
            (recovery, ends) => Self::WithEnds { committees: lists, recovery, ends: ends.into_iter().collect() },
        }
    }
}

/// Why committees do not follow each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EpochsError {
    /// An epoch is missing, or comes twice.
    #[error("the next committee must belong to epoch {expected}, not {found}")]
    Gap {
        /// The epoch whose turn it is.
        expected: Epoch,
        /// The epoch of what was given.
        found: Epoch,
    },
    /// A recovery of no epoch that can be one's.
    #[error("epoch {0} cannot have been installed by a recovery here")]
    NoRecovery(Epoch),
    /// There is not even the first one.
    #[error("there is no committee")]
    Empty,
    /// One of them is no committee.
    #[error(transparent)]
    Committee(#[from] CommitteeError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AuthorityName, PrimaryAddress};

    fn committee(epoch: u64, first_key: u8) -> Committee {
        let members = (first_key..).take(4).map(|byte| Authority {
            name: AuthorityName([byte; 32]),
            redemption_key: PrimaryAddress::repeat_byte(byte),
        });
        Committee::new(Epoch(epoch), members.collect()).unwrap()
    }

    #[test]
    fn every_epoch_keeps_its_own_committee() {
        let mut all = Committees::new(committee(0, 1)).unwrap();
        assert_eq!(all.get(Epoch(1)), None);
        all.install(committee(1, 11)).unwrap();
        all.install(committee(2, 21)).unwrap();
        for (epoch, first_key) in [(0, 1), (1, 11), (2, 21)] {
            assert_eq!(**all.get(Epoch(epoch)).unwrap(), committee(epoch, first_key));
        }
        assert_eq!(**all.current(), committee(2, 21));
        for unknown in [3, 4, u64::MAX] {
            assert_eq!(all.get(Epoch(unknown)), None);
        }
    }

    #[test]
    fn no_epoch_is_left_out_or_replaced() {
        let gap = |expected, found| EpochsError::Gap { expected: Epoch(expected), found: Epoch(found) };
        assert_eq!(Committees::new(committee(1, 1)), Err(gap(0, 1)));
        let mut all = Committees::new(committee(0, 1)).unwrap();
        for epoch in [0, 2, u64::MAX] {
            assert_eq!(all.install(committee(epoch, 11)), Err(gap(1, epoch)));
        }
        assert_eq!(all, Committees::new(committee(0, 1)).unwrap());
    }

    #[test]
    fn a_key_that_stood_in_another_pair_is_found_in_any_epoch() {
        let mut all = Committees::new(committee(0, 1)).unwrap();
        all.install(committee(1, 11)).unwrap();
        let next = |change: &dyn Fn(&mut Authority)| {
            let mut members = committee(2, 21).members().to_vec();
            change(&mut members[0]);
            Committee::new(Epoch(2), members).unwrap()
        };
        let found = |change: &dyn Fn(&mut Authority)| all.other_pair(&next(change)).map(|(epoch, ..)| epoch);
        assert_eq!(found(&|_| ()), None);
        let pair =
            |byte| Authority { name: AuthorityName([byte; 32]), redemption_key: PrimaryAddress::repeat_byte(byte) };
        for (epoch, byte) in [(0, 1), (0, 4), (1, 11)] {
            assert_eq!(found(&|member| *member = pair(byte)), None, "the same pair again");
            assert_eq!(found(&|member| member.name = pair(byte).name), Some(Epoch(epoch)));
            assert_eq!(found(&|member| member.redemption_key = pair(byte).redemption_key), Some(Epoch(epoch)));
        }
        let mixed = Authority { redemption_key: pair(12).redemption_key, ..pair(11) };
        let (_, before, now) = all.other_pair(&next(&|member| *member = mixed)).unwrap();
        assert_eq!((before, now), (pair(11), mixed));
    }

    #[test]
    fn committees_are_read_back_as_they_were_written_and_nothing_else_is() {
        let mut all = Committees::new(committee(0, 1)).unwrap();
        all.install(committee(1, 11)).unwrap();
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Committees>(&text).unwrap(), all);
        let short = serde_json::to_string(&[committee(0, 1).members(), &committee(1, 2).members()[..3]]).unwrap();
        for bad in ["[]", "[[]]", "{}", &short] {
            assert!(serde_json::from_str::<Committees>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_recovery_is_of_a_known_epoch_and_ends_those_before() {
        let mut all = Committees::new(committee(0, 1)).unwrap();
        all.install(committee(1, 11)).unwrap();
        let recovery = |epoch, adopted| Recovery { epoch: Epoch(epoch), adopted };
        for epoch in [0, 2, u64::MAX] {
            assert_eq!(all.recover(recovery(epoch, None)), Err(EpochsError::NoRecovery(Epoch(epoch))));
        }
        assert_eq!((all.recovery(), all.counting_since()), (None, Epoch(0)));
        for adopted in [None, Some(Digest::repeat_byte(7))] {
            all.recover(recovery(1, adopted)).unwrap();
            assert_eq!((all.recovery(), all.counting_since()), (Some(recovery(1, adopted)), Epoch(1)));
            let text = serde_json::to_string(&all).unwrap();
            assert_eq!(serde_json::from_str::<Committees>(&text).unwrap(), all);
            let of_no_epoch = text.replace("\"epoch\":1", "\"epoch\":2");
            assert!(serde_json::from_str::<Committees>(&of_no_epoch).is_err(), "{of_no_epoch}");
        }
        all.install(committee(2, 21)).unwrap();
        assert_eq!(all.counting_since(), Epoch(1), "a later rotation changes nothing");
    }

    #[test]
    fn the_ends_of_epochs_are_read_back_and_an_unknown_one_is_in_the_past() {
        let mut all = Committees::new(committee(0, 1)).unwrap();
        all.install(committee(1, 11)).unwrap();
        let end = |valid_until| EpochEnd::new(valid_until, 30);
        assert_eq!((all.known_end(Epoch(0)), all.end(Epoch(0))), (None, EpochEnd::default()));
        all.note_end(Epoch(0), end(100));
        all.note_end(Epoch(0), end(200));
        for recovery in [None, Some(Recovery { epoch: Epoch(1), adopted: None })] {
            recovery.into_iter().for_each(|recovery| all.recover(recovery).unwrap());
            let text = serde_json::to_string(&all).unwrap();
            let read = serde_json::from_str::<Committees>(&text).unwrap();
            assert_eq!((read.known_end(Epoch(0)), &read), (Some(end(200)), &all), "{text}");
            assert!(
                text.contains(r#""ends":[[0,{"executed_until":170,"kept_until":200}]]"#),
                "the form on disk: {text}"
            );
        }
    }
}
