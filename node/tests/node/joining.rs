//! A new member joins the current epoch with the Closings of a quorum of the one before, and votes.

use std::fs;
use std::sync::Arc;

use fastpay_client::ClientError;
use fastpay_core::handover::{
    CLOSING_ENTRIES_MAX, Closing, ClosingEntry, JoinError, Newest, ReportedEntry, SignedClosing,
};
use fastpay_core::{AuthorityName, Digest, Epoch, PendingOrder, SequenceNumber, TransactionIndex, TransferOrder};
use fastpay_node::authority::handover::JoinWait;
use fastpay_node::authority::rollback::{RollbackProtection, VoteFloors};
use fastpay_node::authority::shard::Command;
use fastpay_rpc::Refusal;
use fastpay_testkit::{TestAccount, payment};
use tokio::sync::{oneshot, watch};

use crate::handover::{ENDED, Member};
use crate::scene::eventually_async;

const NEXT: Epoch = Epoch(1);
/// The event that installs the next committee.
const INSTALLED: u64 = 3;

/// Three members of the first committee, of which the fourth is gone; and who takes its place in the next one, with two
/// shards. One account has paid twice, and not all members have executed both payments; all have voted for an order of
/// another one.
struct Scene {
    members: Vec<Member>,
    joiner: Member,
    executed: Vec<TransferOrder>,
    locked: TransferOrder,
    other: TransferOrder,
    running: Vec<watch::Sender<bool>>,
}

impl Scene {
    async fn new() -> Self {
        Self::of(Member::since(1, 3, 2).await).await
    }

    async fn of(joiner: Member) -> Self {
        let members = [Member::new(0, 1).await, Member::new(1, 2).await, Member::new(2, 1).await];
        let [payer, owner] = [0, 1].map(|shard| joiner.served.shards.account_in(shard, 0));
        let order = |owner: &TestAccount, amount, sequence| {
            owner.sign(&joiner.domain(), payment(owner.id(), payer.id(), amount, sequence))
        };
        let executed = vec![order(&payer, 1, 0), order(&payer, 2, 1)];
        let (locked, other) = (order(&owner, 10, 0), order(&owner, 11, 0));
        let committee = joiner.served.shards.committee.clone();
        for (number, member) in members.iter().enumerate() {
            member.served.deposit(&[(payer.id(), 100), (owner.id(), 100)]).await;
            for order in executed.iter().take(2 - number % 2) {
                client_of(member, &payer).confirm(&committee.certificate(order)).await.unwrap();
            }
            client_of(member, &owner).order(&locked).await.unwrap();
            member.install(INSTALLED, 1, 1).await;
            member.take_up(2);
        }
        joiner.served.deposit(&[(payer.id(), 100), (owner.id(), 100)]).await;
        Self { members: members.into(), joiner, executed, locked, other, running: Vec::new() }
    }

    /// These members make their Closings.
    fn state(&mut self, numbers: &[usize]) {
        let started = numbers.iter().map(|number| self.members[*number].start(&[]));
        self.running.extend(started);
    }

    /// The new member begins to join.
    fn join(&mut self) {
        let peers: Vec<_> = self.members.iter().collect();
        self.running.push(self.joiner.start(&peers));
    }

    fn name(&self, number: usize) -> AuthorityName {
        self.joiner.served.shards.committee.keys[number].public().name
    }

    /// A member's Closing, as the new member keeps it.
    fn keep(&self, number: usize, signed: &SignedClosing, entries: &[ReportedEntry]) {
        let path = self.joiner.closings().path((ENDED, self.name(number)));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut bytes = Vec::new();
        signed.write(entries.iter().map(Ok), &mut bytes).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// The Closing that a member signs with these entries.
    fn signed(&self, number: usize, checkpoint: Digest, entries: &[ReportedEntry]) -> SignedClosing {
        let leaves = entries.iter().map(ReportedEntry::entry);
        let closing = Closing::new(ENDED, TransactionIndex(INSTALLED), checkpoint, leaves);
        closing.sign(&self.joiner.served.shards.committee.keys[number], &self.joiner.domain())
    }

    fn waits(&self) -> Option<JoinWait> {
        self.joiner.served.shards.metrics.handover.join().map(|(epoch, wait)| {
            assert_eq!(epoch, NEXT);
            wait
        })
    }

    async fn waits_for(&self, what: &str, is_it: impl Fn(&JoinWait) -> bool) -> JoinWait {
        eventually_async(what, || async { self.waits().is_some_and(|wait| is_it(&wait)) }).await;
        assert!(!self.votes(), "{what}");
        self.waits().unwrap()
    }

    fn votes(&self) -> bool {
        self.joiner.served.shards.voter_status.borrow().voter().is_some()
    }

    /// The epochs that the shards have joined on disk.
    async fn joined(&self) -> Vec<Option<Epoch>> {
        let mut joined = Vec::new();
        for handle in self.joiner.served.shards.handles.values() {
            let (reply, ledger) = oneshot::channel();
            handle.try_send(Command::ReadLedger(reply)).unwrap();
            joined.push(ledger.await.unwrap().tenure.joined());
        }
        joined
    }

    /// The new member votes, and knows what the quorum knew.
    async fn has_joined(&self) {
        eventually_async("it votes", || async { self.votes() }).await;
        assert_eq!(self.joined().await, [Some(NEXT); 2]);
        let next = &self.joiner.committees(2)[1];
        let meta = fs::read_to_string(self.joiner.identity.path().join("data/meta.json")).unwrap();
        assert!(meta.contains(&next.keys[3].public().name.to_string()), "{meta}");
        let (joiner, payer) = (&self.joiner, self.executed[0].transfer.sender());
        let client = |account| joiner.served.client(joiner.served.shards.layout.shard_of(&account).0 as usize);
        assert_eq!(client(payer).account(payer).await.unwrap().next_sequence, SequenceNumber(2));
        let owner = self.locked.transfer.sender();
        let told = client(owner).account(owner).await.unwrap();
        assert_eq!((told.pending.as_ref(), told.catching_up), (Some(&self.locked), false));
        let pending = ClientError::Refused(Refusal::OrderPending(Box::new(self.locked.clone())));
        assert_eq!(client(owner).order(&self.other).await, Err(pending));
        let (epoch, vote) = client(owner).order(&self.locked).await.unwrap();
        assert_eq!((epoch, vote.authority), (NEXT, next.keys[3].public().name));
        vote.verify(&joiner.domain(), &next.committee, &next.verified(&self.locked)).unwrap();
        eventually_async("it is said", || async { self.waits().is_none() }).await;
    }

    async fn end(self) {
        drop(self.running);
        for member in self.members.into_iter().chain([self.joiner]) {
            member.end().await;
        }
    }
}

fn client_of(member: &Member, owner: &TestAccount) -> fastpay_client::ShardClient {
    member.served.client(member.served.shards.layout.shard_of(&owner.id()).0 as usize)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_member_joins_with_the_closings_of_a_quorum_and_votes_for_nothing_that_contradicts_them() {
    let mut scene = Scene::new().await;
    scene.joiner.install(INSTALLED, 1, 1).await;
    scene.state(&[0, 1]);
    scene.join();
    let wait = scene.waits_for("two Closings", |wait| matches!(wait, JoinWait::Closings { found: 2, .. })).await;
    let missing = vec![scene.name(2), scene.name(3)];
    let mut named = missing.clone();
    named.sort_unstable();
    let JoinWait::Closings { epoch, needed, missing: mut told, .. } = wait else { unreachable!() };
    told.sort_unstable();
    assert_eq!((epoch, needed, told), (ENDED, 3, named));
    assert_eq!(scene.joiner.metric("join_closings_missing"), 1);
    let unknown = ClientError::Refused(Refusal::UnknownEpoch(NEXT));
    let client = scene.joiner.served.client(1);
    assert_eq!(client.order(&scene.locked).await, Err(unknown));
    let told = client.account(scene.locked.transfer.sender()).await.unwrap();
    assert_eq!((told.pending, told.catching_up), (None, true));
    assert_eq!(scene.joined().await, [None; 2]);
    scene.state(&[2]);
    scene.has_joined().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_member_executes_nothing_before_it_has_followed_the_contract_into_its_first_epoch() {
    let joiner = Member::since(1, 3, 1).await;
    let (payer, committee) = (joiner.served.shards.account_in(0, 0), joiner.served.shards.committee.clone());
    joiner.served.deposit(&[(payer.id(), 100)]).await;
    let certificate = committee.certificate(&payer.sign(&joiner.domain(), payment(payer.id(), payer.id(), 1, 0)));
    joiner.served.shards.voter_status.send_replace(Arc::new(joiner.status(2).ahead(true)));
    let client = joiner.served.client(0);
    let unknown = ClientError::Refused(Refusal::UnknownEpoch(NEXT));
    assert_eq!(client.confirm(&certificate).await, Err(unknown));
    joiner.take_up(2);
    assert_eq!(client.confirm(&certificate).await, Ok((Some(NEXT), SequenceNumber(1))));
    joiner.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_nobody_bears_out_is_left_out_once_another_quorum_has_closed() {
    let mut scene = Scene::new().await;
    scene.joiner.install(INSTALLED, 1, 1).await;
    // With fewer entries than the others: it comes first.
    let account = scene.locked.transfer.sender();
    let claim = [ReportedEntry::account(account, SequenceNumber(7), None)];
    assert!(matches!(claim[0].entry(), ClosingEntry::Account { newest: Newest::Void, .. }));
    scene.keep(3, &scene.signed(3, Digest::ZERO, &claim), &claim);
    scene.state(&[0, 1]);
    scene.join();
    let wait = scene.waits_for("a claim is not borne out", |wait| matches!(wait, JoinWait::Certificates { .. })).await;
    let (authority, claimed, missing) = (scene.name(3), SequenceNumber(7), SequenceNumber(0));
    let first = JoinError::Unproven { authority, account, claimed, missing };
    assert_eq!(wait, JoinWait::Certificates { missing: 7, first });
    assert_eq!(scene.joiner.metric("join_certificates_missing"), 7);
    assert_eq!(scene.joined().await, [Some(NEXT), None]);
    scene.state(&[2]);
    scene.has_joined().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_is_borne_out_late_comes_before_one_that_never_is() {
    let mut scene = Scene::new().await;
    scene.joiner.install(INSTALLED, 1, 1).await;
    let digest = |order: &TransferOrder| scene.joiner.domain().transfer_digest(&order.transfer);
    let locked = PendingOrder { digest: digest(&scene.locked), order: Arc::new(scene.locked.clone()) };
    let (lock, newest) = ([ReportedEntry::lock(&locked)], &scene.executed[1]);
    let payer = newest.transfer.sender();
    let claim = ReportedEntry::account(payer, SequenceNumber(2), Some((newest.clone(), digest(newest))));
    let honest = [claim, lock[0].clone()];
    // Of the same shard: none joins with one of the two claims alone.
    let stranger = scene.joiner.served.shards.account_in(0, 1).id();
    let lie = [ReportedEntry::account(stranger, SequenceNumber(7), None)];
    for (number, entries) in [(0, &honest[..]), (1, &lock), (2, &lock), (3, &lie)] {
        scene.keep(number, &scene.signed(number, Digest::ZERO, entries), entries);
    }
    // Nobody sends anything: the lie is left out for the honest claim, which is not borne out either.
    scene.running.push(scene.joiner.start(&[]));
    let is_of = |wait: &JoinWait, name| matches!(wait, JoinWait::Certificates { first: JoinError::Unproven { authority, .. }, .. } if *authority == name);
    let names = [scene.name(3), scene.name(0)];
    for name in [names[0], names[1], names[0], names[1]] {
        scene.waits_for("a claim is not borne out", |wait| is_of(wait, name)).await;
    }
    let client = scene.joiner.served.client(scene.joiner.served.shards.layout.shard_of(&payer).0 as usize);
    for order in &scene.executed {
        client.confirm(&scene.joiner.served.shards.committee.certificate(order)).await.unwrap();
    }
    scene.has_joined().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_votes_only_once_all_its_shards_have_joined_and_a_damaged_closing_is_fetched_again() {
    let mut scene = Scene::new().await;
    // The members have followed the contract to an event after the installation.
    for member in &scene.members {
        for shard in 0..member.served.shards.layout.count() {
            member.step_over(shard).await;
        }
    }
    scene.state(&[0, 1, 2]);
    let path = scene.members[0].closings().path((ENDED, scene.name(0)));
    eventually_async("there is a Closing", || async { path.is_file() }).await;
    let honest = fs::read(&path).unwrap();
    let (signed, entries) = SignedClosing::read(&mut &honest[..], CLOSING_ENTRIES_MAX).unwrap();
    scene.keep(0, &signed, &entries[1..]);
    scene.join();
    let not_installed = JoinWait::Shard(JoinError::NotInstalled(NEXT));
    scene.waits_for("the installation", |wait| *wait == not_installed).await;
    // One shard has followed the contract as far as they, and the other one has not.
    scene.joiner.install(INSTALLED, 1, 1).await;
    scene.joiner.step_over(0).await;
    let wait =
        scene.waits_for("a shard is behind", |wait| matches!(wait, JoinWait::Shard(JoinError::Behind { .. }))).await;
    let (up_to, synchronized) = (TransactionIndex(INSTALLED + 1), TransactionIndex(INSTALLED));
    assert_eq!(wait, JoinWait::Shard(JoinError::Behind { up_to, synchronized }));
    assert_eq!(scene.joined().await, [None; 2]);
    assert_eq!(fs::read(scene.joiner.closings().path((ENDED, scene.name(0)))).unwrap(), honest);
    // It ends here, and begins again.
    drop(scene.running.pop());
    scene.joiner.step_over(1).await;
    scene.join();
    scene.has_joined().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_have_forgotten_votes_does_not_join_and_nobody_does_after_an_epoch_whose_keys_were_out() {
    let mut scene = Scene::new().await;
    scene.joiner.install(INSTALLED, 1, 1).await;
    scene.state(&[0, 1, 2]);
    let folder = tempfile::tempdir().unwrap();
    let protection = RollbackProtection::new(VoteFloors::open(folder.path()).unwrap()).0;
    let restored = scene.joiner.status(2).with_rollback_protection(Some(Arc::new(protection)));
    scene.joiner.served.shards.voter_status.send_replace(Arc::new(restored));
    scene.join();
    scene.waits_for("its folder is an older copy", |wait| *wait == JoinWait::Restored(NEXT)).await;
    assert_eq!(scene.joined().await, [None; 2]);
    scene.end().await;

    let mut scene = Scene::new().await;
    scene.joiner.install(INSTALLED, 1, 0).await;
    scene.state(&[0, 1, 2]);
    scene.join();
    scene.waits_for("keys were out", |wait| *wait == JoinWait::Compromised(ENDED)).await;
    assert_eq!(scene.joined().await, [None; 2]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closings_that_begin_at_a_checkpoint_are_of_no_use_to_a_folder_that_does_not_include_it() {
    let mut scene = Scene::new().await;
    scene.joiner.install(INSTALLED, 1, 1).await;
    let checkpoint = Digest::repeat_byte(7);
    let pending = PendingOrder {
        digest: scene.joiner.domain().transfer_digest(&scene.locked.transfer),
        order: Arc::new(scene.locked.clone()),
    };
    let entries = [ReportedEntry::lock(&pending)];
    for number in 0..4 {
        scene.keep(number, &scene.signed(number, checkpoint, &entries), &entries);
    }
    scene.join();
    scene.waits_for("a checkpoint", |wait| *wait == JoinWait::Checkpoint(checkpoint)).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_with_new_keys_keeps_what_it_knows_and_joins_before_it_votes_under_them() {
    let mut scene = Scene::of(Member::new(3, 2).await).await;
    // Under its old keys it has executed the first payment, and voted for nothing of the owner that the others know of.
    let payer = scene.executed[0].transfer.sender();
    let shard = scene.joiner.served.shards.layout.shard_of(&payer).0 as usize;
    let client = scene.joiner.served.client(shard);
    client.confirm(&scene.joiner.served.shards.committee.certificate(&scene.executed[0])).await.unwrap();
    scene.joiner.install(INSTALLED, 1, 1).await;
    scene.joiner.take_up(2);
    let unknown = ClientError::Refused(Refusal::UnknownEpoch(NEXT));
    let owner = scene.joiner.served.shards.layout.shard_of(&scene.locked.transfer.sender()).0 as usize;
    for order in [&scene.locked, &scene.other] {
        assert_eq!(scene.joiner.served.client(owner).order(order).await, Err(unknown.clone()));
    }
    // Its own Closing is one of the quorum.
    scene.join();
    scene.waits_for("its own Closing", |wait| matches!(wait, JoinWait::Closings { found: 1, .. })).await;
    scene.state(&[0, 1]);
    scene.has_joined().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_lacks_votes_of_the_epoch_before_joins_and_then_votes_for_everything() {
    let mut scene = Scene::new().await;
    scene.joiner.install(INSTALLED, 1, 1).await;
    scene.state(&[0, 1, 2]);
    let stale = |last| {
        let folder = tempfile::tempdir().unwrap();
        let protection = RollbackProtection::new(VoteFloors::open(folder.path()).unwrap()).0;
        scene.joiner.stale_status(2, last).with_rollback_protection(Some(Arc::new(protection)))
    };
    for (last, wait) in [(NEXT, true), (ENDED, false)] {
        scene.joiner.served.shards.voter_status.send_replace(Arc::new(stale(last)));
        let running = scene.joiner.start(&scene.members.iter().collect::<Vec<_>>());
        if wait {
            scene.waits_for("it may have voted there", |wait| *wait == JoinWait::Restored(NEXT)).await;
        } else {
            eventually_async("it votes", || async { scene.votes() }).await;
        }
        let status = scene.joiner.served.shards.voter_status.borrow().clone();
        assert_eq!((status.votes_for_all(), status.rollback_protection().is_some()), (!wait, wait));
        assert_eq!(scene.joined().await, [if wait { None } else { Some(NEXT) }; 2]);
        drop(running);
    }
    scene.has_joined().await;
    scene.end().await;
}
