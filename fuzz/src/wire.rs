//! Messages from clients to authorities and from authorities to clients.

use std::fmt::Debug;

use fastpay_core::{
    AccountId, Committees, ContractVote, Deposit, Epoch, Payment, Request, RequestError, SequenceNumber, TransferOrder,
    VerifiedRequest, Verifier, Vote,
};
use fastpay_rpc::proto::submit_request::Request as WireRequest;
use fastpay_rpc::proto::submit_response::Response as WireResponse;
use fastpay_rpc::{Malformed, Refusal, proto};
use prost::Message;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::signed::SIGNED;
use crate::tagged;

/// The first byte selects which message the other bytes are.
pub fn run(bytes: &[u8]) {
    let Some((tag, bytes)) = bytes.split_first() else { return };
    match tag % 8 {
        0 => submit_request(bytes),
        1 => {
            decode::<proto::AccountRequest>(bytes);
            decode::<proto::AccountPageRequest>(bytes);
            decode::<proto::PageRequest>(bytes);
            decode::<proto::CertificateRequest>(bytes);
            decode::<proto::StatusRequest>(bytes);
        }
        2 => batch_request(bytes),
        3 => submit_response(bytes),
        4 => {
            let pages = decode::<proto::CertificatePage>(bytes).into_iter().flat_map(|page| page.certificates);
            for certificate in pages.chain(decode::<proto::Certificate>(bytes)) {
                let _ = certificate.try_into().map(|certificate| SIGNED.check_certificate(certificate));
            }
        }
        5 => {
            let payments = decode::<proto::ReceivedPage>(bytes).into_iter().flat_map(|page| page.payments);
            payments.filter_map(|entry| entry.payment).for_each(written_as_read::<Payment, proto::Payment>);
            let deposits = decode::<proto::DepositPage>(bytes).into_iter().flat_map(|page| page.deposits);
            deposits.for_each(written_as_read::<Deposit, proto::Deposit>);
        }
        6 => {
            decode::<proto::StatusResponse>(bytes);
            if let Some(pending) = decode::<proto::AccountResponse>(bytes).and_then(|account| account.pending) {
                written_as_read::<TransferOrder, proto::TransferOrder>(pending);
            }
        }
        _ => batch_response(bytes),
    }
}

/// Protobuf has many encodings of one message, but encoding and decoding a decoded message returns the same message.
fn decode<M: Message + Default + PartialEq + Debug>(bytes: &[u8]) -> Option<M> {
    let message = M::decode(bytes).ok()?;
    assert_eq!(M::decode(message.encode_to_vec().as_slice()).unwrap(), message);
    Some(message)
}

/// If the message converts to a value of core, the value must convert back to the same message.
fn written_as_read<T, M>(message: M)
where
    M: Message + Clone + PartialEq + Debug + for<'a> From<&'a T>,
    T: TryFrom<M, Error = Malformed>,
{
    if let Ok(value) = T::try_from(message.clone()) {
        assert_eq!(M::from(&value), message);
    }
}

fn submit_request(bytes: &[u8]) {
    let Some(request) = decode::<proto::SubmitRequest>(bytes).and_then(|submit| submit.request) else { return };
    let request = match request {
        WireRequest::Order(order) => {
            written_as_read::<TransferOrder, proto::TransferOrder>(order.clone());
            order.try_into().map(Request::Order)
        }
        WireRequest::Certificate(certificate) => certificate.try_into().map(Request::Certificate),
        WireRequest::Attested(attested) => attested.try_into().map(Box::new).map(Request::Attested),
    };
    if let Ok(request) = request {
        verify(request);
    }
}

/// The authority's verifier must return the same verdict as the request's own check, and nothing forged may be valid.
fn verify(request: Request) {
    let committees = Committees::new(SIGNED.committee.committee.clone()).unwrap();
    let mut verifier = Verifier::with_memory(SIGNED.committee.domain, 16, 16);
    // Verify it twice in one batch, and again when the verifier may remember all of it.
    let mut rng = StdRng::seed_from_u64(1);
    let mut verdicts = verifier.verify(vec![request.clone(), request.clone()], &committees, &mut rng);
    verdicts.extend(verifier.verify(vec![request.clone()], &committees, &mut rng));
    let alone = match request {
        Request::Order(order) => {
            SIGNED.check_order(order.clone());
            let verified = order.verify(&SIGNED.committee.domain);
            verified.map(VerifiedRequest::Order).map_err(RequestError::from)
        }
        Request::Certificate(certificate) => match committees.get(certificate.epoch) {
            None => Err(RequestError::UnknownEpoch(certificate.epoch)),
            Some(committee) => {
                SIGNED.check_certificate(certificate.clone());
                let verified = certificate.verify(&SIGNED.committee.domain, committee);
                verified.map(VerifiedRequest::Certificate).map_err(RequestError::from)
            }
        },
        Request::Attested(attested) => {
            let certificate = attested.certificate;
            SIGNED.check_certificate(certificate.clone());
            // Nothing attests a certificate that is not valid.
            if verdicts.iter().any(Result::is_ok) {
                verify(Request::Certificate(certificate));
            }
            return;
        }
    };
    for verdict in verdicts {
        assert_eq!(verdict, alone);
    }
}

fn batch_request(bytes: &[u8]) {
    let Some(request) = decode::<proto::RedemptionBatchRequest>(bytes) else { return };
    if let Ok(names) = Vec::<(AccountId, SequenceNumber)>::try_from(request.clone()) {
        assert_eq!(proto::RedemptionBatchRequest::from(names.as_slice()), request);
    }
}

fn batch_response(bytes: &[u8]) {
    use proto::redemption_batch_response::Response;
    match decode::<proto::RedemptionBatchResponse>(bytes).and_then(|answer| answer.response) {
        Some(Response::Vote(vote)) => {
            if let Ok((epoch, read)) = <(Epoch, ContractVote)>::try_from(vote.clone()) {
                assert_eq!(proto::ContractVote::from((epoch, &read)), vote);
            }
        }
        Some(Response::Refused(refused)) => refusal(refused),
        Some(Response::Missing(_) | Response::Uncovered(_)) | None => {}
    }
}

fn submit_response(bytes: &[u8]) {
    match decode::<proto::SubmitResponse>(bytes).and_then(|answer| answer.response) {
        Some(WireResponse::Vote(vote)) => {
            let epoch = Epoch(vote.epoch);
            if let Ok(read) = Vote::try_from(vote.clone()) {
                assert_eq!(proto::Vote::from((epoch, &read)), vote);
                let order = SIGNED.committee.verified(&SIGNED.orders[0]);
                let _ = read.verify(&SIGNED.committee.domain, &SIGNED.committee.committee, &order);
            }
        }
        Some(WireResponse::Refused(refused)) => refusal(refused),
        Some(WireResponse::Confirmed(_)) | None => {}
    }
}

/// A refusal that an authority sends must be safe to print, and keep its meaning when it is passed on.
fn refusal(refused: proto::Refused) {
    let Ok(refusal) = Refusal::try_from(refused) else { return };
    if let Refusal::Malformed(words) | Refusal::Invalid(words) = &refusal {
        assert!(!words.chars().any(char::is_control), "{words:?}");
    }
    let again = Refusal::try_from(proto::Refused::from(&refusal)).unwrap();
    assert_eq!(std::mem::discriminant(&again), std::mem::discriminant(&refusal));
}

/// One message of each kind, and all orders and certificates that were signed.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let signed = &*SIGNED;
    let submit = |request| proto::SubmitRequest { id: 1, request: Some(request) }.encode_to_vec();
    let orders = signed.orders.iter().map(|order| tagged(0, &submit(WireRequest::Order(order.into()))));
    let mut seeds: Vec<_> = orders.collect();
    for certificate in &signed.certificates {
        seeds.push(tagged(0, &submit(WireRequest::Certificate(certificate.into()))));
        seeds.push(tagged(4, &proto::Certificate::from(certificate).encode_to_vec()));
        let response = WireResponse::Vote((Epoch(0), &certificate.votes[0]).into());
        seeds.push(tagged(3, &proto::SubmitResponse { id: 1, response: Some(response) }.encode_to_vec()));
    }
    let account = signed.orders[0].transfer.sender();
    let page = proto::AccountPageRequest { account: account.0.to_vec().into(), start: 3, limit: 100 };
    seeds.push(tagged(1, &page.encode_to_vec()));
    let names = [(account, SequenceNumber(1)), (account, SequenceNumber(2))];
    seeds.push(tagged(2, &proto::RedemptionBatchRequest::from(names.as_slice()).encode_to_vec()));
    for refusal in [Refusal::Invalid("why".into()), Refusal::OrderPending(Box::new(signed.orders[1].clone()))] {
        let response = Some(WireResponse::Refused((&refusal).into()));
        seeds.push(tagged(3, &proto::SubmitResponse { id: 2, response }.encode_to_vec()));
    }
    let pending = Some((&signed.orders[2]).into());
    seeds.push(tagged(6, &proto::AccountResponse { next_sequence: 4, pending, ..Default::default() }.encode_to_vec()));
    let deposit = Deposit {
        index: fastpay_core::TransactionIndex(1),
        recipient: account,
        asset: fastpay_core::Asset::ETHER,
        amount: fastpay_core::Amount(5),
    };
    seeds.push(tagged(5, &proto::DepositPage { deposits: vec![(&deposit).into()], total: 1 }.encode_to_vec()));
    let vote = ContractVote {
        authority: signed.committee.committee.members()[0].name,
        signature: fastpay_core::EcdsaSignature([27; 65]),
    };
    let response = proto::redemption_batch_response::Response::Vote((Epoch(0), &vote).into());
    seeds.push(tagged(7, &proto::RedemptionBatchResponse { response: Some(response) }.encode_to_vec()));
    seeds
}
