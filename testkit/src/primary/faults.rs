//! Faults of one Ethereum node.

use std::ops::RangeInclusive;
use std::sync::Arc;

use alloy::primitives::{Address, B256, Bytes, U256};
use alloy::rpc::types::Log;
use alloy::sol_types::SolEvent;
use fastpay_ethereum::IFastPay;

use super::block::Block;

/// How a node behaves. The default is correct and answers at once.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// It shows the chain as it was so many blocks ago.
    pub lag: usize,
    /// How long a question is under way to it, and an answer back, in milliseconds of virtual time.
    pub delay_ms: RangeInclusive<u64>,
    /// Nobody listens at its address.
    pub away: bool,
    /// It takes every question and never answers.
    pub silent: bool,
    /// The percentage of requests that are answered with an error without details.
    pub errors_percent: u32,
    /// It takes transactions and passes none on.
    pub swallows_transactions: bool,
    /// Which methods it refuses, as nodes with limits do.
    pub refuses: Vec<&'static str>,
    /// Lies that it tells instead of the contract's logs.
    pub lies: Vec<LogLie>,
    /// So many seconds later than they were made are the blocks that it shows, in its answers. The newest block is not.
    pub later_s: i64,
    /// It stays with this branch, whatever the others go on with.
    pub(super) stuck_on: Option<Vec<Arc<Block>>>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            lag: 0,
            delay_ms: 0..=0,
            away: false,
            silent: false,
            errors_percent: 0,
            swallows_transactions: false,
            refuses: Vec::new(),
            lies: Vec::new(),
            later_s: 0,
            stuck_on: None,
        }
    }
}

/// A change to the answer of `eth_getLogs`. Positions are taken modulo the number of logs, or of deposits where the change
/// is to a deposit; an answer without any stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLie {
    /// One is left out.
    Withheld(usize),
    /// All are left out.
    AllWithheld,
    /// One comes twice.
    Repeated(usize),
    /// All come in the opposite order.
    Reversed,
    /// One is marked as taken back.
    Removed(usize),
    /// One has a larger amount.
    Amount(usize),
    /// One has another recipient.
    Recipient(usize),
    /// One has another index.
    Index(usize),
    /// One is of another contract.
    Contract(usize),
}

impl LogLie {
    /// Every kind, about the log at `position`.
    #[must_use]
    pub fn all(position: usize) -> [Self; 9] {
        [
            Self::Withheld(position),
            Self::AllWithheld,
            Self::Repeated(position),
            Self::Reversed,
            Self::Removed(position),
            Self::Amount(position),
            Self::Recipient(position),
            Self::Index(position),
            Self::Contract(position),
        ]
    }

    /// Those that can be seen through without another node, by what the contract says and the order of its events.
    #[must_use]
    pub fn clumsy(position: usize) -> [Self; 7] {
        [
            Self::Withheld(position),
            Self::AllWithheld,
            Self::Repeated(position),
            Self::Reversed,
            Self::Removed(position),
            Self::Index(position),
            Self::Contract(position),
        ]
    }

    pub(super) fn apply(self, logs: &mut Vec<Log>) {
        if logs.is_empty() {
            return;
        }
        let count = logs.len();
        let at = |position: usize| position % count;
        let deposits: Vec<usize> = (0..count).filter(|place| is_deposit(&logs[*place])).collect();
        let deposit_at = |position: usize| deposits.get(position % deposits.len().max(1)).copied();
        match self {
            Self::Withheld(position) => drop(logs.remove(at(position))),
            Self::AllWithheld => logs.clear(),
            Self::Repeated(position) => logs.insert(at(position), logs[at(position)].clone()),
            Self::Reversed => logs.reverse(),
            Self::Removed(position) => logs[at(position)].removed = true,
            Self::Amount(position) => {
                let Some(place) = deposit_at(position) else { return };
                let data = &mut logs[place].inner.data;
                let amount = U256::try_from_be_slice(data.data.get(..32).unwrap_or_default()).unwrap_or_default();
                let rest = data.data.get(32..).unwrap_or_default();
                data.data = Bytes::from([B256::from(amount + U256::ONE).as_slice(), rest].concat());
            }
            Self::Recipient(position) => deposit_at(position).into_iter().for_each(|at| change_topic(&mut logs[at], 2)),
            Self::Index(position) => deposit_at(position).into_iter().for_each(|at| change_topic(&mut logs[at], 1)),
            Self::Contract(position) => logs[at(position)].inner.address = Address::repeat_byte(0x0c),
        }
    }
}

fn is_deposit(log: &Log) -> bool {
    log.topic0() == Some(&IFastPay::Funded::SIGNATURE_HASH)
}

/// `Funded` has its index and its recipient as topics.
fn change_topic(log: &mut Log, topic: usize) {
    if let Some(word) = log.inner.data.topics_mut().get_mut(topic) {
        *word = B256::from(U256::from_be_bytes(word.0).wrapping_add(U256::ONE));
    }
}
