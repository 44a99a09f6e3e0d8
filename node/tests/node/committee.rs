//! The operator's signatures for the council: the checks of each command, and each reason to refuse.

use std::num::NonZeroU32;
use std::path::PathBuf;

use fastpay_core::checkpoint::Checkpoint;
use fastpay_core::{
    Amount, Announcement, Asset, Authority, AuthorityKeys, AuthorityName, Committee, CommitteeError as NotACommittee,
    ContractVote, CouncilStatement, Digest, Domain, EcdsaSignature, Epoch, PossessionError, PrimaryAddress,
    TransactionIndex,
};
use fastpay_ethereum::{Call, Cursor, Finality, PrimaryConfig, PrimaryError, certified_redemption};
use fastpay_node::authority::certification::Archive;
use fastpay_node::authority::config::{ArchiveSettings, Config};
use fastpay_node::authority::deployment::folder_identity;
use fastpay_node::authority::follower;
use fastpay_node::authority::rollback::{HighWaterMark, default_high_water_mark, mark_stale};
use fastpay_node::authority::storage::{DataFolder, Fullness};
use fastpay_node::operator::committee::{
    Ballot, CommitteeError, Terms, accept, heartbeat, propose, prove, raise_cap, release, sign,
};
use fastpay_testkit::anvil::{Anvil, CHAIN_ID, GUARDIAN, LyingNode, Mining, Rotation, Signers};
use fastpay_testkit::{TestAccount, TestCommittee, redemption, secret};
use serde_json::{Value, json};

use crate::authority::{self, Running};
use crate::scene::eventually_async;

const OTHER: PrimaryAddress = PrimaryAddress::repeat_byte(0x77);
const DAY: u64 = 86_400;

/// A contract, an Ethereum node in front of it that may lie, and an operator of the committee's first member.
pub struct Scene {
    pub authority: authority::Scene,
    pub anvil: Anvil,
    pub node: LyingNode,
    pub config: Config,
    pub now: TestCommittee,
    pub next: TestCommittee,
    pub deadline: u64,
}

impl Scene {
    pub async fn new() -> Self {
        Self::of(4).await
    }

    /// With this number of members.
    pub async fn of(size: usize) -> Self {
        Self::deployed(size, async |anvil, committee| anvil.deploy(committee).await).await
    }

    /// With a contract that `deploy` makes.
    pub async fn deployed(size: usize, deploy: impl AsyncFnOnce(&Anvil, &Committee) -> PrimaryAddress) -> Self {
        let authority = authority::Scene::new();
        authority.init(1).unwrap();
        let anvil = Anvil::start(Mining::Each);
        let contract = deploy(&anvil, &TestCommittee::new(size).committee).await;
        anvil.mine(2).await;
        let node = LyingNode::start(&anvil.url());
        let now = TestCommittee::with(size, Domain::new(CHAIN_ID, contract), Epoch(0));
        let mut primary = PrimaryConfig::new(vec![node.url()], CHAIN_ID, contract);
        primary.finality = Finality::Confirmations(0);
        let config = Config { genesis: None, primary: Some(primary.into()), ..authority.config() };
        let (next, deadline) = (now.rotated(), anvil.time_s().await + DAY);
        Self { authority, anvil, node, config, now, next, deadline }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.authority.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// The file of the next committee, with these fields in place of its own.
    pub fn file(&self, changes: Value) -> PathBuf {
        let mut file = json!({
            "chainId": CHAIN_ID, "authorities": list(self.next.committee.members()), "guardian": GUARDIAN,
            "recovery": OTHER, "epoch": 1, "compromisedSince": 1, "checkpoint": Digest::ZERO, "deadline": self.deadline,
            "safetyParameters": {},
        });
        file.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        self.write("next.json", &file.to_string())
    }

    /// A proof of each of these pairs.
    pub fn proofs_of(&self, keys: &[AuthorityKeys]) -> Vec<PathBuf> {
        let proof = |(number, keys): (usize, &AuthorityKeys)| {
            let proof = serde_json::to_string(&prove(&self.config, keys).unwrap()).unwrap();
            self.write(&format!("proof-{number}.json"), &proof)
        };
        keys.iter().enumerate().map(proof).collect()
    }

    pub fn announcement(&self) -> Announcement {
        Announcement {
            committee: self.next.committee.clone(),
            guardian: GUARDIAN,
            recovery: OTHER,
            compromised_since: Epoch(1),
            checkpoint: Digest::ZERO,
            deadline: self.deadline,
        }
    }

    async fn sign(&self, file: PathBuf) -> Result<Ballot, CommitteeError> {
        sign(&self.config, &self.now.keys[..1], &file, &self.proofs_of(&self.next.keys)).await
    }

    /// This authority's data folder says since when it is full.
    fn is_full_since(&self, epoch: u64) {
        let folder = DataFolder::hold(&self.config.data).unwrap();
        folder.note_fullness(Fullness { since: Some(Epoch(epoch)), stale_up_to: None }).unwrap();
    }

    async fn refusal(&self, changes: Value) -> CommitteeError {
        self.sign(self.file(changes)).await.unwrap_err()
    }

    /// The same announcement as that of [`Anvil::rotate`], on the contract and mature in the newest block.
    async fn matured(&mut self) -> (PathBuf, Vec<PathBuf>, u64) {
        let (now, next) = (signers(&self.now), signers(&self.next));
        let contract = self.now.domain.contract();
        let rotation = Rotation::new(contract, now, next, self.deadline);
        self.anvil.call_as_guardian(rotation.announce()).await;
        self.anvil.call_as_guardian(rotation.endorse()).await;
        self.anvil.pass(rotation.delay_s()).await;
        let receipt = self.anvil.call_as_guardian(rotation.mature()).await;
        let block = u64::from_str_radix(&receipt["blockNumber"].as_str().unwrap()[2..], 16).unwrap();
        (self.file(json!({ "recovery": PrimaryAddress::ZERO })), self.proofs_of(&self.next.keys), block)
    }

    /// This authority's follower has come to this block.
    pub async fn follow_to(&self, number: u64) {
        let primary = self.anvil.primary(self.now.domain.contract(), Finality::Confirmations(0)).await;
        let block_hash = primary.block_hash(number).await.unwrap();
        let cursor = Cursor { block_number: number, block_hash, last_index: Default::default() };
        std::fs::write(follower::cursor_file(&self.config.data), serde_json::to_vec(&cursor).unwrap()).unwrap();
    }
}

pub fn signers(of: &TestCommittee) -> Signers<'_> {
    Signers { committee: &of.committee, keys: &of.keys }
}

fn list(members: &[Authority]) -> Value {
    members.iter().map(|member| json!({ "votingKey": member.name, "redemptionKey": member.redemption_key })).collect()
}

/// The vote is the first member's for this statement.
fn assert_votes_for(of: &TestCommittee, ballot: &Ballot, epoch: u64, statement: &CouncilStatement<'_>) {
    assert_eq!((ballot.vote.epoch, ballot.vote.authority), (Epoch(epoch), of.keys[0].public().name));
    let vote = ContractVote { authority: ballot.vote.authority, signature: EcdsaSignature(ballot.vote.signature.0) };
    vote.verify(&of.committee, of.domain.council_digest(statement)).unwrap();
    let file: Value = serde_json::to_value(&ballot.vote).unwrap();
    assert!(file["epoch"].is_u64() && file["signature"].as_str().unwrap().len() == 132, "{file}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announcement_is_signed_when_every_member_has_proven_both_keys() {
    let scene = Scene::new().await;
    let ballot = scene.sign(scene.file(json!({}))).await.unwrap();
    assert_votes_for(&scene.now, &ballot, 1, &CouncilStatement::Announcement(&scene.announcement()));
    let said = ballot.text;
    for words in ["epoch 1 with 4 authorities, quorum 3", "guardian: 0x", "(as now)", "recovery: 0x77", "(now nobody)"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    let marked = |mark: &str| said.lines().filter(|line| line.ends_with(mark)).count();
    assert_eq!((marked("(new keys)"), marked("(no longer)")), (4, 4), "{said}");
    // The pair that votes now is found among others; one whose halves are of two pairs is none.
    let keys = [scene.next.keys[0].clone(), scene.now.keys[0].clone()];
    let proofs = scene.proofs_of(&scene.next.keys);
    let file = scene.file(json!({ "compromisedSince": 0, "checkpoint": Digest::repeat_byte(9) }));
    let ballot = sign(&scene.config, &keys, &file, &proofs).await.unwrap();
    assert!(ballot.text.contains("keys are compromised since epoch 0") && ballot.text.contains("checkpoint: 0x09"));
    let mixed = AuthorityKeys::from_secrets(secret(3, 1), [0x52; 32]).unwrap();
    for keys in [vec![scene.next.keys[0].clone()], vec![mixed], vec![]] {
        let error = sign(&scene.config, &keys, &file, &proofs).await.unwrap_err();
        assert!(matches!(error, CommitteeError::NotAMember(Epoch(0))), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_is_named_only_if_the_own_archive_has_it_with_the_votes_of_a_quorum() {
    let mut scene = Scene::new().await;
    let folder = scene.path("archive");
    std::fs::create_dir(&folder).unwrap();
    let checkpoint = Checkpoint {
        epoch: Epoch(0),
        number: 1,
        previous: Digest::repeat_byte(1),
        up_to: TransactionIndex(0),
        cut: Digest::repeat_byte(2),
        state: Digest::repeat_byte(3),
        segment: Digest::repeat_byte(4),
    };
    let named = scene.now.domain.checkpoint_digest(&checkpoint);
    let said = scene.sign(scene.file(json!({ "checkpoint": named }))).await.unwrap().text;
    assert!(said.contains(&format!("checkpoint: {named}. ")) && said.contains("counts without votes"), "{said}");
    assert!(scene.sign(scene.file(json!({}))).await.unwrap().text.contains("checkpoint: none"));
    let archive: ArchiveSettings = serde_json::from_value(json!({ "folder": folder })).unwrap();
    scene.config.archive = Some(archive);
    let certify = |members: usize| {
        let keys = &scene.now.keys[..members];
        let votes: Vec<_> = keys.iter().map(|keys| checkpoint.sign(keys, &scene.now.domain)).collect();
        let votes: Vec<_> =
            votes.iter().map(|vote| json!({ "authority": vote.authority, "signature": format!("0x{}", hex::encode(vote.signature.0)) })).collect();
        let fields = json!({
            "epoch": 0, "number": 1, "previous": checkpoint.previous, "upTo": 0, "cut": checkpoint.cut,
            "state": checkpoint.state, "segment": checkpoint.segment,
        });
        let file = json!({ "checkpoint": fields, "votes": votes });
        std::fs::write(Archive::new(&folder).certificate_path(1), file.to_string()).unwrap();
    };
    let refused = |error: CommitteeError, number: u64| {
        let is_that = matches!(&error, CommitteeError::NotCertified { newest, .. } if *newest == number);
        assert!(is_that, "{error}");
    };
    refused(scene.refusal(json!({ "checkpoint": named })).await, 0);
    certify(2);
    refused(scene.refusal(json!({ "checkpoint": named })).await, 1);
    certify(3);
    scene.sign(scene.file(json!({ "checkpoint": named }))).await.unwrap();
    refused(scene.refusal(json!({ "checkpoint": Digest::repeat_byte(9) })).await, 1);
    let terms =
        Terms { guardian: None, recovery: None, compromised_since: None, checkpoint: Digest::repeat_byte(9), days: 1 };
    let (proofs, out) = (scene.proofs_of(&scene.next.keys), scene.path("proposed.json"));
    refused(propose(&scene.config, &proofs, &terms, &out).await.unwrap_err(), 1);
    assert!(!out.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_good_proofs_nothing_is_signed() {
    let scene = Scene::new().await;
    let file = scene.file(json!({}));
    let proofs = scene.proofs_of(&scene.next.keys);
    let vote = async |proofs: &[PathBuf]| sign(&scene.config, &scene.now.keys, &file, proofs).await.unwrap_err();
    let last = scene.next.keys[3].public().name;
    assert!(matches!(vote(&proofs[..3]).await, CommitteeError::MissingProof(name) if name == last));
    // One for another contract, and one of another pair.
    let mut elsewhere = scene.config.clone();
    elsewhere.ethereum_mut().unwrap().contract = OTHER;
    let proof = serde_json::to_value(prove(&elsewhere, &scene.next.keys[3]).unwrap()).unwrap();
    let foreign = scene.write("foreign.json", &proof.to_string());
    let error = vote(&[&proofs[..3], &[foreign]].concat()).await;
    assert!(matches!(error, CommitteeError::Proof(PossessionError::Voting(name)) if name == last), "{error}");
    let mixed = AuthorityKeys::from_secrets([0x61; 32], secret(4, 1_003)).unwrap();
    let mixed = scene.write("mixed.json", &serde_json::to_string(&prove(&scene.config, &mixed).unwrap()).unwrap());
    let error = vote(&[&proofs[..3], &[mixed]].concat()).await;
    assert!(matches!(error, CommitteeError::MissingProof(name) if name == last), "{error}");
    for text in ["", "{}", "[]"] {
        let error = vote(&[scene.write("bad.json", text)]).await;
        assert!(matches!(error, CommitteeError::File { .. }), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voting_key_of_small_order_is_not_announced() {
    let scene = Scene::new().await;
    // The neutral element: R = 0 and s = 0 verify for every message.
    let mut name = [0; 32];
    name[0] = 1;
    let (mut members, mut voting_signature) = (scene.next.committee.members().to_vec(), [0; 64]);
    voting_signature[0] = 1;
    let good = serde_json::to_value(prove(&scene.config, &scene.next.keys[0]).unwrap()).unwrap();
    members[0].name = AuthorityName(name);
    let mut proof = good.clone();
    proof["votingKey"] = json!(AuthorityName(name));
    proof["votingSignature"] = json!(format!("0x{}", hex::encode(voting_signature)));
    let proofs = [&scene.proofs_of(&scene.next.keys)[1..], &[scene.write("small.json", &proof.to_string())]].concat();
    let file = scene.file(json!({ "authorities": list(&members) }));
    let error = sign(&scene.config, &scene.now.keys, &file, &proofs).await.unwrap_err();
    let unsafe_key = PossessionError::UnsafeVotingKey(AuthorityName(name));
    assert!(matches!(error, CommitteeError::Proof(found) if found == unsafe_key), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_stood_in_another_pair_is_not_announced() {
    let mut scene = Scene::new().await;
    // Epoch 1 is installed, so that epoch 0 lies back.
    scene.anvil.rotate(scene.now.domain.contract(), signers(&scene.now), signers(&scene.next)).await;
    let first = std::mem::replace(&mut scene.now, scene.next.clone());
    scene.next = scene.now.rotated();
    scene.deadline = scene.anvil.time_s().await + DAY;
    let config = scene.config.clone();
    // A member's keys by their numbers (`TestCommittee`): 1 to 4 in epoch 0, 1000 to 1003 in epoch 1.
    for (voting, redeeming, epoch) in
        [(1, 5_000, 0), (5_000, 1, 0), (1_000, 5_000, 1), (5_000, 1_000, 1), (1, 1_000, 0)]
    {
        let mixed = AuthorityKeys::from_secrets(secret(3, voting), secret(4, redeeming)).unwrap();
        let keys = [&scene.next.keys[1..], &[mixed]].concat();
        let members: Vec<_> = keys.iter().map(AuthorityKeys::public).collect();
        let file = scene.file(json!({ "epoch": 2, "compromisedSince": 2, "authorities": list(&members) }));
        let error = sign(&config, &scene.now.keys, &file, &scene.proofs_of(&keys)).await.unwrap_err();
        assert!(matches!(error, CommitteeError::OtherPair { epoch: of, .. } if of == Epoch(epoch)), "{error}");
    }
    // A whole pair that comes back, or stays, is none of that.
    let keys = [&scene.next.keys[2..], &first.keys[..1], &scene.now.keys[..1]].concat();
    let members: Vec<_> = keys.iter().map(AuthorityKeys::public).collect();
    let file = scene.file(json!({ "epoch": 2, "compromisedSince": 2, "authorities": list(&members) }));
    let own = [&first.keys[..1], &scene.now.keys].concat();
    scene.is_full_since(1);
    sign(&config, &own, &file, &scene.proofs_of(&keys)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_much_smaller_committee_all_join_and_after_keys_were_out_all_begin_anew() {
    let scene = Scene::of(7).await;
    let [four, five] = [4, 5].map(|size| list(&scene.next.committee.members()[..size]));
    let text = async |changes| scene.sign(scene.file(changes)).await.unwrap().text;
    let said = text(json!({ "authorities": &four })).await;
    let all = "4 of 4 authorities join before they vote, and payments wait until a quorum votes";
    assert!(said.contains("7 authorities now, 4 then") && said.contains(all), "{said}");
    for (members, change) in [(four, "7 authorities now, 4 then"), (five, "7 authorities now, 5 then")] {
        let said = text(json!({ "authorities": members, "compromisedSince": 0 })).await;
        assert!(said.contains(change) && said.contains("payments wait until the new committee has rebuilt"), "{said}");
        assert!(!said.contains("join before they vote"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_committee_that_shrinks_step_by_step_is_compared_with_each_before() {
    let mut scene = Scene::of(7).await;
    let five = scene.now.rotated_to(5);
    scene.anvil.rotate(scene.now.domain.contract(), signers(&scene.now), signers(&five)).await;
    let first = std::mem::replace(&mut scene.now, five);
    scene.next = scene.now.rotated_to(4);
    scene.deadline = scene.anvil.time_s().await + DAY;
    let (keys, proofs) = ([&first.keys[..1], &scene.now.keys[..1]].concat(), scene.proofs_of(&scene.next.keys));
    scene.is_full_since(1);
    let vote = async |compromised_since: u64| {
        let file = scene.file(json!({ "epoch": 2, "compromisedSince": compromised_since }));
        sign(&scene.config, &keys, &file, &proofs).await
    };
    let said = vote(1).await.unwrap().text;
    assert!(!said.contains("join before they vote"), "{said}");
    let said = vote(2).await.unwrap().text;
    assert!(said.contains("5 authorities now, 4 then") && said.contains("4 of 4 authorities join"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_had_to_join_asks_its_node_before_it_signs_the_next_committee() {
    let mut scene = Scene::new().await;
    scene.anvil.rotate(scene.now.domain.contract(), signers(&scene.now), signers(&scene.next)).await;
    let first = std::mem::replace(&mut scene.now, scene.next.clone());
    scene.next = scene.now.rotated();
    scene.deadline = scene.anvil.time_s().await + DAY;
    let (file, proofs) = (scene.file(json!({ "epoch": 2, "compromisedSince": 2 })), scene.proofs_of(&scene.next.keys));
    // By its keys it is new in epoch 1, and no node runs.
    let error = sign(&scene.config, &scene.now.keys[..1], &file, &proofs).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Node { .. }), "{error}");
    // It has the keys of both, and these changed.
    let both = [&first.keys[..1], &scene.now.keys[..1]].concat();
    let error = sign(&scene.config, &both, &file, &proofs).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Node { .. }), "{error}");
    scene.is_full_since(1);
    sign(&scene.config, &both, &file, &proofs).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_lacks_votes_signs_only_a_committee_that_nobody_joins() {
    let scene = Scene::new().await;
    let stay = json!({ "authorities": list(scene.now.committee.members()) });
    let (new, out) = (json!({}), json!({ "compromisedSince": 0 }));
    let said = scene.sign(scene.file(new.clone())).await.unwrap().text;
    assert!(said.contains("4 of 4 authorities join before they vote, and payments wait"), "{said}");
    mark_stale(&scene.config.data).unwrap();
    let error = scene.refusal(new).await;
    assert!(matches!(&error, CommitteeError::Stale(why) if why.contains("operator")), "{error}");
    scene.sign(scene.file(out)).await.unwrap();
    let proofs = scene.proofs_of(&scene.now.keys);
    sign(&scene.config, &scene.now.keys[..1], &scene.file(stay), &proofs).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_the_contract_would_not_take_is_not_signed() {
    let scene = Scene::new().await;
    let missing = scene.path("absent.json");
    let error = scene.sign(missing.clone()).await.unwrap_err();
    assert!(matches!(&error, CommitteeError::File { path, .. } if *path == missing), "{error}");
    let parsed: Value = serde_json::from_slice(&std::fs::read(scene.file(json!({}))).unwrap()).unwrap();
    for field in
        ["chainId", "authorities", "guardian", "recovery", "epoch", "compromisedSince", "checkpoint", "deadline"]
    {
        let mut file = parsed.clone();
        file.as_object_mut().unwrap().remove(field);
        let error = scene.sign(scene.write("next.json", &file.to_string())).await.unwrap_err();
        assert!(matches!(error, CommitteeError::File { .. }), "{field}: {error}");
    }
    let members = scene.next.committee.members();
    for (members, expected) in [
        (members[..3].to_vec(), NotACommittee::Size(3)),
        ([members, &members[..1]].concat(), NotACommittee::RepeatedName(members[0].name)),
    ] {
        let error = scene.refusal(json!({ "authorities": list(&members) })).await;
        assert!(matches!(&error, CommitteeError::NotACommittee(found) if *found == expected), "{error}");
    }
    for epoch in [0, 2] {
        let error = scene.refusal(json!({ "epoch": epoch, "compromisedSince": 0 })).await;
        assert!(matches!(error, CommitteeError::Epoch { current: Epoch(0), .. }), "{error}");
    }
    let error = scene.refusal(json!({ "chainId": 1 })).await;
    assert!(matches!(error, CommitteeError::Chain { expected: CHAIN_ID, found: 1 }), "{error}");
    let error = scene.refusal(json!({ "compromisedSince": 2 })).await;
    assert!(matches!(error, CommitteeError::CompromisedSince(Epoch(2))), "{error}");
    let guardian = members[2].redemption_key;
    let error = scene.refusal(json!({ "guardian": guardian })).await;
    assert!(matches!(error, CommitteeError::GuardianIsMember(found) if found == guardian), "{error}");
    for deadline in [scene.deadline - 2 * DAY, scene.deadline + 40 * DAY] {
        let error = scene.refusal(json!({ "deadline": deadline })).await;
        assert!(matches!(error, CommitteeError::Deadline(found) if found == deadline), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_needs_all_ethereum_nodes_to_agree_and_the_contracts_own_digest() {
    let scene = Scene::new().await;
    let file = scene.file(json!({}));
    let proofs = scene.proofs_of(&scene.next.keys);
    let vote = async |config: &Config| sign(config, &scene.now.keys[..1], &file, &proofs).await;
    let alone = Config { primary: None, ..scene.config.clone() };
    assert!(matches!(vote(&alone).await, Err(CommitteeError::NoPrimary)));

    let digest = scene.now.domain.council_digest(&CouncilStatement::Announcement(&scene.announcement())).to_string();
    scene.node.lie(move |_, _, answer| {
        if answer["result"] == json!(digest) {
            answer["result"] = json!(format!("0x{}", "07".repeat(32)));
        }
    });
    assert!(matches!(vote(&scene.config).await, Err(CommitteeError::OtherDigest)));
    scene.node.repent();
    vote(&scene.config).await.unwrap();

    let liar = LyingNode::start(&scene.anvil.url());
    let mut both = scene.config.clone();
    both.ethereum_mut().unwrap().rpc_urls = vec![scene.node.url(), liar.url()];
    vote(&both).await.unwrap();
    let guardian = word(GUARDIAN);
    liar.lie(move |_, _, answer| {
        if answer["result"] == json!(guardian) {
            answer["result"] = json!(word(OTHER));
        }
    });
    assert!(matches!(vote(&both).await, Err(CommitteeError::Disagreement { .. })));
    liar.repent();
    liar.go_away(true);
    let error = vote(&both).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Primary(PrimaryError::Unreachable { .. })), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acceptance_names_a_block_that_the_contract_and_this_authoritys_node_know() {
    let mut scene = Scene::new().await;
    let (file, proofs) = (scene.file(json!({ "recovery": PrimaryAddress::ZERO })), scene.proofs_of(&scene.next.keys));
    let error = accept(&scene.config, &scene.next.keys, &file, &proofs, None).await.unwrap_err();
    assert!(matches!(error, CommitteeError::NotAnnounced(_)), "{error}");
    let (file, proofs, block) = scene.matured().await;
    let keys = scene.next.keys[..1].to_vec();
    let lonely = Config { endpoints: None, ..scene.config.clone() };
    let error = accept(&lonely, &keys, &file, &proofs, None).await.unwrap_err();
    assert!(matches!(error, CommitteeError::NoEndpoints), "{error}");
    scene.config.endpoints = Some(scene.path("endpoints.json"));
    let vote = async |block| accept(&scene.config, &keys, &file, &proofs, block).await;
    let error = vote(None).await.unwrap_err();
    assert!(matches!(error, CommitteeError::NotSynchronized { at: None, .. }), "{error}");
    scene.follow_to(block - 1).await;
    let error = vote(None).await.unwrap_err();
    assert!(matches!(error, CommitteeError::NotSynchronized { at: Some(_), .. }), "{error}");
    scene.follow_to(block).await;
    let early = vote(Some(block - 1)).await.unwrap_err();
    assert!(matches!(early, CommitteeError::BlockTooEarly { .. }), "{early}");
    let late = vote(Some(scene.anvil.block_number().await + 1)).await.unwrap_err();
    assert!(matches!(late, CommitteeError::NotFinal { .. }), "{late}");
    let stranger = accept(&scene.config, &scene.now.keys, &file, &proofs, None).await.unwrap_err();
    assert!(matches!(stranger, CommitteeError::NotAMember(Epoch(1))), "{stranger}");
    let unproven = accept(&scene.config, &keys, &file, &proofs[1..], None).await.unwrap_err();
    assert!(matches!(unproven, CommitteeError::MissingProof(_)), "{unproven}");

    let ballot = vote(None).await.unwrap();
    let primary = scene.anvil.primary(scene.now.domain.contract(), Finality::Confirmations(0)).await;
    let announced = Announcement { recovery: PrimaryAddress::ZERO, ..scene.announcement() };
    let announcement = scene.now.domain.council_digest(&CouncilStatement::Announcement(&announced));
    let block_hash = primary.block_hash(block).await.unwrap();
    let statement = CouncilStatement::Acceptance { epoch: Epoch(1), announcement, block_hash };
    assert_votes_for(&scene.next, &ballot, 1, &statement);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_is_signed_over_a_final_block() {
    let scene = Scene::new().await;
    let newest = scene.anvil.block_number().await;
    let ballot = heartbeat(&scene.config, &scene.now.keys[..1], newest).await.unwrap();
    let primary = scene.anvil.primary(scene.now.domain.contract(), Finality::Confirmations(0)).await;
    let block_hash = primary.block_hash(newest).await.unwrap();
    assert_votes_for(&scene.now, &ballot, 0, &CouncilStatement::Heartbeat { epoch: Epoch(0), block_hash });
    let error = heartbeat(&scene.config, &scene.now.keys, newest + 1).await.unwrap_err();
    assert!(matches!(error, CommitteeError::NotFinal { .. }), "{error}");
    let error = heartbeat(&scene.config, &scene.next.keys, newest).await.unwrap_err();
    assert!(matches!(error, CommitteeError::NotAMember(Epoch(0))), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_higher_deposit_cap_is_signed_and_what_the_contract_would_not_take_is_not() {
    let scene = Scene::new().await;
    let contract = scene.now.domain.contract();
    let token = PrimaryAddress::repeat_byte(0x55);
    let parsed = json!({ "epoch": 0, "asset": token, "cap": "0", "deadline": scene.deadline });
    let file = |changes: Value| {
        let mut file = parsed.clone();
        file.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        scene.write("raise.json", &file.to_string())
    };
    let vote = async |changes: Value| raise_cap(&scene.config, &scene.now.keys[..1], &file(changes)).await;
    // An asset without a cap has the largest that there is.
    let primary = scene.anvil.primary(contract, Finality::Confirmations(0)).await;
    let most = primary.deposit_cap(Asset(token)).await.unwrap();
    assert_eq!(most, Amount(u128::MAX >> 1));
    for cap in [0, 1_000, most.0] {
        let error = vote(json!({ "cap": cap.to_string() })).await.unwrap_err();
        let is_none =
            matches!(&error, CommitteeError::CapNotRaised { now, found, .. } if (**now, found.0) == (most, cap));
        assert!(is_none, "{error}");
    }
    // As a contract with a cap of 4,992 says it.
    let (of_most, of_cap) = (format!("0x{:064x}", most.0), format!("0x{:064x}", 4_992));
    scene.node.lie(move |_, _, answer| {
        if answer["result"] == json!(of_most) {
            answer["result"] = json!(of_cap);
        }
    });
    // It keeps nine bits: of what is below 5,008 not more than it has.
    let error = vote(json!({ "cap": 5_007 })).await.unwrap_err();
    assert!(matches!(&error, CommitteeError::CapNotRaised { kept, .. } if kept.0 == 4_992), "{error}");
    let ballot = vote(json!({ "cap": 5_009 })).await.unwrap();
    let (epoch, asset, cap, deadline) = (Epoch(0), Asset(token), Amount(5_009), scene.deadline);
    assert_votes_for(&scene.now, &ballot, 0, &CouncilStatement::CapRaise { epoch, asset, cap, deadline });
    assert!(ballot.text.contains("5008 (now 4992)"), "{}", ballot.text);
    for epoch in [1, 7] {
        let error = vote(json!({ "cap": 5_009, "epoch": epoch })).await.unwrap_err();
        assert!(matches!(error, CommitteeError::RaiseEpoch { current: Epoch(0), .. }), "{error}");
    }
    for deadline in [scene.deadline - 2 * DAY, scene.deadline + 40 * DAY] {
        let error = vote(json!({ "cap": 5_009, "deadline": deadline })).await.unwrap_err();
        assert!(matches!(error, CommitteeError::Deadline(found) if found == deadline), "{error}");
    }
    let stranger = raise_cap(&scene.config, &scene.next.keys, &file(json!({ "cap": 5_009 }))).await.unwrap_err();
    assert!(matches!(stranger, CommitteeError::NotAMember(Epoch(0))), "{stranger}");
    for text in ["", "{}", "[]"] {
        let error = raise_cap(&scene.config, &scene.now.keys, &scene.write("bad.json", text)).await.unwrap_err();
        assert!(matches!(error, CommitteeError::File { .. }), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_wait_in_the_queue_is_not_released() {
    let scene = Scene::new().await;
    let order = redemption(fastpay_core::AccountId([7; 32]), OTHER, 9, 0);
    assert_eq!((order.asset, order.amount), (Asset::ETHER, Amount(9)));
    let file = json!({
        "sender": format!("0x{}", hex::encode(order.sender.0)), "recipient": order.recipient, "asset": order.asset.0,
        "amount": "9", "fee": 0, "sequence": 0, "memo": order.memo,
    });
    let file = scene.write("order.json", &file.to_string());
    let error = release(&scene.config, &scene.now.keys, &file).await.unwrap_err();
    assert!(matches!(error, CommitteeError::NotQueued), "{error}");
    let bad = scene.write("order.json", "{}");
    let error = release(&scene.config, &scene.now.keys, &bad).await.unwrap_err();
    assert!(matches!(error, CommitteeError::File { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queued_redemption_is_released_only_of_a_compromised_epoch_and_only_if_the_node_has_not_confirmed_it() {
    let mut scene = Scene::new().await;
    let (contract, domain) = (scene.now.domain.contract(), scene.now.domain);
    let data = scene.path("data-of-contract");
    let identity = folder_identity(&[scene.authority.keys().public().name], NonZeroU32::MIN, &domain);
    drop(DataFolder::create(&data, &identity).unwrap());
    HighWaterMark::create(&data, default_high_water_mark(&data)).unwrap();
    scene.config.data = data;
    let running = Running::ready(scene.config.clone(), scene.authority.keys()).await;

    // The second redemption is more than the outflow limit lets go after the first.
    let (owner, key) = (TestAccount::numbered(0), scene.anvil.rich_key(1));
    let sender = scene.anvil.sender(contract, key, Finality::Confirmations(0)).await;
    let deposit = |amount| Call::deposit_ether(contract, owner.id(), Amount(amount));
    sender.send_and_wait(deposit(1_000), &mut |_| ()).await.unwrap();
    let amounts = [(600, 0), (300, 1), (399, 2), (398, 3)];
    let orders = amounts.map(|(amount, number)| redemption(owner.id(), OTHER, amount, number));
    let certificates = orders.clone().map(|order| scene.now.certificate(&owner.sign(&domain, order)));
    for certificate in &certificates {
        let call = Call::redeem(contract, certified_redemption(certificate, &scene.now.committee).unwrap());
        sender.send_and_wait(call, &mut |_| ()).await.unwrap();
    }
    let file = |number: usize| {
        let (order, (amount, sequence)) = (&orders[number], amounts[number]);
        let fields = json!({
            "sender": format!("0x{}", hex::encode(order.sender.0)), "recipient": order.recipient, "asset": order.asset.0,
            "amount": u64::try_from(amount).unwrap(), "fee": "0", "sequence": sequence, "memo": order.memo,
        });
        scene.write(&format!("order-{number}.json"), &fields.to_string())
    };
    let error = release(&scene.config, &scene.now.keys, &file(1)).await.unwrap_err();
    assert!(matches!(error, CommitteeError::NotCompromised(Epoch(0))), "{error}");

    // The node executes three of them. Stolen keys certified more than the account holds.
    let shard = running.client.shard_of(&owner.id());
    let deposits = async |count| shard.account(owner.id()).await.is_ok_and(|account| account.deposits == count);
    eventually_async("the deposit is credited", || deposits(1)).await;
    for certificate in &certificates[..3] {
        shard.confirm(certificate).await.unwrap();
    }
    let rotation = Rotation::since(Epoch(0), contract, signers(&scene.now), signers(&scene.next), scene.deadline);
    scene.anvil.install(&rotation).await;
    let follows = async || shard.status().await.is_ok_and(|status| status.epoch == Epoch(1));
    eventually_async("the rotation is followed", follows).await;
    let vote = async |number| release(&scene.config, &scene.next.keys[..1], &file(number)).await;
    // Of an account that owes nobody votes again, nor for what is not confirmed here: it can be released.
    for (number, redemption) in orders.iter().enumerate().skip(1) {
        let statement = CouncilStatement::Release { epoch: Epoch(1), redemption };
        assert_votes_for(&scene.next, &vote(number).await.unwrap(), 1, &statement);
    }
    let error = release(&scene.config, &scene.now.keys, &file(1)).await.unwrap_err();
    assert!(matches!(error, CommitteeError::NotAMember(Epoch(1))), "{error}");
    // The node votes for it where a sound epoch certified it, whatever the account owes.
    // The selector of `compromised(uint64)`.
    scene.node.lie(|_, request, answer| {
        if request.to_string().contains("0xd192450d") {
            answer["result"] = json!(format!("0x{:064x}", 0));
        }
    });
    let error = vote(2).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Confirmed), "{error}");
    scene.node.repent();
    // Once the account is covered, it is an honest one.
    sender.send_and_wait(deposit(299), &mut |_| ()).await.unwrap();
    eventually_async("the second deposit is credited", || deposits(2)).await;
    let error = vote(1).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Confirmed), "{error}");
    running.stop().await.unwrap();
    let error = vote(1).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Node { .. }), "{error}");
}

/// An address as a view returns it.
fn word(address: PrimaryAddress) -> String {
    format!("0x{}{}", "00".repeat(12), hex::encode(address))
}
