//! Lets an announcement mature, and installs it once a quorum of its members has accepted it.

use std::path::{Path, PathBuf};

use fastpay_core::{Announcement, CouncilStatement, VerifiedContractVote};
use fastpay_ethereum::{Call, ICouncil::ICouncilErrors, Revert, Step};
use fastpay_ledger_statement::Action;

use super::announcement::announcement;
use super::council::Council;
use super::on_ledger::{OnLedger, quorum_of};
use super::transaction::{Courier, Payer, Steps, Tell, reverted};
use super::votes::{acceptances, valid, votes};
use super::{CommitteeError, Proposal, State};
use crate::authority::config::Config;

/// Does what can be done now towards the installation of the committee in `file`, and returns once that is final: lets it
/// mature when its delay has passed, and installs it if the files of `accepted` have a quorum's acceptances. Does nothing if
/// it is installed. The proposal that it returns says what is missing.
///
/// # Errors
/// See [`CommitteeError`].
pub async fn install(
    config: &Config,
    payer: Payer,
    (file, accepted): (&Path, &[PathBuf]),
    told: Tell<'_>,
) -> Result<Proposal, CommitteeError> {
    let council = Council::connect(config).await?;
    let announcement = announcement(file, &council.domain())?;
    let nodes = match &council {
        Council::Contract(nodes) => nodes,
        Council::Ledger(ledger) => return install_on(ledger, &council, &payer, (&announcement, accepted)).await,
    };
    let id = nodes.check_digest(&CouncilStatement::Announcement(&announcement)).await?;
    let files = votes(accepted)?;
    let steps = Steps { announcement: file, id, allowed: &[Step::Mature, Step::Install] };
    let courier = Courier::new(nodes, payer, steps, told).await?;
    let committees = nodes.committees().await?;
    let read = async || Proposal::read(&council, &announcement, &committees, (&files, None)).await;
    let mut there = read().await?;
    there.check_open()?;
    match (there.state, there.installable_at) {
        (State::Announced, Some(at)) => {
            return Err(CommitteeError::TooEarly { at, is_endorsed: there.is_recovery || there.endorsed_at.is_some() });
        }
        (State::Installable, _) => {
            let is_done = async || Ok(nodes.clock_of(id).await?.is_some_and(|clock| clock.matured_block.is_some()));
            courier.send(Call::mature(courier.council(), id), is_done, told).await?;
            there = read().await?;
        }
        _ => {
            let matured = there.matured_block.filter(|_| there.state == State::Matured);
            nodes.settle(matured, told).await?;
            there = read().await?;
        }
    }
    let (State::Matured, Some(matured)) = (there.state, there.matured_block) else { return Ok(there) };
    let found = acceptances(nodes, &announcement, matured, &files).await?;
    let Some(packed) = VerifiedContractVote::quorum(&announcement.committee, found.digest, &found.votes) else {
        return Ok(there);
    };
    let is_done = async || Ok(read().await?.state == State::Installed);
    let call = Call::install(courier.council(), &announcement, found.block, packed.into());
    courier.send(call, is_done, told).await.map_err(|error| match reverted(&error) {
        Some(Revert::Council(ICouncilErrors::UnknownBlock(_))) => CommitteeError::BlockForgotten(found.block),
        _ => error,
    })?;
    read().await
}

/// The same on a ledger.
async fn install_on(
    ledger: &OnLedger,
    council: &Council,
    payer: &Payer,
    (announcement, accepted): (&Announcement, &[PathBuf]),
) -> Result<Proposal, CommitteeError> {
    let (files, committees) = (votes(accepted)?, ledger.committees().await?);
    let read = async || Proposal::read(council, announcement, &committees, (&files, None)).await;
    let mut there = read().await?;
    there.check_open()?;
    let (committee, id) = (ledger.number(), there.id);
    match (there.state, there.installable_at) {
        (State::Announced, Some(at)) => {
            return Err(CommitteeError::TooEarly { at, is_endorsed: there.endorsed_at.is_some() });
        }
        (State::Installable, _) => {
            let is_done = async || Ok(ledger.acceptance(id).await?.is_some());
            ledger.carry_out(&payer.key, Action::Mature { committee, announcement: id }, is_done).await?;
            there = read().await?;
        }
        _ => {}
    }
    let Some(acceptance) = ledger.acceptance(id).await?.filter(|_| there.state == State::Matured) else {
        return Ok(there);
    };
    let digest = ledger.domain().council_digest(&acceptance);
    let found = valid(&announcement.committee, digest, &files);
    let Some(votes) = quorum_of(&announcement.committee, &found) else { return Ok(there) };
    let is_done = async || Ok(read().await?.state == State::Installed);
    ledger.carry_out(&payer.key, Action::Install { committee, announcement: id, votes }, is_done).await?;
    read().await
}
