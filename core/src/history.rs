//! Histories of constant size: an account keeps only the newest positions of its certificates, and
//! each journal record points back to earlier ones [FP §4, storage considerations].
//!
//! Entry number c (counted from 1) points to entry c − 1 and, to *skip*, to the entry whose number is c with its
//! lowest set bit cleared. A history keeps the positions of the skip chain of its newest entry: one for each set bit
//! of its count, at most 64. Reaching any other entry takes a number of steps that grows with the square of the
//! logarithm.

use std::io::{Read, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use smallvec::SmallVec;

use crate::amount::newtype;

newtype! {
    /// A record's position in a shard's journal: a byte offset, counted over all segments.
    pub struct JournalPosition(u64);
}

impl JournalPosition {
    /// In a link, the record's own position, which is unknown while the record is decided. An account that one record
    /// credits several times has several entries in it.
    pub(crate) const HERE: Self = Self(u64::MAX);
}

/// Links a record into a history: its number there, from 0, and the positions of earlier entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Link {
    /// This entry's number, from 0.
    pub number: u64,
    /// The entry before this one.
    pub previous: Option<JournalPosition>,
    /// An entry further back, by the rule above; none if that is before the first.
    pub skip: Option<JournalPosition>,
}

/// The end of a chain of journal records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    count: u64,
    /// Oldest first: one position for each set bit of `count`, of the entry whose number keeps that bit and the higher
    /// ones.
    spine: SmallVec<[JournalPosition; 2]>,
}

/// The count, followed by its positions.
impl BorshSerialize for History {
    fn serialize<W: Write>(&self, writer: &mut W) -> std::io::Result<()> {
        BorshSerialize::serialize(&self.count, writer)?;
        self.spine.iter().try_for_each(|position| BorshSerialize::serialize(position, writer))
    }
}

impl BorshDeserialize for History {
    fn deserialize_reader<R: Read>(reader: &mut R) -> std::io::Result<Self> {
        let count = u64::deserialize_reader(reader)?;
        let spine: std::io::Result<_> =
            (0..count.count_ones()).map(|_| JournalPosition::deserialize_reader(reader)).collect();
        Ok(Self { count, spine: spine? })
    }
}

/// The next step of a search for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// The entry is at this position.
    Found(JournalPosition),
    /// Read the record here and ask the link of its entry with this number.
    Read(JournalPosition, u64),
    /// There is no such entry.
    Absent,
}

impl History {
    /// A history whose `count` entries are pruned. `base` is the record that says so.
    #[must_use]
    pub(crate) fn pruned(count: u64, base: JournalPosition) -> Self {
        Self { count, spine: SmallVec::from_elem(base, count.count_ones() as usize) }
    }

    /// The number of entries.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The newest entry's position.
    #[must_use]
    pub fn newest(&self) -> Option<JournalPosition> {
        self.spine.last().copied()
    }

    /// The link of the entry that will come next.
    #[must_use]
    pub fn next_link(&self) -> Link {
        let ones = self.count.wrapping_add(1).count_ones() as usize;
        let skip = ones.checked_sub(2).and_then(|index| self.spine.get(index));
        Link { number: self.count, previous: self.newest(), skip: skip.copied() }
    }

    /// Adds the record at `position` as the newest entry.
    pub(crate) fn push(&mut self, position: JournalPosition) {
        self.count = self.count.wrapping_add(1);
        self.spine.truncate((self.count.count_ones() as usize).saturating_sub(1));
        self.spine.push(position);
    }

    /// The first step towards entry `number`, from 0. It uses the positions that this history keeps, so recent entries
    /// take few reads.
    #[must_use]
    pub fn find(&self, number: u64) -> Find {
        if number >= self.count {
            return Find::Absent;
        }
        let target = number.wrapping_add(1);
        let mut best = None;
        let mut entry = self.count;
        for position in self.spine.iter().rev() {
            if entry < target {
                break;
            }
            best = Some((entry, *position));
            entry &= entry.wrapping_sub(1);
        }
        match best {
            Some((entry, position)) if entry == target => Find::Found(position),
            Some((entry, position)) => Find::Read(position, entry.wrapping_sub(1)),
            None => Find::Absent,
        }
    }
}

impl Link {
    /// The same for a record at `position`.
    #[must_use]
    pub(crate) fn standing_at(self, position: JournalPosition) -> Self {
        let place = |link: Option<JournalPosition>| {
            link.map(|link| if link == JournalPosition::HERE { position } else { link })
        };
        Self { number: self.number, previous: place(self.previous), skip: place(self.skip) }
    }

    /// The next step towards entry `number`, from 0, from the entry that has this link.
    #[must_use]
    pub fn find(&self, number: u64) -> Find {
        let (Some(here), Some(target)) = (self.number.checked_add(1), number.checked_add(1)) else {
            return Find::Absent;
        };
        if target >= here {
            return Find::Absent;
        }
        let skipped = here & here.wrapping_sub(1);
        let (entry, position) = if skipped >= target { (skipped, self.skip) } else { (self.number, self.previous) };
        match position {
            Some(position) if entry == target => Find::Found(position),
            Some(position) => Find::Read(position, entry.wrapping_sub(1)),
            None => Find::Absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found_in_few_steps() {
        let mut history = History::default();
        let mut links = Vec::new();
        for number in 0..3000_u64 {
            links.push(history.next_link());
            history.push(JournalPosition(number * 10));
            assert!(history.spine.len() <= 64);
            if number % 97 != 0 {
                continue;
            }
            for target in 0..=number {
                let (mut step, mut reads) = (history.find(target), 0);
                while let Find::Read(position, entry) = step {
                    reads += 1;
                    assert_eq!(position.0 / 10, entry);
                    step = links[usize::try_from(entry).unwrap()].find(target);
                }
                assert_eq!(step, Find::Found(JournalPosition(target * 10)), "{target} of {number}");
                assert!(reads <= 80, "{reads} reads for {target} of {number}");
            }
        }
        assert_eq!(history.find(3000), Find::Absent);
        assert_eq!(links[5].find(5), Find::Absent);
        assert_eq!(links[5].find(u64::MAX), Find::Absent);
    }

    #[test]
    fn every_search_for_a_pruned_entry_ends_at_the_base_and_no_other_does() {
        let base = JournalPosition(7);
        for pruned in [1, 2, 3, 64, 100, 127] {
            let mut history = History::pruned(pruned, base);
            let mut links = std::collections::BTreeMap::new();
            for number in pruned..pruned + 70 {
                links.insert(JournalPosition(number * 10_000), history.next_link());
                history.push(JournalPosition(number * 10_000));
                for target in 0..=number {
                    let mut step = history.find(target);
                    let found = loop {
                        match step {
                            Find::Found(position) => break position,
                            Find::Read(position, _) if position == base => break base,
                            Find::Read(position, _) => step = links[&position].find(target),
                            Find::Absent => panic!("{target} of {number}"),
                        }
                    };
                    let expected = if target < pruned { base } else { JournalPosition(target * 10_000) };
                    assert_eq!(found, expected, "{target} of {number}, {pruned} pruned");
                }
            }
        }
    }
}
