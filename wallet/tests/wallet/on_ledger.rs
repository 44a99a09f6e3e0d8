//! The `fastpay` command where the Primary is a ledger. The ledger is scripted: its rules and its proofs are real.

use std::path::Path;
use std::process::{Command, Stdio};

use fastpay_core::{AccountId, AccountKey, Amount, Asset, Epoch, PrimaryAddress, Redemption, Transfer};
use fastpay_ledger_client::scripted::{PARAMETERS, ScriptedLedger, Submits};
use fastpay_ledger_statement::{Action, StateKey, Time};
use fastpay_program::Clock;
use fastpay_testkit::TestCommittee;
use fastpay_testkit::fake::FakeCommittee;
use serde_json::{Value, json};

const RECIPIENT: PrimaryAddress = PrimaryAddress::repeat_byte(9);
/// Twenty of the smallest unit.
const TWENTY: &str = "0.00000000000000002";

fn bank() -> AccountKey {
    AccountKey::ed25519([1; 32])
}

struct Scene {
    ledger: ScriptedLedger,
    committee: FakeCommittee,
    home: tempfile::TempDir,
    alice: AccountId,
}

impl Scene {
    /// A wallet with a key that has a hundred in its account.
    async fn new() -> Self {
        let time = Time(Clock::system().now_ms() - 60_000);
        let ledger = ScriptedLedger::start(&TestCommittee::new(4).committee, &bank(), time).await;
        let domain = ledger.history().domain();
        let committee = FakeCommittee::start_with(TestCommittee::with(4, domain, Epoch(0))).await;
        let home = tempfile::tempdir().unwrap();
        let (endpoints, file) = (home.path().join("endpoints.json"), ledger.write(home.path()));
        std::fs::write(&endpoints, serde_json::to_vec(&committee.endpoints).unwrap()).unwrap();
        let paths = [endpoints, file].map(|path| path.display().to_string());
        let set_up =
            fastpay(home.path(), &["init", "--endpoints", &paths[0], "--ledger", &paths[1], "--committee", "0"]).await;
        assert_eq!(set_up["chainId"], 0, "{set_up}");
        let key = fastpay(home.path(), &["keys", "new", "alice", "--ed25519"]).await;
        let alice = key["account"].as_str().unwrap().parse().unwrap();
        ledger.history().fund(&bank(), &[(alice, 100)]);
        committee.fund(1, alice, 100, &[0, 1, 2, 3]);
        Self { ledger, committee, home, alice }
    }

    async fn fastpay(&self, arguments: &[&str]) -> Value {
        fastpay(self.home.path(), arguments).await
    }

    async fn redeem(&self, more: &[&str]) -> Value {
        let recipient = RECIPIENT.to_string();
        self.fastpay(&[&["redeem", TWENTY, "--to", &recipient, "--fee", "0"], more].concat()).await
    }

    /// What alice ordered under a number, as soon as it is certified.
    async fn ordered(&self, sequence: u64) -> Redemption {
        loop {
            let seen = self.committee.authorities[0].certificates_seen();
            let found = seen.into_iter().find_map(|certificate| match certificate.order.transfer {
                Transfer::Redemption(redemption) if redemption.sequence.0 == sequence => Some(redemption),
                _ => None,
            });
            match found {
                Some(redemption) => return redemption,
                None => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            }
        }
    }
}

async fn fastpay(home: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpay"));
    command.args(arguments).arg("--home").arg(home).arg("--json");
    command.env("FASTPAY_PASSPHRASE", "the passphrase").stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redemption_is_waited_for_and_its_state_is_what_the_ledger_proves() {
    let scene = Scene::new().await;
    let relayed = async {
        let redemption = scene.ordered(0).await;
        let keys = scene.committee.newest().keys;
        scene.ledger.history().redeem(&bank(), &keys, Epoch(0), &redemption).unwrap();
    };
    let (redeemed, ()) = tokio::join!(scene.redeem(&["--wait", "30"]), relayed);
    let by_bank = json!({ "by": "relayer", "relayer": bank().account(), "event": 2 });
    assert_eq!((&redeemed["redeemed"], &redeemed["queued"]), (&by_bank, &Value::Null), "{redeemed}");
    // Whoever hands it over again is told the same.
    let again = scene.fastpay(&["redeem", "--sequence", "0", "--self"]).await;
    assert_eq!(again["redeemed"], by_bank, "{again}");
    let alone = scene.redeem(&["--self"]).await;
    assert_eq!(alone["redeemed"], json!({ "by": "self", "relayer": scene.alice, "event": 3 }), "{alone}");
    // Nobody hands over the third one, and thieves spend the number of the fourth.
    let open = scene.redeem(&[]).await;
    assert_eq!(open["redeemed"], false, "{open}");
    let timed_out = scene.fastpay(&["redeem", "--sequence", "2", "--wait", "1"]).await;
    assert_eq!(timed_out["error"]["kind"], "timeout", "{timed_out}");
    scene.redeem(&["--memo", "4"]).await;
    let theirs = Redemption { recipient: PrimaryAddress::repeat_byte(8), ..scene.ordered(3).await };
    scene.ledger.history().redeem(&bank(), &scene.committee.newest().keys, Epoch(0), &theirs).unwrap();
    let displaced = scene.fastpay(&["redeem", "--sequence", "3", "--self"]).await;
    assert_eq!(displaced["redeemed"], false, "{displaced}");
    let history = scene.fastpay(&["history"]).await;
    let states = history["events"].as_array().unwrap().iter().filter_map(|event| event["ethereum"].as_str());
    assert_eq!(states.collect::<Vec<_>>(), ["paid", "paid", "open", "displaced"], "{history}");
    let shown = scene.fastpay(&["show", &format!("{}/0", scene.alice)]).await;
    assert_eq!(shown["ethereum"], "paid", "{shown}");
    let status = scene.fastpay(&["status"]).await;
    assert_eq!(status["instructions"], json!([]), "{status}");
}

/// The current committee votes for it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_redemption_whose_epoch_has_ended_is_redeemed_by_its_owner() {
    let scene = Scene::new().await;
    scene.redeem(&[]).await;
    let (now, next) = (scene.committee.newest(), scene.committee.newest().rotated());
    let keys = (&next.committee, &next.keys[..]);
    scene.ledger.history().rotate(&bank(), &now.keys, keys, next.committee.epoch()).unwrap();
    scene.ledger.history().wait(PARAMETERS.votes_validity_ms);
    scene.ledger.history().decide(&[]);
    scene.committee.install(next);
    scene.committee.authorities.iter().for_each(|authority| authority.rotate());
    let redeemed = scene.fastpay(&["redeem", "--sequence", "0", "--self"]).await;
    assert_eq!(redeemed["redeemed"]["by"], "self", "{redeemed}");
    let key = StateKey::Reserve(AccountId::from_ethereum(RECIPIENT), Asset::ETHER);
    let paid: fastpay_core::Balance = borsh::from_slice(&scene.ledger.history().read(&key).unwrap()).unwrap();
    assert_eq!(paid, fastpay_core::Balance::from(Amount(20)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_deposit_is_listed_by_status() {
    let mut scene = Scene::new().await;
    let transfer = Action::Transfer { to: scene.alice, asset: Asset::ETHER, amount: Amount(50) };
    scene.ledger.history().act(&bank(), transfer).unwrap();
    scene.ledger.submits(Submits::LoseAnswers);
    let lost = scene.fastpay(&["deposit", TWENTY, "--wait", "0"]).await;
    assert_eq!(lost["error"]["kind"], "primary", "{lost}");
    (0..4).for_each(|member| scene.ledger.kill(member));
    let status = scene.fastpay(&["status"]).await;
    let [unfinished] = &status["instructions"].as_array().unwrap()[..] else { panic!("{status}") };
    assert_eq!((&unfinished["state"], &unfinished["errand"]["kind"]), (&"sent".into(), &"deposit".into()), "{status}");
    assert_eq!(unfinished["account"], json!(scene.alice));
}
