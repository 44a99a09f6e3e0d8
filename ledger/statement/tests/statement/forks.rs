//! Two certificates of one height prove a fork. Those who signed both in one round are traitors.

use fastpay_core::Digest;
use fastpay_ledger_statement::{CertificateError, Fork, MemberIndex, StatementVerifier, VoteKind};

use crate::fixture::Cluster;

#[test]
fn two_certificates_of_one_height_accuse_those_who_signed_both_in_one_round() {
    let cluster = Cluster::first();
    let [a, b] = [1, 2].map(|state| cluster.header(5, Digest::repeat_byte(state), Digest::ZERO));
    let of_a = cluster.certify_as(&a, 0, VoteKind::Precommit, [0, 1, 2]);
    let of_b = cluster.certify_as(&b, 0, VoteKind::Precommit, [1, 2, 3]);
    let prove = |first, second| {
        Fork::prove(&cluster.members, [first, second], &mut StatementVerifier::default(), &mut rand::rng())
    };
    let fork = prove((&a, &of_a), (&b, &of_b)).unwrap().unwrap();
    let both = [MemberIndex(1), MemberIndex(2)];
    assert_eq!((fork.traitors(), fork.signers.as_slice()), (&both[..], &both[..]));
    assert_eq!(fork.ids, [a.id(), b.id()]);

    // In a later round a member may precommit another header, so both signatures accuse nobody.
    let later = cluster.certify_as(&b, 4, VoteKind::Precommit, [1, 2, 3]);
    let fork = prove((&a, &of_a), (&b, &later)).unwrap().unwrap();
    assert_eq!((fork.traitors(), fork.signers.as_slice(), fork.rounds), (&[][..], &both[..], [0, 4]));

    // One header, certified twice by different quorums, is none; nor are two heights.
    let again = cluster.certify_as(&a, 1, VoteKind::Precommit, [1, 2, 3]);
    assert_eq!(prove((&a, &of_a), (&a, &again)), Ok(None));
    let next = cluster.header(6, Digest::ZERO, Digest::ZERO);
    let of_next = cluster.certify(&next, 0);
    assert_eq!(prove((&a, &of_a), (&next, &of_next)), Ok(None));
    // Nobody is accused by a vote that he did not give.
    let mut forged = of_b.clone();
    forged.votes[1].1.0[0] ^= 1;
    assert_eq!(prove((&a, &of_a), (&b, &forged)), Err(CertificateError::Signature(MemberIndex(2))));
}
