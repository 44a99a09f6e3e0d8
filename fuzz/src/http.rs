//! Bodies of the HTTP API, and texts in its paths.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use fastpay_core as core;
use fastpay_rpc::REDEMPTION_BATCH_MAX;
use fastpay_rpc::json::{
    Account, AccountState, Bytes20, Bytes32, Certificate, Int256, Problem, RedemptionBatch, RedemptionBatchVote,
    TransferName, TransferOrder, Uint64, Uint128, UnlockVote, UnlockVoteRequest, VoteAnswer,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::signed::SIGNED;
use crate::tagged;

/// The first byte selects what the other bytes are.
pub fn run(bytes: &[u8]) {
    let Some((tag, bytes)) = bytes.split_first() else { return };
    match tag % 4 {
        0 => {
            let Some(order) = decode::<TransferOrder>(bytes) else { return };
            let read = core::TransferOrder::from(order.clone());
            assert_eq!(TransferOrder::from(&read), order);
            SIGNED.check_order(read);
        }
        1 => {
            let Some(certificate) = decode::<Certificate>(bytes) else { return };
            if let Ok(read) = core::Certificate::try_from(certificate.clone()) {
                assert_eq!(Certificate::from(&read), certificate);
                SIGNED.check_certificate(read);
            }
        }
        2 => {
            decode::<VoteAnswer>(bytes);
            decode::<AccountState>(bytes);
            decode::<Problem>(bytes);
            decode::<RedemptionBatchVote>(bytes);
            decode::<UnlockVoteRequest>(bytes);
            decode::<UnlockVote>(bytes);
            let Some(batch) = decode::<RedemptionBatch>(bytes) else { return };
            let asked = batch.redemptions.len();
            match Vec::<(core::AccountId, core::SequenceNumber)>::try_from(batch) {
                Ok(names) => assert!(names.len() == asked && (1..=REDEMPTION_BATCH_MAX).contains(&asked)),
                Err(_) => assert!(asked == 0 || asked > REDEMPTION_BATCH_MAX),
            }
        }
        _ => {
            let Ok(text) = std::str::from_utf8(bytes) else { return };
            parse::<Account>(text);
            parse::<Bytes20>(text);
            parse::<Bytes32>(text);
            // Each number has exactly one text.
            parse::<Uint64>(text).iter().for_each(|number| assert_eq!(number.to_string(), text));
            parse::<Uint128>(text).iter().for_each(|number| assert_eq!(number.to_string(), text));
            parse::<Int256>(text).iter().for_each(|number| assert_eq!(number.to_string(), text));
        }
    }
}

/// Decodes a value, and checks that encoding and decoding it again returns the same value.
fn decode<T: DeserializeOwned + Serialize + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(bytes).ok()?;
    assert_eq!(serde_json::from_slice::<T>(&serde_json::to_vec(&value).unwrap()).unwrap(), value);
    Some(value)
}

fn parse<T: FromStr<Err: Display> + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    match text.parse::<T>() {
        Ok(value) => {
            assert!(value.to_string().parse::<T>().is_ok_and(|again| again == value));
            Some(value)
        }
        Err(error) => {
            assert!(error.to_string().len() < 1_000, "a stranger's text is not repeated at length");
            None
        }
    }
}

/// One body of each kind, and one of each text.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let signed = &*SIGNED;
    let mut seeds: Vec<_> = signed.orders.iter().map(|order| body(0, &TransferOrder::from(order))).collect();
    seeds.extend(signed.certificates.iter().map(|certificate| body(1, &Certificate::from(certificate))));
    let certificate = &signed.certificates[0];
    seeds.push(body(2, &VoteAnswer::from((certificate.epoch, &certificate.votes[0]))));
    let refusal = fastpay_rpc::Refusal::OrderPending(Box::new(signed.orders[1].clone()));
    seeds.push(body(2, &Problem::from(&refusal)));
    let account = signed.orders[0].transfer.sender();
    let name = TransferName { sender: account.into(), sequence: "7".parse().unwrap() };
    seeds.push(body(2, &RedemptionBatch { redemptions: vec![name.clone(), name] }));
    seeds
        .push(body(2, &UnlockVoteRequest { account: account.into(), sequence: "7".parse().unwrap(), unanimous: true }));
    let texts = [account.to_string(), Bytes32::from_str(&format!("0x{}", "ab".repeat(32))).unwrap().to_string()];
    seeds.extend(texts.iter().map(|text| tagged(3, text.as_bytes())));
    seeds.extend(
        ["0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045", "18446744073709551615", "-7"]
            .map(|text| tagged(3, text.as_bytes())),
    );
    seeds
}

fn body(tag: u8, value: &impl Serialize) -> Vec<u8> {
    tagged(tag, &serde_json::to_vec(value).unwrap())
}
