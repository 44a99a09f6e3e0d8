//! Numbers that an archive skipped, because this authority was away for long: it took the state of a later checkpoint,
//! and the files of these numbers are still to be fetched.
//!
//! ```text
//!  certified: … 7    8 … 19      20                       21
//!  folder:    whole  certificate certificate and state    whole
//!                    └─ skipped.json of 8 to 20 ─┘         └─ admitted by its segment, as any other
//! ```
//! 1. A skip writes the certificates under the name `skipped.json`, then the state, and last the `certificate.json` of
//!    the last skipped number, with which it counts. Marks behind the newest certificate are of a skip that was killed,
//!    and mean nothing.
//! 2. Each number is then admitted as any other, oldest first (`admit`): its certificate is written, and its mark
//!    removed. A mark whose number is whole is of a kill in between; its files are checked, and it goes.
//! 3. Until then peers see no certificate of these numbers, clients that need one of their entries come again, and
//!    nothing from the first of them on is uploaded.

use std::collections::BTreeSet;
use std::io::{self, Read};

use fastpay_core::checkpoint::{Checkpoint, CheckpointCertificate};
use fastpay_core::{Committees, Domain};
use fastpay_program::files;

use super::archive::{Archive, ArchiveError, CERTIFICATE, Defect, number_of, read_json, remove, wrong};
use super::{CertificateFile, CheckpointError};

const SKIPPED: &str = "skipped.json";

impl Archive {
    /// The numbers that were skipped, and whose files are still to be fetched. Of the last one the state is there.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn skipped(&self) -> Result<BTreeSet<u64>, ArchiveError> {
        let (mut marked, newest) = self.marks()?;
        marked.retain(|number| *number <= newest);
        Ok(marked)
    }

    /// The numbers with a mark, and the newest certified one.
    fn marks(&self) -> Result<(BTreeSet<u64>, u64), ArchiveError> {
        let names =
            files::names(&self.folder).map_err(|error| ArchiveError::Io { path: self.folder.clone(), error })?;
        let numbers = |kind| names.iter().filter_map(move |name| number_of(name, kind));
        Ok((numbers(SKIPPED).collect(), numbers(CERTIFICATE).max().unwrap_or(0)))
    }

    /// Whether a number was skipped, and is still to be fetched.
    pub(super) fn is_skipped(&self, number: u64) -> bool {
        self.path(number, SKIPPED).exists() && self.newest_number().is_ok_and(|newest| number <= newest)
    }

    /// Why nothing can be computed from a number on that was skipped.
    pub(super) fn skipped_from(&self, number: u64) -> Result<ArchiveError, ArchiveError> {
        let skipped = self.skipped()?.split_off(&number);
        let (first, last) = (number, skipped.last().copied().unwrap_or(number));
        Ok(ArchiveError::Skipped { first, last, count: skipped.len() })
    }

    /// The certificate of a number that was skipped.
    pub(super) fn skipped_certificate(&self, number: u64) -> Result<CheckpointCertificate, ArchiveError> {
        Ok(read_json::<CertificateFile>(&self.path(number, SKIPPED))?.into())
    }

    /// Skips these numbers, which follow the newest one. The state, which is verified, is that of the last of them.
    pub(super) fn skip(&self, skipped: &[CheckpointCertificate], state: &mut impl Read) -> Result<(), ArchiveError> {
        let Some(last) = skipped.last() else { return Ok(()) };
        let (marked, newest) = self.marks()?;
        marked.into_iter().filter(|number| *number > newest).try_for_each(|number| self.unmark(number))?;
        for certificate in skipped {
            self.write_certificate(SKIPPED, certificate)?;
        }
        let path = self.state_path(last.checkpoint.number);
        files::replace_with(&path, |file| io::copy(state, file).map(drop))
            .map_err(|error| ArchiveError::Io { path, error })?;
        self.write_certificate(CERTIFICATE, last).map(drop)
    }

    /// A number's files are there.
    pub(super) fn unmark(&self, number: u64) -> Result<(), ArchiveError> {
        remove(self.path(number, SKIPPED))
    }

    /// The certified checkpoints from one number to another, each built on the one before. Neither states nor segments
    /// are read.
    pub(crate) fn linked(
        &self,
        (first, last): (u64, u64),
        domain: &Domain,
        committees: &Committees,
    ) -> Result<Vec<Checkpoint>, CheckpointError> {
        let mut previous = match first {
            0 => self.base(0, domain, committees)?.checkpoint,
            number => self.checkpoint(number)?,
        };
        let mut linked = vec![previous];
        for number in first.saturating_add(1)..=last {
            let next = self.checkpoint(number)?;
            if (next.number, next.previous) != (number, domain.checkpoint_digest(&previous)) {
                return Err(wrong(&self.certificate_path(number), Defect::OtherCheckpoint).into());
            }
            linked.push(next);
            previous = next;
        }
        Ok(linked)
    }
}
