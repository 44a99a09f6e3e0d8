//! Signs a proposed cut, after this authority has computed it itself.

use std::path::Path;

use fastpay_core::AuthorityKeys;
use fastpay_core::checkpoint::{CheckpointMismatch, Cut, Segment};
use fastpay_rpc::json::Hex;

use super::archive::{Archive, read_cut};
use super::compute::{check_events, compute};
use super::journals::{Executed, Journals};
use super::{CheckpointError, CheckpointVoteFile, Progress, events};
use crate::authority::config::Config;
use crate::authority::deployment;

/// A vote with what it is for.
#[derive(Debug)]
pub struct CheckpointBallot {
    /// For the person who signs.
    pub text: String,
    /// For whoever certifies.
    pub vote: CheckpointVoteFile,
}

/// Computes the cut in `file` from this authority's own journals and Ethereum nodes, writes segment, state and cut into
/// the archive in `folder`, and signs.
///
/// # Errors
/// See [`CheckpointError`]; nothing is signed then.
pub async fn sign(
    config: &Config,
    keys: &[AuthorityKeys],
    folder: &Path,
    file: &Path,
    told: Progress<'_>,
) -> Result<CheckpointBallot, CheckpointError> {
    let archive = Archive::create(folder)?;
    let proposed = read_cut(file)?;
    let (cut, proposed) = (proposed.cut(), proposed.checkpoint);
    if cut.digest() != proposed.cut {
        return Err(CheckpointError::NotItsCut(file.to_owned()));
    }
    let deployment = deployment::load(config).await?;
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
    let is_member = |keys: &&AuthorityKeys| current.members().contains(&keys.public());
    let keys = keys.iter().find(is_member).ok_or(CheckpointError::NotAMember(current.epoch()))?;

    let journals = Journals::open(&config.data)?;
    let events = events::read(&deployment, base.state.cut().up_to, told).await?;
    check_events(&base, &events, cut.up_to)?;
    let gather = |records: &mut dyn Iterator<Item = _>| {
        Segment::from_records(events, records.map(|(_, record)| record), base.state.cut(), &cut)
    };
    let (segment, executed) = journals.read(told, gather)?;
    check_executed(&executed, &cut)?;
    let computed = compute(&base, segment, &domain, told)?;
    computed.checkpoint.check(&proposed).map_err(|mismatch| CheckpointError::Mismatch { mismatch })?;
    archive.write(&computed)?;
    let vote = computed.checkpoint.sign(keys, &domain);
    let (number, epoch, digest) = (proposed.number, proposed.epoch, domain.checkpoint_digest(&proposed));
    let text = format!(
        "checkpoint {number}: {digest}\nevents up to {}, {} accounts, {} entries since checkpoint {}\nsigned as \
         authority {} of epoch {epoch}",
        proposed.up_to,
        cut.next.len(),
        computed.segment.entries.len(),
        base.checkpoint.number,
        vote.authority,
    );
    let (authority, signature) = (vote.authority, Hex(vote.signature.0));
    Ok(CheckpointBallot { text, vote: CheckpointVoteFile { number, checkpoint: digest, epoch, authority, signature } })
}

/// Checks that the whole cut is executed here.
fn check_executed(executed: &Executed, cut: &Cut) -> Result<(), CheckpointError> {
    let applied = executed.applied();
    if applied < cut.up_to {
        return Err(CheckpointError::NotApplied { applied, wanted: cut.up_to });
    }
    for (account, wanted) in &cut.next {
        let next = executed.next.get(account).copied().unwrap_or_default();
        if next < *wanted {
            return Err(CheckpointError::NotExecuted { account: *account, executed: next, wanted: *wanted });
        }
    }
    Ok(())
}
