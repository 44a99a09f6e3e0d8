//! What a process remembers of the checkpoints that it made itself, so that it neither computes nor reads again what it has
//! just written. After a restart nothing is remembered, and everything is computed from the files again.
//!
//! ```text
//!  propose, sign ─► files on disk ─► remembered, with the files as they are then ─┬─► sign the own proposal
//!                                                                                ├─► certify, or admit, what was signed
//!                                                                                └─► the base of the next number
//! ```
//! A file that is not the one that was written, by its place on the disk, its length and its time, is read and verified.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fastpay_core::checkpoint::{Checkpoint, StateSummary};
use fastpay_core::{Digest, Domain};

use super::ArchiveError;
use super::archive::Archive;
use super::compute::Computed;
use super::journals::{Journals, Start};

/// See the module header.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    made: Option<Made>,
    /// The one before, on which it was built.
    before: Option<Made>,
    included: Option<Included>,
}

/// A checkpoint that this process computed from its own journals and wrote into its archive.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub checkpoint: Checkpoint,
    pub state: StateSummary,
    /// The numbers that are executed here and not in the cut.
    pub beyond: u64,
    segment: Written,
    stored: Written,
    cut: Written,
}

impl Made {
    /// Whether it was built on this checkpoint.
    pub fn follows(&self, base: &Checkpoint, domain: &Domain) -> bool {
        self.checkpoint.previous == domain.checkpoint_digest(base)
    }
}

/// A file as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    place: (u64, u64),
    length: u64,
    modified: (i64, i64),
}

impl Written {
    fn look(path: &Path) -> io::Result<Self> {
        let found = std::fs::metadata(path)?;
        let (place, modified) = ((found.dev(), found.ino()), (found.mtime(), found.mtime_nsec()));
        Ok(Self { place, length: found.len(), modified })
    }

    fn is_at(&self, path: &Path) -> bool {
        Self::look(path).is_ok_and(|found| found == *self)
    }
}

/// Up to where all that the journals have is in a certified checkpoint.
#[derive(Clone, Debug)]
struct Included {
    checkpoint: (u64, Digest),
    starts: Vec<Start>,
}

impl Memory {
    /// Remembers what was written into the archive just now.
    pub(super) fn note(&mut self, archive: &Archive, computed: &Computed, beyond: u64) -> Result<(), ArchiveError> {
        let (checkpoint, state) = (computed.checkpoint, computed.state.clone());
        let look = |path: PathBuf| Written::look(&path).map_err(|error| ArchiveError::Io { path, error });
        let segment = look(archive.segment_path(checkpoint.number))?;
        let stored = look(archive.state_path(checkpoint.number))?;
        let cut = look(archive.cut_path(checkpoint.number))?;
        let is_before = |made: &Made| made.checkpoint.number < checkpoint.number;
        self.before = self.made.take_if(|made| is_before(made)).or(self.before.take());
        self.made = Some(Made { checkpoint, state, beyond, segment, stored, cut });
        Ok(())
    }

    /// What the archive has of this number, if it is what this process made.
    pub(super) fn made(&self, archive: &Archive, number: u64) -> Option<&Made> {
        self.made.as_ref().filter(|made| {
            made.checkpoint.number == number
                && made.segment.is_at(&archive.segment_path(number))
                && made.stored.is_at(&archive.state_path(number))
                && made.cut.is_at(&archive.cut_path(number))
        })
    }

    /// The state of a certified checkpoint, if the archive's file of it is what this process wrote.
    pub(super) fn state(&self, archive: &Archive, certified: &Checkpoint) -> Option<&StateSummary> {
        let is_it =
            |made: &&Made| made.checkpoint == *certified && made.stored.is_at(&archive.state_path(certified.number));
        self.made.iter().chain(&self.before).find(is_it).map(|made| &made.state)
    }

    /// Remembers from where on the journals have anything that a certified checkpoint lacks.
    pub(super) fn note_included(&mut self, base: &Checkpoint, domain: &Domain, starts: Vec<Start>) {
        self.included = Some(Included { checkpoint: (base.number, domain.checkpoint_digest(base)), starts });
    }

    /// The journals, from where on they have anything that the archive's newest checkpoint lacks, as far as is known: later
    /// checkpoints include what an earlier one does.
    pub(super) fn skip_included(&self, journals: Journals, archive: &Archive, domain: &Domain) -> Journals {
        match &self.included {
            Some(Included { checkpoint, starts }) if archive.includes(*checkpoint, domain) => journals.starting(starts),
            _ => journals,
        }
    }
}

impl Archive {
    /// Whether the checkpoint of this number and digest is certified here: so the newest one includes it.
    pub(super) fn includes(&self, (number, digest): (u64, Digest), domain: &Domain) -> bool {
        let is_reached = self.newest_number().is_ok_and(|newest| number <= newest);
        is_reached && self.checkpoint(number).is_ok_and(|found| domain.checkpoint_digest(&found) == digest)
    }
}
