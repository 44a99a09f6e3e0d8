//! Private orders, their certificates, and requests to unlock: each refusal by name.

use alloy_primitives::hex;
use fastpay_core::private::*;
use fastpay_core::{
    AccountId, Amount, CertificateError, Domain, Epoch, PrimaryAddress, SequenceNumber, ShardLayout, VoteError,
};
use fastpay_testkit::{TestCommittee, test_domain};

use crate::private_orders::*;

const MODULUS: [u8; 32] = hex!("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001");

/// What an order and its certificate, which is checked without the proof, are refused for.
#[track_caller]
fn check_invalid(alter: impl FnOnce(&mut ProvenOrder), expected: InvalidPrivateTransfer) {
    let committee = TestCommittee::new(4);
    let domain = committee.domain;
    let certificate = certified(&committee, &verified(&domain, transfer(1, 2, 10)));
    let mut order = proven(&domain, transfer(1, 2, 10));
    alter(&mut order);
    let altered = PrivateCertificate { order: order.order.clone(), ..(**certificate.certificate()).clone() };
    assert_eq!(altered.verify(&domain, &committee.committee).err(), Some(expected.into()));
    assert_eq!(order.check(&domain), Err(expected));
}

#[test]
fn only_canonical_elements_are_nullifiers_and_commitments() {
    let parts: [fn(&mut PrivateTransfer) -> &mut alloy_primitives::B256; 4] = [
        |transfer| &mut transfer.account_spent.0,
        |transfer| &mut transfer.coin_spent.0,
        |transfer| &mut transfer.account,
        |transfer| &mut transfer.coin,
    ];
    for part in parts {
        for bytes in [MODULUS, [0xff; 32]] {
            let alter = |order: &mut ProvenOrder| *part(&mut order.order.transfer) = bytes.into();
            check_invalid(alter, InvalidPrivateTransfer::NotAnElement);
        }
    }
    let mut largest = MODULUS;
    largest[31] = 0;
    assert!(is_element(&largest) && is_element(&[0; 32]) && !is_element(&MODULUS));
}

#[test]
fn equal_nullifiers() {
    check_invalid(|order| order.order.transfer.coin_spent = nullifier(1), InvalidPrivateTransfer::EqualNullifiers);
}

#[test]
fn nothing_leaves() {
    let nothing = |order: &mut ProvenOrder, recipient, memo: [u8; 32]| {
        let transfer = &mut order.order.transfer;
        (transfer.amount_out, transfer.recipient, transfer.memo) = (Amount(0), recipient, memo.into());
    };
    check_invalid(|order| nothing(order, AccountId([0xaa; 32]), [0; 32]), InvalidPrivateTransfer::NothingLeaves);
    check_invalid(|order| nothing(order, AccountId::ZERO, [1; 32]), InvalidPrivateTransfer::NothingLeaves);
}

#[test]
fn a_recipient_that_cannot_spend() {
    let contract = AccountId::from_ethereum(test_domain().contract());
    for recipient in [AccountId::ZERO, AccountId::PRIVATE_POOL, contract] {
        check_invalid(|order| order.order.transfer.recipient = recipient, InvalidPrivateTransfer::Recipient);
    }
}

#[test]
fn altered_notes() {
    check_invalid(|order| order.order.payment_note[128] ^= 1, InvalidPrivateTransfer::Notes);
    check_invalid(|order| order.order.own_note[0] ^= 1, InvalidPrivateTransfer::Notes);
    check_invalid(|order| order.order.transfer.notes_hash[0] ^= 1, InvalidPrivateTransfer::Notes);
}

/// One order has one size, whatever it does, and no other size is read.
#[test]
fn orders_have_one_size() {
    let domain = test_domain();
    let encode = |order: &ProvenOrder| borsh::to_vec(order).unwrap();
    let bytes = encode(&proven(&domain, transfer(1, 2, u128::MAX)));
    assert_eq!(bytes.len(), 284 + 390 + 384);
    assert_eq!(encode(&proven(&domain, transfer(3, 4, 0))).len(), bytes.len());
    assert_eq!(borsh::from_slice::<ProvenOrder>(&bytes).unwrap(), proven(&domain, transfer(1, 2, u128::MAX)));
    assert!(borsh::from_slice::<ProvenOrder>(&bytes[1..]).is_err());
    assert!(borsh::from_slice::<ProvenOrder>(&[&bytes[..], &[0]].concat()).is_err());
}

#[test]
fn every_part_of_a_transfer_and_the_deployment_count_for_its_digest() {
    let here = test_domain();
    let whole = transfer(1, 2, 10);
    let alterations: [fn(&mut PrivateTransfer); 12] = [
        |transfer| transfer.committee += 1,
        |transfer| transfer.rules += 1,
        |transfer| transfer.asset.0 = PrimaryAddress::repeat_byte(1),
        |transfer| transfer.account_spent = nullifier(9),
        |transfer| transfer.sequence = SequenceNumber(1),
        |transfer| transfer.coin_spent = nullifier(9),
        |transfer| transfer.account[31] ^= 1,
        |transfer| transfer.coin[31] ^= 1,
        |transfer| transfer.amount_out = Amount(11),
        |transfer| transfer.recipient.0[0] ^= 1,
        |transfer| transfer.memo[31] ^= 1,
        |transfer| transfer.notes_hash[0] ^= 1,
    ];
    let mut digests = vec![here.private_transfer_digest(&whole)];
    digests.push(Domain::new(1, here.contract()).private_transfer_digest(&whole));
    for alter in alterations {
        let mut altered = whole;
        alter(&mut altered);
        digests.push(here.private_transfer_digest(&altered));
    }
    let count = digests.len();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), count);
}

/// A bad proof is found in its place, and an answer that is missing is no.
#[test]
fn bad_proof() {
    let domain = test_domain();
    let order = |number| proven(&domain, transfer(number, number + 100, 0));
    let checked = |mut order: ProvenOrder, altered: u8| {
        order.proof[0] ^= altered;
        order.check(&domain).unwrap()
    };
    let orders = || vec![checked(order(0), 0), checked(order(1), 1), checked(order(2), 0)];
    let answers = verify_proofs(orders(), &Bound);
    assert_eq!(answers[0].as_ref().map(VerifiedPrivateOrder::proven), Ok(&order(0).into()));
    assert_eq!(answers[1], Err(ProofError::BadProof));
    assert_eq!(answers[2].as_ref().map(VerifiedPrivateOrder::proven), Ok(&order(2).into()));

    struct Short;
    impl ProofCheck for Short {
        fn check(&self, claims: &[ProofClaim<'_>]) -> Vec<Result<(), ProofError>> {
            claims.iter().take(1).map(|_| Ok(())).collect()
        }
    }
    let answers = verify_proofs(orders(), &Short);
    assert!(answers[0].is_ok());
    assert_eq!(answers[1..], [Err(ProofError::BadProof), Err(ProofError::BadProof)]);
    assert_eq!(verify_proofs(orders(), &NoProofs), vec![Err(ProofError::UnknownVersion); 3]);
}

/// Wherever the pool is, its nullifiers are, and no two of them have one account.
#[test]
fn a_nullifier_is_an_account_of_the_pools_shard() {
    let mut accounts: Vec<AccountId> = (0..100).map(|number| nullifier(number).account()).collect();
    for shards in [1, 2, 3, 7, 64, u32::MAX] {
        let layout = ShardLayout::new(shards.try_into().unwrap());
        let pool = layout.shard_of(&AccountId::PRIVATE_POOL);
        assert!(accounts.iter().all(|account| layout.shard_of(account) == pool));
    }
    let pinned = hex!("ee5d27c486702e8950a79e0a7d5b8692e971adc99476f6d083eccfe55be12873");
    assert_eq!(nullifier(0).account().0, pinned);
    accounts.sort_unstable();
    accounts.dedup();
    assert_eq!(accounts.len(), 100);
    let taken = PrivateTransfer { sequence: SequenceNumber(4), ..transfer(1, 2, 0) }.taken();
    assert_eq!(taken, [(nullifier(1).account(), SequenceNumber(4)), (nullifier(2).account(), SequenceNumber(0))]);
}

/// A request counts by its bytes alone, for one number of one nullifier in one deployment.
#[test]
fn who_may_ask_to_unlock_a_number_of_a_nullifier() {
    let domain = test_domain();
    let (account, sequence) = (nullifier(1).account(), SequenceNumber(3));
    let good = authorization(&domain, nullifier(1), sequence);
    assert!(good.len() <= 512, "the contract takes no more");
    let is_good = |domain: &Domain, number: (AccountId, SequenceNumber), bytes: &[u8]| {
        is_private_unlock_authorized(domain, number, bytes, &Owner)
    };
    assert!(is_good(&domain, (account, sequence), &good));
    assert!(!is_good(&domain, (account, SequenceNumber(4)), &good));
    assert!(!is_good(&domain, (nullifier(2).account(), sequence), &good));
    assert!(!is_good(&Domain::new(1, domain.contract()), (account, sequence), &good));
    // The proof of another nullifier's owner, and a nullifier that is no element.
    let of_another = authorization(&domain, nullifier(2), sequence);
    let swapped = [&good[..32], &of_another[32..]].concat();
    assert!(!is_good(&domain, (account, sequence), &swapped));
    let odd = Nullifier(MODULUS.into());
    assert!(!is_good(&domain, (odd.account(), sequence), &authorization(&domain, odd, sequence)));
    for length in [0, 31, 32, 96, good.len() - 1] {
        assert!(!is_good(&domain, (account, sequence), &good[..length]));
    }
    assert!(!is_good(&domain, (account, sequence), &[&good[..], &[0]].concat()));
    // As the owner of an account, nobody owns a nullifier.
    assert!(!fastpay_core::is_unlock_authorized(&domain, account, sequence, &good));
}

#[test]
fn a_certificate_is_a_quorum_for_one_digest() {
    let committee = TestCommittee::new(4);
    let domain = committee.domain;
    let order = verified(&domain, transfer(1, 2, 0));
    let good = PrivateCertificate::clone(certified(&committee, &order).certificate());
    let check = |certificate: PrivateCertificate| certificate.verify(&domain, &committee.committee).err();
    assert_eq!(check(good.clone()), None);
    assert_eq!(good.clone().verify(&domain, &committee.committee).unwrap(), certified(&committee, &order));
    let with = |alter: fn(&mut PrivateCertificate)| {
        let mut certificate = good.clone();
        alter(&mut certificate);
        check(certificate)
    };
    let (expected, found) = (Epoch(0), Epoch(1));
    assert_eq!(with(|one| one.epoch = Epoch(1)), Some(CertificateError::WrongEpoch { expected, found }));
    let count = |found| Some(CertificateError::VoteCount { expected: 3, found });
    assert_eq!(with(|one| one.votes.truncate(2)), count(2));
    assert_eq!(with(|one| one.votes.push(one.votes[2].clone())), count(4));
    let unsorted = |at: usize| Some(CertificateError::VotesUnsorted(good.votes[at].authority));
    assert_eq!(with(|one| one.votes[1] = one.votes[0].clone()), unsorted(0));
    assert_eq!(with(|one| one.votes.swap(0, 1)), unsorted(0));
    // Votes for another transfer, and those of strangers.
    let other = PrivateCertificate::clone(certified(&committee, &verified(&domain, transfer(1, 3, 0))).certificate());
    let mixed = PrivateCertificate { order: good.order.clone(), ..other };
    assert!(matches!(check(mixed), Some(CertificateError::Signature(_))));
    let strangers = certified(&committee.rotated(), &order);
    let of_strangers = PrivateCertificate { epoch: Epoch(0), ..(**strangers.certificate()).clone() };
    let stranger = of_strangers.votes[0].authority;
    assert_eq!(check(of_strangers), Some(VoteError::NotAMember(stranger).into()));
}

#[test]
fn too_few_votes_are_no_certificate() {
    let committee = TestCommittee::new(4);
    let order = verified(&committee.domain, transfer(1, 2, 0));
    let other = verified(&committee.domain, transfer(1, 3, 0));
    let mut few = votes(&committee, &order, &[0, 1, 1]);
    few.extend(votes(&committee, &other, &[2, 3]));
    assert_eq!(PrivateCertificate::from_votes(&order, &committee.committee, &few), None);
}
