//! `payouts.json`: payouts as authorities and wallets check them, with the struct hash of each output, by which one
//! output is proven without the others, and outputs that are no payout.

use alloy_primitives::{Address, B256, Bytes};
use fastpay_core::{
    AccountId, Amount, Asset, Certificate, Committee, Domain, Epoch, Output, Outputs, PAYOUT_OUTPUTS_MAX, Payout,
    PrimaryAddress, SequenceNumber, TransferOrder, sign_payment_votes,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, test_domain};
use serde::{Deserialize, Serialize};

use super::{json, pinned};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    domain: json::Domain,
    epoch: u64,
    committee: Vec<fastpay_core::Authority>,
    /// Well-formed orders, valid or not.
    orders: Vec<Order>,
    certificates: Vec<CertificateCase>,
    /// Outputs that no order can have.
    not_outputs: Vec<NotOutputs>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Order {
    name: String,
    transfer: json::Transfer,
    /// EIP-712 struct hashes of the outputs, in their order.
    output_hashes: Vec<B256>,
    digest: B256,
    authorization: json::Authorization,
    /// The order as wallets and authorities store it.
    encoding: Bytes,
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

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotOutputs {
    name: String,
    outputs: Vec<json::Output>,
}

#[test]
fn payouts() {
    let file = pinned("payouts.json", &build());
    let domain = file.domain.read();
    let committee = Committee::new(Epoch(file.epoch), file.committee).unwrap();
    for order in &file.orders {
        let transfer = order.transfer.read();
        assert_eq!(domain.transfer_digest(&transfer), order.digest, "{}", order.name);
        assert_eq!(reference_digest(&domain, &transfer, &order.output_hashes), order.digest, "{}", order.name);
        let read = TransferOrder { transfer, authorization: order.authorization.read() };
        assert_eq!(borsh::from_slice::<TransferOrder>(&order.encoding).unwrap(), read);
        assert_eq!(read.verify(&domain).is_ok(), order.valid, "{}", order.name);
    }
    for case in file.certificates {
        let certificate = Certificate {
            order: TransferOrder { transfer: case.transfer.read(), authorization: case.authorization.read() },
            epoch: Epoch(case.epoch.parse().unwrap()),
            votes: case.votes.iter().map(json::Vote::read).collect(),
        };
        assert_eq!(certificate.verify(&domain, &committee).is_ok(), case.valid, "{}", case.name);
    }
    for case in file.not_outputs {
        assert!(Outputs::new(case.outputs.iter().map(json::Output::read).collect()).is_err(), "{}", case.name);
    }
}

/// The digest as docs/PROTOCOL.md has a recipient work it out: from the outputs' hashes alone.
fn reference_digest(domain: &Domain, transfer: &fastpay_core::Transfer, output_hashes: &[B256]) -> B256 {
    use alloy_primitives::{U256, keccak256};
    let fastpay_core::Transfer::Payout(payout) = transfer else { panic!("a payout") };
    let word = |number: u64| B256::from(U256::from(number));
    let payout_type = keccak256(
        "Payout(bytes32 sender,address asset,Output[] outputs,uint64 sequence,bytes32 memo)\
         Output(bytes32 recipient,uint128 amount,bytes32 memo)",
    );
    let domain_type = keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    let words = |words: &[B256]| keccak256(words.iter().flatten().copied().collect::<Vec<u8>>());
    let outputs = words(output_hashes);
    let payout = words(&[
        payout_type,
        payout.sender.0.into(),
        payout.asset.0.into_word(),
        outputs,
        word(payout.sequence.0),
        payout.memo,
    ]);
    let contract = domain.contract().into_word();
    let separator = words(&[domain_type, keccak256("FastPay"), keccak256("1"), word(domain.chain_id()), contract]);
    keccak256([&[0x19, 0x01], separator.as_slice(), payout.as_slice()].concat())
}

fn output_hash(output: &Output) -> B256 {
    use alloy_primitives::{U256, keccak256};
    let output_type = keccak256("Output(bytes32 recipient,uint128 amount,bytes32 memo)");
    let amount = B256::from(U256::from(output.amount.0));
    let words = [output_type, output.recipient.0.into(), amount, output.memo];
    keccak256(words.iter().flatten().copied().collect::<Vec<u8>>())
}

fn outputs(count: u64) -> Vec<Output> {
    let output = |number: u64| Output {
        recipient: TestAccount::numbered(5 + number % 3).id(),
        amount: Amount(u128::from(number) * 1_000 + 1),
        memo: B256::repeat_byte(u8::try_from(number % 251).unwrap()),
    };
    (0..count).map(output).collect()
}

fn plain(owner: &TestAccount, count: u64) -> Payout {
    Payout {
        sender: owner.id(),
        asset: Asset(Address::repeat_byte(0x70)),
        outputs: Outputs::new(outputs(count)).unwrap(),
        sequence: SequenceNumber(7),
        memo: B256::repeat_byte(0x4D),
    }
}

fn order_case(name: &str, order: &TransferOrder, valid: bool) -> Order {
    let fastpay_core::Transfer::Payout(payout) = &order.transfer else { panic!("a payout") };
    Order {
        name: name.into(),
        transfer: (&order.transfer).into(),
        output_hashes: payout.outputs.iter().map(output_hash).collect(),
        digest: test_domain().transfer_digest(&order.transfer),
        authorization: (&order.authorization).into(),
        encoding: borsh::to_vec(order).unwrap().into(),
        valid,
    }
}

fn build() -> File {
    let committee = TestCommittee::new(4);
    File {
        domain: committee.domain.into(),
        epoch: 0,
        committee: committee.committee.members().to_vec(),
        orders: [TestAccount::ed25519(0), TestAccount::ethereum(0)].iter().flat_map(orders).collect(),
        certificates: certificates(&committee),
        not_outputs: not_outputs(),
    }
}

fn orders(owner: &TestAccount) -> Vec<Order> {
    let kind = if owner.id().ethereum_address().is_some() { "Ethereum" } else { "Ed25519" };
    let domain = test_domain();
    let mut cases = Vec::new();
    let mut case = |name: &str, order: TransferOrder, valid: bool| {
        cases.push(order_case(&format!("{name}, {kind}"), &order, valid));
    };
    let good = owner.sign(&domain, plain(owner, 3));
    case("three outputs, two to one recipient", good.clone(), true);
    case("one output", owner.sign(&domain, plain(owner, 1)), true);
    case("as many outputs as there may be", owner.sign(&domain, plain(owner, PAYOUT_OUTPUTS_MAX as u64)), true);
    let with = |change: &dyn Fn(&mut Vec<Output>)| {
        let mut changed = outputs(3);
        change(&mut changed);
        Payout { outputs: Outputs::new(changed).unwrap(), ..plain(owner, 3) }
    };
    let own = |outputs: &mut Vec<Output>| outputs[1].recipient = owner.id();
    case("an output to the sender", owner.sign(&domain, with(&own)), true);
    let most = |outputs: &mut Vec<Output>| {
        outputs.truncate(2);
        outputs[0].amount = Amount(u128::MAX - 1);
        outputs[1].amount = Amount(1);
    };
    case("the largest sum", owner.sign(&domain, with(&most)), true);
    let zero = |outputs: &mut Vec<Output>| outputs[2].amount = Amount::ZERO;
    case("an output of nothing", owner.sign(&domain, with(&zero)), false);
    let nobody = |outputs: &mut Vec<Output>| outputs[0].recipient = AccountId::ZERO;
    case("an output to the zero account", owner.sign(&domain, with(&nobody)), false);
    let contract = |outputs: &mut Vec<Output>| outputs[0].recipient = AccountId::from_ethereum(domain.contract());
    case("an output to the contract", owner.sign(&domain, with(&contract)), false);
    let last = Payout { sequence: SequenceNumber(u64::MAX), ..plain(owner, 3) };
    case("the last sequence number", owner.sign(&domain, last), false);
    let altered = |payout: Payout| TransferOrder { transfer: payout.into(), ..good.clone() };
    case("outputs in another order", altered(with(&|outputs| outputs.swap(0, 1))), false);
    case("an output less", altered(with(&|outputs| outputs.truncate(2))), false);
    case("an output twice", altered(with(&|outputs| outputs.push(outputs[2].clone()))), false);
    case("another amount", altered(with(&|outputs| outputs[1].amount = Amount(2))), false);
    case("another memo of an output", altered(with(&|outputs| outputs[1].memo = B256::ZERO)), false);
    case("another memo", altered(Payout { memo: B256::ZERO, ..plain(owner, 3) }), false);
    let other_domain = Domain::new(31337, PrimaryAddress::repeat_byte(0xFB));
    case("signed for another contract", owner.sign(&other_domain, plain(owner, 3)), false);
    cases
}

fn certificates(committee: &TestCommittee) -> Vec<CertificateCase> {
    let case = |name: &str, certificate: &Certificate, valid| CertificateCase {
        name: name.into(),
        transfer: (&certificate.order.transfer).into(),
        authorization: (&certificate.order.authorization).into(),
        epoch: certificate.epoch.0.to_string(),
        votes: certificate.votes.iter().map(Into::into).collect(),
        valid,
    };
    let owner = TestAccount::ed25519(0);
    let order = owner.sign(&committee.domain, plain(&owner, 3));
    let good = committee.certificate(&order);
    let other = owner.sign(&committee.domain, plain(&owner, 2));
    // In one batch with a payment, under one root.
    let pays = payment(TestAccount::ed25519(1).id(), owner.id(), 1, 0).into();
    let digests = [&order.transfer, &pays].map(|transfer| committee.domain.transfer_digest(transfer));
    let batched = committee.keys[..3].iter();
    let batched =
        batched.map(|keys| sign_payment_votes(keys, &committee.domain, Epoch(0), &digests).unwrap().0.swap_remove(0));
    let batched = Certificate { order: order.clone(), epoch: Epoch(0), votes: batched.collect() };
    vec![
        case("a payout", &good, true),
        case("a payout voted for in a batch with a payment", &batched, true),
        case("votes for another payout", &Certificate { order: other, ..good.clone() }, false),
        case("a vote too few", &Certificate { votes: good.votes[1..].to_vec(), ..good }, false),
    ]
}

fn not_outputs() -> Vec<NotOutputs> {
    let case = |name: &str, outputs: Vec<Output>| NotOutputs {
        name: name.into(),
        outputs: outputs.iter().map(Into::into).collect(),
    };
    let mut overflow = outputs(2);
    overflow.iter_mut().for_each(|output| output.amount = Amount(1 << 127));
    vec![
        case("none", Vec::new()),
        case("one too many", outputs(PAYOUT_OUTPUTS_MAX as u64 + 1)),
        case("a sum of more than 128 bits", overflow),
    ]
}
