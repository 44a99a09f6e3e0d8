//! Writes the file of the next committee.

use std::path::{Path, PathBuf};

use fastpay_core::{Announcement, Committee, CouncilStatement, Digest, Epoch, PrimaryAddress};
use fastpay_program::files;

use super::announcement::{announcement, check_members, check_terms, file_of};
use super::checkpoint::check_checkpoint;
use super::council::Council;
use super::describe::describe;
use super::prove::Proof;
use super::{CommitteeError, Proposal, read};
use crate::authority::config::Config;

const DAY_S: u64 = 86_400;

/// What an announcement says beside its members.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The guardian, zero for nobody; by default as now.
    pub guardian: Option<PrimaryAddress>,
    /// The recovery address, zero for nobody; by default as now.
    pub recovery: Option<PrimaryAddress>,
    /// The first epoch whose keys were out; by default none were.
    pub compromised_since: Option<Epoch>,
    /// The newest certified checkpoint; zero for none.
    pub checkpoint: Digest,
    /// The days from now until it has to be announced.
    pub days: u64,
}

/// Proposes those whose `proofs` are given as the next committee, and writes the proposal to `out`. A file that has the
/// same proposal with a deadline that has not passed is left as it is. Returns the proposal in words, too.
///
/// # Errors
/// See [`CommitteeError`].
pub async fn propose(
    config: &Config,
    proofs: &[PathBuf],
    terms: &Terms,
    out: &Path,
) -> Result<(String, Proposal), CommitteeError> {
    let council = Council::connect(config).await?;
    let domain = council.domain();
    let committees = council.committees().await?;
    let members = proofs.iter().map(|path| Ok(read::<Proof>(path)?.authority()));
    let epoch = committees.next_epoch();
    let committee = Committee::new(epoch, members.collect::<Result<_, CommitteeError>>()?)?;
    let (guardian, recovery) = council.roles().await?;
    let deadline = council.now().await?.saturating_add(terms.days.saturating_mul(DAY_S));
    let proposed = Announcement {
        committee,
        guardian: terms.guardian.unwrap_or(guardian),
        recovery: terms.recovery.unwrap_or(recovery),
        compromised_since: terms.compromised_since.unwrap_or(epoch),
        checkpoint: terms.checkpoint,
        deadline,
    };
    check_terms(&proposed, &domain)?;
    check_members(&proposed, proofs, &domain, &committees)?;
    council.check_roles(&proposed).await?;
    check_checkpoint(config, &domain, &committees, proposed.checkpoint)?;
    council.check_deadline(deadline).await?;
    council.check_digest(&CouncilStatement::Announcement(&proposed)).await?;
    let unwritten = |error| CommitteeError::Stored { path: out.into(), error };
    let proposed = if files::create_public(out, file_of(&proposed, &domain).as_bytes()).map_err(unwritten)? {
        proposed
    } else {
        let there = announcement(out, &domain)?;
        let is_same = there == Announcement { deadline: there.deadline, ..proposed };
        match council.check_deadline(there.deadline).await {
            Ok(()) if is_same => there,
            Ok(()) | Err(CommitteeError::Deadline(_)) => return Err(CommitteeError::OtherProposal(out.into())),
            Err(error) => return Err(error),
        }
    };
    let text = describe(&council, &proposed, &committees).await?;
    Ok((text, Proposal::read(&council, &proposed, &committees, (&[], None)).await?))
}
