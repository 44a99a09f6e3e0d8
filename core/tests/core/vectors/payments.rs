//! `payments.json`: identities, orders, votes and certificates as authorities and wallets check them,
//! and the edge cases of Ed25519 on which implementations are known to disagree.

use alloy_primitives::{Address, B256};
use ed25519_zebra::{Signature, VerificationKey};
use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Authority, Authorization, Certificate, Committee, Committees, Domain,
    Ed25519Signature, Epoch, MerklePath, Payment, PrimaryAddress, Redemption, Request, SequenceNumber, Transfer,
    TransferOrder, Verifier, Vote, VoteSignature, sign_payment_votes,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption, secret, test_domain};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::{curve, ecdsa, json, pinned};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    domain: json::Domain,
    epoch: u64,
    committee: Vec<Authority>,
    identities: Vec<Identity>,
    not_identities: Vec<NamedText>,
    orders: Vec<Order>,
    votes: Vec<VoteCase>,
    certificates: Vec<CertificateCase>,
    zip215: Vec<Order>,
}

/// An account, by the key that owns it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Identity {
    /// The Ed25519 key, of an account of that kind.
    public_key: Option<B256>,
    /// The Ethereum address, of an account of that kind.
    address: Option<Address>,
    account: B256,
    text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedText {
    name: String,
    text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    name: String,
    transfer: json::Transfer,
    digest: B256,
    authorization: json::Authorization,
    valid: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct VoteCase {
    name: String,
    transfer: json::Transfer,
    vote: json::Vote,
    /// What the path leads to; `None` if the path is malformed or the vote has none.
    root: Option<B256>,
    /// What the authority signed.
    vote_digest: Option<B256>,
    valid: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CertificateCase {
    name: String,
    transfer: json::Transfer,
    authorization: json::Authorization,
    epoch: String,
    votes: Vec<json::Vote>,
    valid: bool,
}

#[test]
fn payments() {
    let file = pinned("payments.json", &build());
    let domain = file.domain.read();
    let committee = Committee::new(Epoch(file.epoch), file.committee.clone()).unwrap();
    assert_eq!(committee.members(), file.committee, "members stand in the order of their names");

    file.identities.iter().for_each(judge_identity);
    for NamedText { name, text } in &file.not_identities {
        assert!(text.parse::<AccountId>().is_err(), "{name}");
    }
    judge_orders(&domain, &committee, &file.orders);
    judge_orders(&domain, &committee, &file.zip215);
    judge_equations(&domain, &committee, &file.zip215);
    for case in &file.votes {
        judge_vote(&domain, &committee, case);
    }
    judge_certificates(&domain, &committee, &file.certificates);
}

fn judge_identity(identity: &Identity) {
    let account = match (identity.public_key, identity.address) {
        (Some(key), None) => AccountId::from_ed25519(&key.0),
        (None, Some(address)) => AccountId::from_ethereum(address),
        _ => panic!("an identity has one key"),
    };
    assert_eq!(account.0, identity.account.0, "{}", identity.text);
    assert_eq!(account.to_string(), identity.text);
    assert_eq!(identity.text.parse(), Ok(account));
}

fn read_order(order: &Order) -> TransferOrder {
    TransferOrder { transfer: order.transfer.read(), authorization: order.authorization.read() }
}

/// Each order alone, and all in one batch.
fn judge_orders(domain: &Domain, committee: &Committee, orders: &[Order]) {
    for order in orders {
        assert_eq!(domain.transfer_digest(&order.transfer.read()), order.digest, "{}", order.name);
        let verdict = read_order(order).verify(domain);
        assert_eq!(verdict.is_ok(), order.valid, "{}: {verdict:?}", order.name);
    }
    let requests = orders.iter().map(|order| Request::Order(read_order(order))).collect();
    let verdicts = Verifier::new(*domain).verify(requests, &committees(committee), &mut StdRng::seed_from_u64(1));
    assert_eq!(verdicts.len(), orders.len());
    for (order, verdict) in orders.iter().zip(verdicts) {
        assert_eq!(verdict.is_ok(), order.valid, "{}, in a batch", order.name);
    }
}

fn committees(committee: &Committee) -> Committees {
    Committees::new(committee.clone()).unwrap()
}

/// Each Ed25519 equation by the library that defined the rules, and summed up with a good one.
fn judge_equations(domain: &Domain, committee: &Committee, orders: &[Order]) {
    let good = orders.iter().find(|order| order.valid).unwrap();
    for order in orders {
        let json::Authorization::Ed25519 { key, signature } = &order.authorization else { panic!("Ed25519 only") };
        let signature = Signature::from_bytes(&json::read_ed25519(signature).0);
        let reference = VerificationKey::try_from(key.0).and_then(|key| key.verify(&signature, &order.digest.0));
        assert_eq!(reference.is_ok(), order.valid, "{}, by the reference", order.name);
        let pair = [good, order].map(|order| Request::Order(read_order(order)));
        let verdicts =
            Verifier::new(*domain).verify(pair.into(), &committees(committee), &mut StdRng::seed_from_u64(2));
        assert_eq!(verdicts.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, order.valid], "{}", order.name);
    }
}

fn judge_vote(domain: &Domain, committee: &Committee, case: &VoteCase) {
    let transfer = case.transfer.read();
    let owner = (0..20).map(TestAccount::numbered).find(|owner| owner.id() == transfer.sender()).unwrap();
    let order = owner.sign(domain, transfer.clone());
    let (root, vote_digest) = root_and_digest(domain, committee.epoch(), &transfer, &case.vote.read());
    assert_eq!((root, vote_digest), (case.root, case.vote_digest), "{}", case.name);
    let verdict = case.vote.read().verify(domain, committee, &order.verify(domain).unwrap());
    assert_eq!(verdict.is_ok(), case.valid, "{}: {verdict:?}", case.name);
}

fn judge_certificates(domain: &Domain, committee: &Committee, cases: &[CertificateCase]) {
    let read = |case: &CertificateCase| Certificate {
        order: TransferOrder { transfer: case.transfer.read(), authorization: case.authorization.read() },
        epoch: Epoch(case.epoch.parse().unwrap()),
        votes: case.votes.iter().map(json::Vote::read).collect(),
    };
    for case in cases {
        let verdict = read(case).verify(domain, committee);
        assert_eq!(verdict.is_ok(), case.valid, "{}: {:?}", case.name, verdict.err());
    }
    let requests = cases.iter().map(|case| Request::Certificate(read(case))).collect();
    let verdicts = Verifier::new(*domain).verify(requests, &committees(committee), &mut StdRng::seed_from_u64(3));
    assert_eq!(verdicts.len(), cases.len());
    for (case, verdict) in cases.iter().zip(verdicts) {
        assert_eq!(verdict.is_ok(), case.valid, "{}, in a batch", case.name);
    }
}

fn build() -> File {
    let committee = TestCommittee::new(4);
    File {
        domain: committee.domain.into(),
        epoch: 0,
        committee: committee.committee.members().to_vec(),
        identities: identities(),
        not_identities: not_identities(),
        orders: good_orders().into_iter().chain(bad_orders()).collect(),
        votes: votes(&committee),
        certificates: certificates(&committee),
        zip215: zip215(),
    }
}

fn identities() -> Vec<Identity> {
    let ed25519 = (0..3_u64).map(|number| {
        let AccountKey::Ed25519(key) = TestAccount::ed25519(number).key else { panic!("an Ed25519 key") };
        let public_key: [u8; 32] = key.verification_key().into();
        let account = AccountId::from_ed25519(&public_key);
        Identity {
            public_key: Some(public_key.into()),
            address: None,
            account: account.0.into(),
            text: account.to_string(),
        }
    });
    let ethereum = (0..3_u64).map(|number| {
        let account = TestAccount::ethereum(number).id();
        Identity {
            public_key: None,
            address: account.ethereum_address(),
            account: account.0.into(),
            text: account.to_string(),
        }
    });
    ed25519.chain(ethereum).collect()
}

fn not_identities() -> Vec<NamedText> {
    let (ed25519, ethereum) = (TestAccount::ed25519(0).id().to_string(), TestAccount::ethereum(0).id().to_string());
    let named = |name: &str, text: String| NamedText { name: name.into(), text };
    let swapped_case = ethereum.chars().map(|c| if c == 'A' { 'a' } else { c }).collect::<String>();
    assert_ne!(swapped_case, ethereum);
    vec![
        named("nothing", String::new()),
        named("a character changed", ed25519.replacen(ed25519.chars().nth(20).unwrap(), "b", 1)),
        named("a character too few", ed25519[..ed25519.len() - 1].into()),
        named("mixed case", ed25519.replacen('f', "F", 1)),
        named("another prefix", ed25519.replacen("fp1", "bc1", 1)),
        named("a wrong capital in an address", swapped_case),
        named("an address too short", ethereum[..41].into()),
        named(
            "32 bytes in hexadecimal",
            format!("0x{}", alloy_primitives::hex::encode(TestAccount::ed25519(0).id().0)),
        ),
    ]
}

fn order_case(name: &str, order: &TransferOrder, valid: bool) -> Order {
    Order {
        name: name.into(),
        transfer: (&order.transfer).into(),
        digest: test_domain().transfer_digest(&order.transfer),
        authorization: (&order.authorization).into(),
        valid,
    }
}

fn plain(sender: &TestAccount) -> Payment {
    Payment { memo: B256::repeat_byte(0x4D), ..payment(sender.id(), TestAccount::numbered(5).id(), 1_000_000, 7) }
}

fn good_orders() -> Vec<Order> {
    let recipient = PrimaryAddress::repeat_byte(0xBE);
    let mut cases = Vec::new();
    for (kind, owner) in [("Ed25519", TestAccount::ed25519(0)), ("Ethereum", TestAccount::ethereum(0))] {
        let mut case = |what: &str, transfer: Transfer| {
            cases.push(order_case(&format!("{what}, {kind}"), &owner.sign(&test_domain(), transfer), true));
        };
        let token = Asset(Address::repeat_byte(0x70));
        let large = Payment {
            asset: token,
            amount: Amount(u128::MAX),
            sequence: SequenceNumber(u64::MAX - 1),
            ..plain(&owner)
        };
        let redeem = redemption(owner.id(), recipient, 1_000, 0);
        case("a payment", plain(&owner).into());
        case("a payment to oneself", Payment { recipient: owner.id(), ..plain(&owner) }.into());
        case("the largest payment, of a token", large.into());
        case("a redemption", redeem.clone().into());
        case("a redemption that is all fee", Redemption { fee: Amount(1_000), asset: token, ..redeem }.into());
    }
    cases
}

fn bad_orders() -> Vec<Order> {
    let domain = test_domain();
    let recipient = PrimaryAddress::repeat_byte(0xBE);
    let mut cases = Vec::new();
    for (kind, owner) in [("Ed25519", TestAccount::ed25519(0)), ("Ethereum", TestAccount::ethereum(0))] {
        let mut case = |what: &str, order: TransferOrder| {
            cases.push(order_case(&format!("{what}, {kind}"), &order, false));
        };
        let good = owner.sign(&domain, plain(&owner));
        let altered = |payment: Payment| TransferOrder { transfer: payment.into(), ..good.clone() };
        let redeem = redemption(owner.id(), recipient, 1_000, 0);
        let signed = |transfer: Transfer| owner.sign(&domain, transfer);
        case("an amount of zero", signed(Payment { amount: Amount(0), ..plain(&owner) }.into()));
        case("to the zero account", signed(Payment { recipient: AccountId::ZERO, ..plain(&owner) }.into()));
        let contract = domain.contract();
        let to_contract = Payment { recipient: AccountId::from_ethereum(contract), ..plain(&owner) };
        case("to the contract's account", signed(to_contract.into()));
        case("a redemption to the contract", signed(Redemption { recipient: contract, ..redeem.clone() }.into()));
        case(
            "the last sequence number",
            signed(Payment { sequence: SequenceNumber(u64::MAX), ..plain(&owner) }.into()),
        );
        case("a fee above the amount", signed(Redemption { fee: Amount(1_001), ..redeem.clone() }.into()));
        case("a redemption to zero", signed(Redemption { recipient: Address::ZERO, ..redeem }.into()));
        case("another amount", altered(Payment { amount: Amount(1_000_001), ..plain(&owner) }));
        case("another recipient", altered(Payment { recipient: TestAccount::numbered(6).id(), ..plain(&owner) }));
        case("another asset", altered(Payment { asset: Asset(Address::repeat_byte(1)), ..plain(&owner) }));
        case("another sequence number", altered(Payment { sequence: SequenceNumber(8), ..plain(&owner) }));
        case("another memo", altered(Payment { memo: B256::ZERO, ..plain(&owner) }));
        case("another sender", altered(Payment { sender: TestAccount::ed25519(9).id(), ..plain(&owner) }));
        case("signed by a stranger", TestAccount::ed25519(9).sign(&domain, plain(&owner)));
        case("signed by another address", TestAccount::ethereum(9).sign(&domain, plain(&owner)));
        case("signed for another chain", owner.sign(&Domain::new(1, domain.contract()), plain(&owner)));
        case(
            "signed for another contract",
            owner.sign(&Domain::new(31337, PrimaryAddress::repeat_byte(0xFB)), plain(&owner)),
        );
        for (name, authorization) in bad_authorizations(good.authorization) {
            case(name, TransferOrder { authorization, ..good.clone() });
        }
    }
    cases
}

/// The same signature, spoiled.
fn bad_authorizations(good: Authorization) -> Vec<(&'static str, Authorization)> {
    match good {
        Authorization::Ed25519 { key, signature } => {
            let with = |signature| Authorization::Ed25519 { key, signature };
            let mut changed = signature;
            changed.0[3] ^= 1;
            vec![("s not reduced", with(curve::s_not_reduced(signature))), ("a bit of R changed", with(changed))]
        }
        Authorization::Ethereum { signature } => {
            let with_v = |v| {
                let mut changed = signature;
                changed.0[64] = v;
                Authorization::Ethereum { signature: changed }
            };
            vec![
                ("a high s", Authorization::Ethereum { signature: ecdsa::high_s(signature) }),
                ("v counted from 0", with_v(signature.0[64] - 27)),
                ("the other v", with_v(27 + 28 - signature.0[64])),
            ]
        }
    }
}

/// The Merkle root that a vote leads to, and the digest that its signature is on.
fn root_and_digest(domain: &Domain, epoch: Epoch, transfer: &Transfer, vote: &Vote) -> (Option<B256>, Option<B256>) {
    match (&vote.signature, transfer) {
        (VoteSignature::Payment { path, .. }, _) => {
            let root = path.root(domain.transfer_digest(transfer));
            (root, root.map(|root| domain.payment_vote_digest(epoch, root)))
        }
        (_, Transfer::Redemption(redemption)) => (None, Some(domain.redemption_vote_digest(epoch, redemption))),
        _ => (None, None),
    }
}

fn votes(committee: &TestCommittee) -> Vec<VoteCase> {
    let sender = TestAccount::numbered(0);
    let case = |name: &str, transfer: Transfer, vote: Vote, valid| {
        let (root, vote_digest) = root_and_digest(&committee.domain, Epoch(0), &transfer, &vote);
        VoteCase { name: name.into(), transfer: (&transfer).into(), vote: (&vote).into(), root, vote_digest, valid }
    };
    let order = sender.sign(&committee.domain, plain(&sender));
    let pay = order.transfer.clone();
    let redeem = sender.sign(&committee.domain, redemption(sender.id(), PrimaryAddress::repeat_byte(0xBE), 1_000, 0));
    let lone = committee.vote(0, &order);

    let batch = batch_of(11);
    let digests: Vec<B256> = batch.iter().map(|transfer| committee.domain.transfer_digest(transfer)).collect();
    let batch_votes = sign_payment_votes(&committee.keys[1], &committee.domain, Epoch(0), &digests).unwrap().0;
    let with_path = |vote: &Vote, change: &dyn Fn(&mut MerklePath)| {
        let mut vote = vote.clone();
        let VoteSignature::Payment { path, .. } = &mut vote.signature else { panic!("a vote for a payment") };
        change(path);
        vote
    };

    let mut cases = vec![
        case("a lone payment", pay.clone(), lone.clone(), true),
        case("a redemption", redeem.transfer.clone(), committee.vote(0, &redeem), true),
        case("a payment's vote for a redemption", redeem.transfer.clone(), lone.clone(), false),
        case("a redemption's vote for a payment", pay.clone(), committee.vote(0, &redeem), false),
        case("a vote for another payment", batch[0].clone(), lone.clone(), false),
        case(
            "a vote of another epoch",
            pay.clone(),
            TestCommittee::with(4, test_domain(), Epoch(1)).vote(0, &order),
            false,
        ),
        case("by a stranger", pay.clone(), TestCommittee::new(7).vote(stranger(committee), &order), false),
        case(
            "under another name",
            pay.clone(),
            Vote { authority: committee.keys[1].public().name, ..lone.clone() },
            false,
        ),
        case("a bit that names no sibling", pay.clone(), with_path(&lone, &|path| path.directions = 1), false),
        case("a path too long", pay, with_path(&lone, &|path| path.siblings = vec![B256::ZERO; 11]), false),
    ];
    for (index, vote) in batch_votes.iter().enumerate() {
        cases.push(case(&format!("payment {index} of a batch of 11"), batch[index].clone(), vote.clone(), true));
    }
    let inner = &batch_votes[4];
    cases.extend([
        case("a path for another payment of the batch", batch[5].clone(), inner.clone(), false),
        case("a direction changed", batch[4].clone(), with_path(inner, &|path| path.directions ^= 2), false),
        case("a sibling changed", batch[4].clone(), with_path(inner, &|path| path.siblings[1].0[0] ^= 1), false),
        case("a sibling left out", batch[4].clone(), with_path(inner, &|path| path.siblings.truncate(1)), false),
    ]);
    cases
}

/// An authority of the committee of 7 that is not in that of 4.
fn stranger(committee: &TestCommittee) -> usize {
    let larger = TestCommittee::new(7);
    let is_stranger = |name| committee.committee.member(&name).is_none();
    larger.keys.iter().position(|keys| is_stranger(keys.public().name)).unwrap()
}

/// Payments that an authority signs in one go.
fn batch_of(count: u64) -> Vec<Transfer> {
    let recipient = TestAccount::numbered(5).id();
    (0..count).map(|number| payment(TestAccount::numbered(number).id(), recipient, 10, number).into()).collect()
}

fn certificates(committee: &TestCommittee) -> Vec<CertificateCase> {
    let case = |name: &str, certificate: &Certificate, valid| CertificateCase {
        name: name.into(),
        transfer: (&certificate.order.transfer).into(),
        authorization: (&certificate.order.authorization).into(),
        epoch: certificate.epoch.to_string(),
        votes: certificate.votes.iter().map(json::Vote::from).collect(),
        valid,
    };
    let (ed25519, ethereum) = (TestAccount::ed25519(0), TestAccount::ethereum(0));
    let order = ed25519.sign(&committee.domain, plain(&ed25519));
    let ethereum_order = ethereum.sign(&committee.domain, plain(&ethereum));
    let redeem = ethereum.sign(&committee.domain, redemption(ethereum.id(), PrimaryAddress::repeat_byte(0xBE), 9, 0));
    let by = |members: &[usize]| committee.certificate_by(&order, members);
    let altered = {
        let mut certificate = by(&[0, 1, 2]);
        certificate.order = ed25519.sign(&committee.domain, Payment { amount: Amount(2_000_000), ..plain(&ed25519) });
        certificate
    };
    let unsigned = {
        let mut certificate = by(&[0, 1, 2]);
        certificate.order.authorization = ethereum_order.authorization;
        certificate
    };
    let forged_sender = {
        let mut certificate = by(&[0, 1, 2]);
        let Authorization::Ed25519 { signature, .. } = &mut certificate.order.authorization else { panic!("Ed25519") };
        signature.0[3] ^= 1;
        certificate
    };
    let moved = Certificate { epoch: Epoch(1), ..by(&[0, 1, 2]) };
    let next_epoch = TestCommittee::with(4, test_domain(), Epoch(1)).certificate(&order);
    let other_chain = TestCommittee::with(4, Domain::new(1, test_domain().contract()), Epoch(0));
    let stranger = {
        let mut certificate = by(&[0, 1]);
        certificate.votes.push(TestCommittee::new(7).vote(stranger(committee), &order));
        certificate.votes.sort_by_key(|vote| vote.authority);
        certificate
    };
    vec![
        case("a payment, Ed25519", &by(&[0, 1, 2]), true),
        case("a payment, by another quorum", &by(&[0, 2, 3]), true),
        case("a payment, Ethereum", &committee.certificate(&ethereum_order), true),
        case("a redemption", &committee.certificate(&redeem), true),
        case("a payment with votes from batches", &from_batches(committee), true),
        case("too few votes", &by(&[0, 1]), false),
        case("too many votes", &by(&[0, 1, 2, 3]), false),
        case("a vote twice", &by(&[0, 1, 1]), false),
        case("unsorted votes", &by(&[1, 0, 2]), false),
        case("a vote by a stranger", &stranger, false),
        case("an altered order, signed again by its sender", &altered, false),
        case("an order that its sender did not sign", &forged_sender, false),
        case("an authorization of the other kind", &unsigned, false),
        case("moved to another epoch", &moved, false),
        case("of another epoch", &next_epoch, false),
        case("of another chain", &other_chain.certificate(&other_chain_order(&ed25519)), false),
    ]
}

fn other_chain_order(owner: &TestAccount) -> TransferOrder {
    owner.sign(&Domain::new(1, test_domain().contract()), plain(owner))
}

/// Three authorities that each voted for the same payment in a batch of its own.
fn from_batches(committee: &TestCommittee) -> Certificate {
    let transfer = &batch_of(8)[3];
    let order = TestAccount::numbered(3).sign(&committee.domain, transfer.clone());
    let votes = [4_u64, 5, 8].iter().enumerate().map(|(index, count)| {
        let digests: Vec<B256> = batch_of(*count).iter().map(|other| committee.domain.transfer_digest(other)).collect();
        sign_payment_votes(&committee.keys[index], &committee.domain, Epoch(0), &digests).unwrap().0.swap_remove(3)
    });
    Certificate { order, epoch: Epoch(0), votes: votes.collect() }
}

/// Orders of accounts whose keys and signatures no honest signer makes. Under ZIP-215 the cofactor is
/// cleared, encodings of points need not be canonical, and s must be.
fn zip215() -> Vec<Order> {
    let of_key = |name: String, key: [u8; 32], sign: &dyn Fn(B256) -> Ed25519Signature, valid| {
        let pay = payment(AccountId::from_ed25519(&key), TestAccount::numbered(5).id(), 1, 0);
        let digest = test_domain().transfer_digest(&Transfer::Payment(pay.clone()));
        let authorization = Authorization::Ed25519 { key, signature: sign(digest) };
        order_case(&name, &TransferOrder { transfer: pay.into(), authorization }, valid)
    };
    let honest = AccountKey::ed25519(secret(1, 0));
    let mut cases = vec![order_case("an honest signature", &honest.order(&test_domain(), plain_of(&honest)), true)];
    let encodings = curve::small_order_encodings();
    let identity = encodings[0];
    for (number, point) in encodings.iter().enumerate() {
        let zero = |_| curve::with_parts(*point, [0; 32]);
        let with_identity = |_| curve::with_parts(identity, [0; 32]);
        cases.push(of_key(format!("key and R of small order, encoding {number}"), *point, &zero, true));
        cases.push(of_key(
            format!("key of small order, encoding {number}, R the identity"),
            *point,
            &with_identity,
            true,
        ));
    }
    for torsion in [1, 2, 4, 5] {
        let key = curve::MixedKey::new(12_345, torsion);
        let both = |message| key.sign(678, 3, message);
        let only_key = |message| key.sign(678, 0, message);
        cases.push(of_key(format!("key {torsion} and R of mixed order"), key.public(), &both, true));
        cases.push(of_key(format!("key {torsion} of mixed order"), key.public(), &only_key, true));
    }
    let key = curve::MixedKey::new(12_345, 0);
    let r_mixed = |message| key.sign(678, 7, message);
    let not_reduced = |message| curve::s_not_reduced(key.sign(678, 0, message));
    let other_message = |message: B256| key.sign(678, 0, !message);
    let r_no_point = |_| curve::with_parts(curve::no_point(), [0; 32]);
    let s_zero = |message| {
        let signature = key.sign(678, 0, message).0;
        curve::with_parts(*signature.first_chunk().unwrap(), [0; 32])
    };
    let s_order = |_| curve::s_not_reduced(curve::with_parts(identity, [0; 32]));
    let s_ones = |_| curve::with_parts(identity, [0xFF; 32]);
    let zero = |_| curve::with_parts(identity, [0; 32]);
    cases.extend([
        of_key("R of mixed order".into(), key.public(), &r_mixed, true),
        of_key("s not reduced".into(), key.public(), &not_reduced, false),
        of_key("another message".into(), key.public(), &other_message, false),
        of_key("R no point".into(), key.public(), &r_no_point, false),
        of_key("s zero".into(), key.public(), &s_zero, false),
        of_key("key of small order, s the group's order".into(), identity, &s_order, false),
        of_key("key of small order, s of ones".into(), identity, &s_ones, false),
        of_key("key no point".into(), curve::no_point(), &zero, false),
    ]);
    cases
}

fn plain_of(key: &AccountKey) -> Transfer {
    payment(key.account(), TestAccount::numbered(5).id(), 1, 0).into()
}
