//! Reserves of wallets and relayers. The ledger is scripted: its rules and its answers' proofs are real.

use fastpay_core::{
    AccountKey, Amount, Asset, Balance, Committees, PrimaryAddress, Redemption, SequenceNumber, TransactionIndex,
};
use fastpay_ledger_client::scripted::{COMMITTEE, ScriptedLedger, Submits};
use fastpay_ledger_client::{
    CarriedOut, CommitteeClient, InstructionErrand, Instructions, JournalError, OpenCommitteeError, Reserve,
    ReserveError,
};
use fastpay_ledger_statement::{Action, Outcome, Redeemed, Rejection, Request, SpentOn, StateKey, Time, Wire};
use fastpay_testkit::{TestAccount, TestCommittee, redemption};

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

    fn instructions(&self, key: &AccountKey) -> Instructions {
        Instructions::new(&self.home.path().join("ledger"), key.account())
    }

    fn reserve(&self, key: AccountKey) -> Reserve {
        Reserve::new(self.instructions(&key), self.committee_client(), key)
    }

    fn file(&self, key: &AccountKey) -> std::path::PathBuf {
        self.home.path().join("ledger").join(hex::encode(key.account().0)).join("1.json")
    }

    /// The newest instruction of a key on disk.
    fn stored(&self, key: &AccountKey) -> Request {
        let stored: serde_json::Value = serde_json::from_slice(&std::fs::read(self.file(key)).unwrap()).unwrap();
        Request::decode(&hex::decode(stored["request"].as_str().unwrap()).unwrap()).unwrap()
    }

    async fn omnibus(&self) -> Balance {
        self.committee_client().omnibus(Asset::ETHER, Time(0)).await.unwrap()
    }
}

/// Deposits, and notes that this was reported.
async fn deposit(reserve: &Reserve, to: &TestAccount, amount: u128) -> Result<bool, ReserveError> {
    let carried_out = reserve.deposit(to.id(), Asset::ETHER, Amount(amount)).await?;
    assert_eq!(carried_out.outcome, Outcome::Funding);
    reserve.note_reported(&carried_out).await?;
    Ok(carried_out.resumed)
}

/// Whether a deposit of this amount is named as the one to be repeated.
fn names(refused: Result<bool, ReserveError>, amount: u128) -> bool {
    let Err(ReserveError::Unfinished(errand)) = refused else { panic!("{refused:?}") };
    matches!(*errand, InstructionErrand::Deposit { amount: named, .. } if named == Amount(amount))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reserve_funds_accounts_and_an_unfinished_deposit_is_made_once() {
    let scene = Scene::new().await;
    let (alice, bob, reserve) = (TestAccount::numbered(0), TestAccount::numbered(1), scene.reserve(bank()));
    assert!(!deposit(&reserve, &alice, 10).await.unwrap());
    assert_eq!(scene.omnibus().await, Balance::from(Amount(10)));
    // The instruction is carried out, and its answer gets lost with the members.
    scene.ledger.submits(Submits::LoseAnswers);
    assert!(matches!(deposit(&reserve, &alice, 20).await, Err(ReserveError::Ledger(_))));
    assert_eq!(scene.omnibus().await, Balance::from(Amount(30)));
    scene.ledger.submits(Submits::Work);
    // Nobody takes another deposit for this one.
    assert!(names(deposit(&reserve, &bob, 20).await, 20) && names(deposit(&reserve, &alice, 21).await, 20));
    assert!(deposit(&reserve, &alice, 20).await.unwrap());
    assert_eq!(scene.omnibus().await, Balance::from(Amount(30)));
    assert!(!deposit(&reserve, &alice, 20).await.unwrap(), "a new one");
    // The same where it never arrived.
    scene.ledger.submits(Submits::LoseRequests);
    assert!(matches!(deposit(&reserve, &alice, 40).await, Err(ReserveError::Ledger(_))));
    assert_eq!(scene.omnibus().await, Balance::from(Amount(50)));
    scene.ledger.submits(Submits::Work);
    assert!(names(deposit(&reserve, &bob, 5).await, 40));
    assert!(deposit(&reserve, &alice, 40).await.unwrap());
    assert!(!deposit(&reserve, &bob, 5).await.unwrap());
    assert_eq!(scene.omnibus().await, Balance::from(Amount(95)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_that_was_not_reported_is_reported_and_not_made_again() {
    let scene = Scene::new().await;
    let (alice, bob, reserve) = (TestAccount::numbered(0), TestAccount::numbered(1), scene.reserve(bank()));
    let first = reserve.deposit(alice.id(), Asset::ETHER, Amount(5)).await.unwrap();
    assert!(names(deposit(&reserve, &bob, 7).await, 5));
    let CarriedOut { errand, outcome, resumed } = reserve.deposit(alice.id(), Asset::ETHER, Amount(5)).await.unwrap();
    assert_eq!((errand, outcome, resumed), (first.errand.clone(), Outcome::Funding, true));
    assert_eq!(scene.omnibus().await, Balance::from(Amount(5)));
    reserve.note_reported(&first).await.unwrap();
    assert!(!deposit(&reserve, &alice, 5).await.unwrap() && !deposit(&reserve, &bob, 7).await.unwrap());
    assert_eq!(scene.omnibus().await, Balance::from(Amount(17)));
}

#[tokio::test(flavor = "multi_thread")]
async fn old_states_pay_nothing_twice_and_hide_no_deposit() {
    let scene = Scene::new().await;
    let (alice, key) = (TestAccount::numbered(0), AccountKey::ed25519([5; 32]));
    let transfer = Action::Transfer { to: key.account(), asset: Asset::ETHER, amount: Amount(100) };
    scene.ledger.history().act(&bank(), transfer).unwrap();
    // The first member shows the reserve from before it was opened.
    scene.ledger.read_no_further(0);
    let reserve = scene.reserve(key.clone());
    scene.ledger.history().act(&key, Action::Open).unwrap();
    scene.ledger.submits(Submits::LoseAnswers);
    assert!(matches!(deposit(&reserve, &alice, 5).await, Err(ReserveError::Ledger(_))));
    scene.ledger.submits(Submits::Work);
    assert!(deposit(&reserve, &alice, 5).await.unwrap());
    assert_eq!(scene.omnibus().await, Balance::from(Amount(5)));
    // Each that is reported as final is made, also where the states that are read have an old number.
    (1..4).for_each(|member| scene.ledger.read_no_further(member));
    assert!(!deposit(&reserve, &alice, 5).await.unwrap() && !deposit(&reserve, &alice, 5).await.unwrap());
    let funded = scene.ledger.history().read(&StateKey::Omnibus(COMMITTEE, Asset::ETHER)).unwrap();
    assert_eq!(borsh::from_slice::<Balance>(&funded).unwrap(), Balance::from(Amount(15)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reserve_is_opened_once_whatever_is_lost() {
    let scene = Scene::new().await;
    let (alice, key) = (TestAccount::numbered(0), AccountKey::ed25519([5; 32]));
    let transfer = Action::Transfer { to: key.account(), asset: Asset::ETHER, amount: Amount(100) };
    scene.ledger.history().act(&bank(), transfer).unwrap();
    let reserve = scene.reserve(key.clone());
    let opens = || match scene.stored(&key) {
        Request::Instruct(signed) => signed.instruction.action == Action::Open,
        _ => false,
    };
    scene.ledger.submits(Submits::LoseRequests);
    assert!(deposit(&reserve, &alice, 5).await.is_err());
    assert!(!opens(), "nobody has proven that it is not open");
    scene.ledger.submits(Submits::LoseOutcomes);
    assert!(deposit(&reserve, &alice, 5).await.is_err());
    assert!(opens(), "the rejection came, and the opening's answer did not");
    assert!(deposit(&reserve, &alice, 5).await.is_err());
    scene.ledger.submits(Submits::Work);
    assert!(!deposit(&reserve, &alice, 5).await.unwrap(), "the reserve was opened, and nothing funded yet");
    assert_eq!(scene.omnibus().await, Balance::from(Amount(5)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_ledger_rejects_is_replaced_by_what_follows() {
    let scene = Scene::new().await;
    let (alice, poor) = (TestAccount::numbered(0), AccountKey::ed25519([5; 32]));
    let reserve = scene.reserve(poor.clone());
    let rejected = deposit(&reserve, &alice, 10).await.unwrap_err();
    assert!(matches!(rejected, ReserveError::Rejected(Rejection::ReserveTooLow(Amount(0)))), "{rejected}");
    let transfer = Action::Transfer { to: poor.account(), asset: Asset::ETHER, amount: Amount(15) };
    assert_eq!(scene.ledger.history().act(&bank(), transfer), Ok(Outcome::Transferred));
    // The one that was rejected has not taken its number, and the next one takes it.
    assert!(!deposit(&reserve, &alice, 11).await.unwrap());
    let next = scene.committee_client().client().entry::<SequenceNumber>(&StateKey::Sequence(poor.account())).await;
    assert_eq!(next.unwrap(), Some(SequenceNumber(2)), "it was opened, and funds once");
    assert_eq!(scene.omnibus().await, Balance::from(Amount(11)));
    // Another program uses the key meanwhile.
    let transfer = Action::Transfer { to: bank().account(), asset: Asset::ETHER, amount: Amount(1) };
    scene.ledger.history().act(&poor, transfer).unwrap();
    deposit(&reserve, &alice, 2).await.unwrap();
    assert_eq!(scene.omnibus().await, Balance::from(Amount(13)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_deposit_that_somebody_sends_again_is_found() {
    let scene = Scene::new().await;
    let (alice, bob, poor) = (TestAccount::numbered(0), TestAccount::numbered(1), AccountKey::ed25519([5; 32]));
    let reserve = scene.reserve(poor.clone());
    assert!(deposit(&reserve, &alice, 10).await.is_err());
    let first = scene.stored(&poor);
    assert!(deposit(&reserve, &alice, 11).await.is_err(), "two are rejected under one number");
    let transfer = Action::Transfer { to: poor.account(), asset: Asset::ETHER, amount: Amount(50) };
    scene.ledger.history().act(&bank(), transfer).unwrap();
    scene.ledger.history().decide(&[first]);
    assert_eq!(scene.omnibus().await, Balance::from(Amount(10)));
    // It takes the number, so the next one is not made before somebody knows.
    assert!(names(deposit(&reserve, &bob, 7).await, 10));
    assert!(names(deposit(&reserve, &bob, 7).await, 10));
    assert_eq!(scene.omnibus().await, Balance::from(Amount(10)));
    assert!(deposit(&reserve, &alice, 10).await.unwrap());
    assert!(!deposit(&reserve, &bob, 7).await.unwrap());
    assert_eq!(scene.omnibus().await, Balance::from(Amount(17)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_an_instruction_is_not_guessed() {
    let scene = Scene::new().await;
    let (alice, bob, reserve) = (TestAccount::numbered(0), TestAccount::numbered(1), scene.reserve(bank()));
    let spend = |amount| {
        let action = Action::Transfer { to: AccountKey::ed25519([9; 32]).account(), asset: Asset::ETHER, amount };
        scene.ledger.history().act(&bank(), action).unwrap();
    };
    assert!(matches!(deposit(&reserve, &alice, 2_000_000).await, Err(ReserveError::Rejected(_))));
    // Another program uses so many numbers that the ledger forgets what the first of them did.
    (0..20).for_each(|_| spend(Amount(1)));
    let unknown = deposit(&reserve, &bob, 7).await;
    assert!(matches!(unknown, Err(ReserveError::UnknownOutcome(..))), "{unknown:?}");
    assert_eq!(scene.omnibus().await, Balance::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_unfinished_is_listed_and_a_damaged_file_is_named() {
    let scene = Scene::new().await;
    let (alice, reserve, stored) = (TestAccount::numbered(0), scene.reserve(bank()), scene.instructions(&bank()));
    assert_eq!(stored.unfinished().unwrap(), []);
    scene.ledger.submits(Submits::LoseAnswers);
    assert!(deposit(&reserve, &alice, 5).await.is_err());
    let unfinished = stored.unfinished().unwrap();
    let [one] = &unfinished[..] else { panic!("{unfinished:?}") };
    assert!(!one.is_carried_out && matches!(one.errand, InstructionErrand::Deposit { amount: Amount(5), .. }));
    scene.ledger.submits(Submits::Work);
    let carried_out = reserve.deposit(alice.id(), Asset::ETHER, Amount(5)).await.unwrap();
    assert!(stored.unfinished().unwrap()[0].is_carried_out, "nobody knows of it yet");
    reserve.note_reported(&carried_out).await.unwrap();
    assert_eq!(stored.unfinished().unwrap(), []);

    let file = scene.file(&bank());
    let text = std::fs::read_to_string(&file).unwrap();
    let get = fastpay_ledger_statement::Get {
        namespace: fastpay_ledger_statement::Namespace::new("a".into()).unwrap(),
        key: fastpay_ledger_statement::Key::new(vec![1]).unwrap(),
        nonce: 0,
    };
    let request: serde_json::Value = serde_json::from_str(&text).unwrap();
    let request = request["request"].as_str().unwrap();
    for damage in ["zz".into(), request[2..].to_owned(), hex::encode(Request::Get(get).encode())] {
        std::fs::write(&file, text.replace(request, &damage)).unwrap();
        for error in [deposit(&reserve, &alice, 5).await.unwrap_err(), stored.unfinished().unwrap_err().into()] {
            let ReserveError::Journal(JournalError::Damaged { path, .. }) = error else { panic!("{error}") };
            assert_eq!(path, file);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certified_redemption_is_paid_once() {
    let scene = Scene::new().await;
    let (alice, reserve) = (TestAccount::numbered(0), scene.reserve(bank()));
    deposit(&reserve, &alice, 50).await.unwrap();
    let order = alice.sign(&scene.committee.domain, redemption(alice.id(), PrimaryAddress::repeat_byte(9), 20, 0));
    let certificate = scene.committee.certified(&order);
    let committees = Committees::new(scene.committee.committee.clone()).unwrap();
    assert_eq!(reserve.redeem(&certificate, &committees).await.unwrap(), Some(TransactionIndex(2)));
    assert_eq!(reserve.redeem(&certificate, &committees).await.unwrap(), None);
    assert_eq!(scene.omnibus().await, Balance::from(Amount(30)));
    let known = scene.committee_client().spent(alice.id(), SequenceNumber(0), Time(0)).await.unwrap();
    let (digest, index, relayer) = (certificate.digest(), TransactionIndex(2), bank().account());
    assert_eq!(known, Some(SpentOn::Redeemed(Redeemed { digest, index, relayer })));
    assert_eq!(scene.committee_client().spent(alice.id(), SequenceNumber(1), Time(0)).await.unwrap(), None);
    let payment = alice.sign(&scene.committee.domain, fastpay_testkit::payment(alice.id(), alice.id(), 1, 1));
    let error = reserve.redeem(&scene.committee.certified(&payment), &committees).await.unwrap_err();
    assert!(matches!(error, ReserveError::NoRedemption), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn redemptions_under_one_vote_are_paid_once_each() {
    let scene = Scene::new().await;
    let (alice, reserve) = (TestAccount::numbered(0), scene.reserve(bank()));
    deposit(&reserve, &alice, 50).await.unwrap();
    let of = |sequence| redemption(alice.id(), PrimaryAddress::repeat_byte(9), 10, sequence);
    let (epoch, domain) = (fastpay_core::Epoch(0), scene.committee.domain);
    let votes = |batch: &[Redemption]| -> Vec<_> {
        let vote = |keys| fastpay_core::sign_batch_vote(keys, &domain, epoch, batch);
        scene.committee.keys[..3].iter().map(vote).collect()
    };
    let first = [of(0), of(1)];
    // The answer gets lost, and the same batch is sent again.
    scene.ledger.submits(Submits::LoseAnswers);
    assert!(reserve.redeem_batch(&first, epoch, votes(&first)).await.is_err());
    scene.ledger.submits(Submits::Work);
    let paid = reserve.redeem_batch(&first, epoch, votes(&first)).await.unwrap();
    assert_eq!(paid, [Some(TransactionIndex(2)), Some(TransactionIndex(3))]);
    let second = [of(1), of(2)];
    let paid = reserve.redeem_batch(&second, epoch, votes(&second)).await.unwrap();
    assert_eq!(paid, [None, Some(TransactionIndex(4))]);
    assert_eq!(scene.omnibus().await, Balance::from(Amount(20)));
    // Votes for others are refused.
    let refused = reserve.redeem_batch(&[of(3)], epoch, votes(&second)).await.unwrap_err();
    assert!(matches!(refused, ReserveError::Rejected(Rejection::InvalidVote(_))), "{refused}");
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
    deposit(&reserve, &alice, 1).await.unwrap();
    // The folder cannot be written: a file stands at its place.
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("ledger"), b"").unwrap();
    let unwritable = Reserve::new(
        Instructions::new(&other.path().join("ledger"), bank().account()),
        scene.committee_client(),
        bank(),
    );
    assert!(unwritable.deposit(alice.id(), Asset::ETHER, Amount(2)).await.is_err());
    assert_eq!(scene.omnibus().await, Balance::from(Amount(1)), "nothing was sent");
    let stored = |amount| match scene.stored(&bank()) {
        Request::Instruct(signed) => {
            matches!(signed.instruction.action, Action::Fund { amount: of, .. } if of == amount)
        }
        _ => false,
    };
    assert!(stored(Amount(1)), "its number is known");
    scene.ledger.submits(Submits::LoseRequests);
    assert!(reserve.deposit(alice.id(), Asset::ETHER, Amount(2)).await.is_err());
    assert!(stored(Amount(2)));
    // What an earlier release stored is continued.
    let file = scene.file(&bank());
    let mut old: serde_json::Map<_, _> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    old.retain(|key, _| ["createdAtMs", "errand", "isRejected", "request"].contains(&key.as_str()));
    std::fs::write(&file, serde_json::to_vec(&old).unwrap()).unwrap();
    scene.ledger.submits(Submits::Work);
    assert!(deposit(&reserve, &alice, 2).await.unwrap());
    assert_eq!(scene.omnibus().await, Balance::from(Amount(3)));
}
