//! Data folders that are older than the votes made with them: the authority does not contradict its forgotten votes.

use std::process::Command;
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::{AccountKey, Amount, Asset, Certificate, Epoch, Memo, SequenceNumber, TransferOrder, Vote};
use fastpay_e2e::{Finished, Network, PATIENCE, Payers, User, bring_all_up_to_date, http_get, program, run, wait_for};
use fastpay_rpc::Refusal;
use fastpay_wallet::Intent;

use crate::replace::{clients_of, install};
use crate::rotation::{Load, deposit, wait_for_epoch};
use crate::scene::{key, on_chain, payment, standalone};

struct Scene {
    network: Network,
    payer: AccountKey,
    saver: AccountKey,
}

impl Scene {
    fn new(name: &str) -> Self {
        let (payer, saver) = (key(0), key(1));
        let network = standalone(name, &[payer.account(), saver.account(), key(2).account()]);
        Self { network, payer, saver }
    }

    fn order(&self, owner: &AccountKey, amount: u128, sequence: u64) -> TransferOrder {
        owner.order(self.network.domain(), payment(owner, key(2).account(), amount, sequence))
    }

    /// Creates an authority's data folder again, with its keys.
    fn init_again(&self, number: usize) -> Finished {
        let (place, authority) = (self.network.place(), &self.network.authorities[number]);
        let mut init = Command::new(program("fastpay-node").unwrap());
        init.args(["init", "--listen", "127.0.0.1:1", "--http", "127.0.0.1:9", "--shards", "2", "--config"]);
        init.arg(place.path("again.toml")).arg("--keys").arg(authority.keys_folder());
        init.arg("--data").arg(authority.data()).arg("--genesis").arg(place.path("genesis.json"));
        run(&mut init).unwrap()
    }

    async fn start(&mut self, number: usize) {
        let authority = self.network.authority(number).unwrap();
        authority.start().unwrap();
        authority.wait_ready().await.unwrap();
    }

    fn client(&self, number: usize) -> AuthorityClient {
        self.network.authorities[number].client().unwrap()
    }

    async fn ask(&self, number: usize, order: &TransferOrder) -> Result<Vote, ClientError> {
        self.client(number).shard_of(&order.transfer.sender()).order(order).await.map(|(_, vote)| vote)
    }

    /// Collects these authorities' votes into a certificate.
    async fn certify(&self, voters: [usize; 3], order: &TransferOrder) -> Certificate {
        let mut votes = Vec::new();
        for number in voters {
            votes.push(self.ask(number, order).await.unwrap());
        }
        votes.sort_by_key(|vote| vote.authority);
        Certificate { order: order.clone(), epoch: Epoch(0), votes }
    }

    async fn confirm(&self, number: usize, certificate: &Certificate) -> SequenceNumber {
        let sender = certificate.order.transfer.sender();
        self.client(number).shard_of(&sender).confirm(certificate).await.unwrap().1
    }

    /// Asks until the authority reports from which number on it votes, or votes.
    async fn answer(&self, number: usize, order: &TransferOrder) -> Result<Vote, Refusal> {
        wait_for(PATIENCE, async || match self.ask(number, order).await {
            Ok(vote) => Ok(Ok(vote)),
            Err(ClientError::Refused(refusal)) if !refusal.is_retryable() => Ok(Err(refusal)),
            Err(error) => Err(error.to_string()),
        })
        .await
        .unwrap()
    }
}

fn catching_up(from: u64) -> Result<Vote, Refusal> {
    Err(Refusal::CatchingUp(Some(SequenceNumber(from))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_forgot_its_votes_gives_no_second_one_and_votes_again_above_them() {
    let mut scene = Scene::new("restored");
    scene.network.start_authorities().await.unwrap();
    let backup = scene.network.place().path("backup");
    scene.network.authority(0).unwrap().stop().unwrap();
    scene.network.authorities[0].back_up(&backup).unwrap();
    scene.start(0).await;

    // The copy will lack these: a vote that only this authority was asked for …
    let (first, second) = (scene.order(&scene.payer, 1, 0), scene.order(&scene.payer, 2, 0));
    let given = scene.ask(0, &first).await.unwrap();
    // … and a vote after a certificate that nobody else has yet.
    let saved = scene.order(&scene.saver, 1, 0);
    let saved = scene.certify([0, 1, 2], &saved).await;
    scene.confirm(0, &saved).await;
    let next = scene.order(&scene.saver, 2, 1);
    scene.ask(0, &next).await.unwrap();

    scene.network.authority(0).unwrap().kill();
    scene.network.authorities[0].restore(&backup).unwrap();
    scene.start(0).await;
    let log = scene.network.authority(0).unwrap().program().unwrap().log_text();
    assert!(
        log.contains("a copy of the folder that was last in use") && log.contains("configure `endpoints`"),
        "{log}"
    );
    for _ in 0..5 {
        assert_eq!(scene.ask(0, &second).await, Err(ClientError::Refused(Refusal::CatchingUp(None))));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Its status shows this to operators and wallets.
    let said = scene.network.authorities[0].operate("status").unwrap().success().unwrap().out;
    assert!(said.contains("restored from an older copy"), "{said}");
    let user = User::new(&scene.network, "user").await.unwrap();
    let said = user.fastpay(["status"]).await.unwrap();
    let restored: Vec<_> = said["authorities"].as_array().unwrap().iter().map(|one| one["restored"].clone()).collect();
    assert_eq!(restored.iter().filter(|one| **one == true).count(), 1, "{said}");
    assert!(scene.client(0).shard_of(&scene.payer.account()).account(scene.payer.account()).await.unwrap().catching_up);

    // It gets the others' endpoints. One of them is away, so too few can answer it.
    scene.network.authority(0).unwrap().kill();
    scene.network.authorities[0].set_endpoints(&scene.network.endpoints_file()).unwrap();
    scene.network.authority(3).unwrap().kill();
    scene.start(0).await;
    for _ in 0..5 {
        assert_eq!(scene.ask(0, &second).await, Err(ClientError::Refused(Refusal::CatchingUp(None))));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    scene.start(3).await;
    assert_eq!(scene.answer(0, &second).await, catching_up(1));
    assert_eq!(scene.answer(0, &first).await, catching_up(1), "nor for the order that it did vote for");
    // It confirms certificates, and still does not vote after the certificate that it had.
    assert_eq!(scene.confirm(0, &saved).await, SequenceNumber(1));
    let other = scene.order(&scene.saver, 3, 1);
    assert_eq!(scene.answer(0, &other).await, catching_up(2));

    // For wallets it is an authority that does not vote now: they pay without it and bring it up to date.
    let payers = Payers::new(&scene.network, 3).unwrap();
    let sends =
        Intent::Pay { recipient: scene.payer.account(), asset: Asset::ETHER, amount: Amount(9), memo: Memo::ZERO };
    assert_eq!(payers.accounts()[2], key(2).account());
    payers.send(2, sends).await.unwrap();
    payers.bring_all_up_to_date(&[key(2).account()]).await.unwrap();
    let log = scene.network.authority(0).unwrap().program().unwrap().log_text();
    assert!(log.contains("this data folder may be older"), "{log}");

    // The others finish the order without it. From then on it votes, also after a restart.
    for certificate in [scene.certify([1, 2, 3], &first).await, saved.clone()] {
        for number in 0..4 {
            scene.confirm(number, &certificate).await;
        }
    }
    let mine = scene.order(&scene.payer, 3, 1);
    scene.answer(0, &mine).await.unwrap();
    scene.network.authority(0).unwrap().kill();
    scene.start(0).await;
    let later = scene.certify([0, 2, 3], &mine).await;
    assert_eq!(scene.confirm(1, &later).await, SequenceNumber(2));
    assert_eq!(scene.answer(0, &other).await, catching_up(2), "what was learned is still known");
    let finished = scene.certify([1, 2, 3], &other).await;
    assert_eq!(scene.confirm(0, &finished).await, SequenceNumber(2));
    scene.answer(0, &scene.order(&scene.saver, 1, 2)).await.unwrap();
    let state = scene.client(0).shard_of(&scene.saver.account()).account(scene.saver.account()).await.unwrap();
    assert!(!state.catching_up && state.pending.is_some());
    // It asked about the wallet's account while the others were locked, so it skips one more number. From then on its
    // vote makes a quorum while another authority is away.
    payers.send(2, sends).await.unwrap();
    scene.network.authority(3).unwrap().kill();
    payers.send(2, sends).await.unwrap();

    // If the copy counted as complete, it would vote twice where no peer shows it the later certificates. The operator's
    // word does not make it so: its journals are shorter than the high-water mark says.
    (0..3).for_each(|number| scene.network.authority(number).unwrap().kill());
    scene.network.authorities[0].restore(&backup).unwrap();
    scene.network.authorities[0].operate("trust-data").unwrap().success().unwrap();
    scene.start(0).await;
    assert_eq!(scene.ask(0, &second).await, Err(ClientError::Refused(Refusal::CatchingUp(None))));
    scene.network.authority(0).unwrap().kill();
    let refused = scene.network.authorities[0].operate("trust-data").unwrap();
    assert!(!refused.status.success() && refused.err.contains("joins the next epoch"), "{}", refused.err);
    let order = first.clone().verify(scene.network.domain()).unwrap();
    given.verify(scene.network.domain(), scene.network.committee(), &order).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_lost_its_disk_starts_over_as_an_older_copy() {
    let mut scene = Scene::new("lost-disk");
    for authority in &scene.network.authorities {
        authority.set_endpoints(&scene.network.endpoints_file()).unwrap();
    }
    scene.network.start_authorities().await.unwrap();
    // The first start of a whole committee needs no declaration by its operators.
    let (first, second) = (scene.order(&scene.payer, 1, 0), scene.order(&scene.payer, 2, 0));
    let saved = scene.order(&scene.saver, 1, 0);
    let saved = scene.certify([0, 1, 2], &saved).await;
    scene.confirm(1, &saved).await;
    // A vote that nobody else knows.
    scene.ask(0, &first).await.unwrap();

    scene.network.authority(0).unwrap().kill();
    let data = scene.network.authorities[0].data();
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::remove_file(data.with_file_name("data.witness")).unwrap();
    scene.init_again(0).success().unwrap();
    scene.start(0).await;
    let log = scene.network.authority(0).unwrap().program().unwrap().log_text();
    assert!(log.contains("this data folder may be older") && log.contains("the deployment is in use at"), "{log}");
    assert_eq!(scene.answer(0, &second).await, catching_up(1));
    // The result is kept over a restart.
    scene.network.authority(0).unwrap().kill();
    scene.start(0).await;
    assert_eq!(scene.answer(0, &second).await, catching_up(1));
    // The others finish the order that it may have voted for. From then on it votes.
    let certificate = scene.certify([1, 2, 3], &first).await;
    assert_eq!(scene.confirm(0, &certificate).await, SequenceNumber(1));
    scene.answer(0, &scene.order(&scene.payer, 3, 1)).await.unwrap();
}

/// A peer needs a certificate to claim a number, so a lying peer cannot keep the authority from voting. The operator's
/// declaration counts if nothing contradicts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_says_that_the_folder_is_old_and_nobodys_word_makes_it_complete() {
    let mut scene = Scene::new("operator");
    for number in 0..4 {
        scene.network.authorities[number].set_endpoints(&scene.network.endpoints_file()).unwrap();
    }
    scene.network.start_authorities().await.unwrap();
    let running = scene.network.authorities[0].operate("mark-stale").unwrap();
    assert!(!running.status.success() && running.err.contains("in use by another process"), "{}", running.err);
    let order = scene.order(&scene.payer, 1, 0);
    scene.network.authority(0).unwrap().stop().unwrap();
    scene.network.authorities[0].operate("mark-stale").unwrap().success().unwrap();
    scene.start(0).await;
    assert_eq!(scene.answer(0, &order).await, catching_up(1));

    // A second authority in the same state is no evidence for the first, nor the reverse.
    scene.network.authority(1).unwrap().stop().unwrap();
    scene.network.authorities[1].operate("mark-stale").unwrap().success().unwrap();
    scene.start(1).await;
    for _ in 0..5 {
        assert_eq!(scene.ask(1, &order).await, Err(ClientError::Refused(Refusal::CatchingUp(None))));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    scene.network.authority(0).unwrap().stop().unwrap();
    let refused = scene.network.authorities[0].operate("trust-data").unwrap();
    assert!(!refused.status.success() && refused.err.contains("its operator says so"), "{}", refused.err);
    scene.start(0).await;
    assert_eq!(scene.answer(0, &order).await, catching_up(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_folder_was_restored_joins_the_next_epoch_and_votes_for_everything_again() {
    let mut network = on_chain("rejoin").await;
    let endpoints = network.endpoints_file();
    network.authorities.iter().for_each(|authority| authority.set_endpoints(&endpoints).unwrap());
    network.start_authorities().await.unwrap();
    let clients = clients_of(&network);
    let (payer, owner, saver) = (key(0), key(2), key(4));
    for account in [&payer, &owner, &saver] {
        deposit(&network, account, 1_000_000).await;
    }
    let load = Load::start(&clients, payer, owner.account());
    load.more("before the backup").await;
    let backup = network.place().path("backup");
    network.authority(0).unwrap().stop().unwrap();
    network.authorities[0].back_up(&backup).unwrap();
    network.authority(0).unwrap().start().unwrap();
    network.authority(0).unwrap().wait_ready().await.unwrap();
    load.more("after the backup").await;
    // A vote that the copy lacks, and nobody else knows of.
    let forgotten = saver.order(&clients.domain, payment(&saver, owner.account(), 5, 0));
    clients.authorities[0].shard_of(&saver.account()).order(&forgotten).await.unwrap();

    network.authority(0).unwrap().kill();
    network.authorities[0].restore(&backup).unwrap();
    network.authority(0).unwrap().start().unwrap();
    let ready = async || {
        let http = network.authorities[0].endpoints().unwrap().http.clone().unwrap();
        http_get(&http, "/ready").await.map_or_else(|error| error.to_string(), |(_, body)| body)
    };
    // It knows up to which epoch it may have voted once it has seen a block of after its start.
    deposit(&network, &owner, 1).await;
    wait_for(PATIENCE, async || {
        let mark = network.authorities[0].data().join("restored.json");
        let mark = std::fs::read_to_string(mark).map_err(|error| error.to_string())?;
        if mark.contains("\"up_to\":0") { Ok(()) } else { Err(mark) }
    })
    .await
    .unwrap();
    let said = ready().await;
    assert!(said.contains("\"restored\":true") && said.contains("\"votes\":false"), "{said}");
    load.more("with the restored member").await;

    install(&network, &clients, 1, &[1, 2, 3]).await;
    for number in 0..4 {
        wait_for_epoch(&network, number, 1).await;
    }
    let said = ready().await;
    assert!(said.contains("\"restored\":false") && said.contains("\"fullSince\":1"), "{said}");
    assert!(!network.authorities[0].data().join("restored.json").exists());
    load.more("in the next epoch").await;
    let (payer, sequence) = load.end().await;
    bring_all_up_to_date(&network, &[payer.account()]).await.unwrap();
    // Without it there is no quorum, and it votes for the first payment of an account, too.
    network.authority(3).unwrap().kill();
    let certificate = clients.do_it(&payer, payment(&payer, owner.account(), 1, sequence)).await;
    let first = clients.do_it(&saver, payment(&saver, owner.account(), 7, 0)).await;
    let own = network.authorities[0].member().name;
    for certificate in [certificate, first] {
        assert_eq!(certificate.epoch, Epoch(1));
        assert!(certificate.votes.iter().any(|vote| vote.authority == own));
    }
    // It stays so.
    network.authority(3).unwrap().start().unwrap();
    network.authority(0).unwrap().kill();
    network.authority(0).unwrap().start().unwrap();
    wait_for_epoch(&network, 0, 1).await;
}
