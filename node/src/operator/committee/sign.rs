//! A vote of the current committee for the next one.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use fastpay_core::handover::may_stay;
use fastpay_core::{Announcement, AuthorityKeys, Committee, CouncilStatement, Domain, PrimaryAddress};
use fastpay_ethereum::utc;

use super::announcement::{announcement, check_members};
use super::nodes::Nodes;
use super::{Ballot, CommitteeError, check_begun, member, vote};
use crate::authority::config::Config;

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
    let (before, then) = (now.members().len(), announcement.committee.members().len());
    if announcement.compromised_since < announcement.committee.epoch() && !may_stay(now, &announcement.committee) {
        return Err(CommitteeError::NobodyJoins { before, then });
    }
    let voter = member(keys, now)?;
    let roles = nodes.agree(async |node| Ok((node.guardian().await?, node.recovery().await?))).await?;
    nodes.check_deadline(announcement.deadline).await?;
    let statement = CouncilStatement::Announcement(&announcement);
    let id = nodes.check_digest(&statement).await?;
    let vote = vote(voter, &domain, announcement.committee.epoch(), &statement);
    let mut text = describe(&announcement, now, roles, &domain);
    let _ = write!(text, "announcement {id}\nsigned as authority {} of epoch {}", vote.authority, now.epoch());
    Ok(Ballot { text, vote })
}

/// Describes the announcement to the operator who signs it.
fn describe(
    announcement: &Announcement,
    now: &Committee,
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
    }
    if !announcement.checkpoint.is_zero() {
        line(format!("checkpoint {}", announcement.checkpoint));
    }
    line(format!("to be announced by {}", utc(announcement.deadline)));
    if next.members().len() != now.members().len() {
        line(format!(
            "{} authorities now, {} then: {}",
            now.members().len(),
            next.members().len(),
            match may_stay(now, next) {
                true => "new ones join before they vote",
                false => "all join before they vote, and payments wait until a quorum has joined",
            }
        ));
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
