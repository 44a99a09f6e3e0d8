//! `redemptions.json`: redemption certificates as the contract takes them, good and bad. The Foundry
//! tests read the same file and must come to the same verdicts.

use alloy_primitives::{Address, B256, Bytes};
use fastpay_core::{
    AccountId, Amount, Announcement, Asset, Authority, AuthorityKeys, Authorization, Certificate, Committee,
    ContractVote, CouncilStatement, Domain, EcdsaSignature, Ed25519Signature, Epoch, PossessionProof, PrimaryAddress,
    Redemption, SequenceNumber, Transfer, VerifiedContractVote, Vote, VoteSignature, encode_redemption_votes,
    sign_batch_vote, sign_council_vote, sign_vote,
};
use fastpay_testkit::{TestAccount, TestCommittee, redemption, secret, test_domain};
use serde::{Deserialize, Serialize};

use super::{ecdsa, json, pinned};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    domain: json::Domain,
    epoch: u64,
    committee: Vec<Authority>,
    cases: Vec<Case>,
    batches: Vec<Batch>,
    rotations: Vec<Rotation>,
    statements: Statements,
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

/// The committee's votes for the one that is to follow it, and the members' proofs as `announce` takes them.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rotation {
    name: String,
    epoch: String,
    authorities: Vec<Authority>,
    guardian: PrimaryAddress,
    recovery: PrimaryAddress,
    compromised_since: String,
    checkpoint: B256,
    deadline: String,
    /// The announcement's id.
    vote_digest: B256,
    votes: Bytes,
    /// Each member's digest of possession.
    possession_digests: Vec<B256>,
    proofs: Bytes,
    valid: bool,
}

/// The digests of all other statements of the council.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Statements {
    epoch: String,
    announcement: B256,
    block_hash: B256,
    acceptance_digest: B256,
    heartbeat_digest: B256,
    checkpoint: B256,
    adoption_digest: B256,
    asset: Address,
    cap: String,
    deadline: String,
    cap_raise_digest: B256,
    /// Of the first case's redemption.
    release_vote_digest: B256,
    account: B256,
    sequence: String,
    order_digest: B256,
    unlock_request_digest: B256,
    certificate_vote_digest: B256,
    void_vote_digest: B256,
    unanimous_void_vote_digest: B256,
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
        let announcement = rotation.read();
        assert_eq!(announcement.committee.members(), rotation.authorities, "{}", rotation.name);
        let digest = domain.council_digest(&CouncilStatement::Announcement(&announcement));
        assert_eq!(digest, rotation.vote_digest, "{}", rotation.name);
        let possession = rotation.authorities.iter().map(|member| domain.possession_digest(member));
        assert_eq!(possession.collect::<Vec<_>>(), rotation.possession_digests, "{}", rotation.name);
        let follows = announcement.committee.epoch() == Epoch(file.epoch + 1);
        let judged = follows && is_quorum(&committee, digest, &rotation.votes) && rotation.is_proven(&domain);
        assert_eq!(judged, rotation.valid, "{}", rotation.name);
    }
    let first = file.cases[0].redemption.read();
    assert_eq!(
        serde_json::to_value(&file.statements).unwrap(),
        serde_json::to_value(statements(&domain, &first)).unwrap()
    );
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
        statements: statements(&committee.domain, &plain()),
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

impl Rotation {
    fn read(&self) -> Announcement {
        let epoch = Epoch(self.epoch.parse().unwrap());
        Announcement {
            committee: Committee::new(epoch, self.authorities.clone()).unwrap(),
            guardian: self.guardian,
            recovery: self.recovery,
            compromised_since: Epoch(self.compromised_since.parse().unwrap()),
            checkpoint: self.checkpoint,
            deadline: self.deadline.parse().unwrap(),
        }
    }

    /// Whether each member has proven both keys. The contract sees the half of the redemption key alone.
    fn is_proven(&self, domain: &Domain) -> bool {
        let (proofs, rest) = self.proofs.as_chunks::<129>();
        let proven = |(member, bytes): (&Authority, &[u8; 129])| {
            let proof = PossessionProof {
                authority: *member,
                redemption_signature: EcdsaSignature(bytes[..65].try_into().unwrap()),
                voting_signature: Ed25519Signature(bytes[65..].try_into().unwrap()),
            };
            proof.verify(domain).is_ok()
        };
        rest.is_empty() && proofs.len() == self.authorities.len() && self.authorities.iter().zip(proofs).all(proven)
    }
}

/// What a member's proof is in `announce`.
fn proof(keys: &AuthorityKeys, domain: &Domain) -> Vec<u8> {
    let proof = PossessionProof::new(keys, domain);
    [proof.redemption_signature.0.as_slice(), &proof.voting_signature.0].concat()
}

fn rotations(committee: &TestCommittee) -> Vec<Rotation> {
    let domain = committee.domain;
    let (next, larger) = (committee.rotated(), committee.rotated_to(7));
    let plain = Announcement {
        committee: next.committee.clone(),
        guardian: PrimaryAddress::repeat_byte(0x6A),
        recovery: PrimaryAddress::repeat_byte(0x4E),
        compromised_since: Epoch(1),
        checkpoint: B256::ZERO,
        // In the year 2100; the test's clock is a week before.
        deadline: 4_102_444_800,
    };
    let votes = |announcement: &Announcement, members: &[usize]| -> Vec<u8> {
        let statement = CouncilStatement::Announcement(announcement);
        let sign =
            |index: &usize| packed(*index, sign_council_vote(&committee.keys[*index], &domain, &statement).signature);
        members.iter().flat_map(sign).collect()
    };
    let proofs = |of: &TestCommittee| of.keys.iter().flat_map(|keys| proof(keys, &domain)).collect::<Vec<_>>();
    let rotation = |name: &str, announcement: &Announcement, votes: Vec<u8>, proofs: Vec<u8>, valid: bool| {
        let members = announcement.committee.members();
        Rotation {
            name: name.into(),
            epoch: announcement.committee.epoch().to_string(),
            authorities: members.to_vec(),
            guardian: announcement.guardian,
            recovery: announcement.recovery,
            compromised_since: announcement.compromised_since.to_string(),
            checkpoint: announcement.checkpoint,
            deadline: announcement.deadline.to_string(),
            vote_digest: domain.council_digest(&CouncilStatement::Announcement(announcement)),
            votes: votes.into(),
            possession_digests: members.iter().map(|member| domain.possession_digest(member)).collect(),
            proofs: proofs.into(),
            valid,
        }
    };
    let nobody = Announcement { guardian: PrimaryAddress::ZERO, recovery: PrimaryAddress::ZERO, ..plain.clone() };
    let since = Announcement { compromised_since: Epoch(0), checkpoint: B256::repeat_byte(0xC4), ..plain.clone() };
    let more = Announcement { committee: larger.committee.clone(), ..plain.clone() };
    let after = Announcement {
        committee: Committee::new(Epoch(2), next.committee.members().to_vec()).unwrap(),
        ..plain.clone()
    };
    let quorum = [0, 1, 2];
    let good = proofs(&next);
    let case =
        |name: &str, said: &Announcement, votes: Vec<u8>, valid| rotation(name, said, votes, good.clone(), valid);
    let mut swapped = good.clone();
    swapped[..65].copy_from_slice(&good[129..194]);
    let elsewhere = next.keys.iter().flat_map(|keys| proof(keys, &Domain::new(1, domain.contract()))).collect();
    vec![
        case("new keys", &plain, votes(&plain, &quorum), true),
        case("nobody who can pause or recover", &nobody, votes(&nobody, &[1, 2, 3]), true),
        case("keys were out since epoch 0", &since, votes(&since, &quorum), true),
        rotation("more authorities", &more, votes(&more, &[0, 1, 3]), proofs(&larger), true),
        case("too few votes", &plain, votes(&plain, &[0, 1]), false),
        case("too many votes", &plain, votes(&plain, &[0, 1, 2, 3]), false),
        case("a vote twice", &plain, votes(&plain, &[0, 0, 1]), false),
        case(
            "another guardian",
            &nobody,
            votes(&Announcement { recovery: nobody.recovery, ..plain.clone() }, &quorum),
            false,
        ),
        case(
            "another recovery",
            &nobody,
            votes(&Announcement { guardian: nobody.guardian, ..plain.clone() }, &quorum),
            false,
        ),
        case(
            "another deadline",
            &plain,
            votes(&Announcement { deadline: plain.deadline - 1, ..plain.clone() }, &quorum),
            false,
        ),
        case(
            "compromised since another epoch",
            &plain,
            votes(&Announcement { compromised_since: Epoch(0), ..plain.clone() }, &quorum),
            false,
        ),
        case(
            "another checkpoint",
            &plain,
            votes(&Announcement { checkpoint: since.checkpoint, ..plain.clone() }, &quorum),
            false,
        ),
        case("other authorities", &plain, votes(&more, &quorum), false),
        case("votes for the epoch after", &plain, votes(&after, &quorum), false),
        case("an announcement of the epoch after", &after, votes(&after, &quorum), false),
        rotation("no proofs", &plain, votes(&plain, &quorum), Vec::new(), false),
        rotation("a proof too few", &plain, votes(&plain, &quorum), good[..3 * 129].to_vec(), false),
        rotation("a byte too many in the proofs", &plain, votes(&plain, &quorum), [&good[..], &[0]].concat(), false),
        rotation("a proof of another member", &plain, votes(&plain, &quorum), swapped, false),
        rotation("proofs for another chain", &plain, votes(&plain, &quorum), elsewhere, false),
    ]
}

fn statements(domain: &Domain, redemption: &Redemption) -> Statements {
    let (epoch, announcement, block_hash) = (Epoch(7), B256::repeat_byte(0xA1), B256::repeat_byte(0xB1));
    let (checkpoint, asset, cap, deadline) = (B256::repeat_byte(0xC1), TOKEN, Amount(1 << 70), 4_102_444_800);
    let (account, sequence) = (redemption.sender, redemption.sequence);
    let order_digest = domain.transfer_digest(&redemption.clone().into());
    Statements {
        epoch: epoch.to_string(),
        announcement,
        block_hash,
        acceptance_digest: domain.council_digest(&CouncilStatement::Acceptance { epoch, announcement, block_hash }),
        heartbeat_digest: domain.council_digest(&CouncilStatement::Heartbeat { epoch, block_hash }),
        checkpoint,
        adoption_digest: domain.council_digest(&CouncilStatement::CheckpointAdoption { epoch, checkpoint }),
        asset: asset.0,
        cap: cap.to_string(),
        deadline: deadline.to_string(),
        cap_raise_digest: domain.council_digest(&CouncilStatement::CapRaise { epoch, asset, cap, deadline }),
        release_vote_digest: domain.council_digest(&CouncilStatement::Release { epoch, redemption }),
        account: account.0.into(),
        sequence: sequence.0.to_string(),
        order_digest,
        unlock_request_digest: domain.unlock_request_digest(account, sequence),
        certificate_vote_digest: domain.certificate_vote_digest(epoch, account, sequence, order_digest),
        void_vote_digest: domain.void_vote_digest(epoch, account, sequence, false),
        unanimous_void_vote_digest: domain.void_vote_digest(epoch, account, sequence, true),
    }
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
