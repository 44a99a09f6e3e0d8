//! One authority's shards on threads, and what a test asks of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fastpay_core::{
    Account, AccountId, Amount, Asset, Certificate, Committees, Deposit, Epoch, EpochEnd, Request, ShardId,
    ShardLayout, ShardLedger, TransactionIndex, TransferOrder, Vote,
};
use fastpay_node::authority::deposit_sink::DepositSink;
use fastpay_node::authority::metrics::Metrics;
use fastpay_node::authority::shard::{
    self, ADDRESS_JOURNAL_BYTES_PER_DAY, AddressBudgets, Answer, Answers, AppliedCredits, ChainTime, ClientReputation,
    ClientStream, Command, HistoryReader, RecoveredShard, ShardError, ShardHandle, ShardLimits, ShardQueue,
    ShardSettings, ShardStorage, Submission, address_budgets,
};
use fastpay_node::authority::storage::{DataFolder, FolderIdentity, ShardFolders};
use fastpay_node::authority::voter_status::{Remembered, VoterStatus};
use fastpay_program::Clock;
use fastpay_rpc::Refusal;
use fastpay_telemetry::Tracer;
use fastpay_testkit::{MemoryDisk, TestAccount, TestCommittee};
use tokio::sync::{mpsc, oneshot, watch};

/// Nothing in these tests takes this long, however busy the machine is: some threads have the lowest priority.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Checkpoints all the time, account by account, and almost nothing stays in memory.
pub const FORGETFUL: ShardLimits = ShardLimits {
    queue_requests_max: 8_192,
    batch_requests_max: 512,
    checkpoint_journal_bytes: 1,
    checkpoint_interval: Duration::ZERO,
    checkpoint_slice_accounts: 1,
    accounts_in_memory_max: 4,
    disk_reserve_bytes: 0,
    account_journal_bytes_per_day: std::num::NonZeroU64::MAX,
};

/// Waits until `done`, or fails.
#[track_caller]
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The same without blocking the runtime.
pub async fn eventually_async<F: Future<Output = bool>>(what: &str, mut done: impl FnMut() -> F) {
    let deadline = Instant::now() + PATIENCE;
    while !done().await {
        assert!(Instant::now() < deadline, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub fn layout(shards: u32) -> ShardLayout {
    ShardLayout::new(shards.try_into().unwrap())
}

/// A pending answer.
pub struct Pending(mpsc::Receiver<Answers>);

impl Pending {
    pub fn is_unanswered(&mut self) -> bool {
        self.0.try_recv() == Err(mpsc::error::TryRecvError::Empty)
    }

    /// The answer, or `None` if the shard ended without one.
    pub fn wait(mut self) -> Option<Answer> {
        let mut answer = None;
        eventually("an answer", || match self.0.try_recv() {
            Ok(given) => {
                answer = given.into_iter().map(|(_, answer)| answer).next();
                true
            }
            Err(mpsc::error::TryRecvError::Empty) => false,
            Err(mpsc::error::TryRecvError::Disconnected) => true,
        });
        answer
    }
}

/// A shard that has ended answers nothing, which the receiver of the answer sees.
fn queue(shard: &ShardHandle, command: Command) {
    let sent = shard.try_send(command);
    assert!(!matches!(sent, Err(std::sync::mpsc::TrySendError::Full(_))), "the queue is full");
}

/// Shards that are set up and whose threads are perhaps not running yet.
pub struct Shards {
    pub committee: TestCommittee,
    /// Who the authority is, for all its parts; a test may change it.
    pub voter_status: watch::Sender<Arc<VoterStatus>>,
    pub layout: ShardLayout,
    pub handles: BTreeMap<ShardId, ShardHandle>,
    pub histories: Vec<HistoryReader>,
    pub metrics: Arc<Metrics>,
    pub folder: PathBuf,
    /// The number of records that each shard replayed.
    pub replayed: Vec<u64>,
    limits: ShardLimits,
    /// The view of the chain that the threads start with; none without a Primary.
    pub chain: Option<(ChainTime, Clock)>,
    /// The bytes that each address has written.
    pub addresses: AddressBudgets,
    idle: Vec<(RecoveredShard, ShardQueue)>,
    threads: Vec<JoinHandle<Result<(), ShardError>>>,
}

/// The voter status of the first member of the first committee, which has joined the newest of `committees` with its new
/// keys. The epochs before ended lately.
pub fn voter_status(committees: &[&TestCommittee]) -> VoterStatus {
    voter_status_with(committees, EpochEnd::new(u64::MAX, 0))
}

/// The same, where epochs have ended so.
pub fn voter_status_with(committees: &[&TestCommittee], end: EpochEnd) -> VoterStatus {
    let mut all = Committees::new(committees[0].committee.clone()).unwrap();
    for next in &committees[1..] {
        all.note_end(all.current().epoch(), end);
        all.install(next.committee.clone()).unwrap();
    }
    let keys = committees.iter().map(|committee| Arc::new(committee.keys[0].clone())).collect();
    let joined = committees.last().map(|newest| newest.committee.epoch());
    let names = vec![committees[0].keys[0].public().name];
    VoterStatus::new(all, keys, &Remembered { names, joined, ..Remembered::default() }).unwrap()
}

/// The folders of a test's shards.
pub fn folders(folder: &Path, shard: ShardId) -> ShardFolders {
    let folder = folder.join(format!("shard-{:03}", shard.0));
    ShardFolders { journal: folder.join("journal"), checkpoint: folder.join("checkpoint") }
}

pub fn create(folder: &Path, shards: u32) {
    let identity = FolderIdentity { names: vec!["test".into()], shards, chain_id: 31337, contract: "test".into() };
    drop(DataFolder::create(folder, &identity).unwrap());
}

/// Storage with its journal on `disk`, and its checkpoints in a folder.
pub fn storage(disk: &MemoryDisk, folders: &ShardFolders) -> ShardStorage {
    ShardStorage { disk: Arc::new(disk.clone()), ..ShardStorage::open(folders).unwrap() }
}

impl Shards {
    /// Shards on `folder`, which is created where there is none, with their threads running.
    pub fn start(folder: &Path, shards: u32, limits: ShardLimits) -> Self {
        Self::prepare(folder, shards, limits).run()
    }

    /// The same, traced by `tracer`.
    pub fn traced(folder: &Path, shards: u32, limits: ShardLimits, tracer: Tracer) -> Self {
        Self::prepare_traced(folder, shards, limits, tracer).run()
    }

    /// The same without their threads, so that requests wait in the queues.
    pub fn prepare(folder: &Path, shards: u32, limits: ShardLimits) -> Self {
        Self::prepare_traced(folder, shards, limits, Tracer::off())
    }

    fn prepare_traced(folder: &Path, shards: u32, limits: ShardLimits, tracer: Tracer) -> Self {
        if !folder.join("meta.json").exists() {
            create(folder, shards);
        }
        let layout = layout(shards);
        let applied = AppliedCredits::new(layout);
        let recovered = layout
            .shards()
            .map(|id| shard::recover(&folders(folder, id), id, layout, true, &limits, &applied).unwrap());
        Self::over(recovered.collect(), folder, layout, limits, Metrics::traced(shards, tracer))
    }

    pub fn with(recovered: Vec<RecoveredShard>, folder: &Path, layout: ShardLayout, limits: ShardLimits) -> Self {
        Self::over(recovered, folder, layout, limits, Metrics::new(layout.count()))
    }

    fn over(
        recovered: Vec<RecoveredShard>,
        folder: &Path,
        layout: ShardLayout,
        limits: ShardLimits,
        metrics: Metrics,
    ) -> Self {
        let metrics = Arc::new(metrics);
        let (handles, queues): (Vec<_>, Vec<_>) =
            metrics.shards.iter().map(|metrics| ShardHandle::new(&limits, metrics.clone())).unzip();
        let committee = TestCommittee::new(4);
        Self {
            voter_status: watch::Sender::new(Arc::new(voter_status(&[&committee]))),
            committee,
            layout,
            handles: layout.shards().zip(handles).collect(),
            histories: recovered.iter().map(RecoveredShard::history).collect(),
            metrics,
            folder: folder.to_owned(),
            replayed: recovered.iter().map(|shard| shard.replayed).collect(),
            limits,
            chain: None,
            addresses: address_budgets(ADDRESS_JOURNAL_BYTES_PER_DAY),
            idle: recovered.into_iter().zip(queues).collect(),
            threads: Vec::new(),
        }
    }

    /// Starts the threads.
    pub fn run(self) -> Self {
        self.run_those(|_| true)
    }

    /// Starts the threads of some shards; the others take messages and lose them.
    pub fn run_those(mut self, chosen: impl Fn(ShardId) -> bool) -> Self {
        for (recovered, queue) in std::mem::take(&mut self.idle) {
            let id = recovered.shard().id();
            if !chosen(id) {
                self.idle.push((recovered, queue));
                continue;
            }
            let mut siblings = self.handles.clone();
            siblings.remove(&id);
            let settings = ShardSettings {
                domain: self.committee.domain,
                voter_status: self.voter_status.subscribe(),
                limits: self.limits,
                addresses: self.addresses.clone(),
                chain: self.chain,
            };
            self.threads.push(shard::start(settings, recovered, queue, self.handles[&id].clone(), siblings).unwrap());
        }
        self
    }

    pub fn handle_of(&self, account: &AccountId) -> &ShardHandle {
        &self.handles[&self.layout.shard_of(account)]
    }

    pub fn history_of(&self, account: &AccountId) -> &HistoryReader {
        &self.histories[self.layout.shard_of(account).0 as usize]
    }

    /// The account of that rank among those of a shard.
    pub fn account_in(&self, shard: u32, rank: usize) -> TestAccount {
        account_in(self.layout, shard, rank)
    }

    fn send(&self, sender: &AccountId, request: Request) -> Pending {
        let (stream, answers) = ClientStream::new(1);
        let submission = Submission { stream, ids: vec![0], requests: vec![request] };
        let queued_at = self.metrics.shards[0].tracer.now();
        queue(self.handle_of(sender), Command::Submit(submission, queued_at));
        Pending(answers)
    }

    /// Submits requests about accounts of one shard together, as a client at this address, and waits for all answers.
    pub fn submit_as(&self, peer: &Arc<ClientReputation>, requests: Vec<Request>) -> Vec<Answer> {
        let Some(first) = requests.first() else { return Vec::new() };
        let shard = self.handle_of(&first.order().transfer.sender());
        let (stream, mut received) = ClientStream::of(peer.clone(), requests.len());
        let (ids, count) = ((0..requests.len() as u64).collect(), requests.len());
        queue(shard, Command::Submit(Submission { stream, ids, requests }, None));
        let mut answers = BTreeMap::new();
        eventually("all answers", || {
            while let Ok(given) = received.try_recv() {
                answers.extend(given);
            }
            answers.len() == count
        });
        answers.into_values().collect()
    }

    pub fn send_order(&self, order: &TransferOrder) -> Pending {
        self.send(&order.transfer.sender(), Request::Order(order.clone()))
    }

    pub fn send_certificate(&self, certificate: &Certificate) -> Pending {
        self.send(&certificate.order.transfer.sender(), Request::Certificate(certificate.clone()))
    }

    pub fn order(&self, order: &TransferOrder) -> Answer {
        self.send_order(order).wait().expect("the shard is at work")
    }

    /// The vote for an order, checked.
    pub fn vote(&self, order: &TransferOrder) -> Vote {
        let Answer::Vote(_, vote) = self.order(order) else { panic!("no vote for {order:?}") };
        let verified = self.committee.verified(order);
        let committee = &self.committee.committee;
        vote.clone().verify(&self.committee.domain, committee, &verified).unwrap();
        vote
    }

    pub fn refusal(&self, order: &TransferOrder) -> Refusal {
        let Answer::Refused(refusal) = self.order(order) else { panic!("not refused: {order:?}") };
        refusal
    }

    pub fn confirm(&self, certificate: &Certificate) -> Answer {
        self.send_certificate(certificate).wait().expect("the shard is at work")
    }

    /// Votes for an order and confirms its certificate.
    pub fn pay(&self, order: &TransferOrder) {
        self.vote(order);
        let next = order.transfer.sequence().next().unwrap();
        assert_eq!(self.confirm(&self.committee.certificate(order)), Answer::Confirmed(Epoch(0), next));
    }

    pub fn ask_account(&self, account: &AccountId) -> oneshot::Receiver<Account> {
        let (reply, answer) = oneshot::channel();
        self.handle_of(account).try_send(Command::ReadAccount(*account, reply)).unwrap();
        answer
    }

    pub fn account(&self, account: &AccountId) -> Account {
        self.ask_account(account).blocking_recv().expect("the shard is at work")
    }

    pub fn ledger(&self, shard: u32) -> Arc<ShardLedger> {
        let (reply, answer) = oneshot::channel();
        self.handles[&ShardId(shard)].try_send(Command::ReadLedger(reply)).unwrap();
        answer.blocking_recv().expect("the shard is at work")
    }

    pub fn deposit_sink(&self) -> DepositSink {
        let shards: Vec<_> = self.handles.values().cloned().zip(self.histories.iter().cloned()).collect();
        DepositSink::new(self.committee.domain, self.layout, &shards)
    }

    /// Deposits ETH, to each account in turn.
    pub fn deposit(&self, deposits: &[(AccountId, u128)]) {
        let after = self.ledger(0).synchronized;
        let deposits = deposits_after(after, deposits);
        let up_to = deposits.last().unwrap().index;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert!(runtime.block_on(self.deposit_sink().apply(after, &deposits, up_to)));
    }

    /// Waits until no credit is in flight between shards.
    pub fn settle(&self) {
        eventually("all credits arrive", || {
            self.layout.shards().all(|id| self.ledger(id.0).outboxes.values().all(|outbox| outbox.waiting.is_empty()))
        });
    }

    /// Stops the threads in order, and returns the result of each.
    pub fn stop(self) -> Vec<Result<(), ShardError>> {
        for handle in self.handles.values() {
            let _ = handle.try_send(Command::Stop);
        }
        self.join()
    }

    /// Waits for the threads, which end by themselves.
    pub fn join(self) -> Vec<Result<(), ShardError>> {
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }

    /// What a crash at this instant would leave of the journals. The checkpoints, which may be lost at
    /// any time, are not in it.
    pub fn journals_after_crash(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        for id in self.layout.shards() {
            copy_folder(&folders(&self.folder, id).journal, &folders(copy.path(), id).journal);
        }
        std::fs::copy(self.folder.join("meta.json"), copy.path().join("meta.json")).unwrap();
        copy
    }
}

pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

pub fn account_in(layout: ShardLayout, shard: u32, rank: usize) -> TestAccount {
    let accounts = (0..).map(TestAccount::numbered);
    accounts.filter(|account| layout.shard_of(&account.id()) == ShardId(shard)).nth(rank).unwrap()
}

pub fn deposits_after(after: TransactionIndex, deposits: &[(AccountId, u128)]) -> Vec<Deposit> {
    let indices = (after.0 + 1..).map(TransactionIndex);
    let deposits = indices.zip(deposits);
    deposits
        .map(|(index, (recipient, amount))| Deposit {
            index,
            recipient: *recipient,
            asset: Asset::ETHER,
            amount: Amount(*amount),
        })
        .collect()
}
