//! Whether this authority lacks what the newest certified checkpoint includes. Peers bring what it missed; but what all
//! of them have pruned, or what would take them too long, only the checkpoint brings.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fastpay_core::{AccountId, Domain, SequenceNumber};
use tokio::sync::watch;
use tokio::time::Instant;

use super::archive::{Archive, ProposedCut};
use super::journals::Journals;
use super::{CheckpointError, Progress};

/// How far this authority is behind the archive.
pub(crate) struct Lag {
    /// Up to this checkpoint nothing is lacking: that at which the journals begin, 0 without one, or a later one.
    has_all: u64,
    looked: Option<Looked>,
    /// Whether something is lacking that nobody brought.
    tell: watch::Sender<bool>,
}

#[derive(Clone, Copy)]
struct Looked {
    number: u64,
    at: Instant,
    lacks: bool,
}

impl Lag {
    pub fn new(begins_at: u64, tell: watch::Sender<bool>) -> Self {
        Self { has_all: begins_at, looked: None, tell }
    }

    /// Looks if there is something new to see. What is lacking counts once it is still lacking `settle` later; from
    /// then on it looks each `again`: a look reads all journals.
    pub fn look(
        &mut self,
        (archive, data): (&Archive, &Path),
        domain: &Domain,
        (settle, again): (Duration, Duration),
        told: Progress<'_>,
    ) -> Result<(), CheckpointError> {
        let number = archive.newest_number()?;
        let rest = if *self.tell.borrow() { again } else { settle };
        let is_known = self
            .looked
            .is_some_and(|looked| if looked.lacks { looked.at.elapsed() < rest } else { looked.number == number });
        if is_known || number <= self.has_all {
            return Ok(());
        }
        // Before this one, nothing may be lacking of the others.
        let is_own = self.has_all.saturating_add(1) == number && is_own(archive, number, domain)?;
        let lacks = !is_own && self.lacks(archive, data, number, told)?;
        let lacked = self.looked.is_some_and(|looked| looked.lacks);
        self.has_all = if lacks { self.has_all } else { number };
        self.looked = Some(Looked { number, at: Instant::now(), lacks });
        self.tell.send_replace(lacks && lacked);
        if lacks {
            tracing::warn!(number, "this authority lacks payments that the newest checkpoint includes");
        }
        Ok(())
    }

    fn lacks(&self, archive: &Archive, data: &Path, number: u64, told: Progress<'_>) -> Result<bool, CheckpointError> {
        // Of what was skipped, the last number's state is there, with the next number of each account.
        let landing = archive.skipped()?.last().copied().filter(|last| *last > self.has_all);
        let mut wanted = BTreeMap::<AccountId, SequenceNumber>::new();
        let first = landing.unwrap_or(self.has_all).saturating_add(1);
        let cuts = (first..=number).map(|number| archive.cut_path(number));
        // Numbers that have left the folder for a store were looked at while they were there.
        for cut in cuts.filter(|cut| cut.exists()) {
            wanted.extend(ProposedCut::read(&cut)?.changed);
        }
        let ((), executed) = Journals::open(data)?.read(told, |_| ())?;
        let next = |account: &AccountId| executed.next.get(account).copied().unwrap_or_default();
        let mut lacks = wanted.iter().any(|(account, wanted)| next(account) < *wanted);
        if let Some(landing) = landing {
            archive.each_next(landing, |account, wanted| lacks |= next(&account) < wanted)?;
        }
        Ok(lacks)
    }
}

/// Whether this authority computed the checkpoint from its own journals.
fn is_own(archive: &Archive, number: u64, domain: &Domain) -> Result<bool, CheckpointError> {
    let certified = domain.checkpoint_digest(&archive.certificate(number)?.checkpoint);
    Ok(archive.vote(number).is_some_and(|vote| vote.checkpoint == certified))
}
