//! A vote of the current committee for the next one.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastpay_core::{AccountId, AuthorityKeys, Committees, CouncilStatement};

use super::announcement::{announcement, check_members};
use super::checkpoint::check_checkpoint;
use super::council::Council;
use super::describe::{describe, joining};
use super::{Ballot, CommitteeError, check_begun, member, own_shard, vote};
use crate::authority::config::Config;
use crate::authority::rollback::{Memory, marked};
use crate::authority::storage::generation_in;
use crate::authority::voter_status::{Remembered, VoterStatus};

/// Checks the announcement in `file` and the members' `proofs`, and signs it with the pair that votes in the current
/// epoch.
///
/// # Errors
/// See [`CommitteeError`].
pub async fn sign(
    config: &Config,
    keys: &[AuthorityKeys],
    file: &Path,
    proofs: &[PathBuf],
) -> Result<Ballot, CommitteeError> {
    let council = Council::connect(config).await?;
    let domain = council.domain();
    let committees = council.committees().await?;
    check_begun(config, &committees)?;
    let announcement = announcement(file, &domain)?;
    check_members(&announcement, proofs, &domain, &committees)?;
    council.check_roles(&announcement).await?;
    check_checkpoint(config, &domain, &committees, announcement.checkpoint)?;
    let now = committees.current();
    let voter = member(keys, now)?;
    check_joined(config, keys, &committees).await?;
    if joining(&announcement, &committees) > 0
        && let Memory::Older { why, .. } = marked(&config.data)?
    {
        return Err(CommitteeError::Stale(why));
    }
    council.check_deadline(announcement.deadline).await?;
    let statement = CouncilStatement::Announcement(&announcement);
    let id = council.check_digest(&statement).await?;
    let vote = vote(voter, &domain, announcement.committee.epoch(), &statement);
    let mut text = describe(&council, &announcement, &committees).await?;
    let _ = write!(text, "announcement {id}\nsigned as authority {} of epoch {}", vote.authority, now.epoch());
    Ok(Ballot { text, vote })
}

/// Checks that this member votes in the current epoch: those who join the next one need what a quorum of it states. Where
/// neither the configured keys nor the data folder show that it does, its node is asked.
async fn check_joined(config: &Config, keys: &[AuthorityKeys], committees: &Committees) -> Result<(), CommitteeError> {
    let keys: Vec<_> = keys.iter().cloned().map(Arc::new).collect();
    let names: Vec<_> = keys.iter().map(|keys| keys.public().name).collect();
    let full_since = generation_in(&config.data).ok().and_then(|folder| folder.fullness).and_then(|said| said.since);
    let status = VoterStatus::new(committees.clone(), keys, &Remembered { names, full_since, ..Remembered::default() });
    let Some(epoch) = status.ok().and_then(|status| status.joins()) else { return Ok(()) };
    // Until it has joined, it says so of every account.
    let account = AccountId([0; 32]);
    let (client, address) = own_shard(config, &account)?;
    let state = client.account(account).await.map_err(|error| CommitteeError::Node { address, error })?;
    (!state.catching_up).then_some(()).ok_or(CommitteeError::NotJoined(epoch))
}
