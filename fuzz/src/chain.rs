//! An Ethereum node's answers: a false one must end in an alarm or an error, and never in a deposit that the rules of
//! the log do not allow.

use alloy::primitives::{Address, B256, Bytes, LogData};
use alloy::rpc::types::Log;
use alloy::sol_types::{SolCall, SolEvent};
use fastpay_core::TransactionIndex;
use fastpay_ethereum::{BlockHead, BlockRange, IFastPay, IToken, Revert, check_logs};

use crate::tagged;

const CONTRACT: Address = Address::repeat_byte(0xfa);
const FIRST: u64 = 10;
const LAST: u64 = 20;
/// The number of input bytes that encode one log.
const LOG_BYTES: usize = 8;

/// The first byte selects which answer the other bytes are.
pub fn run(bytes: &[u8]) {
    let Some((tag, bytes)) = bytes.split_first() else { return };
    match tag % 5 {
        // Logs in the node's JSON form.
        0 => serde_json::from_slice::<Vec<Log>>(bytes).into_iter().for_each(|logs| deposits(&logs, None)),
        // Generated logs that are nearly valid.
        1 => {
            let Some((count, bytes)) = bytes.split_first() else { return };
            let logs: Vec<Log> = bytes.as_chunks::<LOG_BYTES>().0.iter().map(|bytes| log(*bytes)).collect();
            deposits(&logs, (count % 2 == 0).then_some(TransactionIndex(u64::from(count / 2))));
        }
        2 => {
            let revert = Revert::decode(Bytes::copy_from_slice(bytes));
            let _ = (revert.item(), revert.paused_until(), revert.to_string());
        }
        3 => views(bytes),
        _ => {
            for head in serde_json::from_slice::<Option<BlockHead>>(bytes).into_iter().flatten() {
                let _ = (head.number(), head.timestamp());
            }
        }
    }
}

/// Accepted logs must be all logs, from the contract, in the requested blocks, in order and without gaps.
fn deposits(logs: &[Log], count: Option<TransactionIndex>) {
    let after = TransactionIndex(4);
    let range = BlockRange { first: FIRST, last: LAST, last_hash: block_hash(LAST) };
    let Ok(events) = check_logs(after, CONTRACT, &range, logs, count) else { return };
    assert_eq!(events.len(), logs.len());
    let mut place = None;
    for ((index, event), log) in (after.0 + 1..).zip(&events).zip(logs) {
        assert!(event.index().0 == index, "{event:?}");
        assert!(event.deposit().is_none_or(|deposit| deposit.amount.0 > 0), "{event:?}");
        assert!(log.address() == CONTRACT && !log.removed, "{log:?}");
        let next = Some((log.block_number.unwrap(), log.log_index.unwrap()));
        assert!((FIRST..=LAST).contains(&log.block_number.unwrap()) && place < next, "{log:?}");
        place = next;
    }
    assert!(count.is_none_or(|count| count.0 == after.0 + events.len() as u64));
}

fn block_hash(number: u64) -> B256 {
    B256::with_last_byte(number as u8)
}

/// A log that is valid if all bytes but the first three are zero.
fn log([index, block, position, other_fork, address, removed, topics, amount]: [u8; LOG_BYTES]) -> Log {
    let event = IFastPay::Funded {
        index: u64::from(index),
        recipient: B256::repeat_byte(1),
        asset: Address::repeat_byte(2),
        amount: u128::from(amount ^ 1),
        payer: Address::repeat_byte(3),
    };
    let data = event.encode_log_data();
    let kept =
        data.topics().iter().take(data.topics().len().saturating_sub(usize::from(topics % 5))).copied().collect();
    Log {
        inner: alloy::primitives::Log {
            address: if address == 0 { CONTRACT } else { Address::repeat_byte(address) },
            data: LogData::new_unchecked(kept, data.data),
        },
        block_hash: (other_fork != 1).then_some(block_hash(u64::from(block ^ other_fork))),
        block_number: Some(u64::from(block)),
        log_index: Some(u64::from(position)),
        removed: removed != 0,
        ..Default::default()
    }
}

/// Return values of views: every decoded value can be encoded again.
fn views(bytes: &[u8]) {
    fn view<C: SolCall>(bytes: &[u8]) {
        if let Ok(value) = C::abi_decode_returns_validate(bytes) {
            let encoded = C::abi_encode_returns(&value);
            assert!(
                bytes.starts_with(&encoded) || encoded.len() > bytes.len() || C::abi_decode_returns(&encoded).is_ok()
            );
        }
    }
    view::<IFastPay::committeeCall>(bytes);
    view::<IFastPay::safetyParametersCall>(bytes);
    view::<IFastPay::queuedCall>(bytes);
    view::<IFastPay::epochCall>(bytes);
    view::<IFastPay::quorumCall>(bytes);
    view::<IToken::symbolCall>(bytes);
    view::<IToken::decimalsCall>(bytes);
}

/// Valid answers.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let good = [[5, 11, 0, 0, 0, 0, 0, 0], [6, 11, 3, 0, 0, 0, 0, 0], [7, 20, 0, 0, 0, 0, 0, 0]];
    let logs: Vec<Log> = good.iter().map(|bytes| log(*bytes)).collect();
    let error = alloy::sol_types::SolError::abi_encode(&IFastPay::PausedUntil { until: alloy::primitives::U256::MAX });
    let members: Vec<_> = crate::signed::SIGNED.committee.committee.members().iter().map(Into::into).collect();
    let head = br#"{"number":"0x14","hash":"0x0000000000000000000000000000000000000000000000000000000000000014","baseFeePerGas":"0x7","timestamp":"0x9","gasLimit":"0x1c9c380"}"#;
    vec![
        tagged(0, &serde_json::to_vec(&logs).unwrap()),
        tagged(1, &tagged(14, &good.concat())),
        tagged(1, &tagged(15, &good.concat())),
        tagged(2, &error),
        tagged(3, &IFastPay::committeeCall::abi_encode_returns(&members)),
        tagged(3, &IToken::symbolCall::abi_encode_returns(&"TOKEN".into())),
        tagged(4, head),
    ]
}
