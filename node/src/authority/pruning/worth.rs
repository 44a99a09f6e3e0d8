//! Whether it is worth to end the journals at a checkpoint, and whether the disk has room for the new ones.

use std::path::Path;
use std::time::SystemTime;

use fastpay_program::disk::{Disk, RealDisk};

use crate::authority::certification::Archive;
use crate::authority::storage::{JournalExtent, StorageError, generation_in, shard_folders};

/// Journals that are more than so many times as long as what they began with are worth it.
const GROWTH: u64 = 2;
/// With less free space than so many reserves, journals are ended as soon as that gains anything.
const RESERVES: u64 = 2;
/// With less free space than five quarters of the reserve, voting ends soon: then the committee rather goes without this
/// member's votes for as long as a rebase takes.
const QUARTERS: u64 = 5;
/// The base's records of an account are at most so many times as long as its rows in the checkpoint's state.
const BASE_PER_STATE: u64 = 2;

/// Why it is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// A join waits for journals that begin there. This authority votes for nothing until then.
    Joining,
    /// The checkpoint includes what this authority lacks, and what the others may have pruned.
    Behind,
    /// The disk is nearly full.
    DiskLow,
    /// As `DiskLow`, and this authority votes for nothing new soon, or already.
    VotingEnds,
    /// Most of the journals is history that the archive has.
    Grown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    NotWorthIt,
    /// It is, and the disk has no room for the new journals beside the old ones.
    NoRoom {
        reason: Reason,
        /// The bytes that are lacking.
        lacking: u64,
    },
    Due(Reason),
}

/// What is on the disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub journals: u64,
    /// What the journals began with.
    pub base: u64,
    /// At most so many will the new ones have.
    pub next: u64,
    pub free: u64,
    pub reserve: u64,
}

/// Why the disk cannot be measured.
#[derive(Debug, thiserror::Error)]
pub(super) enum MeasureError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("cannot measure the journals: {0}")]
    Io(#[from] std::io::Error),
}

impl Sizes {
    /// Measures a data folder and the archive's newest checkpoint, on which the new journals would begin.
    pub fn measure(data: &Path, archive: &Archive, newest: u64, reserve: u64) -> Result<Self, MeasureError> {
        let state = std::fs::metadata(archive.state_path(newest))?;
        // What was executed after the cut is written again. A skipped number has no cut's file.
        let (state, cut_at) = (state.len(), state.modified()?);
        let (shards, _) = shard_folders(data)?;
        let (mut journals, mut after) = (0_u64, 0_u64);
        for shard in &shards {
            let extent = JournalExtent::measure(&shard.journal).map_err(StorageError::from)?;
            journals = journals.saturating_add(extent.bytes());
            after = after.saturating_add(written_since(&shard.journal, cut_at)?);
        }
        let base = generation_in(data)?.switch.map_or(0, |switch| switch.ends.iter().sum());
        let next = state.saturating_mul(BASE_PER_STATE).saturating_add(after);
        Ok(Self { journals, base, next, free: RealDisk.free_bytes(data)?, reserve })
    }

    /// `pressing` is what makes it worth it whatever is gained.
    pub fn judge(&self, pressing: Option<Reason>) -> Verdict {
        let has_grown = self.journals > self.base.saturating_mul(GROWTH);
        let is_low = self.free < self.reserve.saturating_mul(RESERVES);
        let ends_voting = self.free / QUARTERS < self.reserve / 4;
        let reason = match () {
            () if pressing == Some(Reason::Joining) => Reason::Joining,
            () if ends_voting && self.next < self.journals => Reason::VotingEnds,
            () if pressing == Some(Reason::Behind) => Reason::Behind,
            () if is_low && self.next < self.journals => Reason::DiskLow,
            () if has_grown => Reason::Grown,
            () => return Verdict::NotWorthIt,
        };
        match self.next.saturating_sub(self.free) {
            0 => Verdict::Due(reason),
            lacking => Verdict::NoRoom { reason, lacking },
        }
    }
}

/// The bytes of the files that were written to since then.
fn written_since(journal: &Path, since: SystemTime) -> std::io::Result<u64> {
    let mut bytes = 0_u64;
    for entry in std::fs::read_dir(journal)? {
        let metadata = entry?.metadata()?;
        if metadata.modified()? >= since {
            bytes = bytes.saturating_add(metadata.len());
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Sizes = Sizes { journals: 1_000, base: 400, next: 500, free: 10_000, reserve: 100 };

    #[test]
    fn journals_end_once_most_of_them_is_archived_history_or_the_disk_is_nearly_full() {
        assert_eq!(GOOD.judge(None), Verdict::Due(Reason::Grown));
        assert_eq!(Sizes { base: 0, ..GOOD }.judge(None), Verdict::Due(Reason::Grown), "the first generation");
        let half = Sizes { base: 500, ..GOOD };
        assert_eq!(half.judge(None), Verdict::NotWorthIt);
        // The disk is low before the reserve is reached; but nothing is rewritten that frees nothing.
        let low = Sizes { free: 1_999, reserve: 1_000, ..half };
        assert_eq!(low.judge(None), Verdict::Due(Reason::DiskLow));
        assert_eq!(Sizes { free: 2_000, ..low }.judge(None), Verdict::NotWorthIt);
        assert_eq!(Sizes { next: 1_000, ..low }.judge(None), Verdict::NotWorthIt);
        assert_eq!(half.judge(Some(Reason::Behind)), Verdict::Due(Reason::Behind));
        assert_eq!(half.judge(Some(Reason::Joining)), Verdict::Due(Reason::Joining));
    }

    #[test]
    fn voting_is_about_to_end_where_a_quarter_of_the_reserve_is_left_above_it() {
        let low = Sizes { base: 500, free: 1_250, reserve: 1_000, ..GOOD };
        assert_eq!(low.judge(None), Verdict::Due(Reason::DiskLow));
        let ends = Sizes { free: 1_249, ..low };
        assert_eq!(ends.judge(None), Verdict::Due(Reason::VotingEnds));
        assert_eq!(ends.judge(Some(Reason::Behind)), Verdict::Due(Reason::VotingEnds), "whatever else there is");
        assert_eq!(ends.judge(Some(Reason::Joining)), Verdict::Due(Reason::Joining), "it has no vote that could end");
        assert_eq!(
            Sizes { next: 1_000, ..ends }.judge(Some(Reason::Behind)),
            Verdict::Due(Reason::Behind),
            "it frees nothing"
        );
        assert_eq!(Sizes { free: 0, reserve: 0, ..ends }.judge(None), Verdict::NotWorthIt, "there is no reserve");
        let full = Sizes { free: 499, ..ends };
        assert_eq!(full.judge(None), Verdict::NoRoom { reason: Reason::VotingEnds, lacking: 1 });
    }

    #[test]
    fn the_new_journals_must_fit_beside_the_old_ones() {
        assert_eq!(Sizes { free: 500, ..GOOD }.judge(None), Verdict::Due(Reason::Grown));
        let full = Sizes { free: 499, reserve: 0, ..GOOD };
        assert_eq!(full.judge(None), Verdict::NoRoom { reason: Reason::Grown, lacking: 1 });
        assert_eq!(full.judge(Some(Reason::Behind)), Verdict::NoRoom { reason: Reason::Behind, lacking: 1 });
        // The reserve may be used.
        let low = Sizes { free: 500, reserve: 1_000, ..GOOD };
        assert_eq!(low.judge(None), Verdict::Due(Reason::VotingEnds));
    }
}
