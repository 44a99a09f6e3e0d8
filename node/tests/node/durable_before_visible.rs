//! A shard says something only once it is on disk, with all that came before: each thing that a shard can say, and
//! each checkpoint. The shard is stepped, so "decided and not yet on disk" is a state that lasts. The list of all such
//! pairs is in docs/PROTOCOL.md, "Durable before visible".

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fastpay_core::handover::{Closing, Inheritance, JoinError, JoinPosition, ReportedEntry};
use fastpay_core::private::NoProofs;
use fastpay_core::{
    AccountId, CrossShardCredit, Digest, Epoch, Forwarded, Installation, JournalPosition, PendingOrder, PrimaryAddress,
    Record, Request, SequenceNumber, ShardId, SynchronizationOrder, TransactionIndex, UnlockEvent, UnlockEventKind,
};
use fastpay_node::authority::metrics::Metrics;
use fastpay_node::authority::shard::{
    ADDRESS_JOURNAL_BYTES_PER_DAY, Answer, Answers, ChainTime, ClientStream, Command, HistoryReader, JoinStep, Joins,
    OrderStep, RecoveredShard, ShardError, ShardHandle, ShardLimits, ShardQueue, ShardSettings, ShardStorage,
    Submission, UnlockKnowledge, address_budgets, recover_on,
};
use fastpay_node::authority::storage::{
    Checkpoint, CheckpointError, Checkpoints, Journal, JournalOptions, JournalWrite, StoreKey,
};
use fastpay_node::authority::voter_status::VoterStatus;
use fastpay_program::Clock;
use fastpay_rpc::Refusal;
use fastpay_testkit::{MemoryDisk, SteppedShard, TestAccount, TestCommittee, payment, redemption};
use tokio::sync::{mpsc, oneshot, watch};

use crate::handover::installations;
use crate::scene::{FORGETFUL, account_in, deposits_after, eventually, layout, voter_status};

/// Checkpoints in memory. A write fails the test where the journal does not have all of it on disk.
#[derive(Default)]
struct Store {
    newest: Mutex<Option<Checkpoint>>,
    accounts: Mutex<BTreeMap<StoreKey, Vec<u8>>>,
    journal: OnceLock<HistoryReader>,
    gate: Mutex<Option<Gate>>,
}

/// Blocks one write: reports that it has begun, and waits for permission to continue.
struct Gate {
    begun: SyncSender<()>,
    go_on: Receiver<()>,
}

impl Checkpoints for Store {
    fn latest(&self) -> Result<Option<Checkpoint>, CheckpointError> {
        Ok(self.newest.lock().unwrap().clone())
    }

    fn account(&self, key: &StoreKey) -> Result<Option<Vec<u8>>, CheckpointError> {
        Ok(self.accounts.lock().unwrap().get(key).cloned())
    }

    fn write(
        &self,
        position: JournalPosition,
        header: Vec<u8>,
        accounts: Vec<(StoreKey, Vec<u8>)>,
    ) -> Result<(), CheckpointError> {
        let end = self.journal.get().unwrap().end();
        assert!(position <= end, "a checkpoint states {position}, and the journal on disk ends at {end}");
        if let Some(gate) = self.gate.lock().unwrap().take() {
            gate.begun.send(()).unwrap();
            gate.go_on.recv().unwrap();
        }
        self.accounts.lock().unwrap().extend(accounts);
        *self.newest.lock().unwrap() = Some(Checkpoint { position, header });
        Ok(())
    }

    /// A write that is held up has a thread of its own.
    fn is_slow(&self) -> bool {
        self.gate.lock().unwrap().is_some()
    }
}

/// The first of an authority's two shards, of which the second only takes messages.
struct Stage {
    committee: TestCommittee,
    disk: MemoryDisk,
    store: Arc<Store>,
    shard: SteppedShard,
    handle: ShardHandle,
    sibling: ShardQueue,
    journal: HistoryReader,
    deposits: TransactionIndex,
    _voter_status: watch::Sender<Arc<VoterStatus>>,
}

/// An account of the first shard that has funds at the beginning.
fn payer(rank: usize) -> TestAccount {
    account_in(layout(2), 0, rank)
}

/// An account of the second shard.
fn stranger() -> AccountId {
    account_in(layout(2), 1, 0).id()
}

/// The event after `after`, about a number of the first account.
fn unlock_event(after: TransactionIndex, sequence: u64, kind: UnlockEventKind) -> UnlockEvent {
    let index = TransactionIndex(after.0 + 1);
    UnlockEvent { after, index, account: payer(0).id(), sequence: SequenceNumber(sequence), kind }
}

/// No vote is given under epoch 0 any more.
const CLOSED: Record = Record::Closed { epoch: Epoch(0) };

/// The event after `after`, which begins epoch 1.
fn installation(after: TransactionIndex) -> Installation {
    let (index, epoch) = (TransactionIndex(after.0 + 1), Epoch(1));
    Installation { after, index, epoch, compromised_since: epoch, voidable_at: u64::MAX }
}

impl Stage {
    /// A shard where `payers` accounts have 100 units each.
    fn new(limits: ShardLimits, payers: usize) -> Self {
        let mut stage = Self::after(limits, &[]);
        for rank in 0..payers {
            drop(stage.deposit(payer(rank).id()));
        }
        // Also the checkpoint that follows.
        for _ in 0..payers + 4 {
            stage.turn();
            stage.commit().unwrap();
        }
        stage
    }

    /// A shard that starts with a journal of these records.
    fn after(limits: ShardLimits, records: &[Record]) -> Self {
        let (disk, store, path) = (MemoryDisk::new(), Arc::new(Store::default()), PathBuf::from("journal"));
        let journal_options = JournalOptions::default();
        let mut journal = Journal::create_on(Arc::new(disk.clone()), &path, journal_options).unwrap();
        for record in records {
            journal.append(&borsh::to_vec(record).unwrap()).unwrap();
        }
        journal.commit().unwrap();
        drop(journal);
        let storage =
            ShardStorage { disk: Arc::new(disk.clone()), journal: path, journal_options, checkpoints: store.clone() };
        let recovered: RecoveredShard = recover_on(storage, ShardId(0), layout(2), true, &limits).unwrap();
        let journal = recovered.history();
        assert!(store.journal.set(journal.clone()).is_ok());
        let committee = TestCommittee::new(4);
        let voter = watch::Sender::new(Arc::new(voter_status(&[&committee])));
        let metrics = Metrics::new(2).shards;
        let queue = |id: usize| ShardHandle::new(&limits, metrics[id].clone());
        let ((handle, own), (other, sibling)) = (queue(0), queue(1));
        let settings = ShardSettings {
            domain: committee.domain,
            voter_status: voter.subscribe(),
            limits,
            addresses: address_budgets(ADDRESS_JOURNAL_BYTES_PER_DAY),
            chain: Some((ChainTime { block_time: 1 << 40, unlock_window: 7 * 86_400 }, Clock::at(0))),
        };
        let shard = SteppedShard::new(settings, recovered, own, BTreeMap::from([(ShardId(1), other)]));
        let deposits = TransactionIndex(records.len() as u64);
        Self { committee, disk, store, shard, handle, sibling, journal, deposits, _voter_status: voter }
    }

    fn send(&self, command: Command) {
        self.handle.try_send(command).unwrap();
    }

    fn ask(&self, request: Request) -> mpsc::Receiver<Answers> {
        let (stream, answers) = ClientStream::new(1);
        self.send(Command::Submit(Submission { stream, ids: vec![0], requests: vec![request] }, None));
        answers
    }

    /// Asks for a vote on a payment of this account to another one of the first shard.
    fn order(&self, from: &TestAccount, amount: u128) -> mpsc::Receiver<Answers> {
        let transfer = payment(from.id(), payer(1).id(), amount, 0);
        self.ask(Request::Order(from.sign(&self.committee.domain, transfer)))
    }

    /// Brings the certificate of a transfer.
    fn certificate(&self, transfer: impl Into<fastpay_core::Transfer>) -> mpsc::Receiver<Answers> {
        let order = payer(0).sign(&self.committee.domain, transfer);
        self.ask(Request::Certificate(self.committee.certificate(&order)))
    }

    fn deposit(&mut self, recipient: AccountId) -> oneshot::Receiver<TransactionIndex> {
        let (reply, answer) = oneshot::channel();
        let deposit = deposits_after(self.deposits, &[(recipient, 100)]).remove(0);
        let order = SynchronizationOrder { after: self.deposits, up_to: deposit.index, deposit: Some(deposit) };
        self.deposits = order.up_to;
        self.send(Command::Synchronize(vec![OrderStep::Deposit(order)], reply));
        answer
    }

    /// An event of the contract about a number of the first account.
    fn unlock(&mut self, sequence: u64, kind: UnlockEventKind) {
        let event = unlock_event(self.deposits, sequence, kind);
        self.deposits = event.index;
        self.send(Command::Synchronize(vec![OrderStep::Unlock(event)], oneshot::channel().0));
    }

    /// The contract installs the committee of epoch 1.
    fn install(&mut self) -> oneshot::Receiver<TransactionIndex> {
        let (reply, answer) = oneshot::channel();
        let installation = installation(self.deposits);
        self.deposits = installation.index;
        self.send(Command::Synchronize(vec![OrderStep::Installation(installation)], reply));
        answer
    }

    /// Whether the journal on disk says that epoch 0 is closed.
    fn is_closed_on_disk(&self) -> bool {
        self.records().any(|record| record == CLOSED)
    }

    /// The records on disk.
    fn records(&self) -> impl Iterator<Item = Record> {
        self.journal.records(JournalPosition::default()).map(|entry| entry.unwrap().1)
    }

    /// What a quorum's Closings of epoch 0 report once the next committee is installed: the locks of so many accounts
    /// of the first shard.
    fn inheritance(&self, accounts: usize, locks_each: u64) -> Arc<Inheritance> {
        self.inheritance_of(ShardId(0), accounts, locks_each)
    }

    fn inheritance_of(&self, shard: ShardId, accounts: usize, locks_each: u64) -> Arc<Inheritance> {
        let (committee, domain) = (&self.committee, self.committee.domain);
        let owners = (0..).map(TestAccount::numbered).filter(|owner| layout(2).shard_of(&owner.id()) == shard);
        let lock = |owner: &TestAccount, sequence| {
            let order = owner.sign(&domain, payment(owner.id(), stranger(), 1, sequence));
            ReportedEntry::lock(&PendingOrder { digest: domain.transfer_digest(&order.transfer), order: order.into() })
        };
        let locks = |owner: TestAccount| (0..locks_each).map(|sequence| lock(&owner, sequence)).collect::<Vec<_>>();
        let mut entries: Vec<_> = owners.take(accounts).flat_map(locks).collect();
        entries.sort_by_key(|entry| *entry.entry());
        let up_to = TransactionIndex(self.deposits.0 + 1);
        let closing = Closing::new(Epoch(0), up_to, Digest::ZERO, entries.iter().map(ReportedEntry::entry));
        let installations = installations(&[committee.clone(), committee.rotated()]);
        let verified = committee.keys[1..].iter().map(|keys| {
            let signed = closing.sign(keys, &domain);
            signed
                .verify(entries.clone(), (&domain, Epoch(0)), (&installations, up_to), &NoProofs, &mut rand::rng())
                .unwrap()
        });
        Arc::new(Inheritance::new(&committee.committee, verified.collect(), |_| true).unwrap())
    }

    fn join(&self, inheritance: &Arc<Inheritance>, after: JoinPosition) -> oneshot::Receiver<Joins> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Join { inheritance: inheritance.clone(), after, reply });
        answer
    }

    /// Asks what may be signed about a number of the first account.
    fn vote_unlock(&self, sequence: u64) -> oneshot::Receiver<Result<UnlockKnowledge, Refusal>> {
        let (reply, answer) = oneshot::channel();
        let (account, sequence) = (payer(0).id(), SequenceNumber(sequence));
        self.send(Command::VoteUnlock { account, sequence, unanimous: true, reply });
        answer
    }

    /// Decides what is queued.
    fn turn(&mut self) {
        assert!(self.shard.turn().unwrap().is_some());
    }

    /// Commits the decisions to disk, and sends the answers.
    fn commit(&mut self) -> Result<(), ShardError> {
        while self.shard.batches_waiting() > 0 {
            self.shard.commit()?;
        }
        Ok(())
    }

    fn said_to_sibling(&self, what: fn(&Command) -> bool) -> bool {
        std::iter::from_fn(|| self.sibling.try_recv()).any(|command| what(&command))
    }
}

/// Whether a message was received since the last check.
type IsVisible = Box<dyn FnMut(&Stage) -> bool>;

/// A trigger that makes a shard send a message.
type Trigger = fn(&mut Stage) -> IsVisible;

/// Every message that a shard sends, with its trigger.
const TRIGGERS: [(&str, Trigger); 14] = [
    ("a vote", |stage| {
        let mut answer = stage.order(&payer(0), 1);
        Box::new(move |_| answer.try_recv().is_ok())
    }),
    ("a refusal that tells of a vote", |stage| {
        let _vote = stage.order(&payer(0), 1);
        let mut refusal = stage.order(&payer(0), 2);
        Box::new(move |_| refusal.try_recv().is_ok())
    }),
    ("a confirmation", |stage| {
        let mut answer = stage.certificate(payment(payer(0).id(), payer(1).id(), 1, 0));
        Box::new(move |_| answer.try_recv().is_ok())
    }),
    ("an account", |stage| {
        let _vote = stage.order(&payer(0), 1);
        let (reply, mut answer) = oneshot::channel();
        stage.send(Command::ReadAccount(payer(0).id(), reply));
        Box::new(move |_| answer.try_recv().is_ok())
    }),
    ("the list of redemptions", |stage| {
        let _confirmed = stage.certificate(redemption(payer(0).id(), PrimaryAddress::repeat_byte(1), 1, 0));
        let (reply, mut answer) = oneshot::channel();
        stage.send(Command::ReadLedger(reply));
        Box::new(move |_| answer.try_recv().is_ok_and(|ledger| ledger.redemptions.count() == 1))
    }),
    ("how far deposits are credited", |stage| {
        let mut answer = stage.deposit(payer(0).id());
        Box::new(move |_| answer.try_recv().is_ok())
    }),
    ("that an account has changed", |stage| {
        let mut subscription = stage.handle.subscribe(payer(1).id());
        let _confirmed = stage.certificate(payment(payer(0).id(), payer(1).id(), 1, 0));
        Box::new(move |_| {
            let changed = std::pin::pin!(subscription.changed());
            changed.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
        })
    }),
    ("a credit for another shard", |stage| {
        let _confirmed = stage.certificate(payment(payer(0).id(), stranger(), 1, 0));
        Box::new(|stage| stage.said_to_sibling(|command| matches!(command, Command::Credit(_))))
    }),
    ("the acknowledgement of a credit", |stage| {
        let payment = payment(stranger(), payer(0).id(), 1, 0);
        stage.send(Command::Credit(vec![CrossShardCredit {
            from: ShardId(1),
            number: 1,
            forwarded: Forwarded::Payment(payment),
        }]));
        Box::new(|stage| stage.said_to_sibling(|command| matches!(command, Command::Acknowledge { number: 1, .. })))
    }),
    ("that a number may be voted void", |stage| {
        stage.unlock(0, UnlockEventKind::Requested(u64::MAX));
        let mut answer = stage.vote_unlock(0);
        Box::new(move |_| answer.try_recv().is_ok_and(|known| known == Ok(UnlockKnowledge::VoidVoted(Epoch(0)))))
    }),
    ("that a certificate of a frozen number is kept", |stage| {
        stage.unlock(0, UnlockEventKind::Requested(u64::MAX));
        let _frozen = stage.certificate(payment(payer(0).id(), payer(1).id(), 1, 0));
        let mut answer = stage.vote_unlock(0);
        Box::new(move |_| answer.try_recv().is_ok_and(|known| matches!(known, Ok(UnlockKnowledge::Seen(_)))))
    }),
    ("that the installation of the next epoch is followed, and this one closed", |stage| {
        let mut followed = stage.install();
        Box::new(move |stage| followed.try_recv().is_ok() && stage.is_closed_on_disk())
    }),
    ("that the next epoch is joined, with what was inherited", |stage| {
        let inheritance = stage.inheritance(1, 1);
        let _followed = stage.install();
        let mut joined = stage.join(&inheritance, JoinPosition::default());
        Box::new(move |_| joined.try_recv() == Ok(Ok(JoinStep::Joined)))
    }),
    ("a record, to whoever reads the journal", |stage| {
        let _vote = stage.order(&payer(0), 1);
        let before = stage.journal.end();
        Box::new(move |stage| stage.journal.end() > before)
    }),
];

#[test]
fn each_message_of_a_shard_is_on_disk_before() {
    for (what, trigger) in TRIGGERS {
        let mut stage = Stage::new(ShardLimits::default(), 2);
        let mut is_visible = trigger(&mut stage);
        stage.turn();
        assert!(stage.shard.batches_waiting() > 0, "nothing was decided that says {what}");
        assert!(!is_visible(&stage), "{what} is visible before its batch is committed");
        stage.disk.set_failing_syncs(true);
        assert!(matches!(stage.commit(), Err(ShardError::Journal(_))));
        assert!(!is_visible(&stage), "{what} is visible, and its sync failed");

        let mut stage = Stage::new(ShardLimits::default(), 2);
        let mut is_visible = trigger(&mut stage);
        stage.turn();
        stage.commit().unwrap();
        assert!(is_visible(&stage), "{what} never becomes visible");
    }
}

/// The single answer that a client got.
fn answer(mut answers: mpsc::Receiver<Answers>) -> Answer {
    let mut answers = answers.try_recv().unwrap();
    assert_eq!(answers.len(), 1);
    answers.remove(0).1
}

#[test]
fn an_installation_in_a_batch_ends_the_votes_of_the_epoch_and_what_is_executed_after_it_is_of_the_next_one() {
    let mut stage = Stage::new(ShardLimits::default(), 2);
    stage.unlock(1, UnlockEventKind::Requested(u64::MAX));
    let certificate = |stage: &Stage, number| stage.certificate(payment(payer(0).id(), payer(1).id(), 1, number));
    let (vote, executed) = (stage.order(&payer(0), 1), certificate(&stage, 0));
    let kept = certificate(&stage, 1);
    let mut attested = stage.vote_unlock(1);
    let _followed = stage.install();
    let (no_vote, again, mut not_attested) = (stage.order(&payer(1), 1), certificate(&stage, 0), stage.vote_unlock(1));
    stage.turn();
    stage.commit().unwrap();
    assert!(matches!(answer(vote), Answer::Vote(Epoch(0), _)));
    assert_eq!(answer(executed), Answer::Confirmed(Epoch(0), SequenceNumber(1)));
    assert_eq!(answer(kept), Answer::Refused(Refusal::Frozen(SequenceNumber(1))));
    assert!(matches!(attested.try_recv(), Ok(Ok(UnlockKnowledge::Seen(_)))));
    // The committee of epoch 1 is not known yet.
    assert_eq!(answer(no_vote), Answer::Refused(Refusal::UnknownEpoch(Epoch(1))));
    assert_eq!(answer(again), Answer::Confirmed(Epoch(1), SequenceNumber(1)));
    assert_eq!(not_attested.try_recv(), Ok(Err(Refusal::UnknownEpoch(Epoch(1)))));
}

#[test]
fn an_epoch_that_ended_in_a_journal_is_closed_before_the_first_command() {
    // A node ended between the two records; earlier releases wrote only the first.
    let installed = Record::Installation(installation(TransactionIndex(0)));
    for (records, is_closed) in [(vec![installed.clone()], false), (vec![installed, CLOSED], true)] {
        let mut stage = Stage::after(ShardLimits::default(), &records);
        assert_eq!(stage.is_closed_on_disk(), is_closed);
        let vote = stage.order(&payer(0), 1);
        stage.turn();
        assert_eq!(stage.is_closed_on_disk(), is_closed);
        stage.commit().unwrap();
        assert_eq!(answer(vote), Answer::Refused(Refusal::UnknownEpoch(Epoch(1))));
        let journal = stage.journal.records(JournalPosition::default()).map(|entry| entry.unwrap().1);
        assert_eq!(journal.filter(|record| *record == CLOSED).count(), 1);
    }
}

/// A part of a join, on disk.
fn join_part(stage: &mut Stage, inheritance: &Arc<Inheritance>, after: JoinPosition) -> Joins {
    let mut answer = stage.join(inheritance, after);
    stage.turn();
    stage.commit().unwrap();
    answer.try_recv().unwrap()
}

fn inherited(stage: &Stage) -> usize {
    stage.shard.shard().ledger().tenure.iter().count()
}

#[test]
fn a_shard_joins_part_by_part_and_holds_no_more_accounts_than_it_has_room_for() {
    const LOCKS: usize = 300;
    let mut stage = Stage::new(ShardLimits { accounts_in_memory_max: 16, ..ShardLimits::default() }, 2);
    let inheritance = stage.inheritance(LOCKS, 1);
    let mut after = JoinPosition::default();
    let (up_to, synchronized) = (inheritance.up_to(), stage.deposits);
    assert_eq!(join_part(&mut stage, &inheritance, after), Err(JoinError::Behind { up_to, synchronized }));
    let _followed = stage.install();
    for part in 1..=2 {
        let Ok(JoinStep::UpTo(position)) = join_part(&mut stage, &inheritance, after) else {
            panic!("part {part} is the last one")
        };
        assert_ne!(position, after);
        after = position;
        // A lock and its account.
        assert_eq!((inherited(&stage), stage.shard.shard().ledger().tenure.joined()), (part * 128, None));
    }
    assert_eq!(join_part(&mut stage, &inheritance, after), Ok(JoinStep::Joined));
    let again = join_part(&mut stage, &inheritance, JoinPosition::default());
    assert_eq!(again, Ok(JoinStep::Joined), "once is enough");
    assert_eq!(inherited(&stage), LOCKS);
    assert_eq!(stage.records().filter(|record| *record == Record::Joined { epoch: Epoch(1) }).count(), 1);
    assert_eq!(stage.records().filter(|record| matches!(record, Record::Inherited { .. })).count(), LOCKS);
}

#[test]
fn a_part_of_a_join_ends_within_an_account_and_the_next_one_goes_on_behind_it() {
    let [mut stage, mut other] = [0, 1].map(|_| Stage::new(ShardLimits::default(), 2));
    let inheritance = stage.inheritance(1, 600);
    let _followed = [stage.install(), other.install()];
    let mut after = JoinPosition::default();
    for part in 1..=2 {
        let Ok(JoinStep::UpTo(position)) = join_part(&mut stage, &inheritance, after) else {
            panic!("part {part} is the last one")
        };
        after = position;
        assert_eq!(inherited(&stage), part * 256);
    }
    assert_eq!(join_part(&mut stage, &inheritance, after), Ok(JoinStep::Joined));
    assert_eq!(inherited(&stage), 600);
    // The locks before are not passed again: a shard that has none of them does not take them over.
    assert_eq!(join_part(&mut other, &inheritance, after), Ok(JoinStep::Joined));
    assert_eq!(inherited(&other), 600 - 512);
}

#[test]
fn accounts_of_other_shards_are_passed_part_by_part() {
    let mut stage = Stage::new(ShardLimits::default(), 2);
    let inheritance = stage.inheritance_of(ShardId(1), 300, 1);
    let _followed = stage.install();
    let Ok(JoinStep::UpTo(after)) = join_part(&mut stage, &inheritance, JoinPosition::default()) else {
        panic!("all are passed in one part")
    };
    assert_eq!(join_part(&mut stage, &inheritance, after), Ok(JoinStep::Joined));
    assert_eq!(inherited(&stage), 0);
}

#[test]
fn a_checkpoint_states_nothing_that_is_not_on_disk() {
    let never = ShardLimits { checkpoint_journal_bytes: u64::MAX, checkpoint_interval: Duration::MAX, ..FORGETFUL };
    let position = |stage: &Stage| stage.store.latest().unwrap().unwrap_or_else(|| panic!("no checkpoint")).position;

    // It is due.
    let mut stage = Stage::new(ShardLimits { accounts_in_memory_max: 1_000, ..FORGETFUL }, 3);
    let before = stage.journal.end();
    let _votes: Vec<_> = (0..3).map(|rank| stage.order(&payer(rank), 1)).collect();
    (0..8).for_each(|_| stage.turn());
    assert!(position(&stage) > before);

    // There is no room for another account before it is written.
    let mut stage = Stage::new(ShardLimits { accounts_in_memory_max: 4, ..never }, 8);
    let before = stage.journal.end();
    let _votes: Vec<_> = (0..8).map(|rank| stage.order(&payer(rank), 1)).collect();
    stage.turn();
    assert!(position(&stage) > before);

    // The shard ends.
    let mut stage = Stage::new(ShardLimits { accounts_in_memory_max: 1_000, ..never }, 3);
    let before = stage.journal.end();
    let _vote = stage.order(&payer(0), 1);
    stage.send(Command::Stop);
    assert!(stage.shard.turn().unwrap().is_none());
    assert!(position(&stage) > before);
}

/// What follows from an event is in a batch of its own where the first was full, and a checkpoint may include an event
/// and not what follows.
#[test]
fn a_shard_that_ended_between_an_event_and_what_follows_from_it_goes_on_when_it_starts() {
    let (asked, voided) = (UnlockEventKind::Requested(0), UnlockEventKind::Voided);
    let records = [unlock_event(TransactionIndex(0), 0, asked), unlock_event(TransactionIndex(1), 0, voided)];
    let mut stage = Stage::after(ShardLimits::default(), &records.map(Record::Unlock));
    assert_eq!(stage.shard.account(&payer(0).id()).unwrap().next_sequence(), SequenceNumber(0));
    stage.turn();
    stage.commit().unwrap();
    assert_eq!(stage.shard.account(&payer(0).id()).unwrap().next_sequence(), SequenceNumber(1));
}

#[test]
fn an_account_leaves_memory_only_once_its_checkpoint_is_written() {
    let mut stage = Stage::new(ShardLimits { accounts_in_memory_max: 4, ..FORGETFUL }, 4);
    let ((begun, has_begun), (end, go_on)) = (sync_channel(0), sync_channel(0));
    *stage.store.gate.lock().unwrap() = Some(Gate { begun, go_on });
    let _votes: Vec<_> = (0..4).map(|rank| stage.order(&payer(rank), 1)).collect();
    (0..8).for_each(|_| stage.turn());
    has_begun.recv().unwrap();
    // All accounts in memory are newer than the store: none may make room for another one, and forget its lock.
    assert!(!stage.shard.shard().has_room(2));
    end.send(()).unwrap();
    eventually("the checkpoint is finished", || {
        stage.turn();
        stage.shard.shard().has_room(2)
    });
}
