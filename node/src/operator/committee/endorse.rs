//! The guardian's endorsement, which shortens the delay of an announcement to a day.

use std::path::Path;

use fastpay_core::{CouncilStatement, Digest};
use fastpay_ethereum::{Call, Step};

use super::announcement::announcement;
use super::describe::describe;
use super::nodes::Nodes;
use super::transaction::{Courier, Payer, Steps, Tell};
use super::{CommitteeError, Proposal};
use crate::authority::config::Config;

/// Endorses the announcement in `file`, whose digest is `asked`, with the guardian's key, and returns once that is final.
/// Does nothing if it is endorsed. First describes it; without `asked` it does nothing else.
///
/// # Errors
/// See [`CommitteeError`].
pub async fn endorse(
    config: &Config,
    payer: Payer,
    (file, asked): (&Path, Option<Digest>),
    told: Tell<'_>,
) -> Result<Proposal, CommitteeError> {
    let nodes = Nodes::connect(config).await?;
    let announcement = announcement(file, &nodes.domain())?;
    let id = nodes.check_digest(&CouncilStatement::Announcement(&announcement)).await?;
    let committees = nodes.committees().await?;
    told(describe(&nodes, &announcement, &committees).await?.trim_end().to_owned());
    if asked != Some(id) {
        return Err(CommitteeError::NotAsked { id, asked });
    }
    nodes.check_guardian(announcement.guardian).await?;
    let steps = Steps { announcement: file, id, allowed: &[Step::Endorse] };
    let courier = Courier::new(&nodes, payer, steps, told).await?;
    let read = async || Proposal::read(&nodes, &announcement, &committees, (&[], None)).await;
    let there = read().await?;
    there.check_open()?;
    if there.is_recovery {
        return Err(CommitteeError::RecoveryNotEndorsable(id));
    }
    let is_done = async || Ok(nodes.clock_of(id).await?.is_some_and(|clock| clock.endorsed_at.is_some()));
    let ((expected, _), found) = (nodes.roles().await?, courier.address());
    if found != expected && !is_done().await? {
        return Err(CommitteeError::WrongSender { role: "guardian", expected, found });
    }
    courier.send(Call::endorse(courier.council(), id), is_done, told).await?;
    read().await
}
