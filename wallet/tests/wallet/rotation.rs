//! The committee changes its keys on a real chain: payments go on, nothing is set up anew, and no certificate is
//! stranded; the contract's queue and its pause are shown for what they are.

use std::path::Path;
use std::time::Duration;

use alloy::primitives::{Address, B256, Bytes, U256};
use alloy::sol_types::SolCall;
use fastpay_client::{Names, NetworkError, QuorumOptions};
use fastpay_core::{
    AccountKey, Amount, Asset, Committees, Domain, Epoch, Memo, SequenceNumber, TransactionIndex, Transfer,
    UnlockEvent, UnlockEventKind,
};
use fastpay_ethereum::{Call, Finality, IFastPay, Payout, Primary, Sender, SenderConfig, certified_redemption};
use fastpay_testkit::anvil::{Anvil, CHAIN_ID, GUARDIAN, LyingNode, Mining, SAFETY_PARAMETERS, Signers, rich_key};
use fastpay_testkit::fake::{FakeAuthority, FakeCommittee, Role, options};
use fastpay_testkit::{TestCommittee, alice, bob};
use fastpay_wallet::folder::{
    AssetInfo, Config, Errand, Folder, KeyKind, KnownCommittees, OrderState, PrimarySettings,
};
use fastpay_wallet::{ChainAccount, ErrorKind, Intent, Receipt, Resumed, Wallet, WalletError, check_recipient, set_up};
use serde_json::{Value, json};

use crate::support::{Wallets, pay};

const ETHER: u128 = 1_000_000_000_000_000_000;
const OUT: Address = Address::repeat_byte(0xab);

/// A committee with its contract, and a wallet for it.
pub struct Scene {
    pub anvil: Anvil,
    pub contract: Address,
    pub committee: FakeCommittee,
    pub home: tempfile::TempDir,
}

impl Scene {
    pub async fn new() -> Self {
        let anvil = Anvil::start(Mining::Each);
        let contract = anvil.deploy(&TestCommittee::new(4).committee).await;
        let domain = Domain::new(CHAIN_ID, contract);
        let committee = FakeCommittee::start_with(TestCommittee::with(4, domain, Epoch(0))).await;
        let scene = Self { anvil, contract, committee, home: tempfile::tempdir().unwrap() };
        scene.set_up(scene.home.path()).await;
        scene
    }

    pub async fn set_up(&self, home: &Path) {
        set_up(&Folder::new(home), &self.config(home), false).await.unwrap();
    }

    fn config(&self, home: &Path) -> Config {
        let endpoints = home.join("endpoints.json");
        std::fs::write(&endpoints, serde_json::to_vec(&self.committee.endpoints).unwrap()).unwrap();
        let sender = SenderConfig { poll_interval_ms: 20, ..SenderConfig::default() };
        let (rpc_urls, finality) = (vec![self.anvil.url()], Finality::Confirmations(0));
        let primary = PrimarySettings { rpc_urls, chain_id: CHAIN_ID, contract: self.contract, finality, sender };
        Config { endpoints, primary: Some(primary.into()), genesis: None, traces: None }
    }

    /// As a new process has it.
    pub fn wallet(&self) -> Wallet {
        Wallet::open(Folder::new(self.home.path()), options()).unwrap()
    }

    pub async fn primary(&self) -> Primary {
        self.anvil.primary(self.contract, Finality::Confirmations(0)).await
    }

    pub async fn send(&self, key: u32, value: u128, call: Vec<u8>) {
        let key = rich_key(key);
        let nonce: alloy::primitives::U64 =
            self.anvil.request("eth_getTransactionCount", json!([key.address(), "latest"])).await;
        let hash = self.anvil.send_raw(&key, nonce.to(), self.contract.into(), U256::from(value), call.into()).await;
        self.anvil.mined_receipt(hash).await;
    }

    /// Installs the next epoch in the contract; the authorities have not followed yet.
    async fn rotate(&self) -> TestCommittee {
        let now = self.committee.newest();
        let next = now.rotated();
        self.committee.install(next.clone());
        let now = Signers { committee: &now.committee, keys: &now.keys };
        let then = Signers { committee: &next.committee, keys: &next.keys };
        self.anvil.rotate(self.contract, now, then).await;
        next
    }

    pub async fn pass(&self, seconds: u64) {
        let _: Value = self.anvil.request("evm_increaseTime", json!([seconds])).await;
        self.anvil.mine(1).await;
    }

    pub async fn deposit(&self, key: &AccountKey, amount: u128) {
        let call = Call::deposit_ether(self.contract, key.account(), Amount(amount));
        self.send(5, amount, call.data.to_vec()).await;
        self.committee.fund(1, key.account(), amount, &[0, 1, 2, 3]);
    }

    /// A thief with a quorum's redemption keys spends a number of Alice on an order that she did not sign.
    async fn steal(&self, sequence: u64, amount: u128) {
        let stolen = &self.committee.committee;
        let recipient = Address::repeat_byte(0x66);
        let (asset, amount, fee, memo) = (Asset::ETHER, Amount(amount), Amount(0), Memo::ZERO);
        let theft = Intent::Redeem { recipient, asset, amount, fee, memo };
        let theft = alice().order(&stolen.domain, theft.transfer(alice().account(), SequenceNumber(sequence)));
        let votes = certified_redemption(&stolen.certificate(&theft), &stolen.committee).unwrap();
        self.send(5, 0, Call::redeem(self.contract, votes).data.to_vec()).await;
    }

    pub async fn chain_account(&self) -> ChainAccount {
        let key = AccountKey::ethereum(rich_key(1).to_bytes().0).unwrap();
        let config = SenderConfig { poll_interval_ms: 20, ..SenderConfig::default() };
        ChainAccount::new(&Folder::new(self.home.path()), self.primary().await, "gas", &key, config).unwrap()
    }

    pub async fn fastpay(&self, arguments: &[&str]) -> (Value, i32) {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fastpay"));
        command.args(arguments).arg("--json").arg("--home").arg(self.home.path());
        command.env("FASTPAY_PASSPHRASE", "the passphrase").stdin(std::process::Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"));
        (answer, output.status.code().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_committee_is_followed_also_while_nobody_can_tell_whether_the_one_before_counts() {
    let scene = Scene::new().await;
    let node = LyingNode::start(&scene.anvil.url());
    let mut config = scene.config(scene.home.path());
    let settings = config.primary().unwrap().clone();
    config.primary = Some(PrimarySettings { rpc_urls: vec![node.url()], ..settings }.into());
    set_up(&Folder::new(scene.home.path()), &config, true).await.unwrap();
    scene.rotate().await;
    scene.committee.authorities.iter().for_each(FakeAuthority::rotate);
    let selector = alloy::primitives::hex::encode(IFastPay::compromisedCall::SELECTOR);
    node.lie(move |method, params, answer| {
        if method == "eth_call" && params[0].to_string().contains(&selector) {
            answer.as_object_mut().unwrap().remove("result");
            answer["error"] = json!({ "code": 3, "message": "it reverts" });
        }
    });
    let certifying = |wallet: &Wallet| -> Vec<Epoch> {
        wallet.network().certifying().iter().map(|committee| committee.epoch()).collect()
    };
    let wallet = scene.wallet();
    wallet.follow().await.unwrap();
    assert_eq!(certifying(&wallet), [Epoch(1)]);
    assert_eq!(certifying(&scene.wallet()), [Epoch(1)], "as it was stored");
    node.repent();
    wallet.follow().await.unwrap();
    assert_eq!(certifying(&wallet), [Epoch(1), Epoch(0)]);
}

#[tokio::test]
async fn a_wallet_that_knows_too_few_addresses_asks_for_the_newest_file() {
    let (committee, home) = (FakeCommittee::start().await, tempfile::tempdir().unwrap());
    let wallet = committee.wallet(home.path());
    let mut committees = wallet.network().committees();
    committees.install(committee.committee.rotated_to(7).committee).unwrap();
    wallet.network().adopt(committees, Names::new());
    let refused = wallet.send(&alice(), &pay(bob().account(), 7)).await;
    let Err(WalletError::Network(error @ NetworkError::TooFewEndpoints { known: 0, size: 7, quorum: 5 })) = refused
    else {
        panic!("{refused:?}")
    };
    assert!(error.to_string().contains("the newest endpoints file"));
}

fn redeem(amount: u128) -> Intent {
    Intent::Redeem { recipient: OUT, asset: Asset::ETHER, amount: Amount(amount), fee: Amount(0), memo: Memo::ZERO }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_in_flight_across_a_rotation_finishes_under_the_new_keys() {
    let scene = Scene::new().await;
    scene.deposit(&alice(), 100).await;
    let fakes = &scene.committee.authorities;
    let next = scene.rotate().await;
    // Two have followed, two lag for a moment: no votes of one epoch are a quorum.
    fakes[0].rotate();
    fakes[3].rotate();
    let wallet = scene.wallet();
    let late = [fakes[1].clone(), fakes[2].clone()];
    let following = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(400)).await;
        late.iter().for_each(FakeAuthority::rotate);
    });
    let receipt = wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    following.await.unwrap();
    let certificate = receipt.certificate.certificate();
    assert_eq!(certificate.epoch, Epoch(1));
    assert!(certificate.votes.iter().all(|vote| next.committee.member(&vote.authority).is_some()));
    // It is kept: a new process knows the new committee, and who is where, without asking anyone.
    let _ = wallet.follow().await;
    let again = scene.wallet();
    assert_eq!(*again.network().committee(), next.committee);
    let names: Vec<_> = again.network().authorities().iter().map(|authority| authority.name()).collect();
    assert!(names.iter().all(|name| next.committee.member(name).is_some()), "{names:?}");
    assert!(again.authorities().await.iter().all(|authority| authority.status.is_ok()));
    // What was certified before is still verified, by the committee of its own epoch.
    let old = scene.committee.committee.certificate(&scene.committee.order(&bob(), &pay(alice().account(), 1), 0));
    again.network().verify_certificate(old, bob().account(), SequenceNumber(0)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_answered_before_a_rotation_are_asked_again_after_it() {
    let scene = Scene::new().await;
    scene.deposit(&alice(), 100).await;
    let fakes = &scene.committee.authorities;
    let domain = &scene.committee.committee.domain;
    let payment = pay(bob().account(), 5).transfer(alice().account(), SequenceNumber(0));
    let order = alice().order(domain, payment);
    let certificate = scene.committee.committee.certificate(&order);
    let certificate = certificate.verify(domain, &scene.committee.committee.committee).unwrap();
    // It waits for an answer far longer than the test.
    let options = QuorumOptions { deadline: Duration::from_secs(3_600), ..options() };
    let wallet = Wallet::open(Folder::new(scene.home.path()), options).unwrap();
    let journal = wallet.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap();
    journal.create(&order.verify(domain).unwrap()).unwrap();
    journal.certify(&certificate).unwrap();
    drop(journal);
    fakes[3].play(Role::Down);
    for epoch in 1..=2 {
        scene.rotate().await;
        // Two answer in the epoch before, one in the new one: all that a quorum can consist of.
        fakes[2].rotate();
        let late = [fakes[0].clone(), fakes[1].clone()];
        let following = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(400)).await;
            late.iter().for_each(FakeAuthority::rotate);
        });
        let finished = async {
            if epoch == 1 {
                // A certificate of the epoch before is confirmed in the new one.
                assert!(matches!(&wallet.resume(alice().account()).await.unwrap()[..], [Resumed::Settled(_)]));
            } else {
                let receipt = wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
                assert_eq!(receipt.certificate.certificate().epoch, Epoch(epoch));
            }
        };
        tokio::time::timeout(Duration::from_secs(600), finished).await.expect("nobody is asked again");
        following.await.unwrap();
        fakes[3].rotate();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_of_before_is_resumed_and_payments_of_a_new_epoch_are_received() {
    let scene = Scene::new().await;
    scene.deposit(&alice(), 100).await;
    let wallet = scene.wallet();
    let order = pay(bob().account(), 5).transfer(alice().account(), SequenceNumber(0));
    let order = alice().order(&scene.committee.committee.domain, order);
    let verified = order.clone().verify(&scene.committee.committee.domain).unwrap();
    // The command was killed before it had a quorum: the order is written down, and two authorities have it.
    let journal = wallet.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap();
    journal.create(&verified).unwrap();
    drop(journal);
    scene.committee.authorities[2..].iter().for_each(|authority| authority.lock(&order));
    let bobs_home = tempfile::tempdir().unwrap();
    scene.set_up(bobs_home.path()).await;
    scene.rotate().await;
    scene.committee.authorities.iter().for_each(FakeAuthority::rotate);
    let resumed = wallet.resume(alice().account()).await.unwrap();
    let [Resumed::Settled(receipt)] = &resumed[..] else { panic!("{resumed:?}") };
    assert_eq!(receipt.certificate.certificate().epoch, Epoch(1));
    assert_eq!(receipt.certificate.digest(), verified.digest(), "the very same order");
    let bobs = Wallet::open(Folder::new(bobs_home.path()), options()).unwrap();
    assert_eq!(bobs.network().committee().epoch(), Epoch(0));
    let received = bobs.collect(bob().account()).await.unwrap().new;
    assert_eq!(received.iter().map(|received| received.payment.amount).collect::<Vec<_>>(), [Amount(5)]);
    assert_eq!(bobs.network().committee().epoch(), Epoch(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redemption_of_an_ended_epoch_is_voted_for_again_and_paid() {
    let scene = Scene::new().await;
    scene.deposit(&alice(), 1_000).await;
    let certificate = scene.wallet().send(&alice(), &redeem(300)).await.unwrap().certificate;
    scene.rotate().await;
    scene.committee.authorities.iter().for_each(FakeAuthority::rotate);
    let (wallet, primary) = (scene.wallet(), scene.wallet().primary().await.unwrap());
    wallet.follow().await.unwrap();
    let Transfer::Redemption(redemption) = certificate.transfer().clone() else { panic!() };
    let by_certificate = wallet.redemption_call(&primary, &certificate).await.unwrap();
    assert_eq!(by_certificate.data[..4], IFastPay::redeemCall::SELECTOR);
    scene.pass(u64::from(SAFETY_PARAMETERS.votesValidity) + 3_600).await;
    // Its checkpoint includes it, so nobody attests the certificate any more. All vote for it.
    scene.committee.prune(false);
    let by_votes = wallet.redemption_call(&primary, &certificate).await.unwrap();
    assert_eq!(by_votes.data[..4], IFastPay::redeemBatchCall::SELECTOR);
    // Nobody is asked about what was settled here.
    scene.committee.authorities.iter().for_each(|authority| authority.play(Role::Silent));
    let settled = wallet.find_settled(redemption.sender, redemption.sequence).await;
    assert_eq!(settled.map(|settled| settled.digest()), Some(certificate.digest()));
    scene.committee.authorities.iter().for_each(|authority| authority.play(Role::Honest));
    let account = scene.chain_account().await;
    let refused = account.redeem(&redemption, by_certificate).await.unwrap_err();
    assert!(refused.to_string().contains("have the current committee certify"), "{refused}");
    assert!(account.redeem(&redemption, by_votes.clone()).await.unwrap().is_some());
    assert_eq!(primary.payout(redemption.sender, redemption.sequence).await.unwrap(), Payout::Done);
    assert_eq!(primary.ether_balance(OUT).await.unwrap(), U256::from(300));
    assert!(account.redeem(&redemption, by_votes).await.unwrap().is_none(), "once is enough");
}

#[tokio::test(flavor = "multi_thread")]
async fn votes_that_are_gathered_again_follow_a_rotation_that_comes_meanwhile() {
    let scene = Scene::new().await;
    scene.deposit(&alice(), 1_000).await;
    let certificate = scene.wallet().send(&alice(), &redeem(300)).await.unwrap().certificate;
    let Transfer::Redemption(redemption) = certificate.transfer().clone() else { panic!() };
    scene.rotate().await;
    scene.committee.authorities.iter().for_each(FakeAuthority::rotate);
    let (wallet, primary) = (scene.wallet(), scene.wallet().primary().await.unwrap());
    wallet.follow().await.unwrap();
    scene.pass(u64::from(SAFETY_PARAMETERS.votesValidity) + 3_600).await;
    // The wallet knows epoch 1, and everybody votes in epoch 2.
    scene.rotate().await;
    scene.committee.authorities.iter().for_each(FakeAuthority::rotate);
    assert_eq!(wallet.network().committee().epoch(), Epoch(1));
    let call = wallet.redemption_call(&primary, &certificate).await.unwrap();
    assert_eq!(wallet.network().committee().epoch(), Epoch(2));
    assert!(scene.chain_account().await.redeem(&redemption, call).await.unwrap().is_some());
    assert_eq!(primary.payout(redemption.sender, redemption.sequence).await.unwrap(), Payout::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_exceeds_the_outflow_limit_is_queued_shown_and_executed() {
    let scene = Scene::new().await;
    scene.deposit(&alice(), 10 * ETHER).await;
    let folder = Folder::new(scene.home.path());
    let keys = folder.keys();
    keys.import("gas", KeyKind::Ethereum, &rich_key(1).to_bytes().0, "the passphrase").unwrap();
    keys.import("alice", KeyKind::Ed25519, &alice().to_secret_bytes(), "the passphrase").unwrap();
    let out = OUT.to_string();
    let order = |amount| ["redeem", amount, "--from", "alice", "--to", &out, "--self", "--gas-key", "gas"];
    let (paid, code) = scene.fastpay(&order("6")).await;
    assert_eq!((code, &paid["redeemed"]["by"], &paid["queued"]), (0, &json!("self"), &Value::Null), "{paid}");
    let (queued, code) = scene.fastpay(&order("3")).await;
    assert_eq!((code, &queued["redeemed"]), (0, &json!(false)), "{queued}");
    assert!(paid["expectedQueuedUntil"].is_null() && queued["expectedQueuedUntil"].is_u64(), "{queued}");
    let due = queued["queued"]["executableAt"].as_u64().unwrap();
    assert!(queued["queued"]["executableAtUtc"].as_str().unwrap().starts_with("20"), "{queued}");
    let (history, _) = scene.fastpay(&["history", "--from", "alice"]).await;
    let states: Vec<_> = history["events"].as_array().unwrap().iter().map(|event| event["ethereum"].clone()).collect();
    assert_eq!(states[..2], [json!("paid"), json!("queued")], "{history}");
    let (resumed, _) = scene.fastpay(&["resume", "--from", "alice"]).await;
    assert_eq!((&resumed["queued"][0]["executableAt"], &resumed["queued"][0]["due"]), (&json!(due), &json!(false)));
    let execute = ["execute", "--from", "alice", "--gas-key", "gas", "--sequence", "1"];
    let (early, code) = scene.fastpay(&execute).await;
    assert_eq!(
        (code, early["executed"].as_array().unwrap().len(), &early["queued"][0]["executableAt"]),
        (0, 0, &json!(due))
    );
    let (audit, _) = scene.fastpay(&["audit", "--wait", "1"]).await;
    let asset = &audit["assets"][0];
    // The contract's total has it until it is paid.
    assert_eq!(asset["backing"]["queued"], json!((3 * ETHER).to_string()), "{audit}");
    assert_eq!(asset["contractTotal"], json!((4 * ETHER).to_string()), "{audit}");
    assert_eq!(
        (&asset["solvency"]["redeemable"], &asset["ok"]),
        (&json!((3 * ETHER).to_string()), &json!(true)),
        "{audit}"
    );

    scene.pass(u64::from(SAFETY_PARAMETERS.outflowDelay) + 100).await;
    let (done, code) = scene.fastpay(&execute).await;
    assert_eq!((code, done["executed"][0]["value"]["amount"].as_str()), (0, Some("3")), "{done}");
    assert_eq!(scene.primary().await.ether_balance(OUT).await.unwrap(), U256::from(9 * ETHER));
    let (nothing, code) = scene.fastpay(&execute[..5]).await;
    assert_eq!((code, &nothing["executed"], &nothing["queued"]), (0, &json!([]), &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_distinguishes_payouts_to_a_thief_from_payouts_to_the_owner() {
    let scene = Scene::new().await;
    scene.deposit(&alice(), 10 * ETHER).await;
    // A thief has a quorum's redemption keys, and spends a number that Alice has not come to. The contract does not see
    // the owner's signature.
    scene.steal(1, 2 * ETHER).await;
    let folder = Folder::new(scene.home.path());
    folder.keys().import("gas", KeyKind::Ethereum, &rich_key(1).to_bytes().0, "the passphrase").unwrap();
    folder.keys().import("alice", KeyKind::Ed25519, &alice().to_secret_bytes(), "the passphrase").unwrap();
    let out = OUT.to_string();
    let (paid, code) =
        scene.fastpay(&["redeem", "1", "--from", "alice", "--to", &out, "--self", "--gas-key", "gas"]).await;
    assert_eq!((code, &paid["redeemed"]["by"]), (0, &json!("self")), "{paid}");
    let sums = |audit: &Value| {
        let ether = |name: &str| {
            audit["assets"][0]["solvency"][name].as_str().unwrap().parse::<i128>().unwrap() / ETHER as i128
        };
        ["deposited", "accounts", "redeemable", "displaced", "redeemed", "unexplained"].map(ether)
    };
    let (audit, code) = scene.fastpay(&["audit", "--wait", "1"]).await;
    assert_eq!((code, sums(&audit)), (12, [10, 9, 0, 0, 1, 2]), "{audit}");
    // Her next order has the number that is spent.
    let (ordered, code) = scene.fastpay(&["redeem", "3", "--from", "alice", "--to", &out, "--wait", "5"]).await;
    assert_eq!((code, &ordered["redeemed"]), (0, &json!(false)), "{ordered}");
    // The authorities read what its number was spent on, and give the amount back to the account.
    let (after, index) = (TransactionIndex(1), TransactionIndex(2));
    let (account, sequence) = (alice().account(), SequenceNumber(1));
    let kind = UnlockEventKind::CreditedBack(Asset::ETHER, Amount(3 * ETHER));
    let event = UnlockEvent { after, index, account, sequence, kind };
    scene.committee.authorities.iter().for_each(|authority| authority.follow_unlock(&event));
    let (audit, code) = scene.fastpay(&["audit", "--wait", "1"]).await;
    assert_eq!((code, sums(&audit)), (12, [10, 9, 0, 3, 1, 2]), "{audit}");
    assert_eq!((&audit["assets"][0]["solvency"]["solvent"], &audit["ok"]), (&json!(false), &json!(false)));
    let findings = audit["findings"].to_string();
    for said in ["was credited back: another order was spent under it", "no authority shows a certificate of that"] {
        assert!(findings.contains(said), "{findings}");
    }
    for wrong in ["it reports", "not those of its redemption log", "certificates prove"] {
        assert!(!findings.contains(wrong), "{findings}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_a_thief_spent_is_never_called_paid() {
    let scene = Scene::new().await;
    scene.deposit(&alice(), 10 * ETHER).await;
    // One is paid to the thief, one waits in the queue for it.
    scene.steal(1, 2 * ETHER).await;
    scene.steal(2, 7 * ETHER).await;
    let primary = scene.primary().await;
    let payout = async |sequence| primary.payout(alice().account(), SequenceNumber(sequence)).await.unwrap();
    assert_eq!(payout(1).await, Payout::Done);
    assert!(matches!(payout(2).await, Payout::Queued(_)));
    let folder = Folder::new(scene.home.path());
    folder.keys().import("gas", KeyKind::Ethereum, &rich_key(1).to_bytes().0, "the passphrase").unwrap();
    folder.keys().import("alice", KeyKind::Ed25519, &alice().to_secret_bytes(), "the passphrase").unwrap();
    let out = OUT.to_string();
    for by in [Value::from("self"), Value::Null, Value::Null] {
        let (answer, code) =
            scene.fastpay(&["redeem", "1", "--from", "alice", "--to", &out, "--self", "--gas-key", "gas"]).await;
        assert_eq!((code, &answer["redeemed"]["by"], &answer["queued"]), (0, &by, &Value::Null), "{answer}");
        assert_eq!(answer["redeemed"] == false, by.is_null(), "{answer}");
    }
    // From the log, and then from what was noted of it.
    for _ in 0..2 {
        let (history, _) = scene.fastpay(&["history", "--from", "alice"]).await;
        let states: Vec<_> =
            history["events"].as_array().unwrap().iter().filter_map(|event| event["ethereum"].as_str()).collect();
        assert_eq!(states, ["paid", "displaced", "displaced"], "{history}");
    }
    let noted = |sequence| folder.orders(alice().account()).spending(SequenceNumber(sequence)).unwrap();
    assert_eq!([0, 1, 2].map(|sequence| noted(sequence).is_some()), [true, true, false], "what waits may change");
    for (transfer, state) in [("alice/0", "paid"), ("alice/1", "displaced"), ("alice/2", "displaced")] {
        assert_eq!(scene.fastpay(&["show", transfer]).await.0["ethereum"], state);
    }
    assert_eq!(primary.ether_balance(OUT).await.unwrap(), U256::from(ETHER));
    // The queued one is not hers to execute.
    let (resumed, _) = scene.fastpay(&["resume", "--from", "alice"]).await;
    assert_eq!(resumed["queued"], json!([]), "{resumed}");
    scene.pass(u64::from(SAFETY_PARAMETERS.outflowDelay) + 100).await;
    let (executed, code) = scene.fastpay(&["execute", "--from", "alice", "--gas-key", "gas"]).await;
    assert_eq!((code, &executed["executed"], &executed["queued"]), (0, &json!([]), &json!([])), "{executed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn money_is_not_redeemed_to_a_contract_of_fastpay() {
    let scene = Scene::new().await;
    scene.deposit(&alice(), 10 * ETHER).await;
    let keys = Folder::new(scene.home.path()).keys();
    keys.import("alice", KeyKind::Ed25519, &alice().to_secret_bytes(), "the passphrase").unwrap();
    let primary = scene.primary().await;
    let council = primary.council().await.unwrap();
    let other = scene.anvil.deploy(&scene.committee.committee.committee).await;
    let its_council = scene.anvil.primary(other, Finality::Confirmations(0)).await.council().await.unwrap();
    for lost in [scene.contract, council, other, its_council] {
        let (answer, code) = scene.fastpay(&["redeem", "1", "--from", "alice", "--to", &lost.to_string()]).await;
        assert_eq!((code, &answer["error"]["kind"]), (2, &json!("argument")), "{lost}: {answer}");
        let error = check_recipient(&primary, lost).await.unwrap_err();
        assert!(matches!(error, WalletError::RecipientIsFastPay { recipient } if recipient == lost), "{error}");
    }
    let orders = Folder::new(scene.home.path()).orders(alice().account());
    assert!(orders.entries().unwrap().is_empty(), "nothing was signed");
    let token = scene.anvil.deploy_artifact("WeirdTokens.sol/FeeToken.json", &[]).await;
    for good in [OUT, token] {
        check_recipient(&primary, good).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_deposit_is_for_the_account_of_a_contract() {
    let scene = Scene::new().await;
    let folder = Folder::new(scene.home.path());
    folder.keys().import("gas", KeyKind::Ethereum, &rich_key(1).to_bytes().0, "the passphrase").unwrap();
    let council = scene.primary().await.council().await.unwrap();
    let token = scene.anvil.deploy_artifact("WeirdTokens.sol/FeeToken.json", &[]).await;
    let deposit = async |to: Address| scene.fastpay(&["deposit", "1", "--wait", "0", "--to", &to.to_string()]).await;
    for contract in [scene.contract, council, token] {
        let (answer, code) = deposit(contract).await;
        assert_eq!((code, &answer["error"]["kind"]), (2, &json!("argument")), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("has no key"), "{answer}");
    }
    assert!(folder.transactions(rich_key(1).address()).entries().unwrap().is_empty());
    // Delegated to a contract (EIP-7702), it has its key all the same.
    let delegation = Bytes::from([&[0xef, 0x01, 0x00][..], token.as_slice()].concat());
    let _: Value = scene.anvil.request("anvil_setCode", json!([OUT, delegation])).await;
    let (answer, code) = deposit(OUT).await;
    assert_eq!((code, &answer["state"]), (0, &json!("final")), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_contract_is_reported_before_anything_is_signed() {
    let scene = Scene::new().await;
    scene.deposit(&bob(), 10 * ETHER).await;
    let keys = Folder::new(scene.home.path()).keys();
    keys.import("bob", KeyKind::Ethereum, &bob().to_secret_bytes(), "the passphrase").unwrap();
    let call = Bytes::from(IFastPay::pauseCall {}.abi_encode());
    let _: Value = scene.anvil.request("anvil_setBalance", json!([GUARDIAN, U256::from(ETHER)])).await;
    let _: Value = scene.anvil.request("anvil_impersonateAccount", json!([GUARDIAN])).await;
    let transaction = json!([{ "from": GUARDIAN, "to": scene.contract, "data": call }]);
    let hash: B256 = scene.anvil.request("eth_sendTransaction", transaction).await;
    scene.anvil.mined_receipt(hash).await;
    for command in [&["deposit", "1"][..], &["redeem", "1"], &["claim"]] {
        let (answer, code) = scene.fastpay(command).await;
        assert_eq!((code, &answer["error"]["kind"]), (14, &json!("paused")), "{command:?}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("paused until 20"), "{answer}");
    }
    let folder = Folder::new(scene.home.path());
    assert!(folder.orders(bob().account()).entries().unwrap().is_empty());
    let owner = bob().account().ethereum_address().unwrap();
    assert!(folder.transactions(owner).entries().unwrap().is_empty());
    let (status, _) = scene.fastpay(&["status"]).await;
    assert!(status["pausedUntil"].is_u64(), "{status}");
    // Payments inside FastPay go on.
    let (paid, code) = scene.fastpay(&["pay", &alice().account().to_string(), "1"]).await;
    assert_eq!((code, &paid["state"]), (0, &json!("settled")), "{paid}");
    scene.pass(3_700).await;
    let (redeemed, code) = scene.fastpay(&["redeem", "1"]).await;
    assert_eq!(code, 0, "{redeemed}");
}

/// Something that belongs to one deployment.
#[derive(Clone, Copy, Debug)]
enum History {
    Order,
    Cursors,
    Transaction,
}

impl History {
    async fn write(self, scene: &Scene, folder: &Folder) {
        match self {
            Self::Order => {
                let order = scene.committee.order(&alice(), &pay(bob().account(), 5), 0);
                let journal = folder.orders(alice().account()).lock(Duration::ZERO).await.unwrap();
                journal.create(&scene.committee.committee.verified(&order)).unwrap();
            }
            Self::Cursors => {
                let wallet = Wallet::open(folder.clone(), options()).unwrap();
                assert!(wallet.collect(bob().account()).await.unwrap().new.is_empty());
            }
            Self::Transaction => {
                let sender = Sender::new(scene.primary().await, rich_key(1), SenderConfig::default());
                let call = Call::deposit_ether(scene.contract, bob().account(), Amount(5));
                let submission = sender.prepare(call).await.unwrap();
                let journal = folder.transactions(rich_key(1).address()).lock(Duration::ZERO).await.unwrap();
                let (owner, to, amount) = (Address::ZERO, OUT, U256::from(1));
                journal.create(Errand::Claim { owner, asset: Asset::ETHER, to, amount }, submission).unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_history_is_of_one_deployment_for_ever() {
    let scene = Scene::new().await;
    let other = scene.anvil.deploy(&TestCommittee::new(4).committee).await;
    for history in [History::Order, History::Cursors, History::Transaction] {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path());
        let ours = scene.config(home.path());
        let settings = PrimarySettings { contract: other, ..ours.primary().unwrap().clone() };
        let theirs = Config { primary: Some(settings.into()), ..ours.clone() };
        let set_up = async |config: &Config| set_up(&folder, config, true).await;

        // Nothing was sent or received yet. What a token says of itself is asked anew: it may be another one there.
        set_up(&ours).await.unwrap();
        drop(folder.orders(alice().account()).lock(Duration::ZERO).await.unwrap());
        let token = Asset(Address::repeat_byte(0xee));
        folder.learn_asset(token, &AssetInfo { symbol: "T".into(), decimals: 6 }).unwrap();
        set_up(&ours).await.unwrap();
        assert!(folder.known_asset(token).unwrap().is_some());
        set_up(&theirs).await.unwrap();
        assert!(folder.known_asset(token).unwrap().is_none());
        set_up(&ours).await.unwrap();

        history.write(&scene, &folder).await;
        let error = set_up(&theirs).await.unwrap_err();
        assert!(
            matches!(error, WalletError::OtherDeployment { contract, .. } if contract == other),
            "{history:?} {error}"
        );
        assert!(error.to_string().contains("--home") && error.kind() == ErrorKind::Config, "{error}");
        Wallet::open(folder.clone(), options()).unwrap();
        set_up(&ours).await.unwrap();

        // By hand it is not to be had either.
        theirs.write(&folder.config_path(), true).unwrap();
        let error = Wallet::open(folder.clone(), options()).err().unwrap();
        assert!(matches!(error, WalletError::OtherDeployment { .. }), "{history:?} {error}");
    }
    // A chain that began anew has another committee at the same address.
    let domain = Domain::new(CHAIN_ID, scene.contract);
    let known = |size| KnownCommittees::new(&domain, Committees::new(TestCommittee::new(size).committee).unwrap());
    assert!(known(4).is_of_deployment(&known(4)) && !known(4).is_of_deployment(&known(7)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_pruned_is_proven_right_after_a_rotation() {
    let scene = Scene::new().await;
    scene.deposit(&alice(), 100).await;
    scene.wallet().send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    // The archives have a checkpoint of the first committee alone.
    scene.committee.prune(true);
    scene.rotate().await;
    scene.committee.authorities.iter().for_each(FakeAuthority::rotate);
    let home = tempfile::tempdir().unwrap();
    scene.set_up(home.path()).await;
    let found = async |wallet: &Wallet| {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        wallet.network().archived_number(alice().account(), SequenceNumber(0), deadline).await
    };
    let open = || Wallet::open(Folder::new(home.path()), options()).unwrap();
    let wallet = open();
    assert!(found(&wallet).await.is_none(), "the contract was not asked");
    wallet.follow().await.unwrap();
    let proven = found(&wallet).await.unwrap();
    assert_eq!(proven.transfer.unwrap().amount(), Amount(7));
    // That is stored.
    assert!(found(&open()).await.is_some());
}

/// A redemption that the contract paid, and that a recovery debited behind a payment that it left out.
async fn paid_behind_a_gap() -> (Scene, Wallet, Receipt) {
    let scene = Scene::new().await;
    scene.deposit(&alice(), 100).await;
    let wallet = scene.wallet();
    wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    let receipt = wallet.send(&alice(), &redeem(20)).await.unwrap();
    let Transfer::Redemption(paid) = receipt.certificate.transfer().clone() else { panic!() };
    let votes = certified_redemption(receipt.certificate.certificate(), &scene.committee.committee.committee).unwrap();
    scene.send(5, 0, Call::redeem(scene.contract, votes).data.to_vec()).await;
    // The recovery knows no certificate of the payment before it.
    let next = scene.committee.newest().rotated();
    let now = Signers { committee: &scene.committee.committee.committee, keys: &scene.committee.committee.keys };
    scene.anvil.rotate(scene.contract, now, Signers { committee: &next.committee, keys: &next.keys }).await;
    scene.committee.recover_paid(wallet.network(), &paid, 0, 80);
    (scene, wallet, receipt)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redemption_that_is_noted_as_paid_is_not_made_a_second_time() {
    let (scene, wallet, receipt) = paid_behind_a_gap().await;
    let home = tempfile::tempdir().unwrap();
    scene.set_up(home.path()).await;
    let copy = Wallet::open(Folder::new(home.path()), options()).unwrap();
    copy.network().adopt(wallet.network().committees(), wallet.network().names());
    let journal = copy.folder().orders(alice().account()).lock(Duration::from_secs(5)).await.unwrap();
    for entry in wallet.folder().orders(alice().account()).entries().unwrap() {
        journal.create(&entry.order.unwrap().verify(wallet.network().domain()).unwrap()).unwrap();
    }
    journal.certify(&receipt.certificate).unwrap();
    drop(journal);
    let error = copy.send(&alice(), &redeem(20)).await.unwrap_err();
    assert!(matches!(error, WalletError::PaidBefore { sequence: SequenceNumber(1), .. }), "{error}");
    assert!(copy.folder().orders(alice().account()).unfinished().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redemption_that_a_recovery_debited_behind_a_gap_is_noted_as_paid_once_it_is_stepped_over() {
    let (scene, wallet, receipt) = paid_behind_a_gap().await;
    let Transfer::Redemption(paid) = receipt.certificate.transfer().clone() else { panic!() };
    let resumed = wallet.resume(alice().account()).await.unwrap();
    let [Resumed::Settled(made), Resumed::Paid { order }] = &resumed[..] else { panic!("{resumed:?}") };
    assert_eq!((made.certificate.transfer().amount(), &**order), (Amount(7), &paid.clone().into()));
    assert!(wallet.resume(alice().account()).await.unwrap().is_empty());
    let orders = wallet.folder().orders(alice().account());
    assert_eq!(orders.entry(SequenceNumber(1)).unwrap().unwrap().state, OrderState::Settled);
    // The next number is free, also for a copy that knows nothing.
    let (home, mut number) = (tempfile::tempdir().unwrap(), 2);
    scene.set_up(home.path()).await;
    let other = Wallet::open(Folder::new(home.path()), options()).unwrap();
    other.network().adopt(wallet.network().committees(), wallet.network().names());
    for wallet in [&wallet, &other] {
        let receipt = wallet.send(&alice(), &pay(bob().account(), 1)).await.unwrap();
        assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(number));
        number += 1;
    }
    scene.committee.until(|authority| authority.balance(bob().account()) == 9).await;
}
