//! The audit finds what is wrong and names who: each wrong is planted in a real committee, and nothing else is said
//! of the others.

use std::time::Duration;

use fastpay_core::{Amount, Asset, Balance, Epoch, Genesis, GenesisBalance, Memo, PrimaryAddress};
use fastpay_testkit::fake::{FakeCommittee, Role, options};
use fastpay_testkit::{TestCommittee, alice, bob, carol};
use fastpay_wallet::folder::{Config, Folder};
use fastpay_wallet::{AuditReport, ErrorKind, Intent, Wallet};
use serde_json::Value;

use crate::support::{Wallets, pay};

struct Scene {
    committee: FakeCommittee,
    home: tempfile::TempDir,
    wallet: Wallet,
}

fn units(amount: u128) -> Balance {
    Balance::from(Amount(amount))
}

impl Scene {
    /// Alice has 100 and Bob 50 from the beginning.
    async fn new() -> Self {
        let funded = [(alice().account(), 100), (bob().account(), 50)];
        let balances =
            funded.map(|(account, amount)| GenesisBalance { account, asset: Asset::ETHER, amount: Amount(amount) });
        let members = TestCommittee::new(4).committee.members().to_vec();
        let genesis = Genesis { committee: members, balances: balances.to_vec() };
        let committee = FakeCommittee::start_with(TestCommittee::with(4, genesis.domain(), Epoch(0))).await;
        for (index, (account, amount)) in (1..).zip(funded) {
            committee.fund(index, account, amount, &[0, 1, 2, 3]);
        }
        let home = tempfile::tempdir().unwrap();
        let (file, endpoints) = (home.path().join("genesis.json"), home.path().join("endpoints.json"));
        std::fs::write(&file, serde_json::to_vec(&genesis).unwrap()).unwrap();
        std::fs::write(&endpoints, serde_json::to_vec(&committee.endpoints).unwrap()).unwrap();
        let folder = Folder::new(home.path());
        Config { endpoints, primary: None, genesis: Some(file), traces: None }
            .write(&folder.config_path(), false)
            .unwrap();
        let wallet = Wallet::open(folder, options()).unwrap();
        Self { committee, home, wallet }
    }

    /// Alice pays Bob twice, Bob pays Carol, who had nothing, and Carol redeems; all have all of it.
    async fn trade(&self) {
        let redemption = Intent::Redeem {
            recipient: PrimaryAddress::repeat_byte(9),
            asset: Asset::ETHER,
            amount: Amount(4),
            fee: Amount(1),
            memo: Memo::ZERO,
        };
        let orders = [
            (alice(), pay(bob().account(), 30)),
            (alice(), pay(bob().account(), 20)),
            (bob(), pay(carol().account(), 9)),
        ];
        for (key, intent) in orders.into_iter().chain([(carol(), redemption)]) {
            let receipt = self.wallet.send(&key, &intent).await.unwrap();
            assert_eq!(receipt.rest.await.unwrap(), 4);
        }
    }

    async fn audit(&self) -> AuditReport {
        self.wallet.audit(Duration::ZERO, &|_| {}).await.unwrap()
    }

    fn name(&self, index: usize) -> String {
        self.committee.endpoints.authorities[index].name.to_string()
    }

    /// The audit fails, says nothing but of one authority, and says this.
    async fn blames(&self, index: usize, said: &[&str]) {
        let report = self.audit().await;
        assert!(!report.ok);
        let name = self.name(index);
        assert!(report.findings.iter().all(|finding| finding.contains(&name)), "{:?}", report.findings);
        for said in said {
            assert!(report.findings.iter().any(|found| found.contains(said)), "{said:?}: {:?}", report.findings);
        }
        assert!(report.assets.iter().all(|asset| asset.solvency.solvent), "{report:?}");
    }

    async fn fastpay(&self, arguments: &[&str]) -> (Value, String, i32) {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fastpay"));
        command.args(arguments).arg("--json").arg("--home").arg(self.home.path()).stdin(std::process::Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"));
        (answer, errors, output.status.code().unwrap())
    }
}

#[tokio::test]
async fn where_all_is_well_every_unit_is_found() {
    let scene = Scene::new().await;
    scene.trade().await;
    let report = scene.audit().await;
    assert!(report.ok, "{:?}", report.findings);
    assert_eq!((report.accounts, report.certificates), (3, 4));
    assert!(report.behind.is_empty() && report.misbehaviour.is_empty());
    let solvency = report.assets[0].solvency;
    assert_eq!((solvency.deposited, solvency.accounts), (units(150), units(146)));
    assert_eq!((solvency.redeemable, solvency.redeemed, solvency.solvent), (units(4), Balance::ZERO, true));
    assert_eq!(report.assets[0].contract_total, units(150));
}

#[tokio::test]
async fn what_one_authority_has_pruned_is_found_at_the_others() {
    let scene = Scene::new().await;
    scene.trade().await;
    scene.committee.authorities[2].play(Role::Pruned(1));
    let report = scene.audit().await;
    assert!(report.ok, "{:?}", report.findings);
    assert!(report.assets[0].authorities.iter().all(|audit| audit.redeemable == units(4)), "{report:?}");
}

#[tokio::test]
async fn what_all_authorities_have_pruned_is_proven_by_their_archives() {
    let scene = Scene::new().await;
    scene.trade().await;
    scene.committee.prune(true);
    scene.committee.authorities[0].play(Role::HidesArchived);
    let report = scene.audit().await;
    assert!(report.ok, "{:?}", report.findings);
    assert_eq!((report.accounts, report.certificates), (3, 4));
    let solvency = report.assets[0].solvency;
    assert_eq!((solvency.accounts, solvency.redeemable, solvency.solvent), (units(146), units(4), true));
    scene.committee.authorities.iter().for_each(|authority| authority.play(Role::FalseArchive));
    let report = scene.audit().await;
    assert!(!report.ok, "without a proof, nobody knows where the units are");
}

#[tokio::test]
async fn a_list_of_another_length_is_named_unless_it_begins_at_a_checkpoint() {
    let scene = Scene::new().await;
    scene.trade().await;
    scene.committee.authorities[2].play(Role::FalseReceipts(9));
    scene.blames(2, &["it reports 9 received payments, and its certificates prove 1"]).await;
    // An authority that takes what it lacks from a checkpoint holds it, and never lists it.
    scene.committee.prune(true);
    let report = scene.audit().await;
    assert!(report.ok, "{:?}", report.findings);
}

#[tokio::test]
async fn an_altered_balance_is_named_with_both_values() {
    let scene = Scene::new().await;
    scene.trade().await;
    scene.committee.authorities[2].play(Role::FalseBalances);
    let account = alice().account().to_string();
    scene.blames(2, &[&account, "reports 51 of", "prove 50", "those reachable from deposits and payments"]).await;
}

#[tokio::test]
async fn units_that_no_deposit_leads_to_are_found() {
    let scene = Scene::new().await;
    scene.trade().await;
    scene.committee.authorities[1].play(Role::FalseTotals);
    scene.blames(1, &["its accounts sum to 153 of", "hold 146"]).await;
}

#[tokio::test]
async fn a_certificate_that_is_hidden_is_named() {
    let scene = Scene::new().await;
    scene.trade().await;
    scene.committee.authorities[0].play(Role::HidesCertificates);
    scene.blames(0, &["it has confirmed a certificate and does not show it: sequence number 1"]).await;
}

#[tokio::test]
async fn a_damaged_disk_is_called_that_and_forgotten_once_it_can_be_read() {
    let scene = Scene::new().await;
    scene.trade().await;
    scene.committee.authorities[0].play(Role::LosesCertificates(usize::MAX));
    let said = "it has confirmed a certificate and can no longer read it (the record cannot be read)";
    scene.blames(0, &[said]).await;
    let report = scene.audit().await;
    assert!(report.findings.iter().all(|finding| !finding.contains("not valid")), "{:?}", report.findings);
    // An account's certificates that could not be read at first are read again.
    scene.committee.authorities[0].play(Role::LosesCertificates(3));
    let report = scene.audit().await;
    assert!(report.ok, "{:?}", report.findings);
}

#[tokio::test]
async fn a_history_that_never_was_ends_where_its_proofs_end() {
    let scene = Scene::new().await;
    scene.trade().await;
    scene.committee.authorities[3].play(Role::FalseHistory);
    let said = "it reports next sequence number 1000000, and certificates prove 2";
    scene.blames(3, &[said, "it shows a certificate that is not valid"]).await;
}

#[tokio::test]
async fn an_authority_that_is_behind_is_not_taken_for_one_that_is_wrong() {
    let scene = Scene::new().await;
    scene.trade().await;
    for (sequence, amount) in [(2, 5), (3, 6)] {
        let order = scene.committee.order(&alice(), &pay(carol().account(), amount), sequence);
        let certificate = scene.committee.committee.certificate(&order);
        [0, 1, 3].iter().for_each(|index: &usize| scene.committee.authorities[*index].confirm(&certificate));
    }
    let report = scene.audit().await;
    assert!(report.ok, "{:?}", report.findings);
    let behind: Vec<_> = report.behind.iter().map(|(name, behind)| (name.to_string(), *behind)).collect();
    assert_eq!(behind, [(scene.name(2), fastpay_wallet::Behind { certificates: 2, accounts: 1 })]);
    // Behind, and wrong as well.
    scene.committee.authorities[2].play(Role::FalseBalances);
    scene.blames(2, &["reports 51 of", "prove 50"]).await;
}

#[tokio::test]
async fn an_authority_that_does_not_answer_is_reported_and_a_quorum_suffices() {
    let scene = Scene::new().await;
    scene.trade().await;
    scene.committee.authorities[1].play(Role::Down);
    let report = scene.audit().await;
    assert!(report.ok, "{:?}", report.findings);
    assert_eq!(report.silent.keys().collect::<Vec<_>>(), [&scene.name(1)]);
    scene.committee.authorities[2].play(Role::Down);
    let error = scene.wallet.audit(Duration::ZERO, &|_| {}).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
}

#[tokio::test]
async fn two_certificates_for_one_number_prove_who_signed_both() {
    let scene = Scene::new().await;
    scene.trade().await;
    let committee = &scene.committee;
    let orders =
        [pay(bob().account(), 5), pay(carol().account(), 6)].map(|intent| committee.order(&alice(), &intent, 2));
    let [first, second] = [(0, [0, 1, 2]), (1, [1, 2, 3])]
        .map(|(order, members): (usize, _)| committee.committee.certificate_by(&orders[order], &members));
    [0, 1, 2].iter().for_each(|index: &usize| committee.authorities[*index].confirm(&first));
    committee.authorities[3].confirm(&second);
    let (report, _, code) = scene.fastpay(&["audit", "--wait", "0"]).await;
    assert_eq!((code, &report["ok"]), (12, &Value::Bool(false)));
    let accused: Vec<_> = report["misbehaviour"].as_array().unwrap().iter().map(|proof| &proof["authority"]).collect();
    assert_eq!(accused, [&scene.name(1), &scene.name(2)]);
    let findings = report["findings"].to_string();
    assert!(findings.contains("two different certificates with sequence number 2"), "{findings}");
    // The proofs stand by themselves: nobody answers any more.
    committee.authorities.iter().for_each(|authority| authority.play(Role::Down));
    for (file, name) in report["proofFiles"].as_array().unwrap().iter().zip([scene.name(1), scene.name(2)]) {
        let file = file.as_str().unwrap();
        let (verified, _, code) = scene.fastpay(&["audit", "--verify-proof", file]).await;
        assert_eq!((code, &verified["proven"], verified["authority"].as_str()), (0, &Value::Bool(true), Some(&*name)));
        // Anybody else cannot be accused with it.
        let accuses_another = std::fs::read_to_string(file).unwrap().replacen(&name, &scene.name(0), 1);
        std::fs::write(scene.home.path().join("slander.json"), accuses_another).unwrap();
        let slander = scene.home.path().join("slander.json").display().to_string();
        let (refused, _, code) = scene.fastpay(&["audit", "--verify-proof", &slander]).await;
        assert_eq!((code, refused["error"]["kind"].as_str()), (12, Some("audit")), "{refused}");
    }
    let (missing, _, code) = scene.fastpay(&["audit", "--verify-proof", "/nowhere.json"]).await;
    assert_eq!((code, missing["error"]["kind"].as_str()), (2, Some("argument")), "{missing}");
}

#[tokio::test]
async fn a_quorum_that_certifies_what_is_not_there_is_found() {
    let scene = Scene::new().await;
    scene.trade().await;
    let order = scene.committee.order(&alice(), &pay(carol().account(), 1_000), 2);
    let certificate = scene.committee.committee.certificate(&order);
    scene.committee.authorities.iter().for_each(|authority| authority.confirm(&certificate));
    let report = scene.audit().await;
    assert!(!report.ok);
    let expected = format!(
        "account {} has sent more of {} than it received: its balance is -950",
        alice().account(),
        Asset::ETHER
    );
    assert_eq!(report.findings, [expected]);
}
