//! A vote of a recovered committee to begin from a rebuilt checkpoint.

use fastpay_core::{AuthorityKeys, CouncilStatement, Digest};
use fastpay_program::Clock;

use super::nodes::Nodes;
use super::{Ballot, CommitteeError, member, vote};
use crate::authority::certification::Progress;
use crate::authority::config::Config;
use crate::operator::recover::{Sources, recover};

/// Rebuilds the checkpoint from the sources, and signs its adoption if it is the one with the digest `checkpoint`.
///
/// # Errors
/// See [`CommitteeError`].
pub async fn adopt(
    config: &Config,
    keys: &[AuthorityKeys],
    sources: &Sources,
    checkpoint: Digest,
    told: Progress<'_>,
) -> Result<Ballot, CommitteeError> {
    let nodes = Nodes::connect(config).await?;
    let committees = nodes.committees().await?;
    let (epoch, voter) = (committees.current().epoch(), member(keys, committees.current())?);
    let adopted = nodes.agree(async |node| node.adopted(epoch).await).await?;
    if !adopted.is_zero() {
        return Err(CommitteeError::Adopted { epoch, adopted });
    }
    let report = recover(config, sources, Clock::system(), told).await.map_err(Box::new)?.report;
    if (report.checkpoint, report.epoch) != (checkpoint, epoch) {
        return Err(CommitteeError::OtherCandidate { found: report.checkpoint, asked: checkpoint });
    }
    let statement = CouncilStatement::CheckpointAdoption { epoch, checkpoint };
    nodes.check_digest(&statement).await?;
    let vote = vote(voter, &nodes.domain(), epoch, &statement);
    let text = format!("{report}\nsigned as authority {} of epoch {epoch}", vote.authority);
    Ok(Ballot { text, vote })
}
