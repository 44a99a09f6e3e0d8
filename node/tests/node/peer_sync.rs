//! An authority that was away, and what its peers bring it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientOptions};
use fastpay_core::{
    Certificate, EpochEnd, JournalPosition, SequenceNumber, TransactionIndex, UnlockEvent, UnlockEventKind,
};
use fastpay_node::authority::network::NetworkLimits;
use fastpay_node::authority::peer_book::PeerReader;
use fastpay_node::authority::peer_sync::{Attesters, OwnShards, PeerSync, PeerSyncTimes};
use fastpay_node::authority::shard::{ChainTime, Command, OrderStep, ShardLimits, UnlockKnowledge};
use fastpay_program::Clock;
use fastpay_testkit::fake::{FakeAuthority, FakeCommittee, Role};
use fastpay_testkit::{TestAccount, TestCommittee, payment};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::network::Served;
use crate::scene::{FORGETFUL, Shards, eventually_async, voter_status_with};

const PAYERS: u64 = 7;
const PAYMENTS_EACH: u64 = 30;
/// Short, as the peers are on loopback.
const TIMES: PeerSyncTimes = PeerSyncTimes {
    call: Duration::from_secs(2),
    page: Duration::from_secs(30),
    retry: Duration::from_millis(10),
    left: Duration::from_millis(500),
    contact: Duration::from_millis(50),
    pace: Duration::ZERO,
};

fn payers() -> Vec<TestAccount> {
    (1..=PAYERS).map(TestAccount::ed25519).collect()
}

/// The certificates of payments from each payer to the next.
fn payments(committee: &TestCommittee) -> Vec<Certificate> {
    let payers = payers();
    let certificate = |sequence: u64, rank: usize| {
        let (from, to) = (&payers[rank], &payers[(rank + 1) % payers.len()]);
        committee.certificate(&from.sign(&committee.domain, payment(from.id(), to.id(), 5, sequence)))
    };
    (0..PAYMENTS_EACH)
        .flat_map(|sequence| (0..payers.len()).map(move |rank| (sequence, rank)))
        .map(|(sequence, rank)| certificate(sequence, rank))
        .collect()
}

/// The own shards, and who attests what does not count by itself.
fn own(shards: &Shards, attesters: Vec<AuthorityClient>) -> OwnShards {
    let (domain, voter_status) = (shards.committee.domain, shards.voter_status.subscribe());
    let attesters = Attesters::over(PeerReader::of(attesters), domain, voter_status);
    let all = shards.handles.values().cloned().zip(shards.histories.iter().cloned()).collect();
    OwnShards::new(Arc::new(all), shards.metrics.network.clone(), attesters)
}

/// Synchronization under way; it ends with this.
struct Running {
    task: JoinHandle<()>,
    _stop: watch::Sender<bool>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn synchronize(shards: &Shards, peers: Vec<AuthorityClient>, folder: &Path) -> Running {
    let file = folder.join("peers.json");
    let sync =
        PeerSync::over(PeerReader::of(peers), own(shards, Vec::new()), file, shards.metrics.peers.clone(), TIMES);
    let (stop, stopped) = watch::channel(false);
    Running { task: tokio::spawn(sync.run(stopped)), _stop: stop }
}

/// The same, with authorities that attest what does not count by itself.
fn synchronize_attested(shards: &Shards, fakes: &FakeCommittee, folder: &Path) -> Running {
    let own = own(shards, clients(fakes));
    let file = folder.join("attested.json");
    let sync = PeerSync::over(PeerReader::of(clients(fakes)), own, file, shards.metrics.peers.clone(), TIMES);
    let (stop, stopped) = watch::channel(false);
    Running { task: tokio::spawn(sync.run(stopped)), _stop: stop }
}

fn clients(fakes: &FakeCommittee) -> Vec<AuthorityClient> {
    let options = ClientOptions { connect_timeout: TIMES.call, request_timeout: TIMES.call };
    fakes.endpoints.authorities.iter().map(|entry| AuthorityClient::new(entry, options).unwrap()).collect()
}

async fn next_of(shards: &Shards, payer: &TestAccount) -> u64 {
    shards.ask_account(&payer.id()).await.unwrap().next_sequence().0
}

async fn until_all_paid(shards: &Shards) {
    for payer in payers() {
        eventually_async("all payments of an account", || async { next_of(shards, &payer).await == PAYMENTS_EACH })
            .await;
    }
}

fn stored(folder: &Path) -> serde_json::Value {
    let text = std::fs::read(folder.join("peers.json")).unwrap_or_else(|_| b"null".to_vec());
    serde_json::from_slice(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_was_away_gets_what_it_lacks_and_continues() {
    let (peer_folder, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let peer = Shards::start(peer_folder.path(), 2, FORGETFUL);
    let late = Shards::start(folder.path(), 3, ShardLimits::default());
    let payments = payments(&peer.committee);
    for certificate in &payments {
        peer.send_certificate(certificate);
    }
    until_all_paid(&peer).await;
    // It knows the first payment of some.
    for certificate in payments.iter().take(3) {
        late.send_certificate(certificate);
    }
    let peer = Served::on(peer, peer_folder, NetworkLimits::default(), None).await;
    let client = || {
        let shards = (0..2).map(|shard| peer.client(shard)).collect();
        AuthorityClient::of(peer.shards.committee.keys[1].public().name, shards).unwrap()
    };

    let running = synchronize(&late, vec![client()], folder.path());
    until_all_paid(&late).await;
    for payer in payers() {
        let (here, there) = (late.ask_account(&payer.id()).await.unwrap(), peer.shards.ask_account(&payer.id()));
        eventually_async("the credits between shards", || async {
            late.ask_account(&payer.id()).await.unwrap().received.count() == PAYMENTS_EACH
        })
        .await;
        assert_eq!(here.next_sequence(), there.await.unwrap().next_sequence());
    }
    let name = peer.shards.committee.keys[1].public().name.to_string();
    let ends: Vec<u64> = peer.shards.histories.iter().map(|history| history.end().0).collect();
    eventually_async("the cursors", || async {
        stored(folder.path())["peers"][&name]["cursors"] == serde_json::json!(ends)
    })
    .await;
    drop(running);
    let brought = late.metrics.peers.certificates.get();
    assert!((1..=PAYERS * PAYMENTS_EACH).contains(&brought), "{brought} certificates");

    // Started again, it reads what is new alone.
    let (payer, other) = (&payers()[0], &payers()[1]);
    let order = payer.sign(&peer.shards.committee.domain, payment(payer.id(), other.id(), 5, PAYMENTS_EACH));
    peer.shards.send_certificate(&peer.shards.committee.certificate(&order));
    eventually_async("the payment at the peer", || async { next_of(&peer.shards, payer).await == PAYMENTS_EACH + 1 })
        .await;
    let running = synchronize(&late, vec![client()], folder.path());
    eventually_async("the new payment", || async { next_of(&late, payer).await == PAYMENTS_EACH + 1 }).await;
    eventually_async("the count", || async { late.metrics.peers.certificates.get() == brought + 1 }).await;
    drop(running);
    assert!(late.metrics.text().contains("fastpay_peer_log_behind_bytes"));
    assert_eq!(late.metrics.peers.left.get(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn contact_that_was_lost_and_is_back_brings_what_happened_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let late = Shards::start(folder.path(), 2, ShardLimits::default());
    let fakes = FakeCommittee::start().await;
    let peer = &fakes.authorities[1];
    let _running = synchronize(&late, vec![clients(&fakes)[1].clone()], folder.path());
    peer.play(Role::Down);
    for certificate in payments(&fakes.committee) {
        peer.confirm(&certificate);
    }
    // Long enough that the loss is noticed.
    tokio::time::sleep(TIMES.contact * 4).await;
    assert_eq!(next_of(&late, &payers()[0]).await, 0);
    peer.play(Role::Honest);
    until_all_paid(&late).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_lie_or_stall_delay_no_honest_one() {
    for role in [
        Role::Silent,
        Role::EndlessLog,
        Role::StuckLog,
        Role::LostLog,
        Role::HidesCertificates,
        Role::FalseHistory,
        Role::SpoiltCertificates,
        Role::WithholdsCertificates,
    ] {
        let folder = tempfile::tempdir().unwrap();
        let late = Shards::start(folder.path(), 2, ShardLimits::default());
        let fakes = FakeCommittee::start().await;
        for certificate in payments(&fakes.committee) {
            fakes.authorities[1..].iter().for_each(|peer| peer.confirm(&certificate));
        }
        fakes.authorities[2..].iter().for_each(|liar| liar.play(role));
        if !matches!(role, Role::Silent | Role::HidesCertificates | Role::WithholdsCertificates) {
            let alone_folder = tempfile::tempdir().unwrap();
            let _running = synchronize(&late, clients(&fakes)[2..].to_vec(), alone_folder.path());
            eventually_async("the liars are left", || async { late.metrics.peers.left.get() > 0 }).await;
            let invalid: u64 = late.metrics.shards.iter().map(|shard| shard.invalid.get()).sum();
            assert_eq!(invalid > 0, role == Role::SpoiltCertificates, "{role:?}: {invalid} certificates not valid");
            assert_eq!(late.metrics.peers.certificates.get(), 0, "{role:?}");
        }
        let _running = synchronize(&late, clients(&fakes)[1..].to_vec(), folder.path());
        until_all_paid(&late).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_cursor_moves_before_the_certificates_are_on_disk_here() {
    let folder = tempfile::tempdir().unwrap();
    // Its threads do not run yet: what is queued waits.
    let late = Shards::prepare(folder.path(), 1, ShardLimits::default());
    let fakes = FakeCommittee::start().await;
    for certificate in payments(&fakes.committee) {
        fakes.authorities[1].confirm(&certificate);
    }
    let running = synchronize(&late, vec![clients(&fakes)[1].clone()], folder.path());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(stored(folder.path()), serde_json::Value::Null, "nothing is confirmed here");
    let late = late.run();
    until_all_paid(&late).await;
    let ends: Vec<u64> = late.histories.iter().map(|history| history.end().0).collect();
    eventually_async("the file", || async { stored(folder.path())["own"] == serde_json::json!(ends) }).await;
    drop(running);

    // An older copy of the folder with newer cursors: all is read again.
    let older_folder = tempfile::tempdir().unwrap();
    std::fs::copy(folder.path().join("peers.json"), older_folder.path().join("peers.json")).unwrap();
    let older = Shards::start(older_folder.path(), 1, ShardLimits::default());
    let _running = synchronize(&older, vec![clients(&fakes)[1].clone()], older_folder.path());
    until_all_paid(&older).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_waits_for_the_contract_or_for_a_certificate_is_asked_about_again() {
    let folder = tempfile::tempdir().unwrap();
    let late = Shards::start(folder.path(), 1, ShardLimits::default());
    let fakes = FakeCommittee::start().await;
    let peer = &fakes.authorities[1];
    for certificate in payments(&fakes.committee) {
        peer.confirm(&certificate);
    }
    peer.play(Role::HidesCertificates);
    let running = synchronize(&late, vec![clients(&fakes)[1].clone()], folder.path());
    let name = fakes.committee.keys[1].public().name.to_string();
    eventually_async("the accounts are listed", || async {
        stored(folder.path())["peers"][&name]["later"].as_array().is_some_and(|later| later.len() == PAYERS as usize)
    })
    .await;
    drop(running);
    // Also after a restart.
    peer.play(Role::Honest);
    let _running = synchronize(&late, vec![clients(&fakes)[1].clone()], folder.path());
    until_all_paid(&late).await;
}

/// Its owner asks the contract to unlock a number, and shows the certificate to one authority alone. No relayer takes
/// part, contact is never lost, and no log is read again.
#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_a_disputed_number_is_fetched_from_whoever_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let late = Shards::start(folder.path(), 1, ShardLimits::default());
    let fakes = FakeCommittee::start().await;
    let payments = payments(&fakes.committee);
    fakes.authorities[1].confirm(&payments[1]);
    let _running = synchronize(&late, vec![clients(&fakes)[2].clone(), clients(&fakes)[1].clone()], folder.path());
    eventually_async("contact with the peer", || async { next_of(&late, &payers()[1]).await == 1 }).await;

    let [alice, bob] = [payers()[0].id(), payers()[2].id()];
    let handle = late.handle_of(&alice);
    for (place, account) in [(0, alice), (1, bob)] {
        let (after, index) = (TransactionIndex(place), TransactionIndex(place + 1));
        let kind = UnlockEventKind::Requested(u64::MAX);
        let event = UnlockEvent { after, index, account, sequence: SequenceNumber(0), kind };
        let (reply, applied) = oneshot::channel();
        handle.try_send(Command::Synchronize(vec![OrderStep::Unlock(event)], reply)).unwrap();
        assert_eq!(applied.await.unwrap(), index);
    }
    let asked = fakes.authorities[1].certificates_asked();
    fakes.authorities[1].confirm(&payments[0]);
    let knows = async |account| {
        let (reply, ledger) = oneshot::channel();
        handle.try_send(Command::ReadLedger(reply)).unwrap();
        ledger.await.unwrap().unlocks.get(account, SequenceNumber(0)).is_some_and(|unlock| unlock.seen.is_some())
    };
    eventually_async("the certificate is kept", || knows(alice)).await;
    let (reply, may_vote) = oneshot::channel();
    let vote = Command::VoteUnlock { account: alice, sequence: SequenceNumber(0), unanimous: false, reply };
    handle.try_send(vote).unwrap();
    let attested = may_vote.await.unwrap();
    assert!(matches!(attested, Ok(UnlockKnowledge::Seen(kept)) if *kept == payments[0]));
    // Nobody has one of the other number: it is asked for again and again.
    let before = fakes.authorities[1].certificates_asked();
    assert!(before > asked);
    eventually_async("the peer is asked again", || async { fakes.authorities[1].certificates_asked() > before }).await;
    assert!(!knows(bob).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_page_by_page_and_a_cursor_of_another_one_is_refused() {
    let served = Served::start(1).await;
    for certificate in &payments(&served.shards.committee) {
        served.shards.send_certificate(certificate);
    }
    until_all_paid(&served.shards).await;
    let client = served.client(0);
    let (mut cursor, mut names) = (JournalPosition::default(), Vec::new());
    loop {
        let page = client.confirmed(cursor).await.unwrap().expect("the cursor is of this log");
        if page.next == cursor {
            assert_eq!((page.names.len(), page.end), (0, cursor));
            break;
        }
        names.extend(page.names);
        cursor = page.next;
    }
    assert_eq!(names.len() as u64, PAYERS * PAYMENTS_EACH);
    for payer in payers() {
        let numbers = names.iter().filter(|(account, _)| *account == payer.id()).map(|(_, number)| number.0);
        assert!(numbers.eq(0..PAYMENTS_EACH), "in the order of the numbers");
    }
    for wrong in [cursor.0 + 1, cursor.0 - 1, 1, u64::MAX] {
        assert_eq!(client.confirmed(JournalPosition(wrong)).await.unwrap(), None, "{wrong}");
    }
}

/// The epoch of the certificates ended long ago. f + 1 members executed them in time.
#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_was_away_too_long_gets_old_certificates_with_the_votes_of_others() {
    let (fakes, folder) = (FakeCommittee::start().await, tempfile::tempdir().unwrap());
    let payments = payments(&fakes.committee);
    for at in [1, 2] {
        payments.iter().for_each(|certificate| fakes.authorities[at].confirm(certificate));
    }
    let next = fakes.committee.rotated();
    fakes.install(next.clone());
    fakes.authorities.iter().for_each(FakeAuthority::rotate);
    let mut late = Shards::prepare(folder.path(), 2, ShardLimits::default());
    late.chain = Some((ChainTime { block_time: 1 << 40, unlock_window: 7 * 86_400 }, Clock::at(0)));
    let late = late.run();
    late.voter_status.send_replace(Arc::new(voter_status_with(&[&fakes.committee, &next], EpochEnd::default())));

    let alone = synchronize(&late, clients(&fakes), folder.path());
    eventually_async("the logs are read", || async { stored(folder.path())["peers"].is_object() }).await;
    for payer in payers() {
        assert_eq!(next_of(&late, &payer).await, 0, "nothing counts by itself");
    }
    drop(alone);
    // One of the two is down: one vote is not enough.
    fakes.authorities[1].play(Role::Down);
    let with_one = synchronize_attested(&late, &fakes, folder.path());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(next_of(&late, &payers()[0]).await, 0, "one member alone may lie");
    fakes.authorities[1].play(Role::Honest);
    until_all_paid(&late).await;
    drop(with_one);
}
