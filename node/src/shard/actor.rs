//! The shard's thread: take what is queued, decide, commit once, sign, answer.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fastpay_core::{
    Account, AccountId, CrossShardCredit, Decision, Digest, Domain, Record, Shard, ShardId, ShardLedger,
    SynchronizationOrder, TransactionIndex, Transfer, VerifiedCertificate, VerifiedOrder, sign_payment_votes,
    sign_vote,
};
use fastpay_rpc::Refusal;
use tokio::sync::oneshot;

use super::ShardError;
use super::checkpoint::Checkpointer;
use super::command::{Answer, Command, ReplyTo};
use super::outbox::{Deliveries, REDELIVERY_AFTER};
use super::recovery::{RecoveredShard, stored_account};
use crate::metrics::ShardMetrics;
use crate::standing::{Standing, StandingSeen};
use crate::storage::{CheckpointStore, Journal, JournalError, JournalWrite};

/// How long the thread sleeps at most when nothing happens: bounds how late a checkpoint is noticed.
const IDLE_WAKE_UP: Duration = Duration::from_secs(5);

/// Room in the queue that clients cannot take: for credits and acknowledgements of the other shards,
/// the follower, and the word to stop. Without it a flood of requests could hold all of these up.
const QUEUE_RESERVE: usize = 256;

/// Sizes that bound a shard's memory and its batches.
#[derive(Clone, Copy, Debug)]
pub struct ShardLimits {
    /// At most so many commands wait; further ones of clients are refused as busy.
    pub queue_commands_max: usize,
    /// At most so many commands share one sync.
    pub batch_commands_max: usize,
    /// After so many bytes of journal a checkpoint is due: bounds the time of a recovery.
    pub checkpoint_journal_bytes: u64,
    /// After this long a checkpoint is due where anything changed.
    pub checkpoint_interval: Duration,
    /// More unchanged accounts than this are not kept in memory after a checkpoint.
    pub accounts_in_memory_max: usize,
}

impl Default for ShardLimits {
    fn default() -> Self {
        Self {
            queue_commands_max: 8_192,
            batch_commands_max: 512,
            checkpoint_journal_bytes: 64 << 20,
            checkpoint_interval: Duration::from_secs(60),
            accounts_in_memory_max: 1_000_000,
        }
    }
}

/// What every shard of an authority works with.
#[derive(Clone)]
pub struct ShardSettings {
    /// The deployment that it votes in.
    pub domain: Domain,
    /// The committees, and the keys with which it votes now.
    pub standing: StandingSeen,
    /// Bounds.
    pub limits: ShardLimits,
}

/// The way to a shard. Cheap to clone.
#[derive(Clone)]
pub struct ShardHandle {
    queue: SyncSender<Command>,
    waiting: Arc<AtomicUsize>,
    waiting_max: usize,
    metrics: Arc<ShardMetrics>,
}

impl ShardHandle {
    /// Queues a command of this authority's own, or gives it back where the queue is full or the shard
    /// has ended.
    ///
    /// # Errors
    /// The command.
    pub fn try_send(&self, command: Command) -> Result<(), TrySendError<Command>> {
        // Counted first, so that the shard never takes what is not counted yet.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.metrics.queued.inc();
        self.queue.try_send(command).inspect_err(|_| {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.metrics.queued.dec();
        })
    }

    /// Queues a client's command, which leaves room for the authority's own.
    ///
    /// # Errors
    /// The command.
    pub fn try_submit(&self, command: Command) -> Result<(), TrySendError<Command>> {
        if self.waiting.load(Ordering::Relaxed) >= self.waiting_max {
            return Err(TrySendError::Full(command));
        }
        self.try_send(command)
    }
}

/// A queue for a shard that is still to be started: shards need each other's.
pub struct ShardQueue {
    commands: Receiver<Command>,
    waiting: Arc<AtomicUsize>,
    metrics: Arc<ShardMetrics>,
}

#[cfg(test)]
impl ShardQueue {
    /// What is sent, for a test that takes the shard's place.
    pub(super) fn into_commands(self) -> Receiver<Command> {
        self.commands
    }
}

impl ShardHandle {
    /// A handle and the queue behind it.
    #[must_use]
    pub fn new(limits: &ShardLimits, metrics: Arc<ShardMetrics>) -> (Self, ShardQueue) {
        let (queue, commands) = sync_channel(limits.queue_commands_max.saturating_add(QUEUE_RESERVE));
        let waiting = Arc::new(AtomicUsize::new(0));
        let queue_end = ShardQueue { commands, waiting: waiting.clone(), metrics: metrics.clone() };
        (Self { queue, waiting, waiting_max: limits.queue_commands_max, metrics }, queue_end)
    }
}

/// Starts a shard's thread.
///
/// # Errors
/// Where the system gives no thread.
pub fn start(
    settings: ShardSettings,
    recovered: RecoveredShard,
    queue: ShardQueue,
    siblings: BTreeMap<ShardId, ShardHandle>,
) -> Result<JoinHandle<Result<(), ShardError>>, ShardError> {
    let name = format!("shard-{}", recovered.shard.id());
    let actor = Actor {
        limits: settings.limits,
        signer: Signer::new(settings.domain, settings.standing),
        checkpointer: Checkpointer::new(recovered.store.clone(), settings.limits, recovered.checkpoint),
        shard: recovered.shard,
        journal: recovered.journal,
        store: recovered.store,
        changed: recovered.changed,
        deliveries: Deliveries::new(siblings),
        metrics: queue.metrics,
        commands: queue.commands,
        waiting: queue.waiting,
        batch: Batch::default(),
    };
    std::thread::Builder::new().name(name).spawn(move || actor.run()).map_err(ShardError::Thread)
}

/// The secret side of voting.
struct Signer {
    domain: Domain,
    seen: StandingSeen,
    /// As it was when the batch was begun: all its votes are for one epoch.
    standing: Arc<Standing>,
}

/// What waits for the batch's sync.
#[derive(Default)]
struct Batch {
    /// Votes to sign: the order's digest, and the transfer where it is a redemption.
    votes: Vec<(ReplyTo, Digest, Option<Transfer>)>,
    answers: Vec<(ReplyTo, Answer)>,
    synchronized: Vec<oneshot::Sender<TransactionIndex>>,
    accounts: Vec<(oneshot::Sender<Account>, Account)>,
    ledgers: Vec<oneshot::Sender<Arc<ShardLedger>>>,
    /// The shards that sent credits.
    credited: Vec<ShardId>,
    records: u64,
}

struct Actor {
    shard: Shard,
    journal: Journal,
    store: CheckpointStore,
    checkpointer: Checkpointer,
    /// The accounts that changed since the newest checkpoint was begun.
    changed: HashSet<AccountId>,
    deliveries: Deliveries,
    signer: Signer,
    limits: ShardLimits,
    metrics: Arc<ShardMetrics>,
    commands: Receiver<Command>,
    /// How many commands are in the queue.
    waiting: Arc<AtomicUsize>,
    batch: Batch,
}

/// Whether the thread goes on.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

impl Actor {
    fn run(mut self) -> Result<(), ShardError> {
        loop {
            let waiting = self.deliveries.deliver(self.shard.ledger(), Instant::now());
            let patience = if waiting { REDELIVERY_AFTER } else { IDLE_WAKE_UP };
            let next = match self.commands.recv_timeout(patience) {
                Ok(first) => self.take_batch(first)?,
                Err(RecvTimeoutError::Timeout) => Next::GoOn,
                Err(RecvTimeoutError::Disconnected) => Next::Stop,
            };
            // Before the next checkpoint takes the changed accounts: they are what must stay.
            let stored = self.checkpointer.collect()?;
            if stored && self.shard.accounts_in_memory() > self.limits.accounts_in_memory_max {
                let changed = &self.changed;
                self.shard.evict(|id| changed.contains(id));
            }
            self.checkpointer.begin_if_due(&self.shard, &self.journal, &mut self.changed)?;
            if next == Next::Stop {
                return self.checkpointer.finish(&self.shard, &self.journal, &mut self.changed);
            }
        }
    }

    /// Serves what is queued, as one batch with one sync.
    fn take_batch(&mut self, first: Command) -> Result<Next, ShardError> {
        self.signer.look();
        let mut next = self.execute(first)?;
        let mut commands = 1_usize;
        while next == Next::GoOn && commands < self.limits.batch_commands_max {
            match self.commands.try_recv() {
                Ok(command) => next = self.execute(command)?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return self.commit_and_answer().map(|()| Next::Stop),
            }
            commands = commands.saturating_add(1);
        }
        self.waiting.fetch_sub(commands, Ordering::Relaxed);
        self.metrics.queued.dec_by(i64::try_from(commands).unwrap_or(i64::MAX));
        self.commit_and_answer()?;
        Ok(next)
    }

    fn execute(&mut self, command: Command) -> Result<Next, ShardError> {
        match command {
            Command::Order(order, reply) => self.order(&order, reply)?,
            Command::Confirm(certificate, reply) => self.confirm(&certificate, reply)?,
            Command::Credit(credits) => self.credit(&credits)?,
            Command::Acknowledge { by, number } => self.shard.acknowledge(by, number),
            Command::Synchronize(orders, reply) => self.synchronize(&orders, reply)?,
            Command::ReadAccount(id, reply) => {
                let account = self.account(&id)?.into_owned();
                self.batch.accounts.push((reply, account));
            }
            Command::ReadLedger(reply) => self.batch.ledgers.push(reply),
            Command::Stop => return Ok(Next::Stop),
        }
        Ok(Next::GoOn)
    }

    /// An account as it is now, wherever it is. Brings nothing into memory.
    fn account(&self, id: &AccountId) -> Result<Cow<'_, Account>, ShardError> {
        match self.shard.account(id) {
            Some(account) => Ok(Cow::Borrowed(account)),
            None => Ok(Cow::Owned(stored_account(&self.store, id)?.unwrap_or_default())),
        }
    }

    fn order(&mut self, order: &VerifiedOrder, reply: ReplyTo) -> Result<(), ShardError> {
        if let Some(refusal) = self.signer.refusal() {
            self.batch.answers.push((reply, Answer::Refused(refusal)));
            return Ok(());
        }
        match self.decide_and_apply(|shard| shard.lock(order))? {
            Ok(()) => {
                let redemption = matches!(order.transfer(), Transfer::Redemption(_));
                self.batch.votes.push((reply, order.digest(), redemption.then(|| order.transfer().clone())));
            }
            Err(refusal) => self.batch.answers.push((reply, Answer::Refused(refusal))),
        }
        Ok(())
    }

    fn confirm(&mut self, certificate: &VerifiedCertificate, reply: ReplyTo) -> Result<(), ShardError> {
        let answer = match self.decide_and_apply(|shard| shard.confirm(certificate))? {
            Ok(()) => Answer::Confirmed(self.account(&certificate.transfer().sender())?.next_sequence()),
            Err(refusal) => Answer::Refused(refusal),
        };
        self.batch.answers.push((reply, answer));
        Ok(())
    }

    fn credit(&mut self, credits: &[CrossShardCredit]) -> Result<(), ShardError> {
        for credit in credits {
            if let Err(refusal) = self.decide_and_apply(|shard| shard.credit(credit))? {
                // A gap: an earlier message was lost and comes again, and this one behind it.
                tracing::debug!(from = %credit.from, number = credit.number, %refusal, "credit refused");
                break;
            }
            if self.batch.credited.last() != Some(&credit.from) {
                self.batch.credited.push(credit.from);
            }
        }
        Ok(())
    }

    fn synchronize(
        &mut self,
        orders: &[SynchronizationOrder],
        reply: oneshot::Sender<TransactionIndex>,
    ) -> Result<(), ShardError> {
        for order in orders {
            if let Err(refusal) = self.decide_and_apply(|shard| shard.synchronize(order))? {
                // The answer tells the follower from where to go on.
                tracing::warn!(after = %order.after, up_to = %order.up_to, %refusal, "synchronization order refused");
                break;
            }
        }
        self.batch.synchronized.push(reply);
        Ok(())
    }

    /// Asks a rule, with the accounts that it needs in memory, and applies its record. Accounts that
    /// were only looked at do not stay.
    fn decide_and_apply(&mut self, rule: impl Fn(&Shard) -> Decision) -> Result<Result<(), Refusal>, ShardError> {
        let mut loaded = Vec::new();
        let result = loop {
            match rule(&self.shard) {
                Decision::Load(id) => {
                    let stored = stored_account(&self.store, &id)?;
                    self.shard.load(id, stored);
                    loaded.push(id);
                }
                Decision::Commit(record) => {
                    self.append(&record)?;
                    return Ok(Ok(()));
                }
                Decision::Already => break Ok(()),
                Decision::Refuse(rejection) => {
                    self.metrics.refused.inc();
                    break Err(rejection.into());
                }
            }
        };
        for id in loaded {
            self.shard.unload(&id);
        }
        Ok(result)
    }

    fn append(&mut self, record: &Record) -> Result<(), ShardError> {
        let bytes = borsh::to_vec(record).expect("writing to memory does not fail");
        let position = match self.journal.append(&bytes) {
            Err(JournalError::BatchFull { .. }) => {
                self.commit_and_answer()?;
                self.journal.append(&bytes)?
            }
            position => position?,
        };
        self.shard.apply(record, position);
        self.changed.extend(record.accounts());
        self.batch.records = self.batch.records.saturating_add(1);
        Ok(())
    }

    /// Puts the batch on disk, and only then says anything.
    fn commit_and_answer(&mut self) -> Result<(), ShardError> {
        if self.batch.records > 0 {
            let begun = Instant::now();
            self.journal.commit()?;
            self.metrics.committed(self.batch.records, begun.elapsed());
        }
        let batch = std::mem::take(&mut self.batch);
        self.metrics.votes.inc_by(batch.votes.len() as u64);
        self.signer.vote(batch.votes);
        for (reply, answer) in batch.answers {
            if matches!(answer, Answer::Confirmed(_)) {
                self.metrics.confirmed.inc();
            }
            reply.send(answer);
        }
        for (reply, account) in batch.accounts {
            let _ = reply.send(account);
        }
        let ledger = self.shard.ledger();
        for reply in batch.synchronized {
            let _ = reply.send(ledger.synchronized);
        }
        if !batch.ledgers.is_empty() {
            // It may hold many credits under way: copied once, however many ask.
            let copy = Arc::new(ledger.clone());
            for reply in batch.ledgers {
                let _ = reply.send(copy.clone());
            }
        }
        for from in batch.credited {
            self.deliveries.acknowledge(self.shard.id(), from, ledger.inbox(from));
        }
        self.metrics.observe(&self.shard, self.journal.end());
        Ok(())
    }
}

impl Signer {
    fn new(domain: Domain, mut seen: StandingSeen) -> Self {
        let standing = seen.borrow_and_update().clone();
        Self { domain, seen, standing }
    }

    /// Takes the newest standing.
    fn look(&mut self) {
        if self.seen.has_changed().unwrap_or(false) {
            self.standing = self.seen.borrow_and_update().clone();
        }
    }

    /// Why this authority gives no votes now: then it locks nothing, either.
    fn refusal(&self) -> Option<Refusal> {
        self.standing.voter().is_none().then(|| Refusal::NotVoting(self.standing.epoch()))
    }

    /// Signs and sends votes: one signature for all payments of the batch, one for each redemption,
    /// which Ethereum checks on its own.
    fn vote(&self, votes: Vec<(ReplyTo, Digest, Option<Transfer>)>) {
        let Some(keys) = self.standing.voter() else { return };
        let epoch = self.standing.epoch();
        let (payments, redemptions): (Vec<_>, Vec<_>) = votes.into_iter().partition(|(_, _, r)| r.is_none());
        for payments in payments.chunks(fastpay_core::MERKLE_LEAVES_MAX) {
            let digests: Vec<Digest> = payments.iter().map(|(_, digest, _)| *digest).collect();
            let signed = sign_payment_votes(keys, &self.domain, epoch, &digests);
            for ((reply, _, _), vote) in payments.iter().zip(signed) {
                reply.clone().send(Answer::Vote(epoch, vote));
            }
        }
        for (reply, digest, redemption) in redemptions {
            if let Some(transfer) = redemption {
                reply.send(Answer::Vote(epoch, sign_vote(keys, &self.domain, epoch, &transfer, digest)));
            }
        }
    }
}
