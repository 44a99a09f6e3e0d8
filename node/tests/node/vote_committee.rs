//! An operator's vote for the next committee: what is signed, and each reason for which nothing is.

use std::path::PathBuf;

use fastpay_core::{Authority, AuthorityKeys, CommitteeError, Domain, Epoch, PrimaryAddress};
use fastpay_ethereum::testing::{Anvil, CHAIN_ID, GUARDIAN, LyingNode, Mining};
use fastpay_ethereum::{PrimaryConfig, PrimaryError};
use fastpay_node::config::Config;
use fastpay_node::vote_committee::{Ballot, VoteCommitteeError, vote};
use fastpay_testkit::TestCommittee;
use serde_json::{Value, json};

use crate::authority;

const OTHER: PrimaryAddress = PrimaryAddress::repeat_byte(0x77);

/// A contract, an Ethereum node in front of it that may lie, and an operator of the committee's first member.
struct Scene {
    authority: authority::Scene,
    anvil: Anvil,
    node: LyingNode,
    config: Config,
    now: TestCommittee,
    next: TestCommittee,
}

impl Scene {
    async fn new() -> Self {
        let authority = authority::Scene::new();
        authority.init(1).unwrap();
        let anvil = Anvil::start(Mining::Each);
        let contract = anvil.deploy(&TestCommittee::new(4).committee).await;
        let node = LyingNode::start(&anvil.url());
        let now = TestCommittee::with(4, Domain::new(CHAIN_ID, contract), Epoch(0));
        let primary = PrimaryConfig::new(vec![node.url()], CHAIN_ID, contract);
        let config = Config { genesis: None, primary: Some(primary), ..authority.config() };
        let next = now.rotated();
        Self { authority, anvil, node, config, now, next }
    }

    /// The file of the next committee, with these fields besides.
    fn file(&self, more: Value) -> PathBuf {
        let mut file = json!({ "authorities": list(self.next.committee.members()) });
        file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.write(&file.to_string())
    }

    fn write(&self, text: &str) -> PathBuf {
        let path = self.authority.folder.path().join("next.json");
        std::fs::write(&path, text).unwrap();
        path
    }

    async fn vote(&self, file: PathBuf, flag: Option<PrimaryAddress>) -> Result<Ballot, VoteCommitteeError> {
        vote(&self.config, &self.now.keys[..1], &file, flag).await
    }

    async fn refusal(&self, file: PathBuf) -> VoteCommitteeError {
        self.vote(file, None).await.unwrap_err()
    }
}

fn list(members: &[Authority]) -> Value {
    members.iter().map(|member| json!({ "votingKey": member.name, "redemptionKey": member.redemption_key })).collect()
}

/// The vote is the first member's signature for this guardian.
fn assert_votes_for(scene: &Scene, ballot: &Ballot, guardian: PrimaryAddress) {
    let (now, next) = (&scene.now, &scene.next.committee);
    let made = fastpay_core::sign_committee_vote(&now.keys[0], &now.domain, next, guardian);
    made.clone().verify(&now.committee, now.domain.committee_vote_digest(next, guardian)).unwrap();
    assert_eq!(ballot.vote.epoch, Epoch(1));
    assert_eq!(ballot.vote.authority, now.keys[0].public().name);
    assert_eq!(ballot.vote.signature, format!("0x{}", hex::encode(made.signature.0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vote_is_for_the_guardian_that_the_file_or_the_flag_names_or_for_the_present_one() {
    let scene = Scene::new().await;
    let complete = json!({ "epoch": 1, "chainId": CHAIN_ID, "guardian": OTHER, "brakes": {} });
    for (more, flag, guardian) in [
        (json!({}), None, GUARDIAN),
        (json!({}), Some(OTHER), OTHER),
        (complete.clone(), None, OTHER),
        (complete, Some(OTHER), OTHER),
        (json!({ "guardian": PrimaryAddress::ZERO }), None, PrimaryAddress::ZERO),
    ] {
        let ballot = scene.vote(scene.file(more), flag).await.unwrap();
        assert_votes_for(&scene, &ballot, guardian);
        let said = if guardian.is_zero() { "nobody can pause".to_owned() } else { guardian.to_string() };
        assert!(ballot.to_string().contains(&said), "{ballot}");
    }
    // The key that is a member is found among others.
    let keys = [scene.next.keys[0].clone(), scene.now.keys[0].clone()];
    let ballot = vote(&scene.config, &keys, &scene.file(json!({})), None).await.unwrap();
    assert_votes_for(&scene, &ballot, GUARDIAN);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_is_told_what_changes() {
    let mut scene = Scene::new().await;
    scene.next = scene.now.rotated_to(5);
    let kept = scene.now.keys[1].public();
    let members = [scene.next.committee.members(), &[kept]].concat();
    let ballot = scene.vote(scene.write(&json!({ "authorities": list(&members) }).to_string()), None).await.unwrap();
    let said = ballot.to_string();
    assert!(said.contains("epoch 1 with 6 authorities, quorum 4"), "{said}");
    assert!(said.contains("warning: 4 authorities now, 6 then"), "{said}");
    let marked = |mark: &str| said.lines().filter(|line| line.ends_with(mark)).count();
    assert_eq!((marked("(as now)"), marked("(new keys)"), marked("(no longer)")), (1, 5, 3), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_no_committee_is_not_voted_for() {
    let scene = Scene::new().await;
    let missing = scene.authority.folder.path().join("absent.json");
    let error = scene.refusal(missing.clone()).await;
    assert!(matches!(&error, VoteCommitteeError::File { path, .. } if *path == missing), "{error}");
    for text in
        ["", "{", "[]", r#"{"authorities": 4}"#, r#"{"authorities": [], "epoch": -1}"#, r#"{"guardian": "0x12"}"#]
    {
        let error = scene.refusal(scene.write(text)).await;
        assert!(matches!(error, VoteCommitteeError::File { .. }), "{text}: {error}");
    }

    let members = scene.next.committee.members();
    let mut repeated = members.to_vec();
    repeated[3].redemption_key = repeated[0].redemption_key;
    let mut zero = members.to_vec();
    zero[2].redemption_key = PrimaryAddress::ZERO;
    for (members, expected) in [
        (members[..3].to_vec(), CommitteeError::Size(3)),
        ([members, &members[..1]].concat(), CommitteeError::RepeatedName(members[0].name)),
        (repeated, CommitteeError::RepeatedRedemptionKey(members[0].redemption_key)),
        (zero, CommitteeError::ZeroKey(members[2].name)),
    ] {
        let error = scene.refusal(scene.write(&json!({ "authorities": list(&members) }).to_string())).await;
        assert!(matches!(&error, VoteCommitteeError::Committee(found) if *found == expected), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_for_another_epoch_chain_or_guardian_is_not_voted_for() {
    let scene = Scene::new().await;
    for epoch in [0, 2, u64::MAX] {
        let error = scene.refusal(scene.file(json!({ "epoch": epoch }))).await;
        let expected = |error: &VoteCommitteeError| matches!(error, VoteCommitteeError::Epoch { current: Epoch(0), found } if found.0 == epoch);
        assert!(expected(&error) && error.to_string().contains("only 1 can be voted for"), "{error}");
    }
    let error = scene.refusal(scene.file(json!({ "chainId": 1 }))).await;
    assert!(matches!(error, VoteCommitteeError::Chain { expected: CHAIN_ID, found: 1 }), "{error}");
    let error = scene.vote(scene.file(json!({ "guardian": OTHER })), Some(GUARDIAN)).await.unwrap_err();
    assert!(matches!(error, VoteCommitteeError::Guardian { file: OTHER, flag: GUARDIAN }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_member_of_the_committee_that_decides_votes() {
    let scene = Scene::new().await;
    // A stranger; a member of the next committee; a member's voting key beside another redemption key; nobody.
    let stranger = AuthorityKeys::from_secrets([0x51; 32], [0x52; 32]).unwrap();
    let mixed = AuthorityKeys::from_secrets(fastpay_testkit::secret(3, 1), [0x52; 32]).unwrap();
    assert!(scene.now.committee.member(&mixed.public().name).is_some(), "the test's own keys have changed");
    for keys in [vec![stranger], vec![scene.next.keys[0].clone()], vec![mixed], vec![]] {
        let error = vote(&scene.config, &keys, &scene.file(json!({})), None).await.unwrap_err();
        assert!(matches!(error, VoteCommitteeError::NotAMember(Epoch(0))), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_contract_that_would_check_the_same_nothing_is_signed() {
    let scene = Scene::new().await;
    let file = scene.file(json!({}));
    let alone = Config { primary: None, ..scene.config.clone() };
    let error = vote(&alone, &scene.now.keys, &file, None).await.unwrap_err();
    assert!(matches!(error, VoteCommitteeError::NoPrimary), "{error}");

    // The contract's digest is another one: its code, or the node, is not what it is taken for.
    let digest = scene.now.domain.committee_vote_digest(&scene.next.committee, GUARDIAN).to_string();
    scene.node.lie(move |_, _, answer| {
        if answer["result"] == json!(digest) {
            answer["result"] = json!(format!("0x{}", "07".repeat(32)));
        }
    });
    let error = scene.refusal(file.clone()).await;
    assert!(matches!(error, VoteCommitteeError::OtherDigest), "{error}");
    scene.node.repent();
    scene.vote(file.clone(), None).await.unwrap();

    scene.node.go_away(true);
    let error = scene.refusal(file.clone()).await;
    assert!(matches!(error, VoteCommitteeError::Primary(PrimaryError::Unreachable { .. })), "{error}");
    scene.node.go_away(false);
    let mut elsewhere = scene.config.clone();
    elsewhere.primary.as_mut().unwrap().contract = OTHER;
    let error = vote(&elsewhere, &scene.now.keys, &file, None).await.unwrap_err();
    assert!(matches!(error, VoteCommitteeError::Primary(PrimaryError::NoContract { .. })), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vote_rests_on_the_word_of_all_ethereum_nodes_and_not_of_one() {
    let scene = Scene::new().await;
    let liar = LyingNode::start(&scene.anvil.url());
    let mut both = scene.config.clone();
    both.primary.as_mut().unwrap().rpc_urls = vec![scene.node.url(), liar.url()];
    let mut first = both.clone();
    first.primary.as_mut().unwrap().rpc_urls.reverse();
    let file = scene.file(json!({}));
    let ballot = vote(&both, &scene.now.keys[..1], &file, None).await.unwrap();
    assert_votes_for(&scene, &ballot, GUARDIAN);

    // It would have the voters install a guardian of its own.
    let guardian = word(GUARDIAN);
    liar.lie(move |_, _, answer| {
        if answer["result"] == json!(guardian) {
            answer["result"] = json!(word(OTHER));
        }
    });
    for config in [&both, &first] {
        let error = vote(config, &scene.now.keys[..1], &file, None).await.unwrap_err();
        assert!(matches!(error, VoteCommitteeError::Disagreement { .. }), "{error}");
    }
    liar.repent();
    liar.go_away(true);
    let error = vote(&both, &scene.now.keys[..1], &file, None).await.unwrap_err();
    assert!(matches!(error, VoteCommitteeError::Primary(PrimaryError::Unreachable { .. })), "{error}");
}

/// An address as a view returns it.
fn word(address: PrimaryAddress) -> String {
    format!("0x{}{}", "00".repeat(12), hex::encode(address))
}
