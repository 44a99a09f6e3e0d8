//! A shard at work: one thread owns its accounts and decides, and another commits the decisions.
//!
//! ```text
//!  network ─┐               shard thread                                     commit stage
//!  follower ┼─► queue ─► batch: verify, load accounts ─► decide ─► seal ─► one journal write, one sync
//!  siblings ┘  (bounded)           (core)             ◄─ apply     sign          └─► answers, credits
//!                                                    └─► checkpoint store, in the background
//! ```
//!
//! Invariants: no answer of a batch, not even a refusal, is sent before that batch and all before it are on disk. A
//! batch's records are applied in memory before the sync, so that later commands see them; if the sync fails, both
//! threads end, and the process with them. The rules take verified requests only. No send from here ever waits for
//! another shard, so two shards cannot block each other.

mod actor;
mod batch;
mod budget;
mod chain_time;
mod checkpoint;
mod client_reputation;
mod command;
mod commit;
mod history;
mod outbox;
mod queue;
mod recovery;
mod room;
mod settings;
mod signer;
mod subscriptions;
mod traces;
mod verification;

use fastpay_core::{AccountId, JournalPosition};

use crate::authority::storage::{CheckpointError, JournalError};

pub use actor::{Actor, start};
pub use budget::{AddressBudgets, address_budgets};
pub use chain_time::ChainTime;
pub use client_reputation::{Address, ClientReputation};
pub use command::{Answer, Answers, ClientStream, Command, JoinStep, Joins, OrderStep, Submission, UnlockKnowledge};
pub(crate) use command::{weight, weight_of_outputs};
pub use commit::{BATCHES_WAITING_MAX, Commits, UncommittedBatch};
pub use history::{HistoryError, HistoryReader};
pub use queue::{ShardHandle, ShardQueue};
pub use recovery::{AppliedCredits, RecoveredShard, ShardStorage, recover, recover_on};
pub use settings::{ADDRESS_JOURNAL_BYTES_PER_DAY, ShardLimits, ShardSettings};
pub use subscriptions::Subscription;

/// Why a shard cannot start, or ended by itself. Unanswered requests may or may not be on disk; answered ones are.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The checkpoint store failed.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The system gave no thread.
    #[error("the system gives no thread to a shard: {0}")]
    Thread(std::io::Error),
    /// The commit stage panicked.
    #[error("the thread that commits ended by a defect; see the log above")]
    CommitPanicked,
    /// The thread that writes checkpoints panicked.
    #[error("the thread that writes checkpoints ended by a defect; see the log above")]
    CheckpointPanicked,
    /// The journal contains an intact record that this version cannot decode.
    #[error("the record at journal position {0} is not one that this version reads; was it written by a newer one?")]
    Record(JournalPosition),
    /// The checkpoint contains an intact account that this version cannot decode.
    #[error(
        "the stored state of account {0} is not one that this version reads; remove the checkpoint folder to rebuild it"
    )]
    Account(AccountId),
    /// The checkpoint contains an intact ledger that this version cannot decode.
    #[error("the stored ledger is not one that this version reads; remove the checkpoint folder to rebuild it")]
    Ledger,
}
