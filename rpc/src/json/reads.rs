//! The JSON of a node's answers.

use fastpay_core::{self as core, AccountId, Balance, Domain, Epoch, SequenceNumber, ShardId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::order::{Transfer, TransferOrder};
use super::text::{Account, Bytes20, Bytes32, Decimal, Hex, Int256, Uint64, Uint128};
use super::vote::{Certificate, Vote};
use crate::answers::{self, Page};

/// Declares a struct of the API: camel case, no other field.
macro_rules! answers {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })*) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }
    )* };
}

answers! {
    /// An authority's vote for an order, which locks the account until a certificate of its number is confirmed.
    VoteAnswer {
        /// The epoch that the vote is for.
        epoch: Uint64,
        /// The vote.
        vote: Vote,
    }

    /// A certificate is confirmed here.
    Confirmed {
        /// The sender's next number here.
        next_sequence: Uint64,
        /// This authority's epoch when it answers.
        epoch: Uint64,
    }

    /// An account's balance of one asset.
    Holding {
        /// The address of an ERC-20, or zero for ETH.
        asset: Bytes20,
        /// Negative where a credit that covers a payment has not arrived here yet.
        balance: Int256,
    }

    /// An account as this authority knows it.
    AccountState {
        /// The account.
        account: Account,
        /// The shard of this authority that owns it.
        shard: u32,
        /// The number of the next order.
        next_sequence: Uint64,
        /// The order that the account is locked on.
        #[schema(required)]
        pending: Option<TransferOrder>,
        /// Balances, ETH first.
        holdings: Vec<Holding>,
        /// The number of payments that it has received at this authority.
        received: Uint64,
        /// The number of its deposits.
        deposits: Uint64,
        /// There are more holdings than an answer lists: ask for the asset that matters.
        truncated: bool,
        /// Restored from an older copy, this authority may have voted for an order that it does not know. An absent
        /// pending order then proves nothing.
        catching_up: bool,
    }

    /// A transfer that an account sent, confirmed here.
    SentTransfer {
        /// Its number among the sender's.
        sequence: Uint64,
        /// The order.
        transfer: Transfer,
        /// Its EIP-712 digest.
        digest: Bytes32,
    }

    /// A page of what an account sent, oldest first.
    SentPage {
        /// The number of the first entry that was asked for.
        start: Uint64,
        /// The total number, which is the account's next number.
        total: Uint64,
        /// In order of number.
        transfers: Vec<SentTransfer>,
    }

    /// A payment that an account received.
    ReceivedPayment {
        /// The position in order of arrival at this authority, from 0.
        number: Uint64,
        /// The payment, for an output of a payout with the output's own memo. Its certificate is found under its sender
        /// and sequence number.
        payment: Transfer,
        /// The number of the output in its payout, from 0; absent for a payment that is an order of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<u16>,
        /// The EIP-712 digest of the payment, or of the payout.
        digest: Bytes32,
    }

    /// A page of what an account received, oldest first.
    ReceivedPage {
        /// The total number.
        total: Uint64,
        /// In order of number.
        payments: Vec<ReceivedPayment>,
    }

    /// A deposit, as the contract numbered it.
    Deposit {
        /// Its number among all deposits of the contract, from 1.
        index: Uint64,
        /// The account that it funds.
        recipient: Account,
        /// The address of an ERC-20, or zero for ETH.
        asset: Bytes20,
        /// The amount that arrived.
        amount: Uint128,
    }

    /// A page of an account's deposits, oldest first.
    DepositPage {
        /// The total number.
        total: Uint64,
        /// In order of index.
        deposits: Vec<Deposit>,
    }

    /// A page of the redemption certificates confirmed at one shard, oldest first.
    RedemptionPage {
        /// The shard.
        shard: u32,
        /// The total number.
        total: Uint64,
        /// In order of confirmation.
        certificates: Vec<Certificate>,
    }

    /// A redemption that is certified here and that the contract has not taken.
    WaitingRedemption {
        /// The shard that confirmed it.
        shard: u32,
        /// Its number in that shard's redemption log, from 0.
        number: Uint64,
        /// The order.
        redemption: Transfer,
        /// Its EIP-712 digest.
        digest: Bytes32,
        /// When this authority first saw it wait, in seconds since 1970.
        since: Uint64,
    }

    /// Redemptions that the Primary has not received yet.
    WaitingRedemptions {
        /// The final block in which the contract was read; on a ledger, the index of the newest event at that time.
        block: Uint64,
        /// The longest waiting first.
        redemptions: Vec<WaitingRedemption>,
        /// The number of redemptions confirmed after these that are not checked yet.
        beyond: Uint64,
    }

    /// A confirmed transfer, found by its digest.
    ConfirmedTransfer {
        /// The sender.
        sender: Account,
        /// Its number among the sender's.
        sequence: Uint64,
        /// Its certificate.
        certificate: Certificate,
    }

    /// A transfer that was confirmed lately.
    NewTransfer {
        /// The sender.
        sender: Account,
        /// Its number among the sender's.
        sequence: Uint64,
        /// Its EIP-712 digest.
        digest: Bytes32,
    }

    /// The newest transfers that this authority has confirmed.
    NewTransfers {
        /// The newest first.
        transfers: Vec<NewTransfer>,
    }

    /// One member of a committee.
    CommitteeMember {
        /// The Ed25519 key that votes on payments.
        voting_key: Bytes32,
        /// The address of the secp256k1 key that votes on redemptions.
        redemption_key: Bytes20,
    }

    /// The committee of an epoch, as this authority knows it.
    Committee {
        /// The epoch.
        epoch: Uint64,
        /// Whether it votes now.
        current: bool,
        /// The number of votes of a certificate.
        quorum: u32,
        /// In order of voting key.
        members: Vec<CommitteeMember>,
    }

    /// How far this authority has followed the Primary.
    Follower {
        /// The follower's state.
        state: FollowerState,
        /// The newest block that was read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        block: Option<Uint64>,
        /// Why it stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }

    /// Totals of one asset in a shard: accounts = deposited + credited − forwarded − redeemed.
    AssetTotals {
        /// The address of an ERC-20, or zero for ETH.
        asset: Bytes20,
        /// The sum of all balances held there.
        accounts: Int256,
        /// The sum of all deposits credited there.
        deposited: Int256,
        /// The sum of all credits that came from other shards.
        credited: Int256,
        /// The sum of all payments that left for other shards.
        forwarded: Int256,
        /// The sum of all redemptions confirmed there.
        redeemed: Int256,
    }

    /// The status of one shard.
    ShardStatus {
        /// Its number.
        shard: u32,
        /// All deposits up to this index are applied.
        synchronized: Uint64,
        /// The number of confirmed redemption certificates.
        redemptions: Uint64,
        /// Credits on their way to other shards of this authority.
        credits_in_flight: Uint64,
        /// Commands that wait in its queue.
        queued: Uint64,
        /// The sums by asset, ETH first.
        totals: Vec<AssetTotals>,
        /// There are more assets than an answer lists: ask for the one that matters.
        truncated: bool,
    }

    /// The status of an authority.
    Status {
        /// The Ed25519 key that is its name.
        authority: Bytes32,
        /// The version of the program.
        version: String,
        /// The chain of the contract (EIP-155); 0 where there is none.
        chain_id: Uint64,
        /// The contract; none where the committee runs without a Primary.
        #[schema(required)]
        contract: Option<Bytes20>,
        /// The verifying contract of the EIP-712 domain; without a contract, the value that stands in for it.
        verifying_contract: Bytes20,
        /// The current epoch.
        epoch: Uint64,
        /// Whether it votes in it for every order. One that was restored does not.
        votes: bool,
        /// Whether it was restored from an older copy, and votes only for numbers that it cannot have voted for before.
        restored: bool,
        /// Its progress in following the Primary.
        follower: Follower,
        /// From the first.
        shards: Vec<ShardStatus>,
    }
}

/// The states of a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum FollowerState {
    /// It has read all final blocks.
    AtHead,
    /// It is reading older blocks.
    CatchingUp,
    /// Its Ethereum nodes contradicted themselves: it reads again for some minutes before it stops.
    Rereading,
    /// Its Ethereum node cannot be right: no deposit is credited until an operator acts.
    Stopped,
    /// There is no Primary.
    None,
}

impl From<(Epoch, &core::Vote)> for VoteAnswer {
    fn from((epoch, vote): (Epoch, &core::Vote)) -> Self {
        Self { epoch: Decimal(epoch.0), vote: vote.into() }
    }
}

impl From<(Epoch, SequenceNumber)> for Confirmed {
    fn from((epoch, next): (Epoch, SequenceNumber)) -> Self {
        Self { next_sequence: Decimal(next.0), epoch: Decimal(epoch.0) }
    }
}

impl SentTransfer {
    /// A transfer that was confirmed in a deployment.
    #[must_use]
    pub fn new(domain: &Domain, transfer: &core::Transfer) -> Self {
        let sequence = Decimal(transfer.sequence().0);
        Self { sequence, transfer: transfer.into(), digest: Hex(domain.transfer_digest(transfer).0) }
    }
}

impl AccountState {
    /// An account, which a shard owns.
    #[must_use]
    pub fn new(account: AccountId, shard: ShardId, state: &answers::AccountState) -> Self {
        Self {
            account: account.into(),
            shard: shard.0,
            next_sequence: Decimal(state.next_sequence.0),
            pending: state.pending.as_ref().map(Into::into),
            holdings: state.holdings.iter().map(|holding| (*holding).into()).collect(),
            received: Decimal(state.received),
            deposits: Decimal(state.deposits),
            truncated: state.truncated,
            catching_up: state.catching_up,
        }
    }
}

impl ReceivedPayment {
    /// A payment in a deployment.
    #[must_use]
    pub fn new(domain: &Domain, received: &answers::Received) -> Self {
        let answers::Received { number, payment, output, payout } = received;
        let digest = payout.unwrap_or_else(|| domain.transfer_digest(&payment.clone().into()));
        Self { number: Decimal(*number), payment: payment.into(), output: *output, digest: Hex(digest.0) }
    }
}

impl ReceivedPage {
    /// A page in a deployment.
    #[must_use]
    pub fn new(domain: &Domain, page: &Page<answers::Received>) -> Self {
        let payments = page.entries.iter().map(|received| ReceivedPayment::new(domain, received));
        Self { total: Decimal(page.total), payments: payments.collect() }
    }
}

impl From<&Page<core::Deposit>> for DepositPage {
    fn from(page: &Page<core::Deposit>) -> Self {
        Self { total: Decimal(page.total), deposits: page.entries.iter().map(Into::into).collect() }
    }
}

impl RedemptionPage {
    /// A page of a shard's redemption log.
    #[must_use]
    pub fn new<C: AsRef<core::Certificate>>(shard: ShardId, page: &Page<C>) -> Self {
        let certificates = page.entries.iter().map(|certificate| certificate.as_ref().into());
        Self { shard: shard.0, total: Decimal(page.total), certificates: certificates.collect() }
    }
}

impl ShardStatus {
    /// A shard, with the number of commands in its queue.
    #[must_use]
    pub fn new(status: &answers::ShardStatus, queued: u64) -> Self {
        Self {
            shard: status.shard.0,
            synchronized: Decimal(status.synchronized.0),
            redemptions: Decimal(status.redemptions),
            credits_in_flight: Decimal(status.credits_in_flight),
            queued: Decimal(queued),
            totals: status.totals.iter().map(|(asset, totals)| (*asset, totals).into()).collect(),
            truncated: status.truncated,
        }
    }
}

impl From<&core::Deposit> for Deposit {
    fn from(deposit: &core::Deposit) -> Self {
        Self {
            index: Decimal(deposit.index.0),
            recipient: deposit.recipient.into(),
            asset: deposit.asset.into(),
            amount: Decimal(deposit.amount.0),
        }
    }
}

impl From<(core::Asset, Balance)> for Holding {
    fn from((held, balance): (core::Asset, Balance)) -> Self {
        Self { asset: held.into(), balance: Decimal(balance) }
    }
}

impl From<(core::Asset, &core::AssetTotals)> for AssetTotals {
    fn from((of, totals): (core::Asset, &core::AssetTotals)) -> Self {
        Self {
            asset: of.into(),
            accounts: Decimal(totals.accounts),
            deposited: Decimal(totals.deposited),
            credited: Decimal(totals.credited),
            forwarded: Decimal(totals.forwarded),
            redeemed: Decimal(totals.redeemed),
        }
    }
}

impl Committee {
    /// A committee, which is the current one or not.
    #[must_use]
    pub fn new(committee: &core::Committee, current: bool) -> Self {
        let members = committee.members().iter().map(|member| CommitteeMember {
            voting_key: Hex(member.name.0),
            redemption_key: Hex(member.redemption_key.into_array()),
        });
        let quorum = u32::try_from(committee.quorum()).unwrap_or(u32::MAX);
        Self { epoch: Decimal(committee.epoch().0), current, quorum, members: members.collect() }
    }
}
