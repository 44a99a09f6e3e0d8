//! The watch on payments, also with an incomplete view, with a wallet and authorities behind real gRPC.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastpay_core::{
    AccountKey, Amount, Asset, Domain, Epoch, Memo, Payment, PrimaryAddress, Redemption, SequenceNumber,
    TransactionIndex, Transfer, UnlockEvent, UnlockEventKind,
};
use fastpay_ethereum::{Finality, SenderConfig};
use fastpay_ledger_client::scripted::{COMMITTEE, ScriptedLedger};
use fastpay_ledger_statement::Time;
use fastpay_merchant::checkout::Checkout;
use fastpay_merchant::follow::follow;
use fastpay_merchant::forms::LinkBase;
use fastpay_merchant::invoice::State;
use fastpay_merchant::ledger::{Ledger, now_ms};
use fastpay_merchant::payout::PayoutRequest;
use fastpay_merchant::refund::RefundRequest;
use fastpay_merchant::request::Request;
use fastpay_merchant::watch::{Blindness, poll};
use fastpay_testkit::anvil::{Anvil, CHAIN_ID, Mining, rich_key};
use fastpay_testkit::fake::{FakeCommittee, Role, options};
use fastpay_testkit::{TestCommittee, alice, bob, payment, redemption};
use fastpay_wallet::folder::{Config, Folder, FolderError, LedgerSettings, PrimarySection, PrimarySettings};
use fastpay_wallet::{ChainAccount, PaymentLink, Wallet, WalletError, parse_memo, set_up};
use tempfile::TempDir;

fn wallet(committee: &FakeCommittee, folder: &TempDir) -> Wallet {
    Wallet::new(Folder::new(folder.path().join("wallet")), committee.network(), options())
}

/// A shop with an invoice of 5 to Bob, and Alice, who can pay it.
struct Scene {
    committee: FakeCommittee,
    wallet: Wallet,
    ledger: Ledger,
    expires_at_ms: u64,
    taken: AtomicUsize,
    folder: TempDir,
}

impl Scene {
    async fn new() -> Self {
        Self::of(FakeCommittee::start().await).await
    }

    async fn of(committee: FakeCommittee) -> Self {
        committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
        let folder = tempfile::tempdir().unwrap();
        let wallet = wallet(&committee, &folder);
        let link = PaymentLink::new(bob().account(), &committee.committee.domain, Asset::ETHER);
        let ledger = Ledger::open(folder.path(), LinkBase { link, page: None, checkout: None }, true).await.unwrap();
        let (asset, amount, memo) = (Asset::ETHER, Amount(5), Some(Memo::ZERO));
        let checkout = Checkout::default();
        let request = Request { reference: "order 1".into(), asset, amount, memo, expires_in: 5, checkout };
        ledger.create(&request, 1).unwrap();
        let expires_at_ms = (now_ms().div_ceil(1_000) + 5) * 1_000;
        Self { committee, wallet, ledger, expires_at_ms, taken: AtomicUsize::new(0), folder }
    }

    /// Settles a transfer of this key's account at all authorities.
    fn settle(&self, key: &AccountKey, transfer: impl Into<Transfer>) {
        let committee = &self.committee.committee;
        let certificate = committee.certificate(&key.order(&committee.domain, transfer.into()));
        self.committee.authorities.iter().for_each(|authority| authority.confirm(&certificate));
    }

    /// A settled payment of the invoice.
    fn pay(&self) {
        self.settle(&alice(), payment(alice().account(), bob().account(), 5, 0));
    }

    fn play(&self, role: Role) {
        self.committee.authorities.iter().for_each(|authority| authority.play(role));
    }

    async fn until_it_ended(&self) {
        while now_ms() < self.expires_at_ms {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn poll(&self) -> Option<Blindness> {
        let mut taken = self.taken.load(Ordering::Relaxed);
        let blindness = poll(&self.wallet, &self.ledger, &mut taken).await.unwrap();
        self.taken.store(taken, Ordering::Relaxed);
        blindness
    }

    /// The states that the shop is to be notified of.
    fn due_states(&self) -> Vec<State> {
        self.ledger.due(u64::MAX, u64::MAX, 10).unwrap().iter().map(|delivery| delivery.event.state).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_cannot_be_proven_until_later_is_in_time() {
    let scene = Scene::new().await;
    assert!(scene.poll().await.is_none());
    scene.pay();
    scene.play(Role::HidesCertificates);
    scene.until_it_ended().await;
    let blindness = scene.poll().await;
    assert!(matches!(blindness, Some(Blindness::Unproven)), "{blindness:?}");
    assert_eq!(scene.due_states(), [], "nothing expires of what may have been paid");
    scene.play(Role::Honest);
    assert!(scene.poll().await.is_none());
    assert_eq!(scene.due_states(), [State::Paid]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_liar_keeps_nothing_from_expiring() {
    let scene = Scene::new().await;
    scene.committee.authorities[0].play(Role::FalseHistory);
    scene.until_it_ended().await;
    assert!(scene.poll().await.is_none());
    assert_eq!(scene.due_states(), [State::Expired]);
    scene.pay();
    assert!(scene.poll().await.is_none());
    assert_eq!(scene.due_states().len(), 2, "and keeps no payment away");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_received_payment_is_reported_while_the_wallet_still_waits() {
    let scene = Arc::new(Scene::new().await);
    assert!(scene.poll().await.is_none());
    scene.pay();
    // Another command that uses the same folder takes it in, and goes on using it.
    let other = wallet(&scene.committee, &scene.folder);
    assert_eq!(other.collect(bob().account()).await.unwrap().new.len(), 1);
    let lock = other.folder().inbox(bob().account()).lock(Duration::ZERO).await.unwrap();
    let looking = tokio::spawn({
        let scene = scene.clone();
        async move { scene.poll().await }
    });
    while scene.due_states().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(scene.due_states(), [State::Paid]);
    drop(lock);
    assert!(looking.await.unwrap().is_none(), "it was told before the wallet had done with waiting");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_uses_the_same_folder_takes_nothing_away() {
    let scene = Scene::new().await;
    assert!(scene.poll().await.is_none());
    scene.pay();
    let other = wallet(&scene.committee, &scene.folder);
    assert_eq!(other.collect(bob().account()).await.unwrap().new.len(), 1);
    // While it is at work the service waits, and goes on.
    let lock = other.folder().inbox(bob().account()).lock(Duration::ZERO).await.unwrap();
    let blindness = scene.poll().await;
    assert!(matches!(blindness, Some(Blindness::Wallet(WalletError::Folder(FolderError::Busy { .. })))));
    assert_eq!(scene.due_states(), [State::Paid]);
    drop(lock);
    assert!(scene.poll().await.is_none());
    assert_eq!(scene.due_states(), [State::Paid]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_the_owner_paid_is_found_among_the_accounts_orders() {
    let scene = Scene::new().await;
    scene.pay();
    scene.settle(&alice(), payment(alice().account(), bob().account(), 5, 1));
    assert!(scene.poll().await.is_none());
    assert_eq!(scene.due_states(), [State::PaidTwice]);
    let request = RefundRequest { reference: "monday".into(), invoices: vec![], due: true, unmatched: false };
    let (list, _) = scene.ledger.prepare_refunds(&request).unwrap();
    let line = serde_json::to_value(&list).unwrap()["refunds"][0].clone();
    assert_eq!(
        (line["amount"].as_str(), line["recipient"].as_str()),
        (Some("5"), Some(&*alice().account().to_string()))
    );
    // An order of something else comes before it.
    let memo = parse_memo(line["memo"].as_str().unwrap()).unwrap();
    for (sequence, amount, memo) in [(0, 1, Memo::ZERO), (1, 5, memo)] {
        let refund = payment(bob().account(), alice().account(), amount, sequence);
        scene.settle(&bob(), Payment { memo, ..refund });
    }
    assert!(scene.poll().await.is_none());
    let list = serde_json::to_value(scene.ledger.refunds("monday").unwrap().unwrap()).unwrap();
    assert_eq!(list["refunds"][0]["paid"]["sequence"], 1, "{list}");
    assert_eq!(scene.ledger.expects_sent().unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_whose_certificate_is_pruned_is_found_in_an_archive_and_hides_no_later_one() {
    let scene = Scene::new().await;
    scene.pay();
    for sequence in [1, 2] {
        scene.settle(&alice(), payment(alice().account(), bob().account(), 4, sequence));
    }
    assert!(scene.poll().await.is_none());
    let request = RefundRequest { reference: "monday".into(), invoices: vec![], due: true, unmatched: false };
    let (list, _) = scene.ledger.prepare_refunds(&request).unwrap();
    let list = serde_json::to_value(&list).unwrap();
    let refund = |line: usize, sequence| {
        let memo = parse_memo(list["refunds"][line]["memo"].as_str().unwrap()).unwrap();
        scene.settle(&bob(), Payment { memo, ..payment(bob().account(), alice().account(), 4, sequence) });
    };
    refund(0, 0);
    scene.committee.prune(true);
    refund(1, 1);
    // Nobody shows an archive that is proven.
    scene.play(Role::FalseArchive);
    scene.poll().await;
    assert_eq!(scene.ledger.expects_sent().unwrap(), Some(SequenceNumber(0)));
    scene.play(Role::Honest);
    assert!(scene.poll().await.is_none());
    let paid = serde_json::to_value(scene.ledger.refunds("monday").unwrap().unwrap()).unwrap();
    let numbers = [0, 1].map(|line: usize| paid["refunds"][line]["paid"]["sequence"].as_u64());
    assert_eq!(numbers, [Some(0), Some(1)], "{paid}");
    assert_eq!(scene.ledger.expects_sent().unwrap(), None);
}

/// Retired keys certified another order of the owner, whose number is used; all confirm it.
#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_was_not_executed_is_not_taken_for_paid() {
    let scene = Scene::new().await;
    scene.pay();
    scene.settle(&alice(), payment(alice().account(), bob().account(), 5, 1));
    assert!(scene.poll().await.is_none());
    let request = RefundRequest { reference: "monday".into(), invoices: vec![], due: true, unmatched: false };
    let (list, _) = scene.ledger.prepare_refunds(&request).unwrap();
    let memo = serde_json::to_value(&list).unwrap()["refunds"][0]["memo"].clone();
    let memo = parse_memo(memo.as_str().unwrap()).unwrap();
    let order = |memo| {
        let refund = Payment { memo, ..payment(bob().account(), alice().account(), 5, 0) };
        bob().order(&scene.committee.committee.domain, refund.into())
    };
    let forged = scene.committee.committee.certificate(&order(memo));
    let real = scene.committee.replace_long_ago(scene.wallet.network()).certificate(&order(Memo::ZERO));
    scene.committee.authorities.iter().for_each(|authority| authority.confirm(&real));
    let (liar, others) = scene.committee.authorities.split_first().unwrap();
    liar.show(&forged, false);
    others.iter().for_each(|other| other.play(Role::SlowCertificates(Duration::from_millis(200))));
    scene.poll().await;
    let list = serde_json::to_value(scene.ledger.refunds("monday").unwrap().unwrap()).unwrap();
    assert!(list["refunds"][0]["paid"].is_null(), "{list}");
    assert_eq!(scene.ledger.expects_sent().unwrap(), Some(SequenceNumber(1)), "the real one is read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_of_the_owner_that_the_contract_voided_hides_no_refund_and_no_payout() {
    let anvil = Anvil::start(Mining::Each);
    let contract = anvil.deploy(&TestCommittee::new(4).committee).await;
    let domain = Domain::new(CHAIN_ID, contract);
    let mut scene = Scene::of(FakeCommittee::start_with(TestCommittee::with(4, domain, Epoch(0))).await).await;
    let endpoints = scene.folder.path().join("endpoints.json");
    std::fs::write(&endpoints, serde_json::to_vec(&scene.committee.endpoints).unwrap()).unwrap();
    let sender = SenderConfig { poll_interval_ms: 20, ..SenderConfig::default() };
    let (rpc_urls, finality) = (vec![anvil.url()], Finality::Confirmations(0));
    let primary = PrimarySettings { rpc_urls, chain_id: CHAIN_ID, contract, finality, sender: sender.clone() };
    let config = Config { endpoints, primary: Some(primary.into()), genesis: None, traces: None };
    let folder = |name: &str| Folder::new(scene.folder.path().join(name));
    let (shop, owner) = (folder("shop"), folder("owner"));
    for folder in [&shop, &owner] {
        set_up(folder, &config, false).await.unwrap();
    }
    scene.wallet = Wallet::open(shop, options()).unwrap();
    scene.pay();
    scene.settle(&alice(), payment(alice().account(), bob().account(), 5, 1));
    assert!(scene.poll().await.is_none());
    let request = RefundRequest { reference: "monday".into(), invoices: vec![], due: true, unmatched: false };
    let (list, _) = scene.ledger.prepare_refunds(&request).unwrap();
    let list = serde_json::to_value(&list).unwrap();
    let memo = parse_memo(list["refunds"][0]["memo"].as_str().unwrap()).unwrap();
    let recipient = PrimaryAddress::repeat_byte(9);
    let request = PayoutRequest { reference: "monday".into(), asset: Asset::ETHER, amount: Amount(3), recipient };
    let (payout, _) = scene.ledger.prepare_payout(&request, Amount(1)).unwrap();
    // The owner signs two orders for a number with two copies of the wallet, and has it unlocked.
    for (amount, authorities) in [(1, 0..2), (2, 2..4)] {
        let order = bob().order(&domain, payment(bob().account(), alice().account(), amount, 0).into());
        scene.committee.authorities[authorities].iter().for_each(|authority| authority.lock(&order));
    }
    let (wallet, stuck) = (Wallet::open(owner.clone(), options()).unwrap(), SequenceNumber(0));
    let gas = AccountKey::ethereum(rich_key(1).to_bytes().0).unwrap();
    let primary = anvil.primary(contract, finality).await;
    let payer = ChainAccount::new(&owner, primary.clone(), "gas", &gas, sender).unwrap();
    let unlock = async || wallet.unlock(&primary, &bob(), stuck, Some(&payer)).await;
    let follow = |index: u64, kind: UnlockEventKind| {
        let (after, index, account) = (TransactionIndex(index - 1), TransactionIndex(index), bob().account());
        let event = UnlockEvent { after, index, account, sequence: stuck, kind };
        scene.committee.authorities.iter().for_each(|authority| authority.follow_unlock(&event));
    };
    unlock().await.unwrap();
    follow(2, UnlockEventKind::Requested(0));
    assert!(scene.poll().await.is_none());
    assert_eq!(scene.ledger.expects_sent().unwrap(), Some(stuck), "it is not decided");
    unlock().await.unwrap();
    follow(3, UnlockEventKind::Voided);
    let refund = payment(bob().account(), alice().account(), 5, 1);
    scene.settle(&bob(), Payment { memo, ..refund });
    let redemption = Redemption { memo: payout.memo, ..redemption(bob().account(), recipient, 3, 2) };
    scene.settle(&bob(), Transfer::Redemption(redemption));
    assert!(scene.poll().await.is_none());
    let list = serde_json::to_value(scene.ledger.refunds("monday").unwrap().unwrap()).unwrap();
    assert_eq!(list["refunds"][0]["paid"]["sequence"], 1, "{list}");
    let ordered = scene.ledger.payout("monday").unwrap().unwrap().ordered;
    assert_eq!(ordered.map(|(sequence, _)| sequence.0), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_on_a_ledger_becomes_paid_and_one_whose_number_was_spent_otherwise_does_not() {
    let bank = AccountKey::ed25519([1; 32]);
    let time = Time(now_ms() - 60_000);
    let primary = ScriptedLedger::start(&TestCommittee::new(4).committee, &bank, time).await;
    let domain = primary.history().domain();
    let committee = FakeCommittee::start_with(TestCommittee::with(4, domain, Epoch(0))).await;
    let mut scene = Scene::of(committee).await;
    primary.history().fund(&bank, &[(alice().account(), 100)]);
    let endpoints = scene.folder.path().join("endpoints.json");
    std::fs::write(&endpoints, serde_json::to_vec(&scene.committee.endpoints).unwrap()).unwrap();
    let settings = LedgerSettings { file: primary.write(scene.folder.path()), committee: COMMITTEE };
    let config = Config { endpoints, primary: Some(PrimarySection::Ledger(settings)), genesis: None, traces: None };
    let shop = Folder::new(scene.folder.path().join("shop"));
    set_up(&shop, &config, false).await.unwrap();
    scene.wallet = Wallet::open(shop, options()).unwrap();
    scene.pay();
    scene.settle(&alice(), payment(alice().account(), bob().account(), 95, 1));
    assert!(scene.poll().await.is_none());
    let recipient = PrimaryAddress::repeat_byte(9);
    let mut redemptions = Vec::new();
    for sequence in 0..3 {
        let reference = format!("payout {sequence}");
        let request = PayoutRequest { reference, asset: Asset::ETHER, amount: Amount(10), recipient };
        let (payout, _) = scene.ledger.prepare_payout(&request, Amount(1)).unwrap();
        let redemption = Redemption { memo: payout.memo, ..redemption(bob().account(), recipient, 10, sequence) };
        scene.settle(&bob(), Transfer::Redemption(redemption.clone()));
        redemptions.push(redemption);
    }
    assert!(scene.poll().await.is_none());
    // The first is paid, the number of the second is spent by thieves, and nobody has handed the third one over.
    let thieves = Redemption { recipient: PrimaryAddress::repeat_byte(8), ..redemptions[1].clone() };
    for redemption in [&redemptions[0], &thieves] {
        primary.history().redeem(&bank, &scene.committee.committee.keys, Epoch(0), redemption).unwrap();
    }
    let state = |sequence: u64| scene.ledger.payout(&format!("payout {sequence}")).unwrap().unwrap().ethereum;
    let looked = async {
        while state(2).is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let following = follow(scene.wallet.clone(), scene.ledger.clone());
    tokio::select! { ended = following => panic!("{ended:?}"), () = looked => {} }
    assert_eq!([0, 1, 2].map(state), ["paid", "displaced", "open"].map(|state| Some(state.to_owned())));
    let still: Vec<_> = scene.ledger.payouts_on_their_way().unwrap().into_iter().map(|one| one.reference).collect();
    assert_eq!(still, ["payout 2"], "what a certified state proves is final");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_the_owner_signed_is_found_by_its_memo_and_only_as_it_was_prepared() {
    let scene = Scene::new().await;
    scene.pay();
    scene.settle(&alice(), payment(alice().account(), bob().account(), 95, 1));
    assert!(scene.poll().await.is_none());
    let (recipient, asset, amount) = (PrimaryAddress::repeat_byte(9), Asset::ETHER, Amount(30));
    let request = PayoutRequest { reference: "monday".into(), asset, amount, recipient };
    let (payout, _) = scene.ledger.prepare_payout(&request, Amount(1)).unwrap();
    let redeem = |sequence: u64, amount: u128, memo: Memo| {
        let redemption = Redemption { memo, ..redemption(bob().account(), recipient, amount, sequence) };
        scene.settle(&bob(), Transfer::Redemption(redemption));
    };
    // Another amount under its memo is something else, and so is the amount under another memo.
    redeem(0, 29, payout.memo);
    redeem(1, 30, Memo::ZERO);
    assert!(scene.poll().await.is_none());
    let ordered = || scene.ledger.payout("monday").unwrap().unwrap().ordered.map(|(sequence, _)| sequence.0);
    assert_eq!((ordered(), scene.ledger.payouts_on_their_way().unwrap()), (None, vec![]));
    redeem(2, 30, payout.memo);
    assert!(scene.poll().await.is_none());
    assert_eq!(ordered(), Some(2));
    // How far it is on Ethereum is looked up until that is final.
    let [on_its_way] = &scene.ledger.payouts_on_their_way().unwrap()[..] else { panic!("one is ordered") };
    scene.ledger.payout_is(on_its_way, "queued", false).unwrap();
    assert_eq!(scene.ledger.payout("monday").unwrap().unwrap().ethereum.as_deref(), Some("queued"));
    assert_eq!(scene.ledger.payouts_on_their_way().unwrap().len(), 1);
    scene.ledger.payout_is(on_its_way, "paid", true).unwrap();
    assert_eq!(scene.ledger.payouts_on_their_way().unwrap(), []);
    assert_eq!(scene.ledger.expects_sent().unwrap(), None, "nothing is waited for");
}
