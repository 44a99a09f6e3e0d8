//! What is sent is what arrives, and what arrives in any other form is refused by name.

use bytes::Bytes;
use fastpay_core::{
    AccountId, Certificate, Deposit, Payment, Redemption, SequenceNumber, Transfer, TransferOrder, Vote,
};
use fastpay_rpc::{Malformed, REDEMPTION_BATCH_MAX, Refusal, proto, request_bytes_max};
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
            Transfer::Redemption(_) => unreachable!(),
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
    let mut certificate: proto::Certificate = (&some_certificate(u64::MAX)).into();
    certificate.epoch = u64::MAX;
    for quorum in [3, 7, 67, 170, 255] {
        certificate.votes = vec![vote.clone(); quorum];
        let request = proto::submit_request::Request::Certificate(certificate.clone());
        let length = proto::SubmitRequest { id: u64::MAX, request: Some(request) }.encoded_len();
        let bound = request_bytes_max(quorum);
        assert!(length <= bound, "{length} bytes for a quorum of {quorum}");
        // No more than twice what is needed, where the batches of redemptions do not decide.
        assert!(bound <= (2 * length).max(request_bytes_max(0)), "{length} bytes for a quorum of {quorum}");
    }
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
