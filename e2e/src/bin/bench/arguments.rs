//! What the bench is asked to do.

use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::inside::Extent;

/// The payments in one payout.
pub const PAYOUT_OUTPUTS: usize = 100;
/// So many payouts weigh as much as a batch of a node under load.
const PAYOUT_BATCH: usize = 32;
/// About what is in a batch of a node under load.
const STAGES_BATCH: usize = 256;

/// Measures payments per second, latency, and the cost of every stage.
#[derive(Clone, Debug, Parser, Serialize, Deserialize)]
#[command(name = "fastpay-bench")]
pub struct Arguments {
    /// Less of everything: under a minute, for a look while working
    #[arg(long)]
    pub quick: bool,
    /// Print the outcome as JSON instead of the table. It is in target/bench.json in any case
    #[arg(long)]
    pub json: bool,
    /// Only these parts, separated by commas
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<Topic>,
    /// Sizes of the committee under load
    #[arg(long, value_delimiter = ',', default_values_t = [4, 10, 20])]
    pub authorities: Vec<usize>,
    /// How many payments are measured in each part of a run
    #[arg(long)]
    pub payments: Option<usize>,
    /// Into how many measured parts a run is divided: their median and extremes are told
    #[arg(long)]
    pub parts: Option<usize>,
    /// How many accounts pay
    #[arg(long, default_value_t = 16_384)]
    pub accounts: usize,
    /// How many payments are under way at a time in a closed loop
    #[arg(long, default_value_t = 512)]
    pub in_flight: usize,
    /// Over how many connections to each shard
    #[arg(long, default_value_t = 4)]
    pub connections: usize,
    /// How many payments share one signature of an authority in the certificates
    #[arg(long, default_value_t = 32)]
    pub vote_batch: usize,
    /// The rate of the open loop, as a share of what the closed loop reached
    #[arg(long, default_value_t = 0.7)]
    pub open_share: f64,
    /// How many accounts there are where their state is measured
    #[arg(long, default_value_t = 10_000_000)]
    pub state_accounts: usize,
    /// How many times the capacity is offered in the overload
    #[arg(long, default_value_t = 3.0)]
    pub overload_factor: f64,
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// One payment at a time, four authorities, the wallet's client
    Idle,
    /// Every step of an order's and a certificate's way, and the whole of it, without a network
    Stages,
    /// Orders of 100 payments each: every step of their way, and one shard on one core in a closed loop
    Payouts,
    /// One shard on one core, each size of the committee: closed loop, then open loop
    Load,
    /// Three times as much as the node can do
    Overload,
    /// One address that sends forged orders as fast as it can, beside the payers
    Flood,
    /// The closed loop with OpenTelemetry traces, of none, some and all payments
    Traces,
    /// Few accounts that pay and are paid much more often than others
    Skew,
    /// Two shards, on one core and on all, and payments across them
    Shards,
    /// `kill -9` with a million accounts, and the memory that they take
    Recovery,
    /// Ten million accounts, most of them on disk. Takes minutes and gigabytes of disk: only where it is named
    State,
}

impl Arguments {
    pub fn wants(&self, topic: Topic) -> bool {
        self.only.contains(&topic) || (self.only.is_empty() && topic != Topic::State)
    }

    pub fn payments(&self) -> usize {
        self.payments.unwrap_or(if self.quick { 10_000 } else { 50_000 })
    }

    pub fn parts(&self) -> usize {
        self.parts.unwrap_or(if self.quick { 3 } else { 5 })
    }

    pub fn idle_rounds(&self) -> u64 {
        if self.quick { 100 } else { 400 }
    }

    /// Of the stages, also for committees that are too large to be set up as processes.
    pub fn stages_authorities(&self) -> &[usize] {
        if self.quick { &[4, 10, 20] } else { &[4, 10, 20, 50, 100] }
    }

    pub fn extent(&self) -> Extent {
        let (accounts, rounds) = if self.quick { (2_048, 3) } else { (8_192, 5) };
        Extent { batch: STAGES_BATCH, accounts, people: accounts, rounds, vote_batch: self.vote_batch, outputs: 1 }
    }

    /// In orders of many outputs: as many payments as in four rounds of single ones.
    pub fn payout_extent(&self) -> Extent {
        let single = self.extent();
        Extent {
            batch: PAYOUT_BATCH,
            accounts: single.accounts / 16,
            rounds: single.rounds,
            outputs: PAYOUT_OUTPUTS,
            ..single
        }
    }

    /// How many payouts are measured in each part of a run.
    pub fn payouts(&self) -> usize {
        if self.quick { 500 } else { 2_000 }
    }

    pub fn recovery_accounts(&self) -> usize {
        if self.quick { 100_000 } else { 1_000_000 }
    }

    /// Of each part of an open loop.
    pub fn open_seconds(&self) -> f64 {
        if self.quick { 1.0 } else { 3.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_are_wanted_unless_some_are_named() {
        let all = Arguments::parse_from(["fastpay-bench"]);
        assert!(Topic::value_variants().iter().all(|topic| all.wants(*topic) == (*topic != Topic::State)));
        let some = Arguments::parse_from(["fastpay-bench", "--only", "idle,load", "--quick"]);
        assert!(some.wants(Topic::Idle) && some.wants(Topic::Load) && !some.wants(Topic::Overload));
        assert!(some.payments() < all.payments() && some.idle_rounds() < all.idle_rounds());
    }
}
