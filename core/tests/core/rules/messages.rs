//! What can be refused without an account: bad orders, votes and certificates. (Bad committees:
//! `core/src/committee.rs`.)

use fastpay_core::{
    AccountId, Amount, Asset, Authorization, BadSignature, Certificate, CertificateError, Domain, Epoch,
    InvalidTransfer, MERKLE_LEAVES_MAX, Memo, MerklePath, OrderError, Output, Outputs, PAYOUT_OUTPUTS_MAX, Payment,
    Payout, PrimaryAddress, Redemption, SequenceNumber, Signatory, Transfer, TransferOrder, Vote, VoteError,
    VoteSignature, sign_payment_votes,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, payout, redemption, test_domain};

/// One owner of each kind.
fn owners() -> [TestAccount; 2] {
    [TestAccount::ed25519(0), TestAccount::ethereum(0)]
}

fn plain(owner: &TestAccount) -> Payment {
    payment(owner.id(), TestAccount::numbered(8).id(), 100, 3)
}

fn plain_redemption(owner: &TestAccount) -> Redemption {
    Redemption { fee: Amount(5), ..redemption(owner.id(), PrimaryAddress::repeat_byte(0xBE), 100, 3) }
}

fn bad_sender(owner: &TestAccount) -> OrderError {
    OrderError::Signature(BadSignature(Signatory::Sender(owner.id())))
}

fn plain_payout(owner: &TestAccount) -> Payout {
    payout(owner.id(), &[(TestAccount::numbered(8).id(), 100), (TestAccount::numbered(9).id(), 7)], 3)
}

#[track_caller]
fn check_order(order: TransferOrder, expected: Result<(), OrderError>) {
    assert_eq!(order.verify(&test_domain()).map(drop), expected);
}

#[test]
fn good_orders_pass() {
    for owner in owners() {
        for transfer in [Transfer::from(plain(&owner)), plain_redemption(&owner).into(), plain_payout(&owner).into()] {
            let order = owner.sign(&test_domain(), transfer);
            let verified = order.clone().verify(&test_domain()).unwrap();
            assert_eq!(verified.digest(), test_domain().transfer_digest(&order.transfer));
            assert_eq!(verified.order(), &order);
        }
    }
}

/// An invalid transfer, whoever signs it.
#[track_caller]
fn check_transfer(change: impl Fn(&TestAccount) -> Transfer, expected: InvalidTransfer) {
    for owner in owners() {
        check_order(owner.sign(&test_domain(), change(&owner)), Err(OrderError::Transfer(expected)));
    }
}

#[test]
fn zero_amount() {
    check_transfer(|owner| Payment { amount: Amount::ZERO, ..plain(owner) }.into(), InvalidTransfer::ZeroAmount);
    let redeem = |owner: &_| Redemption { amount: Amount::ZERO, fee: Amount::ZERO, ..plain_redemption(owner) };
    check_transfer(|owner| redeem(owner).into(), InvalidTransfer::ZeroAmount);
}

#[test]
fn fee_above_amount() {
    let expected = InvalidTransfer::FeeAboveAmount { amount: Amount(100), fee: Amount(101) };
    check_transfer(|owner| Redemption { fee: Amount(101), ..plain_redemption(owner) }.into(), expected);
    for owner in owners() {
        let all = Redemption { fee: Amount(100), ..plain_redemption(&owner) };
        check_order(owner.sign(&test_domain(), all), Ok(()));
    }
}

#[test]
fn zero_recipient() {
    let to_zero = |owner: &_| Payment { recipient: AccountId::ZERO, ..plain(owner) };
    check_transfer(|owner| to_zero(owner).into(), InvalidTransfer::ZeroRecipient);
    let out_to_zero = |owner: &_| Redemption { recipient: PrimaryAddress::ZERO, ..plain_redemption(owner) };
    check_transfer(|owner| out_to_zero(owner).into(), InvalidTransfer::ZeroRecipient);
}

#[test]
fn contract_as_recipient() {
    let contract = test_domain().contract();
    let to_contract = |owner: &_| Payment { recipient: AccountId::from_ethereum(contract), ..plain(owner) };
    check_transfer(|owner| to_contract(owner).into(), InvalidTransfer::ContractRecipient);
    let out_to_contract = |owner: &_| Redemption { recipient: contract, ..plain_redemption(owner) };
    check_transfer(|owner| out_to_contract(owner).into(), InvalidTransfer::ContractRecipient);
}

#[test]
fn last_sequence() {
    let last = SequenceNumber(u64::MAX);
    check_transfer(|owner| Payment { sequence: last, ..plain(owner) }.into(), InvalidTransfer::LastSequence);
    check_transfer(
        |owner| Redemption { sequence: last, ..plain_redemption(owner) }.into(),
        InvalidTransfer::LastSequence,
    );
}

#[test]
fn wrong_key() {
    let domain = test_domain();
    let [ed25519, ethereum] = owners();
    for owner in [&ed25519, &ethereum] {
        let wrong_key = Err(OrderError::WrongKey { sender: owner.id() });
        // Another Ed25519 key owns neither kind of account.
        check_order(TestAccount::ed25519(9).sign(&domain, plain(owner)), wrong_key);
    }
    // An Ethereum signature names no key: for an Ed25519 account it is of the wrong kind, for an
    // Ethereum account it recovers another address.
    let stranger = TestAccount::ethereum(9);
    check_order(stranger.sign(&domain, plain(&ed25519)), Err(OrderError::WrongKey { sender: ed25519.id() }));
    check_order(stranger.sign(&domain, plain(&ethereum)), Err(bad_sender(&ethereum)));
}

#[test]
fn altered_orders() {
    for owner in owners() {
        let good = owner.sign(&test_domain(), plain(&owner));
        let changed = |payment: Payment| {
            check_order(TransferOrder { transfer: payment.into(), ..good.clone() }, Err(bad_sender(&owner)));
        };
        changed(Payment { recipient: TestAccount::numbered(7).id(), ..plain(&owner) });
        changed(Payment { asset: Asset(PrimaryAddress::repeat_byte(1)), ..plain(&owner) });
        changed(Payment { amount: Amount(101), ..plain(&owner) });
        changed(Payment { sequence: SequenceNumber(4), ..plain(&owner) });
        changed(Payment { memo: Memo::repeat_byte(1), ..plain(&owner) });
    }
}

#[test]
fn altered_redemptions() {
    for owner in owners() {
        let good = owner.sign(&test_domain(), plain_redemption(&owner));
        let changed = |redemption: Redemption| {
            check_order(TransferOrder { transfer: redemption.into(), ..good.clone() }, Err(bad_sender(&owner)));
        };
        changed(Redemption { recipient: PrimaryAddress::repeat_byte(1), ..plain_redemption(&owner) });
        changed(Redemption { asset: Asset(PrimaryAddress::repeat_byte(1)), ..plain_redemption(&owner) });
        changed(Redemption { amount: Amount(101), ..plain_redemption(&owner) });
        changed(Redemption { fee: Amount(6), ..plain_redemption(&owner) });
        changed(Redemption { sequence: SequenceNumber(4), ..plain_redemption(&owner) });
        changed(Redemption { memo: Memo::repeat_byte(1), ..plain_redemption(&owner) });
    }
}

#[test]
fn every_bit_of_a_signature_counts() {
    for owner in owners() {
        let good = owner.sign(&test_domain(), plain(&owner));
        for bit in 0..512 {
            let mut order = good.clone();
            let signature: &mut [u8] = match &mut order.authorization {
                Authorization::Ed25519 { signature, .. } => &mut signature.0,
                Authorization::Ethereum { signature } => &mut signature.0,
            };
            signature[bit / 8] ^= 1 << (bit % 8);
            check_order(order, Err(bad_sender(&owner)));
        }
    }
}

#[test]
fn orders_of_another_deployment() {
    let contract = test_domain().contract();
    for owner in owners() {
        for other in [Domain::new(1, contract), Domain::new(31337, PrimaryAddress::repeat_byte(0xFB))] {
            check_order(owner.sign(&other, plain(&owner)), Err(bad_sender(&owner)));
            check_order(owner.sign(&other, plain_redemption(&owner)), Err(bad_sender(&owner)));
        }
    }
}

/// A committee of four, an order of each kind of transfer.
struct Setting {
    committee: TestCommittee,
    payment: TransferOrder,
    redemption: TransferOrder,
}

fn setting() -> Setting {
    let committee = TestCommittee::new(4);
    let [owner, other] = owners();
    let payment = owner.sign(&committee.domain, plain(&owner));
    let redemption = other.sign(&committee.domain, plain_redemption(&other));
    Setting { committee, payment, redemption }
}

impl Setting {
    #[track_caller]
    fn check_vote(&self, order: &TransferOrder, vote: &Vote, expected: Result<(), VoteError>) {
        let TestCommittee { domain, committee, .. } = &self.committee;
        let order = self.committee.verified(order);
        assert_eq!(vote.clone().verify(domain, committee, &order).map(drop), expected);
    }

    #[track_caller]
    fn check_certificate(&self, certificate: Certificate, expected: Result<(), CertificateError>) {
        let verdict = certificate.verify(&self.committee.domain, &self.committee.committee);
        assert_eq!(verdict.map(drop), expected);
    }

    fn bad_vote(&self, index: usize) -> BadSignature {
        BadSignature(Signatory::Authority(self.committee.keys[index].public().name))
    }
}

#[test]
fn good_votes_pass() {
    let setting = setting();
    for index in 0..4 {
        for order in [&setting.payment, &setting.redemption] {
            setting.check_vote(order, &setting.committee.vote(index, order), Ok(()));
        }
    }
}

#[test]
fn vote_by_no_member() {
    let setting = setting();
    let larger = TestCommittee::new(7);
    let strangers = larger.keys.iter().map(|keys| keys.public().name).enumerate();
    let strangers: Vec<_> = strangers.filter(|(_, name)| setting.committee.committee.member(name).is_none()).collect();
    assert_eq!(strangers.len(), 3);
    for (index, name) in strangers {
        for order in [&setting.payment, &setting.redemption] {
            setting.check_vote(order, &larger.vote(index, order), Err(VoteError::NotAMember(name)));
        }
    }
}

#[test]
fn vote_of_the_wrong_kind() {
    let setting = setting();
    let wrong = Err(VoteError::WrongKind(setting.committee.keys[0].public().name));
    setting.check_vote(&setting.payment, &setting.committee.vote(0, &setting.redemption), wrong);
    setting.check_vote(&setting.redemption, &setting.committee.vote(0, &setting.payment), wrong);
}

#[test]
fn vote_with_a_malformed_path() {
    let setting = setting();
    let authority = setting.committee.keys[0].public().name;
    let VoteSignature::Payment { signature, .. } = setting.committee.vote(0, &setting.payment).signature else {
        panic!("a vote for a payment")
    };
    let too_long = MerklePath { directions: 0, siblings: vec![Memo::ZERO; 11] };
    let stray_bit = MerklePath { directions: 1, siblings: Vec::new() };
    for path in [too_long, stray_bit] {
        let vote = Vote { authority, signature: VoteSignature::Payment { signature, path } };
        setting.check_vote(&setting.payment, &vote, Err(VoteError::Path(authority)));
    }
}

#[test]
fn vote_with_a_bad_signature() {
    let setting = setting();
    let bad = Err(VoteError::Signature(setting.bad_vote(0)));
    let others = [
        TestCommittee::with(4, test_domain(), Epoch(1)),
        TestCommittee::with(4, Domain::new(1, test_domain().contract()), Epoch(0)),
        TestCommittee::with(4, Domain::new(31337, PrimaryAddress::repeat_byte(0xFB)), Epoch(0)),
    ];
    for order in [&setting.payment, &setting.redemption] {
        for other in &others {
            setting.check_vote(order, &other.vote(0, order), bad);
        }
        let renamed = Vote { authority: setting.committee.keys[0].public().name, ..setting.committee.vote(1, order) };
        setting.check_vote(order, &renamed, bad);
    }
    let owner = TestAccount::ed25519(0);
    let other_payment = owner.sign(&test_domain(), Payment { amount: Amount(101), ..plain(&owner) });
    setting.check_vote(&setting.payment, &setting.committee.vote(0, &other_payment), bad);
    let other = TestAccount::ethereum(0);
    let other_redemption = other.sign(&test_domain(), Redemption { fee: Amount(6), ..plain_redemption(&other) });
    setting.check_vote(&setting.redemption, &setting.committee.vote(0, &other_redemption), bad);
}

#[test]
fn votes_of_a_batch_are_each_for_their_own_payment() {
    let setting = setting();
    let orders: Vec<TransferOrder> =
        (0..21).map(TestAccount::numbered).map(|owner| owner.sign(&setting.committee.domain, plain(&owner))).collect();
    let digests: Vec<_> = orders.iter().map(|order| test_domain().transfer_digest(&order.transfer)).collect();
    let (votes, _) = sign_payment_votes(&setting.committee.keys[2], &test_domain(), Epoch(0), &digests).unwrap();
    let bad = Err(VoteError::Signature(setting.bad_vote(2)));
    for (at, order) in orders.iter().enumerate() {
        for (voted, vote) in votes.iter().enumerate() {
            setting.check_vote(order, vote, if at == voted { Ok(()) } else { bad });
        }
    }
    assert!(sign_payment_votes(&setting.committee.keys[2], &test_domain(), Epoch(0), &[]).is_none());
    let too_many = vec![digests[0]; MERKLE_LEAVES_MAX + 1];
    assert!(sign_payment_votes(&setting.committee.keys[2], &test_domain(), Epoch(0), &too_many).is_none());
}

#[test]
fn good_certificates_pass_for_every_quorum() {
    let setting = setting();
    for order in [&setting.payment, &setting.redemption] {
        for members in [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]] {
            setting.check_certificate(setting.committee.certificate_by(order, &members), Ok(()));
        }
    }
}

#[test]
fn certificate_from_votes_is_one_that_verifies() {
    let setting = setting();
    let TestCommittee { domain, committee, .. } = &setting.committee;
    for order in [&setting.payment, &setting.redemption] {
        let verified = setting.committee.verified(order);
        let vote = |index: &usize| setting.committee.vote(*index, order).verify(domain, committee, &verified).unwrap();
        let votes = |members: &[usize]| -> Vec<_> { members.iter().map(vote).collect() };
        assert_eq!(Certificate::from_votes(&verified, committee, &votes(&[0, 3])), None);
        assert_eq!(Certificate::from_votes(&verified, committee, &votes(&[0, 3, 3, 0])), None);
        for members in [&[3, 1, 0][..], &[3, 2, 1, 0], &[2, 2, 0, 1, 1]] {
            let made = Certificate::from_votes(&verified, committee, &votes(members)).unwrap();
            assert_eq!(made.certificate().clone().verify(domain, committee).as_ref(), Ok(&made));
        }
        // Votes for another order do not count, however good they are.
        let another = if order == &setting.payment { &setting.redemption } else { &setting.payment };
        let another = setting.committee.verified(another);
        assert_eq!(Certificate::from_votes(&another, committee, &votes(&[0, 1, 2, 3])), None);
    }
}

#[test]
fn certificate_of_another_epoch() {
    let setting = setting();
    let wrong = CertificateError::WrongEpoch { expected: Epoch(0), found: Epoch(1) };
    let next = TestCommittee::with(4, test_domain(), Epoch(1));
    setting.check_certificate(next.certificate(&setting.payment), Err(wrong));
    // Relabelled, its votes are still of their own epoch.
    let relabelled = Certificate { epoch: Epoch(0), ..next.certificate(&setting.payment) };
    setting.check_certificate(relabelled, Err(CertificateError::Signature(setting.bad_vote(0))));
}

#[test]
fn certificate_with_too_few_or_too_many_votes() {
    let setting = setting();
    for members in [&[][..], &[0], &[0, 1], &[0, 1, 2, 3], &[0, 0, 0, 1]] {
        let expected = CertificateError::VoteCount { expected: 3, found: members.len() };
        setting.check_certificate(setting.committee.certificate_by(&setting.payment, members), Err(expected));
    }
}

#[test]
fn certificate_with_a_vote_twice_or_unsorted() {
    let setting = setting();
    for (members, culprit) in [([0, 1, 1], 1), ([0, 0, 1], 0), ([1, 0, 2], 0), ([0, 2, 1], 1)] {
        let name = setting.committee.keys[culprit].public().name;
        let certificate = setting.committee.certificate_by(&setting.redemption, &members);
        setting.check_certificate(certificate, Err(CertificateError::VotesUnsorted(name)));
    }
}

#[test]
fn certificate_with_a_vote_by_no_member() {
    let setting = setting();
    let larger = TestCommittee::new(7);
    let stranger =
        larger.keys.iter().position(|keys| setting.committee.committee.member(&keys.public().name).is_none());
    let vote = larger.vote(stranger.unwrap(), &setting.payment);
    let mut certificate = setting.committee.certificate_by(&setting.payment, &[0, 1]);
    let expected = CertificateError::Vote(VoteError::NotAMember(vote.authority));
    certificate.votes.push(vote);
    certificate.votes.sort_by_key(|vote| vote.authority);
    setting.check_certificate(certificate, Err(expected));
}

#[test]
fn certificate_of_an_altered_order() {
    let setting = setting();
    let [owner, other] = owners();
    let bad = setting.bad_vote(0);
    // Signed anew by its owner, but it is not what the authorities voted for.
    let mut certificate = setting.committee.certificate(&setting.payment);
    certificate.order = owner.sign(&test_domain(), Payment { amount: Amount(101), ..plain(&owner) });
    setting.check_certificate(certificate, Err(CertificateError::Signature(bad)));
    let mut certificate = setting.committee.certificate(&setting.redemption);
    certificate.order = other.sign(&test_domain(), Redemption { fee: Amount(6), ..plain_redemption(&other) });
    setting.check_certificate(certificate, Err(CertificateError::Signature(bad)));
}

#[test]
fn certificate_of_an_order_that_its_owner_did_not_sign() {
    let setting = setting();
    let [owner, other] = owners();
    let alter = |order: &TransferOrder| match order.transfer.clone() {
        Transfer::Payment(payment) => Transfer::Payment(Payment { amount: Amount(101), ..payment }),
        Transfer::Redemption(redemption) => Transfer::Redemption(Redemption { amount: Amount(101), ..redemption }),
        Transfer::Payout(payout) => Transfer::Payout(Payout { memo: Memo::repeat_byte(1), ..payout }),
    };
    // A whole committee that votes for it cannot make up for the owner's signature.
    let forged = TransferOrder { transfer: alter(&setting.payment), ..setting.payment.clone() };
    let bad = CertificateError::Signature(BadSignature(Signatory::Sender(owner.id())));
    setting.check_certificate(setting.committee.certificate(&forged), Err(bad));
    let forged = TransferOrder { transfer: alter(&setting.redemption), ..setting.redemption.clone() };
    let bad = CertificateError::Signature(BadSignature(Signatory::Sender(other.id())));
    setting.check_certificate(setting.committee.certificate(&forged), Err(bad));
    let swapped = TransferOrder { authorization: setting.redemption.authorization, ..setting.payment.clone() };
    let wrong_key = CertificateError::Order(OrderError::WrongKey { sender: owner.id() });
    setting.check_certificate(setting.committee.certificate(&swapped), Err(wrong_key));
}

#[test]
fn certificate_of_an_order_that_nobody_may_make() {
    let setting = setting();
    let owner = TestAccount::ed25519(0);
    let order = owner.sign(&test_domain(), Payment { amount: Amount::ZERO, ..plain(&owner) });
    let expected = CertificateError::Order(OrderError::Transfer(InvalidTransfer::ZeroAmount));
    setting.check_certificate(setting.committee.certificate(&order), Err(expected));
}

fn outputs(count: usize, amount: u128) -> Vec<Output> {
    let recipient = TestAccount::numbered(8).id();
    vec![Output { recipient, amount: Amount(amount), memo: Memo::ZERO }; count]
}

#[test]
fn outputs_are_counted_and_added_up() {
    assert_eq!(Outputs::new(Vec::new()), Err(InvalidTransfer::NoOutputs));
    let found = PAYOUT_OUTPUTS_MAX + 1;
    assert_eq!(Outputs::new(outputs(found, 1)), Err(InvalidTransfer::TooManyOutputs { found }));
    assert_eq!(Outputs::new(outputs(PAYOUT_OUTPUTS_MAX, 3)).unwrap().total(), Amount(3 * 256));
    assert_eq!(Outputs::new(outputs(2, 1 << 127)), Err(InvalidTransfer::SumTooLarge));
    let [mut most, one] = [outputs(1, u128::MAX - 1), outputs(1, 1)];
    most.extend(one);
    assert_eq!(Outputs::new(most).unwrap().total(), Amount(u128::MAX));
}

#[test]
fn outputs_are_read_as_they_may_be_made() {
    for bad in [Vec::new(), outputs(PAYOUT_OUTPUTS_MAX + 1, 1), outputs(2, 1 << 127)] {
        let bytes = borsh::to_vec(&bad).unwrap();
        assert!(borsh::from_slice::<Outputs>(&bytes).is_err());
        assert!(serde_json::from_value::<Outputs>(serde_json::to_value(&bad).unwrap()).is_err());
    }
    let good = outputs(3, 5);
    let read: Outputs = borsh::from_slice(&borsh::to_vec(&good).unwrap()).unwrap();
    assert_eq!((read.total(), borsh::to_vec(&read).unwrap()), (Amount(15), borsh::to_vec(&good).unwrap()));
    assert_eq!(serde_json::from_value::<Outputs>(serde_json::to_value(&read).unwrap()).unwrap(), read);
    // A count that no memory holds is refused before anything is allocated.
    assert!(borsh::from_slice::<Outputs>(&[0xFF; 4]).is_err());
}

#[test]
fn a_payout_is_refused_as_a_whole_for_one_bad_output() {
    let with = |owner: &TestAccount, at: usize, change: &dyn Fn(&mut Output)| {
        let mut outputs: Vec<Output> = plain_payout(owner).outputs.into();
        change(&mut outputs[at]);
        Payout { outputs: Outputs::new(outputs).unwrap(), ..plain_payout(owner) }.into()
    };
    for output in [0, 1] {
        let at = usize::from(output);
        check_transfer(
            |owner| with(owner, at, &|output| output.amount = Amount::ZERO),
            InvalidTransfer::ZeroOutput { output },
        );
        check_transfer(
            |owner| with(owner, at, &|output| output.recipient = AccountId::ZERO),
            InvalidTransfer::OutputRecipient { output },
        );
        let contract = AccountId::from_ethereum(test_domain().contract());
        check_transfer(
            |owner| with(owner, at, &|output| output.recipient = contract),
            InvalidTransfer::OutputRecipient { output },
        );
        check_transfer(
            |owner| with(owner, at, &|output| output.recipient = AccountId::PRIVATE_POOL),
            InvalidTransfer::OutputRecipient { output },
        );
    }
    let last = SequenceNumber(u64::MAX);
    check_transfer(|owner| Payout { sequence: last, ..plain_payout(owner) }.into(), InvalidTransfer::LastSequence);
    let nothing = |owner: &TestAccount| Payout { outputs: Outputs::new(outputs(2, 0)).unwrap(), ..plain_payout(owner) };
    check_transfer(|owner| nothing(owner).into(), InvalidTransfer::ZeroAmount);
}

#[test]
fn every_part_of_a_payout_is_signed() {
    for owner in owners() {
        let good = owner.sign(&test_domain(), plain_payout(&owner));
        let payout = plain_payout(&owner);
        let outputs: Vec<Output> = payout.outputs.clone().into();
        let of = |outputs: Vec<Output>| Payout { outputs: Outputs::new(outputs).unwrap(), ..payout.clone() };
        let (mut swapped, mut memo, mut amount, mut recipient) =
            (outputs.clone(), outputs.clone(), outputs.clone(), outputs.clone());
        swapped.swap(0, 1);
        memo[1].memo = Memo::repeat_byte(1);
        amount[0].amount = Amount(99);
        recipient[1].recipient = TestAccount::numbered(6).id();
        let altered = [
            of(swapped),
            of(memo),
            of(amount),
            of(recipient),
            of(outputs[..1].to_vec()),
            of([outputs.clone(), outputs.clone()].concat()),
            Payout { memo: Memo::repeat_byte(1), ..payout.clone() },
            Payout { asset: Asset([1; 20].into()), ..payout.clone() },
            Payout { sequence: SequenceNumber(4), ..payout.clone() },
        ];
        for altered in altered {
            let order = TransferOrder { transfer: altered.into(), ..good.clone() };
            check_order(order, Err(bad_sender(&owner)));
        }
        check_order(good, Ok(()));
    }
}
