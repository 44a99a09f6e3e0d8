//! One vote for many redemptions that this authority has confirmed, at any of its shards. A read of what is
//! on disk and a signature: it changes nothing, so it can be asked for any number of times and under every
//! epoch anew.

use fastpay_core::{Domain, Epoch, Redemption, Transfer, sign_batch_vote};
use fastpay_rpc::{BatchAnswer, TransferName};

use super::certificates::fold_certificates;
use super::reads::{ReadError, Reads};
use crate::shard::{HistoryReader, ShardHandle};
use crate::voter_status::VoterStatus;

/// Why there is no vote.
#[derive(Debug)]
pub(crate) enum NoVote {
    /// This authority has no vote in this epoch, the current one.
    NotVoting(Epoch),
    /// The confirmed redemptions cannot be read.
    Unread(ReadError),
}

/// Votes for the redemptions of these names, where all of them are confirmed at the `shards`. `reads` bounds how many
/// histories are read at a time.
pub(crate) async fn vote_for_redemptions(
    domain: &Domain,
    voter_status: &VoterStatus,
    shards: &[(ShardHandle, HistoryReader)],
    reads: &Reads,
    names: Vec<TransferName>,
) -> Result<BatchAnswer, NoVote> {
    let Some(keys) = voter_status.voter() else { return Err(NoVote::NotVoting(voter_status.epoch())) };
    let redemptions = fold_certificates(shards, reads, names, Vec::new(), |redemptions, certificate| {
        redemptions.push(certificate.and_then(|certificate| match &certificate.order.transfer {
            Transfer::Redemption(redemption) => Some(redemption.clone()),
            Transfer::Payment(_) | Transfer::Payout(_) => None,
        }));
        true
    })
    .await
    .map_err(NoVote::Unread)?;
    let positions: Vec<usize> =
        (0..).zip(&redemptions).filter(|(_, found)| found.is_none()).map(|(position, _)| position).collect();
    if !positions.is_empty() {
        return Ok(BatchAnswer::Missing(positions));
    }
    let redemptions: Vec<Redemption> = redemptions.into_iter().flatten().collect();
    let epoch = voter_status.epoch();
    Ok(BatchAnswer::Vote { epoch, vote: sign_batch_vote(keys, domain, epoch, &redemptions) })
}
