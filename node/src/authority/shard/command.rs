//! All commands to a shard, as one closed list.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use fastpay_core::handover::{Inheritance, JoinError, JoinPosition};
use fastpay_core::{
    Account, AccountId, Certificate, CrossShardCredit, Epoch, History, Installation, Request, SequenceNumber, ShardId,
    ShardLedger, SynchronizationOrder, TransactionIndex, Transfer, UnlockEvent, Vote,
};
use fastpay_rpc::Refusal;
use tokio::sync::{mpsc, oneshot};

use super::chain_time::ChainTime;
use super::client_reputation::ClientReputation;

/// The answer to an order or a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The vote for an order, and its epoch.
    Vote(Epoch, Vote),
    /// A certificate is confirmed: this authority's epoch, and the sender's next sequence number.
    Confirmed(Epoch, SequenceNumber),
    /// An order or a certificate is refused.
    Refused(Refusal),
}

/// A batch's answers to one client, each with the client's own number of the request.
pub type Answers = Vec<(u64, Answer)>;

/// A client's stream as the shard sees it: the channel of its answers, and the number of its waiting requests.
#[derive(Debug)]
pub struct ClientStream {
    answers: mpsc::Sender<Answers>,
    waiting: AtomicUsize,
    peer: Arc<ClientReputation>,
}

impl ClientStream {
    /// A stream with at most so many requests in flight, and the receiver of its answers. Each message contains at
    /// least one answer, so sending never waits.
    #[must_use]
    pub fn new(requests_in_flight_max: usize) -> (Arc<Self>, mpsc::Receiver<Answers>) {
        Self::of(Arc::default(), requests_in_flight_max)
    }

    /// As [`ClientStream::new`], for an address that may have other streams.
    #[must_use]
    pub fn of(peer: Arc<ClientReputation>, requests_in_flight_max: usize) -> (Arc<Self>, mpsc::Receiver<Answers>) {
        let (answers, received) = mpsc::channel(requests_in_flight_max);
        (Arc::new(Self { answers, waiting: AtomicUsize::new(0), peer }), received)
    }

    /// The client's reputation.
    #[must_use]
    pub fn peer(&self) -> &ClientReputation {
        &self.peer
    }

    /// Sends answers. They are dropped if the client has disconnected.
    pub fn send(&self, answers: Answers) {
        let _ = self.answers.try_send(answers);
    }

    /// Waits until the client has disconnected.
    pub async fn closed(&self) {
        self.answers.closed().await;
    }

    /// How many of its requests are in the shard's queue.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn queued(&self, requests: usize) {
        self.waiting.fetch_add(requests, Ordering::Relaxed);
        self.peer.queued(requests);
    }

    pub(super) fn taken(&self, requests: usize) {
        self.waiting.fetch_sub(requests, Ordering::Relaxed);
        self.peer.taken(requests);
    }
}

/// Requests that arrived together on one stream, in their order.
#[derive(Debug)]
pub struct Submission {
    /// The stream that sent them.
    pub stream: Arc<ClientStream>,
    /// The client's own number of each request.
    pub ids: Vec<u64>,
    /// The requests.
    pub requests: Vec<Request>,
}

/// The durable state of a number that its owner asked to unlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnlockKnowledge {
    /// It voted in this epoch to void the number.
    VoidVoted(Epoch),
    /// It has a certificate of the number.
    Seen(Arc<Certificate>),
    /// The number is executed: its certificate is in this history of the account.
    Executed(History),
}

/// The statement about a number that may be signed, or the refusal.
pub type MayVote = Result<UnlockKnowledge, Refusal>;

/// One step of a shard along the contract's order of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderStep {
    /// A step over events of other shards, perhaps to a deposit.
    Deposit(SynchronizationOrder),
    /// A step to an event about one number of an account.
    Unlock(UnlockEvent),
    /// A step to the installation of a committee.
    Installation(Installation),
}

impl OrderStep {
    /// The index of the event with which it ends.
    #[must_use]
    pub fn up_to(&self) -> TransactionIndex {
        match self {
            Self::Deposit(order) => order.up_to,
            Self::Unlock(event) => event.index,
            Self::Installation(installation) => installation.index,
        }
    }
}

/// How far a shard is with joining an epoch. All that it says is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinStep {
    /// It has joined.
    Joined,
    /// A part ends here: go on behind it.
    UpTo(JoinPosition),
}

/// How far a shard is with joining, or why it does not join yet.
pub type Joins = Result<JoinStep, JoinError>;

/// A request to a shard.
#[derive(Debug)]
pub enum Command {
    /// Verify these requests, vote for the orders, and execute the certificates. If payments are traced, with the time
    /// at which they were queued.
    Submit(Submission, Option<SystemTime>),
    /// From another shard of this authority: credits in the order of their numbers.
    Credit(Vec<CrossShardCredit>),
    /// From another shard of this authority: it has all credits up to this number on disk.
    Acknowledge {
        /// The shard that acknowledges.
        by: ShardId,
        /// The newest credit that it has applied.
        number: u64,
    },
    /// From this authority's follower: steps along the contract's order of events. The answer is the index up to which
    /// all events are applied and on disk.
    Synchronize(Vec<OrderStep>, oneshot::Sender<TransactionIndex>),
    /// From this authority's follower: all events up to the block of this time are applied.
    ChainTime(ChainTime),
    /// Decide what this authority may sign about a number that its owner asked to unlock. The answer comes once the
    /// decision is on disk.
    VoteUnlock {
        /// An account of this shard.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// Whether a vote to void the number shall count only if all members vote so.
        unanimous: bool,
        /// Receives the answer.
        reply: oneshot::Sender<MayVote>,
    },
    /// Take over what a quorum's Closings report of this shard's accounts, a part at a time. The answer comes once the
    /// part is on disk.
    Join {
        /// What they report.
        inheritance: Arc<Inheritance>,
        /// Where the part before ended, see [`JoinStep::UpTo`].
        after: JoinPosition,
        /// Receives the answer.
        reply: oneshot::Sender<Joins>,
    },
    /// Say whether the shard has followed the Primary far enough to join.
    MayJoin(Arc<Inheritance>, oneshot::Sender<Result<(), JoinError>>),
    /// Read an account's state.
    ReadAccount(AccountId, oneshot::Sender<Account>),
    /// Read the shard's whole state but the accounts.
    ReadLedger(oneshot::Sender<Arc<ShardLedger>>),
    /// Commit what is queued, write a checkpoint, and end.
    Stop,
}

/// This many outputs of a payout cost a shard about as much as one payment.
const OUTPUTS_PER_REQUEST: usize = 8;

/// The weight of a request in a shard's queue and batch, in payments. A payout is one order, but weighs what it costs.
pub(crate) fn weight(request: &Request) -> usize {
    weight_of_outputs(match &request.order().transfer {
        Transfer::Payout(payout) => payout.outputs.len(),
        Transfer::Payment(_) | Transfer::Redemption(_) => 0,
    })
}

/// The weight of an order with this many outputs.
pub(crate) fn weight_of_outputs(outputs: usize) -> usize {
    (outputs / OUTPUTS_PER_REQUEST).saturating_add(1)
}

impl Submission {
    /// The weight of its requests in the queue.
    pub(super) fn weight(&self) -> usize {
        self.requests.iter().map(weight).fold(0, usize::saturating_add)
    }
}

impl Command {
    /// How much of the queue's bound the command takes.
    pub(super) fn requests(&self) -> usize {
        match self {
            Self::Submit(submission, _) => submission.weight().max(1),
            _ => 1,
        }
    }
}
