//! Private orders, certificates and the pool: each refusal by name.

use alloy_primitives::hex;
use fastpay_core::private::*;
use fastpay_core::{
    AccountId, Amount, Balance, CertificateError, Domain, Epoch, JournalPosition, PrimaryAddress, VoteError,
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
    assert_eq!(verify_proven(vec![order], &domain, &Bound), [Err(expected.into())]);
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
    assert_eq!(bytes.len(), 276 + 390 + 384);
    assert_eq!(encode(&proven(&domain, transfer(3, 4, 0))).len(), bytes.len());
    assert_eq!(borsh::from_slice::<ProvenOrder>(&bytes).unwrap(), proven(&domain, transfer(1, 2, u128::MAX)));
    assert!(borsh::from_slice::<ProvenOrder>(&bytes[1..]).is_err());
    assert!(borsh::from_slice::<ProvenOrder>(&[&bytes[..], &[0]].concat()).is_err());
}

#[test]
fn every_part_of_a_transfer_and_the_deployment_count_for_its_digest() {
    let here = test_domain();
    let whole = transfer(1, 2, 10);
    let alterations: [fn(&mut PrivateTransfer); 11] = [
        |transfer| transfer.committee += 1,
        |transfer| transfer.rules += 1,
        |transfer| transfer.asset.0 = PrimaryAddress::repeat_byte(1),
        |transfer| transfer.account_spent = nullifier(9),
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

/// A bad proof is found in its place, a malformed order is not asked about, and an answer that is missing is no.
#[test]
fn bad_proof() {
    let domain = test_domain();
    let order = |number| proven(&domain, transfer(number, number + 100, 0));
    let mut orders: Vec<ProvenOrder> = (0..4).map(order).collect();
    orders[1].proof[0] ^= 1;
    orders[2].order.own_note[0] ^= 1;
    let answers = verify_proven(orders.clone(), &domain, &Bound);
    assert_eq!(answers[0].as_ref().map(VerifiedPrivateOrder::proven), Ok(&order(0).into()));
    assert_eq!(answers[1], Err(ProofError::BadProof.into()));
    assert_eq!(answers[2], Err(InvalidPrivateTransfer::Notes.into()));
    assert_eq!(answers[3].as_ref().map(VerifiedPrivateOrder::proven), Ok(&order(3).into()));

    struct Short;
    impl ProofCheck for Short {
        fn check(&self, claims: &[ProofClaim<'_>]) -> Vec<Result<(), ProofError>> {
            claims.iter().take(1).map(|_| Ok(())).collect()
        }
    }
    let answers = verify_proven((0..3).map(order).collect(), &domain, &Short);
    assert!(answers[0].is_ok());
    assert_eq!(answers[1..], [Err(ProofError::BadProof.into()), Err(ProofError::BadProof.into())]);
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

/// A pool, and what its account holds.
struct Setting {
    committee: TestCommittee,
    pool: Pool,
    held: Balance,
    next: u64,
}

fn setting() -> Setting {
    Setting { committee: TestCommittee::new(4), pool: Pool::default(), held: Balance::from(Amount(100)), next: 1 }
}

impl Setting {
    fn order(&self, transfer: PrivateTransfer) -> VerifiedPrivateOrder {
        verified(&self.committee.domain, transfer)
    }

    fn apply(&mut self, decision: PoolDecision) -> Result<Option<Withdrawal>, PrivateRejection> {
        match decision {
            PoolDecision::Commit(record) => {
                self.next += 1;
                let read: PrivateRecord = borsh::from_slice(&borsh::to_vec(&record).unwrap()).unwrap();
                assert_eq!(read, record);
                let left = self.pool.apply(&record, JournalPosition(self.next));
                self.held = left.iter().fold(self.held, |held, left| held.debit(left.amount));
                Ok(left)
            }
            PoolDecision::Already => panic!("the caller expects something new"),
            PoolDecision::Refuse(rejection) => Err(rejection),
        }
    }

    fn lock(&mut self, transfer: PrivateTransfer) -> Result<(), PrivateRejection> {
        let decision = self.pool.lock(&self.order(transfer), &VERSIONS, self.held);
        self.apply(decision).map(|left| assert_eq!(left, None))
    }

    fn confirm(&mut self, transfer: PrivateTransfer) -> Result<Option<Withdrawal>, PrivateRejection> {
        let decision = self.pool.confirm(&certified(&self.committee, &self.order(transfer)));
        self.apply(decision)
    }

    fn digest(&self, transfer: &PrivateTransfer) -> fastpay_core::Digest {
        self.committee.domain.private_transfer_digest(transfer)
    }

    fn used(&self, number: u64) -> Option<fastpay_core::Digest> {
        self.pool.nullifier(&nullifier(number)).map(NullifierUse::digest)
    }

    fn reserved(&self) -> Balance {
        self.pool.reserved(transfer(0, 0, 0).asset)
    }
}

#[test]
fn locked() {
    let mut setting = setting();
    let first = transfer(1, 2, 30);
    setting.lock(first).unwrap();
    let before = setting.pool.clone();
    for other in [transfer(1, 3, 0), transfer(3, 2, 0), transfer(2, 4, 0), transfer(4, 1, 0), transfer(1, 2, 29)] {
        let Err(PrivateRejection::Locked { pending }) = setting.lock(other) else { panic!("{other:?} is locked") };
        assert_eq!(*pending.proven, proven(&setting.committee.domain, first));
    }
    assert_eq!(setting.pool, before);
    // The same order gets its vote again, whatever became of the versions and the pool.
    let newer = Versions { committee: 4, oldest_rules: 9, newest_rules: 9 };
    let again = setting.pool.lock(&setting.order(first), &newer, Balance::ZERO);
    assert_eq!(again, PoolDecision::Already);
}

#[test]
fn spent() {
    let mut setting = setting();
    let first = transfer(1, 2, 30);
    setting.confirm(first).unwrap();
    let refused = Err(PrivateRejection::Spent { digest: setting.digest(&first), position: JournalPosition(2) });
    let before = setting.pool.clone();
    for other in [first, transfer(1, 3, 0), transfer(3, 2, 0)] {
        assert_eq!(setting.lock(other), refused.clone().map(|_: Option<Withdrawal>| ()));
    }
    // A second certificate with one of the nullifiers takes more than f faulty members.
    for other in [transfer(1, 3, 0), transfer(3, 2, 0)] {
        assert_eq!(setting.confirm(other), refused);
    }
    let again = setting.pool.confirm(&certified(&setting.committee, &setting.order(first)));
    assert_eq!((again, setting.pool), (PoolDecision::Already, before));
}

#[test]
fn unknown_and_stale_versions() {
    let mut setting = setting();
    let of = |committee, rules| PrivateTransfer { committee, rules, ..transfer(1, 2, 0) };
    let stale = Err(PrivateRejection::StaleVersion { committee: 3, oldest_rules: 5 });
    assert_eq!(setting.lock(of(4, 7)), Err(PrivateRejection::UnknownVersion));
    assert_eq!(setting.lock(of(3, 8)), Err(PrivateRejection::UnknownVersion));
    assert_eq!(setting.lock(of(2, 7)), stale);
    assert_eq!(setting.lock(of(3, 4)), stale);
    assert_eq!(setting.lock(of(3, 5)), Ok(()));
    // Certificates count under any.
    assert!(setting.confirm(PrivateTransfer { committee: 1, rules: 1, ..transfer(5, 6, 0) }).is_ok());
}

#[test]
fn pool_short() {
    let mut setting = setting();
    let short = |available: u128, amount| {
        Err(PrivateRejection::PoolShort { available: Balance::from(Amount(available)), amount: Amount(amount) })
    };
    assert_eq!(setting.lock(transfer(1, 2, 101)), short(100, 101));
    setting.lock(transfer(1, 2, 70)).unwrap();
    assert_eq!(setting.lock(transfer(3, 4, 31)), short(30, 31));
    setting.lock(transfer(3, 4, 30)).unwrap();
    assert_eq!(setting.lock(transfer(5, 6, 1)), short(0, 1));
    // Another asset has a pool of its own.
    let token = PrivateTransfer { asset: fastpay_core::Asset(PrimaryAddress::repeat_byte(7)), ..transfer(7, 8, 1) };
    setting.held = Balance::ZERO;
    assert_eq!(setting.lock(token), short(0, 1));
    // What withdraws nothing needs nothing, also where certificates took more than there was.
    setting.confirm(transfer(9, 10, u128::MAX)).unwrap();
    assert!(!setting.held.covers(Amount::ZERO));
    assert_eq!(setting.lock(transfer(11, 12, 0)), Ok(()));
    assert!(matches!(setting.lock(transfer(13, 14, 1)), Err(PrivateRejection::PoolShort { .. })));
}

#[test]
fn a_certificate_pays_its_recipient_once_and_ends_its_reservation() {
    let mut setting = setting();
    let withdrawal = PrivateTransfer { memo: [6; 32].into(), ..transfer(1, 2, 30) };
    setting.lock(withdrawal).unwrap();
    assert_eq!(setting.reserved(), Balance::from(Amount(30)));
    let PrivateTransfer { recipient, asset, amount_out: amount, memo, .. } = withdrawal;
    assert_eq!(setting.confirm(withdrawal), Ok(Some(Withdrawal { recipient, asset, amount, memo })));
    assert_eq!((setting.reserved(), setting.held), (Balance::ZERO, Balance::from(Amount(70))));
    assert_eq!(setting.confirm(transfer(3, 4, 0)), Ok(None));
}

/// A lock that can be certified no more holds neither its other nullifier nor a part of the pool.
#[test]
fn a_certificate_overrides_locks_and_frees_what_they_held() {
    let mut setting = setting();
    let (by_account, by_coin) = (transfer(1, 2, 60), transfer(3, 4, 40));
    setting.lock(by_account).unwrap();
    setting.lock(by_coin).unwrap();
    let certified = transfer(1, 4, 0);
    setting.confirm(certified).unwrap();
    let spent = Some(setting.digest(&certified));
    assert_eq!([1, 2, 3, 4].map(|number| setting.used(number)), [spent, None, None, spent]);
    assert_eq!(setting.reserved(), Balance::ZERO);
    setting.lock(transfer(3, 2, 100)).unwrap();
    assert_eq!(setting.reserved(), Balance::from(Amount(100)));
}
