//! Adopts the next committee once it is final on the Primary.
//!
//! ```text
//!  EpochReader (all Ethereum nodes agree) ─► installation applied ─► Record::Closed in every shard
//!     ─► committees on disk ─► new name on disk ─► shards and network
//!                                  ▲ Record::Joined in every shard, where the member's folder was not full
//! ```
//! A folder that may lack votes is marked. The mark says up to which epoch, once the view of the chain is recent enough to
//! know it: the authority joins the next epoch, and no earlier one.
//!
//! From then on, votes are for the new epoch. Accounts stay locked on their orders, so the same order gets its vote
//! again under the new keys. How long certificates of earlier epochs count, `fastpay_core::EpochEnd` says. If a recovery
//! installed the committee, they count for nothing, and nothing is voted for or executed before the journals begin from
//! the checkpoint that the contract has adopted.

use std::sync::{Arc, Mutex, PoisonError};

use fastpay_core::handover::Stale;
use fastpay_core::{AuthorityName, Committees, Epoch, Recovery};
use fastpay_ethereum::{DepositsError, EpochReader};
use tokio::sync::watch;

use crate::authority::funding::LedgerError;
use crate::authority::known_committees;
use crate::authority::metrics::now_seconds;
use crate::authority::rollback::{self, DetectionError, Memory};
use crate::authority::storage::{DataFolder, Fullness, StorageError};
use crate::authority::voter_status::{Remembered, VoterStatus, VoterStatusError};

/// The maximum age of a final block in which the newest epoch counts as the newest that there is. It is 300 blocks.
const VIEW_AGE_MAX_S: u64 = 3_600;

/// Why a committee cannot be adopted.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// The Primary cannot be read, or its answer is impossible.
    #[error(transparent)]
    Primary(#[from] DepositsError),
    /// The ledger cannot be read, or a quorum of it certified what is impossible.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The new committee lists this authority with a key that it does not have.
    #[error("cannot adopt the next committee: {0}")]
    VoterStatus(#[from] VoterStatusError),
    /// The data folder's names cannot be written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The folder's mark cannot be read or written.
    #[error(transparent)]
    Mark(#[from] DetectionError),
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
            Self::Ledger(error) => error.is_retryable(),
            Self::Storage(_) | Self::Mark(_) | Self::Remember(_) => true,
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
    /// When this process began, in seconds since 1970.
    began_at: u64,
}

impl Rotation {
    /// Starts with a committee, and returns once it is on disk.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn new(folder: Arc<DataFolder>, voter_status: VoterStatus) -> Result<Self, RotationError> {
        let seen = watch::Sender::new(Arc::new(voter_status.clone()));
        let rotation = Self { folder, voter_status: seen, changing: Mutex::new(()), began_at: now() };
        rotation.put_on_disk(&voter_status)?;
        Ok(rotation)
    }

    /// A receiver of the voter status and its changes.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<VoterStatus>> {
        self.voter_status.subscribe()
    }

    /// The committees that are taken up.
    #[must_use]
    pub fn committees(&self) -> Committees {
        self.voter_status.borrow().committees().clone()
    }

    /// Reads the committees in a final block.
    ///
    /// # Errors
    /// See [`RotationError`].
    pub async fn read(&self, reader: &EpochReader, block: u64) -> Result<Committees, RotationError> {
        let known = self.committees();
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

    /// The shards have applied all events of a final block that was made at `block_time`, in seconds since 1970, and know its
    /// committees. If that block is recent, a marked folder lacks votes up to the epoch of it at most: whoever had the keys
    /// before this process began had followed the chain no further. Without a recent block, a lagging Ethereum node would
    /// hide an epoch in which the authority has voted.
    ///
    /// # Errors
    /// See [`RotationError`]. Nothing has changed then.
    pub fn note_view(&self, block_time: u64) -> Result<(), RotationError> {
        self.note_view_at(block_time, now())
    }

    fn note_view_at(&self, block_time: u64, now: u64) -> Result<(), RotationError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let status = self.voter_status.borrow().clone();
        let is_recent = block_time >= self.began_at && now.saturating_sub(block_time) <= VIEW_AGE_MAX_S;
        if status.stale() != Stale::Unknown || status.is_ahead() || !is_recent {
            return Ok(());
        }
        rollback::note_up_to(self.folder.path(), status.epoch())?;
        let next = status.among(status.committees().clone(), &remembered(&self.folder)?)?;
        tracing::info!(epoch = %next.epoch(), "this data folder may lack votes of this epoch and of earlier ones; this authority joins the next epoch");
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

    /// Durable before visible: stores the name before the first vote under it, and since when the folder is full. Then a
    /// folder that lacked votes of earlier epochs says so apart from its mark, which goes. Nothing is stored of an epoch
    /// that is not taken up: a start reads of it again.
    fn put_on_disk(&self, voter_status: &VoterStatus) -> Result<(), RotationError> {
        if voter_status.is_ahead() {
            return Ok(());
        }
        known_committees::write(self.folder.path(), voter_status.committees())?;
        let (Some(voter), Some(since)) = (voter_status.voter(), voter_status.full_since()) else { return Ok(()) };
        self.folder.add_name(&voter.public().name.to_string())?;
        let stale_up_to = match voter_status.stale() {
            Stale::UpTo(last) => Some(last),
            Stale::No | Stale::Unknown => None,
        };
        self.folder.note_fullness(Fullness { since: Some(since), stale_up_to })?;
        if rollback::marked(self.folder.path())? != Memory::Whole {
            rollback::unmark(self.folder.path())?;
            tracing::info!(%since, "this authority votes without restriction again: it has joined an epoch later than those whose votes its data folder may lack");
        }
        Ok(())
    }
}

/// Says what the operator has to do in an epoch that a recovery installed.
pub(crate) fn tell_unrecovered(Recovery { epoch, adopted }: &Recovery) {
    match adopted {
        None => tracing::warn!(
            %epoch,
            "the installation of the committee ends earlier epochs at once: nothing is voted for or executed until the \
             contract has adopted a checkpoint; run `fastpay-node recover` and `fastpay-node committee adopt`"
        ),
        Some(checkpoint) => tracing::warn!(
            %epoch, %checkpoint,
            "the installation of the committee ends earlier epochs at once, and this data folder does not begin from the \
             checkpoint that it adopted: nothing is voted for or executed. Run `fastpay-node recover` with the archive \
             as --out, wait until the checkpoint is certified there, stop the node, run `fastpay-node rebase`, and \
             start the node"
        ),
    }
}

/// What the folder remembers, apart from its shards, which know what they have joined.
///
/// # Errors
/// If the folder cannot be read.
pub fn remembered(folder: &DataFolder) -> Result<Remembered, DetectionError> {
    let Fullness { since, stale_up_to } = folder.fullness()?.unwrap_or_default();
    let stale = match rollback::marked(folder.path())? {
        Memory::Whole => stale_up_to.map_or(Stale::No, Stale::UpTo),
        Memory::Older { up_to, .. } => up_to.map_or(Stale::Unknown, Stale::UpTo),
    };
    let (names, adopted) = (remembered_names(folder)?, folder.adopted()?);
    Ok(Remembered { names, adopted, joined: None, full_since: since, stale })
}

/// Notes in a folder of an earlier release, in whose epochs members went on with new keys, whether it was full by those
/// rules: then its authority may have voted. `status` is its own among the committees that it has taken up; none if it
/// has taken up none. From the next epoch on, the rules of this release apply.
///
/// # Errors
/// If the folder cannot be written.
pub(crate) fn take_over(folder: &DataFolder, status: Option<&VoterStatus>) -> Result<(), StorageError> {
    let since = status.filter(|status| status.was_full()).map(VoterStatus::epoch);
    folder.note_fullness(Fullness { since, stale_up_to: None })
}

/// In seconds since 1970.
fn now() -> u64 {
    u64::try_from(now_seconds()).unwrap_or_default()
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
    use std::path::Path;

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

    /// While a file of the folder cannot be written, because a folder stands at its path, nobody sees a change.
    fn without(
        folder: &Path,
        file: &str,
        seen: &watch::Receiver<Arc<VoterStatus>>,
        change: impl FnOnce() -> Result<(), RotationError>,
    ) {
        let (path, aside) = (folder.join(file), folder.join("aside"));
        let is_aside = std::fs::rename(&path, &aside).is_ok();
        std::fs::create_dir(&path).unwrap();
        let failed = change().unwrap_err();
        assert!(failed.is_retryable() && !seen.has_changed().unwrap(), "{file}: {failed}");
        std::fs::remove_dir(&path).unwrap();
        assert!(!is_aside || std::fs::rename(&aside, &path).is_ok());
    }

    /// A data folder that was made for the first member's keys, and the committees of the epochs with these keys.
    fn folder(parent: &Path, lists: &[[u64; 4]]) -> (Arc<DataFolder>, Committees) {
        let domain = Domain::new(1, fastpay_core::PrimaryAddress::ZERO);
        let names = [pair(lists[0][0]).public().name];
        let identity = deployment::folder_identity(&names, std::num::NonZeroU32::MIN, &domain);
        let mut committees = Committees::new(committee(0, lists[0])).unwrap();
        (1..).zip(&lists[1..]).for_each(|(epoch, list)| committees.install(committee(epoch, *list)).unwrap());
        (Arc::new(DataFolder::create(&parent.join("data"), &identity).unwrap()), committees)
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
        let mut seen = rotation.subscribe();
        assert_eq!(seen.borrow().voter().unwrap().public(), pair(1).public());

        committees.install(committee(1, [11, 12, 13, 14])).unwrap();
        let now = seen.borrow().clone();
        without(&path, "committees.json", &seen, || rotation.take_up(&now, committees.clone()));
        let next = now.among(committees.clone(), &names).unwrap();
        without(&path, "committees.json", &seen, || Rotation::new(folder.clone(), next.clone()).map(drop));
        rotation.take_up(&now, committees.clone()).unwrap();
        assert_eq!((seen.borrow().voter().is_some(), seen.borrow().joins()), (false, Some(Epoch(1))), "new keys");
        drop(seen.borrow_and_update());
        for file in ["committees.json", "meta.json"] {
            without(&path, file, &seen, || rotation.join(Epoch(1)));
        }
        rotation.join(Epoch(1)).unwrap();
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

    /// What a start does with a folder that the release before has used, where these committees are taken up.
    #[test]
    fn a_folder_of_the_release_before_stays_full_in_the_epoch_that_it_has_taken_up_and_joins_the_next_one() {
        const LISTS: [[u64; 4]; 3] = [[1, 2, 3, 4], [11, 12, 13, 14], [21, 22, 23, 24]];
        let status = |folder: &DataFolder, epochs: usize| {
            let mut committees = Committees::new(committee(0, LISTS[0])).unwrap();
            (1..).zip(&LISTS[1..epochs]).for_each(|(epoch, list)| committees.install(committee(epoch, *list)).unwrap());
            VoterStatus::new(committees, vec![pair(1), pair(11), pair(21)], &remembered(folder).unwrap()).unwrap()
        };
        let parent = tempfile::tempdir().unwrap();
        let (folder, _) = folder(parent.path(), &LISTS);
        let meta = folder.path().join("meta.json");
        // As the release before wrote it.
        let old = |names: &[u64]| {
            let names: Vec<_> = names.iter().map(|number| pair(*number).public().name.to_string()).collect();
            let text = serde_json::json!({
                "format_version": 1, "names": names, "shards": 1, "chain_id": 1,
                "contract": fastpay_core::PrimaryAddress::ZERO.to_string(),
            });
            std::fs::write(&meta, text.to_string()).unwrap();
            assert_eq!(folder.fullness().unwrap(), None);
        };
        for (taken_up, votes) in [(Some(2), true), (Some(1), false), (None, false)] {
            old(&[1, 11]);
            assert!(status(&folder, 2).joins().is_some());
            take_over(&folder, taken_up.map(|epochs| status(&folder, epochs)).as_ref()).unwrap();
            let now = status(&folder, 2);
            assert_eq!((now.voter().is_some(), now.joins().is_none()), (votes, votes), "{taken_up:?}");
            assert!(std::fs::read_to_string(&meta).unwrap().contains("\"format_version\": 3"));
        }
        old(&[1, 11]);
        take_over(&folder, Some(&status(&folder, 2))).unwrap();
        let rotation = Rotation::new(folder.clone(), status(&folder, 2)).unwrap();
        assert_eq!(rotation.subscribe().borrow().full_since(), Some(Epoch(1)));
        // Nothing is taken over again: from the next epoch on, new keys join. It states what it knows of the one before.
        let next = status(&folder, 3);
        assert_eq!((next.joins(), next.closes(Epoch(1)).is_some()), (Some(Epoch(2)), true));
        // A folder that lacks votes was not full.
        old(&[1, 11]);
        std::fs::write(folder.path().join("restored.json"), br#"{"since":1,"why":"a copy"}"#).unwrap();
        take_over(&folder, Some(&status(&folder, 2))).unwrap();
        assert_eq!(folder.fullness().unwrap(), Some(Fullness::default()));
    }

    #[test]
    fn up_to_which_epoch_votes_may_be_missing_is_noted_on_a_recent_view_and_the_mark_goes_once_a_later_one_is_joined() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, committees) = folder(parent.path(), &[[1, 2, 3, 4], [1, 2, 3, 5]]);
        std::fs::write(folder.path().join("restored.json"), br#"{"since":1,"why":"a copy"}"#).unwrap();
        let status = |committees: &Committees| {
            VoterStatus::new(committees.clone(), vec![pair(1)], &remembered(&folder).unwrap()).unwrap()
        };
        let stale = || remembered(&folder).unwrap().stale;
        let rotation = Rotation::new(folder.clone(), status(&committees)).unwrap();
        let mut seen = rotation.subscribe();
        // The block is older than this process, or the clock says that there are newer ones.
        let began_at = rotation.began_at;
        for (block_time, now) in [(began_at - 1, began_at), (began_at + 10, began_at + 10 + VIEW_AGE_MAX_S + 1)] {
            rotation.note_view_at(block_time, now).unwrap();
            assert_eq!((stale(), seen.has_changed().unwrap()), (Stale::Unknown, false));
        }
        // The shards have not followed to the installation.
        let ahead = Rotation::new(folder.clone(), status(&committees).ahead(true)).unwrap();
        ahead.note_view_at(began_at + 10, began_at + 10).unwrap();
        assert_eq!(stale(), Stale::Unknown);
        without(folder.path(), "restored.json", &seen, || rotation.note_view_at(began_at + 10, began_at + 10));
        rotation.note_view_at(began_at + 10, began_at + 10).unwrap();
        assert_eq!((stale(), seen.borrow_and_update().stale()), (Stale::UpTo(Epoch(1)), Stale::UpTo(Epoch(1))));
        rotation.join(Epoch(1)).unwrap();
        assert!(seen.borrow_and_update().voter().is_none(), "it may have voted in that one");

        let mut later = committees.clone();
        later.install(committee(2, [1, 2, 3, 6])).unwrap();
        rotation.follow(later.clone()).unwrap();
        rotation.note_view_at(began_at + 20, began_at + 20).unwrap();
        assert_eq!((stale(), seen.borrow_and_update().joins()), (Stale::UpTo(Epoch(1)), Some(Epoch(2))));
        without(folder.path(), "meta.json", &seen, || rotation.join(Epoch(2)));
        assert_eq!(stale(), Stale::UpTo(Epoch(1)));
        rotation.join(Epoch(2)).unwrap();
        assert!(seen.borrow().votes_for_all() && !folder.path().join("restored.json").exists());
        assert_eq!((stale(), status(&later).full_since()), (Stale::UpTo(Epoch(1)), Some(Epoch(2))));
        assert!(status(&later).closes(Epoch(1)).is_none(), "it never states anything of what it lacks");
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
            without(&path, file, &seen, || rotation.join(Epoch(1)));
        }
        rotation.join(Epoch(1)).unwrap();
        assert_eq!(state(), (Epoch(1), None, true));
        rotation.join(Epoch(1)).unwrap();
        committees.install(committee(2, [1, 2, 3, 15])).unwrap();
        rotation.follow(committees.clone()).unwrap();
        assert_eq!(state(), (Epoch(2), Some(Epoch(2)), false), "new keys");
        rotation.join(Epoch(2)).unwrap();
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
