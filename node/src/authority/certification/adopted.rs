//! Certifies the checkpoint that a recovered epoch has adopted. The contract has decided for it, so each member signs it
//! as soon as its archive has its files, which `fastpay-node recover` wrote. A quorum of the votes makes it a number of
//! the archive like any other. The journals begin from it later (`operator/rebase`).

use fastpay_core::{AuthorityKeys, Committees, Digest, Domain};
use fastpay_rpc::json::Hex;

use super::archive::{Archive, ProposedCut};
use super::{CheckpointError, CheckpointVoteFile, Progress};

/// Signs what the archive has after its newest certified checkpoint, and writes the vote, if that is the checkpoint
/// `adopted`. Returns the vote; none if it is another one, or nothing.
pub(super) fn sign_adopted(
    archive: &Archive,
    (domain, committees): (&Domain, &Committees),
    keys: &AuthorityKeys,
    adopted: Digest,
    told: Progress<'_>,
) -> Result<Option<CheckpointVoteFile>, CheckpointError> {
    let number = archive.newest_number()?.saturating_add(1);
    let is_adopted = |cut: &ProposedCut| domain.checkpoint_digest(&cut.checkpoint) == adopted;
    if !ProposedCut::read(&archive.cut_path(number)).is_ok_and(|cut| is_adopted(&cut)) {
        return Ok(None);
    }
    let base = archive.base(number.saturating_sub(1), domain, committees)?;
    let computed = archive.recompute(&base, domain, told)?;
    archive.check_files(&computed)?;
    if domain.checkpoint_digest(&computed.checkpoint) != adopted {
        return Ok(None);
    }
    let (vote, epoch) = (computed.checkpoint.sign(keys, domain), computed.checkpoint.epoch);
    let (authority, signature) = (vote.authority, Hex(vote.signature.0));
    let vote = CheckpointVoteFile { number, checkpoint: adopted, epoch, authority, signature };
    archive.write_vote(&vote)?;
    Ok(Some(vote))
}
