//! The files in which members sign a statement for the council, and the votes in a transaction that was sent.

use std::path::PathBuf;

use fastpay_core::{
    Announcement, AuthorityName, Committee, ContractVote, CouncilStatement, Digest, EcdsaSignature,
    VerifiedContractVote,
};

use super::nodes::Nodes;
use super::{CommitteeError, VoteFile, read};

/// The length of a vote as the contract reads it: the member's number, and a signature.
const VOTE_BYTES: usize = 66;

/// Reads members' votes.
pub(super) fn votes(paths: &[PathBuf]) -> Result<Vec<VoteFile>, CommitteeError> {
    paths.iter().map(|path| read(path)).collect()
}

/// Those of the votes that members of `committee` gave for this digest.
pub(super) fn valid(committee: &Committee, digest: Digest, votes: &[VoteFile]) -> Vec<VerifiedContractVote> {
    votes.iter().filter_map(|vote| verified(committee, digest, vote)).collect()
}

/// The vote, if a member of `committee` gave it for this digest.
pub(super) fn verified(committee: &Committee, digest: Digest, vote: &VoteFile) -> Option<VerifiedContractVote> {
    let vote = ContractVote { authority: vote.authority, signature: EcdsaSignature(vote.signature.0) };
    vote.verify(committee, digest).ok()
}

/// The members of `committee` whose votes for this digest are in a call of the contract.
pub(super) fn voters_in(committee: &Committee, digest: Digest, packed: &[u8]) -> Vec<AuthorityName> {
    let vote = |packed: &[u8]| -> Option<VerifiedContractVote> {
        let (member, signature) = packed.split_first()?;
        let authority = committee.members().get(usize::from(*member))?.name;
        let signature = EcdsaSignature(signature.try_into().ok()?);
        ContractVote { authority, signature }.verify(committee, digest).ok()
    };
    voters(&packed.chunks(VOTE_BYTES).filter_map(vote).collect::<Vec<_>>())
}

/// Whose votes these are, each once.
pub(super) fn voters(votes: &[VerifiedContractVote]) -> Vec<AuthorityName> {
    let mut names: Vec<_> = votes.iter().map(|vote| vote.vote().authority).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Acceptances that name one block.
#[derive(Debug, Default)]
pub(super) struct Acceptances {
    /// The block.
    pub(super) block: u64,
    /// What the votes are for.
    pub(super) digest: Digest,
    /// The votes of members.
    pub(super) votes: Vec<VerifiedContractVote>,
}

/// Counts the acceptances of an announcement that matured in the block `matured`, of those blocks that the contract still
/// knows: for the newest one with a quorum, or else for the one that most name. A vote without a block counts for
/// `matured`.
pub(super) async fn acceptances(
    nodes: &Nodes,
    announcement: &Announcement,
    matured: u64,
    votes: &[VoteFile],
) -> Result<Acceptances, CommitteeError> {
    let (id, committee) =
        (nodes.domain().council_digest(&CouncilStatement::Announcement(announcement)), &announcement.committee);
    let mut blocks: Vec<_> = votes.iter().map(|vote| vote.block.unwrap_or(matured)).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let (heads, quorum) = (nodes.heads().await?, committee.quorum());
    let mut most = Acceptances { block: matured, ..Acceptances::default() };
    for block in blocks.into_iter().filter(|block| *block >= matured && !heads.forgot(*block)) {
        let block_hash = match nodes.final_hash(block).await {
            Err(CommitteeError::NotFinal { .. }) => continue,
            hash => hash?,
        };
        let statement = CouncilStatement::Acceptance { epoch: committee.epoch(), announcement: id, block_hash };
        let digest = nodes.domain().council_digest(&statement);
        let found = valid(committee, digest, votes);
        let (now, before) = (voters(&found).len(), voters(&most.votes).len());
        if now >= before.min(quorum) {
            most = Acceptances { block, digest, votes: found };
        }
    }
    Ok(most)
}
