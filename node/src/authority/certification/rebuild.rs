//! The checkpoint that a recovery makes: from what an archive has, as [`crate::operator::recover`] asks for it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fastpay_core::checkpoint::{InstalledCommittee, PrimaryEvent, SegmentEntry};
use fastpay_core::{Committees, Digest, Domain, Epoch, Recovery};

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
    /// The lost committee went on after the checkpoint that counts.
    #[error(
        "the installation of the new committee names checkpoint {named}, and the archive has checkpoint {newest}, which \
         earlier committees certified, too: all orders between them would be lost. Announce a recovery that names the \
         later one, or none. If stolen keys made what follows {named}, use a copy of the archive that ends there"
    )]
    Later {
        /// The number of the checkpoint that the installation names.
        named: u64,
        /// The number of the newest checkpoint of an earlier epoch.
        newest: u64,
    },
    /// Thieves may have made a checkpoint, and none is named.
    #[error(
        "keys of epoch {epoch} were out, so of its checkpoints only the one counts that the installation of the new \
         committee names. It names none, and the archive has checkpoint {number} of that epoch: use a copy of the archive \
         that ends before it"
    )]
    Compromised {
        /// The number of the first such checkpoint.
        number: u64,
        /// Its epoch.
        epoch: Epoch,
    },
    /// What an earlier recovery adopted is missing.
    #[error(
        "epoch {epoch}, which an earlier recovery installed, adopted the checkpoint {adopted}, which the archive does not \
         have certified; copy it from another archive. If nobody has it, nobody voted in that epoch: announce a recovery \
         that names the newest checkpoint of the archive"
    )]
    WithoutAdopted {
        /// The epoch of the earlier recovery.
        epoch: Epoch,
        /// What it adopted.
        adopted: Digest,
    },
}

impl Archive {
    /// The checkpoint from which the installed committee goes on: the one that its installation names, or else the
    /// newest of earlier epochs. The archive is verified from the first committee on, and its events are those of the
    /// chain. With it come those of the `earlier` recoveries whose epochs began from no checkpoint that it follows.
    ///
    /// Since epoch 0 keys are said to be out also if a committee is lost, so then an archive is believed that has more
    /// checkpoints than the installation names.
    pub(crate) async fn base_of_recovery(
        &self,
        (installed, earlier): (&InstalledCommittee, &[Recovery]),
        events: &[PrimaryEvent],
        (domain, committees): (&Domain, &Committees),
        told: Progress<'_>,
    ) -> Result<(Base, BTreeSet<Epoch>), NoBase> {
        let first = self.base(0, domain, committees)?;
        let (epoch, since, named) = (installed.committee.epoch(), installed.compromised_since, installed.checkpoint);
        let (mut before, mut other, mut rest) = (Vec::new(), None, events.iter());
        let mut compromised = None;
        let last = self.newest_anywhere().await.map_err(CheckpointError::from)?;
        let verified = self.verify_after(first, last, (domain, committees), told, |computed| {
            let checkpoint = &computed.checkpoint;
            // Those of the new committee include later events.
            if checkpoint.epoch >= epoch {
                return;
            }
            let is_other = computed.segment.entries.iter().any(|entry| match entry {
                SegmentEntry::Event(event) => rest.next() != Some(event),
                _ => false,
            });
            if is_other {
                other = other.or(Some(checkpoint.number));
            }
            if checkpoint.epoch >= since && since > Epoch(0) {
                compromised = compromised.or(Some((checkpoint.number, checkpoint.epoch)));
            }
            before.push(domain.checkpoint_digest(checkpoint));
        });
        let verified = verified.await?;
        if let Some(other) = other {
            return Err(NoBase::Events(other));
        }
        let newest = before.len() as u64;
        if !named.is_zero() {
            let found = (1..).zip(&before).find(|(_, digest)| **digest == named);
            let (named, _) = found.ok_or(NoBase::Missing(named))?;
            if named < newest {
                return Err(NoBase::Later { named, newest });
            }
        } else if let Some((number, epoch)) = compromised {
            return Err(NoBase::Compromised { number, epoch });
        }
        let mut without_checkpoint = BTreeSet::new();
        for recovery in earlier {
            match recovery.adopted.filter(|adopted| !before.contains(adopted)) {
                // The new installation names a checkpoint, so what nobody has certified does not count.
                Some(adopted) if named.is_zero() => {
                    return Err(NoBase::WithoutAdopted { epoch: recovery.epoch, adopted });
                }
                None if recovery.adopted.is_some() => {}
                _ => {
                    without_checkpoint.insert(recovery.epoch);
                }
            }
        }
        if newest == verified.checkpoint.number {
            return Ok((verified, without_checkpoint));
        }
        let brought = self.bring(newest).await.map_err(CheckpointError::from)?;
        let base = self.base(newest, domain, committees).map_err(|error| brought.explain_checkpoint(error))?;
        brought.keep();
        Ok((base, without_checkpoint))
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
        let by = |committee: &TestCommittee, since, checkpoint| {
            let (committee, compromised_since) = (committee.committee.clone(), Epoch(since));
            InstalledCommittee { committee, compromised_since, checkpoint }
        };
        let kind = PrimaryEventKind::Installed(by(&next, 0, Digest::ZERO));
        let installed = PrimaryEvent { index: TransactionIndex(3), kind };
        let events = [deposit(1, 5), deposit(2, 7), installed];
        // The third is what the recovery made, and the fourth is the new committee's next one.
        let (mut digests, all) = (Vec::new(), events.iter().cloned().chain([deposit(4, 9)]));
        for (event, committee) in all.zip([&first, &first, &next, &next]) {
            let base = archive.base(digests.len() as u64, &domain, &committees).unwrap();
            let segment = Segment { entries: vec![SegmentEntry::Event(event)] };
            let computed = follow_segment(&base, segment, &domain, &mut |_| ()).unwrap().unwrap();
            computed.write(&base, folder.path()).unwrap();
            let votes = committee.keys.iter().map(|keys| computed.checkpoint.sign(keys, &domain)).collect();
            let certificate =
                CheckpointCertificate::from_votes(computed.checkpoint, &domain, &committee.committee, votes);
            archive.complete(&certificate.unwrap()).unwrap();
            digests.push(domain.checkpoint_digest(&computed.checkpoint));
        }
        let after = async |named: Digest, earlier: &[Recovery], events: &[PrimaryEvent]| {
            let installed = by(&next, 0, named);
            let wanted = (&installed, earlier);
            let base = archive.base_of_recovery(wanted, events, (&domain, &committees), &mut |_| ()).await;
            base.map(|(base, without_checkpoint)| (base.checkpoint.number, without_checkpoint))
        };
        let base = async |named: Digest, events: &[PrimaryEvent]| after(named, &[], events).await.map(|base| base.0);
        assert_eq!(base(Digest::ZERO, &events).await.unwrap(), 2);
        assert_eq!(base(digests[1], &events).await.unwrap(), 2);
        let error = base(digests[0], &events).await.unwrap_err();
        assert!(matches!(error, NoBase::Later { named: 1, newest: 2 }), "{error}");
        let error = base(digests[2], &events).await.unwrap_err();
        assert!(matches!(error, NoBase::Missing(named) if named == digests[2]), "{error}");

        let earlier = |adopted| [Recovery { epoch: Epoch(0), adopted }];
        let without: BTreeSet<_> = [Epoch(0)].into();
        let found = after(Digest::ZERO, &earlier(Some(digests[0])), &events).await.unwrap();
        assert_eq!(found, (2, BTreeSet::new()));
        assert_eq!(after(Digest::ZERO, &earlier(None), &events).await.unwrap(), (2, without.clone()));
        let nowhere = earlier(Some(Digest::repeat_byte(7)));
        let error = after(Digest::ZERO, &nowhere, &events).await.unwrap_err();
        let is_it = |epoch, adopted| (epoch, adopted) == (Epoch(0), Digest::repeat_byte(7));
        assert!(matches!(error, NoBase::WithoutAdopted { epoch, adopted } if is_it(epoch, adopted)), "{error}");
        assert_eq!(after(digests[1], &nowhere, &events).await.unwrap(), (2, without), "the installation decides");

        // Keys were out since epoch 1, which made the last two: they count only if the installation names the newest.
        let all: Vec<_> = events.iter().cloned().chain([deposit(4, 9)]).collect();
        let third = next.rotated();
        let after_theft = async |named: Digest| {
            let installed = by(&third, 1, named);
            let base = archive.base_of_recovery((&installed, &[]), &all, (&domain, &committees), &mut |_| ()).await;
            base.map(|(base, _)| base.checkpoint.number)
        };
        let error = after_theft(Digest::ZERO).await.unwrap_err();
        assert!(matches!(error, NoBase::Compromised { number: 3, epoch: Epoch(1) }), "{error}");
        assert_eq!(after_theft(digests[3]).await.unwrap(), 4);
        let error = after_theft(digests[1]).await.unwrap_err();
        assert!(matches!(error, NoBase::Later { named: 2, newest: 4 }), "{error}");

        let others = [events[0].clone(), deposit(2, 8), events[2].clone()];
        let error = base(Digest::ZERO, &others).await.unwrap_err();
        assert!(matches!(error, NoBase::Events(2)), "{error}");
        let error = base(Digest::ZERO, &events[..1]).await.unwrap_err();
        assert!(matches!(error, NoBase::Events(2)), "{error}");
    }
}
