//! Uploads the certified numbers of an archive's folder into its store, and removes from the folder what is safe there.
//!
//! ```text
//!  certified in the folder ─► segment, state, cut ─► certificate ─► read back: all the same? ─► removed from the folder,
//!  (`archive`)                          into the store (`store`)    (but the newest numbers)       certificate first
//! ```
//! 1. A number's files are uploaded once its certificate is there, and the certificate last. If another checkpoint has
//!    taken the number meanwhile, its certificate is not uploaded; that of the newest number in the store is taken away
//!    before its files are replaced.
//!    Numbers from the first skipped one on wait until its files are there (`skipped`).
//! 2. A number that has a successor in the store is never replaced there.
//! 3. A number leaves the folder when three newer ones are certified, the store has all numbers before, and each of its
//!    objects, read back, is the file in the folder. A kill in between leaves files that are compared and removed
//!    later. Header and index stay, so that clients can read it, and are made anew where they are missing (`past`).
//!
//! It runs on a thread of its own with the lowest priority, and only reads what certification writes. An outage delays
//! it, longer and longer, and stops nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::Domain;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use super::CertificateFile;
use super::archive::{Archive, ArchiveError, CERTIFICATE, FILES};
use super::member::MemberTimes;
use super::store::{Store, StoreError};
use crate::authority::metrics::CertificationMetrics;
use crate::authority::priority::run_apart;

/// The newest numbers, which stay in the folder: the next checkpoint is built on one of them, also where the operator
/// has to take back the last two (docs/PROTOCOL.md, rival chains).
const KEPT: usize = 3;

/// An archive's folder, of which the certified numbers go to a store.
pub struct Uploads {
    archive: Archive,
    store: Store,
    domain: Domain,
    /// The pause between two looks at the folder, and the longest one after failures.
    pause: Duration,
    pause_max: Duration,
    metrics: Arc<CertificationMetrics>,
    /// The certificates that are in the store, as the folder has them.
    uploaded: BTreeMap<u64, Vec<u8>>,
}

impl Uploads {
    /// Uploads from the folder of `archive` to `store`.
    #[must_use]
    pub fn new(
        archive: Archive,
        store: Store,
        domain: Domain,
        times: &MemberTimes,
        metrics: Arc<CertificationMetrics>,
    ) -> Self {
        let (pause, pause_max) = (times.poll, times.takeover);
        Self { archive, store, domain, pause, pause_max, metrics, uploaded: BTreeMap::new() }
    }

    /// Runs on a thread of its own until `stop` turns true, with the lowest priority if it is `idle`. The receiver hears
    /// when the thread has ended.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(self, idle: bool, stop: watch::Receiver<bool>) -> io::Result<oneshot::Receiver<()>> {
        run_apart("archive-uploads", idle, || self.run(stop))
    }

    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut pause = self.pause;
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = async {
                    pause = match self.pass().await {
                        Ok(()) => self.pause,
                        Err(error) => {
                            self.metrics.store_failures.inc();
                            let wait_s = pause.as_secs();
                            tracing::warn!(%error, store = %self.store, wait_s, "the archive is not uploaded now");
                            pause.saturating_mul(2).min(self.pause_max)
                        }
                    };
                    sleep(pause).await;
                } => {}
            }
        }
    }

    /// Uploads what the store lacks, and removes from the folder what it has.
    ///
    /// # Errors
    /// If the store or the disk fails: then the rest is left to the next pass.
    pub async fn pass(&mut self) -> Result<(), ArchiveError> {
        let held = self.archive.held()?;
        let first_skipped = self.archive.skipped()?.first().copied().unwrap_or(u64::MAX);
        let complete = held.range(..first_skipped).filter(|(_, kinds)| kinds.contains(&CERTIFICATE));
        let certified: Vec<_> = complete.map(|(number, _)| *number).collect();
        let first_kept = certified.len().checked_sub(KEPT).and_then(|at| certified.get(at)).copied().unwrap_or(0);
        let mut certificates = BTreeMap::new();
        for number in certified {
            certificates.insert(number, self.certificate(number)?);
        }
        let is_settled = held.range(..first_kept).next().is_none() && self.archive.lacking_past()?.is_empty();
        if certificates == self.uploaded && is_settled {
            return Ok(());
        }
        let mut stored = self.store.numbers().await?;
        self.uploaded.retain(|number, _| stored.contains(number));
        for (number, certificate) in certificates {
            if self.uploaded.get(&number) != Some(&certificate) && self.upload(number, &certificate, &stored).await? {
                stored.insert(number);
                self.uploaded.insert(number, certificate);
            }
        }
        self.metrics.observe_store(stored.last().copied().unwrap_or(0));
        for (number, kinds) in held.range(..first_kept) {
            // This may be another store than the one to which they went, or a folder where nothing is mounted now.
            if let Some(lacking) = (1..*number).find(|before| !stored.contains(before)) {
                return Err(StoreError::Missing(self.store.object(lacking, CERTIFICATE)).into());
            }
            if !stored.contains(number) || !self.retire(*number, kinds).await? {
                break;
            }
        }
        self.archive.restore_past(&self.store, &self.domain).await
    }

    fn certificate(&self, number: u64) -> Result<Vec<u8>, ArchiveError> {
        let path = self.archive.certificate_path(number);
        fs::read(&path).map_err(|error| ArchiveError::Io { path, error })
    }

    /// Uploads a number. Returns whether it is in the store now.
    async fn upload(&mut self, number: u64, certificate: &[u8], stored: &BTreeSet<u64>) -> Result<bool, ArchiveError> {
        if stored.contains(&number) {
            let theirs = self.store.certificate(number).await?;
            if theirs == certificate {
                return Ok(true);
            }
            let checkpoint = |bytes: &[u8]| {
                serde_json::from_slice::<CertificateFile>(bytes).ok().map(|certificate| certificate.checkpoint)
            };
            // By the votes of another quorum.
            if checkpoint(&theirs).is_some_and(|theirs| Some(theirs) == checkpoint(certificate)) {
                return self.upload_certificate(number, certificate).await.map(|()| true);
            }
            if stored.contains(&number.saturating_add(1)) {
                return Err(StoreError::OtherArchive(self.store.object(number, CERTIFICATE)).into());
            }
            self.store.withdraw(number).await?;
        }
        for kind in FILES.into_iter().filter(|kind| *kind != CERTIFICATE) {
            let mut file = self.open(number, kind)?;
            let read = self.store.upload(number, kind, &mut file).await?;
            read.map_err(|error| self.io(number, kind, error))?;
        }
        // Whoever replaces a number takes its certificate away first.
        if self.certificate(number).ok().as_deref() != Some(certificate) {
            return Ok(false);
        }
        self.upload_certificate(number, certificate).await?;
        tracing::info!(number, store = %self.store, "uploaded a certified checkpoint");
        Ok(true)
    }

    async fn upload_certificate(&self, number: u64, mut certificate: &[u8]) -> Result<(), ArchiveError> {
        let read = self.store.upload(number, CERTIFICATE, &mut certificate).await?;
        read.map_err(|error| self.io(number, CERTIFICATE, error))
    }

    /// Removes a number from the folder, if each of its files is in the store. Returns whether it was removed.
    async fn retire(&mut self, number: u64, kinds: &[&'static str]) -> Result<bool, ArchiveError> {
        for kind in kinds.iter().copied() {
            let read = self.store.is_same(number, kind, self.open(number, kind)?).await?;
            let is_same = read.map_err(|error| self.io(number, kind, error))?;
            if is_same {
                continue;
            }
            let object = self.store.object(number, kind);
            if !kinds.contains(&CERTIFICATE) {
                return Err(StoreError::Altered(object).into());
            }
            tracing::error!(%object, "the store has altered what was uploaded; the number is uploaded again");
            self.metrics.store_failures.inc();
            self.store.withdraw(number).await?;
            self.uploaded.remove(&number);
            return Ok(false);
        }
        if kinds.contains(&CERTIFICATE) {
            self.archive.index(&self.archive.checkpoint(number)?)?;
        }
        self.uploaded.remove(&number);
        self.archive.remove_number(number)?;
        tracing::info!(number, store = %self.store, "an archived checkpoint is in the store alone now");
        Ok(true)
    }

    fn open(&self, number: u64, kind: &str) -> Result<File, ArchiveError> {
        File::open(self.path(number, kind)).map_err(|error| self.io(number, kind, error))
    }

    fn path(&self, number: u64, kind: &str) -> PathBuf {
        self.archive.path(number, kind)
    }

    fn io(&self, number: u64, kind: &str, error: io::Error) -> ArchiveError {
        ArchiveError::Io { path: self.path(number, kind), error }
    }
}
