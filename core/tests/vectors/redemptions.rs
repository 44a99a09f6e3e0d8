//! `redemptions.json`: redemption certificates as the contract takes them, good and bad. The Foundry
//! tests read the same file and must come to the same verdicts.

use alloy_primitives::{Address, B256, Bytes};
use fastpay_core::{
    AccountId, Amount, Asset, Authority, AuthorityKeys, Authorization, Certificate, Committee, ContractVote, Domain,
    EcdsaSignature, Epoch, PrimaryAddress, Redemption, SequenceNumber, Transfer, VerifiedContractVote, Vote,
    VoteSignature, encode_redemption_votes, sign_batch_vote, sign_committee_vote, sign_vote,
};
use fastpay_testkit::{TestAccount, TestCommittee, redemption, secret, test_domain};
use serde::{Deserialize, Serialize};

use crate::{ecdsa, json, pinned};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    domain: json::Domain,
    epoch: u64,
    committee: Vec<Authority>,
    cases: Vec<Case>,
    batches: Vec<Batch>,
    rotations: Vec<Rotation>,
}

/// Redemptions under one vote of a quorum each.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Batch {
    name: String,
    redemptions: Vec<json::Redemption>,
    epoch: String,
    vote_digest: B256,
    votes: Bytes,
    valid: bool,
}

/// The committee's votes for the one that is to follow it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rotation {
    name: String,
    epoch: String,
    authorities: Vec<Authority>,
    guardian: PrimaryAddress,
    vote_digest: B256,
    votes: Bytes,
    valid: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    redemption: json::Redemption,
    epoch: String,
    order_digest: B256,
    vote_digest: B256,
    votes: Bytes,
    valid: bool,
}

/// The ERC-20 of the cases.
const TOKEN: Asset = Asset(Address::repeat_byte(0x70));
/// Who is paid.
const RECIPIENT: PrimaryAddress = PrimaryAddress::repeat_byte(0xBE);

#[test]
fn redemptions() {
    let file = pinned("redemptions.json", &build());
    let domain = file.domain.read();
    let committee = Committee::new(Epoch(file.epoch), file.committee).unwrap();
    for case in &file.cases {
        let redemption = case.redemption.read();
        let epoch = Epoch(case.epoch.parse().unwrap());
        let transfer = Transfer::Redemption(redemption.clone());
        assert_eq!(domain.transfer_digest(&transfer), case.order_digest, "{}", case.name);
        assert_eq!(domain.redemption_vote_digest(epoch, &redemption), case.vote_digest, "{}", case.name);
        let verdict = judge(&domain, &committee, transfer, epoch, &case.votes);
        assert_eq!(verdict.is_ok(), case.valid, "{}: {verdict:?}", case.name);
    }
    for batch in &file.batches {
        let redemptions: Vec<Redemption> = batch.redemptions.iter().map(json::Redemption::read).collect();
        let digest = domain.redemption_batch_vote_digest(Epoch(batch.epoch.parse().unwrap()), &redemptions);
        assert_eq!(digest, batch.vote_digest, "{}", batch.name);
        // An empty batch has a digest and a quorum can sign it; the contract has nothing to do then.
        assert_eq!(
            is_quorum(&committee, digest, &batch.votes) && !redemptions.is_empty(),
            batch.valid,
            "{}",
            batch.name
        );
    }
    for rotation in &file.rotations {
        let epoch = Epoch(rotation.epoch.parse().unwrap());
        let next = Committee::new(epoch, rotation.authorities.clone()).unwrap();
        assert_eq!(next.members(), rotation.authorities, "{}", rotation.name);
        let digest = domain.committee_vote_digest(&next, rotation.guardian);
        assert_eq!(digest, rotation.vote_digest, "{}", rotation.name);
        assert_eq!(is_quorum(&committee, digest, &rotation.votes), rotation.valid, "{}", rotation.name);
    }
    let valid = file.cases.iter().filter(|case| case.valid).count();
    assert!(valid >= 8 && file.cases.len() - valid >= 25);
}

/// Is this a certificate? The contract never sees the sender's signature, so the file has none: the
/// sender signs here.
fn judge(
    domain: &Domain,
    committee: &Committee,
    transfer: Transfer,
    epoch: Epoch,
    packed: &[u8],
) -> Result<(), String> {
    let sender = accounts().find(|account| account.id() == transfer.sender()).ok_or("unknown sender")?;
    let order = sender.sign(domain, transfer);
    let votes = unpack(committee, packed).ok_or("the votes are malformed")?;
    if encode_redemption_votes(committee, &votes).as_deref() != Some(packed) {
        return Err("the votes have another encoding".into());
    }
    let certificate = Certificate { order, epoch, votes };
    certificate.verify(domain, committee).map(drop).map_err(|error| error.to_string())
}

/// Whether these are the packed votes of a quorum on this digest.
fn is_quorum(committee: &Committee, digest: B256, packed: &[u8]) -> bool {
    let Some(votes) = unpack(committee, packed) else { return false };
    let verified = votes.iter().map(|vote| {
        let VoteSignature::Redemption { signature } = vote.signature else { panic!("a vote for the contract") };
        ContractVote { authority: vote.authority, signature }.verify(committee, digest).ok()
    });
    let Some(verified) = verified.collect::<Option<Vec<_>>>() else { return false };
    VerifiedContractVote::quorum(committee, digest, &verified).as_deref() == Some(packed)
}

/// Reads the packed votes: for each, the member's index in one byte, and 65 bytes of signature.
fn unpack(committee: &Committee, packed: &[u8]) -> Option<Vec<Vote>> {
    let (votes, rest) = packed.as_chunks::<66>();
    let vote = |bytes: &[u8; 66]| {
        let member = committee.members().get(usize::from(bytes[0]))?;
        let signature = VoteSignature::Redemption { signature: json::read_ecdsa(&bytes[1..]) };
        Some(Vote { authority: member.name, signature })
    };
    if rest.is_empty() { votes.iter().map(vote).collect() } else { None }
}

fn accounts() -> impl Iterator<Item = TestAccount> {
    (0..4).map(TestAccount::numbered)
}

fn build() -> File {
    let committee = TestCommittee::new(4);
    let cases = good(&committee)
        .into_iter()
        .chain(bad_votes(&committee))
        .chain(bad_signatures(&committee))
        .chain(bad_statements(&committee));
    File {
        domain: committee.domain.into(),
        epoch: committee.committee.epoch().0,
        committee: committee.committee.members().to_vec(),
        cases: cases.collect(),
        batches: batches(&committee),
        rotations: rotations(&committee),
    }
}

fn batches(committee: &TestCommittee) -> Vec<Batch> {
    let (domain, one) = (committee.domain, plain());
    let token = Redemption { asset: TOKEN, sequence: SequenceNumber(0), ..plain() };
    let other = redemption(TestAccount::numbered(3).id(), RECIPIENT, 9, 256);
    let all = [one.clone(), token.clone(), other.clone()];
    let votes = |epoch: u64, redemptions: &[Redemption], members: &[usize]| -> Vec<u8> {
        let sign = |index: &usize| {
            packed(*index, sign_batch_vote(&committee.keys[*index], &domain, Epoch(epoch), redemptions).signature)
        };
        members.iter().flat_map(sign).collect()
    };
    let batch = |name: &str, redemptions: &[Redemption], votes: Vec<u8>, valid: bool| Batch {
        name: name.into(),
        redemptions: redemptions.iter().map(Into::into).collect(),
        epoch: "0".into(),
        vote_digest: domain.redemption_batch_vote_digest(Epoch(0), redemptions),
        votes: votes.into(),
        valid,
    };
    let quorum = [0, 1, 2];
    let swapped = [token.clone(), one.clone(), other.clone()];
    vec![
        batch("a batch of one", &all[..1], votes(0, &all[..1], &quorum), true),
        batch("a batch of three", &all, votes(0, &all, &[0, 2, 3]), true),
        batch("the same one twice", &[one.clone(), one.clone()], votes(0, &[one.clone(), one.clone()], &quorum), true),
        batch("none", &[], votes(0, &[], &quorum), false),
        batch("too few votes", &all, votes(0, &all, &[0, 1]), false),
        batch("too many votes", &all, votes(0, &all, &[0, 1, 2, 3]), false),
        batch("a vote twice", &all, votes(0, &all, &[0, 1, 1]), false),
        batch("unsorted votes", &all, votes(0, &all, &[1, 0, 2]), false),
        batch("another order of the redemptions", &swapped, votes(0, &all, &quorum), false),
        batch("one left out", &all[..2], votes(0, &all, &quorum), false),
        batch("one added", &all, votes(0, &all[..2], &quorum), false),
        batch("votes of another epoch", &all, votes(1, &all, &quorum), false),
        batch("votes for the redemption alone", &all[..1], self::votes(committee, &one, &quorum), false),
    ]
}

fn rotations(committee: &TestCommittee) -> Vec<Rotation> {
    let domain = committee.domain;
    let (next, larger) = (committee.rotated(), committee.rotated_to(7));
    let (guardian, nobody) = (PrimaryAddress::repeat_byte(0x6A), PrimaryAddress::ZERO);
    let votes = |next: &Committee, guardian: PrimaryAddress, members: &[usize]| -> Vec<u8> {
        let sign = |index: &usize| {
            packed(*index, sign_committee_vote(&committee.keys[*index], &domain, next, guardian).signature)
        };
        members.iter().flat_map(sign).collect()
    };
    let rotation = |name: &str, next: &Committee, guardian, votes: Vec<u8>, valid: bool| Rotation {
        name: name.into(),
        epoch: next.epoch().to_string(),
        authorities: next.members().to_vec(),
        guardian,
        vote_digest: domain.committee_vote_digest(next, guardian),
        votes: votes.into(),
        valid,
    };
    let (next, larger) = (next.committee, larger.committee);
    let after_next = Committee::new(Epoch(2), next.members().to_vec()).unwrap();
    let quorum = [0, 1, 2];
    vec![
        rotation("new keys", &next, guardian, votes(&next, guardian, &quorum), true),
        rotation("new keys, and nobody who can pause", &next, nobody, votes(&next, nobody, &[1, 2, 3]), true),
        rotation("more authorities", &larger, guardian, votes(&larger, guardian, &[0, 1, 3]), true),
        rotation("too few votes", &next, guardian, votes(&next, guardian, &[0, 1]), false),
        rotation("too many votes", &next, guardian, votes(&next, guardian, &[0, 1, 2, 3]), false),
        rotation("a vote twice", &next, guardian, votes(&next, guardian, &[0, 0, 1]), false),
        rotation("another guardian", &next, nobody, votes(&next, guardian, &quorum), false),
        rotation("other authorities", &next, guardian, votes(&larger, guardian, &quorum), false),
        rotation("votes for the epoch after", &next, guardian, votes(&after_next, guardian, &quorum), false),
    ]
}

fn case(name: &str, redemption: &Redemption, epoch: u64, votes: Vec<u8>, valid: bool) -> Case {
    let domain = test_domain();
    Case {
        name: name.into(),
        redemption: redemption.into(),
        epoch: epoch.to_string(),
        order_digest: domain.transfer_digest(&Transfer::Redemption(redemption.clone())),
        vote_digest: domain.redemption_vote_digest(Epoch(epoch), redemption),
        votes: votes.into(),
        valid,
    }
}

/// The signatures of these members, packed with their indices.
fn votes(committee: &TestCommittee, redemption: &Redemption, members: &[usize]) -> Vec<u8> {
    members.iter().flat_map(|index| packed(*index, signature(committee, *index, redemption))).collect()
}

fn packed(index: usize, signature: EcdsaSignature) -> Vec<u8> {
    [&[u8::try_from(index).unwrap()], signature.0.as_slice()].concat()
}

fn signature(committee: &TestCommittee, index: usize, redemption: &Redemption) -> EcdsaSignature {
    signed_by(&committee.keys[index], committee, redemption)
}

fn signed_by(keys: &AuthorityKeys, committee: &TestCommittee, redemption: &Redemption) -> EcdsaSignature {
    let transfer = Transfer::Redemption(redemption.clone());
    let vote = sign_vote(keys, &committee.domain, committee.committee.epoch(), &transfer, B256::ZERO);
    let VoteSignature::Redemption { signature } = vote.signature else { panic!("a vote for a redemption") };
    signature
}

/// The redemption that the bad cases are made of.
fn plain() -> Redemption {
    Redemption {
        fee: Amount(25),
        memo: B256::repeat_byte(0x4D),
        ..redemption(TestAccount::numbered(0).id(), RECIPIENT, 1_000_000, 7)
    }
}

fn good(committee: &TestCommittee) -> Vec<Case> {
    let [ed25519, ethereum] = [2, 3].map(|number| TestAccount::numbered(number).id());
    let of = |sender: AccountId, amount, sequence| redemption(sender, RECIPIENT, amount, sequence);
    let case = |name: &str, redemption: Redemption, members: &[usize]| {
        case(name, &redemption, 0, votes(committee, &redemption, members), true)
    };
    vec![
        case("a redemption", plain(), &[0, 1, 2]),
        case("no fee, by an Ed25519 account", of(ed25519, 1_000, 0), &[0, 1, 3]),
        case("no fee, by an Ethereum account", of(ethereum, 1_000, 0), &[0, 2, 3]),
        case("all of it a fee", Redemption { fee: Amount(77), ..of(ed25519, 77, 1) }, &[1, 2, 3]),
        case("the smallest amount", of(ed25519, 1, 2), &[0, 1, 2]),
        case("a token", Redemption { asset: TOKEN, ..of(ed25519, 5_000_000, 3) }, &[0, 1, 2]),
        case(
            "a token with a fee, by an Ethereum account",
            Redemption { asset: TOKEN, fee: Amount(3), ..of(ethereum, 5_000_000, 1) },
            &[1, 2, 3],
        ),
        case("the largest amount of ETH that the contract can hold", of(ethereum, (1 << 88) - 1, 2), &[0, 1, 2]),
        case(
            "the largest amount of a token",
            Redemption { asset: TOKEN, fee: Amount(1), ..of(ethereum, i128::MAX.unsigned_abs(), 3) },
            &[0, 1, 3],
        ),
        case("a high sequence number", of(ed25519, 9, u64::MAX - 1), &[0, 1, 2]),
        case("the end of a word of sequence numbers", of(ed25519, 9, 255), &[0, 1, 2]),
        case("the begin of the next word", of(ed25519, 9, 256), &[0, 1, 2]),
        case("a memo of ones", Redemption { memo: B256::repeat_byte(0xFF), ..of(ethereum, 9, 4) }, &[0, 1, 2]),
    ]
}

/// Votes that are each good, but are no quorum.
fn bad_votes(committee: &TestCommittee) -> Vec<Case> {
    let by = |members: &[usize]| votes(committee, &plain(), members);
    let case = |name: &str, votes: Vec<u8>| case(name, &plain(), 0, votes, false);
    let truncated = {
        let mut bytes = by(&[0, 1, 2]);
        bytes.pop();
        bytes
    };
    let relabelled = {
        let mut bytes = by(&[0, 1, 2]);
        bytes[2 * 66] = 3;
        bytes
    };
    let beyond = {
        let mut bytes = by(&[0, 1, 3]);
        bytes[2 * 66] = 4;
        bytes
    };
    vec![
        case("no votes", Vec::new()),
        case("too few votes", by(&[0, 1])),
        case("too many votes", by(&[0, 1, 2, 3])),
        case("a vote twice", by(&[0, 1, 1])),
        case("a vote twice, apart", by(&[0, 1, 0])),
        case("unsorted votes", by(&[1, 0, 2])),
        case("votes in descending order", by(&[3, 2, 1])),
        case("a byte too few", truncated),
        case("a byte too many", [by(&[0, 1, 2]), vec![0]].concat()),
        case("a vote under another member's index", relabelled),
        case("an index that no member has", beyond),
        case("the highest index", [by(&[0, 1]), packed(255, signature(committee, 2, &plain()))].concat()),
    ]
}

/// A quorum of votes, of which the last has a bad signature.
fn bad_signatures(committee: &TestCommittee) -> Vec<Case> {
    let good = signature(committee, 2, &plain());
    let changed = |change: &dyn Fn(&mut [u8; 65])| {
        let mut bytes = good.0;
        change(&mut bytes);
        EcdsaSignature(bytes)
    };
    let case = |name: &str, last: EcdsaSignature| {
        let bytes = [votes(committee, &plain(), &[0, 1]), packed(2, last)].concat();
        case(name, &plain(), 0, bytes, false)
    };
    let outsider = AuthorityKeys::from_secrets(secret(3, 99), secret(4, 99)).unwrap();
    vec![
        case("a signature by a stranger", signed_by(&outsider, committee, &plain())),
        case("a signature by another member", signature(committee, 1, &plain())),
        case("a signature with a high s", ecdsa::high_s(good)),
        case("a signature with v counted from 0", changed(&|bytes| bytes[64] -= 27)),
        case("a signature with the other v", changed(&|bytes| bytes[64] = 27 + 28 - bytes[64])),
        case("a signature with v = 0", changed(&|bytes| bytes[64] = 0)),
        case("a signature with v = 1", changed(&|bytes| bytes[64] = 1)),
        case("a signature with v = 29", changed(&|bytes| bytes[64] = 29)),
        case("a signature with v = 255", changed(&|bytes| bytes[64] = 255)),
        case("a signature with a bit of r changed", changed(&|bytes| bytes[3] ^= 1)),
        case("a signature with a bit of s changed", changed(&|bytes| bytes[40] ^= 1)),
        case("a signature with r = 0", changed(&|bytes| bytes[..32].fill(0))),
        case("a signature with s = 0", changed(&|bytes| bytes[32..64].fill(0))),
        case("a signature with r and s beyond the group's order", changed(&|bytes| bytes[..64].fill(0xFF))),
        case("a signature of zeros", EcdsaSignature([0; 65])),
        case("a signature on the order, not on the vote", order_signature(committee)),
    ]
}

/// What the member at index 2 signs when it takes the order's digest for the vote's.
fn order_signature(committee: &TestCommittee) -> EcdsaSignature {
    let redemption_key = committee.keys[2].public().redemption_key;
    let as_account = (1..=4)
        .map(|number| fastpay_core::AccountKey::ethereum(secret(4, number)).unwrap())
        .find(|key| key.account() == AccountId::from_ethereum(redemption_key));
    let order = as_account.unwrap().order(&committee.domain, plain().into());
    let Authorization::Ethereum { signature } = order.authorization else { panic!("an Ethereum account") };
    signature
}

/// Good signatures of a quorum, on something else.
fn bad_statements(committee: &TestCommittee) -> Vec<Case> {
    let quorum = [0, 1, 2];
    let signed = votes(committee, &plain(), &quorum);
    let altered = |name: &str, redemption: Redemption| case(name, &redemption, 0, signed.clone(), false);
    let elsewhere = |name: &str, domain: Domain, epoch: Epoch| {
        let other = TestCommittee::with(4, domain, epoch);
        case(name, &plain(), 0, votes(&other, &plain(), &quorum), false)
    };
    let itself =
        |name: &str, redemption: Redemption| case(name, &redemption, 0, votes(committee, &redemption, &quorum), false);
    let next_epoch = TestCommittee::with(4, test_domain(), Epoch(1));
    vec![
        altered("another amount", Redemption { amount: Amount(1_000_001), ..plain() }),
        altered("another fee", Redemption { fee: Amount(26), ..plain() }),
        altered("another recipient", Redemption { recipient: PrimaryAddress::repeat_byte(0xBF), ..plain() }),
        altered("another asset", Redemption { asset: TOKEN, ..plain() }),
        altered("another sequence number", Redemption { sequence: SequenceNumber(8), ..plain() }),
        altered("another memo", Redemption { memo: B256::ZERO, ..plain() }),
        altered("another sender", Redemption { sender: TestAccount::numbered(1).id(), ..plain() }),
        elsewhere("signed for another epoch", test_domain(), Epoch(1)),
        elsewhere("signed for another chain", Domain::new(1, test_domain().contract()), Epoch(0)),
        elsewhere("signed for another contract", Domain::new(31337, PrimaryAddress::repeat_byte(0xFB)), Epoch(0)),
        case("of an epoch without committee", &plain(), 1, votes(&next_epoch, &plain(), &quorum), false),
        case("moved to an epoch without committee", &plain(), 1, signed.clone(), false),
        itself("an amount of zero", Redemption { amount: Amount(0), fee: Amount(0), ..plain() }),
        itself("a fee above the amount", Redemption { fee: Amount(1_000_001), ..plain() }),
    ]
}
