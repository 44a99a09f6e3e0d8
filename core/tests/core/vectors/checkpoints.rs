//! `checkpoints.json`: states, a segment and a recovery as they are stored, leaves with their paths, the statement that
//! members sign, and certificates, valid or not.

use alloy_primitives::{B256, Bytes};
use fastpay_core::checkpoint::{
    Checkpoint, CheckpointCertificate, CheckpointState, CheckpointVote, Installations, InstalledCommittee, Leaf,
    LeafPath, PrimaryEvent, PrimaryEventKind, Segment, SegmentEntry,
};
use fastpay_core::{
    Amount, Asset, Authority, Balance, Committee, Digest, Ed25519Signature, Epoch, PrimaryAddress, Redemption,
    SequenceNumber, TransactionIndex, Transfer,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, payout, redemption, test_domain};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::{json, pinned};
use crate::streamed;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    domain: json::Domain,
    committee: Vec<Authority>,
    /// S_0, and the checkpoint that nobody signs.
    first_state: Bytes,
    first: Statement,
    segment: Bytes,
    state: Bytes,
    checkpoint: Statement,
    /// A recovery after S_0, and the state to which it leads.
    recovery: Bytes,
    recovered: Bytes,
    leaves: Vec<LeafCase>,
    certificates: Vec<CertificateCase>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Statement {
    epoch: u64,
    number: u64,
    previous: B256,
    transaction_index: u64,
    cut: B256,
    state: B256,
    segment: B256,
    /// By which it is identified.
    digest: B256,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeafCase {
    name: String,
    /// Its kind byte, and its fields.
    leaf: Bytes,
    directions: u64,
    siblings: Vec<B256>,
    root: B256,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CertificateCase {
    name: String,
    checkpoint: Statement,
    votes: Vec<VoteCase>,
    valid: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VoteCase {
    authority: B256,
    signature: Bytes,
}

impl From<&Checkpoint> for Statement {
    fn from(checkpoint: &Checkpoint) -> Self {
        let Checkpoint { epoch, number, previous, up_to, cut, state, segment } = *checkpoint;
        let digest = test_domain().checkpoint_digest(checkpoint);
        Self { epoch: epoch.0, number, previous, transaction_index: up_to.0, cut, state, segment, digest }
    }
}

impl Statement {
    fn read(&self) -> Checkpoint {
        let Self { epoch, number, previous, transaction_index, cut, state, segment, .. } = *self;
        Checkpoint {
            epoch: Epoch(epoch),
            number,
            previous,
            up_to: TransactionIndex(transaction_index),
            cut,
            state,
            segment,
        }
    }
}

#[test]
fn checkpoints() {
    let file = pinned("checkpoints.json", &build());
    let (domain, rng) = (file.domain.read(), &mut StdRng::seed_from_u64(1));
    let committee = Committee::new(Epoch(0), file.committee).unwrap();

    let before = CheckpointState::read(&mut &file.first_state[..]).unwrap();
    assert_eq!(before, CheckpointState::new(committee.clone()).unwrap());
    let first = Checkpoint::first(&before.summary());
    assert_eq!(first, file.first.read());
    let recovery = Segment::read(&mut &file.recovery[..]).unwrap();
    let streamed = streamed::apply(&before, &recovery, &domain).unwrap();
    let (recovered, root) = before.clone().apply(recovery, &domain, rng).unwrap();
    assert_eq!(streamed, (file.recovered.to_vec(), recovered.summary(), root));
    assert_eq!(recovered, CheckpointState::read(&mut &file.recovered[..]).unwrap());
    let segment = Segment::read(&mut &file.segment[..]).unwrap();
    let streamed = streamed::apply(&before, &segment, &domain).unwrap();
    let (state, root) = before.apply(segment, &domain, rng).unwrap();
    assert_eq!(streamed, (file.state.to_vec(), state.summary(), root));
    assert_eq!(state, CheckpointState::read(&mut &file.state[..]).unwrap());
    let checkpoint = first.next(&domain, Epoch(0), &state.summary(), root).unwrap();
    assert_eq!(checkpoint, file.checkpoint.read());
    for statement in [&file.first, &file.checkpoint] {
        assert_eq!(domain.checkpoint_digest(&statement.read()), statement.digest);
    }
    for case in &file.leaves {
        let path = LeafPath { directions: case.directions, siblings: case.siblings.clone() };
        assert_eq!(reference_root(&case.leaf, &path), case.root, "{}", case.name);
        assert_eq!(borsh::from_slice::<Leaf>(&case.leaf).unwrap().root(&path), Some(case.root), "{}", case.name);
        assert!([checkpoint.cut, checkpoint.state, checkpoint.segment].contains(&case.root), "{}", case.name);
    }
    let installations = Installations::new(committee).unwrap();
    for case in file.certificates {
        let votes = case.votes.iter().map(|vote| CheckpointVote {
            authority: fastpay_core::AuthorityName(vote.authority.0),
            signature: Ed25519Signature(vote.signature[..].try_into().unwrap()),
        });
        let certificate = CheckpointCertificate { checkpoint: case.checkpoint.read(), votes: votes.collect() };
        assert_eq!(certificate.verify(&domain, &installations).is_ok(), case.valid, "{}", case.name);
    }
}

/// The root as docs/PROTOCOL.md defines it, from the leaf's bytes alone.
fn reference_root(leaf: &[u8], path: &LeafPath) -> B256 {
    let hash = |parts: &[&[u8]]| B256::new(*blake3::hash(&parts.concat()).as_bytes());
    let mut root = hash(&[&[0], leaf]);
    for (level, sibling) in path.siblings.iter().enumerate() {
        root = match path.directions >> level & 1 {
            1 => hash(&[&[1], sibling.as_slice(), root.as_slice()]),
            _ => hash(&[&[1], root.as_slice(), sibling.as_slice()]),
        };
    }
    root
}

fn build() -> File {
    let committee = TestCommittee::new(4);
    let before = CheckpointState::new(committee.committee.clone()).unwrap();
    let first = Checkpoint::first(&before.summary());
    let segment = segment();
    let (state, root) = before.clone().apply(segment.clone(), &test_domain(), &mut StdRng::seed_from_u64(0)).unwrap();
    let checkpoint = first.next(&test_domain(), Epoch(0), &state.summary(), root).unwrap();
    let (mut of_first, mut of_segment, mut of_state) = (Vec::new(), Vec::new(), Vec::new());
    before.write(&mut of_first).unwrap();
    segment.write(&mut of_segment).unwrap();
    state.write(&mut of_state).unwrap();
    let (mut of_recovery, mut of_recovered) = (Vec::new(), Vec::new());
    recovery().write(&mut of_recovery).unwrap();
    let recovered = before.clone().apply(recovery(), &test_domain(), &mut StdRng::seed_from_u64(0)).unwrap().0;
    recovered.write(&mut of_recovered).unwrap();
    File {
        domain: test_domain().into(),
        committee: committee.committee.members().to_vec(),
        first_state: of_first.into(),
        first: (&first).into(),
        segment: of_segment.into(),
        state: of_state.into(),
        checkpoint: (&checkpoint).into(),
        recovery: of_recovery.into(),
        recovered: of_recovered.into(),
        leaves: leaves(&state, &segment),
        certificates: certificates(&committee, &checkpoint),
    }
}

/// Every kind of event and number.
fn segment() -> Segment {
    let id = |number| TestAccount::numbered(number).id();
    let sign = |number, transfer: Transfer| {
        SegmentEntry::Executed(TestAccount::numbered(number).sign(&test_domain(), transfer))
    };
    let redeems = |amount, number| redemption(id(0), PrimaryAddress::repeat_byte(7), amount, number);
    let digest = |number| test_domain().transfer_digest(&redeems(5, number).into());
    let about = |account, sequence| (id(account), SequenceNumber(sequence));
    let next = TestCommittee::with(4, test_domain(), Epoch(1)).committee;
    let installed =
        InstalledCommittee { committee: next, compromised_since: Epoch(1), checkpoint: Digest::repeat_byte(0xC4) };
    let deposit = |recipient, asset| PrimaryEventKind::Deposit { recipient, asset, amount: Amount(1_000) };
    let requested =
        |(account, sequence), is_authorized| PrimaryEventKind::UnlockRequested { account, sequence, is_authorized };
    let (upheld, voided, paid, waiting, released) = (about(1, 4), about(0, 0), about(0, 1), about(0, 2), about(0, 3));
    let kinds = [
        deposit(id(0), Asset::ETHER),
        deposit(id(1), Asset(PrimaryAddress::repeat_byte(0x70))),
        requested(upheld, true),
        requested(about(1, 5), false),
        PrimaryEventKind::Upheld { account: upheld.0, sequence: upheld.1, digest: Digest::repeat_byte(0xD1) },
        requested(voided, true),
        PrimaryEventKind::Voided { account: voided.0, sequence: voided.1 },
        PrimaryEventKind::Redeemed { account: paid.0, sequence: paid.1, digest: digest(1) },
        PrimaryEventKind::Queued { account: waiting.0, sequence: waiting.1, digest: digest(2) },
        PrimaryEventKind::Queued { account: released.0, sequence: released.1, digest: digest(3) },
        PrimaryEventKind::Installed(installed),
        PrimaryEventKind::Released { account: released.0, sequence: released.1, digest: digest(3) },
        PrimaryEventKind::Queued { account: id(1), sequence: SequenceNumber(6), digest: Digest::repeat_byte(0xD2) },
    ];
    let events = (1..)
        .zip(kinds)
        .map(|(index, kind)| SegmentEntry::Event(PrimaryEvent { index: TransactionIndex(index), kind }));
    let of_first = [
        SegmentEntry::Void { account: voided.0, sequence: voided.1 },
        sign(0, redeems(5, 1).into()),
        sign(0, redeems(5, 2).into()),
        sign(0, redeems(5, 3).into()),
        sign(0, payout(id(0), &[(id(1), 3), (id(2), 4)], 4).into()),
    ];
    let of_second = [sign(1, payment(id(1), id(2), 2, 0).into())];
    let numbers = match id(0) < id(1) {
        true => [&of_first[..], &of_second].concat(),
        false => [&of_second[..], &of_first].concat(),
    };
    Segment { entries: events.chain(numbers).collect() }
}

/// An account owes, and a number that was queued is behind a gap.
fn recovery() -> Segment {
    let id = TestAccount::numbered(0).id();
    let redeems = |amount, number| redemption(id, PrimaryAddress::repeat_byte(7), amount, number);
    let (paid, waiting) = (redeems(15, 0), redeems(5, 2));
    let digest = |redemption: &Redemption| test_domain().transfer_digest(&redemption.clone().into());
    let next = TestCommittee::with(4, test_domain(), Epoch(1)).committee;
    let installed = InstalledCommittee { committee: next, compromised_since: Epoch(0), checkpoint: Digest::ZERO };
    let event = |index, kind| SegmentEntry::Event(PrimaryEvent { index: TransactionIndex(index), kind });
    let deposit = PrimaryEventKind::Deposit { recipient: id, asset: Asset::ETHER, amount: Amount(10) };
    let redeemed = PrimaryEventKind::Redeemed { account: id, sequence: paid.sequence, digest: digest(&paid) };
    let queued = PrimaryEventKind::Queued { account: id, sequence: waiting.sequence, digest: digest(&waiting) };
    let events = [event(1, deposit), event(2, redeemed), event(3, queued)];
    let numbers = [SegmentEntry::Paid(paid), SegmentEntry::Paid(waiting)];
    let end = event(4, PrimaryEventKind::Installed(installed));
    let start = std::iter::once(SegmentEntry::Recovery);
    Segment { entries: start.chain(events).chain(numbers).chain([end]).collect() }
}

fn leaves(state: &CheckpointState, segment: &Segment) -> Vec<LeafCase> {
    let id = TestAccount::numbered(2).id();
    let next = Leaf::Next(TestAccount::numbered(0).id(), SequenceNumber(5));
    let held = Leaf::Balance(id, Asset::ETHER, Balance::from(Amount(6)));
    let order = segment.entries.last().unwrap().leaf();
    let cases = [
        ("a next number, in the cut", &next, state.cut().path(&next)),
        ("the same, in the state", &next, state.path(&next)),
        ("a balance, in the state", &held, state.path(&held)),
        ("an order, in the segment", &order, segment.path(&order)),
    ];
    let case = |(name, leaf, path): (&str, &Leaf, Option<LeafPath>)| {
        let path = path.unwrap();
        LeafCase {
            name: name.into(),
            leaf: borsh::to_vec(leaf).unwrap().into(),
            root: leaf.root(&path).unwrap(),
            directions: path.directions,
            siblings: path.siblings,
        }
    };
    cases.into_iter().map(case).collect()
}

fn certificates(committee: &TestCommittee, checkpoint: &Checkpoint) -> Vec<CertificateCase> {
    let case = |name: &str, checkpoint: Checkpoint, signed: Checkpoint, members: &[usize], valid| CertificateCase {
        name: name.into(),
        checkpoint: (&checkpoint).into(),
        votes: members
            .iter()
            .map(|at| {
                let vote = signed.sign(&committee.keys[*at], &test_domain());
                VoteCase { authority: vote.authority.0.into(), signature: vote.signature.0.to_vec().into() }
            })
            .collect(),
        valid,
    };
    let signed = *checkpoint;
    let other = Digest::repeat_byte(1);
    let altered = |name, checkpoint| case(name, checkpoint, signed, &[0, 1, 2], false);
    vec![
        case("a quorum", signed, signed, &[0, 1, 2], true),
        case("another quorum", signed, signed, &[1, 2, 3], true),
        case("too few votes", signed, signed, &[0, 1], false),
        case("too many votes", signed, signed, &[0, 1, 2, 3], false),
        case("a vote twice", signed, signed, &[0, 1, 1], false),
        case("unsorted votes", signed, signed, &[1, 0, 2], false),
        altered("another number", Checkpoint { number: 2, ..signed }),
        altered("another previous one", Checkpoint { previous: other, ..signed }),
        altered("another index", Checkpoint { up_to: TransactionIndex(14), ..signed }),
        altered("another cut", Checkpoint { cut: other, ..signed }),
        altered("another state", Checkpoint { state: other, ..signed }),
        altered("another segment", Checkpoint { segment: other, ..signed }),
        case("an epoch that is not known", Checkpoint { epoch: Epoch(1), ..signed }, signed, &[0, 1, 2], false),
    ]
}
