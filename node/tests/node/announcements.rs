//! Committees that are announced are counted until they are installed or lapse, also after a restart.

use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{AccountKey, Epoch};
use fastpay_ethereum::Finality;
use fastpay_ledger_client::CommitteeClient;
use fastpay_ledger_client::scripted::{COMMITTEE, PARAMETERS, ScriptedLedger};
use fastpay_ledger_statement::Time;
use fastpay_node::authority::announcements::Announcements;
use fastpay_node::authority::metrics::Metrics;
use fastpay_testkit::TestCommittee;
use fastpay_testkit::anvil::{GUARDIAN_KEY, Rotation, Signers, rich_key};
use fastpay_testkit::primary::{ChainConfig, LogLie, SimulatedContract, SimulatedNode, SimulatedPrimary};
use tokio::sync::watch;

/// Several times as long as the watch waits between two reads.
const WHILE: Duration = Duration::from_secs(60);
const DAY_S: u64 = 86_400;

/// A contract and two Ethereum nodes. Time is tokio's, and stands still while nothing runs.
struct Scene {
    primary: SimulatedPrimary,
    contract: SimulatedContract,
    nodes: [SimulatedNode; 2],
    committee: TestCommittee,
}

impl Scene {
    fn new() -> Self {
        let primary = SimulatedPrimary::new(ChainConfig::default());
        let committee = TestCommittee::new(4);
        let contract = primary.deploy(&committee.committee);
        let nodes = [primary.node("first", 1), primary.node("second", 2)];
        primary.finalize();
        Self { primary, contract, nodes, committee }
    }

    /// A watch as after a start, and its metrics. It ends with the sender.
    fn watch(&self) -> (watch::Sender<bool>, Arc<Metrics>) {
        let primary = self.primary.connect(&self.nodes, self.contract.address(), Finality::Finalized);
        let metrics = Arc::new(Metrics::new(1));
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(Announcements::new(primary, metrics.clone()).run(stopped));
        (stop, metrics)
    }

    fn rotation(&self) -> Rotation {
        let next = self.committee.rotated();
        let signers = |of: &TestCommittee| (of.committee.clone(), of.keys.clone());
        let (now, next) = (signers(&self.committee), signers(&next));
        let (now, next) = (Signers { committee: &now.0, keys: &now.1 }, Signers { committee: &next.0, keys: &next.1 });
        Rotation::new(self.contract.address(), now, next, self.primary.time_s() + DAY_S)
    }

    /// Has a call mined by the guardian, and returns the time of its block.
    fn send(&self, call: fastpay_ethereum::Call) -> u64 {
        let sent = self.primary.send(&rich_key(GUARDIAN_KEY), call);
        self.primary.mine(1);
        assert!(self.primary.receipt(sent).unwrap().status());
        self.primary.time_s()
    }
}

/// How many committees are shown as announced, and when the first can be installed.
async fn shown(metrics: &Metrics) -> (u64, u64) {
    tokio::time::sleep(WHILE).await;
    of(metrics)
}

fn of(metrics: &Metrics) -> (u64, u64) {
    let text = metrics.text();
    let value = |name: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with(&format!("fastpay_{name} "))).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    (value("announcements_open"), value("announcement_installable_timestamp_seconds"))
}

#[tokio::test(start_paused = true)]
async fn an_announced_committee_is_shown_from_its_final_block_until_it_is_installed() {
    let scene = Scene::new();
    let (_running, metrics) = scene.watch();
    assert_eq!(shown(&metrics).await, (0, 0));

    let rotation = scene.rotation();
    let announced = scene.send(rotation.announce());
    assert_eq!(shown(&metrics).await, (0, 0));
    scene.primary.finalize();
    assert_eq!(shown(&metrics).await, (1, announced + 14 * DAY_S));
    // The guardian's endorsement shortens the delay, and a restart forgets nothing.
    let endorsed = scene.send(rotation.endorse());
    scene.primary.finalize();
    assert_eq!(shown(&metrics).await, (1, endorsed + DAY_S));
    let (_running_again, metrics_again) = scene.watch();
    assert_eq!(shown(&metrics_again).await, (1, endorsed + DAY_S));

    scene.primary.mine_at(endorsed + DAY_S);
    scene.send(rotation.mature());
    let block = scene.primary.block_number();
    scene.send(rotation.install(block, scene.primary.block_hash(block).unwrap()));
    scene.primary.finalize();
    assert_eq!((shown(&metrics).await, shown(&metrics_again).await), ((0, 0), (0, 0)));
}

#[tokio::test(start_paused = true)]
async fn an_announced_committee_is_shown_until_it_lapses() {
    let scene = Scene::new();
    let (_running, metrics) = scene.watch();
    let announced = scene.send(scene.rotation().announce());
    let lapses_at = announced + 28 * DAY_S;
    scene.primary.mine_at(lapses_at);
    scene.primary.finalize();
    // It can be installed in this block for the last time.
    assert_eq!(shown(&metrics).await, (1, announced + 14 * DAY_S));
    scene.primary.mine(1);
    assert_eq!(shown(&metrics).await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_announcement_that_one_ethereum_node_leaves_out_is_shown() {
    let scene = Scene::new();
    scene.nodes[0].behave(|behaviour| behaviour.lies = vec![LogLie::AllWithheld]);
    let (_running, metrics) = scene.watch();
    let announced = scene.send(scene.rotation().announce());
    scene.primary.finalize();
    assert_eq!(shown(&metrics).await, (1, announced + 14 * DAY_S));
}

/// On a ledger, by its certified state. A watch reads it at its start.
#[tokio::test(flavor = "multi_thread")]
async fn a_committee_that_is_announced_on_a_ledger_is_shown_until_it_is_installed_or_lapses() {
    let bank = AccountKey::ed25519([1; 32]);
    let now_ms = || fastpay_program::Clock::system().now_ms();
    let lapse_ms = PARAMETERS.announced_delay_ms + PARAMETERS.lapse_ms;
    // It is announced in time, or so long ago that it has just lapsed.
    for (age_ms, is_lapsed) in [(120_000, false), (lapse_ms + 60_000, true)] {
        let begin = Time(now_ms() - age_ms);
        let ledger = ScriptedLedger::start(&TestCommittee::new(4).committee, &bank, begin).await;
        let first = TestCommittee::with(4, ledger.history().domain(), Epoch(0));
        let folder = tempfile::tempdir().unwrap();
        let client = CommitteeClient::open(&ledger.write(folder.path()), COMMITTEE).unwrap();
        let watched = async || {
            let metrics = Arc::new(Metrics::new(1));
            let (stop, stopped) = watch::channel(false);
            let watch = tokio::spawn(Announcements::on_ledger(client.clone(), metrics.clone()).run(stopped));
            tokio::time::sleep(Duration::from_secs(2)).await;
            stop.send_replace(true);
            watch.await.unwrap();
            of(&metrics)
        };
        assert_eq!(watched().await, (0, 0));
        let next = first.rotated();
        let id = ledger.history().announce(&bank, &first.keys, (&next.committee, &next.keys), Epoch(1)).unwrap();
        let announced_at = ledger.history().time().0;
        if is_lapsed {
            // The state is recent, and the announcement old.
            ledger.history().wait(lapse_ms);
            ledger.history().fund(&bank, &[]);
            assert_eq!(watched().await, (0, 0));
            continue;
        }
        let installable_at = (announced_at + PARAMETERS.announced_delay_ms).div_ceil(1_000);
        assert_eq!(watched().await, (1, installable_at));
        ledger.history().install(&bank, &next.keys, id).unwrap();
        assert_eq!(watched().await, (0, 0));
    }
}
