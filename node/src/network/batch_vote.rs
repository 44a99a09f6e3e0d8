//! One vote for many redemptions that this authority has confirmed, at any of its shards. A read of what is
//! on disk and a signature: it changes nothing, so it can be asked for any number of times and under every
//! epoch anew.

use std::collections::BTreeMap;

use fastpay_core::{
    AccountId, Chain, ContractVote, Domain, Epoch, History, Record, Redemption, SequenceNumber, Transfer,
    sign_batch_vote,
};

use super::layout_of;
use super::reads::{ReadError, Reads, ask};
use crate::shard::{Command, HistoryReader, ShardHandle};
use crate::standing::Standing;

/// The answer to a request for a vote on many redemptions.
pub(crate) enum BatchAnswer {
    /// The vote, under this epoch.
    Vote(Epoch, ContractVote),
    /// Those at these positions are not confirmed here, or are no redemptions.
    Missing(Vec<u32>),
    /// This authority has no vote in this epoch, the current one.
    NotVoting(Epoch),
}

/// Votes for the redemptions of these names, where all of them are confirmed at the `shards`. `reads` bounds how many
/// histories are read at a time.
pub(crate) async fn vote_for_redemptions(
    domain: &Domain,
    standing: &Standing,
    shards: &[(ShardHandle, HistoryReader)],
    reads: &Reads,
    names: Vec<(AccountId, SequenceNumber)>,
) -> Result<BatchAnswer, ReadError> {
    let Some(keys) = standing.voter() else { return Ok(BatchAnswer::NotVoting(standing.epoch())) };
    let redemptions = confirmed_redemptions(shards, reads, names).await?;
    let positions: Vec<u32> =
        (0..).zip(&redemptions).filter(|(_, found)| found.is_none()).map(|(position, _)| position).collect();
    if !positions.is_empty() {
        return Ok(BatchAnswer::Missing(positions));
    }
    let redemptions: Vec<Redemption> = redemptions.into_iter().flatten().collect();
    Ok(BatchAnswer::Vote(standing.epoch(), sign_batch_vote(keys, domain, standing.epoch(), &redemptions)))
}

/// The redemptions of these names in their order; none where it is not confirmed here, or no redemption.
async fn confirmed_redemptions(
    shards: &[(ShardHandle, HistoryReader)],
    reads: &Reads,
    names: Vec<(AccountId, SequenceNumber)>,
) -> Result<Vec<Option<Redemption>>, ReadError> {
    let layout = layout_of(shards);
    // All are asked before the first is waited for: one batch of the shard answers them together.
    let mut asked = BTreeMap::new();
    for (account, _) in &names {
        if let (false, Some((handle, history))) =
            (asked.contains_key(account), shards.get(layout.shard_of(account).0 as usize))
        {
            let answer = ask(handle, |reply| Command::ReadAccount(*account, reply))?;
            asked.insert(*account, (answer, history.clone()));
        }
    }
    let mut sent: BTreeMap<AccountId, (History, _)> = BTreeMap::new();
    for (account, (answer, reader)) in asked {
        sent.insert(account, (answer.await?.sent, reader));
    }
    let read = reads.blocking(move || {
        let find = |(account, sequence): &(AccountId, SequenceNumber)| {
            let Some((history, reader)) = sent.get(account) else { return Ok(None) };
            let entry = reader.entry(history, sequence.0, Chain::Sent)?;
            Ok(entry.and_then(|record| match record {
                Record::Confirmation { certificate, .. } => match &certificate.order.transfer {
                    Transfer::Redemption(redemption) => Some(redemption.clone()),
                    Transfer::Payment(_) | Transfer::Payout(_) => None,
                },
                _ => None,
            }))
        };
        names.iter().map(find).collect()
    });
    read.await
}
