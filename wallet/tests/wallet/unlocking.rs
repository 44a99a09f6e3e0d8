//! An account for which two orders of one number were signed, on a real chain with fake authorities: a stranger's request
//! is in the way of nobody, and a number that somebody else had voided is noticed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy::primitives::{Bytes, U64, U256};
use alloy::sol_types::SolEvent;
use fastpay_client::{CommitteeClient, NoCertificates, QuorumError};
use fastpay_core::{Certificate, SequenceNumber, TransactionIndex, UnlockEvent, UnlockEventKind};
use fastpay_ethereum::{Call, IFastPay};
use fastpay_testkit::anvil::{council_of, rich_key};
use fastpay_testkit::fake::{Message, Role, options};
use fastpay_testkit::{alice, bob, carol};
use fastpay_wallet::folder::{Folder, OrderState};
use fastpay_wallet::{Resumed, Unlocking, Wallet, WalletError};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::rotation::Scene;
use crate::support::{Wallets, pay};

const STUCK: SequenceNumber = SequenceNumber(0);

/// Alice has signed two orders of number 0, and two authorities are locked on each; this wallet wrote one of them down.
async fn stuck() -> Scene {
    let scene = Scene::new().await;
    scene.deposit(&alice(), 1_000).await;
    let [ours, theirs] = [30, 40].map(|amount| scene.committee.order(&alice(), &pay(bob().account(), amount), 0));
    let wallet = scene.wallet();
    let journal = wallet.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap();
    journal.create(&scene.committee.committee.verified(&ours)).unwrap();
    let (first, last) = scene.committee.authorities.split_at(2);
    first.iter().for_each(|authority| authority.lock(&ours));
    last.iter().for_each(|authority| authority.lock(&theirs));
    scene
}

impl Scene {
    /// All authorities read the contract's next event about the number.
    fn follow(&self, after: u64, kind: UnlockEventKind) {
        let (after, index, account) = (TransactionIndex(after), TransactionIndex(after + 1), alice().account());
        let event = UnlockEvent { after, index, account, sequence: STUCK, kind };
        self.committee.authorities.iter().for_each(|authority| authority.follow_unlock(&event));
    }

    /// The authorizations of the requests on the contract, in their order.
    async fn requests(&self) -> Vec<Bytes> {
        let filter = json!([{
            "address": self.contract, "topics": [IFastPay::UnlockRequested::SIGNATURE_HASH], "fromBlock": "0x0",
        }]);
        let logs: Vec<alloy::rpc::types::Log> = self.anvil.request("eth_getLogs", filter).await;
        let read = |log: &alloy::rpc::types::Log| IFastPay::UnlockRequested::decode_log(&log.inner).unwrap();
        logs.iter().map(|log| read(log).authorization.clone()).collect()
    }

    /// The owner unlocks the number with another copy of her wallet.
    async fn void_elsewhere(&self) {
        let home = tempfile::tempdir().unwrap();
        self.set_up(home.path()).await;
        let wallet = Wallet::open(Folder::new(home.path()), options()).unwrap();
        let (primary, payer) = (self.primary().await, self.chain_account().await);
        let unlock = async || wallet.unlock(&primary, &alice(), STUCK, Some(&payer)).await;
        assert!(matches!(unlock().await.unwrap(), Unlocking::Waiting { .. }));
        self.follow(1, UnlockEventKind::Requested(0));
        assert!(matches!(unlock().await.unwrap(), Unlocking::Deciding));
        self.follow(2, UnlockEventKind::Voided);
        assert!(matches!(unlock().await.unwrap(), Unlocking::Voided));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_request_is_repeated_once_with_the_owners_signature_and_without_a_bond() {
    let scene = stuck().await;
    let (primary, account) = (scene.primary().await, alice().account());
    let (council, bond) = (council_of(scene.contract), primary.unlock_bond().await.unwrap());
    // A stranger cannot sign for her, and pays the bond.
    let call = Call::request_unlock(council, account, STUCK, vec![7; 96], bond);
    let nonce: U64 = scene.anvil.request("eth_getTransactionCount", json!([rich_key(6).address(), "latest"])).await;
    let hash = scene.anvil.send_raw(&rich_key(6), nonce.to(), council.into(), call.value, call.data).await;
    scene.anvil.mined_receipt(hash).await;
    let (wallet, payer) = (scene.wallet(), scene.chain_account().await);
    let unlock = async || wallet.unlock(&primary, &alice(), STUCK, Some(&payer)).await;
    // Authorities may not have read it yet.
    assert!(matches!(unlock().await.unwrap(), Unlocking::Waiting { .. }));
    assert_eq!(scene.requests().await, [vec![7; 96]]);
    scene.anvil.mine(8).await;
    let before = primary.ether_balance(council).await.unwrap();
    let Unlocking::Waiting { ballot, .. } = unlock().await.unwrap() else { panic!() };
    assert!(ballot.is_ignored(), "{:?}", ballot.failures());
    let own = alice().sign_unlock_request(wallet.network().domain(), STUCK);
    assert_eq!(scene.requests().await, [vec![7; 96], own.clone()]);
    assert_eq!((primary.ether_balance(council).await.unwrap(), before), (bond, bond), "without a bond");
    // Once, also by a later process: it may be that the authorities have not read this one yet.
    scene.anvil.mine(20).await;
    let again = scene.wallet();
    assert!(matches!(again.unlock(&primary, &alice(), STUCK, Some(&payer)).await.unwrap(), Unlocking::Waiting { .. }));
    assert_eq!(scene.requests().await.len(), 2);
    // They follow the second one, and all void the number.
    scene.follow(1, UnlockEventKind::Requested(0));
    assert!(matches!(unlock().await.unwrap(), Unlocking::Deciding));
    scene.follow(2, UnlockEventKind::Voided);
    assert!(matches!(unlock().await.unwrap(), Unlocking::Voided));
    assert_eq!(primary.ether_balance(council).await.unwrap(), U256::ZERO);
    wallet.send(&alice(), &pay(carol().account(), 20)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_request_that_authorities_have_not_read_is_not_repeated() {
    let scene = stuck().await;
    let (primary, payer, wallet) = (scene.primary().await, scene.chain_account().await, scene.wallet());
    for _ in 0..3 {
        let step = wallet.unlock(&primary, &alice(), STUCK, Some(&payer)).await.unwrap();
        assert!(matches!(&step, Unlocking::Waiting { ballot, .. } if ballot.is_ignored()), "{step:?}");
        scene.anvil.mine(8).await;
    }
    assert_eq!(scene.requests().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_another_copy_had_voided_is_noted_before_the_next_one_is_signed() {
    let scene = stuck().await;
    scene.void_elsewhere().await;
    // A copy that knows nothing of the number, and the one that wrote an order of it down.
    let fresh = tempfile::tempdir().unwrap();
    scene.set_up(fresh.path()).await;
    for (sequence, home) in [(1, scene.home.path()), (2, fresh.path())] {
        let orders = Folder::new(home).orders(alice().account());
        let noted = Arc::new(Mutex::new(Vec::new()));
        let (seen, kept) = (orders.clone(), noted.clone());
        scene.committee.observe(move |message| {
            if let Message::Order(order) = message
                && order.transfer.sequence() == SequenceNumber(sequence)
            {
                kept.lock().unwrap().push(seen.is_voided(STUCK).unwrap());
            }
        });
        let wallet = Wallet::open(Folder::new(home), options()).unwrap();
        let receipt = wallet.send(&alice(), &pay(carol().account(), 20)).await.unwrap();
        assert_eq!((receipt.certificate.transfer().sequence().0, receipt.resumed), (sequence, false));
        assert!(orders.is_voided(STUCK).unwrap());
        let noted = noted.lock().unwrap();
        assert!(noted.len() >= 3 && noted.iter().all(|noted| *noted), "{noted:?}");
    }
    let orders = scene.wallet().folder().orders(alice().account());
    assert_eq!(orders.entry(STUCK).unwrap().unwrap().state, OrderState::Voided);
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_and_history_note_a_number_that_another_copy_had_voided() {
    let scene = stuck().await;
    let state = |history: &Value| history["events"][0]["state"].clone();
    // As long as it is open, it is unfinished, and nobody calls it void: not the contract, and not the authorities.
    let (history, _) = scene.fastpay(&["history", "--account", &alice().account().to_string()]).await;
    assert_eq!(state(&history), json!("created"), "{history}");
    scene.void_elsewhere().await;
    let copy = tempfile::tempdir().unwrap();
    scene.set_up(copy.path()).await;
    let ours = scene.wallet().folder().orders(alice().account()).entry(STUCK).unwrap().unwrap();
    let order = ours.order.clone().unwrap();
    let wallet = Wallet::open(Folder::new(copy.path()), options()).unwrap();
    let journal = wallet.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap();
    journal.create(&order.verify(wallet.network().domain()).unwrap()).unwrap();
    drop(journal);
    let resumed = wallet.resume(alice().account()).await.unwrap();
    let [Resumed::Voided { order }] = &resumed[..] else { panic!("{resumed:?}") };
    assert_eq!(Some(&**order), ours.transfer());
    assert!(wallet.resume(alice().account()).await.unwrap().is_empty());
    let (history, _) = scene.fastpay(&["history", "--account", &alice().account().to_string()]).await;
    assert_eq!(state(&history), json!("voided"), "{history}");
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_the_authorities_nor_the_contract_alone_make_a_number_void() {
    let scene = stuck().await;
    let (wallet, account) = (scene.wallet(), alice().account());
    // They say so, and the contract does not.
    scene.follow(1, UnlockEventKind::Requested(0));
    scene.follow(2, UnlockEventKind::Voided);
    wallet.note_voids(account).await.unwrap();
    wallet.resume(account).await.unwrap_err();
    assert!(!wallet.folder().orders(account).is_voided(STUCK).unwrap());
    // The contract says so, and only f authorities have stepped over it.
    let scene = stuck().await;
    let wallet = scene.wallet();
    let (primary, payer) = (scene.primary().await, scene.chain_account().await);
    wallet.unlock(&primary, &alice(), STUCK, Some(&payer)).await.unwrap();
    scene.follow(1, UnlockEventKind::Requested(0));
    assert!(matches!(wallet.unlock(&primary, &alice(), STUCK, Some(&payer)).await.unwrap(), Unlocking::Deciding));
    let event =
        |kind| UnlockEvent { after: TransactionIndex(2), index: TransactionIndex(3), account, sequence: STUCK, kind };
    scene.committee.authorities[0].follow_unlock(&event(UnlockEventKind::Voided));
    wallet.note_voids(account).await.unwrap();
    assert!(!wallet.folder().orders(account).is_voided(STUCK).unwrap());
    scene.committee.authorities[1].follow_unlock(&event(UnlockEventKind::Voided));
    // Silence of more than f says nothing: one of them may have executed the number.
    let absent = || async {
        let deadline = Instant::now() + Duration::from_secs(5);
        wallet.network().is_without_certificate(account, STUCK, deadline).await
    };
    scene.committee.authorities[3].play(Role::Down);
    assert!(absent().await);
    scene.committee.authorities[2].play(Role::Down);
    assert!(!absent().await);
    for authority in &scene.committee.authorities[2..] {
        authority.play(Role::Honest);
    }
    wallet.note_voids(account).await.unwrap();
    assert!(wallet.folder().orders(account).is_voided(STUCK).unwrap());
}

/// The certificate of the order that the wallet wrote down.
fn certificate(scene: &Scene) -> Certificate {
    let ours = scene.wallet().folder().orders(alice().account()).entry(STUCK).unwrap().unwrap();
    scene.committee.committee.certificate(&ours.order.unwrap())
}

/// One authority collected the votes for an order while it was stuck, and shows its certificate once the number is void.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_was_hidden_until_its_number_was_void_proves_nothing() {
    let scene = stuck().await;
    let (wallet, certificate) = (scene.wallet(), certificate(&scene));
    let orders = wallet.folder().orders(alice().account());
    scene.void_elsewhere().await;
    scene.committee.authorities[0].show(&certificate, false);
    let (primary, payer) = (scene.primary().await, scene.chain_account().await);
    let unlocked = wallet.unlock(&primary, &alice(), STUCK, Some(&payer)).await.unwrap();
    assert!(matches!(unlocked, Unlocking::Voided), "{unlocked:?}");
    assert_eq!(orders.entry(STUCK).unwrap().unwrap().state, OrderState::Voided);
    let receipt = wallet.send(&alice(), &pay(carol().account(), 20)).await.unwrap();
    assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(1));
    // A copy that has nothing, and one that has the order. A later number is used.
    for order in [None, Some(certificate.order.clone())] {
        let home = tempfile::tempdir().unwrap();
        scene.set_up(home.path()).await;
        let copy = Wallet::open(Folder::new(home.path()), options()).unwrap();
        if let Some(order) = order {
            let journal = copy.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap();
            journal.create(&order.verify(copy.network().domain()).unwrap()).unwrap();
        }
        let resumed = copy.resume(alice().account()).await.unwrap();
        assert!(resumed.iter().all(|resumed| !matches!(resumed, Resumed::Superseded { .. })), "{resumed:?}");
        let noted = copy.folder().orders(alice().account()).entry(STUCK).unwrap().unwrap();
        assert_eq!(noted.state, OrderState::Voided);
        copy.send(&alice(), &pay(carol().account(), 1)).await.unwrap();
    }
    assert_eq!(scene.committee.authorities[1].balance(bob().account()), 0);
}

/// A copy stored the certificate, and stayed away through the window. The others voided the number.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_was_certified_and_then_voided_is_noted_as_void() {
    for is_resumed in [true, false] {
        let scene = stuck().await;
        let (wallet, certificate) = (scene.wallet(), certificate(&scene));
        let orders = wallet.folder().orders(alice().account());
        let network = wallet.network();
        let verified = network.verify_certificate(certificate, alice().account(), STUCK).unwrap();
        orders.lock(Duration::ZERO).await.unwrap().certify(&verified).unwrap();
        scene.void_elsewhere().await;
        let client = CommitteeClient::new(network.clone(), Arc::new(NoCertificates), options());
        let error = client.settle(&verified).await.unwrap_err();
        assert!(matches!(error, QuorumError::Voided { .. }), "{error:?}");
        assert!(error.is_unsettled(&network.committee()));
        if is_resumed {
            let resumed = wallet.resume(alice().account()).await.unwrap();
            assert!(matches!(&resumed[..], [Resumed::Voided { .. }]), "{resumed:?}");
        } else {
            wallet.note_voids(alice().account()).await.unwrap();
        }
        assert_eq!(orders.entry(STUCK).unwrap().unwrap().state, OrderState::Voided);
        let receipt = wallet.send(&alice(), &pay(carol().account(), 20)).await.unwrap();
        assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f_plus_1_authorities_without_the_contract_note_no_certified_order_as_void() {
    let scene = stuck().await;
    let (wallet, certificate) = (scene.wallet(), certificate(&scene));
    let orders = wallet.folder().orders(alice().account());
    let verified = wallet.network().verify_certificate(certificate, alice().account(), STUCK).unwrap();
    orders.lock(Duration::ZERO).await.unwrap().certify(&verified).unwrap();
    scene.follow(1, UnlockEventKind::Requested(0));
    scene.follow(2, UnlockEventKind::Voided);
    wallet.note_voids(alice().account()).await.unwrap();
    let error = wallet.resume(alice().account()).await.unwrap_err();
    assert!(matches!(error, WalletError::Quorum(QuorumError::Voided { .. })), "{error:?}");
    assert_eq!(orders.entry(STUCK).unwrap().unwrap().state, OrderState::Certified);
}
