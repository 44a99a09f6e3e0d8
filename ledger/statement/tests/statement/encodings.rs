//! One encoding for each statement, of bounded length, and no other bytes are read.

use fastpay_core::Digest;
use fastpay_ledger_statement::{CompactDecision, DecodeError, Header, ReadProof, Wire};

use crate::fixture::{Cluster, first_group};

#[test]
fn a_statement_is_read_back_and_nothing_else_is() {
    let decision = Cluster::first().decision(5, first_group());
    let bytes = decision.encode();
    assert_eq!(CompactDecision::decode(&bytes).as_ref(), Ok(&decision));
    let other_version = [&[2], &bytes[1..]].concat();
    assert_eq!(CompactDecision::decode(&other_version), Err(DecodeError::Version(2)));
    assert_eq!(CompactDecision::decode(&[]), Err(DecodeError::Malformed));
    assert_eq!(CompactDecision::decode(&[bytes.as_slice(), &[0]].concat()), Err(DecodeError::Malformed));
    for length in 1..bytes.len() {
        assert_eq!(CompactDecision::decode(&bytes[..length]), Err(DecodeError::Malformed), "{length} bytes");
    }
    let (found, max) = (Header::BYTES_MAX + 1, Header::BYTES_MAX);
    assert_eq!(Header::decode(&vec![1; found]), Err(DecodeError::TooLong { found, max }));
}

/// Every byte that is read has a meaning: bytes that differ are statements that differ.
#[test]
fn what_is_read_from_altered_bytes_is_encoded_as_those_bytes() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let cluster = Cluster::first();
    let decision = cluster.decision(5, first_group());
    let header = decision.header;
    let evidence = fastpay_ledger_statement::Evidence::Other { key: Digest::ZERO, value: Digest::ZERO };
    let siblings = vec![Digest::repeat_byte(1); 5];
    let proof = fastpay_ledger_statement::StateProof { evidence, siblings };
    let read = ReadProof { header, certificate: decision.certificate.clone(), proof };
    for _ in 0..20_000 {
        alter(&decision, &mut random, seed);
        alter(&read, &mut random, seed);
    }
}

fn alter<T: Wire + PartialEq + std::fmt::Debug>(value: &T, random: &mut fastrand::Rng, seed: u64) {
    let mut bytes = value.encode();
    let at = random.usize(0..bytes.len());
    bytes[at] ^= random.u8(1..);
    if let Ok(read) = T::decode(&bytes) {
        assert_eq!(read.encode(), bytes, "seed {seed}");
        assert_ne!(read, *value, "seed {seed}");
    }
}
