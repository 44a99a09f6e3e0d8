//! What a wallet writes down is true at every instant, and it is written down before the next step is taken: the
//! authorities and the Ethereum node look into the folder when a message arrives. Each test fails where the two steps
//! that it names are swapped.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy::primitives::{B256, Bytes, keccak256};
use fastpay_client::{QuorumError, QuorumOptions};
use fastpay_core::{AccountKey, Amount, Asset, Certificate, Genesis, SequenceNumber, TransferOrder};
use fastpay_ethereum::{Finality, Primary, PrimaryConfig, SenderConfig};
use fastpay_testkit::anvil::{Anvil, LyingNode, Mining, rich_key};
use fastpay_testkit::fake::{FakeCommittee, Message, Role, options};
use fastpay_testkit::{TestCommittee, alice, bob, carol};
use fastpay_wallet::folder::{Config, Folder, FolderError, OrderState, TransactionState};
use fastpay_wallet::{ChainAccount, Resumed, Wallet, WalletError, set_up};

use crate::support::{Wallets, pay};

/// An order or a certificate of Alice that arrived at an authority, and what her folder said at that moment.
#[derive(Debug)]
struct Arrival {
    message: Message,
    /// What stands under its number.
    order: Option<TransferOrder>,
    certificate: Option<Certificate>,
    /// Whether `resume` would continue with the number.
    is_unfinished: bool,
}

/// Writes down all that arrives under a number.
fn watch(committee: &FakeCommittee, home: &Path, sequence: u64) -> Arc<Mutex<Vec<Arrival>>> {
    let (arrivals, orders) = (Arc::<Mutex<Vec<Arrival>>>::default(), Folder::new(home).orders(alice().account()));
    let kept = arrivals.clone();
    committee.observe(move |message| {
        let transfer = match message {
            Message::Order(order) => &order.transfer,
            Message::Certificate(certificate) => &certificate.order.transfer,
        };
        if (transfer.sender(), transfer.sequence()) != (orders.account(), SequenceNumber(sequence)) {
            return;
        }
        let entry = orders.entry(transfer.sequence()).unwrap();
        let (order, certificate) = entry.map_or((None, None), |entry| (entry.order, entry.certificate));
        let is_unfinished = orders.unfinished().unwrap().iter().any(|entry| entry.sequence.0 == sequence);
        kept.lock().unwrap().push(Arrival { message: message.clone(), order, certificate, is_unfinished });
    });
    arrivals
}

/// Every order was on disk before it arrived anywhere; every certificate was, and a quorum had to confirm it before it
/// was noted as settled. Returns how many orders and certificates arrived.
fn check(arrivals: &Mutex<Vec<Arrival>>) -> (usize, usize) {
    let (mut orders, mut certificates) = (0, 0);
    for arrival in &*arrivals.lock().unwrap() {
        match &arrival.message {
            Message::Order(order) => {
                orders += 1;
                assert_eq!(arrival.order.as_ref(), Some(order), "an order was sent before it was on disk");
            }
            Message::Certificate(certificate) => {
                certificates += 1;
                assert_eq!(
                    arrival.certificate.as_ref(),
                    Some(certificate),
                    "a certificate was brought before it was on disk"
                );
                // Of three confirmations the last one cannot have been given yet.
                assert!(certificates > 3 || arrival.is_unfinished, "settled was noted before a quorum confirmed it");
            }
        }
    }
    (orders, certificates)
}

#[tokio::test]
async fn an_order_and_its_certificate_are_on_disk_before_they_are_sent_and_settled_is_noted_last() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let arrivals = watch(&committee, home.path(), 0);
    committee.wallet(home.path()).send(&alice(), &pay(bob().account(), 40)).await.unwrap();
    let (orders, certificates) = check(&arrivals);
    assert!(orders >= 3 && certificates >= 3, "{orders} orders, {certificates} certificates");
    assert!(committee.wallet(home.path()).resume(alice().account()).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_order_that_is_adopted_is_on_disk_before_it_is_sent() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let (home, theirs) = (tempfile::tempdir().unwrap(), pay(bob().account(), 40));
    // At two, of which any three that answer include one.
    [1, 2].iter().for_each(|index| committee.authorities[*index].lock(&committee.order(&alice(), &theirs, 0)));
    let arrivals = watch(&committee, home.path(), 0);
    committee.wallet(home.path()).send(&alice(), &pay(carol().account(), 30)).await.unwrap();
    let (orders, certificates) = check(&arrivals);
    assert!(orders >= 3 && certificates >= 3, "{orders} orders, {certificates} certificates");
}

#[tokio::test]
async fn the_certificate_of_a_competitor_is_on_disk_before_it_is_brought_to_anybody() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let [ours, theirs] = [30, 40].map(|amount| committee.order(&alice(), &pay(bob().account(), amount), 0));
    let wallet = committee.wallet(home.path());
    let journal = wallet.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap();
    journal.create(&committee.committee.verified(&ours)).unwrap();
    drop(journal);
    committee.authorities[0].lock(&ours);
    committee.authorities[1..].iter().for_each(|authority| authority.lock(&theirs));
    let arrivals = watch(&committee, home.path(), 0);
    let resumed = wallet.resume(alice().account()).await.unwrap();
    assert!(matches!(resumed[..], [Resumed::Superseded { .. }]), "{resumed:?}");
    let mut arrivals = arrivals.lock().unwrap();
    arrivals.retain(|arrival| matches!(arrival.message, Message::Certificate(_)));
    assert!(arrivals.len() >= 3);
    for arrival in arrivals.iter().take(3) {
        assert_eq!(arrival.certificate.as_ref().map(|certificate| &certificate.order), Some(&theirs));
        assert!(arrival.is_unfinished, "settled was noted before a quorum confirmed it");
    }
}

/// The authorities vote, and are gone before the certificate comes.
#[tokio::test]
async fn a_certificate_that_could_be_brought_to_nobody_is_listed_and_brought_later() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let (fakes, heard) = (committee.authorities.clone(), Mutex::new(0));
    committee.observe(move |message| {
        let mut heard = heard.lock().unwrap();
        *heard += usize::from(matches!(message, Message::Order(_)));
        if *heard == 3 {
            fakes.iter().for_each(|authority| authority.play(Role::Down));
        }
    });
    let options = QuorumOptions { deadline: Duration::from_secs(10), ..options() };
    let wallet = Wallet::new(Folder::new(home.path()), committee.network(), options);
    let error = wallet.send(&alice(), &pay(bob().account(), 40)).await.unwrap_err();
    let is_expected =
        matches!(&error, WalletError::Quorum(QuorumError::NoQuorum { what: "confirmations", count: 0, .. }));
    assert!(is_expected, "{error}");
    let orders = wallet.folder().orders(alice().account());
    assert_eq!(orders.unfinished().unwrap()[0].state, OrderState::Certified);
    committee.observe(|_| {});
    committee.authorities.iter().for_each(|authority| authority.play(Role::Honest));
    let resumed = committee.wallet(home.path()).resume(alice().account()).await.unwrap();
    assert!(matches!(resumed[..], [Resumed::Settled(_)]), "{resumed:?}");
    committee.until(|authority| authority.balance(bob().account()) == 40).await;
}

#[tokio::test]
async fn settled_is_not_noted_without_the_certificate() {
    let (committee, home) = (FakeCommittee::start().await, tempfile::tempdir().unwrap());
    let order = committee.committee.verified(&committee.order(&alice(), &pay(bob().account(), 1), 0));
    let journal = Folder::new(home.path()).orders(alice().account()).lock(Duration::ZERO).await.unwrap();
    journal.create(&order).unwrap();
    let error = journal.settle(&committee.committee.certified(order.order())).unwrap_err();
    assert!(matches!(error, FolderError::NotCertified { sequence: SequenceNumber(0), .. }), "{error}");
    assert_eq!(journal.orders().unfinished().unwrap().len(), 1);
}

/// Killed while it waits for certificates: nothing that is not in the inbox was passed.
#[tokio::test]
async fn a_list_counts_as_read_only_as_far_as_its_payments_are_on_disk() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let (home, payer) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for amount in [1, 2] {
        committee.wallet(payer.path()).send(&alice(), &pay(bob().account(), amount)).await.unwrap();
    }
    committee.until(|authority| authority.balance(bob().account()) == 3).await;
    committee.authorities.iter().for_each(|authority| authority.play(Role::WithholdsCertificates));
    let wallet = committee.wallet(home.path());
    let killed = tokio::spawn(async move { wallet.collect(bob().account()).await.map(drop) });
    committee.until_so_many(1, |authority| authority.is_waited_for()).await;
    killed.abort();
    assert!(killed.await.unwrap_err().is_cancelled());
    let inbox = Folder::new(home.path()).inbox(bob().account());
    let passed = inbox.lock(Duration::from_secs(5)).await.unwrap().cursors().unwrap();
    assert!(passed.values().all(|cursor| cursor.next == 0), "{passed:?}");
    committee.authorities.iter().for_each(|authority| authority.play(Role::Honest));
    assert_eq!(committee.wallet(home.path()).collect(bob().account()).await.unwrap().new.len(), 2);
}

/// A configuration without its committees could not be used, and not be written again without `--force`.
#[tokio::test]
async fn a_configuration_is_written_once_its_committees_are_on_disk() {
    let (committee, home) = (FakeCommittee::start().await, tempfile::tempdir().unwrap());
    let genesis = Genesis { committee: committee.committee.committee.members().to_vec(), balances: Vec::new() };
    let (file, endpoints) = (home.path().join("genesis.json"), home.path().join("endpoints.json"));
    std::fs::write(&file, serde_json::to_vec(&genesis).unwrap()).unwrap();
    std::fs::write(&endpoints, serde_json::to_vec(&committee.endpoints).unwrap()).unwrap();
    let (folder, config) =
        (Folder::new(home.path()), Config { endpoints, primary: None, genesis: Some(file), traces: None });
    // In the way of the configuration.
    std::fs::create_dir(folder.config_path()).unwrap();
    set_up(&folder, &config, true).await.unwrap_err();
    assert!(folder.known_committees().unwrap().is_some());
}

/// What an Ethereum node is sent, and whether the folder had it by then.
#[tokio::test]
async fn a_transaction_is_on_disk_before_it_is_sent_and_so_is_every_better_offer() {
    let anvil = Anvil::start(Mining::Manual);
    let contract = anvil.deploy(&TestCommittee::new(4).committee).await;
    let (node, home) = (LyingNode::start(&anvil.url()), tempfile::tempdir().unwrap());
    let transactions = Folder::new(home.path()).transactions(rich_key(1).address());
    let sent = Arc::<Mutex<Vec<(B256, bool)>>>::default();
    let (kept, written) = (sent.clone(), transactions.clone());
    node.lie(move |method, params, _| {
        if method != "eth_sendRawTransaction" {
            return;
        }
        let raw: Bytes = params[0].as_str().unwrap().parse().unwrap();
        let (hash, entries) = (keccak256(raw), written.entries().unwrap());
        let mut attempts = entries.iter().flat_map(|entry| &entry.submission.attempts);
        kept.lock().unwrap().push((hash, attempts.any(|attempt| attempt.hash == hash)));
    });
    let finality = Finality::Confirmations(0);
    let config = PrimaryConfig { rpc_urls: vec![node.url()], finality, ..anvil.config(contract) };
    let sender = SenderConfig { poll_interval_ms: 20, stuck_after_ms: 200, ..SenderConfig::default() };
    let key = AccountKey::ethereum(rich_key(1).to_bytes().0).unwrap();
    let primary = Primary::connect(config).await.unwrap();
    let noted = transactions.clone();
    let account = ChainAccount::new(&Folder::new(home.path()), primary, "test", &key, sender).unwrap();
    let account = account.with_listener(Arc::new(move |_, progress| {
        let is_pending = noted.entries().unwrap().iter().all(|entry| entry.state == TransactionState::Pending);
        assert!(is_pending, "an end was noted before the transaction was final: {progress:?}");
    }));
    let deposit = tokio::spawn(async move { account.deposit(bob().account(), Asset::ETHER, Amount(5)).await });
    let offers = || sent.lock().unwrap().iter().map(|(hash, _)| *hash).collect::<BTreeSet<_>>().len();
    while offers() < 3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    while !deposit.is_finished() {
        anvil.mine(1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let finished = deposit.await.unwrap().unwrap();
    assert!(sent.lock().unwrap().iter().all(|(_, is_written)| *is_written), "{sent:?}");
    assert_eq!(transactions.entries().unwrap()[0].state, TransactionState::Final(finished.inclusion));
}
