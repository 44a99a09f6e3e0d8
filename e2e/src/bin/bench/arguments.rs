//! The arguments of the bench.

use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::absence;
use crate::inside::Extent;

/// The payments in one payout.
pub const PAYOUT_OUTPUTS: usize = 100;
/// This many payouts cost as much as a node's batch under load.
const PAYOUT_BATCH: usize = 32;
/// About the size of a node's batch under load.
const STAGES_BATCH: usize = 256;

/// Measure payments per second, latency, and the cost of each stage.
#[derive(Clone, Debug, Parser, Serialize, Deserialize)]
#[command(name = "fastpay-bench")]
pub struct Arguments {
    /// A short run of less than a minute, with fewer payments
    #[arg(long)]
    pub quick: bool,
    /// Print JSON instead of tables. It is always written to target/bench.json, too
    #[arg(long)]
    pub json: bool,
    /// Run only these parts, separated by commas
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<Topic>,
    /// The committee sizes to measure under load, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [4, 10, 20])]
    pub authorities: Vec<usize>,
    /// The number of payments in each part of a run [default: 50000, or 10000 with --quick]
    #[arg(long)]
    pub payments: Option<usize>,
    /// The number of measured parts of a run. Reports their median and extremes [default: 5, or 3 with --quick]
    #[arg(long)]
    pub parts: Option<usize>,
    /// The number of paying accounts
    #[arg(long, default_value_t = 16_384)]
    pub accounts: usize,
    /// The number of concurrent payments in a closed loop
    #[arg(long, default_value_t = 512)]
    pub in_flight: usize,
    /// The number of connections to each shard
    #[arg(long, default_value_t = 4)]
    pub connections: usize,
    /// The number of payments that share one signature of an authority in the certificates
    #[arg(long, default_value_t = 32)]
    pub vote_batch: usize,
    /// The open loop's rate, as a share of the closed loop's throughput
    #[arg(long, default_value_t = 0.7)]
    pub open_share: f64,
    /// The number of accounts for the part `state`
    #[arg(long, default_value_t = 10_000_000)]
    pub state_accounts: usize,
    /// The number of accounts for the part `checkpoint` [default: 1000000, or 100000 with --quick]
    #[arg(long)]
    pub checkpoint_accounts: Option<usize>,
    /// The orders in the checkpoint for the parts `checkpoint` and `absence` [default: 100000, or 10000 with --quick]
    #[arg(long)]
    pub checkpoint_orders: Option<usize>,
    /// The number of accounts for the part `absence` [default: 1000000, or 100000 with --quick]
    #[arg(long)]
    pub absence_accounts: Option<usize>,
    /// The number of accounts for the part `handover` [default: 1000000, or 100000 with --quick]
    #[arg(long)]
    pub handover_accounts: Option<usize>,
    /// How often the member of the part `absence` looks for what is to be done, in seconds. It waits for five looks, and
    /// for a moment between the others' turns of five. A node with the usual configuration looks each 60 seconds
    #[arg(long, default_value_t = 1)]
    pub absence_poll_seconds: u64,
    /// The load offered in the part `overload`, as a multiple of the capacity
    #[arg(long, default_value_t = 3.0)]
    pub overload_factor: f64,
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// One payment at a time to four authorities, with the wallet's client
    Idle,
    /// Each step of handling an order and a certificate, and all of them together, without a network
    Stages,
    /// Orders of 100 payments each: each step of handling them, and one shard on one core in a closed loop
    Payouts,
    /// One shard on one core, for each committee size: a closed loop, then an open loop
    Load,
    /// More load than the node can serve, three times as much by default
    Overload,
    /// A flood of forged orders from one address, beside honest payers
    Flood,
    /// The closed loop while checkpoints of the committee are computed, and without
    Checkpointing,
    /// The closed loop with OpenTelemetry traces of none, some and all payments
    Traces,
    /// A skewed load: few accounts make and receive most payments
    Skew,
    /// Two shards, on one core and on all cores, with payments across them
    Shards,
    /// Recovery after `kill -9` with a million accounts, and their memory use
    Recovery,
    /// Ten million accounts, most of them on disk. Takes minutes and gigabytes of disk: runs only if --only names it
    State,
    /// A checkpoint of the committee and a rebase with a million accounts. Runs only if --only names it
    Checkpoint,
    /// A member of four that was away under load, with a million accounts. Runs only if --only names it
    Absence,
    /// Committees that change where a million accounts have paid since the checkpoint. Runs only if --only names it
    Handover,
}

impl Topic {
    /// Whether it takes so long that it runs only if it is named.
    fn is_long(self) -> bool {
        matches!(self, Self::State | Self::Checkpoint | Self::Absence | Self::Handover)
    }
}

impl Arguments {
    pub fn wants(&self, topic: Topic) -> bool {
        self.only.contains(&topic) || (self.only.is_empty() && !topic.is_long())
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

    /// The committee sizes for the part `stages`, including sizes too large to run as processes.
    pub fn stages_authorities(&self) -> &[usize] {
        if self.quick { &[4, 10, 20] } else { &[4, 10, 20, 50, 100] }
    }

    pub fn extent(&self) -> Extent {
        let (accounts, rounds) = if self.quick { (2_048, 3) } else { (8_192, 5) };
        Extent { batch: STAGES_BATCH, accounts, people: accounts, rounds, vote_batch: self.vote_batch, outputs: 1 }
    }

    /// The extent for orders of many outputs.
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

    /// The number of payouts in each part of a run.
    pub fn payouts(&self) -> usize {
        if self.quick { 500 } else { 2_000 }
    }

    pub fn recovery_accounts(&self) -> usize {
        if self.quick { 100_000 } else { 1_000_000 }
    }

    pub fn checkpoint_accounts(&self) -> usize {
        self.checkpoint_accounts.unwrap_or(if self.quick { 100_000 } else { 1_000_000 })
    }

    /// The orders since the checkpoint before.
    pub fn checkpoint_orders(&self) -> usize {
        self.checkpoint_orders.unwrap_or(if self.quick { 10_000 } else { 100_000 })
    }

    pub fn handover_accounts(&self) -> usize {
        self.handover_accounts.unwrap_or(if self.quick { 100_000 } else { 1_000_000 })
    }

    pub fn absence(&self) -> absence::Extent {
        let accounts = self.absence_accounts.unwrap_or(if self.quick { 100_000 } else { 1_000_000 });
        absence::Extent { accounts, orders: self.checkpoint_orders(), poll_seconds: self.absence_poll_seconds }
    }

    /// The duration of each part of an open loop, in seconds.
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
        assert!(Topic::value_variants().iter().all(|topic| all.wants(*topic) != topic.is_long()));
        let some = Arguments::parse_from(["fastpay-bench", "--only", "idle,load", "--quick"]);
        assert!(some.wants(Topic::Idle) && some.wants(Topic::Load) && !some.wants(Topic::Overload));
        assert!(some.payments() < all.payments() && some.idle_rounds() < all.idle_rounds());
    }
}
