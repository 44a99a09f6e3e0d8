//! Reads with proofs, against trees that the test builds by the definition.

use std::collections::BTreeMap;

use fastpay_core::{Asset, Digest, SequenceNumber};
use fastpay_ledger_statement::{
    CertificateError, ClusterId, CommitteeNumber, Evidence, Key, MemberIndex, Namespace, Partition, ReadError,
    ReadProof, Reading, StateKey, StateProof, StatementVerifier, Time, branch_digest, key_bit, leaf_digest,
    value_digest,
};

use crate::fixture::{Cluster, account, partition};

/// Entries by the hash of their key. The tree, straight from its definition.
type Entries = BTreeMap<Digest, Vec<u8>>;

fn root(entries: &Entries, depth: usize) -> Digest {
    match entries.iter().next() {
        None => Digest::ZERO,
        Some((key, value)) if entries.len() == 1 => leaf_digest(*key, value_digest(value)),
        Some(_) => {
            let (right, left): (Entries, Entries) =
                entries.clone().into_iter().partition(|(key, _)| key_bit(key, depth));
            branch_digest(&root(&left, depth + 1), &root(&right, depth + 1))
        }
    }
}

fn prove(entries: &Entries, key: Digest) -> StateProof {
    let mut siblings = vec![];
    let mut rest = entries.clone();
    loop {
        let evidence = match rest.iter().next() {
            None => Evidence::Nothing,
            Some((found, value)) if rest.len() == 1 && *found == key => Evidence::Present(value.clone()),
            Some((found, value)) if rest.len() == 1 => Evidence::Other { key: *found, value: value_digest(value) },
            Some(_) => {
                let depth = siblings.len();
                let (same, other): (Entries, Entries) =
                    rest.into_iter().partition(|(found, _)| key_bit(found, depth) == key_bit(&key, depth));
                siblings.push(root(&other, depth + 1));
                rest = same;
                continue;
            }
        };
        return StateProof { evidence, siblings };
    }
}

fn key(at: u64) -> StateKey {
    StateKey::Reserve(account(at), Asset::ETHER)
}

fn entries(count: u64) -> Entries {
    (0..count).map(|at| (key(at).digest(), vec![at.to_le_bytes()[0]; 3])).collect()
}

#[test]
fn presence_and_absence_are_proven_for_trees_of_every_small_size() {
    for count in 0..40 {
        let entries = entries(count);
        let root = root(&entries, 0);
        for at in 0..80 {
            let proof = prove(&entries, key(at).digest());
            assert_eq!(proof.root(key(at).digest()), Some(root), "key {at} of {count}");
            assert_eq!(matches!(proof.evidence, Evidence::Present(_)), at < count);
        }
    }
}

#[test]
fn a_false_proof_leads_to_another_root() {
    let entries = entries(30);
    let root = root(&entries, 0);
    for at in 0..60 {
        let (digest, other) = (key(at).digest(), key(at + 1).digest());
        let proof = prove(&entries, digest);
        let lead = |proof: &StateProof, key: Digest| proof.root(key) == Some(root);
        let with = |evidence| StateProof { evidence, siblings: proof.siblings.clone() };
        // Another value, none, one that never was, and another entry that takes its place.
        assert!(!lead(&with(Evidence::Present(vec![9, 9])), digest));
        if at < 30 {
            assert!(!lead(&with(Evidence::Nothing), digest));
            assert!(!lead(&with(Evidence::Other { key: other, value: value_digest(b"") }), digest));
            let value = value_digest(&entries[&digest]);
            assert!(
                !lead(&with(Evidence::Other { key: digest, value }), digest),
                "its own entry does not show absence"
            );
        }
        // Its path is no other key's, unless the other key is absent for the same reason.
        assert!(!lead(&proof, other) || matches!(proof.evidence, Evidence::Nothing | Evidence::Other { .. }));
        for place in 0..proof.siblings.len() {
            let mut altered = proof.clone();
            altered.siblings[place].0[0] ^= 1;
            assert!(!lead(&altered, digest));
            let mut shorter = proof.clone();
            shorter.siblings.remove(place);
            assert!(!lead(&shorter, digest));
        }
        let mut longer = proof.clone();
        longer.siblings.push(Digest::ZERO);
        assert!(!lead(&longer, digest));
    }
    let long = StateProof { evidence: Evidence::Nothing, siblings: vec![Digest::ZERO; 257] };
    assert_eq!(long.root(Digest::ZERO), None);
}

/// An entry whose key does not share the path's bits says nothing about the key.
#[test]
fn an_entry_beside_the_path_shows_no_absence() {
    let mut below = [0; 32];
    below[0] = 0b0100_0000;
    let (beside, key) = (Digest::repeat_byte(0xff), Digest::new(below));
    let proof =
        StateProof { evidence: Evidence::Other { key: beside, value: Digest::ZERO }, siblings: vec![Digest::ZERO] };
    assert_eq!(proof.root(key), None);
}

#[test]
fn a_read_is_believed_under_a_certified_root_that_is_not_too_old() {
    let cluster = Cluster::first();
    let entries = entries(20);
    let header = cluster.header(12, root(&entries, 0), Digest::ZERO);
    let certificate = cluster.certify(&header, 1);
    let read =
        |key: &StateKey| ReadProof { header, certificate: certificate.clone(), proof: prove(&entries, key.digest()) };
    let verify = |proof: ReadProof, key: &StateKey, oldest| {
        proof.verify(key, oldest, &partition(), &cluster.members, &mut StatementVerifier::default(), &mut rand::rng())
    };
    for at in [3, 25] {
        let reading = verify(read(&key(at)), &key(at), header.time).unwrap();
        let value = (at < 20).then(|| vec![at.to_le_bytes()[0]; 3]);
        assert_eq!(reading, Reading { height: header.height, time: header.time, value });
    }
    let oldest = Time(header.time.0 + 1);
    assert_eq!(verify(read(&key(3)), &key(3), oldest), Err(ReadError::TooOld { oldest, found: header.time }));
    assert_eq!(verify(read(&key(3)), &key(4), Time(0)), Err(ReadError::Path));
    let mut altered = read(&key(3));
    altered.proof.evidence = Evidence::Present(vec![1]);
    assert_eq!(verify(altered, &key(3), Time(0)), Err(ReadError::Path));
    // A state root that nobody certified, with a value that fits.
    let mut forged = read(&key(3));
    forged.header.state = forged.proof.root(key(3).digest()).unwrap();
    forged.header.height.0 += 1;
    let bad = ReadError::Certificate(CertificateError::Signature(MemberIndex(0)));
    assert_eq!(verify(forged, &key(3), Time(0)), Err(bad));
}

/// A cluster that does not keep a key can prove truthfully that it has nothing there. It does not count.
#[test]
fn a_read_is_believed_from_the_cluster_alone_that_keeps_the_key() {
    let cluster = Cluster::first();
    let header = cluster.header(12, Digest::ZERO, Digest::ZERO);
    let certificate = cluster.certify(&header, 1);
    let verify = |key: &StateKey, partition: &Partition| {
        let proof = StateProof { evidence: Evidence::Nothing, siblings: vec![] };
        let read = ReadProof { header, certificate: certificate.clone(), proof };
        read.verify(key, Time(0), partition, &cluster.members, &mut StatementVerifier::default(), &mut rand::rng())
    };
    let (asset, committee, epoch) = (Asset::ETHER, CommitteeNumber(7), Default::default());
    let stored = StateKey::Stored(Namespace::new("n".into()).unwrap(), Key::new(vec![1]).unwrap());
    let of_shards = [stored, StateKey::Opened(account(1)), StateKey::Reserve(account(1), asset)];
    let of_settlement = [
        StateKey::Omnibus(committee, asset),
        StateKey::EventIndex(committee),
        StateKey::Spent(committee, account(1), SequenceNumber(0)),
        StateKey::Committee(committee, epoch),
        StateKey::Epoch(committee),
    ];
    let (expected, found) = (ClusterId(9), ClusterId(1));
    let elsewhere = Err(ReadError::OtherCluster { expected, found });
    let shard_elsewhere = Partition { first_shard: expected, ..partition() };
    for key in &of_shards {
        assert_eq!(verify(key, &shard_elsewhere), elsewhere);
        assert_eq!(verify(key, &partition()).unwrap().value, None);
    }
    let settlement_elsewhere = Partition { settlement: expected, ..partition() };
    for key in &of_settlement {
        assert_eq!(verify(key, &settlement_elsewhere), elsewhere);
        assert_eq!(verify(key, &partition()).unwrap().value, None);
    }
    // Every cluster has its own number for a signer.
    let nowhere = Partition { settlement: expected, first_shard: expected, other_shards: vec![] };
    assert!(verify(&StateKey::Sequence(account(1)), &nowhere).is_ok());
}
