//! What members state of an epoch that has ended, and how others take it.

use std::fs;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fastpay_client::{AuthorityEndpoints, Endpoints};
use fastpay_core::checkpoint::{Installations, InstalledCommittee};
use fastpay_core::handover::{CLOSING_ENTRIES_MAX, Closing, ReportedEntry, SignedClosing, Stale, VerifiedClosing};
use fastpay_core::private::NoProofs;
use fastpay_core::{
    Committees, Digest, Epoch, Installation, PendingOrder, SequenceNumber, ShardId, SynchronizationOrder,
    TransactionIndex, TransferOrder, UnlockEvent, UnlockEventKind,
};
use fastpay_node::authority::deployment::folder_identity;
use fastpay_node::authority::handover::{Closings, Handover, HandoverTimes, JoinContext};
use fastpay_node::authority::peer_book::{PeerBook, PeerReader};
use fastpay_node::authority::peer_sync::{Attesters, OwnShards};
use fastpay_node::authority::rotation::Rotation;
use fastpay_node::authority::shard::{Command, OrderStep};
use fastpay_node::authority::storage::DataFolder;
use fastpay_node::authority::voter_status::{Remembered, VoterStatus};
use fastpay_testkit::{TestAccount, TestCommittee, payment};
use tokio::sync::{oneshot, watch};

use crate::network::Served;
use crate::scene::{eventually, eventually_async};

pub const ENDED: Epoch = Epoch(0);

/// A peer that misbehaves once is not asked again.
pub const TIMES: HandoverTimes = HandoverTimes {
    poll: Duration::from_millis(20),
    join: Duration::from_millis(20),
    certificates: Duration::from_secs(20),
    call: Duration::from_secs(10),
    file: Duration::from_secs(20),
    left: Duration::from_secs(3_600),
    left_max: Duration::from_secs(3_600),
};

/// A member of the first committee, and of those that follow it; or of those from a later one on.
pub struct Member {
    pub served: Served,
    pub number: usize,
    first: usize,
    /// The folder with its name and committees.
    pub identity: tempfile::TempDir,
}

impl Member {
    pub async fn new(number: usize, shards: u32) -> Self {
        Self::since(0, number, shards).await
    }

    /// A member from this epoch on, which knows the committees up to that one.
    pub async fn since(first: usize, number: usize, shards: u32) -> Self {
        let member =
            Self { served: Served::start(shards).await, number, first, identity: tempfile::tempdir().unwrap() };
        member.take_up(first + 1);
        member
    }

    /// The committees of this epoch and all before it.
    pub fn committees(&self, count: usize) -> Vec<TestCommittee> {
        let first = self.served.shards.committee.clone();
        std::iter::successors(Some(first), |last| Some(last.rotated())).take(count).collect()
    }

    /// All parts know of so many committees.
    pub fn take_up(&self, count: usize) {
        self.served.shards.voter_status.send_replace(Arc::new(self.status(count)));
    }

    /// Its status among so many committees.
    pub fn status(&self, count: usize) -> VoterStatus {
        self.status_of(count, Stale::No)
    }

    /// The same if its folder may lack votes up to an epoch.
    pub fn stale_status(&self, count: usize, up_to: Epoch) -> VoterStatus {
        self.status_of(count, Stale::UpTo(up_to))
    }

    fn status_of(&self, count: usize, stale: Stale) -> VoterStatus {
        let committees = self.committees(count);
        let mut all = Committees::new(committees[0].committee.clone()).unwrap();
        committees[1..].iter().for_each(|next| all.install(next.committee.clone()).unwrap());
        let own = committees[self.first..].iter();
        let keys: Vec<_> = own.map(|of| Arc::new(of.keys[self.number].clone())).collect();
        let names = vec![keys[0].public().name];
        VoterStatus::new(all, keys, &Remembered { names, stale, ..Remembered::default() }).unwrap()
    }

    /// Each shard takes a step along the contract's order; the events between are of other shards.
    pub async fn follow(&self, step: impl Fn(TransactionIndex) -> OrderStep) {
        for handle in self.served.shards.handles.values() {
            let applied = synchronize(handle, Vec::new()).await;
            synchronize(handle, vec![step(applied)]).await;
        }
    }

    pub async fn install(&self, index: u64, epoch: u64, compromised_since: u64) {
        self.follow(|after| {
            let (index, epoch, compromised_since) = (TransactionIndex(index), Epoch(epoch), Epoch(compromised_since));
            OrderStep::Installation(Installation { after, index, epoch, compromised_since, voidable_at: u64::MAX })
        })
        .await;
    }

    /// One shard steps over the next event, which is of another one.
    pub async fn step_over(&self, shard: u32) {
        let handle = &self.served.shards.handles[&ShardId(shard)];
        let after = synchronize(handle, Vec::new()).await;
        let up_to = TransactionIndex(after.0 + 1);
        let step = OrderStep::Deposit(SynchronizationOrder { after, up_to, deposit: None });
        assert_eq!(synchronize(handle, vec![step]).await, up_to);
    }

    pub async fn unlock(&self, index: u64, owner: &TestAccount, kind: UnlockEventKind) {
        let (account, index, sequence) = (owner.id(), TransactionIndex(index), SequenceNumber(0));
        let handle = self.served.shards.handle_of(&account);
        let after = synchronize(handle, Vec::new()).await;
        let event = UnlockEvent { after, index, account, sequence, kind };
        assert_eq!(synchronize(handle, vec![OrderStep::Unlock(event)]).await, index);
    }

    pub fn closings(&self) -> Closings {
        Closings::of(&self.served.shards.folder, 0)
    }

    pub fn has(&self, epoch: Epoch, of: &Member) -> bool {
        let committee = &of.committees(usize::try_from(epoch.0).unwrap() + 1)[epoch.0 as usize];
        self.closings().path((epoch, committee.keys[of.number].public().name)).is_file()
    }

    /// Starts its part of the hand-over, which knows these peers and ends with what is returned.
    pub fn start(&self, peers: &[&Member]) -> watch::Sender<bool> {
        let shards = &self.served.shards;
        let all: Vec<_> = shards.handles.values().cloned().zip(shards.histories.iter().cloned()).collect();
        let entry = |peer: &&Member| AuthorityEndpoints {
            name: peer.served.shards.committee.keys[peer.number].public().name,
            shards: peer.served.addresses.iter().map(|address| format!("http://{address}")).collect(),
            http: None,
            tls_ca: None,
            label: None,
        };
        let endpoints = Endpoints { authorities: peers.iter().map(entry).collect(), ..Endpoints::default() };
        let book = PeerBook::new(shards.committee.domain, Some(endpoints), &[]);
        let of = (shards.committee.domain, shards.voter_status.subscribe());
        let with = (TIMES, shards.metrics.handover.clone());
        let attesters = Attesters::over(PeerReader::of(Vec::new()), of.0, of.1.clone());
        let own = OwnShards::new(Arc::new(all.clone()), shards.metrics.network.clone(), attesters);
        let (stop, stopped) = watch::channel(false);
        let joins = JoinContext { own, rotation: self.rotation(stopped.clone()), archive: None };
        let handover = Handover::new(of, Arc::new(all), self.closings(), &book, with, joins);
        drop(handover.start(stopped).unwrap());
        stop
    }

    /// The rotation of its voter status, which its shards follow until it is stopped.
    fn rotation(&self, mut stopped: watch::Receiver<bool>) -> Weak<Rotation> {
        let (path, shards) = (self.identity.path().join("data"), self.served.shards.layout.count());
        let status = self.served.shards.voter_status.borrow().clone();
        let identity = folder_identity(&[status.public().name], shards.try_into().unwrap(), &self.domain());
        // One that was started before lets go of it when its thread has ended.
        let mut folder = None;
        eventually("the folder is free", || {
            folder = DataFolder::create(&path, &identity).or_else(|_| DataFolder::open(&path, &identity)).ok();
            folder.is_some()
        });
        let rotation = Arc::new(Rotation::new(Arc::new(folder.unwrap()), (*status).clone()).unwrap());
        let (weak, to) = (Arc::downgrade(&rotation), self.served.shards.voter_status.clone());
        let mut seen = rotation.subscribe();
        tokio::spawn(async move {
            let _rotation = rotation;
            let follow = async {
                while seen.changed().await.is_ok() {
                    to.send_replace(seen.borrow_and_update().clone());
                }
            };
            tokio::select! {
                _ = stopped.wait_for(|stop| *stop) => {}
                () = follow => {}
            }
        });
        weak
    }

    pub fn domain(&self) -> fastpay_core::Domain {
        self.served.shards.committee.domain
    }

    pub fn metric(&self, name: &str) -> u64 {
        let text = self.served.shards.metrics.text();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("fastpay_{name} "))).unwrap();
        line.parse().unwrap()
    }

    pub async fn end(self) {
        self.served.end().await;
    }
}

async fn synchronize(handle: &fastpay_node::authority::shard::ShardHandle, steps: Vec<OrderStep>) -> TransactionIndex {
    let (reply, applied) = oneshot::channel();
    handle.try_send(Command::Synchronize(steps, reply)).unwrap();
    applied.await.unwrap()
}

pub fn installations(committees: &[TestCommittee]) -> Installations {
    let mut all = Installations::new(committees[0].committee.clone()).unwrap();
    for next in &committees[1..] {
        let (committee, compromised_since) = (next.committee.clone(), next.committee.epoch());
        all.install(InstalledCommittee { committee, compromised_since, checkpoint: Digest::ZERO }).unwrap();
    }
    all
}

/// The Closing in a file, as those who join check it.
fn verify(member: &Member, bytes: &[u8], up_to: u64) -> (VerifiedClosing, Vec<ReportedEntry>) {
    let (signed, entries) = SignedClosing::read(&mut &bytes[..], CLOSING_ENTRIES_MAX).unwrap();
    let (domain, installations) = (member.served.shards.committee.domain, installations(&member.committees(2)));
    let against = (&installations, TransactionIndex(up_to));
    let verified = signed.verify(entries.clone(), (&domain, ENDED), against, &NoProofs, &mut rand::rng()).unwrap();
    (verified, entries)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_states_what_it_executed_locked_and_keeps_once_the_next_epoch_is_taken_up() {
    let member = Member::new(0, 2).await;
    let (committee, domain) = (member.served.shards.committee.clone(), member.served.shards.committee.domain);
    let owner = |shard, rank| member.served.shards.account_in(shard, rank);
    let [payer, disputed, voided, idle] = [owner(0, 0), owner(1, 0), owner(1, 1), owner(0, 1)];
    let all = [&payer, &disputed, &voided, &idle];
    member.served.deposit(&all.map(|owner| (owner.id(), 100))).await;
    let order = |owner: &TestAccount, sequence| owner.sign(&domain, payment(owner.id(), idle.id(), 10, sequence));
    let executed = [0, 1].map(|sequence| order(&payer, sequence));
    let (locked, kept) = (order(&payer, 2), order(&disputed, 0));
    for order in &executed {
        member.served.client(0).confirm(&committee.certificate(order)).await.unwrap();
    }
    member.served.client(0).order(&locked).await.unwrap();
    // A lock that is executed is none any more, nor is one on a void number.
    member.served.client(1).order(&order(&voided, 0)).await.unwrap();
    member.unlock(5, &disputed, UnlockEventKind::Requested(u64::MAX)).await;
    member.served.client(1).confirm(&committee.certificate(&kept)).await.unwrap_err();
    member.unlock(6, &voided, UnlockEventKind::Voided).await;
    let _running = member.start(&[]);
    member.install(7, 1, 1).await;
    let read = async |offset| member.served.client(1).closing_part(ENDED, None, offset).await.unwrap();
    assert_eq!(read(0).await, None, "its node does not know the next committee yet");
    member.take_up(2);
    eventually_async("the Closing is served", || async { read(0).await.is_some() }).await;

    let part = read(0).await.unwrap();
    assert_eq!(part.length, part.bytes.len() as u64);
    assert_eq!(read(10).await.unwrap().bytes, part.bytes[10..]);
    let (verified, entries) = verify(&member, &part.bytes, 7);
    assert_eq!(verified.authority(), committee.keys[0].public().name);
    let digest = |order: &TransferOrder| domain.transfer_digest(&order.transfer);
    let mut expected = vec![
        ReportedEntry::account(payer.id(), SequenceNumber(2), Some((executed[1].clone(), digest(&executed[1])))),
        ReportedEntry::account(voided.id(), SequenceNumber(1), None),
        ReportedEntry::lock(&PendingOrder { order: locked.clone().into(), digest: digest(&locked) }),
        ReportedEntry::seen(kept.clone(), digest(&kept)),
    ];
    expected.sort_by_key(|entry| *entry.entry());
    assert_eq!(entries, expected);
    let leaves = expected.iter().map(ReportedEntry::entry);
    assert_eq!(*verified.closing(), Closing::new(ENDED, TransactionIndex(7), Digest::ZERO, leaves));
    eventually_async("it is counted", || async { member.metric("closings") == 1 }).await;
    let client = member.served.client(0);
    let [own, other] = [0, 1].map(|number| committee.keys[number].public().name);
    assert_eq!(client.closing_part(ENDED, Some(own), 0).await.unwrap().unwrap(), part);
    assert_eq!(client.closing_part(ENDED, Some(other), 0).await.unwrap(), None);
    assert_eq!(client.closing_part(Epoch(1), None, 0).await.unwrap(), None);
    member.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_take_each_others_closings_and_none_that_is_falsified() {
    let (first, second) = (Member::new(0, 2).await, Member::new(1, 1).await);
    let committee = first.served.shards.committee.clone();
    let owner = first.served.shards.account_in(0, 0);
    let order = owner.sign(&committee.domain, payment(owner.id(), owner.id(), 10, 0));
    for member in [&first, &second] {
        member.served.deposit(&[(owner.id(), 100)]).await;
        member.served.client(0).order(&order).await.unwrap();
        member.install(2, 1, 1).await;
        member.take_up(2);
    }
    let _running = first.start(&[]);
    eventually_async("there is a Closing", || async { first.has(ENDED, &first) }).await;
    let path = first.closings().path((ENDED, committee.keys[0].public().name));
    let honest = fs::read(&path).unwrap();
    let (signed, entries) = SignedClosing::read(&mut &honest[..], CLOSING_ENTRIES_MAX).unwrap();
    let bytes = |signed: &SignedClosing, entries: &[ReportedEntry]| {
        let mut bytes = Vec::new();
        signed.write(entries.iter().map(Ok), &mut bytes).unwrap();
        bytes
    };
    let by = |closing: Closing, number: usize| closing.sign(&committee.keys[number], &committee.domain);
    let other_name = SignedClosing { authority: committee.keys[2].public().name, ..signed.clone() };
    let endless = by(Closing { entries: CLOSING_ENTRIES_MAX as u64 + 1, ..signed.closing }, 0);
    let falsified = [
        b"no Closing".to_vec(),
        bytes(&other_name, &entries),
        bytes(&signed, &[]),
        honest[..honest.len() - 1].to_vec(),
        bytes(&endless, &entries),
        bytes(&by(Closing { epoch: Epoch(1), ..signed.closing }, 0), &entries),
    ];
    for (count, bytes) in (1..).zip(falsified) {
        fs::write(&path, bytes).unwrap();
        let _running = second.start(&[&first]);
        eventually_async("the peer is left alone", || async { second.metric("closing_peers_left_total") == count })
            .await;
        assert!(!second.has(ENDED, &first), "the falsified Closing {count} is kept");
        assert!(second.has(ENDED, &second), "its own is made all the same");
    }
    // It is further along the chain: not a lie, and taken once this one has followed.
    let ahead = by(Closing { up_to: TransactionIndex(3), ..signed.closing }, 0);
    fs::write(&path, bytes(&ahead, &entries)).unwrap();
    let _running_too = second.start(&[&first]);
    tokio::time::sleep(TIMES.poll * 10).await;
    assert!(!second.has(ENDED, &first));
    second.install(3, 2, 2).await;
    eventually_async("it is taken", || async { second.has(ENDED, &first) }).await;
    let name = committee.keys[0].public().name;
    assert_eq!(fs::read(second.closings().path((ENDED, name))).unwrap(), fs::read(&path).unwrap());
    eventually_async("both are counted", || async { second.metric("closings") == 2 }).await;
    assert_eq!(second.metric("closing_peers_left_total"), 6);

    // A third member takes both from the second one alone, and not one in the place of another.
    let third = Member::new(2, 1).await;
    third.served.deposit(&[(owner.id(), 100)]).await;
    third.install(2, 1, 1).await;
    third.install(3, 2, 2).await;
    third.take_up(2);
    let taken = second.closings().path((ENDED, name));
    let aside = fs::read(&taken).unwrap();
    fs::write(&taken, fs::read(second.closings().path((ENDED, committee.keys[1].public().name))).unwrap()).unwrap();
    let running = third.start(&[&second]);
    eventually_async("the peer is left alone", || async { third.metric("closing_peers_left_total") == 1 }).await;
    assert!(third.has(ENDED, &second) && !third.has(ENDED, &first));
    drop(running);
    fs::write(&taken, aside).unwrap();
    let _running_third = third.start(&[&second]);
    eventually_async("it is taken", || async { third.has(ENDED, &first) }).await;
    first.end().await;
    second.end().await;
    third.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_epoch_whose_keys_were_out_nothing_is_stated_or_taken() {
    let (first, second) = (Member::new(0, 1).await, Member::new(1, 1).await);
    for member in [&first, &second] {
        member.install(1, 1, 1).await;
        member.take_up(2);
    }
    let _running = [first.start(&[&second]), second.start(&[&first])];
    for (member, peer) in [(&first, &second), (&second, &first)] {
        eventually_async("there are Closings", || async { member.metric("closings") == 2 }).await;
        assert!(member.has(ENDED, member) && member.has(ENDED, peer));
    }
    for member in [&first, &second] {
        member.install(2, 2, 1).await;
        member.take_up(3);
    }
    for (member, peer) in [(&first, &second), (&second, &first)] {
        eventually_async("the next epoch is looked at", || async { member.metric("closings") == 0 }).await;
        tokio::time::sleep(TIMES.poll * 10).await;
        assert!(!member.has(Epoch(1), member) && !member.has(Epoch(1), peer));
        assert!(member.has(ENDED, member), "those of the epoch before stay");
    }
    first.end().await;
    second.end().await;
}
