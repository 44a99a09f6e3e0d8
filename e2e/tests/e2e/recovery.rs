//! A committee is lost with the folders of three of its four members. New operators rebuild its checkpoint with the commands
//! of docs/OPERATIONS.md ("When the committee is lost"), adopt it and go on; wallets that hold certificates of the lost
//! committee follow by themselves, and no unit is lost or made.

use std::path::{Path, PathBuf};
use std::time::Duration;

use alloy::primitives::{Address, U256, hex};
use fastpay_client::ClientError;
use fastpay_core::{
    AccountId, AccountKey, Asset, Balance, Certificate, Digest, Epoch, Redemption, SequenceNumber, Transfer,
    VerifiedCertificate,
};
use fastpay_e2e::{Network, User, audit, bring_all_up_to_date, wait_for};
use fastpay_ethereum::{Primary, PrimaryConfig};
use fastpay_rpc::Refusal;
use serde_json::{Value, json};

use crate::rotation::{wait_for_epoch, wait_in_epoch};
use crate::scene::{balance, on_chain, payment};

const PATIENCE: Duration = Duration::from_secs(300);
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
            user.fastpay(["deposit", "10", "--wait", "60"]).await.unwrap();
        }
        let (_, key) = alice.open("own").unwrap();
        let mut scene = Self { network, alice, bob, carol, key, accounts };
        scene.pay(1, "1").await;
        scene.certified(&[0, 1, 2, SURVIVOR], 1).await;
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

    async fn certified(&self, members: &[usize], number: u64) {
        wait_for(PATIENCE, async || {
            for member in members {
                let path = self.archive(*member).join(format!("{number:010}.certificate.json"));
                if !path.exists() {
                    return Err(format!("{} is not there", path.display()));
                }
            }
            Ok(())
        })
        .await
        .unwrap();
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

    /// Publishes certificates of Alice's orders, as the run-book says.
    async fn publish(&self, sequences: &[u64]) -> PathBuf {
        let mut lines = String::new();
        for sequence in sequences {
            let name = format!("{}/{sequence}", self.accounts[0]);
            let shown = self.alice.fastpay(["show", &name, "--certificate"]).await.unwrap();
            lines += &format!("{}\n", shown["certificate"].as_str().unwrap());
        }
        self.network.place().write("published", lines).unwrap()
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

    /// Runs a command of an operator with the same sources.
    fn rebuild(&self, member: usize, command: &[&str], sources: &Sources) -> fastpay_e2e::Finished {
        let mut arguments: Vec<_> = command.iter().map(Into::into).collect();
        let mut add = |option: &str, path: &Path| arguments.extend([option.into(), path.as_os_str().to_owned()]);
        add("--archive", &self.archive(member));
        sources.certificates.iter().for_each(|path| add("--certificates", path));
        add("--journals", &sources.journals);
        self.network.authorities[member].operate_with(arguments).unwrap()
    }

    /// The new members' signatures under what the sources lead to.
    fn adopt(&self, sources: &Sources, checkpoint: Digest) -> Vec<PathBuf> {
        let sign = |member: usize| {
            let out = self.network.place().path(format!("adopt-{member}.json"));
            let (asked, file) = (checkpoint.to_string(), out.to_str().unwrap());
            let command = ["committee", "adopt", "--checkpoint", &asked, "--out", file];
            self.rebuild(member, &command, sources).success().unwrap();
            out
        };
        NEW.into_iter().map(sign).collect()
    }
}

struct Sources {
    certificates: Vec<PathBuf>,
    journals: PathBuf,
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
    let unsettled = scene.certify_and_leave(ETHER / 2, 4).await;
    let ended = [0, 1, 2, 3].map(|sequence| scene.certificate(sequence));
    let published = scene.publish(&[2]).await;
    let out_before = scene.network.chain().unwrap().ether_of(OUT).await.unwrap();
    assert_eq!(out_before, U256::from(13 * ETHER));

    // The loss.
    let journals = scene.network.place().path("old-data");
    copy(&scene.network.authorities[SURVIVOR].data(), &journals);
    scene.network.relayer().unwrap().stop().unwrap();
    for number in NEW {
        scene.network.authority(number).unwrap().kill();
        std::fs::remove_dir_all(scene.network.authorities[number].config().parent().unwrap()).unwrap();
        scene.network.replace(number, 2).unwrap();
    }
    let verify = ["archive".into(), "verify".into(), scene.archive(SURVIVOR).into_os_string(), "--json".into()];
    let archived = scene.network.authorities[SURVIVOR].operate_with(verify).unwrap().success().unwrap();
    let archived: Value = serde_json::from_str(&archived.out).unwrap();
    let base = archived["number"].as_u64().unwrap();

    // 120 days of silence, the announcement, 30 days. Nobody but the survivor has a node that could follow the chain.
    let survivor = scene.network.authority(SURVIVOR).unwrap().add_keys("keys-1").unwrap();
    let members = [0, 1, 2].map(|number| scene.network.authorities[number].member());
    let members = [members.as_slice(), &[survivor]].concat();
    scene.network.chain().unwrap().pass(120 * DAY_S).await.unwrap();
    let rotation = scene.network.propose_naming(digest(&archived), "keys-1", &members, &NEW, (1, 0)).await.unwrap();
    scene.network.announce_recovery(&rotation).unwrap();
    for number in NEW {
        copy(&scene.archive(SURVIVOR), &scene.archive(number));
    }
    let sources = Sources { certificates: vec![published], journals };
    let early = scene.rebuild(0, &["recover"], &sources);
    assert!(early.err.contains("was not installed by a recovery"), "{}", early.err);
    scene.network.chain().unwrap().pass(30 * DAY_S).await.unwrap();
    scene.network.install(&rotation).await.unwrap();

    // Everybody rebuilds alike, once the installation is final.
    let recover = ["recover", "--json"];
    wait_for(PATIENCE, async || {
        let rebuilt = scene.rebuild(0, &recover, &sources);
        if rebuilt.status.success() { Ok(()) } else { Err(rebuilt.err) }
    })
    .await
    .unwrap();
    let rebuilt = scene.network.place().path("rebuilt");
    let first = [&recover[..], &["--out", rebuilt.to_str().unwrap()]].concat();
    let first: Value = serde_json::from_str(&scene.rebuild(0, &first, &sources).success().unwrap().out).unwrap();
    let again: Value = serde_json::from_str(&scene.rebuild(1, &recover, &sources).success().unwrap().out).unwrap();
    assert_eq!(first, again);
    let written: Value = serde_json::from_slice(&std::fs::read(rebuilt.join("report.json")).unwrap()).unwrap();
    assert_eq!(written, first);
    assert_eq!((first["base"].as_u64(), first["number"].as_u64()), (Some(base), Some(base + 1)), "{first}");
    let [_, bob, carol] = scene.accounts.map(|account| json!(account));
    let paid: Vec<_> = first["paid"].as_array().unwrap().iter().map(|paid| paid["account"].clone()).collect();
    assert!(paid.len() == 2 && paid.contains(&bob) && paid.contains(&carol), "{first}");
    assert_eq!(first["owing"][0]["account"], carol, "{first}");
    assert!(first["leftOut"].as_array().unwrap().is_empty() && first["invalid"] == 0, "{first}");
    let agreed = digest(&first);

    // Others' sources lead to another checkpoint, which nobody signs.
    let fewer = Sources { certificates: Vec::new(), journals: sources.journals.clone() };
    let (asked, out) = (agreed.to_string(), scene.network.place().path("fewer.json"));
    let refused = ["committee", "adopt", "--checkpoint", &asked, "--out", out.to_str().unwrap()];
    let refused = scene.rebuild(0, &refused, &fewer);
    assert!(!refused.status.success() && refused.err.contains("these sources lead to the checkpoint"), "{refused:?}");

    // The nodes of the new committee vote for nothing before the adoption.
    for authority in &scene.network.authorities {
        if authority.member() != scene.network.authorities[SURVIVOR].member() {
            authority.set_endpoints(&scene.network.endpoints_file()).unwrap();
            authority.set_archive(60).unwrap();
        }
    }
    for number in 0..4 {
        scene.network.authority(number).unwrap().start().unwrap();
    }
    for number in 0..4 {
        wait_in_epoch(&scene.network, number, 1, false).await;
    }
    let order = unsettled.certificate().order.clone();
    for client in scene.network.clients().unwrap() {
        let refused = client.shard_of(&scene.accounts[0]).order(&order).await.unwrap_err();
        assert_eq!(refused, ClientError::Refused(Refusal::NotVoting(Epoch(1))));
    }
    let votes = scene.adopt(&sources, agreed);
    scene.network.adopt(agreed, &votes).unwrap();
    wait_for(PATIENCE, async || {
        let said = scene.rebuild(0, &["recover"], &sources);
        if said.out.contains("the contract has adopted it") { Ok(()) } else { Err(said.out + &said.err) }
    })
    .await
    .unwrap();

    // One member has only its node, which brings the checkpoint from the others.
    for number in [0, 1, SURVIVOR] {
        let out = scene.archive(number);
        scene.rebuild(number, &["recover", "--out", out.to_str().unwrap()], &sources).success().unwrap();
    }
    scene.certified(&[0, 1, 2, SURVIVOR], base + 1).await;
    for number in 0..4 {
        scene.network.authority(number).unwrap().stop().unwrap();
        let rebase = ["rebase".into(), "--archive".into(), scene.archive(number).into_os_string()];
        scene.network.authorities[number].operate_with(rebase).unwrap().success().unwrap();
    }
    scene.network.authorities[SURVIVOR].operate("trust-data").unwrap().success().unwrap();
    for number in 0..4 {
        scene.network.authority(number).unwrap().start().unwrap();
    }
    for number in 0..4 {
        wait_for_epoch(&scene.network, number, 1).await;
        scene.network.authorities[number].operate("status").unwrap().success().unwrap();
        for (account, wei) in [(0, 4 * ETHER as i128), (1, 3 * ETHER as i128), (2, -3 * ETHER as i128)] {
            scene.has(number, account, wei).await;
        }
    }

    // Certificates of the lost committee count for nothing, whether they are in the checkpoint, executed or not.
    for client in scene.network.clients().unwrap() {
        for ended in ended.iter().chain([unsettled.certificate()]) {
            let refused = client.shard_of(&scene.accounts[0]).confirm(ended).await.unwrap_err();
            assert_eq!(refused, ClientError::Refused(Refusal::EpochEnded(Epoch(1))));
        }
    }

    // The users' programs need the new endpoints.
    for user in [&scene.alice, &scene.bob, &scene.carol] {
        user.set_up_again(&scene.network).await.unwrap();
    }
    // Carol owes what nobody can prove that she had, so a quorum releases her redemption, and it goes back to her.
    let (wallet, _) = scene.carol.open("own").unwrap();
    let entry = wallet.folder().orders(scene.accounts[2]).entry(SequenceNumber(0)).unwrap().unwrap();
    let Some(Transfer::Redemption(redemption)) = entry.transfer().cloned() else { panic!("{entry:?}") };
    let file = scene.network.place().write("redemption.json", file_of(&redemption)).unwrap();
    let sign = |member: usize| {
        let out = scene.network.place().path(format!("release-{member}.json"));
        let options = ["committee", "release", "--redemption", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
        let said = scene.network.authorities[member].operate_with(options).unwrap().success().unwrap();
        assert!(said.err.contains("the account owes here"), "{said:?}");
        out
    };
    let votes: Vec<_> = NEW.into_iter().map(sign).collect();
    scene.network.release(&file, &votes).unwrap();
    for number in 0..4 {
        scene.has(number, 2, 0).await;
    }

    // Alice's wallet makes again what was left out, once.
    let resumed = scene.alice.fastpay(["resume"]).await.unwrap();
    assert_eq!(resumed["orders"][0]["state"], "settled", "{resumed}");
    assert_eq!(resumed["orders"][0]["sequence"], 4, "{resumed}");
    for (sequence, before) in [(3, &ended[3]), (4, unsettled.certificate())] {
        let now = scene.certificate(sequence);
        assert_eq!((now.epoch, &now.order), (Epoch(1), &before.order), "the order that was signed before");
    }
    assert!(scene.alice.fastpay(["resume"]).await.unwrap()["orders"].as_array().unwrap().is_empty());
    scene.pay(1, "0.1").await;
    scene.network.start_relayer().unwrap();
    for user in [&scene.bob, &scene.carol] {
        let redeemed = scene.redeem(user, "1").await;
        assert!(redeemed["redeemed"].is_object(), "{redeemed}");
    }
    bring_all_up_to_date(&scene.network, &scene.accounts).await.unwrap();
    for number in 0..4 {
        for (account, tenths) in [(0, 4), (1, 26), (2, 20)] {
            scene.has(number, account, tenths * ETHER as i128 / 10).await;
        }
    }
    let out = scene.network.chain().unwrap().ether_of(OUT).await.unwrap();
    assert_eq!(out, U256::from(15 * ETHER));
    let lines = audit(&scene.network, &scene.accounts, &[Asset::ETHER]).await.unwrap();
    assert!(lines.iter().all(|line| line.ok), "{lines:?}");
    assert_eq!(lines[0].contract_total, balance(5 * ETHER));
    let url = scene.network.chain().unwrap().url().parse().unwrap();
    let config = PrimaryConfig::new(vec![url], scene.network.domain().chain_id(), scene.network.contract().unwrap());
    assert_eq!(Primary::connect(config).await.unwrap().adopted(Epoch(1)).await.unwrap(), agreed);
}
