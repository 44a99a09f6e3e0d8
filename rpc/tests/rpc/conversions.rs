//! What is sent is what arrives, and what arrives in any other form is refused by name.

use bytes::Bytes;
use fastpay_core::{
    AccountId, Amount, Asset, Attestation, AttestedCertificate, AuthorityName, Certificate, ContractVote, Deposit,
    EcdsaSignature, Epoch, InvalidTransfer, MERKLE_PATH_LENGTH_MAX, MerklePath, Output, Outputs, PAYOUT_OUTPUTS_MAX,
    Payment, Payout, Redemption, SequenceNumber, Transfer, TransferOrder, Vote, VoteSignature,
};
use fastpay_rpc::{MESSAGE_BYTES_MAX, Malformed, REDEMPTION_BATCH_MAX, Refusal, json, proto, request_bytes_max};
use proptest::prelude::*;
use prost::Message;

use crate::values::{certificate, deposit, order, some_certificate, some_order, some_vote, vote};

/// Through protobuf's bytes and back.
fn over_the_wire<M: Message + Default>(message: &M) -> M {
    M::decode(message.encode_to_vec().as_slice()).unwrap()
}

proptest! {
    #[test]
    fn every_value_comes_back(order in order(), vote in vote(), certificate in certificate(), deposit in deposit()) {
        let wire = over_the_wire(&proto::TransferOrder::from(&order));
        prop_assert_eq!(TransferOrder::try_from(wire), Ok(order.clone()));
        prop_assert_eq!(Vote::try_from(over_the_wire(&proto::Vote::from(&vote))), Ok(vote));
        let wire = over_the_wire(&proto::Certificate::from(&certificate));
        prop_assert_eq!(Certificate::try_from(wire), Ok(certificate));
        prop_assert_eq!(Deposit::try_from(over_the_wire(&proto::Deposit::from(&deposit))), Ok(deposit));
        match &order.transfer {
            Transfer::Payment(payment) => {
                prop_assert_eq!(Payment::try_from(proto::Payment::from(payment)), Ok(payment.clone()));
            }
            Transfer::Redemption(redemption) => {
                prop_assert_eq!(Redemption::try_from(proto::Redemption::from(redemption)), Ok(redemption.clone()));
            }
            Transfer::Payout(payout) => {
                prop_assert_eq!(Payout::try_from(proto::Payout::from(payout)), Ok(payout.clone()));
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        if let Ok(request) = proto::SubmitRequest::decode(bytes.as_slice()) {
            take(request);
        }
        if let Ok(message) = proto::Certificate::decode(bytes.as_slice()) {
            let _ = Certificate::try_from(message);
        }
        if let Ok(message) = proto::Vote::decode(bytes.as_slice()) {
            let _ = Vote::try_from(message);
        }
        if let Ok(message) = proto::Refused::decode(bytes.as_slice()) {
            let _ = Refusal::try_from(message);
        }
        if let Ok(message) = proto::Deposit::decode(bytes.as_slice()) {
            let _ = Deposit::try_from(message);
        }
    }

    /// Closer to the real thing: a good message with some of its bytes changed, or its end cut off.
    #[test]
    fn damaged_messages_never_panic(
        certificate in certificate(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let request = proto::submit_request::Request::Certificate((&certificate).into());
        let mut bytes = proto::SubmitRequest { id: 1, request: Some(request) }.encode_to_vec();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
            if let Ok(request) = proto::SubmitRequest::decode(bytes) {
                take(request);
            }
        }
    }

    #[test]
    fn any_other_length_is_refused(length in 0..300_usize) {
        let wrong = Bytes::from(vec![1; length]);
        let mut payment: proto::Payment = match &some_order(0).transfer {
            Transfer::Payment(payment) => payment.into(),
            Transfer::Redemption(_) | Transfer::Payout(_) => unreachable!(),
        };
        payment.sender = wrong.clone();
        prop_assert_eq!(Payment::try_from(payment).is_ok(), length == 32);
        let mut order: proto::TransferOrder = (&some_order(0)).into();
        order.authorization = Some(proto::transfer_order::Authorization::Ethereum(wrong.clone()));
        prop_assert_eq!(TransferOrder::try_from(order).is_ok(), length == 65);
        let mut vote: proto::Vote = (&some_vote()).into();
        let Some(proto::vote::Signature::Payment(payment)) = &mut vote.signature else { unreachable!() };
        payment.siblings = wrong;
        prop_assert_eq!(Vote::try_from(vote).is_ok(), length.is_multiple_of(32));
    }
}

fn take(request: proto::SubmitRequest) {
    match request.request {
        Some(proto::submit_request::Request::Order(order)) => drop(TransferOrder::try_from(order)),
        Some(proto::submit_request::Request::Certificate(certificate)) => drop(Certificate::try_from(certificate)),
        Some(proto::submit_request::Request::Attested(attested)) => drop(AttestedCertificate::try_from(attested)),
        None => {}
    }
}

#[test]
fn what_is_missing_or_out_of_range_is_named() {
    let order: proto::TransferOrder = (&some_order(0)).into();
    let check = |order: proto::TransferOrder, expected| assert_eq!(TransferOrder::try_from(order), Err(expected));
    check(proto::TransferOrder { transfer: None, ..order.clone() }, Malformed::Missing("transfer"));
    check(proto::TransferOrder { authorization: None, ..order }, Malformed::Missing("authorization"));

    let vote: proto::Vote = (&some_vote()).into();
    let none = proto::Vote { signature: None, ..vote.clone() };
    assert_eq!(Vote::try_from(none), Err(Malformed::Missing("vote.signature")));
    let with = |change: fn(&mut proto::PaymentVote)| {
        let mut vote = vote.clone();
        let Some(proto::vote::Signature::Payment(payment)) = &mut vote.signature else { unreachable!() };
        change(payment);
        Vote::try_from(vote)
    };
    assert!(with(|v| v.siblings = vec![0; 320].into()).is_ok());
    assert_eq!(with(|v| v.siblings = vec![0; 352].into()), Err(Malformed::OutOfRange("siblings")));
    assert_eq!(with(|v| v.siblings = vec![0; 33].into()), Err(Malformed::OutOfRange("siblings")));
    assert_eq!(with(|v| v.directions = 1 << 16), Err(Malformed::OutOfRange("directions")));

    let certificate: proto::Certificate = (&some_certificate(0)).into();
    let votes = |count| proto::Certificate { votes: vec![vote.clone(); count], ..certificate.clone() };
    assert!(Certificate::try_from(votes(255)).is_ok());
    assert_eq!(Certificate::try_from(votes(256)), Err(Malformed::OutOfRange("votes")));
}

#[test]
fn the_longest_certificate_fits_into_a_request() {
    let mut vote: proto::Vote = (&some_vote()).into();
    let Some(proto::vote::Signature::Payment(payment)) = &mut vote.signature else { unreachable!() };
    payment.siblings = vec![7; 320].into();
    payment.directions = u16::MAX.into();
    let mut certificate: proto::Certificate = (&largest_certificate(0)).into();
    for quorum in [3, 7, 67, 170, 255] {
        certificate.votes = vec![vote.clone(); quorum];
        // With the votes of f + 1 members that it exists.
        let attest =
            proto::ContractVote { epoch: u64::MAX, authority: vec![7; 32].into(), signature: vec![7; 65].into() };
        let (certificate, votes) = (Some(certificate.clone()), vec![attest; quorum / 2 + 1]);
        let request = proto::submit_request::Request::Attested(proto::AttestedCertificate { certificate, votes });
        let length = proto::SubmitRequest { id: u64::MAX, request: Some(request) }.encoded_len();
        let bound = request_bytes_max(quorum);
        assert!(length <= bound, "{length} bytes for a quorum of {quorum}");
        // No more than twice what is needed, where the batches of redemptions do not decide.
        assert!(bound <= (2 * length).max(request_bytes_max(0)), "{length} bytes for a quorum of {quorum}");
    }
}

#[test]
fn an_attested_certificate_comes_back_and_its_votes_are_of_one_epoch() {
    let vote = |byte| ContractVote { authority: AuthorityName([byte; 32]), signature: EcdsaSignature([byte; 65]) };
    let attestation = Attestation { epoch: Epoch(3), votes: vec![vote(1), vote(2)] };
    let attested = AttestedCertificate { certificate: some_certificate(0), attestation };
    let wire = over_the_wire(&proto::AttestedCertificate::from(&attested));
    assert_eq!(AttestedCertificate::try_from(wire.clone()), Ok(attested.clone()));
    let certificate = serde_json::to_value(json::Certificate::from(&attested.certificate)).unwrap();
    let vote = |epoch: &str, byte: &str| {
        let (authority, signature) = (format!("0x{}", byte.repeat(32)), format!("0x{}", byte.repeat(65)));
        serde_json::json!({ "epoch": epoch, "authority": authority, "signature": signature })
    };
    let read = |votes: Vec<serde_json::Value>| {
        let json = serde_json::json!({ "certificate": certificate, "votes": votes });
        AttestedCertificate::try_from(serde_json::from_value::<json::AttestedCertificate>(json).unwrap())
    };
    assert_eq!(read(vec![vote("3", "01"), vote("3", "02")]), Ok(attested));
    assert_eq!(read(vec![vote("3", "01"), vote("4", "02")]), Err(Malformed::OutOfRange("epoch")));
    assert_eq!(read(Vec::new()), Err(Malformed::Missing("votes")));
    assert_eq!(read(vec![vote("3", "01"); 256]), Err(Malformed::OutOfRange("votes")));

    let with = |change: &dyn Fn(&mut proto::AttestedCertificate)| {
        let mut changed = wire.clone();
        change(&mut changed);
        AttestedCertificate::try_from(changed).map(drop)
    };
    assert_eq!(with(&|wire| wire.votes[1].epoch = 4), Err(Malformed::OutOfRange("epoch")));
    assert_eq!(with(&|wire| wire.votes.clear()), Err(Malformed::Missing("votes")));
    assert_eq!(with(&|wire| wire.votes = vec![wire.votes[0].clone(); 256]), Err(Malformed::OutOfRange("votes")));
    assert_eq!(with(&|wire| wire.certificate = None), Err(Malformed::Missing("certificate")));
}

#[test]
fn the_largest_batch_fits_into_a_request_and_no_other_number_is_taken() {
    let names = |count| vec![(AccountId([0xFF; 32]), SequenceNumber(u64::MAX)); count];
    let request = |count| proto::RedemptionBatchRequest::from(names(count).as_slice());
    assert!(request(REDEMPTION_BATCH_MAX).encoded_len() <= request_bytes_max(3));
    for count in [1, REDEMPTION_BATCH_MAX] {
        assert_eq!(Vec::try_from(over_the_wire(&request(count))), Ok(names(count)));
    }
    for count in [0, REDEMPTION_BATCH_MAX + 1] {
        let read: Result<Vec<(AccountId, SequenceNumber)>, Malformed> = request(count).try_into();
        assert_eq!(read, Err(Malformed::OutOfRange("redemptions")));
    }
}

fn largest_payout() -> Payout {
    let output = Output { recipient: AccountId([0xFF; 32]), amount: Amount(u128::MAX >> 8), memo: [0xFF; 32].into() };
    Payout {
        sender: AccountId([0xFF; 32]),
        asset: Asset([0xFF; 20].into()),
        outputs: Outputs::new(vec![output; PAYOUT_OUTPUTS_MAX]).unwrap(),
        sequence: SequenceNumber(u64::MAX - 1),
        memo: [0xFF; 32].into(),
    }
}

/// The longest certificate of a payout that a quorum of so many can make.
fn largest_certificate(quorum: usize) -> Certificate {
    let order = TransferOrder { transfer: largest_payout().into(), ..some_order(0) };
    let path = MerklePath { directions: u16::MAX, siblings: vec![[0xFF; 32].into(); MERKLE_PATH_LENGTH_MAX] };
    let signature = VoteSignature::Payment { signature: fastpay_core::Ed25519Signature([0xFF; 64]), path };
    let vote = Vote { authority: fastpay_core::AuthorityName([0xFF; 32]), signature };
    Certificate { order, epoch: fastpay_core::Epoch(u64::MAX), votes: vec![vote; quorum] }
}

#[test]
fn the_largest_payout_fits_into_every_message() {
    for quorum in [3, 67, fastpay_core::COMMITTEE_SIZE_MAX] {
        let certificate = largest_certificate(quorum);
        let request = proto::submit_request::Request::Certificate((&certificate).into());
        let bytes = proto::SubmitRequest { id: u64::MAX, request: Some(request) }.encode_to_vec().len();
        assert!(bytes <= request_bytes_max(quorum) && bytes <= MESSAGE_BYTES_MAX, "{bytes} with {quorum} votes");
        let json = serde_json::to_vec(&json::Certificate::from(&certificate)).unwrap().len();
        assert!(json <= json::json_bytes_max(quorum), "{json} with {quorum} votes");
    }
}

#[test]
fn outputs_that_are_no_payout_are_refused_by_name() {
    let good = proto::Payout::from(&largest_payout());
    let with = |change: &dyn Fn(&mut proto::Payout)| {
        let mut changed = good.clone();
        change(&mut changed);
        Payout::try_from(changed).map(drop)
    };
    let refused = |error| Err(Malformed::Outputs(error));
    assert_eq!(with(&|_| {}), Ok(()));
    assert_eq!(with(&|payout| payout.outputs.clear()), refused(InvalidTransfer::NoOutputs));
    let found = PAYOUT_OUTPUTS_MAX + 1;
    let more = |payout: &mut proto::Payout| payout.outputs.push(payout.outputs[0].clone());
    assert_eq!(with(&more), refused(InvalidTransfer::TooManyOutputs { found }));
    let most = |payout: &mut proto::Payout| payout.outputs[9].amount = vec![0xFF; 16].into();
    assert_eq!(with(&most), refused(InvalidTransfer::SumTooLarge));
    let short = |payout: &mut proto::Payout| payout.outputs[9].memo = vec![0; 31].into();
    assert_eq!(with(&short), Err(Malformed::Length { field: "memo", expected: 32, found: 31 }));
    let json = serde_json::to_value(json::Transfer::from(&Transfer::from(largest_payout()))).unwrap();
    let mut changed = json.clone();
    changed["outputs"] = serde_json::json!([]);
    assert!(serde_json::from_value::<json::Transfer>(json).is_ok());
    assert!(serde_json::from_value::<json::Transfer>(changed).is_err());
}
