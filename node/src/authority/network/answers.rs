//! A shard's answers to reads, in core's types: built once, and encoded as protobuf or JSON.

use std::sync::Arc;

use fastpay_core::{AccountId, Asset, Certificate, Chain, Deposit, Domain, Receipt, Record, ShardId};
use fastpay_rpc::{AccountState, Page, Received, ShardStatus};

use super::reads::{Range, ReadError, Reads, chosen};
use crate::authority::voter_status::VoterStatus;

impl Reads {
    /// An account as this authority knows it, with one asset, or as many as an answer may list.
    pub(crate) async fn account_state(
        &self,
        voter_status: &VoterStatus,
        id: AccountId,
        asset: Option<Asset>,
    ) -> Result<AccountState, ReadError> {
        let account = self.account(id).await?;
        // One that has not joined yet does not know what was voted for before.
        let joins = voter_status.joins().filter(|_| voter_status.voter().is_none());
        let catching_up = joins.or(voter_status.observes()).is_some()
            || voter_status.rollback_protection().is_some_and(|protection| !protection.is_reliable(id, &account));
        let (holdings, truncated) = chosen(account.balances.iter(), asset);
        Ok(AccountState {
            next_sequence: account.next_sequence(),
            pending: account.pending.as_ref().map(|pending| pending.order.as_ref().clone()),
            holdings,
            received: account.received.count(),
            deposits: account.deposits.count(),
            truncated,
            catching_up,
        })
    }

    /// Payments that an account received, oldest first.
    pub(crate) async fn received(&self, id: AccountId, range: Range) -> Result<Page<Received>, ReadError> {
        let account = self.account(id).await?;
        let total = account.received.count();
        let entries = self.page(account.received, range, Chain::Received(id)).await?;
        let entries = entries.iter().filter_map(|(number, record)| received(id, *number, record));
        Ok(Page { entries: entries.collect(), total })
    }

    /// Deposits of an account, oldest first.
    pub(crate) async fn deposits(&self, id: AccountId, range: Range) -> Result<Page<Deposit>, ReadError> {
        let account = self.account(id).await?;
        let total = account.deposits.count();
        let entries = self.page(account.deposits, range, Chain::Deposits).await?;
        Ok(Page { entries: entries.iter().filter_map(|(_, record)| deposit(record)).cloned().collect(), total })
    }

    /// Redemption certificates of the shard, oldest first.
    pub(crate) async fn redemptions(
        &self,
        voter_status: &VoterStatus,
        range: Range,
    ) -> Result<Page<Arc<Certificate>>, ReadError> {
        let ledger = self.ledger().await?;
        let entries = self.redemption_certificates(&ledger, range, voter_status.quorum_max()).await?;
        Ok(Page { entries, total: ledger.redemptions.count() })
    }

    /// The status of shard `shard` of `shard_count`, with the sums of one asset, or of as many as an answer may list. What a
    /// join waits for is not in it.
    pub(crate) async fn status(
        &self,
        domain: &Domain,
        voter_status: &VoterStatus,
        (shard, shard_count): (ShardId, u32),
        asset: Option<Asset>,
    ) -> Result<ShardStatus, ReadError> {
        let ledger = self.ledger().await?;
        let (totals, truncated) = chosen(ledger.totals.iter().map(|(asset, totals)| (*asset, *totals)), asset);
        let in_flight: usize = ledger.outboxes.values().map(|outbox| outbox.waiting.len()).sum();
        Ok(ShardStatus {
            authority: voter_status.public().name,
            epoch: voter_status.epoch(),
            chain_id: domain.chain_id(),
            contract: domain.contract(),
            shard,
            shard_count,
            synchronized: ledger.synchronized,
            redemptions: ledger.redemptions.count(),
            totals,
            credits_in_flight: in_flight as u64,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            committee: voter_status.committees().current().members().to_vec(),
            truncated,
            restored: voter_status.rollback_protection().is_some(),
            votes: voter_status.votes_for_all(),
            joining: None,
        })
    }
}

/// The payment that a record of an account's history has under a number.
pub(crate) fn received(id: AccountId, number: u64, record: &Record) -> Option<Received> {
    let Receipt { payment, output } = record.received_by(id, number)?;
    Some(Received { number, payment, output, payout: record.payout_digest() })
}

/// The deposit that a record credits.
pub(crate) fn deposit(record: &Record) -> Option<&Deposit> {
    match record {
        Record::Synchronization { order, .. } => order.deposit.as_ref(),
        _ => None,
    }
}
