//! When the node of a member that has left may be stopped.

use std::path::Path;
use std::time::Duration;

use fastpay_client::{ClientOptions, Endpoints, Network, ShardClient};
use fastpay_core::{Certificate, Committee, Committees, Epoch};
use fastpay_node::authority::config::{Config, Overrides};
use fastpay_node::authority::known_committees;
use fastpay_node::authority::storage::DataFolder;
use fastpay_node::operator::leave::{LeaveError, LeaveReport, Leaving, leave, leave_and_stop};
use fastpay_node::operator::run::run;
use fastpay_testkit::fake::{FakeCommittee, Role};
use fastpay_testkit::{TestAccount, TestCommittee, payment};
use tokio::sync::watch;

use crate::scene::create;

/// Five authorities with the same keys as a committee; the last one has left, and the others are the committee now.
struct Scene {
    fakes: FakeCommittee,
    payers: [TestAccount; 2],
}

const LEFT: usize = 4;

impl Scene {
    async fn open() -> Self {
        let fakes = FakeCommittee::start_with(TestCommittee::new(5)).await;
        let mut payers = [TestAccount::ed25519(1), TestAccount::ethereum(2)];
        // A fake lists its certificates by account.
        payers.sort_by_key(TestAccount::id);
        for (index, payer) in (1..).zip(&payers) {
            fakes.fund(index, payer.id(), 100, &[0, 1, 2, 3, LEFT]);
        }
        Self { fakes, payers }
    }

    fn certificate(&self, payer: usize, sequence: u64) -> Certificate {
        let (payer, other) = (&self.payers[payer], TestAccount::ed25519(9));
        let order = payer.sign(&self.fakes.committee.domain, payment(payer.id(), other.id(), 1, sequence));
        self.fakes.committee.certificate(&order)
    }

    /// Has these authorities execute it.
    async fn execute(&self, certificate: &Certificate, at: &[usize]) {
        for authority in at {
            self.client(*authority).confirm(certificate).await.unwrap();
        }
    }

    fn client(&self, authority: usize) -> ShardClient {
        let address = &self.fakes.endpoints.authorities[authority].shards[0];
        ShardClient::new(address, None, ClientOptions::default()).unwrap()
    }

    /// The committee of those that stay, and where they are.
    fn stay(&self) -> (Committees, Endpoints) {
        let all = self.fakes.committee.committee.members();
        let stay = Committee::new(Epoch(0), all[..LEFT].to_vec()).unwrap();
        let endpoints =
            Endpoints { authorities: self.fakes.endpoints.authorities[..LEFT].to_vec(), ..Endpoints::default() };
        (Committees::new(stay).unwrap(), endpoints)
    }

    fn network(&self) -> Network {
        let (committees, endpoints) = self.stay();
        Network::new(self.fakes.committee.domain, committees, &endpoints).unwrap()
    }

    /// The configuration of the node that left.
    fn config(&self, folder: &Path) -> Config {
        let ((committees, endpoints), domain) = (self.stay(), self.fakes.committee.domain);
        known_committees::write(folder, &committees).unwrap();
        std::fs::write(folder.join("endpoints.json"), serde_json::to_vec(&endpoints).unwrap()).unwrap();
        let listen = self.fakes.endpoints.authorities[LEFT].shards[0].trim_start_matches("http://");
        let (chain, contract) = (domain.chain_id(), domain.contract());
        let text = format!(
            "data = '.'\nendpoints = 'endpoints.json'\nshards = 1\nlisten = '{listen}'\nhttp = '127.0.0.1:1'\nkeys = [{{ voting = 'v', redemption = 'r' }}]\n\
             [primary]\nrpc_urls = ['http://127.0.0.1:1']\nchain_id = {chain}\ncontract = '{contract}'\n"
        );
        let file = folder.join("authority.toml");
        std::fs::write(&file, text).unwrap();
        Config::read(&file, Overrides::default()).unwrap()
    }

    fn leaving(&self, authority: usize) -> Leaving {
        let address = self.fakes.endpoints.authorities[authority].shards[0].clone();
        Leaving::new(vec![(self.client(authority), address)])
    }
}

fn state(report: &LeaveReport) -> (bool, usize, usize) {
    (report.may_stop, report.complete.len(), report.accounts)
}

#[tokio::test]
async fn a_node_may_be_stopped_once_a_quorum_of_one_epoch_has_executed_everything() {
    let scene = Scene::open().await;
    let (first, second) = (scene.certificate(0, 0), scene.certificate(0, 1));
    scene.execute(&first, &[0, 1, 2, 3, LEFT]).await;
    scene.execute(&second, &[0, 1, LEFT]).await;
    let (network, mut leaving) = (scene.network(), scene.leaving(LEFT));
    let report = leaving.look(&network).await.unwrap();
    assert_eq!((state(&report), report.needed), ((false, 2, 1), 3));
    let lacking: Vec<_> = report.incomplete.iter().map(|of| (of.accounts, of.reason.contains("number 1"))).collect();
    assert_eq!(lacking, [(Some(1), true), (Some(1), true)], "{report}");
    assert!(report.to_string().starts_with("keep the node running: 2 of 4"), "{report}");

    // One that is away is no witness.
    scene.execute(&second, &[2]).await;
    scene.fakes.authorities[0].play(Role::Down);
    assert_eq!(state(&leaving.look(&network).await.unwrap()), (false, 2, 1));
    scene.fakes.authorities[0].play(Role::Honest);
    let report = leaving.look(&network).await.unwrap();
    assert_eq!(state(&report), (true, 3, 1));
    assert!(report.to_string().starts_with("the node may be stopped: 3 of 4"), "{report}");

    // What it executes meanwhile counts, too, when it asks again.
    scene.execute(&scene.certificate(1, 0), &[LEFT, 0, 1]).await;
    assert_eq!(state(&leaving.look(&network).await.unwrap()), (false, 2, 2));
    scene.execute(&scene.certificate(1, 0), &[3]).await;
    let report = leaving.look(&network).await.unwrap();
    assert_eq!(state(&report), (false, 2, 2), "the last one lacks the other account's");
    scene.execute(&second, &[3]).await;
    assert_eq!(state(&leaving.look(&network).await.unwrap()), (true, 3, 2));

    // Its own log has a beginning.
    scene.fakes.authorities[LEFT].play(Role::LostLog);
    let lost = leaving.look(&network).await.unwrap_err();
    assert!(matches!(&lost, LeaveError::Node { error, .. } if !error.is_retryable()), "{lost}");
    scene.fakes.authorities[LEFT].play(Role::Honest);

    // A member does not leave.
    let member = scene.leaving(0).look(&network).await.unwrap_err();
    assert!(matches!(member, LeaveError::Member(..)), "{member}");
}

#[tokio::test]
async fn a_node_that_is_away_is_asked_again_and_the_same_is_told_once() {
    let asked = async |wait: Duration, comes_back: bool| {
        let (scene, folder) = (Scene::open().await, tempfile::tempdir().unwrap());
        let (config, own, mut told) = (scene.config(folder.path()), &scene.fakes.authorities[LEFT], Vec::new());
        own.play(Role::Down);
        let mut tell = |text: String| {
            told.push(text);
            own.play(if comes_back { Role::Honest } else { Role::Down });
        };
        let report = leave(&config, wait, &mut tell).await;
        (report, told)
    };
    // Asked at once and at the end; and at once, after a pause, and at the end.
    let back = asked(Duration::from_millis(100), true);
    let ((report, told), (away, told_away)) = tokio::join!(back, asked(Duration::from_millis(5_100), false));
    let is_away = |told: &[String]| told.len() == 1 && told[0].contains("cannot be asked");
    assert!(report.unwrap().may_stop && is_away(&told), "{told:?}");
    assert!(matches!(&away, Err(LeaveError::Node { .. })) && is_away(&told_away), "{away:?} {told_away:?}");
    // Without a wait it is asked once.
    let (away, told) = asked(Duration::ZERO, true).await;
    assert!(matches!(&away, Err(LeaveError::Node { .. })) && told.is_empty(), "{away:?} {told:?}");
}

#[tokio::test]
async fn what_two_epochs_acknowledge_does_not_add_up() {
    let scene = Scene::open().await;
    let certificate = scene.certificate(0, 0);
    scene.execute(&certificate, &[0, 1, 2, 3, LEFT]).await;
    let (network, mut leaving) = (scene.network(), scene.leaving(LEFT));
    assert!(leaving.look(&network).await.unwrap().may_stop);
    // The next epoch begins: what members had in the one before counts no more, and they are not in this one yet.
    let mut committees = network.committees();
    let next = Committee::new(Epoch(1), committees.current().members().to_vec()).unwrap();
    committees.install(next).unwrap();
    network.adopt(committees, network.names());
    let report = leaving.look(&network).await.unwrap();
    assert_eq!((state(&report), report.epoch), ((false, 0, 1), Epoch(1)));
    assert!(report.incomplete.iter().all(|of| of.reason == "it is in epoch 0"), "{report}");
}

#[tokio::test]
async fn a_member_that_catches_up_is_no_witness() {
    let scene = Scene::open().await;
    let (network, mut leaving) = (scene.network(), scene.leaving(LEFT));
    assert!(leaving.look(&network).await.unwrap().may_stop, "nothing was executed");
    for authority in &scene.fakes.authorities[..2] {
        authority.play(Role::CatchingUp);
    }
    let report = leaving.look(&network).await.unwrap();
    assert_eq!(state(&report), (false, 2, 0));
    let reasons = report.incomplete.iter().map(|of| of.reason.as_str());
    assert!(reasons.into_iter().all(|reason| reason.contains("has not joined the epoch")), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_stopped_for_good_only_once_every_member_has_joined_however_often_the_command_ends() {
    let (scene, folder) = (Scene::open().await, tempfile::tempdir().unwrap());
    let data = folder.path();
    create(data, 1);
    let (config, mark) = (scene.config(data), data.join("left.json"));
    scene.execute(&scene.certificate(0, 0), &[0, 1, 2, LEFT]).await;
    let again = async || leave_and_stop(&config, Duration::ZERO, &mut |_| {}).await.unwrap();
    // A quorum has everything, and one member still needs what this authority states.
    for role in [Role::CatchingUp, Role::Down] {
        scene.fakes.authorities[3].play(role);
        let report = again().await;
        assert_eq!((report.may_stop, report.is_over(), report.stopped), (true, false, false), "{report}");
        assert!(!mark.exists());
    }
    // Once it votes, it may lack what a quorum can bring it.
    scene.fakes.authorities[3].play(Role::Honest);
    let running = DataFolder::hold(data).unwrap();
    let ends = tokio::task::spawn_blocking({
        let mark = mark.clone();
        move || {
            while !mark.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            drop(running);
        }
    });
    let report = again().await;
    ends.await.unwrap();
    assert_eq!((report.complete.len(), report.incomplete.len(), report.stopped), (3, 1, true), "{report}");
    assert!(report.to_string().starts_with("the node has stopped for good: 3 of 4"), "{report}");
    // The command is repeated when nobody can be asked any more, and the node is started.
    scene.fakes.authorities.iter().for_each(|authority| authority.play(Role::Down));
    assert_eq!(again().await, report);
    let (_stop, stopped) = watch::channel(false);
    run(config.clone(), Vec::new(), stopped).await.unwrap();
    std::fs::write(&mark, "damaged").unwrap();
    let damaged = leave_and_stop(&config, Duration::ZERO, &mut |_| {}).await.unwrap_err();
    assert!(matches!(damaged, LeaveError::Mark { .. }), "{damaged}");
}
