//! The checkpoint on which the next one is built. Its state stays on disk, and is read row by row: memory holds the
//! rows of the accounts that the next segment touches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use fastpay_core::checkpoint::{
    AccountRow, Checkpoint, CheckpointCertificate, CheckpointError as NotCertified, CheckpointState, Installations,
    Leaf, StatePart, StateReader, StateSummary,
};
use fastpay_core::{AccountId, Committees, Domain, SequenceNumber};

use super::CheckpointError;
use super::archive::{Archive, ArchiveError, Defect, unreadable, wrong};
use super::compute::first_state;
use super::memory::Memory;

/// See the module header.
pub struct Base {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// None for number 0, and in simulations, which verify theirs themselves.
    pub certificate: Option<CheckpointCertificate>,
    /// What its state holds.
    pub state: StateSummary,
    pub(super) stored: Stored,
}

/// Where a state is stored.
pub(super) enum Stored {
    /// The first committee alone has no file, nor has a simulation's state.
    Memory(Vec<u8>),
    File(PathBuf),
}

impl Archive {
    /// The newest certified checkpoint. Older ones are not looked at: its quorum computed it from them. A state that this
    /// process made is not read again.
    pub(super) fn newest(
        &self,
        memory: &Memory,
        domain: &Domain,
        committees: &Committees,
    ) -> Result<Base, CheckpointError> {
        self.base_by(self.newest_number()?, memory, (domain, committees))
    }

    /// Hands the next number of each account in the stored state of a number to `take`.
    pub(super) fn each_next(
        &self,
        number: u64,
        take: impl FnMut(AccountId, SequenceNumber),
    ) -> Result<(), ArchiveError> {
        let path = self.state_path(number);
        let stored = File::open(&path).and_then(|file| each_next(&mut BufReader::new(file), take));
        stored.map_err(|error| unreadable(&path, error))
    }

    /// The certified checkpoint of a number, on which the next one is built.
    pub(crate) fn base(&self, number: u64, domain: &Domain, committees: &Committees) -> Result<Base, CheckpointError> {
        self.base_by(number, &Memory::default(), (domain, committees))
    }

    /// The same; a state that this process made is not read again.
    pub(super) fn base_by(
        &self,
        number: u64,
        memory: &Memory,
        (domain, committees): (&Domain, &Committees),
    ) -> Result<Base, CheckpointError> {
        if number == 0 {
            let first = first_state(committees)?;
            return Ok(Base::in_memory(Checkpoint::first(&first.summary()), &first));
        }
        let (certificate, path) = (self.certificate(number)?, self.state_path(number));
        let checkpoint = certificate.checkpoint;
        let state = memory.state(self, &checkpoint).cloned().map_or_else(|| self.state(number), Ok)?;
        if checkpoint.number != number || checkpoint.state != state.state {
            return Err(wrong(&path, Defect::OtherCheckpoint).into());
        }
        check_committees(&state.installations, committees).map_err(|defect| wrong(&path, defect))?;
        let verified = certificate.clone().verify(domain, &state.installations);
        verified.map_err(|error| wrong(&self.certificate_path(number), Defect::Certificate(error)))?;
        Ok(Base { checkpoint, certificate: Some(certificate), state, stored: Stored::File(path) })
    }
}

impl Base {
    /// A checkpoint without a file.
    pub(crate) fn in_memory(checkpoint: Checkpoint, state: &CheckpointState) -> Self {
        let mut bytes = Vec::new();
        state.write(&mut bytes).expect("writing to memory does not fail");
        Self { checkpoint, certificate: None, state: state.summary(), stored: Stored::Memory(bytes) }
    }

    /// Checks that the checkpoint still counts where these committees were installed: its epoch is the newest, or the
    /// one before with sound keys, or an installation names the checkpoint.
    pub(crate) fn check(&self, domain: &Domain, installations: &Installations) -> Result<(), CheckpointError> {
        let Some(certificate) = &self.certificate else { return Ok(()) };
        let number = self.checkpoint.number;
        certificate.counts(domain, installations).map_err(|error| CheckpointError::Base { number, error })
    }

    /// The bytes of the stored state.
    pub(super) fn bytes(&self) -> Result<u64, ArchiveError> {
        match &self.stored {
            Stored::Memory(bytes) => Ok(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            Stored::File(path) => {
                fs::metadata(path).map(|metadata| metadata.len()).map_err(|error| self.unreadable(error))
            }
        }
    }

    /// Opens the state.
    pub(crate) fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match &self.stored {
            Stored::Memory(bytes) => Box::new(bytes.as_slice()),
            Stored::File(path) => Box::new(BufReader::new(File::open(path)?)),
        })
    }

    /// Reads the state.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&mut dyn Read) -> io::Result<T>) -> Result<T, ArchiveError> {
        self.open().and_then(|mut stored| read(&mut stored)).map_err(|error| self.unreadable(error))
    }

    fn unreadable(&self, error: io::Error) -> ArchiveError {
        match &self.stored {
            Stored::Memory(_) => unreadable(Path::new(""), error),
            Stored::File(path) => unreadable(path, error),
        }
    }

    /// The rows of some accounts.
    pub(crate) fn part(&self, accounts: BTreeSet<AccountId>) -> Result<StatePart, ArchiveError> {
        self.read(|mut stored| StatePart::read(&mut stored, accounts))
    }

    /// The accounts that have taken numbers which this checkpoint does not include, each with the number that is next
    /// in it. `executed` has the next numbers here.
    pub(crate) fn behind(
        &self,
        executed: &BTreeMap<AccountId, SequenceNumber>,
    ) -> Result<BTreeMap<AccountId, SequenceNumber>, ArchiveError> {
        // Both come by account.
        let (mut behind, mut executed) = (Vec::new(), executed.iter().peekable());
        let new = |(account, _): (&AccountId, _)| (*account, SequenceNumber(0));
        self.each_next(|account, next| {
            behind.extend(std::iter::from_fn(|| executed.next_if(|(other, _)| **other < account)).map(new));
            let here = executed.next_if(|(other, _)| **other == account);
            behind.extend(here.filter(|(_, here)| **here > next).map(|_| (account, next)));
        })?;
        behind.extend(executed.map(new));
        Ok(behind.into_iter().collect())
    }

    /// All accounts of the state, in their order.
    pub(crate) fn accounts(&self) -> Result<impl Iterator<Item = Result<AccountRow, ArchiveError>>, ArchiveError> {
        let rows = self.open().and_then(|numbers| AccountRow::read_all(numbers, self.open()?));
        Ok(rows.map_err(|error| self.unreadable(error))?.map(|row| row.map_err(|error| self.unreadable(error))))
    }

    /// Hands the next number of each account that took one to `take`.
    pub(crate) fn each_next(&self, take: impl FnMut(AccountId, SequenceNumber)) -> Result<(), ArchiveError> {
        self.read(|stored| each_next(stored, take))
    }
}

fn each_next(stored: &mut dyn Read, mut take: impl FnMut(AccountId, SequenceNumber)) -> io::Result<()> {
    for leaf in StateReader::new(stored)? {
        match leaf? {
            Leaf::UpTo(_) => {}
            Leaf::Next(account, next) => take(account, next),
            // All next numbers come before.
            _ => break,
        }
    }
    Ok(())
}

/// Compares the committees of a state with those that the deployment is known to have.
pub(super) fn check_committees(installations: &Installations, committees: &Committees) -> Result<(), Defect> {
    for installed in installations.iter() {
        let epoch = installed.committee.epoch();
        let known = committees.get(epoch).ok_or(Defect::Certificate(NotCertified::UnknownEpoch(epoch)))?;
        if **known != installed.committee {
            return Err(Defect::OtherCommittee(epoch));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::checkpoint::InstalledCommittee;
    use fastpay_core::{Digest, Epoch};
    use fastpay_testkit::TestCommittee;

    fn installed(committee: &TestCommittee, compromised_since: u64, checkpoint: Digest) -> InstalledCommittee {
        let (committee, compromised_since) = (committee.committee.clone(), Epoch(compromised_since));
        InstalledCommittee { committee, compromised_since, checkpoint }
    }

    /// The first checkpoint, signed in epoch 0.
    fn base(first: &TestCommittee) -> Base {
        let state = CheckpointState::new(first.committee.clone()).unwrap();
        let summary = state.summary();
        let checkpoint = Checkpoint::first(&summary).next(&first.domain, Epoch(0), &summary, Digest::ZERO).unwrap();
        let votes = first.keys.iter().map(|keys| checkpoint.sign(keys, &first.domain)).collect();
        let certificate = CheckpointCertificate::from_votes(checkpoint, &first.domain, &first.committee, votes);
        Base { certificate, ..Base::in_memory(checkpoint, &state) }
    }

    #[test]
    fn a_checkpoint_is_built_on_while_its_epoch_counts_or_an_installation_names_it() {
        let first = TestCommittee::new(4);
        let (second, third) = (first.rotated(), first.rotated().rotated());
        let base = base(&first);
        let check = |later: Vec<InstalledCommittee>| {
            let mut installations = Installations::new(first.committee.clone()).unwrap();
            later.into_iter().for_each(|next| installations.install(next).unwrap());
            base.check(&first.domain, &installations)
        };
        let sound = |named| installed(&second, 1, named);
        check(vec![]).unwrap();
        check(vec![sound(Digest::ZERO)]).unwrap();
        let error = check(vec![sound(Digest::ZERO), installed(&third, 2, Digest::ZERO)]).unwrap_err();
        let is_ended = matches!(error, CheckpointError::Base { number: 1, error: NotCertified::EpochEnded(Epoch(0)) });
        assert!(is_ended, "{error}");
        let error = check(vec![installed(&second, 0, Digest::ZERO)]).unwrap_err();
        let is_compromised = matches!(error, CheckpointError::Base { error: NotCertified::EpochCompromised(_), .. });
        assert!(is_compromised, "{error}");
        let named = first.domain.checkpoint_digest(&base.checkpoint);
        check(vec![installed(&second, 0, named)]).unwrap();
        check(vec![sound(named), installed(&third, 2, Digest::ZERO)]).unwrap();
    }

    #[test]
    fn the_committees_of_a_state_are_the_deployments() {
        let first = TestCommittee::new(4);
        let installations = &Installations::new(first.committee.clone()).unwrap();
        let known = |committee: &TestCommittee| Committees::new(committee.committee.clone()).unwrap();
        check_committees(installations, &known(&first)).unwrap();
        let error = check_committees(installations, &known(&TestCommittee::new(7))).unwrap_err();
        assert!(matches!(error, Defect::OtherCommittee(Epoch(0))), "{error}");
    }
}
