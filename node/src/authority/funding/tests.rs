//! A follower of a scripted ledger: the rules are real, and so are the certificates; the shard notes what it is sent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Committee, Digest, Epoch, EpochEnd, PrimaryAddress, Recovery, SequenceNumber,
    ShardLayout, TransactionIndex, UnlockEvent, UnlockEventKind, UnlockVote,
};
use fastpay_ledger_client::OpenCommitteeError;
use fastpay_ledger_client::scripted::{COMMITTEE, History, PARAMETERS, ScriptedLedger};
use fastpay_ledger_statement::{
    Action, ClusterId, CommitteeEvent, CommitteeNumber, Credit, EventKind, Funding, GenesisError, Message, Outcome,
    Time, UnlockRequest,
};
use fastpay_testkit::TestCommittee;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::*;
use crate::authority::deployment::folder_identity;
use crate::authority::deposit_sink::DepositSink;
use crate::authority::follower::{Follower, Progress, cursor_file, read_cursor};
use crate::authority::known_committees;
use crate::authority::metrics::Metrics;
use crate::authority::rotation::remembered;
use crate::authority::shard::{Command, HistoryReader, OrderStep, ShardHandle, ShardLimits};
use crate::authority::storage::{DataFolder, Journal, JournalOptions};
use crate::authority::voter_status::VoterStatus;

const BEGIN: Time = Time(1_000_000_000);
/// The committee's unlock window.
const WINDOW_S: u64 = PARAMETERS.unlock_window_ms / 1_000;

fn bank() -> AccountKey {
    AccountKey::ed25519([1; 32])
}

fn account(number: u8) -> AccountId {
    AccountId::from_ed25519(&[number; 32])
}

/// What a shard is sent, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sent {
    Step(OrderStep),
    Time(ChainTime),
}

/// A shard that takes every step, or none.
#[derive(Clone, Default)]
struct Shard {
    sent: Arc<Mutex<Vec<Sent>>>,
    applied: Arc<Mutex<TransactionIndex>>,
    is_held: Arc<Mutex<bool>>,
}

impl Shard {
    fn start(&self) -> ShardHandle {
        let arrivals = Arc::new(Notify::new());
        let metrics = Metrics::new(1).shards[0].clone();
        let (handle, queue) = ShardHandle::notifying(&ShardLimits::default(), metrics, arrivals.clone());
        let shard = self.clone();
        tokio::spawn(async move {
            loop {
                while let Some(command) = queue.try_recv() {
                    shard.take(command).await;
                }
                arrivals.notified().await;
            }
        });
        handle
    }

    async fn take(&self, command: Command) {
        match command {
            Command::Synchronize(steps, reply) => {
                while !steps.is_empty() && *self.is_held.lock().unwrap() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let mut applied = self.applied.lock().unwrap();
                if let Some(last) = steps.last() {
                    *applied = last.up_to();
                }
                self.sent.lock().unwrap().extend(steps.into_iter().map(Sent::Step));
                let _ = reply.send(*applied);
            }
            Command::ChainTime(time) => self.sent.lock().unwrap().push(Sent::Time(time)),
            Command::ReadAccount(_, reply) => _ = reply.send(Default::default()),
            _ => panic!("a follower asks for nothing else"),
        }
    }

    fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// The amounts that were credited, in order.
    fn credited(&self) -> Vec<u128> {
        let amount = |sent| match sent {
            Sent::Step(OrderStep::Deposit(order)) => order.deposit.map(|deposit| deposit.amount.0),
            _ => None,
        };
        self.sent().into_iter().filter_map(amount).collect()
    }
}

struct Scene {
    first: TestCommittee,
    ledger: ScriptedLedger,
    folder: tempfile::TempDir,
    shard: Shard,
}

struct Following {
    rotation: Arc<Rotation>,
    progress: watch::Receiver<Progress>,
    alarm: Arc<crate::authority::metrics::FollowerMetrics>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Following {
    async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.unwrap();
    }

    async fn stopped(&mut self) -> String {
        let stopped = self.progress.wait_for(|progress| matches!(progress, Progress::Stopped(_)));
        let stopped = tokio::time::timeout(Duration::from_secs(60), stopped).await.unwrap().unwrap().clone();
        assert_eq!((self.alarm.alarm.get(), self.alarm.rereads.get()), (1, 0));
        let Progress::Stopped(why) = stopped else { unreachable!() };
        why
    }
}

impl Scene {
    async fn new() -> Self {
        Self::begun_at(BEGIN).await
    }

    async fn begun_at(time: Time) -> Self {
        let first = TestCommittee::new(4);
        let ledger = ScriptedLedger::start(&first.committee, &bank(), time).await;
        let domain = ledger.history().domain();
        let first = TestCommittee::with(4, domain, Epoch(0));
        let folder = tempfile::tempdir().unwrap();
        let identity = folder_identity(&[first.keys[0].public().name], std::num::NonZeroU32::MIN, &domain);
        DataFolder::create(&folder.path().join("data"), &identity).unwrap();
        Self { first, ledger, folder, shard: Shard::default() }
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    fn deployment(&self) -> LedgerDeployment {
        let file = self.ledger.write(self.folder.path());
        LedgerDeployment::read(&LedgerConfig { file, committee: COMMITTEE }).unwrap()
    }

    /// Follows as the first member, who has these committees' keys, from what is on disk.
    fn follow(&self, committees: &[&TestCommittee]) -> Following {
        let deployment = self.deployment();
        let first = Committees::new(deployment.ledger().first().clone()).unwrap();
        let known = known_committees::read(&self.data()).unwrap_or(first);
        let identity = folder_identity(
            &[self.first.keys[0].public().name],
            std::num::NonZeroU32::MIN,
            &deployment.ledger().domain(),
        );
        let data = Arc::new(DataFolder::open(&self.data(), &identity).unwrap());
        let keys = committees.iter().map(|of| Arc::new(of.keys[0].clone())).collect();
        let status = VoterStatus::new(known, keys, &remembered(&data).unwrap()).unwrap();
        let rotation = Arc::new(Rotation::new(data, status).unwrap());
        let journals = tempfile::tempdir().unwrap();
        let journal = Journal::create(journals.path(), JournalOptions::default()).unwrap();
        let shards = [(self.shard.start(), HistoryReader::new(journal.reader(), None))];
        let sink = DepositSink::new(deployment.ledger().domain(), ShardLayout::new(std::num::NonZeroU32::MIN), &shards);
        let (metrics, (stop, stopped)) = (Metrics::new(1).follower, watch::channel(false));
        let (progress, seen) = watch::channel(Progress::CatchingUp);
        let (source, file) = (LedgerSource::new(&deployment).unwrap(), cursor_file(&self.data()));
        let follower = Follower::new(source, sink, rotation.clone(), file, metrics.clone(), progress);
        let task = tokio::spawn(follower.run(stopped));
        Following { rotation, progress: seen, alarm: metrics, stop, task }
    }

    async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        for _ in 0..6_000 {
            if holds() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{what}: {:?}", self.shard.sent());
    }

    async fn credited(&self, amounts: &[u128]) {
        self.until(&format!("{amounts:?} are credited"), || self.shard.credited() == amounts).await;
    }
}

fn fund(history: &mut History, amounts: &[u128]) {
    let accounts: Vec<_> = amounts.iter().map(|amount| (account(7), *amount)).collect();
    history.fund(&bank(), &accounts);
}

fn rotate(history: &mut History, now: &TestCommittee, next: &TestCommittee, since: u64) {
    history.rotate(&bank(), &now.keys, (&next.committee, &next.keys), Epoch(since)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_is_at_the_head_also_while_somebody_funds_at_every_height_whatever_the_clock_says() {
    // As if the authority's clock were decades ahead of the ledger's time, and behind it.
    for begin in [BEGIN, Time(u64::from(u32::MAX) * 1_000)] {
        let scene = Scene::begun_at(begin).await;
        (0..150).for_each(|_| fund(&mut scene.ledger.history(), &[1]));
        let mut following = scene.follow(&[&scene.first]);
        let reached = following.progress.wait_for(|progress| *progress == Progress::AtHead);
        let funding = async {
            loop {
                fund(&mut scene.ledger.history(), &[1]);
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::select! {
            reached = tokio::time::timeout(Duration::from_secs(60), reached) => drop(reached.unwrap().unwrap()),
            () = funding => unreachable!("it has no end"),
        }
        let credited = scene.shard.credited().len();
        assert!(credited >= 150, "it says that it is at the head, with {credited} deposits");
        following.stop().await;
    }
}

#[tokio::test]
async fn funds_are_credited_once_in_order_and_the_time_follows_them() {
    let scene = Scene::new().await;
    fund(&mut scene.ledger.history(), &[5, 6]);
    let mut following = scene.follow(&[&scene.first]);
    scene.credited(&[5, 6]).await;
    following.progress.wait_for(|progress| *progress == Progress::AtHead).await.unwrap();
    // While the shard does not confirm the events, it is not told their time, and the cursor stays.
    let (before, sent) = (read_cursor(&scene.data()).unwrap(), scene.shard.sent().len());
    *scene.shard.is_held.lock().unwrap() = true;
    scene.ledger.history().wait(60_000);
    fund(&mut scene.ledger.history(), &[7]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((scene.shard.sent().len(), read_cursor(&scene.data())), (sent, Some(before)));
    *scene.shard.is_held.lock().unwrap() = false;
    scene.credited(&[5, 6, 7]).await;
    let block_time = scene.ledger.history().time().0 / 1_000;
    let told = Sent::Time(ChainTime { block_time, unlock_window: WINDOW_S });
    scene.until("the time is told", || scene.shard.sent().last() == Some(&told)).await;
    scene.until("the cursor is stored", || read_cursor(&scene.data()).unwrap().last_index.0 == 3).await;
    following.stop().await;

    // From the cursor, and without it.
    for is_forgotten in [false, true] {
        if is_forgotten {
            std::fs::remove_file(cursor_file(&scene.data())).unwrap();
        }
        let following = scene.follow(&[&scene.first]);
        fund(&mut scene.ledger.history(), &[8]);
        let amounts = [&[5, 6, 7, 8][..], &[5, 6, 7, 8, 8]][usize::from(is_forgotten)];
        scene.credited(amounts).await;
        following.stop().await;
    }
}

#[tokio::test]
async fn a_paid_redemption_reaches_the_shard_under_its_digest() {
    let scene = Scene::new().await;
    let relayer = AccountKey::ed25519([9; 32]);
    let redemption = fastpay_testkit::redemption(account(7), PrimaryAddress::repeat_byte(9), 20, 4);
    fund(&mut scene.ledger.history(), &[30]);
    scene.ledger.history().redeem(&relayer, &scene.first.keys, Epoch(0), &redemption).unwrap();
    let digest = scene.first.domain.transfer_digest(&redemption.clone().into());
    let following = scene.follow(&[&scene.first]);
    let is_spent = |sent: &Sent| match sent {
        Sent::Step(OrderStep::Unlock(event)) => {
            assert_eq!((event.account, event.sequence, event.index.0), (account(7), redemption.sequence, 2));
            event.kind == UnlockEventKind::Spent(digest)
        }
        _ => false,
    };
    scene.until("it is spent", || scene.shard.sent().iter().any(is_spent)).await;
    following.stop().await;
}

fn request(history: &mut History, owner: &AccountKey, sequence: SequenceNumber) {
    let (domain, account) = (history.domain(), owner.account());
    let authorization = owner.authorize(domain.unlock_request_digest(account, sequence));
    let request = UnlockRequest { committee: COMMITTEE, account, sequence, authorization };
    assert_eq!(history.act(&bank(), Action::RequestUnlock(request)), Ok(Outcome::Unlocking));
}

/// A request of a while ago begins its window when it is read: nobody could bring a certificate here before.
#[tokio::test]
async fn what_becomes_of_a_stuck_number_reaches_the_shard_and_its_window_begins_when_it_is_read() {
    let scene = Scene::new().await;
    let (owner, other) = (AccountKey::ed25519([6; 32]), AccountKey::ethereum([7; 32]).unwrap());
    let (sequence, digest) = (SequenceNumber(3), Digest::repeat_byte(5));
    let vote = |account: AccountId, vote: UnlockVote| -> Vec<_> {
        let keys = scene.first.keys.iter().take(vote.needed(&scene.first.committee));
        keys.map(|keys| vote.sign(keys, &scene.first.domain, Epoch(0), account, sequence)).collect()
    };
    let read_at = {
        let mut history = scene.ledger.history();
        request(&mut history, &owner, sequence);
        request(&mut history, &other, sequence);
        let (committee, account) = (COMMITTEE, owner.account());
        let votes = vote(account, UnlockVote::Certificate(digest));
        history.act(&bank(), Action::Uphold { committee, account, sequence, digest, votes }).unwrap();
        let (account, unanimous) = (other.account(), true);
        let votes = vote(account, UnlockVote::Void { unanimous });
        history.act(&bank(), Action::Void { committee, account, sequence, unanimous, votes }).unwrap();
        // A day later: the newest group.
        history.wait(86_400_000);
        fund(&mut history, &[]);
        history.time().0 / 1_000
    };
    let following = scene.follow(&[&scene.first]);
    let steps = || -> Vec<UnlockEvent> {
        let unlock = |sent| match sent {
            Sent::Step(OrderStep::Unlock(event)) => Some(event),
            _ => None,
        };
        scene.shard.sent().into_iter().filter_map(unlock).collect()
    };
    scene.until("all is told", || steps().len() == 4).await;
    following.stop().await;
    let told: Vec<_> = steps().iter().map(|event| (event.index.0, event.account, event.sequence, event.kind)).collect();
    let requested = UnlockEventKind::Requested(read_at + WINDOW_S);
    let (owner, other) = (owner.account(), other.account());
    let expected = [
        (1, owner, sequence, requested),
        (2, other, sequence, requested),
        (3, owner, sequence, UnlockEventKind::Upheld(digest)),
        (4, other, sequence, UnlockEventKind::Voided),
    ];
    assert_eq!(told, expected);
}

/// While an authority reads what it missed, the head moves on.
#[tokio::test]
async fn a_window_begins_at_a_head_that_was_read_lately() {
    let scene = Scene::new().await;
    let before = {
        let mut history = scene.ledger.history();
        fund(&mut history, &[1]);
        let before = history.decisions().len();
        request(&mut history, &AccountKey::ed25519([6; 32]), SequenceNumber(3));
        fund(&mut history, &[2]);
        before
    };
    let hand_over = |groups| (0..4).for_each(|member| scene.ledger.withhold_after(member, groups));
    hand_over(before);
    let mut source = LedgerSource::new(&scene.deployment()).unwrap();
    let batch = source.next(&LedgerSource::start(), ChainTime::default()).await.unwrap();
    assert!(batch.has_more && batch.events.len() == 1);
    let read_at = {
        let mut history = scene.ledger.history();
        history.wait(86_400_000);
        fund(&mut history, &[]);
        history.time().0 / 1_000
    };
    hand_over(before + 1);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
    let batch = source.next(&batch.cursor, batch.time).await.unwrap();
    let [ShardEvent::Unlock { kind, .. }] = &batch.events[..] else { panic!("{:?}", batch.events) };
    assert_eq!((batch.has_more, *kind), (true, UnlockEventKind::Requested(read_at + WINDOW_S)));
}

#[tokio::test]
async fn an_epoch_is_taken_up_once_its_installation_is_applied_and_before_the_cursor_passes_it() {
    let scene = Scene::new().await;
    let (next, third) = (scene.first.rotated(), scene.first.rotated().rotated());
    let all = [&scene.first, &next, &third];
    let following = scene.follow(&all);
    *scene.shard.is_held.lock().unwrap() = true;
    rotate(&mut scene.ledger.history(), &scene.first, &next, 1);
    let installed_at = scene.ledger.history().time().0 / 1_000;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(following.rotation.committees().current().epoch(), Epoch(0), "it is not applied");
    // The committees cannot be stored: a folder stands at their place.
    let (file, aside) = (scene.data().join("committees.json"), scene.data().join("aside"));
    std::fs::rename(&file, &aside).unwrap();
    std::fs::create_dir(&file).unwrap();
    let before = read_cursor(&scene.data());
    *scene.shard.is_held.lock().unwrap() = false;
    scene.until("it is retried", || following.alarm.retries.get() > 1).await;
    assert_eq!((following.rotation.committees().current().epoch(), read_cursor(&scene.data())), (Epoch(0), before));
    std::fs::remove_dir(&file).unwrap();
    std::fs::rename(&aside, &file).unwrap();
    scene.until("it is taken up", || following.rotation.committees().current().epoch() == Epoch(1)).await;
    let steps = scene.shard.sent().into_iter().filter(|sent| matches!(sent, Sent::Step(_)));
    assert!(matches!(steps.collect::<Vec<_>>()[..], [Sent::Step(OrderStep::Installation(of))] if of.epoch == Epoch(1)));
    scene.until("the cursor passes", || read_cursor(&scene.data()).is_some_and(|at| at.last_index.0 == 1)).await;
    let end = following.rotation.committees().known_end(Epoch(0));
    assert_eq!(end, Some(EpochEnd::new(installed_at + 604_800, WINDOW_S)));
    following.stop().await;

    // A crash before the cursor was stored: the installation is read again.
    std::fs::remove_file(cursor_file(&scene.data())).unwrap();
    rotate(&mut scene.ledger.history(), &next, &third, 2);
    let following = scene.follow(&all);
    scene.until("it is taken up", || following.rotation.committees().current().epoch() == Epoch(2)).await;
    assert_eq!(following.rotation.committees().known_end(Epoch(0)), end);
    scene.until("the cursor passes", || read_cursor(&scene.data()).is_some_and(|at| at.last_index.0 == 2)).await;
    following.stop().await;

    // The cursor is ahead of the committees that are stored: it is not followed from.
    std::fs::remove_file(&file).unwrap();
    let following = scene.follow(&all);
    scene.until("all are known", || following.rotation.committees().current().epoch() == Epoch(2)).await;
    following.stop().await;
}

#[tokio::test]
async fn where_keys_were_out_earlier_epochs_end_at_once_and_a_checkpoint_is_awaited() {
    let scene = Scene::new().await;
    let (next, third) = (scene.first.rotated(), scene.first.rotated().rotated());
    rotate(&mut scene.ledger.history(), &scene.first, &next, 1);
    rotate(&mut scene.ledger.history(), &next, &third, 0);
    let following = scene.follow(&[&scene.first, &next, &third]);
    scene.until("both are known", || following.rotation.committees().current().epoch() == Epoch(2)).await;
    let committees = following.rotation.committees();
    assert_eq!([0, 1].map(|epoch| committees.known_end(Epoch(epoch))), [Some(EpochEnd::default()); 2]);
    assert_eq!(committees.recovery(), Some(Recovery { epoch: Epoch(2), adopted: None }));
    assert!(following.rotation.subscribe().borrow().unrecovered().is_some());
    following.stop().await;
}

#[tokio::test]
async fn a_fork_stops_the_follower_at_once_and_names_who_signed_both() {
    let scene = Scene::new().await;
    fund(&mut scene.ledger.history(), &[5]);
    let mut following = scene.follow(&[&scene.first]);
    scene.credited(&[5]).await;
    let mut other = scene.ledger.history().clone();
    other.vote(0, [1, 2, 3]);
    (0..3).for_each(|_| fund(&mut scene.ledger.history(), &[6]));
    (0..4).for_each(|_| fund(&mut other, &[9]));
    scene.ledger.defect(2, other);
    let why = following.stopped().await;
    let network = scene.ledger.network();
    let (_, keys) = network.genesis().clusters.first_key_value().unwrap();
    let mut keys = keys.clone();
    keys.sort();
    for (member, is_named) in [(0, false), (1, true), (2, true), (3, false)] {
        assert_eq!(why.contains(&keys[member].to_string()), is_named, "{why}");
    }
    let credited = scene.shard.credited();
    fund(&mut scene.ledger.history(), &[7]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(scene.shard.credited() == credited && !credited.contains(&9), "{credited:?}");
}

#[tokio::test]
async fn what_no_honest_cluster_certifies_stops_the_follower_and_is_not_applied() {
    let funding = Funding {
        committee: COMMITTEE,
        account: account(7),
        asset: Asset::ETHER,
        amount: Amount(9),
        payer: account(8),
    };
    let event = |index: u64, kind| Message::Event(CommitteeEvent { index: TransactionIndex(index), kind });
    let funded = |index, funding| event(index, EventKind::Funded(funding));
    let rotated = |committee: Committee| {
        let (compromised_since, guardian) = (committee.epoch(), PrimaryAddress::ZERO);
        let (previous_counts_until, checkpoint) = (Some(Time(2 * BEGIN.0)), Digest::ZERO);
        event(2, EventKind::Installed { committee, guardian, previous_counts_until, compromised_since, checkpoint })
    };
    let skipped = TestCommittee::new(4).rotated().rotated().committee;
    let cases: [(&str, Vec<Message>); 9] = [
        ("event 3 comes after event 1", vec![funded(3, funding)]),
        ("event 1 comes after event 1", vec![funded(1, funding)]),
        ("event 2 comes after event 2", vec![funded(2, funding), funded(2, funding)]),
        ("no event of this committee", vec![funded(2, Funding { committee: CommitteeNumber(1), ..funding })]),
        (
            "no event of this committee",
            vec![Message::Credit(Credit { to: account(7), asset: Asset::ETHER, amount: Amount(9) })],
        ),
        ("event 2 deposits nothing", vec![funded(2, Funding { amount: Amount::ZERO, ..funding })]),
        ("or for nobody", vec![funded(2, Funding { account: AccountId::ZERO, ..funding })]),
        ("installs epoch 2 after epoch 0", vec![rotated(skipped)]),
        ("its time is before", Vec::new()),
    ];
    for (expected, messages) in cases {
        let scene = Scene::new().await;
        fund(&mut scene.ledger.history(), &[5]);
        let mut following = scene.follow(&[&scene.first]);
        scene.credited(&[5]).await;
        if messages.is_empty() {
            scene.ledger.history().set_time(BEGIN);
        }
        scene.ledger.history().forge(messages);
        let why = following.stopped().await;
        assert!(why.contains(expected), "{expected}: {why}");
        assert_eq!(scene.shard.credited(), [5], "{expected}");
        assert_eq!(read_cursor(&scene.data()).unwrap().last_index, TransactionIndex(1), "{expected}");
    }
}

#[tokio::test]
async fn unfit_ledgers_are_refused_before_anything_is_followed() {
    let first = TestCommittee::new(4).committee;
    let folder = tempfile::tempdir().unwrap();
    let read = |file: std::path::PathBuf, committee: u32| {
        LedgerDeployment::read(&LedgerConfig { file, committee: CommitteeNumber(committee) }).err().unwrap()
    };
    let missing = read(folder.path().join("nothing.toml"), 0);
    assert!(matches!(missing, LedgerError::Open(OpenCommitteeError::File { .. })), "{missing}");
    let ledger = ScriptedLedger::start(&first, &bank(), BEGIN).await;
    let file = ledger.write(folder.path());
    assert!(matches!(read(file.clone(), 1), LedgerError::Open(OpenCommitteeError::NoCommittee(CommitteeNumber(1)))));
    let text = std::fs::read_to_string(&file).unwrap();
    let unfit = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        std::fs::write(&file, text.replace(from, to)).unwrap();
        match read(file.clone(), 0) {
            LedgerError::Open(OpenCommitteeError::Genesis(error)) => error,
            other => panic!("{other}"),
        }
    };
    let number = COMMITTEE;
    let validity = unfit("votes_validity_ms = 604800000", "votes_validity_ms = 518399999");
    assert_eq!(validity, GenesisError::VotesValidity(number, 518_399_999));
    let window = unfit("unlock_window_ms = 259200000", "unlock_window_ms = 119999");
    assert_eq!(window, GenesisError::UnlockWindow(number, 119_999));
    assert_eq!(unfit("shards = [1]", "shards = [2]"), GenesisError::UnknownCluster(ClusterId(2)));
    std::fs::write(&file, text.replace("votes_validity_ms = 604800000", "votes_validity_ms = 518400000")).unwrap();
    let enough = LedgerDeployment::read(&LedgerConfig { file, committee: COMMITTEE }).unwrap();
    assert_eq!(enough.ledger().parameters().votes_validity_ms, 518_400_000);
}
