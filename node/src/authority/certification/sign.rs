//! Signs a proposed cut, after this authority has computed it itself.

use fastpay_core::checkpoint::{CheckpointMismatch, Cut};
use fastpay_core::{AccountId, AuthorityKeys, Epoch, SequenceNumber};
use fastpay_rpc::json::Hex;

use super::archive::{Archive, ArchiveError, ProposedCut};
use super::base::Base;
use super::compute::{check_events, compute};
use super::journals::{Executed, Journals};
use super::{CheckpointError, CheckpointVoteFile, Inputs, Progress, events};
use crate::authority::deployment;

/// The most accounts that are named as lacking at once.
const LACKING_MAX: usize = 10_000;

/// A checkpoint that this authority signed.
#[derive(Clone, Debug)]
pub struct Signed {
    /// Its vote.
    pub vote: CheckpointVoteFile,
    /// The numbers that are executed here and not in the cut.
    pub beyond: u64,
}

/// The keys of an authority, and the epoch up to which its node has followed the rotations.
pub type Signer<'a> = (Epoch, &'a [AuthorityKeys]);

/// Computes a cut from this authority's own journals and Ethereum nodes, writes segment, state and cut into the archive,
/// signs with the one of `keys` that is a member's, and writes the vote. It may replace a proposal that this authority
/// signed before: several correct cuts may be signed.
///
/// # Errors
/// See [`CheckpointError`]; nothing is signed then.
pub async fn sign(
    inputs: Inputs<'_>,
    (followed, keys): Signer<'_>,
    proposed: &ProposedCut,
    told: Progress<'_>,
) -> Result<Signed, CheckpointError> {
    let archive = Archive::create(inputs.archive)?.beside(inputs.config);
    let (cut, proposed) =
        (Cut { up_to: proposed.checkpoint.up_to, next: proposed.changed.clone() }, proposed.checkpoint);
    let deployment = deployment::load(inputs.config).await?;
    let (domain, committees) = (deployment.domain(), deployment.committees()?);
    let base = archive.newest(&domain, &committees)?;
    // What cannot be the next checkpoint is not computed.
    let is_next = base.checkpoint.number.checked_add(1) == Some(proposed.number);
    if !is_next {
        return Err(CheckpointError::Mismatch { mismatch: CheckpointMismatch::Number });
    }
    if proposed.previous != domain.checkpoint_digest(&base.checkpoint) {
        return Err(CheckpointError::Mismatch { mismatch: CheckpointMismatch::Previous });
    }
    let current = committees.current();
    if proposed.epoch != current.epoch() {
        return Err(CheckpointError::EpochEnded { epoch: proposed.epoch, current: current.epoch() });
    }
    // Shards apply an installation before the node votes in its epoch.
    if followed != current.epoch() {
        return Err(CheckpointError::NotFollowed { epoch: current.epoch(), followed });
    }
    let is_member = |keys: &&AuthorityKeys| current.members().contains(&keys.public());
    let keys = keys.iter().find(is_member).ok_or(CheckpointError::NotAMember(current.epoch()))?;

    let journals = Journals::open(&inputs.config.data)?;
    let part = base.part(cut.next.keys().copied().collect())?;
    let previous = part.rows().cut();
    let events = events::read(&deployment, previous.up_to, inputs, told).await?;
    check_events(&base, &events, cut.up_to)?;
    let (segment, executed) = journals.segment(events, (previous, &cut), inputs.orders_max, told)?;
    check_executed(&executed, previous, &cut)?;
    let computed = compute(&base, segment, &domain, told)?;
    computed.checkpoint.check(&proposed).map_err(|mismatch| CheckpointError::Mismatch { mismatch })?;
    // A kill leaves no vote beside a proposal that it is not for.
    archive.drop_vote(proposed.number)?;
    archive.write(&base, &computed)?;
    let vote = computed.checkpoint.sign(keys, &domain);
    let (number, epoch, checkpoint) = (proposed.number, proposed.epoch, domain.checkpoint_digest(&proposed));
    let (authority, signature) = (vote.authority, Hex(vote.signature.0));
    let vote = CheckpointVoteFile { number, checkpoint, epoch, authority, signature };
    archive.write_vote(&vote)?;
    Ok(Signed { vote, beyond: count_beyond(&base, executed, &cut)? })
}

/// How many numbers are executed here and not in the cut, of which the accounts are there that differ from the base.
fn count_beyond(base: &Base, executed: Executed, cut: &Cut) -> Result<u64, ArchiveError> {
    let mut beyond = executed.next;
    let subtract = |beyond: &mut SequenceNumber, next: SequenceNumber| beyond.0 = beyond.0.saturating_sub(next.0);
    beyond.iter_mut().for_each(|(account, beyond)| subtract(beyond, cut.next(account)));
    base.each_next(|account, next| {
        if !cut.next.contains_key(&account) {
            beyond.get_mut(&account).into_iter().for_each(|beyond| subtract(beyond, next));
        }
    })?;
    Ok(beyond.values().map(|beyond| beyond.0).sum())
}

/// Checks that the whole cut is executed here. Both cuts name the accounts that differ. What the previous one includes
/// is certified.
fn check_executed(executed: &Executed, previous: &Cut, cut: &Cut) -> Result<(), CheckpointError> {
    let applied = executed.applied().max(previous.up_to);
    if applied < cut.up_to {
        return Err(CheckpointError::NotApplied { applied, wanted: cut.up_to });
    }
    let next =
        |account: &AccountId| executed.next.get(account).copied().unwrap_or_default().max(previous.next(account));
    let lacking = cut.next.iter().filter(|(account, wanted)| next(account) < **wanted);
    let lacking: Vec<_> = lacking.map(|(account, wanted)| (*account, *wanted)).take(LACKING_MAX).collect();
    match lacking.first().copied() {
        Some((account, wanted)) => {
            Err(CheckpointError::NotExecuted { account, executed: next(&account), wanted, lacking })
        }
        None => Ok(()),
    }
}
