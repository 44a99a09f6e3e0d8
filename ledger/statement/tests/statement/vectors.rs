//! `vectors/ledger.json`: statements of the ledger, what is signed, and what each is worth. It is built here from fixed
//! keys and must equal the file in the tree; then it is read back and judged from its text alone.
//!
//! After a change that is meant: `UPDATE_VECTORS=1 cargo test -p fastpay-ledger-statement --test statement vectors`.

use alloy_primitives::{B256, Bytes};
use fastpay_core::{
    AccountKey, Amount, Asset, AuthorityKeys, Balance, Committee, ContractVote, CouncilStatement, Digest, Epoch,
    PossessionProof, PrimaryAddress, Redemption, SequenceNumber, TransactionIndex, UnlockVote, VoteSignature,
    sign_batch_vote, sign_council_vote, sign_redemption_vote,
};
use fastpay_ledger_statement::{
    Action, Announcing, Answer, AnswerProof, ClusterId, CommitteeEvent, CommitteeNumber, CompactDecision, Cursor,
    Deployment, EventKind, Evidence, Funding, Group, Header, Height, Instruction, MemberKey, Members, Message,
    NextCommittee, Outcome, Outputs, ReadProof, Receiver, Request, StateKey, StateProof, StatementVerifier, Time,
    UnlockRequest, VoteKind, VoteStatement, Wire, leaf_digest, value_digest,
};
use serde::{Deserialize, Serialize};

use crate::fixture::{Cluster, DEPLOYMENT, US, account, first_group, partition};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    deployment: B256,
    /// The address of committee 7's EIP-712 domain, whose chain id is 0.
    contract_of_committee7: alloy_primitives::Address,
    cluster: u32,
    members: Vec<B256>,
    votes: Vec<Vote>,
    header: Statement,
    instruction: Statement,
    /// Of FastPay committee 7, in the order of the actions.
    committee_instructions: Vec<Named>,
    /// For its authorities, as messages.
    events: Vec<Named>,
    compact_decisions: Vec<Decision>,
    answer: Proof,
    reads: Vec<Proof>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Vote {
    height: u64,
    round: u32,
    precommit: bool,
    value: Option<B256>,
    /// What is signed.
    digest: B256,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Statement {
    encoding: Bytes,
    /// What is signed, or what a header's maker signs.
    digest: B256,
    /// By which others name it.
    id: B256,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Named {
    name: String,
    encoding: Bytes,
    /// The digest of an instruction; none of a message, which has one only within its group.
    digest: Option<B256>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Decision {
    name: String,
    encoding: Bytes,
    /// The number and the predecessor of the group that is due.
    next: u64,
    previous: B256,
    /// The digest of the group, or the error.
    verdict: Result<B256, String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Proof {
    name: String,
    /// The encoding of the request, or that of the state's key without a version.
    about: Bytes,
    encoding: Bytes,
    /// The encoded result of the request, or the value; or the error.
    verdict: Result<Option<Bytes>, String>,
}

fn verdict<T>(decision: Result<T, impl ToString>) -> Result<T, String> {
    decision.map_err(|error| error.to_string())
}

fn open(members: &Members, encoding: &[u8], cursor: Cursor) -> Result<B256, String> {
    let decision = verdict(CompactDecision::decode(encoding))?;
    let opened = StatementVerifier::default().open(US, vec![(decision, members, cursor)], &mut rand::rng()).pop();
    verdict(opened.unwrap()).map(|group| group.cursor().previous)
}

fn answer(members: &Members, encoding: &[u8], about: &[u8]) -> Result<Option<Bytes>, String> {
    let (proof, request) = (verdict(AnswerProof::decode(encoding))?, verdict(Request::decode(about))?);
    let found = proof.verify(&request, &partition(), members, &mut StatementVerifier::default(), &mut rand::rng());
    verdict(found).map(|answer| Some(borsh::to_vec(&answer.result).unwrap().into()))
}

fn read(members: &Members, encoding: &[u8], about: &[u8]) -> Result<Option<Bytes>, String> {
    let (proof, key) = (verdict(ReadProof::decode(encoding))?, borsh::from_slice::<StateKey>(about).unwrap());
    let found = proof.verify(&key, Time(0), &partition(), members, &mut StatementVerifier::default(), &mut rand::rng());
    verdict(found).map(|reading| reading.value.map(Bytes::from))
}

fn decisions(cluster: &Cluster) -> Vec<Decision> {
    let good = cluster.decision(5, first_group());
    let altered = |alter: &dyn Fn(&mut CompactDecision)| {
        let mut decision = good.clone();
        alter(&mut decision);
        decision
    };
    let prevotes = cluster.certify_as(&good.header, 3, VoteKind::Prevote, 0..3);
    let elsewhere = Cluster::new(Deployment(Digest::repeat_byte(0xee)), 1, 4, 1).decision(5, first_group());
    let first = Cursor::default();
    let taken = Cursor { next: 2, previous: good.group.head().digest(DEPLOYMENT, ClusterId(1)) };
    let second = Group { to: US, number: 2, previous: taken.previous, messages: vec![] };
    let cases = [
        ("valid", good.clone(), first),
        ("valid and empty", cluster.decision(6, second), taken),
        ("replayed", good.clone(), taken),
        ("a message left out", altered(&|d| drop(d.group.messages.remove(1))), first),
        ("a message repeated", altered(&|d| d.group.messages.insert(1, d.group.messages[1].clone())), first),
        ("another round", altered(&|d| d.certificate.round = 4), first),
        ("another height", altered(&|d| d.header.height = Height(6)), first),
        ("too few votes", altered(&|d| d.certificate.votes.truncate(2)), first),
        ("a repeated voter", altered(&|d| d.certificate.votes[2] = d.certificate.votes[1]), first),
        ("an unknown voter", altered(&|d| d.certificate.votes[2].0.0 = 4), first),
        ("prevotes", altered(&|d| d.certificate = prevotes.clone()), first),
        ("another deployment", elsewhere, first),
        ("another receiver", altered(&|d| d.group.to = Receiver::Clients), first),
    ];
    let case = |(name, decision, cursor): (&str, CompactDecision, Cursor)| {
        let encoding = decision.encode();
        let verdict = open(&cluster.members, &encoding, cursor);
        let (next, previous) = (cursor.next, cursor.previous);
        Decision { name: name.into(), encoding: encoding.into(), next, previous, verdict }
    };
    cases.map(case).into()
}

fn reads(cluster: &Cluster) -> Vec<Proof> {
    let key = |at| StateKey::Reserve(account(at), Asset::ETHER);
    let value = borsh::to_vec(&Balance::from(Amount(77))).unwrap();
    let header = cluster.header(3, leaf_digest(key(0).digest(), value_digest(&value)), Digest::ZERO);
    let prove = |name: &str, at: u64, evidence: Evidence| {
        let (certificate, proof) = (cluster.certify(&header, 0), StateProof { evidence, siblings: vec![] });
        let encoding = ReadProof { header, certificate, proof }.encode();
        let about = borsh::to_vec(&key(at)).unwrap();
        let verdict = read(&cluster.members, &encoding, &about);
        Proof { name: name.into(), about: about.into(), encoding: encoding.into(), verdict }
    };
    let other = Evidence::Other { key: key(0).digest(), value: value_digest(&value) };
    vec![
        prove("present", 0, Evidence::Present(value.clone())),
        prove("absent", 1, other),
        prove("another value", 0, Evidence::Present(borsh::to_vec(&Balance::from(Amount(78))).unwrap())),
    ]
}

const COMMITTEE: CommitteeNumber = CommitteeNumber(7);

/// Four members whose keys everybody knows.
fn authorities(epoch: u64) -> (Vec<AuthorityKeys>, Committee) {
    let keys = (1..=4_u8).map(|seed| AuthorityKeys::from_secrets([seed; 32], [seed; 32]).unwrap());
    let mut keys: Vec<_> = keys.collect();
    keys.sort_by_key(|keys| keys.public().name);
    let members = keys.iter().map(AuthorityKeys::public).collect();
    (keys, Committee::new(Epoch(epoch), members).unwrap())
}

fn redemption(sequence: u64) -> Redemption {
    Redemption {
        sender: account(1),
        recipient: PrimaryAddress::repeat_byte(9),
        asset: Asset::ETHER,
        amount: Amount(40),
        fee: Amount(3),
        sequence: SequenceNumber(sequence),
        memo: Digest::repeat_byte(5),
    }
}

/// Each with real signatures, by one key under the numbers from 0.
fn committee_instructions() -> Vec<Named> {
    let (domain, epoch) = (DEPLOYMENT.domain(COMMITTEE), Epoch(0));
    let ((keys, _), (_, next)) = (authorities(0), authorities(1));
    let owner = AccountKey::ed25519([6; 32]);
    let (account, sequence, digest) = (owner.account(), SequenceNumber(2), Digest::repeat_byte(4));
    let next = NextCommittee {
        committee: next,
        guardian: PrimaryAddress::repeat_byte(8),
        compromised_since: Epoch(1),
        checkpoint: Digest::ZERO,
        deadline: 1_000,
    };
    let (announcement, id) = (next.announcement(), next.id(&domain));
    let of_one = |keys: &AuthorityKeys| {
        let (vote, _) = sign_redemption_vote(keys, &domain, epoch, &redemption(0));
        let VoteSignature::Redemption { signature } = vote.signature else { panic!("for a redemption") };
        ContractVote { authority: vote.authority, signature }
    };
    let redemptions = vec![redemption(0), redemption(1)];
    let council = |statement: CouncilStatement<'_>| -> Vec<ContractVote> {
        keys[..3].iter().map(|keys| sign_council_vote(keys, &domain, &statement)).collect()
    };
    let unlock = |count: usize, vote: UnlockVote| {
        keys[..count].iter().map(|keys| vote.sign(keys, &domain, epoch, account, sequence)).collect()
    };
    let authorization = owner.authorize(domain.unlock_request_digest(account, sequence));
    let committee = COMMITTEE;
    let actions = [
        (
            "redeem",
            Action::Redeem {
                committee,
                redemption: redemption(0),
                epoch,
                votes: keys[..3].iter().map(of_one).collect(),
            },
        ),
        (
            "redeem a batch",
            Action::RedeemBatch {
                committee,
                redemptions: redemptions.clone(),
                epoch,
                votes: keys[..3].iter().map(|keys| sign_batch_vote(keys, &domain, epoch, &redemptions)).collect(),
            },
        ),
        ("request to unlock", Action::RequestUnlock(UnlockRequest { committee, account, sequence, authorization })),
        (
            "uphold",
            Action::Uphold { committee, account, sequence, digest, votes: unlock(3, UnlockVote::Certificate(digest)) },
        ),
        (
            "void",
            Action::Void {
                committee,
                account,
                sequence,
                unanimous: true,
                votes: unlock(4, UnlockVote::Void { unanimous: true }),
            },
        ),
        (
            "announce",
            Action::Announce(Box::new(Announcing {
                committee,
                next,
                proofs: keys.iter().map(|keys| PossessionProof::new(keys, &domain).into()).collect(),
                votes: council(CouncilStatement::Announcement(&announcement)),
            })),
        ),
        ("endorse", Action::Endorse { committee, announcement: id }),
        ("mature", Action::Mature { committee, announcement: id }),
        (
            "install",
            Action::Install {
                committee,
                announcement: id,
                votes: council(CouncilStatement::Acceptance { epoch: Epoch(1), announcement: id, block_hash: digest }),
            },
        ),
    ];
    let key = AccountKey::ed25519([5; 32]);
    let sign = |(number, (name, action)): (u64, (&str, Action))| {
        let (deployment, shard, signer, sequence) = (DEPLOYMENT, ClusterId(1), key.account(), SequenceNumber(number));
        let instruction = Instruction { deployment, shard, signer, sequence, action };
        let digest = Some(instruction.digest());
        let request = Request::Instruct(Box::new(instruction.signed(&key)));
        Named { name: name.into(), encoding: request.encode().into(), digest }
    };
    (0..).zip(actions).map(sign).collect()
}

fn events() -> Vec<Named> {
    let (account, sequence, digest) = (account(1), SequenceNumber(2), Digest::repeat_byte(4));
    let (committee, asset, amount) = (COMMITTEE, Asset::ETHER, Amount(7));
    let (_, next) = authorities(1);
    let kinds = [
        ("funded", EventKind::Funded(Funding { committee, account, asset, amount, payer: account })),
        ("redeemed", EventKind::Redeemed { redemption: redemption(0), relayer: account }),
        (
            "installed",
            EventKind::Installed {
                committee: next,
                guardian: PrimaryAddress::repeat_byte(8),
                previous_counts_until: Some(Time(9)),
                compromised_since: Epoch(1),
                checkpoint: Digest::ZERO,
            },
        ),
        ("unlock requested", EventKind::UnlockRequested { account, sequence, voidable_from: Time(9) }),
        ("upheld", EventKind::Upheld { account, sequence, digest }),
        ("voided", EventKind::Voided { account, sequence }),
    ];
    let message = |(index, (name, kind)): (u64, (&str, EventKind))| {
        let message = Message::Event(CommitteeEvent { index: TransactionIndex(index), kind });
        Named { name: name.into(), encoding: borsh::to_vec(&message).unwrap().into(), digest: None }
    };
    (1..).zip(kinds).map(message).collect()
}

fn build() -> File {
    let cluster = Cluster::first();
    let header = cluster.header(5, Digest::repeat_byte(1), Digest::repeat_byte(2));
    let votes =
        [(VoteKind::Prevote, Some(header.id())), (VoteKind::Precommit, Some(header.id())), (VoteKind::Precommit, None)];
    let vote = |(kind, value)| {
        let (height, round) = (5, 3);
        let (deployment, cluster) = (header.deployment, header.cluster);
        let statement = VoteStatement { deployment, cluster, height: Height(height), round, kind, value };
        Vote { height, round, precommit: kind == VoteKind::Precommit, value, digest: statement.digest() }
    };
    let key = AccountKey::ed25519([5; 32]);
    let action = Action::Transfer { to: account(1), asset: Asset::ETHER, amount: Amount(7) };
    let (deployment, shard, sequence) = (DEPLOYMENT, ClusterId(1), SequenceNumber(3));
    let instruction = Instruction { deployment, shard, signer: key.account(), sequence, action };
    let request = Request::Instruct(Box::new(instruction.clone().signed(&key)));

    let message = Answer { request: instruction.digest(), result: Ok(Outcome::Transferred) };
    let messages = vec![Message::Answer(message)];
    let group = Group { to: Receiver::Clients, number: 1, previous: Digest::ZERO, messages };
    let outputs: Outputs = cluster.outputs(vec![first_group(), group]);
    let answering = cluster.header(5, Digest::ZERO, outputs.root());
    let certificate = cluster.certify(&answering, 0);
    let proof = AnswerProof::of(&answering, &outputs, &certificate, instruction.digest()).unwrap().encode();
    let about = request.encode();
    let proven = answer(&cluster.members, &proof, &about);

    File {
        deployment: DEPLOYMENT.0,
        contract_of_committee7: DEPLOYMENT.domain(CommitteeNumber(7)).contract(),
        cluster: 1,
        members: cluster.members.keys().iter().map(|key| key.0.into()).collect(),
        votes: votes.map(vote).into(),
        header: Statement { encoding: header.encode().into(), digest: header.made_digest(), id: header.id() },
        instruction: Statement {
            encoding: request.encode().into(),
            digest: instruction.digest(),
            id: request.digest(),
        },
        committee_instructions: committee_instructions(),
        events: events(),
        compact_decisions: decisions(&cluster),
        answer: Proof { name: "an answer".into(), about: about.into(), encoding: proof.into(), verdict: proven },
        reads: reads(&cluster),
    }
}

#[test]
fn the_file_is_what_the_code_builds_and_is_judged_from_its_text_alone() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/ledger.json");
    let text = serde_json::to_string_pretty(&build()).unwrap() + "\n";
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap();
    assert!(found == text, "vectors/ledger.json is not what the code builds; if that is meant, set UPDATE_VECTORS=1");

    let file: File = serde_json::from_str(&found).unwrap();
    let deployment = Deployment(file.deployment);
    assert_eq!(deployment.domain(CommitteeNumber(7)).contract(), file.contract_of_committee7);
    let keys = file.members.iter().map(|key| MemberKey(key.0)).collect();
    let members = Members::new(deployment, ClusterId(file.cluster), keys).unwrap();
    let header = Header::decode(&file.header.encoding).unwrap();
    assert_eq!((header.made_digest(), header.id()), (file.header.digest, file.header.id));
    for vote in &file.votes {
        let kind = if vote.precommit { VoteKind::Precommit } else { VoteKind::Prevote };
        let (cluster, height) = (members.cluster(), Height(vote.height));
        let statement = VoteStatement { deployment, cluster, height, round: vote.round, kind, value: vote.value };
        assert_eq!(statement.digest(), vote.digest);
    }
    let request = Request::decode(&file.instruction.encoding).unwrap().verify(deployment).unwrap();
    assert_eq!(request.digest(), file.instruction.digest);
    for Named { name, encoding, digest } in &file.committee_instructions {
        let request = Request::decode(encoding).unwrap().verify(deployment).unwrap();
        assert_eq!(Some(request.digest()), *digest, "{name}");
    }
    for (Named { name, encoding, .. }, index) in file.events.iter().zip(1..) {
        let Message::Event(event) = borsh::from_slice(encoding).unwrap() else { panic!("{name}") };
        assert_eq!(event.index, TransactionIndex(index), "{name}");
    }
    for decision in &file.compact_decisions {
        let cursor = Cursor { next: decision.next, previous: decision.previous };
        assert_eq!(open(&members, &decision.encoding, cursor), decision.verdict, "{}", decision.name);
        assert_eq!(decision.verdict.is_ok(), decision.name.starts_with("valid"), "{}", decision.name);
    }
    assert_eq!(answer(&members, &file.answer.encoding, &file.answer.about), file.answer.verdict);
    assert!(file.answer.verdict.is_ok());
    for proof in &file.reads {
        assert_eq!(read(&members, &proof.encoding, &proof.about), proof.verdict, "{}", proof.name);
    }
    assert_eq!(file.reads.iter().map(|read| read.verdict.is_ok()).collect::<Vec<_>>(), [true, true, false]);
}
