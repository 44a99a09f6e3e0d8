//! Votes once for many redemptions that this authority has confirmed, at any of its shards. This reads what is on disk
//! and signs it. It changes nothing, so a client can ask any number of times, and again in every epoch.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use fastpay_core::{Balance, Certificate, Domain, Epoch, Redemption, Transfer, sign_batch_vote};
use fastpay_rpc::{BatchAnswer, Refusal, TransferName};

use super::certificates::fold_certificates;
use super::layout_of;
use super::reads::{ReadError, Reads, ask};
use crate::authority::shard::{Command, HistoryReader, ShardHandle};
use crate::authority::voter_status::VoterStatus;

/// Why there is no vote.
#[derive(Debug)]
pub(crate) enum NoVote {
    /// This authority does not vote in the current epoch, or not yet.
    Refused(Refusal),
    /// The confirmed redemptions cannot be read.
    Unread(ReadError),
}

/// Votes for the named redemptions if the `shards` have confirmed all of them, or begin from a checkpoint that includes
/// them unpaid, and none is uncovered. `reads` bounds how many histories are read at a time.
pub(crate) async fn vote_for_redemptions(
    domain: &Domain,
    voter_status: &VoterStatus,
    shards: &[(ShardHandle, HistoryReader)],
    reads: &Reads,
    names: Vec<TransferName>,
) -> Result<BatchAnswer, NoVote> {
    let keys = voter_status.votes().map_err(NoVote::Refused)?;
    let mut confirmed = fold_certificates(shards, reads, names.clone(), Vec::new(), |confirmed, named| {
        confirmed.push(named.ok().flatten().and_then(redeemed));
        true
    })
    .await
    .map_err(NoVote::Unread)?;
    let layout = layout_of(shards);
    for ((account, sequence), found) in names.into_iter().zip(&mut confirmed).filter(|(_, found)| found.is_none()) {
        let shard = shards.get(layout.shard_of(&account).0 as usize);
        let unpaid = shard.and_then(|(_, reader)| reader.unpaid(account, sequence));
        *found = unpaid.map(|unpaid| (None, unpaid.redemption.clone()));
    }
    let missing: Vec<usize> =
        (0..).zip(&confirmed).filter(|(_, found)| found.is_none()).map(|(position, _)| position).collect();
    if !missing.is_empty() {
        return Ok(BatchAnswer::Missing(missing));
    }
    let confirmed: Vec<_> = confirmed.into_iter().flatten().collect();
    let epoch = voter_status.epoch();
    let uncovered = uncovered(shards, &confirmed, epoch).await.map_err(NoVote::Unread)?;
    if !uncovered.is_empty() {
        return Ok(BatchAnswer::Uncovered(uncovered));
    }
    let redemptions: Vec<Redemption> = confirmed.into_iter().map(|(_, redemption)| redemption).collect();
    Ok(BatchAnswer::Vote { epoch, vote: sign_batch_vote(keys, domain, epoch, &redemptions) })
}

/// A redemption that counts here, with the epoch of its certificate; none if only a checkpoint has it.
type Confirmed = (Option<Epoch>, Redemption);

/// A certificate's redemption; `None` if it is of another transfer.
fn redeemed(certificate: Arc<Certificate>) -> Option<Confirmed> {
    match &certificate.order.transfer {
        Transfer::Redemption(redemption) => Some((Some(certificate.epoch), redemption.clone())),
        Transfer::Payment(_) | Transfer::Payout(_) => None,
    }
}

/// The positions of redemptions that only stolen keys may have voted for: the keys of their certificates' epochs were
/// stolen, or their certificates are not known here, and their accounts have a negative balance here. A redemption that
/// honest members voted for was covered, and is covered here once everything that the account received has arrived.
async fn uncovered(
    shards: &[(ShardHandle, HistoryReader)],
    confirmed: &[Confirmed],
    current: Epoch,
) -> Result<Vec<usize>, ReadError> {
    let (layout, mut ledgers, mut uncovered) = (layout_of(shards), BTreeMap::new(), Vec::new());
    for (position, (certified_in, redemption)) in confirmed.iter().enumerate() {
        let shard = layout.shard_of(&redemption.sender);
        let Some((handle, _)) =
            shards.get(shard.0 as usize).filter(|_| certified_in.is_none_or(|epoch| epoch < current))
        else {
            continue;
        };
        let ledger = match ledgers.entry(shard) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(ask(handle, Command::ReadLedger)?.await?),
        };
        if certified_in.is_none_or(|certified_in| ledger.unlocks.is_suspect(certified_in, current)) {
            let account = ask(handle, |reply| Command::ReadAccount(redemption.sender, reply))?.await?;
            if account.balance(redemption.asset) < Balance::ZERO {
                uncovered.push(position);
            }
        }
    }
    Ok(uncovered)
}
