//! Everything that a shard can be asked, as one closed list.

use std::sync::Arc;

use fastpay_core::{
    Account, AccountId, CrossShardCredit, Epoch, SequenceNumber, ShardId, ShardLedger, SynchronizationOrder,
    TransactionIndex, VerifiedCertificate, VerifiedOrder, Vote,
};
use fastpay_rpc::Refusal;
use tokio::sync::{mpsc, oneshot};

/// What is answered to an order or a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To an order: the epoch that the vote is for.
    Vote(Epoch, Vote),
    /// To a certificate: the sender's next sequence number.
    Confirmed(SequenceNumber),
    /// To either.
    Refused(Refusal),
}

/// Where the answer to one request of a stream goes. The stream admits no more requests than its
/// channel has room for, so sending never waits.
#[derive(Clone, Debug)]
pub struct ReplyTo {
    /// The client's own number of the request.
    pub id: u64,
    /// The stream's channel of answers.
    pub stream: mpsc::Sender<(u64, Answer)>,
}

impl ReplyTo {
    /// Answers. A client that has gone gets none.
    pub fn send(self, answer: Answer) {
        let _ = self.stream.try_send((self.id, answer));
    }
}

/// A request to a shard.
#[derive(Debug)]
pub enum Command {
    /// Vote for an order.
    Order(Box<VerifiedOrder>, ReplyTo),
    /// Execute a certificate.
    Confirm(Box<VerifiedCertificate>, ReplyTo),
    /// From another shard of this authority: credits in the order of their numbers.
    Credit(Vec<CrossShardCredit>),
    /// From another shard of this authority: it has all credits up to this number on disk.
    Acknowledge {
        /// The shard that says so.
        by: ShardId,
        /// The newest credit that it has applied.
        number: u64,
    },
    /// From this authority's follower: deposits, in order. Answers with the index up to which all
    /// deposits are applied and on disk.
    Synchronize(Vec<SynchronizationOrder>, oneshot::Sender<TransactionIndex>),
    /// An account's state.
    ReadAccount(AccountId, oneshot::Sender<Account>),
    /// All but the accounts.
    ReadLedger(oneshot::Sender<Arc<ShardLedger>>),
    /// Commit what is queued, write a checkpoint, and end.
    Stop,
}
