//! A wallet whose Primary is a ledger. The ledger is scripted: its rules and its answers' proofs are real.

use fastpay_core::{
    AccountKey, Amount, Asset, Balance, Committees, PrimaryAddress, Redemption, SequenceNumber, TransactionIndex,
};
use fastpay_ledger_client::scripted::{COMMITTEE, ScriptedLedger, Submits};
use fastpay_ledger_client::{CommitteeClient, OpenCommitteeError};
use fastpay_ledger_statement::{Action, Outcome, Rejection, StateKey, Time};
use fastpay_testkit::{TestAccount, TestCommittee, redemption};
use fastpay_wallet::folder::{Folder, InstructionErrand};
use fastpay_wallet::{CarriedOut, Reserve, WalletError};

/// Who has all money first, in a reserve that is open.
fn bank() -> AccountKey {
    AccountKey::ed25519([1; 32])
}

fn now() -> Time {
    Time(fastpay_program::Clock::system().now_ms() - 60_000)
}

struct Scene {
    ledger: ScriptedLedger,
    committee: TestCommittee,
    home: tempfile::TempDir,
}

impl Scene {
    async fn new() -> Self {
        let ledger = ScriptedLedger::start(&TestCommittee::new(4).committee, &bank(), now()).await;
        let committee = TestCommittee::with(4, ledger.history().domain(), fastpay_core::Epoch(0));
        Self { ledger, committee, home: tempfile::tempdir().unwrap() }
    }

    fn committee_client(&self) -> CommitteeClient {
        CommitteeClient::open(&self.ledger.write(self.home.path()), COMMITTEE).unwrap()
    }

    fn reserve(&self, key: AccountKey) -> Reserve {
        Reserve::new(&Folder::new(self.home.path()), self.committee_client(), key)
    }

    async fn omnibus(&self) -> Balance {
        self.committee_client().omnibus(Asset::ETHER, Time(0)).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reserve_funds_accounts_and_an_unfinished_deposit_is_made_once() {
    let scene = Scene::new().await;
    let (alice, reserve) = (TestAccount::numbered(0), scene.reserve(bank()));
    let deposit = async |amount| reserve.deposit(alice.id(), Asset::ETHER, Amount(amount)).await;
    let CarriedOut { outcome, resumed, .. } = deposit(10).await.unwrap();
    assert_eq!((outcome, resumed), (Outcome::Funding, false));
    assert_eq!(scene.omnibus().await, Balance::from(Amount(10)));
    // The instruction is carried out, and its answer gets lost with the members.
    scene.ledger.submits(Submits::LoseAnswers);
    assert!(matches!(deposit(20).await, Err(WalletError::Ledger(_))));
    assert_eq!(scene.omnibus().await, Balance::from(Amount(30)));
    scene.ledger.submits(Submits::Work);
    let again = deposit(20).await.unwrap();
    assert!(again.resumed && again.outcome == Outcome::Funding, "{again:?}");
    assert_eq!(scene.omnibus().await, Balance::from(Amount(30)));
    assert!(!deposit(20).await.unwrap().resumed, "a new one");
    // An unfinished one is finished before another one, also where it never arrived.
    scene.ledger.submits(Submits::LoseRequests);
    assert!(matches!(deposit(40).await, Err(WalletError::Ledger(_))));
    assert_eq!(scene.omnibus().await, Balance::from(Amount(50)));
    scene.ledger.submits(Submits::Work);
    deposit(5).await.unwrap();
    assert_eq!(scene.omnibus().await, Balance::from(Amount(95)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_ledger_rejects_is_replaced_by_what_follows() {
    let scene = Scene::new().await;
    let (alice, poor) = (TestAccount::numbered(0), AccountKey::ed25519([5; 32]));
    let reserve = scene.reserve(poor.clone());
    let deposit = async |amount| reserve.deposit(alice.id(), Asset::ETHER, Amount(amount)).await;
    let rejected = deposit(10).await.unwrap_err();
    assert!(matches!(rejected, WalletError::Rejected(Rejection::ReserveTooLow(Amount(0)))), "{rejected}");
    let transfer = Action::Transfer { to: poor.account(), asset: Asset::ETHER, amount: Amount(15) };
    assert_eq!(scene.ledger.history().act(&bank(), transfer), Ok(Outcome::Transferred));
    // The one that was rejected has not taken its number, and the next one takes it.
    assert!(!deposit(11).await.unwrap().resumed);
    let next = scene.committee_client().client().entry::<SequenceNumber>(&StateKey::Sequence(poor.account())).await;
    assert_eq!(next.unwrap(), Some(SequenceNumber(2)), "it was opened, and funds once");
    assert_eq!(scene.omnibus().await, Balance::from(Amount(11)));
    // Another program uses the key meanwhile.
    let transfer = Action::Transfer { to: bank().account(), asset: Asset::ETHER, amount: Amount(1) };
    scene.ledger.history().act(&poor, transfer).unwrap();
    deposit(2).await.unwrap();
    assert_eq!(scene.omnibus().await, Balance::from(Amount(13)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certified_redemption_is_paid_once() {
    let scene = Scene::new().await;
    let (alice, reserve) = (TestAccount::numbered(0), scene.reserve(bank()));
    reserve.deposit(alice.id(), Asset::ETHER, Amount(50)).await.unwrap();
    let order = alice.sign(&scene.committee.domain, redemption(alice.id(), PrimaryAddress::repeat_byte(9), 20, 0));
    let certificate = scene.committee.certified(&order);
    let committees = Committees::new(scene.committee.committee.clone()).unwrap();
    assert_eq!(reserve.redeem(&certificate, &committees).await.unwrap(), Some(TransactionIndex(2)));
    assert_eq!(reserve.redeem(&certificate, &committees).await.unwrap(), None);
    assert_eq!(scene.omnibus().await, Balance::from(Amount(30)));
    let Redemption { sender, sequence, .. } = redemption(alice.id(), PrimaryAddress::repeat_byte(9), 20, 0);
    let client = scene.committee_client();
    let is_redeemed = async |sequence| client.is_redeemed(sender, sequence, Time(0)).await.unwrap();
    assert!(is_redeemed(sequence).await && !is_redeemed(SequenceNumber(1)).await);
    let payment = alice.sign(&scene.committee.domain, fastpay_testkit::payment(alice.id(), alice.id(), 1, 1));
    let error = reserve.redeem(&scene.committee.certified(&payment), &committees).await.unwrap_err();
    assert!(matches!(error, WalletError::Argument(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn committees_are_read_from_certified_states_and_other_ledgers_are_refused() {
    let scene = Scene::new().await;
    let (next, client) = (scene.committee.rotated(), scene.committee_client());
    let known = Committees::new(client.first().clone()).unwrap();
    assert_eq!(client.committees(known.clone(), Time(0)).await.unwrap(), known);
    let keys = (&next.committee, &next.keys[..]);
    scene.ledger.history().rotate(&bank(), &scene.committee.keys, keys, fastpay_core::Epoch(1)).unwrap();
    let committees = client.committees(known.clone(), Time(0)).await.unwrap();
    assert_eq!(**committees.current(), next.committee);
    let too_new = client.committees(known, Time(u64::MAX)).await;
    assert!(too_new.is_err(), "every state is older");
    let missing = CommitteeClient::open(&scene.home.path().join("nothing"), COMMITTEE).unwrap_err();
    assert!(matches!(missing, OpenCommitteeError::File { .. }), "{missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instruction_is_on_disk_before_it_is_sent() {
    let scene = Scene::new().await;
    let alice = TestAccount::numbered(0);
    let reserve = scene.reserve(bank());
    reserve.deposit(alice.id(), Asset::ETHER, Amount(1)).await.unwrap();
    // The folder cannot be written: a file stands at its place.
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("ledger"), b"").unwrap();
    let unwritable = Reserve::new(&Folder::new(other.path()), scene.committee_client(), bank());
    assert!(unwritable.deposit(alice.id(), Asset::ETHER, Amount(2)).await.is_err());
    assert_eq!(scene.omnibus().await, Balance::from(Amount(1)), "nothing was sent");
    let file = scene.home.path().join("ledger").join(hex_of(&bank())).join("1.json");
    assert!(!file.exists(), "its outcome is known");
    scene.ledger.submits(Submits::LoseRequests);
    assert!(reserve.deposit(alice.id(), Asset::ETHER, Amount(2)).await.is_err());
    let stored: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let errand: InstructionErrand = serde_json::from_value(stored["errand"].clone()).unwrap();
    assert!(matches!(errand, InstructionErrand::Deposit { amount: Amount(2), .. }), "{errand:?}");
}

fn hex_of(key: &AccountKey) -> String {
    key.account().0.iter().map(|byte| format!("{byte:02x}")).collect()
}
