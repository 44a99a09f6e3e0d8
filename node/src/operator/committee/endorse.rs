//! The guardian's endorsement, which shortens the delay of an announcement to a day.

use std::path::Path;

use fastpay_core::{CouncilStatement, Digest};
use fastpay_ethereum::{Call, Step};
use fastpay_ledger_statement::Action;

use super::announcement::announcement;
use super::council::Council;
use super::describe::describe;
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
    let council = Council::connect(config).await?;
    let announcement = announcement(file, &council.domain())?;
    let id = council.check_digest(&CouncilStatement::Announcement(&announcement)).await?;
    let committees = council.committees().await?;
    told(describe(&council, &announcement, &committees).await?.trim_end().to_owned());
    if asked != Some(id) {
        return Err(CommitteeError::NotAsked { id, asked });
    }
    council.check_roles(&announcement).await?;
    let read = async || Proposal::read(&council, &announcement, &committees, (&[], None)).await;
    let nodes = match &council {
        Council::Contract(nodes) => nodes,
        Council::Ledger(ledger) => {
            let there = read().await?;
            there.check_open()?;
            let ((expected, _), found) = (council.roles().await?, payer.key.address());
            if found != expected && there.endorsed_at.is_none() {
                return Err(CommitteeError::WrongSender { role: "guardian", expected, found });
            }
            let action = Action::Endorse { committee: ledger.number(), announcement: id };
            let is_done = async || Ok(read().await?.endorsed_at.is_some());
            ledger.carry_out(&payer.key, action, is_done).await?;
            return read().await;
        }
    };
    let steps = Steps { announcement: file, id, allowed: &[Step::Endorse] };
    let courier = Courier::new(nodes, payer, steps, told).await?;
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
