//! A committee is replaced with the operator's commands: proposed, announced, endorsed, installed. Each step can be
//! repeated, also after it was interrupted, and says what is missing.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fastpay_core::{AuthorityKeys, Digest, Epoch, PrimaryAddress};
use fastpay_ethereum::{PrivateKeySigner, SendError};
use fastpay_node::operator::committee::{
    Announce, Ballot, CommitteeError, CouncilReport, Payer, Proposal, State, Tell, Terms, accept, announce, endorse,
    install, propose, read_key, sign, status,
};
use fastpay_program::keystore::PassphraseSource;
use fastpay_testkit::anvil::{GUARDIAN, GUARDIAN_KEY, Rotation};
use serde_json::{Value, json};

use crate::committee::{Scene, signers};
use crate::scene::eventually_async;

const PAGE: &str = include_str!("../../../docs/OPERATIONS.md");
pub const DAY: u64 = 86_400;
pub const SENDER: u32 = 5;
pub const TERMS: Terms =
    Terms { guardian: None, recovery: None, compromised_since: None, checkpoint: Digest::ZERO, days: 1 };

/// The files of one replacement.
pub struct Files {
    pub scene: Scene,
    pub next: PathBuf,
    pub proofs: Vec<PathBuf>,
}

impl Files {
    pub async fn new() -> Self {
        Self::of(Scene::new().await)
    }

    pub fn of(scene: Scene) -> Self {
        let (next, proofs) = (scene.path("next.json"), scene.proofs_of(&scene.next.keys));
        Self { scene, next, proofs }
    }

    pub async fn propose(&self, terms: &Terms) -> Result<(String, Proposal), CommitteeError> {
        propose(&self.scene.config, &self.proofs, terms, &self.next).await
    }

    /// Members of the current committee sign.
    pub async fn signed_by(&self, members: &[usize]) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for member in members {
            let keys = &self.scene.now.keys[*member..=*member];
            let ballot = sign(&self.scene.config, keys, &self.next, &self.proofs).await.unwrap();
            let text = serde_json::to_string(&ballot.vote).unwrap();
            files.push(self.scene.write(&format!("sign-{member}.json"), &text));
        }
        files
    }

    /// A member of the next committee accepts.
    pub async fn accept(&self, member: usize, block: Option<u64>) -> Result<Ballot, CommitteeError> {
        let keys = &self.scene.next.keys[member..=member];
        accept(&self.scene.config, keys, &self.next, &self.proofs, block).await
    }

    /// Members of the next committee accept.
    pub async fn accepted_by(&self, members: &[usize], block: Option<u64>) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for member in members {
            let ballot = self.accept(*member, block).await.unwrap();
            let text = serde_json::to_string(&ballot.vote).unwrap();
            files.push(self.scene.write(&format!("accept-{member}.json"), &text));
        }
        files
    }

    pub fn announcing<'a>(&'a self, votes: &'a [PathBuf]) -> Announce<'a> {
        Announce { announcement: &self.next, proofs: &self.proofs, votes, is_recovery: false }
    }

    pub async fn announce(&self, votes: &[PathBuf]) -> Result<Proposal, CommitteeError> {
        announce(&self.scene.config, self.payer(SENDER), &self.announcing(votes), &mut |_| ()).await
    }

    pub async fn endorse(&self, key: u32) -> Result<Proposal, CommitteeError> {
        let id = self.status(&[]).await.announcements[0].id;
        self.endorse_as(key, Some(id), &mut |_| ()).await
    }

    pub async fn endorse_as(&self, key: u32, id: Option<Digest>, told: Tell<'_>) -> Result<Proposal, CommitteeError> {
        endorse(&self.scene.config, self.payer(key), (&self.next, id), told).await
    }

    pub async fn install(&self, votes: &[PathBuf]) -> Result<Proposal, CommitteeError> {
        install(&self.scene.config, self.payer(SENDER), (&self.next, votes), &mut |_| ()).await
    }

    pub async fn status(&self, votes: &[PathBuf]) -> CouncilReport {
        status(&self.scene.config, Some(&self.next), votes).await.unwrap()
    }

    /// One of the chain's rich keys pays.
    pub fn payer(&self, key: u32) -> Payer {
        Payer { key: self.scene.anvil.rich_key(key), max_fee_cap_gwei: 300 }
    }

    /// How many transactions a key has sent.
    pub async fn sent(&self, key: u32) -> u64 {
        let address = self.scene.anvil.rich_key(key).address();
        let count: Value = self.scene.anvil.request("eth_getTransactionCount", json!([address, "latest"])).await;
        u64::from_str_radix(&count.as_str().unwrap()[2..], 16).unwrap()
    }

    pub fn transaction(&self) -> PathBuf {
        self.scene.path("next.json.transaction")
    }

    /// The announcement is on the contract, and its delay has passed.
    pub async fn announced(&self) -> Digest {
        let id = self.propose(&TERMS).await.unwrap().1.id;
        self.announce(&self.signed_by(&[0, 1, 2]).await).await.unwrap();
        self.endorse(GUARDIAN_KEY).await.unwrap();
        self.scene.anvil.pass(DAY).await;
        id
    }
}

pub fn names(keys: &[AuthorityKeys], members: &[usize]) -> Vec<fastpay_core::AuthorityName> {
    let mut names: Vec<_> = members.iter().map(|member| keys[*member].public().name).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_committee_is_replaced_step_by_step_and_each_step_is_done_once() {
    let mut files = Files::new().await;
    files.scene.config.endpoints = Some(files.scene.path("endpoints.json"));
    let (text, proposed) = files.propose(&TERMS).await.unwrap();
    assert!(text.contains("epoch 1 with 4 authorities, quorum 3") && text.contains("(as now)"), "{text}");
    assert_eq!((proposed.state, proposed.guardian, proposed.epoch), (State::Proposed, GUARDIAN, Epoch(1)));
    let written = std::fs::read(&files.next).unwrap();
    let fields: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!((&fields["chainId"], &fields["compromisedSince"]), (&json!(31_337), &json!(1)), "{fields}");
    files.scene.anvil.pass(3).await;
    assert_eq!(files.propose(&TERMS).await.unwrap().1.id, proposed.id);
    assert_eq!(std::fs::read(&files.next).unwrap(), written);

    // Two signatures, one of them twice, and one by a member of the next committee are too few.
    let signed = files.signed_by(&[0, 1, 2]).await;
    let mut stranger: Value = serde_json::from_slice(&std::fs::read(&signed[0]).unwrap()).unwrap();
    stranger["authority"] = json!(files.scene.next.keys[0].public().name);
    let stranger = files.scene.write("stranger.json", &stranger.to_string());
    let few = [&signed[..2], &signed[..1], &[stranger]].concat();
    let error = files.announce(&few).await.unwrap_err();
    let missing = names(&files.scene.now.keys, &[2, 3]);
    let is_few =
        matches!(&error, CommitteeError::TooFewVotes { found: 2, needed: 3, missing: of, .. } if *of == missing);
    assert!(is_few, "{error}");
    let report = files.status(&few).await;
    let [there] = &report.announcements[..] else { panic!("{report:?}") };
    assert_eq!((there.state, &there.signed_by), (State::Proposed, &names(&files.scene.now.keys, &[0, 1])));
    assert_eq!(there.ignored, names(&files.scene.next.keys, &[0]));
    assert!(there.next.contains("1 more members of the current committee sign it"), "{}", there.next);
    // A file that does not count is named, although another one of that member does.
    let mut stale: Value = serde_json::from_slice(&std::fs::read(&signed[0]).unwrap()).unwrap();
    let other: Value = serde_json::from_slice(&std::fs::read(&signed[1]).unwrap()).unwrap();
    stale["signature"] = other["signature"].clone();
    let stale = files.scene.write("stale.json", &stale.to_string());
    let report = files.status(&[signed[0].clone(), stale]).await;
    assert_eq!(report.announcements[0].ignored, names(&files.scene.now.keys, &[0]));
    assert_eq!(files.sent(SENDER).await, 0);

    let there = files.announce(&signed).await.unwrap();
    assert_eq!((there.state, there.announced_at.is_some()), (State::Announced, true));
    assert!(!files.transaction().exists());
    assert_eq!(files.announce(&[]).await.unwrap().state, State::Announced, "it needs nothing more");
    assert_eq!(files.sent(SENDER).await, 1);
    // The chain alone shows it, and who signed it.
    let report = status(&files.scene.config, None, &[]).await.unwrap();
    let [there] = &report.announcements[..] else { panic!("{report:?}") };
    assert_eq!((there.id, &there.signed_by), (proposed.id, &names(&files.scene.now.keys, &[0, 1, 2])));
    assert!(there.next.contains("endorses it") && report.to_string().contains("not endorsed"), "{report}");

    let error = files.install(&[]).await.unwrap_err();
    assert!(matches!(error, CommitteeError::TooEarly { is_endorsed: false, .. }), "{error}");
    let error = files.endorse(SENDER).await.unwrap_err();
    let is_other = matches!(error, CommitteeError::WrongSender { expected: GUARDIAN, .. });
    assert!(is_other, "{error}");
    let before = files.sent(GUARDIAN_KEY).await;
    for _ in 0..2 {
        assert!(files.endorse(GUARDIAN_KEY).await.unwrap().endorsed_at.is_some());
    }
    assert_eq!(files.sent(GUARDIAN_KEY).await, before + 1);
    let error = files.install(&[]).await.unwrap_err();
    assert!(matches!(error, CommitteeError::TooEarly { is_endorsed: true, .. }), "{error}");

    files.scene.anvil.pass(DAY).await;
    assert_eq!(files.status(&[]).await.announcements[0].state, State::Installable);
    let there = files.install(&[]).await.unwrap();
    let block = there.matured_block.unwrap();
    assert_eq!(files.install(&[]).await.unwrap().matured_block, Some(block));
    assert_eq!(files.sent(SENDER).await, 2);
    files.scene.follow_to(block).await;
    let accepted = files.accepted_by(&[0, 1, 3], None).await;
    // A call knows the hashes of the blocks before the newest one.
    files.scene.anvil.mine(1).await;
    let there = files.install(&[&accepted[..2], &signed].concat()).await.unwrap();
    assert_eq!((there.state, there.accepted_block), (State::Matured, Some(block)));
    assert_eq!(there.accepted_by, names(&files.scene.next.keys, &[0, 1]));
    assert!(there.next.contains("1 more of its members accept it"), "{}", there.next);
    let document = serde_json::to_value(&there).unwrap();
    let needed = (&document["signaturesNeeded"], &document["acceptancesNeeded"]);
    assert_eq!((needed, &document["acceptedBlock"]), ((&json!(3), &json!(3)), &json!(block)), "{document}");
    assert_eq!(document["acceptedBy"].as_array().unwrap().len(), 2, "{document}");
    let (_, page) = PAGE.split_once("`committee propose`, `announce`, `endorse`, `install` |").unwrap();
    let row = page.lines().next().unwrap();
    for field in document.as_object().unwrap().keys() {
        assert!(row.contains(&format!("`{field}`")), "docs/OPERATIONS.md does not list {field}");
    }
    assert_eq!(files.install(&accepted).await.unwrap().state, State::Installed);
    assert_eq!(files.install(&[]).await.unwrap().state, State::Installed);
    assert_eq!(files.announce(&[]).await.unwrap().state, State::Installed);
    assert_eq!(files.sent(SENDER).await, 3);
    let report = status(&files.scene.config, None, &[]).await.unwrap();
    assert_eq!((report.epoch, report.announcements.len()), (Epoch(1), 0));
    let said = files.status(&signed).await.to_string();
    assert!(said.contains("of epoch 1: installed") && said.contains("signed by 3 of 3 needed"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_was_interrupted_follows_the_transaction_that_it_has_sent() {
    let files = Files::new().await;
    files.propose(&TERMS).await.unwrap();
    let signed = files.signed_by(&[0, 1, 2]).await;
    let (anvil, path) = (&files.scene.anvil, files.transaction());
    let _: Value = anvil.request("evm_setAutomine", json!([false])).await;
    // What the node gets is on disk.
    let (seen, mut stored) = tokio::sync::mpsc::unbounded_channel();
    let look = path.clone();
    files.scene.node.lie(move |method, _, _| {
        if method == "eth_sendRawTransaction" {
            seen.send(look.exists()).unwrap();
        }
    });
    for _ in 0..2 {
        tokio::select! {
            outcome = files.announce(&signed) => panic!("{outcome:?}"),
            was_stored = stored.recv() => assert_eq!(was_stored, Some(true)),
        }
        assert!(path.exists());
    }
    let pool: Value = anvil.request("txpool_status", json!([])).await;
    assert_eq!(pool["pending"], "0x1", "{pool}");
    files.scene.node.repent();
    // Others cannot go on with it.
    let other = announce(&files.scene.config, files.payer(6), &files.announcing(&signed), &mut |_| ()).await;
    let error = other.unwrap_err();
    assert!(matches!(&error, CommitteeError::Send(error) if matches!(**error, SendError::OtherKey { .. })), "{error}");
    let told = std::sync::Mutex::new(Vec::new());
    let mut tell = |line: String| told.lock().unwrap().push(line);
    let what = files.announcing(&signed);
    let key = files.payer(SENDER);
    let (there, _) = tokio::join!(announce(&files.scene.config, key, &what, &mut tell), async {
        for _ in 0..20 {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            anvil.mine(1).await;
        }
    });
    assert_eq!(there.unwrap().state, State::Announced);
    assert!(told.lock().unwrap()[0].contains("an earlier command"), "{told:?}");
    assert_eq!((files.sent(SENDER).await, path.exists()), (1, false));
}

/// A file of a transaction that cannot be read stops the command: nobody knows what was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_commands_do_not_use_one_announcement_at_a_time_and_a_damaged_file_stops_them() {
    let files = Files::new().await;
    files.propose(&TERMS).await.unwrap();
    let signed = files.signed_by(&[0, 1, 2]).await;
    let lock = std::fs::File::open(&files.next).unwrap();
    lock.lock().unwrap();
    let error = files.announce(&signed).await.unwrap_err();
    assert!(matches!(&error, CommitteeError::Busy(path) if *path == files.next), "{error}");
    drop(lock);
    let miser = Payer { max_fee_cap_gwei: 0, ..files.payer(SENDER) };
    let error = announce(&files.scene.config, miser, &files.announcing(&signed), &mut |_| ()).await.unwrap_err();
    let is_dear = matches!(&error, CommitteeError::Send(error) if matches!(**error, SendError::FeesTooHigh { .. }));
    assert!(is_dear, "{error}");
    std::fs::write(files.transaction(), "{").unwrap();
    let error = files.announce(&signed).await.unwrap_err();
    assert!(matches!(&error, CommitteeError::Stored { path, .. } if *path == files.transaction()), "{error}");
    assert_eq!(files.sent(SENDER).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_overtaken_by_another_sender_has_nothing_left_to_do() {
    let files = Files::new().await;
    files.propose(&TERMS).await.unwrap();
    let signed = files.signed_by(&[0, 1, 2]).await;
    let anvil = &files.scene.anvil;
    // Another operator's command, with another folder, has sent the same before: its transaction comes first.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("next.json");
    std::fs::copy(&files.next, &copy).unwrap();
    let _: Value = anvil.request("evm_setAutomine", json!([false])).await;
    let theirs = Announce { announcement: &copy, ..files.announcing(&signed) };
    let pool = async |count: &str| anvil.request::<Value>("txpool_status", json!([])).await["pending"] == count;
    let mine = async {
        eventually_async("one is sent", async || pool("0x1").await).await;
        let both = async {
            eventually_async("both are sent", async || pool("0x2").await).await;
            for _ in 0..20 {
                anvil.mine(1).await;
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
        };
        tokio::join!(files.announce(&signed), both).0
    };
    let mut ignored = |_| ();
    let (first, second) = tokio::join!(announce(&files.scene.config, files.payer(6), &theirs, &mut ignored), mine);
    assert_eq!((first.unwrap().state, second.unwrap().state), (State::Announced, State::Announced));
    assert_eq!((files.sent(SENDER).await, files.sent(6).await), (1, 1));
    assert!(!files.transaction().exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proposal_follows_from_the_proofs_and_the_contract_and_never_replaces_another() {
    let files = Files::new().await;
    let error = files.propose(&Terms { guardian: Some(PrimaryAddress::ZERO), ..TERMS }).await.unwrap_err();
    assert!(matches!(error, CommitteeError::NoGuardian { outflow_delay_s: 259_200 }), "{error}");
    let member = files.scene.next.keys[2].public().redemption_key;
    let error = files.propose(&Terms { guardian: Some(member), ..TERMS }).await.unwrap_err();
    assert!(matches!(error, CommitteeError::GuardianIsMember(of) if of == member), "{error}");
    let error = files.propose(&Terms { compromised_since: Some(Epoch(2)), ..TERMS }).await.unwrap_err();
    assert!(matches!(error, CommitteeError::CompromisedSince(Epoch(2))), "{error}");
    let error = files.propose(&Terms { days: 31, ..TERMS }).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Deadline(_)), "{error}");
    let few = propose(&files.scene.config, &files.proofs[..3], &TERMS, &files.next).await.unwrap_err();
    assert!(matches!(few, CommitteeError::NotACommittee(_)), "{few}");
    let mut proof: Value = serde_json::from_slice(&std::fs::read(&files.proofs[3]).unwrap()).unwrap();
    proof["redemptionKey"] = json!(PrimaryAddress::repeat_byte(0x44));
    let false_proof = files.scene.write("false.json", &proof.to_string());
    let proofs = [&files.proofs[..3], &[false_proof]].concat();
    let error = propose(&files.scene.config, &proofs, &TERMS, &files.next).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Proof(_)), "{error}");
    assert!(!files.next.exists());

    let named = Terms {
        guardian: Some(PrimaryAddress::repeat_byte(0x71)),
        recovery: Some(PrimaryAddress::repeat_byte(0x72)),
        compromised_since: Some(Epoch(0)),
        checkpoint: Digest::repeat_byte(0x73),
        days: 2,
    };
    let (text, there) = files.propose(&named).await.unwrap();
    let found = (Some(there.guardian), Some(there.recovery), Some(there.compromised_since), there.checkpoint);
    assert_eq!(found, (named.guardian, named.recovery, named.compromised_since, named.checkpoint));
    assert!(text.contains("keys are compromised since epoch 0"), "{text}");
    let written = std::fs::read(&files.next).unwrap();
    for other in [TERMS, Terms { checkpoint: Digest::ZERO, ..named.clone() }] {
        let error = files.propose(&other).await.unwrap_err();
        assert!(matches!(&error, CommitteeError::OtherProposal(path) if *path == files.next), "{error}");
    }
    files.scene.anvil.pass(3 * DAY).await;
    let error = files.propose(&named).await.unwrap_err();
    assert!(matches!(error, CommitteeError::OtherProposal(_)), "{error}");
    assert_eq!(std::fs::read(&files.next).unwrap(), written);
    assert_eq!(files.status(&[]).await.announcements[0].state, State::Lapsed);
    let error = files.announce(&[]).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Deadline(_)), "{error}");
    let error = files.install(&[]).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Deadline(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announcement_that_lapsed_or_was_overtaken_is_said_to_be_over() {
    let files = Files::new().await;
    files.announced().await;
    // Another committee is installed in the same epoch.
    let rotation = Rotation::new(
        files.scene.now.domain.contract(),
        signers(&files.scene.now),
        signers(&files.scene.now.rotated_to(5)),
        files.scene.anvil.time_s().await + DAY,
    );
    files.scene.anvil.install(&rotation).await;
    for error in [files.install(&[]).await.unwrap_err(), files.announce(&[]).await.unwrap_err()] {
        assert!(matches!(error, CommitteeError::Ended(_)), "{error}");
    }
    assert_eq!(files.status(&[]).await.announcements[0].state, State::Ended);

    let files = Files::new().await;
    files.announced().await;
    files.scene.anvil.pass(28 * DAY).await;
    let errors = [
        files.install(&[]).await.unwrap_err(),
        files.announce(&[]).await.unwrap_err(),
        files.endorse(GUARDIAN_KEY).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, CommitteeError::Lapsed(_)), "{error}");
    }
    let report = files.status(&[]).await;
    assert_eq!((report.announcements[0].state, files.sent(SENDER).await), (State::Lapsed, 1));
    assert!(report.announcements[0].next.contains("propose anew"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acceptances_of_a_block_that_the_contract_forgot_are_made_anew_with_a_newer_one() {
    let mut files = Files::new().await;
    files.scene.config.endpoints = Some(files.scene.path("endpoints.json"));
    files.announced().await;
    let block = files.install(&[]).await.unwrap().matured_block.unwrap();
    files.scene.follow_to(block).await;
    let old = files.accepted_by(&[0, 1, 2], None).await;
    // On a chain that keeps no history of hashes (EIP-2935), that is after 256 blocks.
    let history = "0x0000F90827F1C53a10cb7A02335B175320002935";
    let _: Value = files.scene.anvil.request("anvil_setCode", json!([history, "0x"])).await;
    files.scene.anvil.mine(258).await;
    let error = files.install(&old).await.unwrap_err();
    assert!(matches!(error, CommitteeError::BlockForgotten(of) if of == block), "{error}");
    let newer = files.scene.anvil.block_number().await;
    files.scene.follow_to(newer).await;
    // Acceptances of two blocks are not added up.
    let mixed = files.accepted_by(&[0, 1], Some(newer)).await;
    let there = files.install(&[&mixed[..], &old[2..]].concat()).await.unwrap();
    assert_eq!((there.state, there.accepted_block), (State::Matured, Some(newer)));
    assert_eq!(there.ignored, names(&files.scene.next.keys, &[2]));
    let all = files.accepted_by(&[0, 1, 2], Some(newer)).await;
    files.scene.anvil.mine(1).await;
    assert_eq!(files.install(&all).await.unwrap().state, State::Installed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovery_is_announced_by_its_address_after_the_silence_and_is_not_endorsed() {
    let scene = Scene::deployed(4, async |anvil, committee| anvil.deploy_recoverable(committee).await).await;
    let files = Files::of(scene);
    let (anvil, config) = (&files.scene.anvil, &files.scene.config);
    let recover = async |key: u32| {
        let what = Announce { is_recovery: true, ..files.announcing(&[]) };
        let mut told = Vec::new();
        let outcome = announce(config, files.payer(key), &what, &mut |line| told.push(line)).await;
        outcome.map_err(|error| (error, told.concat()))
    };
    files.propose(&TERMS).await.unwrap();
    let (error, _) = recover(GUARDIAN_KEY).await.unwrap_err();
    assert!(matches!(error, CommitteeError::RecoverySince(Epoch(1))), "{error}");
    std::fs::remove_file(&files.next).unwrap();
    let terms = Terms { compromised_since: Some(Epoch(0)), ..TERMS };
    files.propose(&terms).await.unwrap();
    assert!(files.status(&[]).await.announcements[0].next.contains("or the recovery address announces it"));
    let (error, _) = recover(GUARDIAN_KEY).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Alive(_)), "{error}");
    anvil.pass(Rotation::RECOVERY_SILENCE_S).await;
    std::fs::remove_file(&files.next).unwrap();
    files.propose(&terms).await.unwrap();
    let (error, told) = recover(SENDER).await.unwrap_err();
    assert!(matches!(error, CommitteeError::WrongSender { expected: GUARDIAN, .. }), "{error}");
    assert!(told.contains("to send it from") && told.contains("data 0x"), "{told}");
    let there = recover(GUARDIAN_KEY).await.unwrap();
    assert!(there.is_recovery && there.state == State::Announced && !there.next.contains("endorse"), "{there}");
    let error = files.endorse(GUARDIAN_KEY).await.unwrap_err();
    assert!(matches!(error, CommitteeError::RecoveryNotEndorsable(_)), "{error}");
    let error = files.install(&[]).await.unwrap_err();
    assert!(matches!(error, CommitteeError::TooEarly { is_endorsed: true, .. }), "{error}");
    anvil.pass(Rotation::RECOVERY_NOTICE_S).await;
    files.install(&[]).await.unwrap();
    // A new operator has no node yet.
    let accepted = files.accepted_by(&[0, 1, 2], None).await;
    anvil.mine(1).await;
    let there = files.install(&accepted).await.unwrap();
    assert!(there.state == State::Installed && there.next.contains("rebuild and adopt a checkpoint"), "{there}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guardian_sees_what_it_endorses_and_names_it() {
    let files = Files::new().await;
    let (heir, checkpoint) = (PrimaryAddress::repeat_byte(0x72), Digest::repeat_byte(0x73));
    files.propose(&Terms { recovery: Some(heir), checkpoint, ..TERMS }).await.unwrap();
    let there = files.announce(&files.signed_by(&[0, 1, 2]).await).await.unwrap();
    let before = files.sent(GUARDIAN_KEY).await;
    for asked in [None, Some(checkpoint)] {
        let mut said = String::new();
        let error = files.endorse_as(GUARDIAN_KEY, asked, &mut |line| said += &line).await.unwrap_err();
        assert!(
            matches!(error, CommitteeError::NotAsked { id, asked: of } if (id, of) == (there.id, asked)),
            "{error}"
        );
        assert!(error.to_string().contains(&format!("--id {}", there.id)), "{error}");
        assert!(said.contains(&format!("recovery: {heir} (now nobody)")) && said.contains("without votes"), "{said}");
    }
    assert_eq!(files.sent(GUARDIAN_KEY).await, before);
    let shown = files.endorse(GUARDIAN_KEY).await.unwrap().to_string();
    for words in [
        &format!("guardian: {GUARDIAN} (as now)"),
        &format!("recovery: {heir} (now nobody)"),
        &format!("checkpoint: {checkpoint}. "),
        "to be announced by ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proposal_without_a_guardian_passes_no_command() {
    let files = Files::new().await;
    files.propose(&TERMS).await.unwrap();
    // Whoever sends the file round has left the guardian out, and a quorum has signed that with another tool.
    let mut file: Value = serde_json::from_slice(&std::fs::read(&files.next).unwrap()).unwrap();
    file["guardian"] = json!(PrimaryAddress::ZERO);
    files.scene.write("next.json", &file.to_string());
    let refused = |outcome: CommitteeError| assert!(matches!(outcome, CommitteeError::NoGuardian { .. }), "{outcome}");
    let (config, keys) = (&files.scene.config, &files.scene.now.keys);
    refused(sign(config, &keys[..1], &files.next, &files.proofs).await.unwrap_err());
    refused(files.announce(&[]).await.unwrap_err());
    refused(files.endorse(GUARDIAN_KEY).await.unwrap_err());
    assert_eq!(files.sent(SENDER).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_announcement_of_the_same_members_is_not_taken_for_this_one() {
    let files = Files::new().await;
    files.propose(&Terms { checkpoint: Digest::repeat_byte(0x73), ..TERMS }).await.unwrap();
    files.announce(&files.signed_by(&[0, 1, 2]).await).await.unwrap();
    files.endorse(GUARDIAN_KEY).await.unwrap();
    files.scene.anvil.pass(DAY).await;
    assert_eq!(files.install(&[]).await.unwrap().state, State::Matured);
    // Another one with the same members, guardian and recovery address names no checkpoint.
    let (anvil, now, next) = (&files.scene.anvil, signers(&files.scene.now), signers(&files.scene.next));
    let contract = files.scene.now.domain.contract();
    anvil.install(&Rotation::new(contract, now, next, anvil.time_s().await + DAY)).await;
    let error = files.install(&[]).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Ended(_)), "{error}");
    assert_eq!(files.status(&[]).await.announcements[0].state, State::Ended);
    // No node has the event: nobody knows.
    files.scene.node.lie_about_logs(Vec::clear);
    let error = files.install(&[]).await.unwrap_err();
    assert!(matches!(error, CommitteeError::NoInstallation(Epoch(1))), "{error}");
}

#[test]
fn the_key_that_pays_is_read_from_a_file_that_only_its_owner_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gas.key");
    let key = PrivateKeySigner::random();
    let source = PassphraseSource { file: None, variable: "FASTPAY_PASSPHRASE" };
    let write = |text: &str, mode: u32| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    write(&hex::encode(key.to_bytes()), 0o600);
    assert_eq!(read_key(&path, &source).unwrap().address(), key.address());
    for (text, mode) in [(hex::encode(key.to_bytes()), 0o644), ("0".repeat(64), 0o600)] {
        write(&text, mode);
        assert!(read_key(&path, &source).is_err(), "{text}");
    }
    assert!(read_key(Path::new("/nowhere"), &source).is_err());
}
