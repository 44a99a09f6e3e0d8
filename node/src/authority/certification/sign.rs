//! Signs a proposed cut, after this authority has computed it: now, or when the leader announced it.

use std::collections::BTreeMap;

use fastpay_core::checkpoint::{Checkpoint, CheckpointMismatch, PrimaryEvent, Segment};
use fastpay_core::{AccountId, AuthorityKeys, Committees, Domain, Epoch, SequenceNumber, TransactionIndex};
use fastpay_rpc::json::Hex;

use super::archive::{Archive, ProposedCut};
use super::compute::{check_events, compute};
use super::cut::weight;
use super::journals::{Executed, Journals};
use super::memory::Memory;
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
/// signed before: several correct cuts may be signed. What this process has computed is not computed again.
///
/// # Errors
/// See [`CheckpointError`]; nothing is signed then.
pub async fn sign(
    inputs: Inputs<'_>,
    signer: Signer<'_>,
    proposed: &ProposedCut,
    memory: &mut Memory,
    told: Progress<'_>,
) -> Result<Signed, CheckpointError> {
    let (keys, next) = begin(inputs, signer, &proposed.checkpoint, told).await?;
    let (checkpoint, domain) = (proposed.checkpoint, next.domain);
    let made = memory.made(&next.archive, checkpoint.number).filter(|made| made.checkpoint == checkpoint);
    let beyond = match made {
        Some(made) => made.beyond,
        None => make(inputs, &next, proposed, Some(&checkpoint), memory, told)?,
    };
    let vote = checkpoint.sign(keys, &domain);
    let (number, epoch, checkpoint) = (checkpoint.number, checkpoint.epoch, domain.checkpoint_digest(&checkpoint));
    let (authority, signature) = (vote.authority, Hex(vote.signature.0));
    let vote = CheckpointVoteFile { number, checkpoint, epoch, authority, signature };
    next.archive.write_vote(&vote)?;
    Ok(Signed { vote, beyond })
}

/// Computes a cut that is announced as [`sign`] computes a proposal, and signs nothing: `memory` has it for [`sign`].
/// A vote that this authority gave for the number is removed.
///
/// # Errors
/// See [`CheckpointError`].
pub async fn prepare(
    inputs: Inputs<'_>,
    signer: Signer<'_>,
    announced: &ProposedCut,
    memory: &mut Memory,
    told: Progress<'_>,
) -> Result<(), CheckpointError> {
    let (_, next) = begin(inputs, signer, &announced.checkpoint, told).await?;
    // The leader before may have announced the same.
    let made = memory.made(&next.archive, announced.checkpoint.number);
    if made.is_some_and(|made| made.checkpoint == announced.checkpoint) {
        return Ok(());
    }
    make(inputs, &next, announced, None, memory, told).map(drop)
}

/// What the next checkpoint is computed from.
struct Next {
    archive: Archive,
    domain: Domain,
    committees: Committees,
    /// The final ones after the newest certified checkpoint.
    events: Vec<PrimaryEvent>,
}

/// Checks that a checkpoint can be the next one, and signed now. Returns the keys with which.
async fn begin<'k>(
    inputs: Inputs<'_>,
    (followed, keys): Signer<'k>,
    checkpoint: &Checkpoint,
    told: Progress<'_>,
) -> Result<(&'k AuthorityKeys, Next), CheckpointError> {
    let archive = Archive::create(inputs.archive)?.beside(inputs.config);
    let deployment = deployment::load(inputs.config).await?;
    let (domain, committees) = (deployment.domain(), deployment.committees()?);
    let base = archive.tip(&committees)?;
    // What cannot be the next checkpoint is not computed.
    let is_next = base.number.checked_add(1) == Some(checkpoint.number);
    if !is_next {
        return Err(CheckpointError::Mismatch { mismatch: CheckpointMismatch::Number });
    }
    if checkpoint.previous != domain.checkpoint_digest(&base) {
        return Err(CheckpointError::Mismatch { mismatch: CheckpointMismatch::Previous });
    }
    let current = committees.current();
    if checkpoint.epoch != current.epoch() {
        return Err(CheckpointError::EpochEnded { epoch: checkpoint.epoch, current: current.epoch() });
    }
    // Shards apply an installation before the node votes in its epoch.
    if followed != current.epoch() {
        return Err(CheckpointError::NotFollowed { epoch: current.epoch(), followed });
    }
    let is_member = |keys: &&AuthorityKeys| current.members().contains(&keys.public());
    let keys = keys.iter().find(is_member).ok_or(CheckpointError::NotAMember(current.epoch()))?;

    let events = events::read(&deployment, base.up_to, inputs, told).await?;
    check_events(&base, &events, checkpoint.up_to)?;
    Ok((keys, Next { archive, domain, committees, events }))
}

/// Computes a cut and writes its checkpoint into the archive, unless it is another one than `expected`. Returns how
/// many numbers are executed here and not in the cut.
fn make(
    inputs: Inputs<'_>,
    Next { archive, domain, committees, events }: &Next,
    ProposedCut { checkpoint: proposed, changed: cut }: &ProposedCut,
    expected: Option<&Checkpoint>,
    memory: &mut Memory,
    told: Progress<'_>,
) -> Result<u64, CheckpointError> {
    let base = archive.newest(memory, domain, committees)?;
    let events = events.iter().filter(|event| event.index <= proposed.up_to).cloned();
    let journals = memory.skip_included(Journals::open(&inputs.config.data)?, archive, domain);
    let executed = journals.executed(cut, told)?;
    let mut reached = executed.next.clone();
    for (account, wanted) in cut {
        let reached = reached.entry(*account).or_default();
        *reached = (*reached).max(*wanted);
    }
    let behind = base.behind(&reached)?;
    drop(reached);

    let (mut orders, mut taken) = (0_usize, Vec::new());
    let includes = |number, digest| archive.includes((number, digest), domain);
    let starts = journals.each_number(&behind, includes, told, |_, entry| {
        let is_wanted =
            |(account, number): (AccountId, SequenceNumber)| cut.get(&account).is_some_and(|next| number < *next);
        if entry.number().is_some_and(is_wanted) {
            orders = orders.saturating_add(weight(&entry));
            taken.push(entry);
        }
        orders <= inputs.orders_max
    })?;
    let starts = starts.ok_or(CheckpointError::TooManyOrders(inputs.orders_max))?;
    memory.note_included(&base.checkpoint, domain, starts);
    check_executed(&executed, (&behind, base.state.up_to), cut, proposed.up_to)?;
    let segment = Segment::sorted(events, taken);
    let part = base.part(segment.accounts())?;
    let computed = compute(&base, part, segment, domain, told)?;
    if let Some(expected) = expected {
        computed.checkpoint.check(expected).map_err(|mismatch| CheckpointError::Mismatch { mismatch })?;
    }
    // A kill leaves no vote beside a proposal that it is not for.
    archive.drop_vote(proposed.number)?;
    archive.write(&base, &computed)?;
    let beyond = executed.beyond(cut, &behind);
    memory.note(archive, &computed, beyond)?;
    Ok(beyond)
}

/// Checks that the whole cut is executed here. `behind` has the next numbers at the previous cut of the accounts that
/// take any after it, and `before` is the newest event that it includes. What it includes is certified.
fn check_executed(
    executed: &Executed,
    (behind, before): (&BTreeMap<AccountId, SequenceNumber>, TransactionIndex),
    cut: &BTreeMap<AccountId, SequenceNumber>,
    up_to: TransactionIndex,
) -> Result<(), CheckpointError> {
    let applied = executed.applied().max(before);
    if applied < up_to {
        return Err(CheckpointError::NotApplied { applied, wanted: up_to });
    }
    let lacking = cut.iter().filter_map(|(account, wanted)| {
        let included = *behind.get(account)?;
        let executed = executed.next.get(account).copied().unwrap_or_default().max(included);
        (executed < *wanted).then_some((*account, executed, *wanted))
    });
    let lacking: Vec<_> = lacking.take(LACKING_MAX).collect();
    match lacking.first().copied() {
        Some((account, executed, wanted)) => {
            let lacking = lacking.into_iter().map(|(account, _, wanted)| (account, wanted)).collect();
            Err(CheckpointError::NotExecuted { account, executed, wanted, lacking })
        }
        None => Ok(()),
    }
}
