//! The answers of a batch, which are sent once it is on disk: to clients, to the follower, to the other shards.

use std::sync::Arc;

use fastpay_core::{Account, Digest, Epoch, Redemption, ShardLedger, TransactionIndex, Transfer, VerifiedOrder, Vote};
use tokio::sync::oneshot;

use super::command::{Answer, Answers, ClientStream, Command, Joins, MayVote};
use super::queue::ShardHandle;
use super::subscriptions::Alarm;
use super::traces::{Decided, Durable};
use crate::authority::metrics::ShardMetrics;
use crate::authority::storage::Frame;

/// Answers and messages that wait for the same sync. If it fails, they are dropped unsent.
#[derive(Default)]
pub(super) struct Batch {
    /// The records; `None` if nothing changed. The answers wait for the batches before it even then.
    pub frame: Option<Frame>,
    answers: Vec<(Arc<ClientStream>, Answers)>,
    /// The votes still to be signed.
    pub votes: Vec<PendingVote>,
    pub unlock_votes: Vec<(oneshot::Sender<MayVote>, MayVote)>,
    pub synchronized: Vec<(oneshot::Sender<TransactionIndex>, TransactionIndex)>,
    pub joins: Vec<(oneshot::Sender<Joins>, Joins)>,
    pub accounts: Vec<(oneshot::Sender<Account>, Account)>,
    /// The requests for the ledger.
    pub ledgers: Vec<oneshot::Sender<Arc<ShardLedger>>>,
    pub ledger: Option<Arc<ShardLedger>>,
    /// Wakes the subscribers of changed accounts.
    pub alarms: Vec<Alarm>,
    /// Credits and acknowledgements for other shards.
    pub messages: Vec<(ShardHandle, Command)>,
    /// The requests that are traced.
    pub decided: Vec<Decided>,
}

/// A vote that is decided and not yet signed.
pub(super) struct PendingVote {
    /// The place of the stream's answers in the batch.
    place: usize,
    id: u64,
    pub digest: Digest,
    /// The redemption, if it is one.
    pub redemption: Option<Redemption>,
}

impl Batch {
    /// Answers a request.
    pub fn answer(&mut self, stream: &Arc<ClientStream>, id: u64, answer: Answer) {
        let place = self.place_of(stream);
        self.answer_at(place, id, answer);
    }

    /// Answers a request with a vote, once it is signed.
    pub fn vote(&mut self, stream: &Arc<ClientStream>, id: u64, order: &VerifiedOrder) {
        let redemption = match order.transfer() {
            Transfer::Redemption(redemption) => Some(redemption.clone()),
            Transfer::Payment(_) | Transfer::Payout(_) => None,
        };
        let vote = PendingVote { place: self.place_of(stream), id, digest: order.digest(), redemption };
        self.votes.push(vote);
    }

    /// Adds a signed vote to the answers.
    pub fn signed(&mut self, vote: &PendingVote, epoch: Epoch, signed: Vote) {
        self.answer_at(vote.place, vote.id, Answer::Vote(epoch, signed));
    }

    /// The index of a stream's answers in the batch. Requests that arrived together are answered together.
    fn place_of(&mut self, stream: &Arc<ClientStream>) -> usize {
        if !self.answers.last().is_some_and(|(last, _)| Arc::ptr_eq(last, stream)) {
            self.answers.push((stream.clone(), Vec::new()));
        }
        self.answers.len().saturating_sub(1)
    }

    fn answer_at(&mut self, place: usize, id: u64, answer: Answer) {
        let (_, answers) = self.answers.get_mut(place).expect("places are never taken away");
        answers.push((id, answer));
    }

    /// Whether there is nothing to commit and nothing to send.
    pub fn is_empty(&self) -> bool {
        let Self { frame, answers, unlock_votes, synchronized, joins, accounts, ledgers, messages, .. } = self;
        let replies = [unlock_votes.len(), synchronized.len(), joins.len(), accounts.len(), ledgers.len()];
        let said = replies.into_iter().chain([answers.len(), messages.len()]);
        frame.is_none() && said.sum::<usize>() == 0
    }

    fn durable(&mut self, metrics: &ShardMetrics) -> Option<Durable> {
        if self.decided.is_empty() {
            return None;
        }
        let requests = self.answers.iter().map(|(_, answers)| answers.len()).sum();
        Durable::new(std::mem::take(&mut self.decided), requests, &metrics.tracer)
    }

    /// Sends everything. The batch must be on disk.
    pub fn send(mut self, metrics: &ShardMetrics) {
        let traced = self.durable(metrics);
        // Before the answers: a client that gets a confirmation and then asks the recipient's shard finds the payment,
        // because its request queues behind the credit. A message that a full queue rejects is repeated in time.
        for (shard, message) in self.messages {
            let _ = shard.try_send(message);
        }
        for (stream, answers) in self.answers {
            count(&answers, metrics);
            stream.send(answers);
        }
        for (reply, knowledge) in self.unlock_votes {
            let _ = reply.send(knowledge);
        }
        for (reply, index) in self.synchronized {
            let _ = reply.send(index);
        }
        for (reply, step) in self.joins {
            let _ = reply.send(step);
        }
        for (reply, account) in self.accounts {
            let _ = reply.send(account);
        }
        for (reply, ledger) in self.ledgers.into_iter().zip(std::iter::repeat(self.ledger)) {
            let _ = ledger.map(|ledger| reply.send(ledger));
        }
        self.alarms.iter().for_each(|alarm| alarm.send_replace(()));
        if let Some(traced) = traced {
            traced.answered(&metrics.tracer);
        }
    }
}

fn count(answers: &[(u64, Answer)], metrics: &ShardMetrics) {
    let count = |which: fn(&Answer) -> bool| answers.iter().filter(|(_, answer)| which(answer)).count() as u64;
    metrics.votes.inc_by(count(|answer| matches!(answer, Answer::Vote(..))));
    metrics.confirmed.inc_by(count(|answer| matches!(answer, Answer::Confirmed(..))));
}
