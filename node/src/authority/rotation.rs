//! Adopts the next committee once it is final on the Primary.
//!
//! ```text
//!  EpochReader (all Ethereum nodes agree) ─► installation applied ─► Record::Closed in every shard
//!     ─► committees on disk ─► new name on disk ─► shards and network
//!                                  ▲ Record::Joined in every shard, where the member's folder was not full
//! ```
//! From then on, votes are for the new epoch. Accounts stay locked on their orders, so the same order gets its vote
//! again under the new keys. Certificates of earlier epochs are confirmed for ever, unless a recovery installed the
//! committee: then they count for nothing, and nothing is voted for or executed before the journals begin from the
//! checkpoint that the contract has adopted.

use std::sync::{Arc, Mutex, PoisonError};

use fastpay_core::{AuthorityName, Committees, Epoch, Recovery};
use fastpay_ethereum::{DepositsError, EpochReader};
use tokio::sync::watch;

use crate::authority::known_committees;
use crate::authority::storage::{DataFolder, StorageError};
use crate::authority::voter_status::{Remembered, VoterStatus, VoterStatusError};

/// Why a committee cannot be adopted.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// The Primary cannot be read, or its answer is impossible.
    #[error(transparent)]
    Primary(#[from] DepositsError),
    /// The new committee lists this authority with a key that it does not have.
    #[error("cannot adopt the next committee: {0}")]
    VoterStatus(#[from] VoterStatusError),
    /// The data folder's names cannot be written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The committees cannot be written.
    #[error("cannot store the committee: {0}")]
    Remember(#[from] std::io::Error),
}

impl RotationError {
    /// Whether trying again later may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Primary(error) => error.is_retryable(),
            Self::Storage(_) | Self::Remember(_) => true,
            Self::VoterStatus(_) => false,
        }
    }

    /// Whether the Ethereum nodes are at fault, so that reading again may help.
    #[must_use]
    pub fn is_of_the_nodes(&self) -> bool {
        matches!(self, Self::Primary(_))
    }
}

/// This authority's voter status and everything needed to change it.
pub struct Rotation {
    folder: Arc<DataFolder>,
    voter_status: watch::Sender<Arc<VoterStatus>>,
    /// Held during a change: an epoch is taken up by the follower, and joined by the hand-over.
    changing: Mutex<()>,
}

impl Rotation {
    /// Starts with a committee, and returns once it is on disk.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn new(folder: Arc<DataFolder>, voter_status: VoterStatus) -> Result<Self, RotationError> {
        let seen = watch::Sender::new(Arc::new(voter_status.clone()));
        let rotation = Self { folder, voter_status: seen, changing: Mutex::new(()) };
        rotation.put_on_disk(&voter_status)?;
        Ok(rotation)
    }

    /// A receiver of the voter status and its changes.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<VoterStatus>> {
        self.voter_status.subscribe()
    }

    /// Reads the committees in a final block.
    ///
    /// # Errors
    /// See [`RotationError`].
    pub async fn read(&self, reader: &EpochReader, block: u64) -> Result<Committees, RotationError> {
        let known = self.voter_status.borrow().committees().clone();
        Ok(reader.read_with_recovery_in(block, Some(&known)).await?)
    }

    /// Adopts the committees of a block, all of whose events the shards have on disk: they have closed the epochs that
    /// ended there.
    ///
    /// # Errors
    /// See [`RotationError`]. Nothing has changed then.
    pub fn follow(&self, committees: Committees) -> Result<(), RotationError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.voter_status.borrow().clone();
        if committees == *now.committees() && !now.is_ahead() {
            return Ok(());
        }
        self.take_up(&now, committees)
    }

    /// Votes in an epoch that all shards have joined, on disk. If another one is taken up meanwhile, what was joined
    /// counts for that one, too, if the authority stays.
    ///
    /// # Errors
    /// See [`RotationError`]. Nothing has changed then.
    pub fn join(&self, epoch: Epoch) -> Result<(), RotationError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.voter_status.borrow().having_joined(epoch)?;
        self.put_on_disk(&next)?;
        tracing::info!(%epoch, authority = %next.public().name, votes = next.voter().is_some(), "joined an epoch");
        self.voter_status.send_replace(Arc::new(next));
        Ok(())
    }

    fn take_up(&self, now: &VoterStatus, committees: Committees) -> Result<(), RotationError> {
        let next = now.among(committees, &remembered(&self.folder)?)?;
        self.put_on_disk(&next)?;
        let (epoch, authority) = (next.epoch(), next.public().name);
        if let Some(recovery) = next.unrecovered() {
            tell_unrecovered(&recovery);
        } else if next.voter().is_some() {
            tracing::info!(%epoch, %authority, "a new committee is installed; voting in its epoch");
        } else if next.joins().is_some() {
            tracing::info!(%epoch, %authority, "a new committee is installed; voting in its epoch once this authority has joined it");
        } else {
            tracing::warn!(%epoch, %authority, "a new committee is installed, in which this authority does not vote; it goes on confirming");
        }
        self.voter_status.send_replace(Arc::new(next));
        Ok(())
    }

    /// Durable before visible: stores the name before the first vote under it, with those of all epochs since the folder
    /// is full. The node may have been down over one of these, and its operator may remove the keys of it later. Nothing
    /// is stored of an epoch that is not taken up: a start reads of it again.
    fn put_on_disk(&self, voter_status: &VoterStatus) -> Result<(), RotationError> {
        if voter_status.is_ahead() {
            return Ok(());
        }
        known_committees::write(self.folder.path(), voter_status.committees())?;
        let Some(since) = voter_status.full_since().filter(|_| voter_status.voter().is_some()) else { return Ok(()) };
        let epochs = voter_status.committees().iter().map(|committee| committee.epoch());
        for keys in epochs.filter(|epoch| *epoch >= since).filter_map(|epoch| voter_status.keys_in(epoch)) {
            self.folder.add_name(&keys.public().name.to_string())?;
        }
        Ok(())
    }
}

/// Says what the operator has to do in an epoch that a recovery installed.
pub(crate) fn tell_unrecovered(Recovery { epoch, adopted }: &Recovery) {
    match adopted {
        None => tracing::warn!(
            %epoch,
            "a recovery installed the committee: nothing is voted for or executed until the contract has adopted a \
             checkpoint; run `fastpay-node recover` and `fastpay-node committee adopt`"
        ),
        Some(checkpoint) => tracing::warn!(
            %epoch, %checkpoint,
            "a recovery installed the committee, and this data folder does not begin from the checkpoint that it adopted: \
             nothing is voted for or executed. Run `fastpay-node recover` with the archive as --out, wait until the \
             checkpoint is certified there, stop the node, run `fastpay-node rebase`, and start the node"
        ),
    }
}

/// What the folder remembers, apart from its shards, which know what they have joined.
///
/// # Errors
/// If the folder cannot be read.
pub fn remembered(folder: &DataFolder) -> Result<Remembered, StorageError> {
    Ok(Remembered { names: remembered_names(folder)?, adopted: folder.adopted()?, joined: None })
}

/// The names under which the folder's authority has voted.
///
/// # Errors
/// If the folder cannot be read.
pub fn remembered_names(folder: &DataFolder) -> Result<Vec<AuthorityName>, StorageError> {
    Ok(folder.names()?.iter().filter_map(|name| name.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::deployment;
    use fastpay_core::{AuthorityKeys, Committee, Domain};
    use fastpay_testkit::secret;

    fn pair(number: u64) -> Arc<AuthorityKeys> {
        Arc::new(AuthorityKeys::from_secrets(secret(3, number), secret(4, number)).unwrap())
    }

    fn committee(epoch: u64, numbers: [u64; 4]) -> Committee {
        Committee::new(Epoch(epoch), numbers.map(|number| pair(number).public()).to_vec()).unwrap()
    }

    #[test]
    fn a_new_committee_is_on_disk_before_anybody_votes_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let (path, shards) = (parent.path().join("data"), std::num::NonZeroU32::MIN);
        let domain = Domain::new(1, fastpay_core::PrimaryAddress::ZERO);
        let identity = |number: u64| deployment::folder_identity(&[pair(number).public().name], shards, &domain);
        let folder = Arc::new(DataFolder::create(&path, &identity(1)).unwrap());
        let mut committees = Committees::new(committee(0, [1, 2, 3, 4])).unwrap();
        let names = remembered(&folder).unwrap();
        let voter_status = VoterStatus::new(committees.clone(), vec![pair(1), pair(11)], &names).unwrap();
        let rotation = Rotation::new(folder.clone(), voter_status).unwrap();
        let seen = rotation.subscribe();
        assert_eq!(seen.borrow().voter().unwrap().public(), pair(1).public());

        committees.install(committee(1, [11, 12, 13, 14])).unwrap();
        let now = seen.borrow().clone();
        // While either file cannot be written, because a folder stands at its path, the voter status does not change.
        for file in ["committees.json", "meta.json"] {
            let is_aside = std::fs::rename(path.join(file), path.join("aside")).is_ok();
            std::fs::create_dir(path.join(file)).unwrap();
            let failed = rotation.take_up(&now, committees.clone()).unwrap_err();
            assert!(failed.is_retryable() && !seen.has_changed().unwrap(), "{file}: {failed}");
            assert!(Rotation::new(folder.clone(), now.among(committees.clone(), &names).unwrap()).is_err(), "{file}");
            std::fs::remove_dir(path.join(file)).unwrap();
            assert!(!is_aside || std::fs::rename(path.join("aside"), path.join(file)).is_ok());
        }
        rotation.take_up(&now, committees.clone()).unwrap();
        assert_eq!(seen.borrow().voter().unwrap().public(), pair(11).public());

        // At a start that finds a newer committee on the chain, nothing is stored before the shards have followed.
        let third = {
            let mut committees = committees.clone();
            committees.install(committee(2, [11, 12, 13, 24])).unwrap();
            committees
        };
        let ahead = seen.borrow().among(third.clone(), &remembered(&folder).unwrap()).unwrap().ahead(true);
        assert_eq!((ahead.voter().is_some(), ahead.awaited()), (false, Some(Epoch(2))));
        let starting = Rotation::new(folder.clone(), ahead.clone()).unwrap();
        assert_eq!(known_committees::read(&path), Some(committees.clone()), "of the newest that was taken up");
        starting.take_up(&ahead, third.clone()).unwrap();
        assert_eq!(known_committees::read(&path), Some(third));
        let status = starting.subscribe().borrow().clone();
        assert_eq!((status.voter().is_some(), status.awaited()), (true, None));
        known_committees::write(&path, &committees).unwrap();
        drop((rotation, starting, folder));

        // The new keys alone open the folder and vote.
        let folder = DataFolder::open(&path, &identity(11)).unwrap();
        let voter_status = VoterStatus::new(committees, vec![pair(11)], &remembered(&folder).unwrap()).unwrap();
        assert_eq!((voter_status.epoch(), voter_status.voter().is_some()), (Epoch(1), true));
    }

    #[test]
    fn the_folder_of_a_node_that_was_down_over_an_epoch_stays_full_without_the_keys_of_it() {
        let parent = tempfile::tempdir().unwrap();
        let (path, shards) = (parent.path().join("data"), std::num::NonZeroU32::MIN);
        let domain = Domain::new(1, fastpay_core::PrimaryAddress::ZERO);
        let identity = deployment::folder_identity(&[pair(1).public().name], shards, &domain);
        let folder = Arc::new(DataFolder::create(&path, &identity).unwrap());
        let mut committees = Committees::new(committee(0, [1, 2, 3, 4])).unwrap();
        committees.install(committee(1, [11, 12, 13, 14])).unwrap();
        committees.install(committee(2, [21, 22, 23, 24])).unwrap();
        let status = |keys: &[u64]| {
            let keys = keys.iter().map(|number| pair(*number)).collect();
            VoterStatus::new(committees.clone(), keys, &remembered(&folder).unwrap()).unwrap()
        };
        Rotation::new(folder.clone(), status(&[1, 11, 21])).unwrap();
        let later = status(&[21]);
        assert_eq!((later.joins(), later.voter().is_some()), (None, true));
    }

    #[test]
    fn what_a_new_member_joined_counts_once_its_name_is_on_disk_and_in_the_epochs_that_follow() {
        let parent = tempfile::tempdir().unwrap();
        let (path, shards) = (parent.path().join("data"), std::num::NonZeroU32::MIN);
        let domain = Domain::new(1, fastpay_core::PrimaryAddress::ZERO);
        let names = [pair(5).public().name];
        let folder = DataFolder::create(&path, &deployment::folder_identity(&names, shards, &domain)).unwrap();
        let mut committees = Committees::new(committee(0, [1, 2, 3, 4])).unwrap();
        committees.install(committee(1, [1, 2, 3, 5])).unwrap();
        let keys = vec![pair(5), pair(15)];
        let voter_status = VoterStatus::new(committees.clone(), keys, &remembered(&folder).unwrap()).unwrap();
        let rotation = Rotation::new(Arc::new(folder), voter_status).unwrap();
        let seen = rotation.subscribe();
        let state = || (seen.borrow().epoch(), seen.borrow().joins(), seen.borrow().voter().is_some());
        assert_eq!(state(), (Epoch(1), Some(Epoch(1)), false));

        for file in ["committees.json", "meta.json"] {
            std::fs::rename(path.join(file), path.join("aside")).unwrap();
            std::fs::create_dir(path.join(file)).unwrap();
            let failed = rotation.join(Epoch(1)).unwrap_err();
            assert!(failed.is_retryable() && !seen.has_changed().unwrap(), "{file}: {failed}");
            std::fs::remove_dir(path.join(file)).unwrap();
            std::fs::rename(path.join("aside"), path.join(file)).unwrap();
        }
        rotation.join(Epoch(1)).unwrap();
        assert_eq!(state(), (Epoch(1), None, true));
        rotation.join(Epoch(1)).unwrap();
        committees.install(committee(2, [1, 2, 3, 15])).unwrap();
        rotation.follow(committees.clone()).unwrap();
        assert_eq!(state(), (Epoch(2), None, true));
        // It leaves, and comes back: what it joined before is not enough.
        committees.install(committee(3, [1, 2, 3, 4])).unwrap();
        rotation.follow(committees.clone()).unwrap();
        assert_eq!(state(), (Epoch(3), None, false));
        committees.install(committee(4, [1, 2, 3, 15])).unwrap();
        rotation.follow(committees).unwrap();
        assert_eq!(state(), (Epoch(4), Some(Epoch(4)), false));
        rotation.join(Epoch(4)).unwrap();
        assert_eq!(state(), (Epoch(4), None, true));
    }
}
