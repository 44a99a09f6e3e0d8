//! A relayer whose Primary is a ledger. The ledger is scripted: its rules and its answers' proofs are real.

use std::path::PathBuf;

use alloy::primitives::Address;
use fastpay_core::{AccountId, AccountKey, Amount, Asset, Balance, Certificate, Epoch, Redemption, SequenceNumber};
use fastpay_ethereum::PrimaryConfig;
use fastpay_ledger_client::scripted::{COMMITTEE, PARAMETERS, ScriptedLedger, Submits};
use fastpay_ledger_client::{CommitteeClient, JournalError, ReserveError};
use fastpay_ledger_statement::{Request, StateKey, Time, Wire};
use fastpay_program::Clock;
use fastpay_relayer::{Config, Fees, LedgerSettings, OnLedger, Parked, Relayer, RelayerError, StoreError, authorities};
use fastpay_testkit::TestCommittee;
use fastpay_testkit::fake::FakeCommittee;
use serde_json::Value;

use crate::scene::{config, fill_places};

const RECIPIENT: Address = Address::repeat_byte(0xcc);

/// Who has all money first, in a reserve that is open.
fn bank() -> AccountKey {
    AccountKey::ed25519([1; 32])
}

fn owner() -> AccountKey {
    AccountKey::ed25519([9; 32])
}

fn relayer_key(number: u8) -> AccountKey {
    AccountKey::ethereum([number; 32]).unwrap()
}

fn now_ms() -> u64 {
    Clock::system().now_ms()
}

struct Scene {
    ledger: ScriptedLedger,
    committee: FakeCommittee,
    config: Config<LedgerSettings>,
    folder: tempfile::TempDir,
}

impl Scene {
    /// Accounts have 1,000.
    async fn new() -> Self {
        Self::of(&bank()).await
    }

    /// The same on a ledger of which somebody else has all money first.
    async fn of(bank: &AccountKey) -> Self {
        let genesis = TestCommittee::new(4);
        let ledger = ScriptedLedger::start(&genesis.committee, bank, Time(now_ms() - 60_000)).await;
        ledger.history().fund(bank, &[(owner().account(), 1_000)]);
        let domain = ledger.history().domain();
        let committee = FakeCommittee::start_with(TestCommittee::with(4, domain, Epoch(0))).await;
        let folder = tempfile::tempdir().unwrap();
        let endpoints = folder.path().join("endpoints.json");
        std::fs::write(&endpoints, serde_json::to_string(&committee.endpoints).unwrap()).unwrap();
        let settings = LedgerSettings { file: ledger.write(folder.path()), committee: COMMITTEE };
        let unused = PrimaryConfig::new(Vec::new(), 1, Address::ZERO);
        let config = Config { endpoints, ..config(folder.path(), unused).with(settings) };
        Self { ledger, committee, config, folder }
    }

    fn client(&self) -> CommitteeClient {
        CommitteeClient::open(&self.config.primary.file, COMMITTEE).unwrap()
    }

    /// A relayer with this key as if just started, by a clock at which it is this time.
    fn open(&self, key: u8, now_ms: u64) -> Result<Relayer<OnLedger>, RelayerError> {
        let config = Config { data_dir: self.data_dir(key), ..self.config.clone() };
        let authorities = authorities(&config.endpoints).unwrap();
        Relayer::on_ledger(config, self.client(), relayer_key(key), authorities, Clock::at(now_ms))
    }

    fn relayer(&self) -> Relayer<OnLedger> {
        self.open(2, now_ms()).unwrap()
    }

    fn data_dir(&self, key: u8) -> PathBuf {
        self.folder.path().join(format!("data-{key}"))
    }

    /// Of 100 with a fee of 3.
    fn redemption(&self, sequence: u64) -> Redemption {
        Redemption {
            sender: owner().account(),
            recipient: RECIPIENT,
            asset: Asset::ETHER,
            amount: Amount(100),
            fee: Amount(3),
            sequence: SequenceNumber(sequence),
            memo: Default::default(),
        }
    }

    fn certify(&self, redemption: Redemption) -> Certificate {
        let committee = self.committee.newest();
        committee.certificate(&owner().order(&committee.domain, redemption.into()))
    }

    fn show(&self, certificate: &Certificate) {
        self.committee.authorities.iter().for_each(|authority| authority.publish(certificate));
    }

    fn publish(&self, sequences: impl IntoIterator<Item = u64>) {
        sequences.into_iter().for_each(|sequence| self.show(&self.certify(self.redemption(sequence))));
    }

    fn balance(&self, key: &StateKey) -> u128 {
        let value = self.ledger.history().read(key);
        value.map_or(0, |value| borsh::from_slice::<Balance>(&value).unwrap().spendable().0)
    }

    fn reserve(&self, owner: AccountId) -> u128 {
        self.balance(&StateKey::Reserve(owner, Asset::ETHER))
    }

    /// What is paid out, fees included.
    fn paid_out(&self) -> u128 {
        1_000 - self.balance(&StateKey::Omnibus(COMMITTEE, Asset::ETHER))
    }

    /// The next committee, with new keys, at the ledger and at all authorities.
    fn rotate(&self) {
        let (now, next) = (self.committee.newest(), self.committee.newest().rotated());
        let keys = (&next.committee, &next.keys[..]);
        self.ledger.history().rotate(&bank(), &now.keys, keys, next.committee.epoch()).unwrap();
        self.committee.install(next);
        self.committee.authorities.iter().for_each(|authority| authority.rotate());
    }

    /// The number of the newest instruction on disk.
    fn stored(&self, key: u8) -> Option<u64> {
        let owner = hex::encode(relayer_key(key).account().0);
        let file = self.data_dir(key).join("ledger").join(owner).join("1.json");
        let stored: Value = serde_json::from_slice(&std::fs::read(file).ok()?).unwrap();
        match Request::decode(&hex::decode(stored["request"].as_str().unwrap()).unwrap()).unwrap() {
            Request::Instruct(signed) => Some(signed.instruction.sequence.0),
            Request::Get(_) => None,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redemptions_are_paid_once_and_the_fee_goes_to_the_relayer_that_came_first() {
    let scene = Scene::new().await;
    scene.publish([0, 7]);
    let (mut first, mut second) = (scene.relayer(), scene.open(3, now_ms()).unwrap());
    let tick = first.tick(false).await.unwrap();
    assert_eq!((tick.waiting, tick.silent, first.state().totals.redeemed), (0, 0, 2));
    second.tick(false).await.unwrap();
    assert_eq!((second.state().items.len(), second.state().totals.redeemed_by_others), (0, 0), "they were paid before");
    assert_eq!(scene.paid_out(), 200);
    assert_eq!(scene.reserve(AccountId::from_ethereum(RECIPIENT)), 2 * 97);
    assert_eq!(scene.reserve(relayer_key(2).account()), 2 * 3);
    // Others are faster: between the reading and the instruction.
    scene.publish([8]);
    scene.ledger.submits(Submits::LoseRequests);
    second.tick(false).await.unwrap();
    assert_eq!(second.state().items.len(), 1);
    scene.ledger.submits(Submits::Work);
    first.tick(false).await.unwrap();
    second.tick(false).await.unwrap();
    assert_eq!((second.state().totals.redeemed, second.state().totals.redeemed_by_others), (0, 1));
    assert_eq!((scene.paid_out(), scene.reserve(relayer_key(3).account())), (300, 0));
    // One that begins anew pays nothing again.
    drop(first);
    std::fs::remove_dir_all(scene.data_dir(2)).unwrap();
    let done = scene.relayer().run_once().await.unwrap();
    assert_eq!((done.waiting, scene.paid_out()), (0, 300));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relayer_killed_at_any_write_pays_once_and_counts_its_own() {
    let scene = Scene::new().await;
    scene.publish([0]);
    let state = || std::fs::read(scene.data_dir(2).join("state.json")).unwrap();
    // Killed when the instruction is on disk, and nowhere else.
    scene.ledger.submits(Submits::LoseRequests);
    scene.relayer().tick(false).await.unwrap();
    assert_eq!((scene.stored(2), scene.paid_out()), (Some(0), 0));
    let waiting = state();
    // When it is carried out, and the answer is lost.
    scene.ledger.submits(Submits::LoseAnswers);
    scene.relayer().tick(false).await.unwrap();
    assert_eq!((scene.stored(2), scene.paid_out()), (Some(0), 100));
    scene.ledger.submits(Submits::Work);
    let mut relayer = scene.relayer();
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().totals.redeemed, relayer.state().items.len()), (1, 0));
    drop(relayer);
    // When the answer is on disk, and the state is not.
    std::fs::write(scene.data_dir(2).join("state.json"), &waiting).unwrap();
    let mut relayer = scene.relayer();
    assert_eq!(relayer.state().items.len(), 1);
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().totals.redeemed, relayer.state().totals.redeemed_by_others), (1, 0));
    drop(relayer);
    // When another one is under way, and the state is an old one.
    scene.publish([1]);
    scene.ledger.submits(Submits::LoseAnswers);
    scene.relayer().tick(false).await.unwrap();
    std::fs::write(scene.data_dir(2).join("state.json"), &waiting).unwrap();
    scene.ledger.submits(Submits::Work);
    let mut relayer = scene.relayer();
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().items.len(), relayer.state().totals.redeemed_by_others), (0, 0));
    assert_eq!((scene.paid_out(), scene.reserve(relayer_key(2).account())), (200, 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_instruction_is_sent_that_is_not_on_disk() {
    let scene = Scene::new().await;
    scene.publish([0]);
    let mut relayer = scene.relayer();
    std::fs::write(scene.data_dir(2).join("ledger"), b"").unwrap();
    let error = relayer.tick(false).await.unwrap_err();
    assert!(matches!(error, RelayerError::Reserve(ReserveError::Journal(JournalError::Lock(_)))), "{error}");
    assert_eq!(scene.paid_out(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_redemptions_are_refused_and_one_whose_number_was_spent_otherwise_is_named() {
    let scene = Scene::new().await;
    let honest = scene.certify(scene.redemption(0));
    let mut forged = scene.certify(scene.redemption(1));
    forged.votes[0].signature = honest.votes[0].signature.clone();
    let mut altered = scene.certify(scene.redemption(2));
    altered.order.transfer = Redemption { amount: Amount(999), ..scene.redemption(2) }.into();
    [&forged, &altered, &honest].iter().for_each(|certificate| scene.committee.authorities[0].publish(certificate));
    let mut relayer = scene.relayer();
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().totals.invalid, relayer.state().totals.redeemed, scene.paid_out()), (2, 1, 100));

    // Thieves with a quorum's redemption keys spend the number on an order of their own, while the relayer waits.
    scene.publish([3]);
    scene.ledger.submits(Submits::LoseRequests);
    relayer.tick(false).await.unwrap();
    scene.ledger.submits(Submits::Work);
    let theirs = Redemption { recipient: Address::repeat_byte(0xee), ..scene.redemption(3) };
    scene.ledger.history().redeem(&bank(), &scene.committee.newest().keys, Epoch(0), &theirs).unwrap();
    relayer.tick(false).await.unwrap();
    let state = relayer.state();
    assert_eq!((state.totals.displaced, state.totals.redeemed, state.totals.redeemed_by_others), (1, 1, 0));
    assert_eq!((state.items.len(), state.left[0].item.sequence), (0, SequenceNumber(3)));
    assert!(state.left[0].reason.contains("keys are stolen"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_listed_assets_and_sufficient_fees_are_served() {
    let mut scene = Scene::new().await;
    scene.config.fees = [(Asset::ETHER, Amount(3))].into_iter().collect();
    let other = Asset(Address::repeat_byte(0x77));
    scene.show(&scene.certify(Redemption { fee: Amount(2), ..scene.redemption(0) }));
    scene.show(&scene.certify(Redemption { asset: other, ..scene.redemption(1) }));
    scene.publish([2]);
    let mut relayer = scene.relayer();
    for _ in 0..2 {
        relayer.tick(false).await.unwrap();
        let totals = relayer.state().totals;
        assert_eq!((totals.below_cost, totals.not_served, totals.redeemed), (1, 1, 1));
    }
    drop(relayer);
    assert_eq!(scene.paid_out(), 100);
    // What waits is left when the operator no longer serves its asset.
    scene.publish([3]);
    scene.ledger.submits(Submits::LoseRequests);
    scene.relayer().tick(false).await.unwrap();
    scene.ledger.submits(Submits::Work);
    scene.config.fees = [(other, Amount(0))].into_iter().collect();
    let mut relayer = scene.relayer();
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().items.len(), relayer.state().totals.not_served, scene.paid_out()), (0, 2, 100));
    // The default is the native asset for nothing.
    assert_eq!((Fees::default().least(Asset::ETHER), Fees::default().least(other)), (Some(Amount(0)), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_the_ledger_refuses_delays_no_other_and_is_tried_again() {
    let scene = Scene::new().await;
    scene.show(&scene.certify(Redemption { amount: Amount(1_500), ..scene.redemption(0) }));
    scene.publish([1, 2]);
    let mut relayer = scene.relayer();
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().totals.redeemed, scene.paid_out()), (2, 200));
    let parked = relayer.state().items[0].parked.clone().unwrap();
    assert!(parked.reason.contains("in all, less than the amount"), "{}", parked.reason);
    drop(relayer);
    scene.ledger.history().fund(&bank(), &[(owner().account(), 5_000)]);
    let mut relayer = scene.open(2, parked.until_ms + 1).unwrap();
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().totals.redeemed, relayer.state().items.len()), (3, 0));
    assert_eq!(scene.reserve(AccountId::from_ethereum(RECIPIENT)), 2 * 97 + 1_497);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_is_away_is_waited_for() {
    let mut scene = Scene::new().await;
    scene.publish([0]);
    (0..4).for_each(|member| scene.ledger.kill(member));
    let mut relayer = scene.relayer();
    relayer.tick(false).await.unwrap();
    for member in 0..4 {
        scene.ledger.revive(member).await;
    }
    for _ in 0..20 {
        relayer.tick(false).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!((relayer.state().totals.redeemed, scene.paid_out()), (1, 100));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_is_followed_and_votes_of_both_epochs_are_handed_over_while_they_count() {
    let scene = Scene::new().await;
    let mut relayer = scene.relayer();
    relayer.tick(false).await.unwrap();
    scene.publish([0]);
    scene.rotate();
    scene.publish([1]);
    let epochs: Vec<_> = [0, 1].into_iter().map(|sequence| scene.certify(scene.redemption(sequence)).epoch).collect();
    assert_eq!(epochs, [Epoch(1); 2]);
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().totals.redeemed, scene.paid_out()), (2, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_go_under_one_vote_and_one_that_fails_them_all_goes_alone() {
    let scene = Scene::new().await;
    scene.publish(0..8);
    let mut relayer = scene.relayer();
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().totals.redeemed, scene.paid_out(), scene.stored(2)), (8, 800, Some(0)));
    scene.show(&scene.certify(Redemption { amount: Amount(1_500), ..scene.redemption(20) }));
    scene.publish([8, 9]);
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().totals.redeemed, scene.paid_out()), (10, 1_000));
    let [left] = &relayer.state().items[..] else { panic!("one is left") };
    assert!(left.redemption.amount == Amount(1_500) && left.alone && left.parked.is_some());
}

/// Nothing stays debited for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_redemption_whose_epoch_has_ended_is_voted_for_again_and_what_retired_keys_forge_is_refused() {
    let scene = Scene::new().await;
    let forged = scene.certify(Redemption { amount: Amount(70), ..scene.redemption(5) });
    scene.publish([0]);
    scene.rotate();
    scene.ledger.history().wait(PARAMETERS.votes_validity_ms);
    scene.ledger.history().decide(&[]);
    scene.committee.authorities[0].publish(&forged);
    let now_ms = scene.ledger.history().time().0;
    let mut relayer = scene.open(2, now_ms).unwrap();
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().totals.redeemed, scene.paid_out()), (1, 100), "{:?}", relayer.state().items);
    assert_eq!(refused(&relayer), [(Amount(70), 1)]);
}

/// The amounts of what waits, each with how often it failed.
fn refused(relayer: &Relayer<OnLedger>) -> Vec<(Amount, u32)> {
    let failures = |parked: Option<&Parked>| parked.map_or(0, |parked| parked.attempts);
    let items = relayer.state().items.iter();
    items.map(|item| (item.redemption.amount, failures(item.parked.as_ref()))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_retired_keys_forge_makes_way_where_all_places_are_taken() {
    let scene = Scene::new().await;
    let forged = scene.certify(Redemption { amount: Amount(70), ..scene.redemption(50) });
    scene.rotate();
    scene.rotate();
    scene.committee.authorities[0].publish(&forged);
    let now_ms = scene.ledger.history().time().0;
    let mut relayer = scene.open(2, now_ms).unwrap();
    relayer.tick(false).await.unwrap();
    assert_eq!(refused(&relayer), [(Amount(70), 1)], "it counts as a failure");
    drop(relayer);
    fill_places(&scene.data_dir(2));
    scene.publish([0]);
    let mut relayer = scene.open(2, now_ms).unwrap();
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().items.len(), scene.paid_out()), (2_000, 0), "there is no room yet");
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().totals.redeemed, scene.paid_out()), (1, 100));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_certificate_of_an_order_hides_no_later_one_of_the_same_order() {
    let scene = Scene::new().await;
    // No authority executes it before the number's turn comes.
    let forged = scene.certify(scene.redemption(5));
    scene.rotate();
    scene.rotate();
    scene.committee.authorities[0].publish(&forged);
    let mut relayer = scene.open(2, scene.ledger.history().time().0).unwrap();
    relayer.tick(false).await.unwrap();
    assert_eq!(refused(&relayer), [(Amount(100), 1)]);
    // The account's real one comes once its epoch is no longer the current one, and counts at the ledger.
    let genuine = scene.certify(scene.redemption(5));
    scene.rotate();
    relayer.tick(false).await.unwrap();
    scene.committee.authorities[1].publish(&genuine);
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().totals.redeemed, scene.paid_out()), (1, 100), "{:?}", relayer.state().items);
    assert_eq!(refused(&relayer), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn invented_epochs_cost_one_question_for_all_that_was_read() {
    let scene = Scene::new().await;
    let mut relayer = scene.relayer();
    relayer.tick(false).await.unwrap();
    for sequence in 10..60 {
        let invented = Certificate { epoch: Epoch(sequence), ..scene.certify(scene.redemption(sequence)) };
        scene.committee.authorities[0].publish(&invented);
    }
    scene.publish([0]);
    let reads = || (0..4).map(|member| scene.ledger.reads_asked(member)).sum::<u64>();
    let before = reads();
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().totals.invalid, relayer.state().totals.redeemed), (50, 1));
    let asked = reads() - before;
    assert!(asked < 60, "{asked} reads");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_of_one_deployment() {
    let (scene, other) = (Scene::new().await, Scene::of(&AccountKey::ed25519([2; 32])).await);
    scene.relayer().tick(false).await.unwrap();
    let config = Config { data_dir: scene.data_dir(2), ..other.config.clone() };
    let opened = Relayer::on_ledger(
        config,
        other.client(),
        relayer_key(2),
        authorities(&other.config.endpoints).unwrap(),
        Clock::system(),
    );
    assert!(matches!(opened, Err(RelayerError::Store(StoreError::OtherDeployment(_)))), "{:?}", opened.err());
}

#[tokio::test(flavor = "multi_thread")]
async fn wallets_are_told_the_fees() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut scene = Scene::new().await;
    scene.config.fees = [(Asset::ETHER, Amount(3))].into_iter().collect();
    let mut relayer = scene.relayer();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_serving, stop) = tokio::sync::watch::channel(false);
    tokio::spawn(fastpay_relayer::serve_wallets(listener, relayer.quotes(), None, stop));
    let mut quotes = relayer.quotes();
    relayer.run(async { drop(quotes.changed().await) }).await.unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /v1/fees HTTP/1.1\r\nHost: relayer\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let domain = scene.ledger.history().domain();
    assert_eq!((&body["chainId"], &body["contract"]), (&"0".into(), &serde_json::json!(domain.contract())));
    let relayer = relayer_key(2).account().ethereum_address().unwrap();
    assert_eq!((&body["relayer"], &body["fees"][0]["fee"]), (&serde_json::json!(relayer), &"3".into()));
}
