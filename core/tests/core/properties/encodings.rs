//! Stored and sent values decode to themselves and have one encoding; foreign bytes are refused.

use alloy_primitives::{B256, keccak256};
use borsh::BorshDeserialize;
use fastpay_core::checkpoint::{CheckpointCertificate, CheckpointState, Leaf, Segment, SegmentEntry};
use fastpay_core::{
    Account, AccountId, Certificate, Digest, History, MERKLE_LEAVES_MAX, MerkleTree, Record, ShardLedger,
    TransferOrder, Vote, VoteSignature, sign_payment_votes,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, payout, redemption};
use proptest::collection::vec;
use proptest::prelude::*;

use super::config;
use super::world::{World, step};

/// A certificate of each kind; one of payments or payouts has votes from a batch.
fn certificate(kind: u8, batch: u64) -> Certificate {
    let committee = TestCommittee::new(4);
    let owner = TestAccount::numbered(batch);
    if kind == 0 {
        let order = owner.sign(&committee.domain, redemption(owner.id(), [0xBE; 20].into(), 9, batch));
        return committee.certificate(&order);
    }
    let to = TestAccount::numbered(7).id();
    let order = match kind {
        1 => owner.sign(&committee.domain, payment(owner.id(), to, 9, batch)),
        _ => owner.sign(&committee.domain, payout(owner.id(), &[(to, 9), (owner.id(), 1), (to, 2)], batch)),
    };
    let digest = committee.domain.transfer_digest(&order.transfer);
    let digests: Vec<Digest> = (0..batch).map(|other| keccak256(other.to_be_bytes())).chain([digest]).collect();
    let vote = |index: usize| {
        let keys = &committee.keys[index];
        sign_payment_votes(keys, &committee.domain, committee.committee.epoch(), &digests).unwrap().0.pop().unwrap()
    };
    Certificate { order, epoch: committee.committee.epoch(), votes: vec![vote(0), vote(1), vote(2)] }
}

/// Reads bytes as anything that is stored or sent; if they are that, they must be written as they
/// were read.
fn read_all(bytes: &[u8]) {
    fn canonical<T: BorshDeserialize + borsh::BorshSerialize>(bytes: &[u8]) {
        if let Ok(value) = T::try_from_slice(bytes) {
            assert_eq!(borsh::to_vec(&value).unwrap(), bytes);
        }
    }
    canonical::<Record>(bytes);
    canonical::<CheckpointCertificate>(bytes);
    canonical::<Leaf>(bytes);
    canonical::<SegmentEntry>(bytes);
    read_stream(bytes);
    canonical::<Certificate>(bytes);
    canonical::<TransferOrder>(bytes);
    canonical::<Vote>(bytes);
    canonical::<Account>(bytes);
    canonical::<History>(bytes);
    let _ = ShardLedger::try_from_slice(bytes);
    if let Ok(account) = Account::try_from_slice(bytes) {
        use_history(&account.sent);
    }
    if let Ok(history) = History::try_from_slice(bytes) {
        use_history(&history);
    }
}

/// The same for what is stored of checkpoints.
fn read_stream(bytes: &[u8]) {
    if let Ok(state) = CheckpointState::read(&mut &bytes[..]) {
        let mut written = Vec::new();
        state.write(&mut written).unwrap();
        assert_eq!(written, bytes);
    }
    if let Ok(segment) = Segment::read(&mut &bytes[..]) {
        let mut written = Vec::new();
        segment.write(&mut written).unwrap();
        assert_eq!(written, bytes);
    }
}

fn use_history(history: &History) {
    let link = history.next_link();
    for number in [0, 1, history.count(), history.count().wrapping_sub(1), u64::MAX] {
        let _ = (history.find(number), link.find(number));
    }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn records_accounts_and_ledgers_survive_storage(steps in vec(step(), 1..60)) {
        let mut world = World::new(4, 3, u8::MAX);
        steps.iter().for_each(|step| world.take(step));
        for shard in world.authorities.iter().flat_map(|authority| &authority.shards) {
            for (_, record) in shard.journal().records() {
                let bytes = borsh::to_vec(&record).unwrap();
                prop_assert_eq!(Record::try_from_slice(&bytes).unwrap(), record);
            }
            for account in shard.accounts().into_values() {
                prop_assert_eq!(Account::try_from_slice(&borsh::to_vec(&account).unwrap()).unwrap(), account);
            }
            let bytes = borsh::to_vec(shard.ledger()).unwrap();
            prop_assert_eq!(&ShardLedger::try_from_slice(&bytes).unwrap(), shard.ledger());
        }
    }

    #[test]
    fn certificates_survive_transport(kind in 0..3_u8, batch in 0_u64..40) {
        let certificate = certificate(kind, batch);
        let bytes = borsh::to_vec(&certificate).unwrap();
        let read = Certificate::try_from_slice(&bytes).unwrap();
        prop_assert_eq!(&read, &certificate);
        let committee = TestCommittee::new(4);
        prop_assert!(read.verify(&committee.domain, &committee.committee).is_ok());
    }

    #[test]
    fn no_other_bytes_are_the_same_certificate(kind in 0..3_u8, batch in 0_u64..20, at: prop::sample::Index, bit in 0_u8..8) {
        let mut bytes = borsh::to_vec(&certificate(kind, batch)).unwrap();
        *at.get_mut(&mut bytes) ^= 1 << bit;
        if let Ok(read) = Certificate::try_from_slice(&bytes) {
            let committee = TestCommittee::new(4);
            prop_assert!(read.verify(&committee.domain, &committee.committee).is_err());
        }
    }

    #[test]
    fn truncated_and_changed_bytes_harm_nobody(kind in 0..3_u8, batch in 0_u64..20, at: prop::sample::Index, byte: u8, end: prop::sample::Index) {
        let mut bytes = borsh::to_vec(&certificate(kind, batch)).unwrap();
        *at.get_mut(&mut bytes) = byte;
        read_all(&bytes);
        read_all(&bytes[..end.index(bytes.len())]);
    }
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn arbitrary_bytes_harm_nobody(bytes in vec(any::<u8>(), 0..400)) {
        read_all(&bytes);
        [b"FPSTAT\0\x01", b"FPSEGM\0\x01"].iter().for_each(|magic| read_stream(&[&magic[..], &bytes].concat()));
    }

    #[test]
    fn arbitrary_bytes_with_plausible_lengths_harm_nobody(bytes in vec(prop_oneof![Just(0_u8), Just(1), Just(2), any::<u8>()], 0..400)) {
        read_all(&bytes);
        [b"FPSTAT\0\x01", b"FPSEGM\0\x01"].iter().for_each(|magic| read_stream(&[&magic[..], &bytes].concat()));
    }

    #[test]
    fn accounts_are_read_as_they_are_shown(bytes: [u8; 32], ethereum: bool) {
        let account = if ethereum { AccountId::from_ethereum(bytes[12..].try_into().unwrap()) } else { AccountId(bytes) };
        let text = account.to_string();
        prop_assert_eq!(text.parse(), Ok(account));
        prop_assert_eq!(serde_json::from_str::<AccountId>(&serde_json::to_string(&account).unwrap()).unwrap(), account);
        let other_case = if ethereum { text.to_ascii_lowercase() } else { text.to_ascii_uppercase() };
        prop_assert_eq!(other_case.parse(), Ok(account));
    }

    #[test]
    fn a_mistyped_account_is_refused(key: [u8; 32], at in 3_usize..60, typed in "[0-9a-z]") {
        let text = AccountId::from_ed25519(&key).to_string();
        let at = at % text.len();
        let mut mistyped = text.clone();
        mistyped.replace_range(at..=at, &typed);
        prop_assume!(mistyped != text);
        prop_assert!(mistyped.parse::<AccountId>().is_err());
    }

    #[test]
    fn text_that_is_no_account_is_refused(text in "\\PC{0,80}|(fp1|0x|0X|FP1)[0-9a-zA-Z]{0,70}") {
        if let Ok(account) = text.parse::<AccountId>() {
            prop_assert_eq!(account.to_string().to_ascii_lowercase(), text.to_ascii_lowercase());
        }
    }
}

/// The root by the definition in words: pairs hashed level by level, a node alone carried up.
fn reference_root(digests: &[Digest]) -> Digest {
    let hash = |parts: &[&[u8]]| B256::new(*blake3::hash(&parts.concat()).as_bytes());
    let mut level: Vec<B256> = digests.iter().map(|digest| hash(&[&[0], digest.as_slice()])).collect();
    while level.len() > 1 {
        let mut above = Vec::new();
        for pair in level.chunks(2) {
            above.push(if pair.len() == 2 { hash(&[&[1], pair[0].as_slice(), pair[1].as_slice()]) } else { pair[0] });
        }
        level = above;
    }
    level[0]
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn merkle_trees_are_as_defined(count in 1_usize..=MERKLE_LEAVES_MAX, seed: u64, other: prop::sample::Index) {
        let digests: Vec<Digest> =
            (0..count as u64).map(|leaf| keccak256([seed.to_be_bytes(), leaf.to_be_bytes()].concat())).collect();
        let tree = MerkleTree::new(&digests).unwrap();
        prop_assert_eq!(tree.root(), reference_root(&digests));
        let index = other.index(count);
        for (leaf, digest) in digests.iter().enumerate() {
            let leads_to_root = tree.path(index).root(*digest) == Some(tree.root());
            prop_assert_eq!(leads_to_root, leaf == index);
        }
        // No inner node passes for a leaf.
        if let Some(sibling) = tree.path(index).siblings.last() {
            prop_assert_ne!(tree.path(index).root(*sibling), Some(tree.root()));
        }
    }
}

#[test]
fn a_vote_from_the_largest_batch_verifies() {
    let committee = TestCommittee::new(4);
    let owner = TestAccount::numbered(0);
    let order = owner.sign(&committee.domain, payment(owner.id(), TestAccount::numbered(1).id(), 1, 0));
    let digest = committee.domain.transfer_digest(&order.transfer);
    let mut digests = vec![Digest::ZERO; MERKLE_LEAVES_MAX];
    digests[700] = digest;
    let epoch = committee.committee.epoch();
    let (votes, _) = sign_payment_votes(&committee.keys[0], &committee.domain, epoch, &digests).unwrap();
    let order = committee.verified(&order);
    votes[700].clone().verify(&committee.domain, &committee.committee, &order).unwrap();
    assert!(matches!(&votes[700].signature, VoteSignature::Payment { path, .. } if path.siblings.len() == 10));
}
