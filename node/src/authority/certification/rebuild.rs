//! The checkpoint that a recovery makes: from what an archive has, as [`crate::operator::recover`] asks for it.

use std::path::{Path, PathBuf};

use fastpay_core::checkpoint::{PrimaryEvent, SegmentEntry};
use fastpay_core::{Committees, Digest, Domain, Epoch};

use super::archive::Archive;
use super::base::Base;
use super::compute::Computed;
use super::{CheckpointError, Progress};

/// Why an archive has nothing to begin from.
#[derive(Debug, thiserror::Error)]
pub enum NoBase {
    /// The archive.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A segment and the chain contradict each other.
    #[error(
        "checkpoint {0} of the archive includes other events than the chain shows; get it again from another archive"
    )]
    Events(u64),
    /// The checkpoint that counts is missing.
    #[error(
        "the installation of the new committee names the checkpoint {0}, which the archive does not have; copy it from \
         another archive"
    )]
    Missing(Digest),
}

impl Archive {
    /// The checkpoint from which the committee of `epoch` goes on: the one that its installation names, or else the
    /// newest of earlier epochs. The archive is verified from the first committee on, and its events are those of the
    /// chain.
    pub(crate) async fn base_of_recovery(
        &self,
        (epoch, named): (Epoch, Digest),
        events: &[PrimaryEvent],
        (domain, committees): (&Domain, &Committees),
        told: Progress<'_>,
    ) -> Result<Base, NoBase> {
        let first = self.base(0, domain, committees)?;
        let (mut number, mut other, mut rest) = (if named.is_zero() { Some(0) } else { None }, None, events.iter());
        let last = self.newest_anywhere().await.map_err(CheckpointError::from)?;
        let verified = self.verify_after(first, last, (domain, committees), told, |computed| {
            let checkpoint = &computed.checkpoint;
            let is_other = computed.segment.entries.iter().any(|entry| match entry {
                SegmentEntry::Event(event) => rest.next() != Some(event),
                _ => false,
            });
            if is_other {
                other = other.or(Some(checkpoint.number));
            }
            if checkpoint.epoch < epoch && (named.is_zero() || domain.checkpoint_digest(checkpoint) == named) {
                number = Some(checkpoint.number);
            }
        });
        let newest = verified.await?;
        match (other, number) {
            (Some(other), _) => Err(NoBase::Events(other)),
            (None, None) => Err(NoBase::Missing(named)),
            (None, Some(number)) if number == newest.checkpoint.number => Ok(newest),
            (None, Some(number)) => {
                let brought = self.bring(number).await.map_err(CheckpointError::from)?;
                let base = self.base(number, domain, committees).map_err(|error| brought.explain_checkpoint(error))?;
                brought.keep();
                Ok(base)
            }
        }
    }
}

impl Computed {
    /// Writes segment, state and cut into a folder, as an archive has them, in place of a proposal of the same number.
    /// It was computed from `base`. Returns the file of the cut.
    ///
    /// # Errors
    /// [`CheckpointError::Certified`] if the folder has a certificate of the number, or a later one.
    pub(crate) fn write(&self, base: &Base, folder: &Path) -> Result<PathBuf, CheckpointError> {
        let (archive, number) = (Archive::create(folder)?, self.checkpoint.number);
        let newest = archive.newest_number()?;
        if newest >= number {
            return Err(CheckpointError::Certified { number, certificate: archive.certificate_path(newest) });
        }
        // A kill leaves no vote beside a proposal that it is not for.
        archive.drop_vote(number)?;
        Ok(archive.write(base, self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::certification::compute::follow_segment;
    use fastpay_core::checkpoint::{CheckpointCertificate, InstalledCommittee, PrimaryEventKind, Segment};
    use fastpay_core::{Amount, Asset, TransactionIndex};
    use fastpay_testkit::{TestAccount, TestCommittee};

    fn deposit(index: u64, amount: u128) -> PrimaryEvent {
        let recipient = TestAccount::numbered(0).id();
        let kind = PrimaryEventKind::Deposit { recipient, asset: Asset::ETHER, amount: Amount(amount) };
        PrimaryEvent { index: TransactionIndex(index), kind }
    }

    #[tokio::test]
    async fn a_recovery_begins_from_the_checkpoint_that_is_named_or_else_from_the_newest_before_it() {
        let (first, folder) = (TestCommittee::new(4), tempfile::tempdir().unwrap());
        let (next, domain, archive) = (first.rotated(), first.domain, Archive::new(folder.path()));
        let mut committees = Committees::new(first.committee.clone()).unwrap();
        committees.install(next.committee.clone()).unwrap();
        let (committee, checkpoint) = (next.committee.clone(), Digest::ZERO);
        let kind =
            PrimaryEventKind::Installed(InstalledCommittee { committee, compromised_since: Epoch(0), checkpoint });
        let installed = PrimaryEvent { index: TransactionIndex(3), kind };
        let events = [deposit(1, 5), deposit(2, 7), installed];
        // The third is what the recovery made.
        let mut digests = Vec::new();
        for (event, committee) in events.iter().zip([&first, &first, &next]) {
            let base = archive.base(digests.len() as u64, &domain, &committees).unwrap();
            let segment = Segment { entries: vec![SegmentEntry::Event(event.clone())] };
            let computed = follow_segment(&base, segment, &domain, &mut |_| ()).unwrap().unwrap();
            computed.write(&base, folder.path()).unwrap();
            let votes = committee.keys.iter().map(|keys| computed.checkpoint.sign(keys, &domain)).collect();
            let certificate =
                CheckpointCertificate::from_votes(computed.checkpoint, &domain, &committee.committee, votes);
            archive.complete(&certificate.unwrap()).unwrap();
            digests.push(domain.checkpoint_digest(&computed.checkpoint));
        }
        let base = async |named: Digest, events: &[PrimaryEvent]| {
            let base = archive.base_of_recovery((Epoch(1), named), events, (&domain, &committees), &mut |_| ()).await;
            base.map(|base| base.checkpoint.number)
        };
        assert_eq!(base(Digest::ZERO, &events).await.unwrap(), 2);
        assert_eq!(base(digests[0], &events).await.unwrap(), 1);
        let error = base(digests[2], &events).await.unwrap_err();
        assert!(matches!(error, NoBase::Missing(named) if named == digests[2]), "{error}");
        let others = [events[0].clone(), deposit(2, 8), events[2].clone()];
        let error = base(digests[0], &others).await.unwrap_err();
        assert!(matches!(error, NoBase::Events(2)), "{error}");
        let error = base(digests[0], &events[..1]).await.unwrap_err();
        assert!(matches!(error, NoBase::Events(2)), "{error}");
    }
}
