//! What an authority says, as it comes off the wire: of the right form, and not verified.

use fastpay_core::{
    Asset, AssetTotals, Authority, AuthorityName, Balance, ContractVote, Epoch, Payment, PrimaryAddress,
    SequenceNumber, ShardId, TransactionIndex, TransferOrder,
};

/// An account as one authority knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountState {
    /// The number of the next order.
    pub next_sequence: SequenceNumber,
    /// The order it is locked on.
    pub pending: Option<TransferOrder>,
    /// What it holds, by asset.
    pub holdings: Vec<(Asset, Balance)>,
    /// How many payments it has received.
    pub received: u64,
    /// How many deposits it has had.
    pub deposits: u64,
    /// It holds more assets than are listed here: see [`super::ShardClient::account_asset`].
    pub truncated: bool,
    /// Restored from an older copy, the authority may have voted for an order of this account that it does not know.
    pub catching_up: bool,
}

impl AccountState {
    /// What it holds of one asset.
    #[must_use]
    pub fn balance(&self, asset: Asset) -> Balance {
        self.holdings.iter().find(|(held, _)| *held == asset).map_or(Balance::ZERO, |(_, balance)| *balance)
    }
}

/// A payment that an account received, by its order of arrival at that authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Counted from 0.
    pub number: u64,
    /// The payment. Its certificate is at the sender's shard.
    pub payment: Payment,
    /// The output's number, where it is an output of a payout.
    pub output: Option<u16>,
}

/// What an authority answers to a batch of redemptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchAnswer {
    /// Its vote for all of them.
    Vote {
        /// The epoch that it is said to be for.
        epoch: Epoch,
        /// Not verified.
        vote: ContractVote,
    },
    /// It has not confirmed those at these positions, ascending. Confirm them there and ask again.
    Missing(Vec<usize>),
}

/// A part of a history, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries from the number that was asked for.
    pub entries: Vec<T>,
    /// How many there are in all.
    pub total: u64,
}

/// What a shard says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardStatus {
    /// The authority's name.
    pub authority: AuthorityName,
    /// The committee's epoch.
    pub epoch: Epoch,
    /// The chain of the Primary; 0 without one.
    pub chain_id: u64,
    /// The contract; zero without a Primary.
    pub contract: PrimaryAddress,
    /// This shard's number.
    pub shard: ShardId,
    /// How many shards the authority has.
    pub shard_count: u32,
    /// All its deposits up to here are applied.
    pub synchronized: TransactionIndex,
    /// How many redemption certificates it has confirmed.
    pub redemptions: u64,
    /// Sums per asset, for auditors.
    pub totals: Vec<(Asset, AssetTotals)>,
    /// Credits on their way to other shards.
    pub credits_in_flight: u64,
    /// The program's version.
    pub version: String,
    /// The committee as the authority knows it.
    pub committee: Vec<Authority>,
    /// There are more sums than are listed here: see [`super::ShardClient::status_asset`].
    pub truncated: bool,
}
