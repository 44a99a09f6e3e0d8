//! A committee is lost with the folders of three of its four members. New operators rebuild its checkpoint with the commands
//! of docs/OPERATIONS.md ("When the committee is lost"), adopt it and go on; wallets that hold certificates of the lost
//! committee follow by themselves, and no unit is lost or made.

use std::path::{Path, PathBuf};

use alloy::primitives::{Address, U256, hex};
use fastpay_client::ClientError;
use fastpay_core::{
    AccountId, AccountKey, Asset, Balance, Certificate, Digest, Epoch, Redemption, SequenceNumber, Transfer,
    VerifiedCertificate,
};
use fastpay_e2e::{Network, PATIENCE, Sources, User, audit, bring_all_up_to_date, wait_for};
use fastpay_rpc::Refusal;
use serde_json::{Value, json};

use crate::rotation::{wait_for_epoch, wait_in_epoch};
use crate::scene::{balance, on_chain, payment};

const DAY_S: u64 = 86_400;
const ETHER: u128 = 1_000_000_000_000_000_000;
const OUT: Address = Address::repeat_byte(0xde);
/// The member whose folder is left.
const SURVIVOR: usize = 3;
const NEW: [usize; 3] = [0, 1, 2];

struct Scene {
    network: Network,
    alice: User,
    bob: User,
    carol: User,
    /// Alice's key and account, and the other accounts.
    key: AccountKey,
    accounts: [AccountId; 3],
}

impl Scene {
    /// Alice and Bob have 10 ETH each, and Alice pays 1 of it to Bob. There is a checkpoint, and from then on only one
    /// member has an archive, so there is no other one.
    async fn new() -> Self {
        let mut network = on_chain("recovery").await;
        let configured: Vec<_> =
            network.authorities.iter().map(|authority| std::fs::read(authority.config()).unwrap()).collect();
        for authority in &network.authorities {
            authority.set_endpoints(&network.endpoints_file()).unwrap();
            authority.set_archive(10).unwrap();
        }
        network.start_authorities().await.unwrap();
        network.start_relayer().unwrap();
        let user = async |name| User::new(&network, name).await.unwrap();
        let (alice, bob, carol) = (user("alice").await, user("bob").await, user("carol").await);
        let accounts = [
            alice.import_rich_key("own", 0).await.unwrap(),
            bob.import_rich_key("own", 1).await.unwrap(),
            carol.new_ed25519_key("own").await.unwrap(),
        ];
        for user in [&alice, &bob] {
            user.fastpay(["deposit", "10", "--wait", "240"]).await.unwrap();
        }
        let (_, key) = alice.open("own").unwrap();
        let mut scene = Self { network, alice, bob, carol, key, accounts };
        scene.pay(1, "1").await;
        scene.network.certified(1).await.unwrap();
        for number in NEW {
            scene.network.authority(number).unwrap().stop().unwrap();
            std::fs::write(scene.network.authorities[number].config(), &configured[number]).unwrap();
            scene.network.authority(number).unwrap().start().unwrap();
            scene.network.authority(number).unwrap().wait_ready().await.unwrap();
        }
        scene
    }

    /// Alice pays.
    async fn pay(&self, to: usize, ether: &str) -> Value {
        let paid = self.alice.fastpay(["pay", &self.accounts[to].to_string(), ether]).await.unwrap();
        assert_eq!(paid["state"], "settled", "{paid}");
        paid
    }

    async fn redeem(&self, user: &User, ether: &str) -> Value {
        user.fastpay(["redeem", ether, "--to", &OUT.to_string(), "--wait", "120"]).await.unwrap()
    }

    fn archive(&self, member: usize) -> PathBuf {
        self.network.authorities[member].archive()
    }

    /// Alice has a certificate of her next order, a payment to Bob, that nobody has confirmed.
    async fn certify_and_leave(&self, wei: u128, sequence: u64) -> VerifiedCertificate {
        let order = self.key.order(self.network.domain(), payment(&self.key, self.accounts[1], wei, sequence));
        let verified = order.clone().verify(self.network.domain()).unwrap();
        let mut votes = Vec::new();
        for client in &self.network.clients().unwrap()[..3] {
            let (_, vote) = client.shard_of(&self.accounts[0]).order(&order).await.unwrap();
            votes.push(vote.verify(self.network.domain(), self.network.committee(), &verified).unwrap());
        }
        let certificate = Certificate::from_votes(&verified, self.network.committee(), &votes).unwrap();
        let (wallet, _) = self.alice.open("own").unwrap();
        let journal = wallet.folder().orders(self.accounts[0]).lock(PATIENCE).await.unwrap();
        journal.create(&verified).unwrap();
        journal.certify(&certificate).unwrap();
        certificate
    }

    /// Publishes certificates of Alice's orders in a file, as the run-book says.
    async fn publish(&self, file: &str, sequences: &[u64]) -> PathBuf {
        let mut lines = String::new();
        for sequence in sequences {
            let name = format!("{}/{sequence}", self.accounts[0]);
            let shown = self.alice.fastpay(["show", &name, "--certificate"]).await.unwrap();
            lines += &format!("{}\n", shown["certificate"].as_str().unwrap());
        }
        self.network.place().write(file, lines).unwrap()
    }

    /// Alice's certificates as her wallet has them.
    fn certificate(&self, sequence: u64) -> Certificate {
        let (wallet, _) = self.alice.open("own").unwrap();
        let entry = wallet.folder().orders(self.accounts[0]).entry(SequenceNumber(sequence)).unwrap().unwrap();
        entry.certificate.unwrap()
    }

    /// What an account has at a member.
    async fn has(&self, member: usize, account: usize, wei: i128) {
        let account = self.accounts[account];
        let amount = balance(wei.unsigned_abs());
        let client = self.network.authorities[member].client().unwrap();
        wait_for(PATIENCE, async || {
            let state = client.shard_of(&account).account(account).await.map_err(|error| error.to_string())?;
            let held = state.balance(Asset::ETHER);
            let is_so = if wei < 0 { held.plus(amount) == Balance::ZERO } else { held == amount };
            if is_so { Ok(()) } else { Err(format!("{account} has {held} at {member}, not {wei}")) }
        })
        .await
        .unwrap();
    }

    /// All processes end, and the folders of three members are gone; new operators have empty ones. Returns a copy of the
    /// data folder that is left, and what its archive has.
    async fn lose(&mut self, copied: &str) -> (PathBuf, Value) {
        self.network.relayer().unwrap().stop().unwrap();
        self.network.authorities.iter_mut().for_each(fastpay_e2e::Authority::kill);
        let journals = self.network.copy_data(SURVIVOR, copied).unwrap();
        for number in NEW {
            std::fs::remove_dir_all(self.network.authorities[number].config().parent().unwrap()).unwrap();
            self.network.replace(number, 2).unwrap();
            copy(&self.archive(SURVIVOR), &self.archive(number));
        }
        (journals, self.network.archived(SURVIVOR).unwrap())
    }

    /// 120 days of silence, the announcement, 30 days, the installation. Nobody has a node that follows the chain.
    async fn install(&mut self, epoch: u64, archived: &Value, announced: impl FnOnce(&Self)) {
        let keys = format!("keys-{epoch}");
        let survivor = self.network.authority(SURVIVOR).unwrap().add_keys(&keys).unwrap();
        let mut members: Vec<_> = NEW.iter().map(|number| self.network.authorities[*number].member()).collect();
        members.push(survivor);
        let chain = self.network.chain().unwrap();
        chain.pass(120 * DAY_S).await.unwrap();
        let terms = (epoch, 0);
        let rotation = self.network.propose_naming(digest(archived), &keys, &members, &NEW, terms).unwrap();
        self.network.announce_recovery(&rotation).unwrap();
        announced(self);
        chain.pass(30 * DAY_S).await.unwrap();
        self.network.install(&rotation).await.unwrap();
    }

    /// The nodes of the new committee run, and vote for nothing before the adoption.
    async fn start_without_votes(&mut self, epoch: u64) {
        for number in NEW {
            let authority = &self.network.authorities[number];
            authority.set_endpoints(&self.network.endpoints_file()).unwrap();
            authority.set_archive(60).unwrap();
        }
        for number in 0..4 {
            self.network.authority(number).unwrap().start().unwrap();
        }
        for number in 0..4 {
            wait_in_epoch(&self.network, number, epoch, false).await;
        }
        let order = self.key.order(self.network.domain(), payment(&self.key, self.accounts[1], 1, 1_000));
        for client in self.network.clients().unwrap() {
            let refused = client.shard_of(&self.accounts[0]).order(&order).await.unwrap_err();
            assert_eq!(refused, ClientError::Refused(Refusal::NotVoting(Epoch(epoch))));
        }
    }

    /// The contract adopts the checkpoint of this report, and the members begin from it and vote.
    async fn begin(&mut self, epoch: u64, report: &Value, sources: &Sources) {
        self.network.begin_anew(report, sources).await.unwrap();
        for member in 0..4 {
            wait_for_epoch(&self.network, member, epoch).await;
            self.network.authorities[member].operate("status").unwrap().success().unwrap();
        }
        for user in [&self.alice, &self.bob, &self.carol] {
            user.set_up_again(&self.network).await.unwrap();
        }
    }

    /// What all accounts have at all members, in tenths of an ETH.
    async fn all_have(&self, tenths: [i128; 3]) {
        for member in 0..4 {
            for (account, tenths) in tenths.into_iter().enumerate() {
                self.has(member, account, tenths * ETHER as i128 / 10).await;
            }
        }
    }

    /// Certificates of a committee that was lost count for nothing, whether they are in the checkpoint, executed or not.
    async fn refuse(&self, epoch: u64, ended: &[Certificate]) {
        for client in self.network.clients().unwrap() {
            for ended in ended {
                let refused = client.shard_of(&self.accounts[0]).confirm(ended).await.unwrap_err();
                assert_eq!(refused, ClientError::Refused(Refusal::EpochEnded(Epoch(epoch))));
            }
        }
    }

    /// Nobody can prove that Carol ordered her redemption, so a quorum releases it.
    async fn release(&self) {
        let (wallet, _) = self.carol.open("own").unwrap();
        let entry = wallet.folder().orders(self.accounts[2]).entry(SequenceNumber(0)).unwrap().unwrap();
        let Some(Transfer::Redemption(redemption)) = entry.transfer().cloned() else { panic!("{entry:?}") };
        let file = self.network.place().write("redemption.json", file_of(&redemption)).unwrap();
        let sign = |member: usize| {
            let out = self.network.place().path(format!("release-{member}.json"));
            let (redemption, signed) = (file.to_str().unwrap(), out.to_str().unwrap());
            let options = ["committee", "release", "--redemption", redemption, "--out", signed];
            let said = self.network.authorities[member].operate_with(options).unwrap().success().unwrap();
            assert!(said.err.contains("not confirmed here"), "{said:?}");
            out
        };
        let votes: Vec<_> = NEW.into_iter().map(sign).collect();
        self.network.release(&file, &votes).unwrap();
    }

    /// All agree, and the accounts have what the contract holds.
    async fn balanced(&self, ether: u128) {
        bring_all_up_to_date(&self.network, &self.accounts).await.unwrap();
        let lines = audit(&self.network, &self.accounts, &[Asset::ETHER]).await.unwrap();
        assert!(lines.iter().all(|line| line.ok), "{lines:?}");
        assert_eq!(lines[0].contract_total, balance(ether * ETHER));
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

fn digest(report: &Value) -> Digest {
    report["checkpoint"].as_str().unwrap().parse().unwrap()
}

/// As the scripts and commands read a redemption.
fn file_of(redemption: &Redemption) -> String {
    let Redemption { sender, recipient, asset, amount, fee, sequence, memo } = redemption;
    let number = |amount: &fastpay_core::Amount| u64::try_from(amount.0).unwrap();
    json!({
        "sender": hex::encode_prefixed(sender.0), "recipient": recipient, "asset": asset.0, "amount": number(amount),
        "fee": number(fee), "sequence": sequence.0, "memo": memo,
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_committee_is_recovered_by_the_run_book_and_no_unit_is_lost_or_made() {
    let mut scene = Scene::new().await;
    // Beyond the checkpoint: this payment is in the journals that are left …
    scene.pay(1, "2").await;
    bring_all_up_to_date(&scene.network, &scene.accounts).await.unwrap();
    scene.network.authority(SURVIVOR).unwrap().kill();
    // … of this one Alice publishes the certificate, …
    scene.pay(1, "3").await;
    // … of these nobody does: Bob redeems 13, Alice pays 3 to Carol, Carol redeems that, which the contract queues …
    let redeemed = scene.redeem(&scene.bob, "13").await;
    assert!(redeemed["redeemed"].is_object(), "{redeemed}");
    scene.pay(2, "3").await;
    scene.carol.fastpay(["receive"]).await.unwrap();
    let queued = scene.redeem(&scene.carol, "3").await;
    assert!(queued["queued"].is_object(), "{queued}");
    // … and this one Alice has not settled.
    let unsettled = scene.certify_and_leave(ETHER / 2, 4).await.into_certificate();
    let mut ended: Vec<_> = (0..4).map(|sequence| scene.certificate(sequence)).collect();
    ended.push(unsettled);
    let published = scene.publish("published", &[2]).await;
    let own = scene.publish("own", &[0, 1]).await;

    let (journals, archived) = scene.lose("old-data").await;
    let sources = Sources { certificates: vec![published], journals: vec![journals] };
    scene
        .install(1, &archived, |scene| {
            let early = scene.network.rebuild(0, &["recover"], &sources).unwrap();
            assert!(early.err.contains("ends no earlier epoch at once"), "{}", early.err);
        })
        .await;
    let report = scene.network.rebuilt(1, &sources).await.unwrap();
    let (base, number) = (archived["number"].as_u64().unwrap(), report["number"].as_u64().unwrap());
    assert_eq!((report["base"].as_u64(), number), (Some(base), base + 1), "{report}");
    let [_, bob, _] = scene.accounts.map(|account| json!(account));
    let paid: Vec<_> = report["paid"].as_array().unwrap().iter().map(|paid| paid["account"].clone()).collect();
    // What the contract has queued for Carol, without a certificate that is known, it pays only with new votes.
    assert!(paid == [bob] && report["owing"].as_array().unwrap().is_empty(), "{report}");
    assert!(report["leftOut"].as_array().unwrap().is_empty() && report["invalid"] == 0, "{report}");

    // Others' sources lead to another checkpoint, which nobody signs.
    let fewer = Sources { certificates: Vec::new(), journals: sources.journals.clone() };
    let (asked, out) = (digest(&report).to_string(), scene.network.place().path("fewer.json"));
    let refused = ["committee", "adopt", "--checkpoint", &asked, "--out", out.to_str().unwrap()];
    let refused = scene.network.rebuild(0, &refused, &fewer).unwrap();
    assert!(!refused.status.success() && refused.err.contains("these sources lead to the checkpoint"), "{refused:?}");

    // Somebody without an authority sees what is missing, while it can be added.
    let copied = scene.network.place().path("copied-archive");
    copy(&scene.archive(SURVIVOR), &copied);
    let lacking = scene.network.rebuilt_by_anybody(&copied, &[&sources.certificates[0]]).unwrap();
    assert_ne!(digest(&lacking), digest(&report), "{lacking}");
    let whole = scene.network.rebuilt_by_anybody(&copied, &[&sources.certificates[0], &own]).unwrap();
    assert_eq!((digest(&whole), &whole["paid"]), (digest(&report), &report["paid"]), "{whole}");
    scene.start_without_votes(1).await;
    scene.begin(1, &report, &sources).await;
    scene.all_have([40, 30, 0]).await;
    scene.refuse(1, &ended).await;

    // Carol gets what is released from others. Alice's wallet makes again what was left out, once.
    scene.release().await;
    scene.all_have([40, 30, 0]).await;
    let resumed = scene.alice.fastpay(["resume"]).await.unwrap();
    for (place, sequence) in [3, 4].into_iter().enumerate() {
        let order = &resumed["orders"][place];
        assert_eq!((&order["state"], &order["sequence"]), (&json!("settled"), &json!(sequence)), "{resumed}");
        let (now, before) = (scene.certificate(sequence as u64), &ended[sequence]);
        assert_eq!((now.epoch, &now.order), (Epoch(1), &before.order), "the order that was signed before");
    }
    assert!(scene.alice.fastpay(["resume"]).await.unwrap()["orders"].as_array().unwrap().is_empty());
    scene.pay(1, "0.1").await;
    scene.network.start_relayer().unwrap();
    for user in [&scene.bob, &scene.carol] {
        let redeemed = scene.redeem(user, "1").await;
        assert!(redeemed["redeemed"].is_object(), "{redeemed}");
    }
    scene.balanced(5).await;
    scene.all_have([4, 26, 20]).await;

    // The new committee is lost, too. The folder that is left has all of it.
    ended.extend((3..6).map(|sequence| scene.certificate(sequence)));
    let (journals, archived) = scene.lose("second-data").await;
    let sources = Sources { certificates: Vec::new(), journals: vec![journals] };
    scene.install(2, &archived, |_| ()).await;
    let report = scene.network.rebuilt(2, &sources).await.unwrap();
    for none in ["paid", "owing", "leftOut"] {
        assert!(report[none].as_array().unwrap().is_empty(), "{report}");
    }
    scene.start_without_votes(2).await;
    scene.begin(2, &report, &sources).await;
    scene.all_have([4, 26, 20]).await;
    scene.refuse(2, &ended).await;
    assert!(scene.alice.fastpay(["resume"]).await.unwrap()["orders"].as_array().unwrap().is_empty());
    scene.pay(1, "0.1").await;
    scene.network.start_relayer().unwrap();
    scene.redeem(&scene.bob, "1").await;
    scene.balanced(4).await;
    let out = scene.network.chain().unwrap().ether_of(OUT).await.unwrap();
    assert_eq!(out, U256::from(16 * ETHER));
}
