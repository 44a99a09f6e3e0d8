//! The faults of one Ethereum node.

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
    /// The number of blocks by which the node's view is behind the chain.
    pub lag: usize,
    /// The delay of a request on its way to the node, and of its answer back, in milliseconds of virtual time.
    pub delay_ms: RangeInclusive<u64>,
    /// The node's address refuses connections.
    pub away: bool,
    /// The node accepts every request and never answers.
    pub silent: bool,
    /// The percentage of requests that the node answers with an error without details.
    pub errors_percent: u32,
    /// The node accepts transactions and passes none on.
    pub swallows_transactions: bool,
    /// The methods that the node refuses, as nodes with limits do.
    pub refuses: Vec<&'static str>,
    /// The contract's functions that the node refuses to call, as `epoch()`.
    pub refuses_calls: Vec<&'static str>,
    /// Changes that the node makes to the contract's logs.
    pub lies: Vec<LogLie>,
    /// The number of seconds that the node adds to the time of blocks in its answers, except of the newest block.
    pub later_s: i64,
    /// The branch that the node keeps, whatever the other nodes follow.
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
            refuses_calls: Vec::new(),
            lies: Vec::new(),
            later_s: 0,
            stuck_on: None,
        }
    }
}

/// A change to the answer of `eth_getLogs`. Positions are taken modulo the number of logs, or of deposits if the change
/// is to a deposit; an answer without any stays unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLie {
    /// Removes one log.
    Withheld(usize),
    /// Removes all logs.
    AllWithheld,
    /// Repeats one log.
    Repeated(usize),
    /// Reverses the order of all logs.
    Reversed,
    /// Marks one log as removed by a reorganisation.
    Removed(usize),
    /// Increases the amount of one deposit.
    Amount(usize),
    /// Changes the recipient of one deposit.
    Recipient(usize),
    /// Changes the index of one deposit.
    Index(usize),
    /// Changes the contract of one log.
    Contract(usize),
    /// Puts another contract's deposit, of a larger amount, in the place of one.
    Foreign(usize),
}

impl LogLie {
    /// Changes of every kind but [`LogLie::Foreign`], to the log at `position`.
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

    /// Changes that a client can detect without another node, by what the contract states and the order of its events.
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
            Self::Amount(position) => deposit_at(position).into_iter().for_each(|at| increase_amount(&mut logs[at])),
            Self::Recipient(position) => deposit_at(position).into_iter().for_each(|at| change_topic(&mut logs[at], 2)),
            Self::Index(position) => deposit_at(position).into_iter().for_each(|at| change_topic(&mut logs[at], 1)),
            Self::Contract(position) => logs[at(position)].inner.address = Address::repeat_byte(0x0c),
            Self::Foreign(position) => {
                if let Some(place) = deposit_at(position) {
                    increase_amount(&mut logs[place]);
                    logs[place].inner.address = Address::repeat_byte(0x0c);
                }
            }
        }
    }
}

fn is_deposit(log: &Log) -> bool {
    log.topic0() == Some(&IFastPay::Funded::SIGNATURE_HASH)
}

/// Increases the amount of a `Funded` event, which is the first word of its data.
fn increase_amount(log: &mut Log) {
    let data = &mut log.inner.data;
    let amount = U256::try_from_be_slice(data.data.get(..32).unwrap_or_default()).unwrap_or_default();
    let rest = data.data.get(32..).unwrap_or_default();
    data.data = Bytes::from([B256::from(amount + U256::ONE).as_slice(), rest].concat());
}

/// Changes a topic of a `Funded` event, whose index and recipient are topics.
fn change_topic(log: &mut Log, topic: usize) {
    if let Some(word) = log.inner.data.topics_mut().get_mut(topic) {
        *word = B256::from(U256::from_be_bytes(word.0).wrapping_add(U256::ONE));
    }
}
