//! The shard's thread: takes queued commands, verifies, decides, applies, and hands over to the commit stage.

mod join;
mod unlock;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::Duration;

use fastpay_core::{
    Account, AccountId, Certificate, CrossShardCredit, Decision, Domain, Epoch, PrimaryView, Record, Shard, ShardId,
    Standing, TransactionIndex, Transfer, VerifiedCertificate, VerifiedOrder, VerifiedRequest, VoteFloor,
};
use fastpay_program::Clock;
use fastpay_rpc::Refusal;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::ShardError;
use super::batch::Batch;
use super::chain_time::ChainTime;
use super::checkpoint::Checkpointer;
use super::command::{Answer, ClientStream, Command, OrderStep};
use super::commit::{CommitStage, Commits, UncommittedBatch};
use super::outbox::{Deliveries, REDELIVERY_AFTER};
use super::queue::{ShardHandle, ShardQueue};
use super::recovery::{RecoveredShard, stored_account};
use super::room::Room;
use super::settings::{ShardLimits, ShardSettings};
use super::signer::Signer;
use super::traces::Traces;
use super::verification::Verification;
use crate::authority::metrics::ShardMetrics;
use crate::authority::storage::{Checkpoints, Journal, JournalError, JournalWrite};

/// The longest sleep of an idle thread. It bounds how late a checkpoint begins.
const IDLE_WAKE_UP: Duration = Duration::from_secs(5);

/// Starts a shard's threads. The returned thread ends when both have ended.
///
/// # Errors
/// If the system gives no thread.
pub fn start(
    settings: ShardSettings,
    recovered: RecoveredShard,
    queue: ShardQueue,
    handle: ShardHandle,
    siblings: BTreeMap<ShardId, ShardHandle>,
) -> Result<JoinHandle<Result<(), ShardError>>, ShardError> {
    let id = recovered.shard.id();
    let commits = CommitStage::start(format!("commit-{id}"), handle)?;
    let actor = Actor::new(settings, recovered, queue, siblings, commits);
    std::thread::Builder::new().name(format!("shard-{id}")).spawn(move || actor.run()).map_err(ShardError::Thread)
}

/// A shard without its threads. It advances only in [`Actor::turn`], and hands each batch to `C` for commit. [`start`]
/// runs it on a thread.
pub struct Actor<C> {
    shard: Shard,
    journal: Journal,
    store: Arc<dyn Checkpoints>,
    checkpointer: Checkpointer,
    deliveries: Deliveries,
    verification: Verification,
    signer: Signer,
    domain: Domain,
    /// The chain time that it has followed, and the clock to compare it with; `None` without a chain.
    chain: Option<(ChainTime, Clock)>,
    limits: ShardLimits,
    room: Room,
    traces: Traces,
    metrics: Arc<ShardMetrics>,
    queue: ShardQueue,
    commits: C,
    batch: Batch,
    /// The accounts that the current decision loaded into memory.
    loaded: Vec<AccountId>,
    /// The buffer for encoded records, kept for its capacity.
    encoded: Vec<u8>,
    /// The number of bytes that all records so far take in journals.
    appended_bytes: u64,
    /// Whether this batch's first certificate was checked for its voters: one of each batch is enough to see who is up.
    voters_seen: bool,
    /// Accounts with decided numbers that are not seen to since the start.
    resumes: Vec<AccountId>,
}

/// Whether the thread continues.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

/// The transfer of a request.
fn transfer(request: &VerifiedRequest) -> &Transfer {
    match request {
        VerifiedRequest::Order(order) => order.transfer(),
        VerifiedRequest::Certificate(certificate) | VerifiedRequest::Attested(certificate) => certificate.transfer(),
    }
}

/// Whether an account pays itself, which only fills the journal.
fn is_circular(transfer: &Transfer) -> bool {
    match transfer {
        Transfer::Payment(payment) => payment.recipient == payment.sender,
        Transfer::Payout(payout) => payout.outputs.iter().all(|output| output.recipient == payout.sender),
        Transfer::Redemption(_) => false,
    }
}

impl Actor<CommitStage> {
    fn run(mut self) -> Result<(), ShardError> {
        let ended = self.work();
        // If the commit stage failed, its error is the cause.
        self.commits.finish().and(ended)
    }

    fn work(&mut self) -> Result<(), ShardError> {
        let mut patience = Duration::ZERO;
        while let Some(next) = self.turn(patience)? {
            patience = next;
        }
        Ok(())
    }
}

impl<C: Commits> Actor<C> {
    /// A shard that serves `queue` and sends credits to `siblings`.
    pub fn new(
        settings: ShardSettings,
        recovered: RecoveredShard,
        queue: ShardQueue,
        siblings: BTreeMap<ShardId, ShardHandle>,
        commits: C,
    ) -> Self {
        let metrics = queue.metrics().clone();
        let mut resumes: Vec<_> = recovered.shard.ledger().unlocks.decided().collect();
        resumes.dedup();
        Self {
            resumes,
            limits: settings.limits,
            verification: Verification::new(settings.domain),
            signer: Signer::new(settings.domain, settings.voter_status),
            domain: settings.domain,
            chain: settings.chain,
            checkpointer: Checkpointer::new(
                recovered.store.clone(),
                settings.limits,
                recovered.checkpoint,
                metrics.clone(),
            ),
            room: Room::new(&settings.limits, settings.addresses, metrics.clone()),
            traces: Traces::new(metrics.tracer.clone(), recovered.shard.id()),
            shard: recovered.shard,
            journal: recovered.journal,
            store: recovered.store,
            deliveries: Deliveries::new(siblings, metrics.clone()),
            metrics,
            queue,
            commits,
            batch: Batch::default(),
            loaded: Vec::new(),
            encoded: Vec::new(),
            appended_bytes: 0,
            voters_seen: false,
        }
    }

    /// The shard's state, including uncommitted changes.
    #[must_use]
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Waits up to `patience` for a command, serves it and those queued behind it as one batch, takes the next part of
    /// a checkpoint, and hands the batch over. Returns the patience of the next turn, or `None` after [`Command::Stop`]
    /// or when every sender is gone.
    ///
    /// # Errors
    /// When the journal, the checkpoints or a commit failed. The shard must not be used after that.
    pub fn turn(&mut self, patience: Duration) -> Result<Option<Duration>, ShardError> {
        self.resume()?;
        // A node may end between an installation and this, and earlier releases closed nothing.
        self.close()?;
        let next = match self.queue.recv_timeout(patience) {
            Ok(first) => self.serve(first)?,
            Err(RecvTimeoutError::Timeout) => Next::GoOn,
            Err(RecvTimeoutError::Disconnected) => Next::Stop,
        };
        if next == Next::Stop {
            self.hand_over()?;
            self.drain()?;
            self.checkpointer.finish(&mut self.shard, self.journal.end())?;
            return Ok(None);
        }
        let checkpoint_goes_on = self.advance_checkpoint()?;
        let waiting = self.hand_over()?;
        Ok(Some(match (checkpoint_goes_on, waiting) {
            (true, _) => Duration::ZERO,
            (false, true) => REDELIVERY_AFTER,
            (false, false) => IDLE_WAKE_UP,
        }))
    }

    /// Takes the next part of a checkpoint, if one is due or under way. Returns whether more can be done at once.
    fn advance_checkpoint(&mut self) -> Result<bool, ShardError> {
        if !self.checkpointer.is_due(&self.shard, self.journal.end()) {
            return self.checkpointer.advance(&mut self.shard, self.journal.end());
        }
        // It may state nothing that is not on disk.
        self.hand_over()?;
        self.drain()?;
        self.checkpointer.begin(&mut self.shard, self.journal.end());
        Ok(true)
    }

    fn drain(&mut self) -> Result<(), ShardError> {
        if self.commits.drain() { Ok(()) } else { Err(JournalError::Poisoned.into()) }
    }

    /// Serves queued commands as one batch.
    fn serve(&mut self, first: Command) -> Result<Next, ShardError> {
        let (begun, taken_at) = (Instant::now(), self.traces.now());
        self.signer.refresh();
        self.room.refresh(&self.journal);
        self.voters_seen = false;
        let mut commands = self.take(first);
        let (mut requests, mut weight) = (Vec::new(), 0_usize);
        for command in &mut commands {
            if let Command::Submit(submission, _) = command {
                weight = weight.saturating_add(submission.weight());
                requests.append(&mut submission.requests);
            }
        }
        let count = requests.len();
        let mut verified = self.verification.verify(requests, self.signer.voter_status()).into_iter();
        let mut next = Next::GoOn;
        for command in commands {
            match command {
                Command::Submit(submission, queued_at) => {
                    self.traces.observe(queued_at, taken_at);
                    let (requests, mut useful, first) = (submission.ids.len(), 0_usize, self.appended_bytes);
                    self.room.turn_to(submission.stream.peer());
                    for (id, verified) in submission.ids.into_iter().zip(verified.by_ref()) {
                        let transfer = verified.as_ref().ok().map(transfer);
                        let sender = transfer.map(Transfer::sender);
                        let is_circular = transfer.is_some_and(is_circular);
                        let before = self.appended_bytes;
                        self.request(&submission.stream, id, verified)?;
                        let bytes = self.appended_bytes.wrapping_sub(before);
                        if let (Some(sender), 1..) = (sender, bytes) {
                            self.room.spend(sender, bytes);
                            useful = useful.saturating_add(usize::from(!is_circular));
                        }
                    }
                    self.room.spend_at(submission.stream.peer(), self.appended_bytes.wrapping_sub(first));
                    submission.stream.peer().judge(useful, false);
                    submission.stream.peer().judge(requests.saturating_sub(useful), true);
                }
                Command::Credit(credits) => self.credit(&credits)?,
                Command::Acknowledge { by, number } => {
                    self.shard.acknowledge(by, number);
                    self.traces.acknowledged(by, number);
                }
                Command::Synchronize(steps, reply) => self.synchronize(&steps, reply)?,
                Command::ChainTime(time) => {
                    if let Some((newest, _)) = &mut self.chain {
                        *newest = time;
                    }
                }
                Command::VoteUnlock { account, sequence, unanimous, reply } => {
                    let knowledge = self.vote_unlock(account, sequence, unanimous)?;
                    self.batch.unlock_votes.push((reply, knowledge));
                }
                Command::Join { inheritance, after, reply } => {
                    let step = self.join(&inheritance, after)?;
                    self.batch.joins.push((reply, step));
                }
                Command::MayJoin(inheritance, reply) => drop(reply.send(self.may_join(&inheritance))),
                Command::ReadAccount(id, reply) => {
                    let account = self.told_account(&id)?;
                    self.batch.accounts.push((reply, account));
                }
                Command::ReadLedger(reply) => self.batch.ledgers.push(reply),
                Command::Stop => next = Next::Stop,
            }
        }
        if count > 0 {
            self.metrics.batch_requests.observe(count as f64);
            self.queue.observe_pace(weight, begun.elapsed());
        }
        Ok(next)
    }

    /// Takes queued commands, up to a whole batch or a command to stop.
    fn take(&self, first: Command) -> Vec<Command> {
        let mut requests = first.requests();
        let mut commands = vec![first];
        while requests < self.limits.batch_requests_max && !matches!(commands.last(), Some(Command::Stop)) {
            let Some(command) = self.queue.try_recv() else { break };
            requests = requests.saturating_add(command.requests());
            commands.push(command);
        }
        commands
    }

    /// An account as it is now, from memory or from the store. This does not load it into memory.
    ///
    /// # Errors
    /// When the store fails.
    pub fn account(&self, id: &AccountId) -> Result<Cow<'_, Account>, ShardError> {
        match self.shard.account(id) {
            Some(account) => Ok(Cow::Borrowed(account)),
            None => Ok(Cow::Owned(stored_account(&*self.store, id)?.unwrap_or_default())),
        }
    }

    /// An account as others are told of it: an order whose number it inherited a lock on is pending, too.
    fn told_account(&self, id: &AccountId) -> Result<Account, ShardError> {
        let mut account = self.account(id)?.into_owned();
        let inherited = self.shard.ledger().tenure.inherited(*id, account.next_sequence());
        account.pending = account.pending.or_else(|| inherited.first().map(|lock| lock.clone().into()));
        Ok(account)
    }

    fn request(
        &mut self,
        stream: &Arc<ClientStream>,
        id: u64,
        verified: Result<VerifiedRequest, Refusal>,
    ) -> Result<(), ShardError> {
        let answer = match verified {
            Ok(VerifiedRequest::Order(order)) => {
                let locked = self.lock(&order)?;
                let outcome = locked.as_ref().map(|()| "voted");
                self.batch.decided.extend(self.traces.decided("fastpay.order", &order.digest(), outcome));
                match locked {
                    Ok(()) => {
                        self.batch.vote(stream, id, &order);
                        return Ok(());
                    }
                    Err(refusal) => Answer::Refused(refusal),
                }
            }
            Ok(VerifiedRequest::Certificate(certificate)) => {
                self.answer_certificate(&certificate, self.standing(certificate.certificate().epoch))?
            }
            Ok(VerifiedRequest::Attested(certificate)) => {
                // The members of the newest epoch that is known here attest it. It may have ended, too.
                let attested_in = self.standing(self.signer.voter_status().epoch());
                let standing = self.standing(certificate.certificate().epoch).max(attested_in);
                self.answer_certificate(&certificate, standing)?
            }
            Err(refusal) => {
                self.metrics.invalid.inc();
                Answer::Refused(refusal)
            }
        };
        self.batch.answer(stream, id, answer);
        Ok(())
    }

    fn answer_certificate(
        &mut self,
        certificate: &VerifiedCertificate,
        standing: Standing,
    ) -> Result<Answer, ShardError> {
        let confirmed = self.confirm(certificate, standing)?;
        let outcome = confirmed.as_ref().map(|()| "confirmed");
        self.batch.decided.extend(self.traces.decided("fastpay.certificate", &certificate.digest(), outcome));
        Ok(match confirmed {
            Ok(()) => {
                let next = self.account(&certificate.transfer().sender())?.next_sequence();
                Answer::Confirmed(self.epoch(), next)
            }
            Err(refusal) => Answer::Refused(refusal),
        })
    }

    /// How far certificates of an epoch count by themselves now. Without a chain, there is one epoch.
    fn standing(&self, epoch: Epoch) -> Standing {
        let Some((time, clock)) = &self.chain else { return Standing::Counts };
        self.shard.standing(epoch, self.signer.voter_status().committees(), &time.moment(clock.now_ms()))
    }

    /// Executes a certificate.
    fn confirm(
        &mut self,
        certificate: &VerifiedCertificate,
        standing: Standing,
    ) -> Result<Result<(), Refusal>, ShardError> {
        if !std::mem::replace(&mut self.voters_seen, true) {
            self.metrics.saw_votes(&certificate.certificate().votes);
        }
        let view = self.view();
        let record = match self.decide(|shard| shard.confirm(certificate, view, standing))? {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(Ok(())),
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.report_forgotten_vote(certificate);
        self.append(&record)?;
        for (to, number) in record.forwarded() {
            self.traces.forwarded(&certificate.digest(), to, number);
        }
        self.advance(certificate.transfer().sender())?;
        Ok(Ok(()))
    }

    /// The epoch in which the shard executes now.
    fn epoch(&self) -> Epoch {
        let voter_status = self.signer.voter_status();
        let known = match voter_status.is_ahead() {
            // It has not followed the events before the newest installation.
            true => self.shard.ledger().unlocks.epoch(),
            false => voter_status.epoch(),
        };
        self.shard.epoch(known)
    }

    /// The age of the view of the chain on which the next decision rests.
    fn view(&self) -> PrimaryView {
        self.chain.as_ref().map_or(PrimaryView::Recent, |(time, clock)| time.view(clock.now_ms()))
    }

    /// Raises an alarm if a certificate that is about to be executed contains a vote of this authority that it does not
    /// remember: otherwise the account would still be locked on that order. Ignored if the memory is known to have a
    /// gap.
    fn report_forgotten_vote(&self, certificate: &VerifiedCertificate) {
        let (account, sequence) = (certificate.transfer().sender(), certificate.transfer().sequence());
        let pending = self.shard.account(&account).and_then(|account| account.pending.as_ref());
        let is_locked = pending.is_some_and(|pending| pending.digest == certificate.digest());
        let voter_status = self.signer.voter_status();
        let Certificate { epoch, votes, .. } = certificate.certificate();
        let has_own_vote = || votes.iter().any(|vote| voter_status.is_own(*epoch, &vote.authority));
        let forgotten = !is_locked && voter_status.rollback_protection().is_none() && has_own_vote();
        // Logged once; the metric counts all.
        if forgotten && self.metrics.forgotten_votes.inc() == 0 {
            let digest = certificate.digest();
            tracing::error!(%account, %sequence, %digest, "a certificate holds a vote of this authority that it does not remember: its folder is an older copy, or its keys are in use elsewhere; stop it and see the run-book");
        }
    }

    /// Locks the sender's account on an order, if this authority votes and has room for the lock. A remembered vote is
    /// given again in any case.
    fn lock(&mut self, order: &VerifiedOrder) -> Result<Result<(), Refusal>, ShardError> {
        if let Some(refusal) = self.signer.refusal() {
            return Ok(Err(refusal));
        }
        let (sender, sequence) = (order.transfer().sender(), order.transfer().sequence());
        let protection = self.signer.voter_status().rollback_protection().cloned();
        let floor = protection.as_ref().map_or(VoteFloor::Zero, |protection| protection.floor(&sender));
        let view = self.view();
        let epoch = self.signer.voter_status().epoch();
        let decided = self.decide(|shard| shard.lock(order, epoch, floor, view))?;
        if let (Some(protection), Err(Refusal::CatchingUp(None))) = (protection, &decided) {
            protection.ask(sender, sequence);
        }
        let record = match decided {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(Ok(())),
            Err(refusal) => return Ok(Err(refusal)),
        };
        if let Some(refusal) = self.room.refusal(&sender, &self.journal) {
            self.metrics.refused_lock(&refusal);
            self.forgo();
            return Ok(Err(refusal));
        }
        self.append(&record)?;
        Ok(Ok(()))
    }

    fn credit(&mut self, credits: &[CrossShardCredit]) -> Result<(), ShardError> {
        // All credits come from the same shard.
        let mut acknowledged = None;
        for credit in credits {
            if let Err(refusal) = self.decide_and_apply(|shard| shard.credit(credit))? {
                // A gap: an earlier message was lost. It is sent again, and this credit after it.
                tracing::debug!(from = %credit.from, number = credit.number, %refusal, "credit refused");
                break;
            }
            acknowledged = Some(credit.from);
        }
        if let Some(from) = acknowledged {
            let number = self.shard.ledger().inbox(from);
            let message = self.deliveries.acknowledgement(self.shard.id(), from, number);
            self.batch.messages.extend(message);
        }
        Ok(())
    }

    fn synchronize(&mut self, steps: &[OrderStep], reply: oneshot::Sender<TransactionIndex>) -> Result<(), ShardError> {
        for step in steps {
            let followed = match step {
                OrderStep::Deposit(order) => self.decide_and_apply(|shard| shard.synchronize(order))?,
                OrderStep::Unlock(event) => self.follow_unlock(event)?,
                OrderStep::Installation(installation) => {
                    let followed = self.decide_and_apply(|shard| shard.follow_installation(installation))?;
                    self.close()?;
                    followed
                }
            };
            if let Err(refusal) = followed {
                // The answer tells the follower where to resume.
                tracing::warn!(up_to = %step.up_to(), %refusal, "a step along the contract's order is refused");
                break;
            }
        }
        self.batch.synchronized.push((reply, self.shard.ledger().synchronized));
        Ok(())
    }

    /// Closes the epoch that has ended here, before anything else is decided.
    fn close(&mut self) -> Result<(), ShardError> {
        if let Some(epoch) = self.shard.to_close() {
            self.decide_and_apply(|shard| shard.close(epoch))?.expect("an epoch that has ended can be closed");
            tracing::info!(%epoch, "closed an epoch: this shard gives no vote under it any more");
        }
        Ok(())
    }

    /// Applies the record that a rule decides on.
    fn decide_and_apply(&mut self, rule: impl Fn(&Shard) -> Decision) -> Result<Result<(), Refusal>, ShardError> {
        match self.decide(rule)? {
            Ok(Some(record)) => self.append(&record)?,
            Ok(None) => {}
            Err(refusal) => return Ok(Err(refusal)),
        }
        Ok(Ok(()))
    }

    /// Decides by a rule, with the accounts that it needs in memory. Returns the record, for the caller to append or
    /// forgo; `None` if nothing is to be done.
    fn decide(
        &mut self,
        rule: impl Fn(&Shard) -> Decision,
    ) -> Result<Result<Option<Box<Record>>, Refusal>, ShardError> {
        let decided = loop {
            match rule(&self.shard) {
                Decision::Load(accounts) => self.load(accounts)?,
                Decision::Commit(record) => return Ok(Ok(Some(record))),
                Decision::CommitFirst(record) => self.append(&record)?,
                Decision::Already => break Ok(None),
                Decision::Refuse(rejection) => {
                    self.metrics.refused.inc();
                    break Err(rejection.into());
                }
            }
        };
        self.forgo();
        Ok(decided)
    }

    /// Ends a decision without a record: accounts that were loaded only for it are unloaded.
    fn forgo(&mut self) {
        self.shard.release();
        for id in self.loaded.drain(..) {
            self.shard.unload(&id);
        }
    }

    /// Loads the accounts of a decision into memory together, and notes which were not there. If there is no room, it
    /// waits until a checkpoint is written: the disk is too slow for the rate of changes.
    fn load(&mut self, accounts: Vec<AccountId>) -> Result<(), ShardError> {
        while !self.shard.has_room(accounts.len()) {
            // A checkpoint may contain only what is on disk.
            self.hand_over()?;
            self.drain()?;
            self.checkpointer.make_room(&mut self.shard, self.journal.end())?;
        }
        for id in accounts {
            let mut stored = None;
            if self.shard.account(&id).is_none() {
                stored = stored_account(&*self.store, &id)?;
                self.loaded.push(id);
            }
            self.shard.load(id, stored);
        }
        Ok(())
    }

    fn append(&mut self, record: &Record) -> Result<(), ShardError> {
        self.encoded.clear();
        borsh::to_writer(&mut self.encoded, record).expect("writing to memory does not fail");
        let position = match self.journal.append(&self.encoded) {
            Err(JournalError::BatchFull { .. }) => {
                self.hand_over()?;
                self.journal.append(&self.encoded)?
            }
            position => position?,
        };
        self.shard.apply(record, position);
        self.loaded.clear();
        self.queue.subscriptions().of(record, &mut self.batch.alarms);
        // For a forwarded credit, the receiving shard writes a record, too.
        let writers = 1 + u64::from(!record.forwarded().is_empty());
        self.appended_bytes = self.appended_bytes.wrapping_add(writers.saturating_mul(self.encoded.len() as u64));
        Ok(())
    }

    /// Hands the batch over to the commit stage, which sends its answers once it is on disk. Returns whether credits
    /// wait to be acknowledged.
    fn hand_over(&mut self) -> Result<bool, ShardError> {
        let ledger = self.shard.ledger();
        let waiting = self.deliveries.deliver(ledger, Instant::now(), &mut self.batch.messages);
        let mut batch = std::mem::take(&mut self.batch);
        batch.frame = self.journal.seal()?;
        if batch.is_empty() {
            return Ok(waiting);
        }
        if !batch.ledgers.is_empty() {
            // The ledger may hold many credits under way, so copy it once for all requests.
            batch.ledger = Some(Arc::new(ledger.clone()));
        }
        self.signer.vote(&mut batch, &mut self.verification);
        self.metrics.observe(&self.shard, self.journal.end());
        let batch = UncommittedBatch::new(batch, self.metrics.clone());
        if self.commits.hand_over(batch) { Ok(waiting) } else { Err(JournalError::Poisoned.into()) }
    }
}
