//! A sign of life of the current committee: it ends every announced recovery.

use fastpay_core::{AuthorityKeys, CouncilStatement};

use super::nodes::Nodes;
use super::{Ballot, CommitteeError, member, vote};
use crate::authority::config::Config;

/// Signs a heartbeat over a final block. All members must name the same one, and the contract must still know its hash.
///
/// # Errors
/// See [`CommitteeError`].
pub async fn heartbeat(config: &Config, keys: &[AuthorityKeys], block: u64) -> Result<Ballot, CommitteeError> {
    let nodes = Nodes::connect(config).await?;
    let committees = nodes.committees().await?;
    let (epoch, voter) = (committees.current().epoch(), member(keys, committees.current())?);
    let statement = CouncilStatement::Heartbeat { epoch, block_hash: nodes.final_hash(block).await? };
    nodes.check_digest(&statement).await?;
    let vote = vote(voter, &nodes.domain(), epoch, &statement);
    let text = format!("heartbeat with block {block}\nsigned as authority {} of epoch {epoch}", vote.authority);
    Ok(Ballot { text, vote })
}
