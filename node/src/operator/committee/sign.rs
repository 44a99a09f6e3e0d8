//! A vote of the current committee for the next one.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastpay_core::{
    AccountId, Announcement, AuthorityKeys, Committee, Committees, CouncilStatement, Domain, PrimaryAddress,
};
use fastpay_ethereum::utc;

use super::announcement::{announcement, check_members};
use super::nodes::Nodes;
use super::{Ballot, CommitteeError, check_begun, member, own_shard, vote};
use crate::authority::config::Config;
use crate::authority::rollback::{Memory, marked};
use crate::authority::storage::generation_in;
use crate::authority::voter_status::{Remembered, VoterStatus, all_join_in};

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
    let nodes = Nodes::connect(config).await?;
    let domain = nodes.domain();
    let committees = nodes.committees().await?;
    check_begun(config, &committees)?;
    let announcement = announcement(file, &domain)?;
    check_members(&announcement, proofs, &domain, &committees)?;
    let now = committees.current();
    let before = all_join_in(&committees, &announcement.committee).map(|before| before.members().len());
    let then = announcement.committee.members().len();
    if let Some(before) = before.filter(|_| announcement.compromised_since < announcement.committee.epoch()) {
        return Err(CommitteeError::NobodyJoins { before, then });
    }
    let voter = member(keys, now)?;
    check_joined(config, keys, &committees).await?;
    if joining(&announcement, (now, before.is_some())) > 0
        && let Memory::Older { why, .. } = marked(&config.data)?
    {
        return Err(CommitteeError::Stale(why));
    }
    let roles = nodes.agree(async |node| Ok((node.guardian().await?, node.recovery().await?))).await?;
    nodes.check_deadline(announcement.deadline).await?;
    let statement = CouncilStatement::Announcement(&announcement);
    let id = nodes.check_digest(&statement).await?;
    let vote = vote(voter, &domain, announcement.committee.epoch(), &statement);
    let mut text = describe(&announcement, (now, before.is_some()), roles, &domain);
    let _ = write!(text, "announcement {id}\nsigned as authority {} of epoch {}", vote.authority, now.epoch());
    Ok(Ballot { text, vote })
}

/// How many members of the announced committee join before they vote: those whose pair is new, or all. Nobody joins after
/// keys were out.
fn joining(announcement: &Announcement, (now, all_join): (&Committee, bool)) -> usize {
    let next = &announcement.committee;
    if announcement.compromised_since < next.epoch() {
        return 0;
    }
    next.members().iter().filter(|member| all_join || !now.members().contains(member)).count()
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

/// Describes the announcement to the operator who signs it.
fn describe(
    announcement: &Announcement,
    (now, all_join): (&Committee, bool),
    (guardian, recovery): (PrimaryAddress, PrimaryAddress),
    domain: &Domain,
) -> String {
    let (next, mut text) = (&announcement.committee, String::new());
    let mut line = |line: String| text.extend([line.as_str(), "\n"]);
    line(format!("contract {} on chain {}", domain.contract(), domain.chain_id()));
    line(format!("epoch {} with {} authorities, quorum {}:", next.epoch(), next.members().len(), next.quorum()));
    for member in next.members() {
        let known = if now.members().contains(member) { "as now" } else { "new keys" };
        line(format!("  {}  {}  ({known})", member.name, member.redemption_key));
    }
    for member in now.members().iter().filter(|member| !next.members().contains(member)) {
        line(format!("  {}  {}  (no longer)", member.name, member.redemption_key));
    }
    line(role("guardian", announcement.guardian, guardian));
    line(role("recovery", announcement.recovery, recovery));
    if announcement.compromised_since < next.epoch() {
        line(format!(
            "keys are compromised since epoch {}: votes of it and of later epochs expire at once",
            announcement.compromised_since
        ));
        let new = next.members().iter().filter(|member| !now.members().contains(member)).count();
        let most = next.members().len().saturating_sub(next.quorum());
        if new > most {
            line(format!(
                "{new} pairs are new. An operator whose data folder is new cannot vote in this epoch: with more than {most} \
                 such operators, no later committee could vote either"
            ));
        }
    }
    if !announcement.checkpoint.is_zero() {
        line(format!("checkpoint {}", announcement.checkpoint));
    }
    line(format!("to be announced by {}", utc(announcement.deadline)));
    if next.members().len() != now.members().len() {
        line(format!("{} authorities now, {} then", now.members().len(), next.members().len()));
    }
    let (all, joining) = (next.members().len(), joining(announcement, (now, all_join)));
    if joining > 0 {
        let wait =
            if all.saturating_sub(joining) < next.quorum() { ", and payments wait until a quorum votes" } else { "" };
        line(format!("{joining} of {all} authorities join before they vote{wait}"));
    }
    text
}

fn role(name: &str, then: PrimaryAddress, now: PrimaryAddress) -> String {
    let who = if then.is_zero() { "nobody".to_owned() } else { then.to_string() };
    match then == now {
        true => format!("{name}: {who} (as now)"),
        false if now.is_zero() => format!("{name}: {who} (now nobody)"),
        false => format!("{name}: {who} (now {now})"),
    }
}
