//! The rebase of a [`TestAuthority`], by the code of a node's command: the journals are brought onto disks in memory,
//! rebased there, and brought back.

use std::path::Path;
use std::sync::Arc;

use borsh::BorshDeserialize;
use fastpay_core::{JournalPosition, Record, ShardLayout};
use fastpay_node::authority::shard::{RecoveredShard, ShardLimits, ShardStorage, recover_on};
use fastpay_node::authority::storage::{
    Checkpoint, CheckpointError, Checkpoints, Journal, JournalError, JournalOptions, JournalRead, JournalWrite,
    StoreKey,
};
pub use fastpay_node::operator::rebase::Foundation;
use fastpay_node::operator::rebase::{RebaseError, rebase_shards};

use crate::{MemoryDisk, MemoryJournal, TestAuthority, TestShard};

/// There are never more accounts in a test.
const ACCOUNTS_MAX: usize = 10_000;

/// Rebases an authority, and says whether it had executed all that the checkpoint includes.
///
/// # Errors
/// See [`RebaseError`]; the authority is what it was.
pub fn rebase(authority: &mut TestAuthority, foundation: Foundation<'_>) -> Result<bool, RebaseError> {
    let layout = foundation.layout;
    let recovered = recovered(authority)?;
    let new = layout.shards().map(|_| empty_journal().map(|(_, journal)| journal)).collect::<Result<Vec<_>, _>>()?;
    let readers: Vec<_> = new.iter().map(Journal::reader).collect();
    let rebased = rebase_shards(recovered, foundation, new)?;
    let shards = layout.shards().zip(readers).map(|(id, reader)| {
        let mut journal = MemoryJournal::default();
        for entry in reader.read_from(JournalPosition::default()) {
            let (_, bytes) = entry?;
            journal.append(&Record::try_from_slice(&bytes).expect("a rebase writes records"));
        }
        Ok(TestShard::recovered(id, layout, journal))
    });
    let shards = shards.collect::<Result<_, JournalError>>()?;
    authority.replace_shards(layout, shards);
    Ok(rebased.was_complete)
}

/// The shards as a node recovers them.
fn recovered(authority: &TestAuthority) -> Result<Vec<RecoveredShard>, RebaseError> {
    let count = u32::try_from(authority.shards.len()).ok().and_then(|count| count.try_into().ok());
    let layout = ShardLayout::new(count.expect("an authority has shards"));
    let limits = ShardLimits { accounts_in_memory_max: ACCOUNTS_MAX, ..ShardLimits::default() };
    let recover = |shard: &TestShard| {
        let (disk, mut journal) = empty_journal()?;
        for (_, record) in shard.journal().records() {
            journal.append(&borsh::to_vec(&record).expect("writing to memory does not fail"))?;
            journal.commit()?;
        }
        drop(journal);
        let storage = ShardStorage {
            disk: Arc::new(disk),
            journal: FOLDER.into(),
            journal_options: JournalOptions::default(),
            checkpoints: Arc::new(NoCheckpoints),
        };
        Ok(recover_on(storage, shard.rules().id(), layout, true, &limits)?)
    };
    authority.shards.iter().map(recover).collect()
}

const FOLDER: &str = "journal";

fn empty_journal() -> Result<(MemoryDisk, Journal), JournalError> {
    let disk = MemoryDisk::new();
    let journal = Journal::create_on(Arc::new(disk.clone()), Path::new(FOLDER), JournalOptions::default())?;
    Ok((disk, journal))
}

/// A store for shards that have all accounts in memory.
struct NoCheckpoints;

impl Checkpoints for NoCheckpoints {
    fn latest(&self) -> Result<Option<Checkpoint>, CheckpointError> {
        Ok(None)
    }

    fn account(&self, _: &StoreKey) -> Result<Option<Vec<u8>>, CheckpointError> {
        Ok(None)
    }

    fn write(&self, _: JournalPosition, _: Vec<u8>, _: Vec<(StoreKey, Vec<u8>)>) -> Result<(), CheckpointError> {
        unreachable!("all accounts are in memory")
    }
}
