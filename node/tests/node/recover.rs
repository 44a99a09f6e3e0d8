//! A committee that is gone, on a real chain: its checkpoint is rebuilt from an archive, the contract's events and the
//! certificates that are still known, by everybody alike, and a new committee adopts it.

use std::path::PathBuf;

use fastpay_client::ClientError;
use fastpay_core::checkpoint::RecoveryError;
use fastpay_core::{
    AccountId, Amount, Asset, Balance, Certificate, ContractVote, CouncilStatement, Digest, EcdsaSignature, Epoch,
    Memo, PrimaryAddress, Redemption, SequenceNumber, Transfer, VerifiedContractVote,
};
use fastpay_ethereum::{Call, Finality, Payout, certified_redemption};
use fastpay_node::authority::certification::{CheckpointError, verify};
use fastpay_node::authority::config::{Config, PrimarySection};
use fastpay_node::operator::committee::{CommitteeError, adopt, sign as committee_sign};
use fastpay_node::operator::rebase::{RebaseError, Rebased, rebase};
use fastpay_node::operator::recover::{Candidate, RecoverError, Sources, recover};
use fastpay_program::Clock;
use fastpay_rpc::{BatchAnswer, Refusal};
use fastpay_testkit::anvil::{LyingNode, Rotation, SAFETY_PARAMETERS};
use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption};

use crate::authority::{Running, get};
use crate::certification::{certified, configure};
use crate::checkpoint::{Chain, Member, Scene, signers};

fn owner(number: u64) -> TestAccount {
    TestAccount::numbered(number)
}

/// A committee of which three members worked, and are silent now.
struct Lost {
    chain: Chain,
    scene: Scene,
    next: TestCommittee,
    rotation: Rotation,
    redeemed: Redemption,
}

impl Lost {
    /// Accounts 0 and 1 have 100 and 50. The archive includes that 0 paid 10 to 1. Beyond it, 0 pays 20 to 2, who pays 5
    /// to 3; 1 redeems 30, which the contract pays; 0 pays 15 to 1, who pays 40 to 3.
    async fn new() -> Self {
        let chain = Chain::recoverable().await;
        let mut scene = Scene::new(Some(chain.config()));
        scene.start().await;
        chain.deposit(owner(0).id(), 100).await;
        chain.deposit(owner(1).id(), 50).await;
        chain.followed(&scene.members, 2).await;
        let pays = |from: u64, to: u64, amount, number| payment(owner(from).id(), owner(to).id(), amount, number);
        scene.execute(&[0, 1, 2], &owner(0), pays(0, 1, 10, 0)).await;
        scene.checkpoint().await;
        let memo = Memo::repeat_byte(5);
        let redeemed = Redemption { memo, ..redemption(owner(1).id(), PrimaryAddress::repeat_byte(7), 30, 0) };
        scene.execute(&[0, 1, 2], &owner(1), redeemed.clone()).await;
        for (from, to, amount, number) in [(0, 2, 20, 1), (2, 3, 5, 0), (0, 1, 15, 2), (1, 3, 40, 1)] {
            scene.execute(&[0, 1, 2], &owner(from), pays(from, to, amount, number)).await;
        }
        let committee = &scene.committee;
        let certificate = committee.certificate(&owner(1).sign(&committee.domain, redeemed.clone()));
        chain
            .send(Call::redeem(chain.contract, certified_redemption(&certificate, &committee.committee).unwrap()))
            .await;
        chain.followed(&scene.members, 3).await;
        scene.stop().await;

        let next = scene.committee.rotated();
        chain.anvil.pass(Rotation::RECOVERY_SILENCE_S).await;
        let deadline = chain.anvil.time_s().await + 86_400;
        let now = signers(&scene.committee);
        let rotation = Rotation::since(Epoch(0), chain.contract, now, signers(&next), deadline);
        Self { chain, scene, next, rotation, redeemed }
    }

    fn config(&self) -> Config {
        self.scene.members[0].config.clone()
    }

    fn certificate(&self, by: u64, transfer: impl Into<Transfer>) -> Certificate {
        self.scene.committee.certificate(&owner(by).sign(&self.scene.committee.domain, transfer))
    }

    fn paid(&self, (from, to, amount, number): (u64, u64, u128, u64)) -> Certificate {
        self.certificate(from, payment(owner(from).id(), owner(to).id(), amount, number))
    }

    fn file(&self, name: &str, certificates: &[Certificate]) -> PathBuf {
        let line = |of: &Certificate| format!("0x{}\n", hex::encode(borsh::to_vec(of).unwrap()));
        std::fs::write(self.scene.path(name), certificates.iter().map(line).collect::<String>()).unwrap();
        self.scene.path(name)
    }

    fn sources(&self, certificates: &[PathBuf]) -> Sources {
        Sources {
            archive: self.scene.members[0].archive.clone(),
            certificates: certificates.to_vec(),
            journals: Vec::new(),
            redemptions: Vec::new(),
        }
    }

    async fn recover(&self, config: &Config, sources: &Sources) -> Result<Candidate, RecoverError> {
        recover(config, sources, Clock::system(), &mut |_| ()).await
    }

    /// What accounts 0 to 3 hold.
    fn held(&self, candidate: &Candidate, name: &str) -> [Balance; 4] {
        let folder = self.scene.path(name);
        candidate.write(&folder).unwrap();
        let state = folder.join("0000000002.state");
        let state = fastpay_core::checkpoint::CheckpointState::read(&mut std::fs::read(state).unwrap().as_slice());
        let state = state.unwrap();
        assert_eq!(state.installations().epoch(), Epoch(1));
        // It is paid, so nobody may vote for it again.
        let slot = (owner(1).id(), SequenceNumber(0));
        assert!(state.cut().next(&slot.0) > slot.1 && !state.unpaid().contains_key(&slot));
        let held = |account: AccountId| state.balances().get(&(account, Asset::ETHER)).copied().unwrap_or_default();
        [0, 1, 2, 3].map(|number| held(owner(number).id()))
    }

    /// Starts the members with the keys of both epochs.
    async fn start(&mut self, members: std::ops::Range<usize>) {
        for index in members {
            let keys = [&self.scene.committee, &self.next].map(|committee| committee.keys[index].clone());
            let member = &mut self.scene.members[index];
            member.running = Some(Running::ready_with(member.config.clone(), keys.to_vec()).await);
        }
    }

    /// A quorum adopts the checkpoint.
    async fn adopted(&self, sources: &Sources, checkpoint: Digest) {
        let statement = CouncilStatement::CheckpointAdoption { epoch: Epoch(1), checkpoint };
        let digest = self.next.domain.council_digest(&statement);
        let mut votes: Vec<VerifiedContractVote> = Vec::new();
        for member in 0..3 {
            let vote = self.adopt(member, sources, checkpoint).await.unwrap();
            votes.push(vote.verify(&self.next.committee, digest).unwrap());
        }
        self.chain.send(self.rotation.adopt(checkpoint, &votes)).await;
    }

    async fn adopt(&self, member: usize, sources: &Sources, asked: Digest) -> Result<ContractVote, CommitteeError> {
        let keys = std::slice::from_ref(&self.next.keys[member]);
        let vote = adopt(&self.config(), keys, sources, asked, &mut |_| ()).await?.vote;
        assert_eq!(vote.epoch, Epoch(1));
        Ok(ContractVote { authority: vote.authority, signature: EcdsaSignature(vote.signature.0) })
    }
}

fn balances(held: [u128; 4]) -> [Balance; 4] {
    held.map(|amount| Balance::from(Amount(amount)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_committees_checkpoint_is_rebuilt_by_everybody_alike_and_adopted() {
    let lost = Lost::new().await;
    let published = lost.file("published", &[lost.paid((0, 2, 20, 1)), lost.paid((2, 3, 5, 0))]);
    let late = lost.file("late", &[lost.paid((1, 3, 40, 1)), lost.paid((0, 2, 20, 1))]);
    let sources = lost.sources(&[published.clone(), late.clone()]);
    let error = lost.recover(&lost.config(), &sources).await.map(drop).unwrap_err();
    assert!(matches!(error, RecoverError::NoRecovery(Epoch(0))), "{error}");
    lost.chain.anvil.recover(&lost.rotation).await;
    // Events after the installation are no part of it.
    lost.chain.deposit(owner(0).id(), 1_000).await;

    // The certificates of the redemption, and of what covers the payment of 40, are lost.
    let first = lost.recover(&lost.config(), &sources).await.unwrap();
    let report = &first.report;
    assert_eq!((report.number, report.base, report.epoch, report.up_to), (2, 1, Epoch(1), 4), "{report}");
    assert_eq!((report.certificates, report.orders, report.invalid, report.adopted), (3, 2, 0, None), "{report}");
    let paid: Vec<_> = report.paid.iter().map(|paid| (paid.account, paid.sequence.0, paid.amount.0)).collect();
    assert_eq!(paid, [(owner(1).id(), 0, 30)]);
    assert!(report.owing.is_empty(), "{report}");
    let left_out: Vec<_> = report.left_out.iter().map(|order| (order.account, order.sequence.0)).collect();
    assert_eq!(left_out, [(owner(1).id(), 1)], "{report}");
    assert!(report.to_string().contains("nothing that is known covers the order 1"), "{report}");
    assert_eq!(lost.held(&first, "first"), balances([70, 30, 15, 5]));
    // So does somebody who knows the contract and an Ethereum node, and has neither keys nor a configuration.
    let (outsider, sources_again) = (PrimarySection::from(lost.chain.config()), lost.sources(&[late, published]));
    let again = recover(&outsider, &sources_again, Clock::system(), &mut |_| ()).await.unwrap();
    assert_eq!(again.report, first.report);
    let report = verify(&outsider, &sources.archive, &mut |_| ()).await.unwrap();
    assert_eq!(report, verify(&lost.config(), &sources.archive, &mut |_| ()).await.unwrap());

    // A member of the old committee finds its journals.
    let complete = Sources { journals: vec![lost.config().data], certificates: Vec::new(), ..sources.clone() };
    let second = lost.recover(&lost.config(), &complete).await.unwrap();
    let (report, agreed) = (&second.report, second.report.checkpoint);
    assert!(report.paid.is_empty() && report.owing.is_empty() && report.left_out.is_empty(), "{report}");
    assert_eq!(report.orders, 5, "{report}");
    assert_eq!((report.folders.read, report.folders.quorum), (1, 3), "{report}");
    assert!(report.to_string().contains("some of what was settled may be missing"), "{report}");
    let data = |members: &[usize]| members.iter().map(|at| lost.scene.members[*at].config.data.clone()).collect();
    for (members, read) in [(&[0, 0, 1][..], 2), (&[2, 0, 1], 3)] {
        let more = Sources { journals: data(members), ..complete.clone() };
        let report = lost.recover(&lost.config(), &more).await.unwrap().report;
        assert_eq!((report.folders.read, report.checkpoint), (read, agreed), "{report}");
        assert_eq!(report.to_string().contains("all that was settled is known"), read == 3, "{report}");
    }
    assert_eq!(lost.held(&second, "second"), balances([55, 5, 15, 45]));
    assert_ne!(agreed, first.report.checkpoint);

    // What members executed comes before what stolen keys certified and nobody has seen.
    let digest = |of: &Certificate| lost.scene.committee.domain.transfer_digest(&of.order.transfer);
    let executed = digest(&lost.paid((0, 2, 20, 1)));
    let rival = (1..100).map(|amount| lost.paid((0, 3, amount, 1))).find(|rival| digest(rival) < executed).unwrap();
    let stolen = Sources { certificates: vec![lost.file("stolen", std::slice::from_ref(&rival))], ..complete.clone() };
    let report = lost.recover(&lost.config(), &stolen).await.unwrap().report;
    let left_out: Vec<_> = report.left_out.iter().map(|order| order.digest).collect();
    assert_eq!((report.checkpoint, left_out), (agreed, vec![digest(&rival)]), "{report}");

    // Members sign what they compute themselves.
    let error = lost.adopt(0, &sources, agreed).await.unwrap_err();
    let is_other = |found, asked| found == first.report.checkpoint && asked == agreed;
    assert!(matches!(error, CommitteeError::OtherCandidate { found, asked } if is_other(found, asked)), "{error}");
    let old = std::slice::from_ref(&lost.scene.committee.keys[0]);
    let error = adopt(&lost.config(), old, &complete, agreed, &mut |_| ()).await.map(drop).unwrap_err();
    assert!(matches!(error, CommitteeError::NotAMember(Epoch(1))), "{error}");
    lost.adopted(&complete, agreed).await;
    let report = lost.recover(&lost.config(), &sources).await.unwrap().report;
    assert_eq!(report.adopted, Some(agreed));
    assert!(report.to_string().ends_with(&format!("the contract has adopted another one: {agreed}")), "{report}");
    let error = lost.adopt(3, &complete, agreed).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Adopted { epoch: Epoch(1), adopted } if adopted == agreed), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_contract_paid_is_debited_even_if_its_memo_must_be_given() {
    let lost = Lost::new().await;
    lost.chain.anvil.recover(&lost.rotation).await;
    let empty = Sources { archive: lost.scene.path("empty"), ..lost.sources(&[]) };
    let error = lost.recover(&lost.config(), &empty).await.map(drop).unwrap_err();
    assert!(matches!(error, RecoverError::Base(_)), "{error}");
    std::fs::create_dir(&empty.archive).unwrap();
    let from_call = lost.recover(&lost.config(), &empty).await.unwrap().report;
    assert_eq!((from_call.base, from_call.number, from_call.paid.len()), (0, 1, 1), "{from_call}");

    // Another contract made the memo up, so no transaction shows it.
    let node = LyingNode::start(&lost.chain.anvil.url());
    node.lie(|method, _, answer| {
        if method == "eth_getTransactionByHash" {
            answer["result"]["input"] = "0x1234".into();
        }
    });
    let mut config = lost.config();
    config.ethereum_mut().unwrap().rpc_urls = vec![node.url()];
    let error = lost.recover(&config, &empty).await.map(drop).unwrap_err();
    let is_unknown = |account, sequence| (account, sequence) == (owner(1).id(), SequenceNumber(0));
    assert!(
        matches!(
            error,
            RecoverError::History(RecoveryError::UnknownRedemption { account, sequence, .. })
                if is_unknown(account, sequence)
        ),
        "{error}"
    );
    let file = lost.scene.path("redemption.json");
    let mut given = Sources { redemptions: vec![file.clone()], ..empty };
    let error = lost.recover(&config, &given).await.map(drop).unwrap_err();
    assert!(matches!(&error, RecoverError::File { path, .. } if *path == file), "{error}");
    // Another redemption than the one that was paid changes nothing.
    let write = |redemption: &Redemption| std::fs::write(&file, serde_json::to_vec(redemption).unwrap()).unwrap();
    write(&Redemption { amount: Amount(1), ..lost.redeemed.clone() });
    let error = lost.recover(&config, &given).await.map(drop).unwrap_err();
    assert!(matches!(error, RecoverError::History(_)), "{error}");
    write(&lost.redeemed);
    assert_eq!(lost.recover(&config, &given).await.unwrap().report, from_call);

    given.journals = vec![lost.scene.path("nowhere")];
    let error = lost.recover(&config, &given).await.map(drop).unwrap_err();
    assert!(matches!(error, RecoverError::Checkpoint(CheckpointError::Storage(_))), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_contract_pays_after_the_recovery_changes_nothing_that_is_rebuilt() {
    let chain = Chain::recoverable().await;
    let scene = Scene::new(Some(chain.config()));
    let (committee, domain) = (&scene.committee.committee, &scene.committee.domain);
    chain.deposit(owner(0).id(), 100).await;
    // Of the first, paid at once, nobody has executed the order. The second one exceeds the limit, and is queued.
    let redeem = |amount, number| redemption(owner(0).id(), PrimaryAddress::repeat_byte(7), amount, number);
    for redemption in [redeem(60, 0), redeem(30, 1)] {
        let certificate = scene.committee.certificate(&owner(0).sign(domain, redemption));
        chain.send(Call::redeem(chain.contract, certified_redemption(&certificate, committee).unwrap())).await;
    }
    let next = scene.committee.rotated();
    chain.anvil.rotate(chain.contract, signers(&scene.committee), signers(&next)).await;
    let (deadline, last) = (chain.anvil.time_s().await + 86_400, next.rotated());
    let rotation = Rotation::since(Epoch(1), chain.contract, signers(&next), signers(&last), deadline);
    chain.anvil.install(&rotation).await;
    let config = &scene.members[0].config;
    let sources = Sources {
        archive: scene.path("empty"),
        certificates: Vec::new(),
        journals: Vec::new(),
        redemptions: Vec::new(),
    };
    std::fs::create_dir(&sources.archive).unwrap();
    let rebuilt = async || recover(config, &sources, Clock::system(), &mut |_| ()).await.unwrap().report;
    let before = rebuilt().await;
    let paid: Vec<_> = before.paid.iter().map(|paid| (paid.sequence.0, paid.amount.0)).collect();
    assert_eq!(paid, [(0, 60), (1, 30)], "{before}");
    chain.anvil.pass(u64::from(SAFETY_PARAMETERS.outflowDelay) + 100).await;
    chain.send(Call::execute_queued(chain.contract, &redeem(30, 1), Vec::new().into())).await;
    let primary = chain.anvil.primary(chain.contract, Finality::Confirmations(0)).await;
    assert_eq!(primary.payout(owner(0).id(), SequenceNumber(1)).await.unwrap(), Payout::Done);
    assert_eq!(rebuilt().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_contract_nothing_is_recovered() {
    let scene = Scene::new(None);
    let member = &scene.members[0];
    let sources = Sources {
        archive: member.archive.clone(),
        certificates: Vec::new(),
        journals: Vec::new(),
        redemptions: Vec::new(),
    };
    let error = recover(&member.config, &sources, Clock::system(), &mut |_| ()).await.map(drop).unwrap_err();
    assert!(matches!(error, RecoverError::NoContract), "{error}");
}

fn shard_of(member: &Member, account: AccountId) -> &fastpay_client::ShardClient {
    member.running.as_ref().unwrap().client.shard_of(&account)
}

async fn rebased(member: &Member) -> Result<Rebased, RebaseError> {
    rebase(&member.config, &member.archive, None, None, &mut |_| ()).await
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> Refusal {
    match answer {
        Err(ClientError::Refused(refusal)) => refusal,
        other => panic!("no refusal: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovered_committee_begins_from_exactly_what_it_adopted_and_earlier_certificates_end() {
    let mut lost = Lost::new().await;
    configure(&mut lost.scene, 604_800);
    lost.chain.anvil.recover(&lost.rotation).await;
    lost.chain.anvil.mine(2).await;
    let order = |by: u64, to: u64, amount, number| {
        owner(by).sign(&lost.scene.committee.domain, payment(owner(by).id(), owner(to).id(), amount, number))
    };
    // Of what was executed here this order is in the checkpoint before, this one in what is adopted, and this one not.
    let (old, kept, dropped) = (order(0, 1, 10, 0), order(0, 2, 20, 1), order(0, 1, 15, 2));
    let (first, again) = (order(0, 3, 1, 2), order(1, 3, 7, 1));
    let certified_before = |order| lost.scene.committee.certificate(order);
    let [old, kept, dropped] = [&old, &kept, &dropped].map(certified_before);

    // Nothing is adopted: nobody votes or executes, and there is nothing to begin from.
    let error = rebased(&lost.scene.members[0]).await.unwrap_err();
    assert!(matches!(error, RebaseError::NotAdopted(Epoch(1))), "{error}");
    // A next committee could adopt nothing.
    let keys = [lost.next.keys[0].clone()];
    let error = committee_sign(&lost.config(), &keys, &lost.scene.path("none"), &[]).await.map(drop).unwrap_err();
    assert!(matches!(error, CommitteeError::NotAdopted(Epoch(1))), "{error}");
    lost.start(0..1).await;
    let member = &lost.scene.members[0];
    let shard = shard_of(member, owner(0).id());
    assert_eq!(refusal(shard.order(&first).await), Refusal::NotVoting(Epoch(1)));
    for certificate in [&old, &lost.next.certificate(&first)] {
        assert_eq!(refusal(shard.confirm(certificate).await), Refusal::UnknownEpoch(Epoch(1)));
    }
    let (_, ready) = get(member.config.http, "/ready").await.unwrap();
    assert!(ready.contains("\"votes\":false"), "{ready}");
    lost.scene.stop().await;

    // Two candidates; the one without the journals is adopted.
    let unpaid = redemption(owner(3).id(), PrimaryAddress::repeat_byte(8), 2, 0);
    let redeemed = lost.certificate(3, unpaid.clone());
    let published = lost.file("published", &[kept.clone(), lost.paid((2, 3, 5, 0)), redeemed]);
    let sources = lost.sources(&[published]);
    let other = Sources { journals: vec![lost.config().data], certificates: Vec::new(), ..sources.clone() };
    let (candidate, other) =
        (lost.recover(&lost.config(), &sources).await.unwrap(), lost.recover(&lost.config(), &other).await.unwrap());
    let agreed = candidate.report.checkpoint;
    lost.adopted(&sources, agreed).await;
    lost.chain.anvil.mine(2).await;
    let error = rebased(&lost.scene.members[0]).await.unwrap_err();
    let is_missing = |adopted, number| (adopted, number) == (agreed, 1);
    assert!(matches!(error, RebaseError::WithoutAdopted { adopted, number } if is_missing(adopted, number)), "{error}");
    // A committee that follows now could not certify it.
    let error = committee_sign(&lost.config(), &keys, &lost.scene.path("none"), &[]).await.map(drop).unwrap_err();
    let is_it = |epoch, adopted| (epoch, adopted) == (Epoch(1), agreed);
    assert!(matches!(error, CommitteeError::NotBegun { epoch, adopted } if is_it(epoch, adopted)), "{error}");
    // One member has the other candidate in its archive. It gets the right one from the others, once they have it.
    other.write(&lost.scene.members[2].archive).unwrap();
    lost.start(2..3).await;
    lost.start(0..2).await;
    for member in &lost.scene.members[..2] {
        candidate.write(&member.archive).unwrap();
    }
    // Two of four are no quorum: the third signs what is adopted, and nothing else.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert!(!lost.scene.members[0].archive().certificate_path(2).exists());
    assert!(!lost.scene.members[2].archive().vote_path(2).exists());
    candidate.write(&lost.scene.members[2].archive).unwrap();
    certified(&lost.scene.members, 2).await;
    let error = candidate.write(&lost.scene.members[0].archive).unwrap_err();
    assert!(matches!(error, RecoverError::Checkpoint(CheckpointError::Certified { number: 2, .. })), "{error}");
    let shard = shard_of(&lost.scene.members[0], owner(0).id());
    assert_eq!(refusal(shard.order(&first).await), Refusal::NotVoting(Epoch(1)), "its journals do not begin there");
    lost.scene.stop().await;
    for member in &lost.scene.members {
        let rebased = rebased(member).await.unwrap();
        assert_eq!((rebased.checkpoint, rebased.certificates, rebased.was_complete), (2, 0, false));
    }
    // From now on the folders lack what they executed before.
    let later = Sources { journals: vec![lost.config().data], ..lost.sources(&[]) };
    assert_eq!(lost.recover(&lost.config(), &later).await.unwrap().report.folders.read, 0);
    let error = committee_sign(&lost.config(), &keys, &lost.scene.path("none"), &[]).await.map(drop).unwrap_err();
    assert!(matches!(error, CommitteeError::File { .. }), "{error}");

    // A new operator begins in an empty folder.
    let base = Config { ..lost.config() };
    let mut new = lost.scene.operator(3, lost.next.keys[3].clone(), 2, &base);
    new.archive = lost.scene.members[0].archive.clone();
    new.config.archive = None;
    // As `init` says of the first folder of new keys.
    std::fs::write(new.config.data.join("unjudged"), b"first").unwrap();
    rebased(&new).await.unwrap();
    new.running = Some(Running::ready_with(new.config.clone(), vec![new.keys.clone()]).await);
    lost.start(0..3).await;
    lost.scene.members.push(new);

    for start in 0..2 {
        for (index, member) in lost.scene.members.iter().enumerate() {
            let shard = shard_of(member, owner(0).id());
            for ended in [&old, &kept, &dropped] {
                assert_eq!(refusal(shard.confirm(ended).await), Refusal::EpochEnded(Epoch(1)), "member {index}");
            }
            assert_eq!(shard.order(&first).await.unwrap().0, Epoch(1), "member {index}");
            // The account's payment of before is left out, and its number is free.
            assert_eq!(shard_of(member, owner(1).id()).order(&again).await.unwrap().0, Epoch(1), "member {index}");
            // Its certificate has ended, and the contract has not paid it.
            let slot = (unpaid.sender, unpaid.sequence);
            let BatchAnswer::Vote { epoch, vote } = shard.vote_redemption_batch(&[slot]).await.unwrap() else {
                panic!("member {index} does not vote for what it begins from");
            };
            let paying = lost.next.domain.redemption_batch_vote_digest(epoch, std::slice::from_ref(&unpaid));
            vote.verify(&lost.next.committee, paying).unwrap();
            for (account, held) in [70, 30, 15, 3].into_iter().enumerate() {
                let account = owner(account as u64).id();
                let state = shard_of(member, account).account(account).await.unwrap();
                assert_eq!(state.balance(Asset::ETHER), Balance::from(Amount(held)), "member {index}");
            }
        }
        if start == 0 {
            lost.scene.members.truncate(3);
            lost.scene.stop().await;
            lost.start(0..3).await;
        }
    }
    let confirmed = shard_of(&lost.scene.members[0], owner(0).id()).confirm(&lost.next.certificate(&first)).await;
    assert_eq!(confirmed, Ok((Some(Epoch(1)), SequenceNumber(3))));
    lost.scene.stop().await;
}
