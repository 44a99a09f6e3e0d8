//! Checkpoints of the committee, step by step: authorities at work compute, sign and certify the same ones, and each
//! reason for which one is not proposed, signed, certified or verified. `certification.rs` has nodes do it by themselves.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fastpay_core::checkpoint::{
    CheckpointError as NotCertified, CheckpointMismatch, CheckpointState, Segment, SegmentEntry,
};
use fastpay_core::{
    AccountId, Amount, AuthorityKeys, Domain, Epoch, PrimaryAddress, SequenceNumber, ShardId, TransactionIndex,
    UnlockVote, VerifiedContractVote,
};
use fastpay_ethereum::{Call, DepositsError, Finality, PrimaryConfig, Sender, certified_redemption};
use fastpay_ledger_client::scripted::{COMMITTEE, ScriptedLedger};
use fastpay_node::authority::certification::{
    Archive, ArchiveError, Certified, CheckpointError, CheckpointVoteFile, Defect, Inputs, Memory, ORDERS_MAX,
    Proposal, ProposedCut, Report, Signed, certify, propose, sign, verify,
};
use fastpay_node::authority::config::{Config, PrimarySection};
use fastpay_node::authority::deployment::folder_identity;
use fastpay_node::authority::follower;
use fastpay_node::authority::funding::LedgerConfig;
use fastpay_node::authority::rollback::{HighWaterMark, default_high_water_mark};
use fastpay_node::authority::storage::{DataFolder, Journal, JournalOptions, JournalPosition, JournalWrite};
use fastpay_program::Clock;
use fastpay_testkit::anvil::{Anvil, CHAIN_ID, LyingNode, Mining, Rotation, Signers, council_of};
use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption};
use serde_json::{Value, json};

use crate::authority::{self, Running, free_ports};
use crate::scene::{copy_folder, eventually_async};

const SHARDS: [u32; 3] = [1, 2, 3];

/// A member with its own data folder and archive.
pub struct Member {
    pub config: Config,
    pub keys: AuthorityKeys,
    pub archive: PathBuf,
    pub running: Option<Running>,
}

impl Member {
    pub fn archive(&self) -> Archive {
        Archive::new(&self.archive)
    }

    pub fn inputs(&self) -> Inputs<'_> {
        Inputs { config: &self.config, archive: &self.archive, orders_max: ORDERS_MAX, clock: Clock::system() }
    }

    pub async fn propose(&self) -> Result<Proposal, CheckpointError> {
        propose(self.inputs(), &mut Memory::default(), &mut |_| ()).await
    }

    pub async fn sign(&self, cut: &Path) -> Result<Signed, CheckpointError> {
        self.sign_with(self.inputs(), cut).await
    }

    async fn sign_with(&self, inputs: Inputs<'_>, cut: &Path) -> Result<Signed, CheckpointError> {
        let cut = ProposedCut::read(cut)?;
        let signer = (cut.checkpoint.epoch, std::slice::from_ref(&self.keys));
        sign(inputs, signer, &cut, &mut Memory::default(), &mut |_| ()).await
    }

    async fn certify(&self, votes: &[CheckpointVoteFile]) -> Result<Certified, CheckpointError> {
        certify(self.inputs(), votes, &Memory::default(), &mut |_| ()).await
    }

    pub async fn verify(&self) -> Result<Report, CheckpointError> {
        verify(&self.config, &self.archive, &mut |_| ()).await
    }

    pub fn state(&self, number: u64) -> CheckpointState {
        CheckpointState::read(&mut fs::read(self.archive().state_path(number)).unwrap().as_slice()).unwrap()
    }

    pub fn segment(&self, number: u64) -> Segment {
        Segment::read(&mut fs::read(self.archive().segment_path(number)).unwrap().as_slice()).unwrap()
    }
}

/// Members of a committee of four.
pub struct Scene {
    place: authority::Scene,
    pub committee: TestCommittee,
    pub members: Vec<Member>,
}

impl Scene {
    /// Three of four, of the committee with a genesis, or of this contract.
    pub fn new(primary: Option<PrimaryConfig>) -> Self {
        Self::of(primary, &SHARDS)
    }

    /// Members with so many shards.
    pub fn of(primary: Option<PrimaryConfig>, shards: &[u32]) -> Self {
        Self::at(authority::Scene::new(), primary, shards)
    }

    pub fn at(place: authority::Scene, primary: Option<PrimaryConfig>, shards: &[u32]) -> Self {
        place.init(1).unwrap();
        let committee = match &primary {
            None => place.committee.clone(),
            Some(primary) => TestCommittee::with(4, Domain::new(CHAIN_ID, primary.contract), Epoch(0)),
        };
        let base = match primary {
            None => place.config(),
            Some(primary) => Config { genesis: None, primary: Some(primary.into()), ..place.config() },
        };
        Self::with(place, committee, &base, shards)
    }

    /// The same, of the committee on this ledger, whose members have these keys.
    pub fn on_ledger(ledger: &ScriptedLedger, keys: Vec<AuthorityKeys>, shards: &[u32]) -> Self {
        let place = authority::Scene::new();
        place.init(1).unwrap();
        let config = LedgerConfig { file: ledger.write(place.folder.path()), committee: COMMITTEE };
        let committee = TestCommittee::of(keys, ledger.history().domain(), Epoch(0));
        let primary = Some(PrimarySection::Ledger(config));
        let base = Config { genesis: None, primary, ..place.config() };
        Self::with(place, committee, &base, shards)
    }

    fn with(place: authority::Scene, committee: TestCommittee, base: &Config, shards: &[u32]) -> Self {
        let mut scene = Self { place, committee, members: Vec::new() };
        for (index, shards) in shards.iter().copied().enumerate() {
            scene.members.push(scene.member(index, shards, base));
        }
        scene
    }

    /// A member with a new data folder.
    pub fn member(&self, index: usize, shards: u32, base: &Config) -> Member {
        self.operator(index, self.committee.keys[index].clone(), shards, base)
    }

    /// An operator with these keys and a new data folder.
    pub fn operator(&self, index: usize, keys: AuthorityKeys, shards: u32, base: &Config) -> Member {
        let shards = NonZeroU32::new(shards).unwrap();
        let (listen, http) = free_ports(3);
        let (data, domain) = (self.path(&format!("member-{index}")), &self.committee.domain);
        drop(DataFolder::create(&data, &folder_identity(&[keys.public().name], shards, domain)).unwrap());
        HighWaterMark::create(&data, default_high_water_mark(&data)).unwrap();
        let config = Config { data, listen, http, shards, ..base.clone() };
        Member { config, keys, archive: self.path(&format!("archive-{index}")), running: None }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.folder.path().join(name)
    }

    pub async fn start(&mut self) {
        for member in &mut self.members {
            member.running = Some(Running::ready(member.config.clone(), member.keys.clone()).await);
        }
    }

    pub async fn stop(&mut self) {
        for member in &mut self.members {
            if let Some(running) = member.running.take() {
                running.stop().await.unwrap();
            }
        }
    }

    /// Executes an order at some members.
    pub async fn execute(&self, members: &[usize], owner: &TestAccount, transfer: impl Into<fastpay_core::Transfer>) {
        let certificate = self.committee.certificate(&owner.sign(&self.committee.domain, transfer.into()));
        for member in members {
            let client = &self.members[*member].running.as_ref().unwrap().client;
            client.shard_of(&owner.id()).confirm(&certificate).await.unwrap();
        }
    }

    /// A payment of one unit.
    pub async fn pay(&self, members: &[usize], from: u64, to: u64, sequence: u64) {
        let (from, to) = (TestAccount::numbered(from), TestAccount::numbered(to));
        self.execute(members, &from, payment(from.id(), to.id(), 1, sequence)).await;
    }

    /// The votes of these members for a cut.
    pub async fn votes(&self, members: &[usize], cut: &Path) -> Vec<CheckpointVoteFile> {
        let mut votes = Vec::new();
        for member in members {
            votes.push(self.members[*member].sign(cut).await.unwrap().vote);
        }
        votes
    }

    fn write(&self, name: &str, value: &Value) -> PathBuf {
        fs::write(self.path(name), value.to_string()).unwrap();
        self.path(name)
    }

    /// Proposes at the first member, has all three sign, certifies, and hands the certificate to the others.
    pub async fn checkpoint(&self) -> Proposal {
        let proposal = self.members[0].propose().await.unwrap();
        self.complete(&proposal).await;
        proposal
    }

    pub async fn complete(&self, proposal: &Proposal) {
        let votes = self.votes(&[0, 1, 2], &proposal.cut).await;
        let certified = self.members[0].certify(&votes).await.unwrap();
        assert_eq!((certified.number, certified.checkpoint), (proposal.number, proposal.checkpoint));
        for other in &self.members[1..] {
            fs::copy(&certified.certificate, other.archive().certificate_path(proposal.number)).unwrap();
        }
    }

    /// Members 0 to 2 with `count` payments each, and one certified checkpoint.
    pub async fn certified(count: u64) -> Self {
        let mut scene = Self::new(None);
        scene.start().await;
        for sequence in 0..count {
            for owner in 0..3 {
                scene.pay(&[0, 1, 2], owner, owner + 1, sequence).await;
            }
        }
        scene.checkpoint().await;
        scene
    }
}

pub fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A contract, and a sender of transactions to it.
pub struct Chain {
    pub anvil: Anvil,
    sender: Sender,
    pub contract: PrimaryAddress,
}

impl Chain {
    pub async fn new() -> Self {
        let anvil = Anvil::start(Mining::Each);
        let contract = anvil.deploy(&TestCommittee::new(4).committee).await;
        Self::of(anvil, contract).await
    }

    /// A contract whose committee can be recovered.
    pub async fn recoverable() -> Self {
        let anvil = Anvil::start(Mining::Each);
        let contract = anvil.deploy_recoverable(&TestCommittee::new(4).committee).await;
        Self::of(anvil, contract).await
    }

    async fn of(anvil: Anvil, contract: PrimaryAddress) -> Self {
        anvil.mine(2).await;
        let sender = anvil.sender(contract, anvil.rich_key(1), Finality::Confirmations(0)).await;
        Self { anvil, sender, contract }
    }

    pub fn config(&self) -> PrimaryConfig {
        let mut primary = PrimaryConfig::new(vec![self.anvil.url()], CHAIN_ID, self.contract);
        primary.finality = Finality::Confirmations(0);
        primary
    }

    pub async fn send(&self, call: Call) {
        self.sender.send_and_wait(call, &mut |_| ()).await.unwrap();
    }

    pub async fn deposit(&self, to: AccountId, amount: u128) {
        self.send(Call::deposit_ether(self.contract, to, Amount(amount))).await;
    }

    pub async fn request_unlock(&self, domain: &Domain, owner: &TestAccount, sequence: u64) {
        let primary = self.anvil.primary(self.contract, Finality::Confirmations(0)).await;
        let (sequence, bond) = (SequenceNumber(sequence), primary.unlock_bond().await.unwrap());
        let authorization = owner.key.sign_unlock_request(domain, sequence);
        self.send(Call::request_unlock(council_of(self.contract), owner.id(), sequence, authorization, bond)).await;
    }

    /// Brings the votes of all members.
    pub async fn decide(&self, committee: &TestCommittee, owner: &TestAccount, sequence: u64, vote: UnlockVote) {
        let (account, sequence, epoch) = (owner.id(), SequenceNumber(sequence), Epoch(0));
        let digest = vote.digest(&committee.domain, epoch, account, sequence);
        let sign = |keys| vote.sign(keys, &committee.domain, epoch, account, sequence);
        let verified = committee.keys.iter().map(|keys| sign(keys).verify(&committee.committee, digest).unwrap());
        let (needed, verified) = (vote.needed(&committee.committee), verified.collect::<Vec<_>>());
        let votes = VerifiedContractVote::first(needed, &committee.committee, digest, &verified).unwrap();
        self.send(Call::decide_unlock(council_of(self.contract), account, sequence, vote, votes)).await;
    }

    /// See [`followed`].
    pub async fn followed(&self, members: &[Member], index: u64) {
        followed(members, index).await;
    }
}

/// Waits until these members have applied the events up to an index.
pub async fn followed(members: &[Member], index: u64) {
    let is_there =
        |member: &Member| follower::read_cursor(&member.config.data).is_some_and(|cursor| cursor.last_index.0 >= index);
    let all = async || members.iter().all(is_there);
    eventually_async("all members have applied the events", all).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorities_with_different_shards_certify_what_they_executed_and_what_the_contract_said() {
    let chain = Chain::new().await;
    let mut scene = Scene::new(Some(chain.config()));
    scene.start().await;
    let domain = scene.committee.domain;
    let owners: Vec<_> = (0..5).map(TestAccount::numbered).collect();
    for owner in &owners {
        chain.deposit(owner.id(), 1_000).await;
    }
    chain.followed(&scene.members, 5).await;

    // Proposed while payments are made: members get certificates at different times.
    let (stop, sequence) = (AtomicBool::new(false), AtomicU64::new(0));
    let load = async {
        while !stop.load(Ordering::Relaxed) {
            let number = sequence.load(Ordering::Relaxed);
            for owner in 0..5 {
                scene.pay(&[0, 1, 2], owner, (owner + 1 + number % 4) % 5, number).await;
            }
            sequence.store(number + 1, Ordering::Relaxed);
        }
    };
    let proposing = async {
        while sequence.load(Ordering::Relaxed) < 5 {
            tokio::task::yield_now().await;
        }
        let proposal = scene.members[1].propose().await.unwrap();
        stop.store(true, Ordering::Relaxed);
        proposal
    };
    let ((), proposal) = tokio::join!(load, proposing);
    assert!(proposal.number == 1 && proposal.up_to == 5 && proposal.entries >= 30, "{proposal:?}");
    scene.complete_from(1, &proposal).await;
    let next = sequence.into_inner();

    // A redemption is paid, a number is voided, and an executed number is frozen.
    let (redeemer, stuck, frozen) = (&owners[0], &owners[1], &owners[2]);
    let redeemed = redemption(redeemer.id(), PrimaryAddress::repeat_byte(7), 10, next);
    scene.execute(&[0, 1, 2], redeemer, redeemed.clone()).await;
    let unpaid = scene.checkpoint().await;
    assert_eq!(unpaid.number, 2);
    let slot = (redeemer.id(), SequenceNumber(next));
    assert_eq!(scene.members[0].state(2).unpaid()[&slot], redeemed);
    let certificate = scene.committee.certificate(&redeemer.sign(&domain, redeemed));
    chain
        .send(Call::redeem(chain.contract, certified_redemption(&certificate, &scene.committee.committee).unwrap()))
        .await;
    chain.request_unlock(&domain, stuck, next).await;
    chain.decide(&scene.committee, stuck, next, UnlockVote::Void { unanimous: true }).await;
    scene.pay(&[0, 1, 2], 2, 3, next).await;
    chain.request_unlock(&domain, frozen, next).await;
    chain.followed(&scene.members, 9).await;
    // Above the void number, and below the frozen one.
    scene.pay(&[0, 1, 2], 1, 3, next + 1).await;
    let third = scene.checkpoint().await;
    let state = scene.members[2].state(3);
    assert_eq!((third.up_to, state.cut().next(&stuck.id()).0), (9, next + 2));
    assert_eq!(state.cut().next(&frozen.id()).0, next, "it ends before what is frozen without outcome");
    assert!(state.unpaid().is_empty() && state.numbers()[&(stuck.id(), SequenceNumber(next))].is_voided());
    let void = SegmentEntry::Void { account: stuck.id(), sequence: SequenceNumber(next) };
    assert!(scene.members[1].segment(3).entries.contains(&void));

    // Upheld, it is certified.
    let upheld = frozen.sign(&domain, payment(frozen.id(), owners[3].id(), 1, next));
    let vote = UnlockVote::Certificate(domain.transfer_digest(&upheld.transfer));
    chain.decide(&scene.committee, frozen, next, vote).await;
    chain.followed(&scene.members, 10).await;
    let fourth = scene.checkpoint().await;
    assert_eq!((fourth.up_to, fourth.entries), (10, 2));
    assert_eq!(scene.members[0].state(4).cut().next(&frozen.id()).0, next + 1);

    // Each archive verifies, and all hold the same.
    for member in &scene.members {
        let report = member.verify().await.unwrap();
        assert_eq!((report.number, report.checkpoint, report.up_to), (4, fourth.checkpoint, 10), "{report}");
        for number in 1..=4 {
            let paths = |of: &Member| {
                let archive = of.archive();
                [archive.segment_path(number), archive.state_path(number), archive.cut_path(number)].map(fs::read)
            };
            for (one, other) in paths(member).into_iter().zip(paths(&scene.members[0])) {
                assert_eq!(one.unwrap(), other.unwrap());
            }
        }
    }
    assert!(matches!(scene.members[0].propose().await, Err(CheckpointError::Nothing(4))));
    // All value is in the state: five deposits less what was redeemed.
    let state = scene.members[0].state(4);
    let held: i128 = state.balances().values().map(|balance| balance.to_string().parse::<i128>().unwrap()).sum();
    assert_eq!(held, 5_000 - 10);
    scene.stop().await;
}

impl Scene {
    /// As [`Scene::complete`], of another member's proposal.
    async fn complete_from(&self, proposer: usize, proposal: &Proposal) {
        let own = self.members[0].archive().cut_path(proposal.number);
        self.votes(&[proposer, 0, 2], &proposal.cut).await;
        self.complete(&Proposal { cut: own, ..proposal.clone() }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_come_from_final_blocks_on_which_the_nodes_agree_and_each_epoch_signs_its_own() {
    let chain = Chain::new().await;
    let mut scene = Scene::new(Some(chain.config()));
    scene.start().await;
    let owner = TestAccount::numbered(0);
    chain.deposit(owner.id(), 100).await;
    chain.followed(&scene.members, 1).await;
    let member = &mut scene.members[0];
    let honest = member.config.clone();

    let liar = LyingNode::start(&chain.anvil.url());
    member.config.ethereum_mut().unwrap().rpc_urls.push(liar.url());
    liar.lie_about_logs(Vec::clear);
    let error = member.propose().await.unwrap_err();
    assert!(matches!(error, CheckpointError::Chain(DepositsError::Alarm(_))), "{error}");
    liar.repent();
    let proposal = member.propose().await.unwrap();
    assert_eq!((proposal.number, proposal.up_to, proposal.entries), (1, 1, 1));
    liar.lie_about_logs(Vec::clear);
    let error = member.sign(&proposal.cut).await.unwrap_err();
    assert!(matches!(error, CheckpointError::Chain(DepositsError::Alarm(_))), "{error}");

    // Nodes that are stuck: three days later nobody knows which epoch it is.
    liar.repent();
    let member = &scene.members[0];
    let later = (chain.anvil.time_s().await + 4 * 86_400) * 1_000;
    let inputs = Inputs { clock: Clock::at(later), ..member.inputs() };
    let too_old = |error: &CheckpointError| matches!(error, CheckpointError::ChainTooOld { .. });
    let error = member.sign_with(inputs, &proposal.cut).await.unwrap_err();
    assert!(too_old(&error), "{error}");
    let error = propose(inputs, &mut Memory::default(), &mut |_| ()).await.unwrap_err();
    assert!(too_old(&error), "{error}");
    let error = certify(inputs, &[], &Memory::default(), &mut |_| ()).await.unwrap_err();
    assert!(too_old(&error), "{error}");

    // Nodes that are behind the shards.
    let member = &mut scene.members[0];
    member.config = honest.clone();
    chain.anvil.mine(2).await;
    chain.deposit(owner.id(), 100).await;
    chain.followed(&scene.members, 2).await;
    let member = &mut scene.members[0];
    member.config.ethereum_mut().unwrap().finality = Finality::Confirmations(1);
    let error = member.propose().await.unwrap_err();
    let (from, to) = (TransactionIndex(1), TransactionIndex(2));
    assert!(
        matches!(error, CheckpointError::ChainBehind { chain, wanted } if (chain, wanted) == (from, to)),
        "{error}"
    );
    member.config = honest;

    // The committee is replaced: nobody signs what was proposed before, or proposes before it has followed.
    scene.stop().await;
    let next = scene.committee.rotated();
    let deadline = chain.anvil.time_s().await + 86_400;
    let rotation = Rotation::new(chain.contract, signers(&scene.committee), signers(&next), deadline);
    chain.anvil.install(&rotation).await;
    let ended =
        |error: &CheckpointError| matches!(error, CheckpointError::EpochEnded { epoch: Epoch(0), current: Epoch(1) });
    let member = &scene.members[0];
    let error = member.sign(&proposal.cut).await.unwrap_err();
    assert!(ended(&error), "{error}");
    let error = member.propose().await.unwrap_err();
    assert!(ended(&error), "{error}");
    let error = member.certify(&[]).await.unwrap_err();
    assert!(ended(&error), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_signs_what_it_has_not_executed_or_what_is_not_next() {
    let mut scene = Scene::new(None);
    // A member that has not applied the genesis.
    scene.members[0].running =
        Some(Running::ready(scene.members[0].config.clone(), scene.members[0].keys.clone()).await);
    scene.pay(&[0], 0, 1, 0).await;
    let first = scene.members[0].propose().await.unwrap();
    let error = scene.members[1].sign(&first.cut).await.unwrap_err();
    let (applied, wanted) = (TransactionIndex(0), TransactionIndex(20));
    let is_right =
        matches!(error, CheckpointError::NotApplied { applied: a, wanted: w } if (a, w) == (applied, wanted));
    assert!(is_right, "{error}");

    for member in &mut scene.members[1..] {
        member.running = Some(Running::ready(member.config.clone(), member.keys.clone()).await);
    }
    let error = scene.members[1].sign(&first.cut).await.unwrap_err();
    let is_right = matches!(
        &error,
        CheckpointError::NotExecuted { account, executed: SequenceNumber(0), wanted: SequenceNumber(1), lacking }
            if lacking.len() == 1 && *account == TestAccount::numbered(0).id()
    );
    assert!(is_right, "{error}");
    assert!(!scene.members[1].archive().segment_path(1).exists(), "nothing is left");
    let stranger = Member {
        keys: scene.committee.rotated().keys[0].clone(),
        config: scene.members[0].config.clone(),
        archive: scene.path("strange"),
        running: None,
    };
    let error = stranger.sign(&first.cut).await.unwrap_err();
    assert!(matches!(error, CheckpointError::NotAMember(Epoch(0))), "{error}");

    // Once it has executed the order, it signs nothing but what it computes.
    scene.pay(&[1, 2], 0, 1, 0).await;
    let altered = |change: &dyn Fn(&mut Value)| {
        let mut file = read(&first.cut);
        change(&mut file);
        scene.write("altered.json", &file)
    };
    let member = &scene.members[1];
    let error = member.sign_with(Inputs { orders_max: 0, ..member.inputs() }, &first.cut).await.unwrap_err();
    assert!(matches!(error, CheckpointError::TooManyOrders(0)), "{error}");
    // Its shards may have applied an installation that the node has not followed.
    let (cut, keys) = (ProposedCut::read(&first.cut).unwrap(), std::slice::from_ref(&member.keys));
    let error = sign(member.inputs(), (Epoch(1), keys), &cut, &mut Memory::default(), &mut |_| ()).await.unwrap_err();
    let (epoch, follows) = (Epoch(0), Epoch(1));
    assert!(matches!(error, CheckpointError::NotFollowed { epoch: e, followed } if (e, followed) == (epoch, follows)));
    assert!(!member.archive().vote_path(1).exists(), "nothing was signed");
    let digest = json!(fastpay_core::Digest::repeat_byte(9));
    for (field, value, mismatch) in [
        ("number", json!(2), CheckpointMismatch::Number),
        ("previous", digest.clone(), CheckpointMismatch::Previous),
        ("segment", digest.clone(), CheckpointMismatch::Segment),
        ("state", digest.clone(), CheckpointMismatch::State),
    ] {
        let file = altered(&|file| file["checkpoint"][field] = value.clone());
        let error = scene.members[1].sign(&file).await.unwrap_err();
        assert!(
            matches!(error, CheckpointError::Mismatch { mismatch: found } if found == mismatch),
            "{field}: {error}"
        );
    }
    let file = altered(&|file| file["checkpoint"]["epoch"] = json!(1));
    let error = scene.members[1].sign(&file).await.unwrap_err();
    assert!(matches!(error, CheckpointError::EpochEnded { epoch: Epoch(1), current: Epoch(0) }), "{error}");
    let other = TestAccount::numbered(5).id().to_string();
    let file = altered(&|file| file["changed"][&other] = json!(1));
    let error = scene.members[1].sign(&file).await.unwrap_err();
    assert!(matches!(&error, CheckpointError::NotExecuted { account, .. } if account.to_string() == other), "{error}");
    let file = altered(&|file| file["changed"] = json!({}));
    let error = scene.members[1].sign(&file).await.unwrap_err();
    assert!(matches!(error, CheckpointError::Mismatch { mismatch: CheckpointMismatch::Cut }), "{error}");
    // The old form.
    let file = altered(&|file| file["next"] = file.as_object_mut().unwrap().remove("changed").unwrap());
    let error = scene.members[1].sign(&file).await.unwrap_err();
    assert!(matches!(error, CheckpointError::Archive(ArchiveError::Wrong { defect: Defect::WholeCut, .. })), "{error}");
    let file = scene.write("altered.json", &json!({}));
    let error = scene.members[1].sign(&file).await.unwrap_err();
    assert!(
        matches!(error, CheckpointError::Archive(ArchiveError::Wrong { defect: Defect::Damaged(_), .. })),
        "{error}"
    );
    let error = scene.members[1].sign(&scene.path("nothing")).await.unwrap_err();
    assert!(matches!(error, CheckpointError::Archive(ArchiveError::Missing(_))), "{error}");

    scene.complete(&first).await;
    let error = scene.members[2].sign(&first.cut).await.unwrap_err();
    let number = CheckpointMismatch::Number;
    assert!(matches!(error, CheckpointError::Mismatch { mismatch } if mismatch == number), "{error}");
    assert!(matches!(scene.members[2].propose().await, Err(CheckpointError::Nothing(1))));
    scene.stop().await;

    // A record that this program did not write.
    let journal = scene.members[1].config.data.join("shard-001/journal");
    let mut journal = Journal::open(&journal, JournalOptions::default(), JournalPosition(0)).unwrap();
    let at = journal.append(b"a vote").unwrap();
    journal.commit().unwrap();
    let error = scene.members[1].propose().await.unwrap_err();
    let is_record =
        matches!(error, CheckpointError::Record(record) if (record.shard, record.position) == (ShardId(1), at));
    assert!(is_record, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_quorum_of_members_certifies() {
    let mut scene = Scene::new(None);
    scene.start().await;
    scene.pay(&[0, 1, 2], 0, 1, 0).await;
    let proposal = scene.members[0].propose().await.unwrap();
    let votes = scene.votes(&[0, 1, 2], &proposal.cut).await;
    let member = &scene.members[0];
    let certify = async |votes: &[CheckpointVoteFile]| member.certify(votes).await.unwrap_err();
    let few = |error: &CheckpointError, members: usize| matches!(error, CheckpointError::TooFewVotes { found, quorum: 3 } if *found == members);
    for (votes, members) in [(vec![votes[0].clone(), votes[1].clone()], 2), (vec![votes[0].clone(); 3], 1)] {
        let error = certify(&votes).await;
        assert!(few(&error, members), "{error}");
    }
    // A vote of a stranger, with another's signature, or for another checkpoint does not count.
    let altered = |change: &dyn Fn(&mut CheckpointVoteFile)| {
        let mut vote = votes[2].clone();
        change(&mut vote);
        [votes[0].clone(), votes[1].clone(), vote]
    };
    let stranger = scene.committee.rotated().keys[0].public().name;
    for votes in [
        altered(&|vote| vote.authority = stranger),
        altered(&|vote| vote.signature = votes[1].signature),
        altered(&|vote| vote.checkpoint = fastpay_core::Digest::repeat_byte(9)),
    ] {
        let error = certify(&votes).await;
        assert!(few(&error, 2), "{error}");
    }
    assert!(!member.archive().certificate_path(1).exists());

    // A later proposal replaces the one that they voted for.
    scene.pay(&[0, 1, 2], 0, 1, 1).await;
    member.propose().await.unwrap();
    let error = certify(&votes).await;
    assert!(few(&error, 0), "{error}");
    // One that was cut short, between its files, is certified by nobody.
    fs::copy(scene.members[1].archive().segment_path(1), member.archive().segment_path(1)).unwrap();
    let error = certify(&votes).await;
    let other = matches!(error, CheckpointError::Archive(ArchiveError::Wrong { defect: Defect::OtherCheckpoint, .. }));
    assert!(other, "{error}");
    member.sign(&scene.members[1].archive().cut_path(1)).await.unwrap();
    member.certify(&votes).await.unwrap();
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_is_verified_from_the_first_committee_on_and_the_first_fault_is_named() {
    let mut scene = Scene::certified(4).await;
    scene.pay(&[0, 1, 2], 0, 3, 4).await;
    scene.checkpoint().await;
    scene.stop().await;
    let whole = scene.members[0].archive.clone();
    let report = scene.members[0].verify().await.unwrap();
    assert_eq!((report.number, report.accounts, report.entries, report.up_to), (2, 3, 20 + 12 + 1, 20));

    // Each time a copy with one fault.
    let faulty = scene.path("faulty");
    let mut member = Member { archive: faulty.clone(), running: None, ..clone_of(&scene.members[0]) };
    let archive = member.archive();
    let error_with = async |member: &Member, change: &dyn Fn(&Archive)| {
        let _ = fs::remove_dir_all(&faulty);
        copy_folder(&whole, &faulty);
        change(&member.archive());
        member.verify().await
    };
    let wrong = |result: Result<Report, CheckpointError>, path: &Path| match result {
        Err(CheckpointError::Archive(ArchiveError::Wrong { path: found, defect })) if found == path => defect,
        other => panic!("{}: {other:?}", path.display()),
    };
    let paths = [archive.segment_path(1), archive.state_path(1), archive.cut_path(1), archive.certificate_path(1)];
    for path in &paths {
        let result = error_with(&member, &|_| fs::remove_file(path).unwrap()).await;
        let missing = matches!(&result, Err(CheckpointError::Archive(ArchiveError::Missing(found))) if found == path);
        assert!(missing, "{}: {result:?}", path.display());
        // Cut short, or a byte altered anywhere.
        let bytes = fs::read(whole.join(path.file_name().unwrap())).unwrap();
        let cut_short = error_with(&member, &|_| fs::write(path, &bytes[..bytes.len() - 1]).unwrap()).await;
        assert!(matches!(wrong(cut_short, path), Defect::Damaged(_)));
        for at in (0..bytes.len()).step_by(bytes.len() / 12 + 1) {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            let result = error_with(&member, &|_| fs::write(path, &altered).unwrap()).await;
            assert!(matches!(result, Err(CheckpointError::Archive(ArchiveError::Wrong { .. }))), "{at}: {result:?}");
        }
    }

    // A segment that follows, and is not the certified one.
    let mut segment = scene.members[0].segment(2);
    assert_eq!(segment.entries.len(), 1);
    let owner = TestAccount::numbered(0);
    let other = owner.sign(&scene.committee.domain, payment(owner.id(), owner.id(), 1, 4));
    segment.entries = vec![SegmentEntry::Executed(other)];
    let write = |archive: &Archive| segment.write(&mut fs::File::create(archive.segment_path(2)).unwrap()).unwrap();
    let defect = wrong(error_with(&member, &write).await, &archive.segment_path(2));
    assert!(matches!(defect, Defect::NotAsCertified(CheckpointMismatch::Segment)), "{defect}");
    // A later number's files in place of an earlier one's.
    let swap = |archive: &Archive| replace(&archive.segment_path(2), &archive.segment_path(1));
    let defect = wrong(error_with(&member, &swap).await, &archive.segment_path(1));
    assert!(matches!(defect, Defect::Segment(_)), "{defect}");
    for path in [Archive::state_path, Archive::cut_path] {
        let swap = |archive: &Archive| replace(&path(archive, 2), &path(archive, 1));
        let defect = wrong(error_with(&member, &swap).await, &path(&archive, 1));
        assert!(matches!(defect, Defect::OtherCheckpoint), "{defect}");
    }
    let swap = |archive: &Archive| replace(&archive.certificate_path(2), &archive.certificate_path(1));
    let defect = wrong(error_with(&member, &swap).await, &archive.certificate_path(1));
    assert!(matches!(defect, Defect::NotAsCertified(CheckpointMismatch::Number)), "{defect}");

    // Certificates that are short, or of another deployment.
    let certificate = |change: &dyn Fn(&mut Value)| {
        let mut file = read(&Archive::new(&whole).certificate_path(2));
        change(&mut file);
        move |archive: &Archive| fs::write(archive.certificate_path(2), file.to_string()).unwrap()
    };
    let short = certificate(&|file| drop(file["votes"].as_array_mut().unwrap().pop()));
    let defect = wrong(error_with(&member, &short).await, &archive.certificate_path(2));
    let few = Defect::Certificate(NotCertified::VoteCount { expected: 3, found: 2 });
    assert_eq!(defect.to_string(), few.to_string());
    let elsewhere = Domain::new(CHAIN_ID, PrimaryAddress::repeat_byte(3));
    let checkpoint = checkpoint_of(&read(&archive.certificate_path(2)));
    let foreign = certificate(&|file| {
        for (vote, keys) in file["votes"].as_array_mut().unwrap().iter_mut().zip(&scene.committee.keys) {
            vote["signature"] = json!(format!("0x{}", hex::encode(checkpoint.sign(keys, &elsewhere).signature.0)));
        }
    });
    let defect = wrong(error_with(&member, &foreign).await, &archive.certificate_path(2));
    assert!(matches!(defect, Defect::Certificate(NotCertified::Signature(_))), "{defect}");

    // What a kill leaves before a file has its name, and of a proposal that did not end.
    let killed = |archive: &Archive| {
        fs::write(faulty.join(".tmp-0000000003.segment"), b"half").unwrap();
        fs::copy(archive.segment_path(2), archive.segment_path(3)).unwrap();
    };
    assert_eq!(error_with(&member, &killed).await.unwrap(), report);
    // Another deployment's archive: the same members, who begin with other balances.
    let genesis = scene.path("other.json");
    let mut other = read(&scene.place.genesis);
    other["balances"].as_array_mut().unwrap().pop();
    fs::write(&genesis, other.to_string()).unwrap();
    member.config.genesis = Some(genesis.clone());
    wrong(error_with(&member, &|_| ()).await, &archive.segment_path(1));
    let strangers = scene.committee.rotated().keys;
    authority::write_genesis(&genesis, &strangers);
    assert!(error_with(&member, &|_| ()).await.is_err());
    let nowhere = Member { archive: scene.path("nowhere"), ..member };
    assert!(matches!(nowhere.verify().await, Err(CheckpointError::Archive(ArchiveError::Missing(_)))));
}

pub fn signers(of: &TestCommittee) -> Signers<'_> {
    Signers { committee: &of.committee, keys: &of.keys }
}

fn replace(with: &Path, path: &Path) {
    fs::copy(with, path).unwrap();
}

fn clone_of(member: &Member) -> Member {
    let (config, keys, archive) = (member.config.clone(), member.keys.clone(), member.archive.clone());
    Member { config, keys, archive, running: None }
}

pub fn checkpoint_of(file: &Value) -> fastpay_core::checkpoint::Checkpoint {
    let fields = &file["checkpoint"];
    let digest = |name: &str| serde_json::from_value(fields[name].clone()).unwrap();
    fastpay_core::checkpoint::Checkpoint {
        epoch: Epoch(fields["epoch"].as_u64().unwrap()),
        number: fields["number"].as_u64().unwrap(),
        previous: digest("previous"),
        up_to: TransactionIndex(fields["upTo"].as_u64().unwrap()),
        cut: digest("cut"),
        state: digest("state"),
        segment: digest("segment"),
    }
}
