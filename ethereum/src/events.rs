//! The contract's events that share one numbering without gaps, of eight kinds, and the rules that their logs must
//! obey. Without any I/O.
//!
//! Index 0 is the committee of the deployment. All other events follow one by one, so an event that a node omits shows
//! as a gap, or in the contract's count.

use alloy::primitives::{Address, B256};
use alloy::rpc::types::Log;
use alloy::sol_types::SolEvent;
use fastpay_core::{AccountId, Amount, Asset, Deposit, Epoch, TransactionIndex};

use crate::contract::IFastPay;

macro_rules! order_events {
    ($($(#[$doc:meta])* $event:ident,)*) => {
        /// An event of the order.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum OrderEvent {
            $($(#[$doc])* $event(IFastPay::$event),)*
        }

        impl OrderEvent {
            /// The first topics that an event of the order can have.
            pub(crate) const TOPICS: &[B256] = &[$(IFastPay::$event::SIGNATURE_HASH,)*];

            /// The event's place in the order.
            #[must_use]
            pub fn index(&self) -> TransactionIndex {
                match self {
                    $(Self::$event(event) => TransactionIndex(event.index),)*
                }
            }

            /// Reads a log; `None` if it is no event of the order.
            pub(crate) fn decode(log: &Log) -> Option<alloy::sol_types::Result<Self>> {
                match *log.topic0()? {
                    $(IFastPay::$event::SIGNATURE_HASH => {
                        Some(IFastPay::$event::decode_log_validate(&log.inner).map(|event| Self::$event(event.data)))
                    })*
                    _ => None,
                }
            }
        }
    };
}

order_events! {
    /// An epoch began.
    CommitteeInstalled,
    /// A deposit.
    Funded,
    /// A redemption was paid.
    Redeemed,
    /// A redemption waits, and its order is spent.
    RedemptionQueued,
    /// A redemption that waited will not be paid.
    RedemptionReleased,
    /// An owner requests that an order's number be unlocked.
    UnlockRequested,
    /// One order holds under its number.
    SequenceUpheld,
    /// No order holds under a number.
    SequenceVoided,
}

impl OrderEvent {
    /// The deposit in the event, if it is one.
    #[must_use]
    pub fn deposit(&self) -> Option<Deposit> {
        let Self::Funded(event) = self else { return None };
        Some(Deposit {
            index: TransactionIndex(event.index),
            recipient: AccountId(event.recipient.0),
            asset: Asset(event.asset),
            amount: Amount(event.amount),
        })
    }
}

/// The requested range of blocks, including both ends.
#[derive(Clone, Copy, Debug)]
pub struct BlockRange {
    /// The first block's number.
    pub first: u64,
    /// The last block's number.
    pub last: u64,
    /// The last block's hash.
    pub last_hash: B256,
}

/// An answer that no correct Ethereum node gives. The reader discards the whole answer: using it could credit money
/// that was never deposited, or skip money that was. If it persists, an operator has to compare the node with others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Alarm {
    /// A final block was replaced.
    #[error("block {block} was final as {expected} and is now {found} at {node}; compare the node with others")]
    Reorganised {
        /// The node.
        node: String,
        /// The block's number.
        block: u64,
        /// Its hash when it was read.
        expected: B256,
        /// Its hash now.
        found: B256,
    },
    /// Two nodes disagree about the same blocks.
    #[error("{node} disagrees with the first Ethereum node about the blocks up to {block}; compare both with others")]
    Disagreement {
        /// The second node.
        node: String,
        /// The last block of the range.
        block: u64,
    },
    /// A node's unlock window is outside the contract's bounds, or not that of the first node.
    #[error(
        "{node} says that requests to unlock are open for {seconds} s; a contract of FastPay says 3 to 30 days, and every Ethereum node the same; compare the node with others"
    )]
    UnlockWindow {
        /// The node.
        node: String,
        /// Its answer.
        seconds: u64,
    },
    /// An event is missing: the indices jump.
    #[error("block {block} contains event {found} where {expected} was due; compare the node with others")]
    Gap {
        /// The expected index.
        expected: TransactionIndex,
        /// The index found.
        found: TransactionIndex,
        /// The block of the log.
        block: u64,
    },
    /// An event was repeated.
    #[error("block {block} repeats event {index}; compare the node with others")]
    Repeated {
        /// The repeated index.
        index: TransactionIndex,
        /// The block of the log.
        block: u64,
    },
    /// The contract counts other events than the logs show.
    #[error(
        "the logs show events up to {logs} and the contract counts {contract} in block {block}; compare the node with others"
    )]
    CountDiffers {
        /// The last index of the logs.
        logs: TransactionIndex,
        /// The contract's `lastTransactionIndex`.
        contract: TransactionIndex,
        /// The last block of the range.
        block: u64,
    },
    /// A log is marked as removed although its block is final.
    #[error("an event in block {block} is marked as removed though the block is final; compare the node with others")]
    Removed {
        /// The block of the log.
        block: u64,
    },
    /// A log comes before one that it should follow.
    #[error("the events of block {block} are out of order; compare the node with others")]
    OutOfOrder {
        /// The block of the log.
        block: u64,
    },
    /// A log is of a block outside the requested range, or of another block with the same number.
    #[error("the node returned an event of block {block}, which was not requested; compare the node with others")]
    WrongBlock {
        /// The block of the log.
        block: u64,
    },
    /// A log is of another contract, or of an event without an index.
    #[error("a log in block {block} is from {address} and not an event of this contract; compare the node with others")]
    Foreign {
        /// The block of the log.
        block: u64,
        /// The address that claims to have written it.
        address: Address,
    },
    /// The contract is in an earlier epoch than before.
    #[error("{node} reports epoch {found} in block {block}, after epoch {known}; compare the node with others")]
    EpochLost {
        /// The node.
        node: String,
        /// The block's number.
        block: u64,
        /// The epoch that was final before.
        known: Epoch,
        /// The epoch now.
        found: Epoch,
    },
    /// A log cannot be decoded.
    #[error("an event in block {block} cannot be read ({reason}); compare the node with others")]
    Malformed {
        /// The block of the log; 0 if it names none.
        block: u64,
        /// The defect.
        reason: &'static str,
    },
}

/// Decodes the events in `logs`, which must be all of `range`, in order, and follow `after` without a gap. The
/// committee of the deployment is left out. `count` is the index of the last event that the contract counted up to the
/// end of the range.
///
/// # Errors
/// The first [`Alarm`] that the logs raise.
pub fn check_logs(
    after: TransactionIndex,
    contract: Address,
    range: &BlockRange,
    logs: &[Log],
    count: Option<TransactionIndex>,
) -> Result<Vec<OrderEvent>, Alarm> {
    let mut last_index = after;
    let mut place = None;
    let mut events = Vec::with_capacity(logs.len());
    for log in logs {
        let is_first = place.is_none();
        place = Some(check_place(place, range, log)?);
        let event = read(contract, log)?;
        if is_first && after == TransactionIndex(0) && is_deployment(&event) {
            continue;
        }
        let (block, index) = (log.block_number.unwrap_or_default(), event.index());
        let due = last_index.next().ok_or(Alarm::Malformed { block, reason: "no index can follow" })?;
        if index < due {
            return Err(Alarm::Repeated { index, block });
        }
        if index > due {
            return Err(Alarm::Gap { expected: due, found: index, block });
        }
        last_index = due;
        events.push(event);
    }
    match count {
        Some(contract) if contract != last_index => {
            Err(Alarm::CountDiffers { logs: last_index, contract, block: range.last })
        }
        _ => Ok(events),
    }
}

/// Whether this is the first event of all, the deployment's committee.
fn is_deployment(event: &OrderEvent) -> bool {
    matches!(event, OrderEvent::CommitteeInstalled(event) if event.index == 0 && event.epoch == 0)
}

/// The place of a log: block number, block hash, position in the block.
type Place = (u64, B256, u64);

/// Checks that a log is in the range and after the one before it.
fn check_place(previous: Option<Place>, range: &BlockRange, log: &Log) -> Result<Place, Alarm> {
    let block = log.block_number.unwrap_or_default();
    let (Some(number), Some(hash), Some(position)) = (log.block_number, log.block_hash, log.log_index) else {
        return Err(Alarm::Malformed { block, reason: "it has no position" });
    };
    if log.removed {
        return Err(Alarm::Removed { block });
    }
    let outside = number < range.first || number > range.last;
    if outside || (number == range.last && hash != range.last_hash) {
        return Err(Alarm::WrongBlock { block });
    }
    if let Some((previous_number, previous_hash, previous_position)) = previous {
        if (number, position) <= (previous_number, previous_position) {
            return Err(Alarm::OutOfOrder { block });
        }
        if number == previous_number && hash != previous_hash {
            return Err(Alarm::WrongBlock { block });
        }
    }
    Ok((number, hash, position))
}

fn read(contract: Address, log: &Log) -> Result<OrderEvent, Alarm> {
    let block = log.block_number.unwrap_or_default();
    let event = OrderEvent::decode(log).filter(|_| log.address() == contract);
    let event = event.ok_or(Alarm::Foreign { block, address: log.address() })?;
    let event = event.map_err(|_| Alarm::Malformed { block, reason: "its data is not its kind's" })?;
    match &event {
        OrderEvent::Funded(deposit) if deposit.amount == 0 => {
            Err(Alarm::Malformed { block, reason: "its amount is zero" })
        }
        _ => Ok(event),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy::primitives::{Bytes, LogData};

    const CONTRACT: Address = Address::repeat_byte(0xfa);
    const RANGE: BlockRange = BlockRange { first: 10, last: 20, last_hash: B256::repeat_byte(20) };

    /// Deposit `index` as the log at `position` of block `block`.
    fn log(index: u64, block: u8, position: u64) -> Log {
        let event = IFastPay::Funded {
            index,
            recipient: B256::repeat_byte(1),
            asset: Address::repeat_byte(2),
            amount: 1_000 + u128::from(index),
            payer: Address::repeat_byte(3),
        };
        log_of(&event, block, position)
    }

    fn log_of(event: &impl SolEvent, block: u8, position: u64) -> Log {
        Log {
            inner: alloy::primitives::Log { address: CONTRACT, data: event.encode_log_data() },
            block_hash: Some(B256::repeat_byte(block)),
            block_number: Some(u64::from(block)),
            log_index: Some(position),
            ..Default::default()
        }
    }

    fn run(logs: &[Log], count: u64) -> Result<Vec<u64>, Alarm> {
        let events = check_logs(TransactionIndex(4), CONTRACT, &RANGE, logs, Some(TransactionIndex(count)))?;
        Ok(events.iter().map(|event| event.index().0).collect())
    }

    /// Three valid logs, after a change.
    fn changed(change: impl FnOnce(&mut Vec<Log>)) -> Result<Vec<u64>, Alarm> {
        let mut logs = vec![log(5, 11, 0), log(6, 11, 3), log(7, 20, 0)];
        change(&mut logs);
        run(&logs, 7)
    }

    #[test]
    fn logs_without_a_fault_are_deposits() {
        assert_eq!(changed(|_| ()), Ok(vec![5, 6, 7]));
        assert_eq!(run(&[], 4), Ok(vec![]));
        let events = check_logs(TransactionIndex(4), CONTRACT, &RANGE, &[log(5, 11, 0)], None).unwrap();
        let expected = Deposit {
            index: TransactionIndex(5),
            recipient: AccountId([1; 32]),
            asset: Asset(Address::repeat_byte(2)),
            amount: Amount(1_005),
        };
        assert_eq!(events.iter().map(OrderEvent::deposit).collect::<Vec<_>>(), [Some(expected)]);
    }

    /// One event of each kind, from index 5 on.
    fn one_of_each() -> Vec<Log> {
        let (word, address) = (B256::repeat_byte(1), Address::repeat_byte(2));
        let redeemed = IFastPay::Redeemed {
            sender: word,
            recipient: address,
            asset: address,
            index: 6,
            sequence: 1,
            amount: 2,
            fee: 1,
            relayer: address,
            digest: word,
        };
        let queued = IFastPay::RedemptionQueued {
            sender: word,
            recipient: address,
            asset: address,
            index: 7,
            sequence: 2,
            amount: 2,
            fee: 1,
            relayer: address,
            digest: word,
            epoch: 0,
            executableAt: alloy::primitives::U256::from(9),
        };
        let installed = IFastPay::CommitteeInstalled {
            index: 9,
            epoch: 1,
            authorities: Vec::new(),
            guardian: address,
            previousEpochEnds: alloy::primitives::U256::ZERO,
            compromisedSince: 0,
            checkpoint: word,
        };
        let requested = IFastPay::UnlockRequested {
            index: 10,
            account: word,
            sequence: 3,
            voidableFrom: alloy::primitives::U256::from(9),
            authorization: Bytes::from_static(b"signed"),
        };
        vec![
            log(5, 11, 0),
            log_of(&redeemed, 11, 1),
            log_of(&queued, 11, 2),
            log_of(&IFastPay::RedemptionReleased { sender: word, index: 8, sequence: 2, digest: word }, 12, 0),
            log_of(&installed, 12, 1),
            log_of(&requested, 13, 0),
            log_of(&IFastPay::SequenceUpheld { index: 11, account: word, sequence: 3, digest: word }, 13, 1),
            log_of(&IFastPay::SequenceVoided { index: 12, account: word, sequence: 4 }, 13, 2),
        ]
    }

    #[test]
    fn events_of_all_kinds_are_numbered_together() {
        let logs = one_of_each();
        assert_eq!(logs.len(), OrderEvent::TOPICS.len());
        assert_eq!(run(&logs, 12), Ok((5..=12).collect()));
        for left_out in 0..logs.len() {
            let mut logs = logs.clone();
            logs.remove(left_out);
            let is_last = left_out == logs.len();
            match run(&logs, 12) {
                Err(Alarm::Gap { expected, .. }) => assert_eq!(expected.0, 5 + left_out as u64),
                Err(Alarm::CountDiffers { .. }) if is_last => {}
                other => panic!("{left_out}: {other:?}"),
            }
        }
        for truncated in 0..logs.len() {
            let mut logs = logs.clone();
            let data = &mut logs[truncated].inner.data;
            *data = LogData::new_unchecked(data.topics().to_vec(), data.data.slice(..31));
            assert!(matches!(run(&logs, 12), Err(Alarm::Malformed { .. })), "{truncated}");
        }
    }

    #[test]
    fn the_order_begins_with_the_committee_of_the_deployment() {
        let first = |epoch: u64, position: u64| {
            let event = IFastPay::CommitteeInstalled {
                index: 0,
                epoch,
                authorities: Vec::new(),
                guardian: Address::ZERO,
                previousEpochEnds: alloy::primitives::U256::ZERO,
                compromisedSince: 0,
                checkpoint: B256::ZERO,
            };
            log_of(&event, 11, position)
        };
        let run = |after: u64, logs: &[Log]| {
            let events = check_logs(TransactionIndex(after), CONTRACT, &RANGE, logs, None)?;
            Ok::<_, Alarm>(events.iter().map(|event| event.index().0).collect::<Vec<_>>())
        };
        assert_eq!(run(0, &[first(0, 0)]), Ok(vec![]));
        assert_eq!(run(0, &[first(0, 0), log(1, 11, 1)]), Ok(vec![1]));
        let again = Err(Alarm::Repeated { index: TransactionIndex(0), block: 11 });
        assert_eq!(run(0, &[first(0, 0), first(0, 1)]), again);
        assert_eq!(run(0, &[log(1, 11, 0), first(0, 1)]), again);
        assert_eq!(run(4, &[first(0, 0)]), again);
        assert_eq!(run(0, &[first(1, 0)]), again, "no other epoch began there");
        assert_eq!(run(0, &[log(0, 11, 0)]), again, "no deposit has index 0");
    }

    #[test]
    fn a_gap_raises_the_alarm() {
        let gap = |found, block| {
            let (expected, found) = (TransactionIndex(found - 1), TransactionIndex(found));
            Err(Alarm::Gap { expected, found, block })
        };
        assert_eq!(changed(|logs| drop(logs.remove(0))), gap(6, 11));
        assert_eq!(changed(|logs| drop(logs.remove(1))), gap(7, 20));
    }

    #[test]
    fn an_omitted_last_log_is_missed_by_the_count() {
        let differs =
            |logs| Err(Alarm::CountDiffers { logs: TransactionIndex(logs), contract: TransactionIndex(7), block: 20 });
        assert_eq!(changed(|logs| drop(logs.pop())), differs(6));
        assert_eq!(changed(Vec::clear), differs(4));
        assert!(matches!(run(&[log(5, 11, 0)], 4), Err(Alarm::CountDiffers { .. })));
    }

    #[test]
    fn a_repetition_raises_the_alarm() {
        let repeated = |index, block| Err(Alarm::Repeated { index: TransactionIndex(index), block });
        assert_eq!(changed(|logs| logs.push(log(7, 20, 1))), repeated(7, 20));
        assert_eq!(changed(|logs| logs.insert(1, log(5, 11, 1))), repeated(5, 11));
        assert_eq!(changed(|logs| logs.insert(0, log(4, 10, 0))), repeated(4, 10));
        // The very same log twice is out of order.
        assert_eq!(changed(|logs| logs.insert(1, log(5, 11, 0))), Err(Alarm::OutOfOrder { block: 11 }));
    }

    #[test]
    fn logs_out_of_order_raise_the_alarm() {
        assert_eq!(
            changed(|logs| logs.swap(0, 1)),
            Err(Alarm::Gap { expected: TransactionIndex(5), found: TransactionIndex(6), block: 11 })
        );
        assert_eq!(changed(|logs| logs[1] = log(6, 11, 0)), Err(Alarm::OutOfOrder { block: 11 }));
        assert_eq!(changed(|logs| logs[1] = log(6, 10, 9)), Err(Alarm::OutOfOrder { block: 10 }));
    }

    #[test]
    fn logs_of_other_blocks_raise_the_alarm() {
        assert_eq!(changed(|logs| logs[0] = log(5, 9, 0)), Err(Alarm::WrongBlock { block: 9 }));
        assert_eq!(changed(|logs| logs[2] = log(7, 21, 0)), Err(Alarm::WrongBlock { block: 21 }));
        let other_fork = |at: usize| changed(|logs| logs[at].block_hash = Some(B256::ZERO));
        assert_eq!(other_fork(1), Err(Alarm::WrongBlock { block: 11 }));
        assert_eq!(other_fork(2), Err(Alarm::WrongBlock { block: 20 }));
    }

    #[test]
    fn removed_logs_raise_the_alarm() {
        assert_eq!(changed(|logs| logs[1].removed = true), Err(Alarm::Removed { block: 11 }));
    }

    #[test]
    fn foreign_logs_raise_the_alarm() {
        let address = Address::repeat_byte(9);
        assert_eq!(changed(|logs| logs[0].inner.address = address), Err(Alarm::Foreign { block: 11, address }));
        let other_event = changed(|logs| {
            let mut topics = logs[0].inner.data.topics().to_vec();
            topics[0] = B256::ZERO;
            logs[0].inner.data = LogData::new_unchecked(topics, logs[0].inner.data.data.clone());
        });
        assert_eq!(other_event, Err(Alarm::Foreign { block: 11, address: CONTRACT }));
    }

    #[test]
    fn malformed_logs_raise_the_alarm() {
        let with_data = |topics: usize, data: &[u8]| {
            let data = Bytes::copy_from_slice(data);
            changed(|logs| {
                let kept = logs[0].inner.data.topics().iter().take(topics).copied().collect();
                logs[0].inner.data = LogData::new_unchecked(kept, data);
            })
        };
        let malformed = |result| assert!(matches!(result, Err(Alarm::Malformed { .. })), "{result:?}");
        malformed(with_data(4, &[]));
        malformed(with_data(4, &[0xff; 64]));
        malformed(with_data(3, &[0; 64]));
        // An amount of zero.
        malformed(with_data(4, &[0; 64]));
        malformed(changed(|logs| logs[0].block_number = None));
        malformed(changed(|logs| logs[0].block_hash = None));
        malformed(changed(|logs| logs[0].log_index = None));
        // An index above 64 bits.
        malformed(changed(|logs| logs[0].inner.data.topics_mut()[1] = B256::repeat_byte(0xff)));
    }

    #[test]
    fn no_index_follows_the_largest() {
        let result = check_logs(TransactionIndex(u64::MAX), CONTRACT, &RANGE, &[log(0, 11, 0)], None);
        assert!(matches!(result, Err(Alarm::Malformed { .. })));
    }
}
