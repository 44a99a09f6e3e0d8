//! An announcement in words, for those who decide on it.

use fastpay_core::{Announcement, Committees, Digest, PrimaryAddress};
use fastpay_ethereum::utc;

use super::CommitteeError;
use super::council::Council;
use crate::authority::voter_status::all_join_in;

/// How many members of the announced committee join before they vote: those whose pair is new, or all. After keys
/// were out everybody begins anew instead.
pub(super) fn joining(announcement: &Announcement, committees: &Committees) -> usize {
    let (next, now) = (&announcement.committee, committees.current());
    let all_join = all_join_in(committees, next).is_some();
    if announcement.compromised_since < next.epoch() {
        return 0;
    }
    next.members().iter().filter(|member| all_join || !now.members().contains(member)).count()
}

/// Describes the announcement to the operator who proposes or signs it, or to the guardian who endorses it.
pub(super) async fn describe(
    council: &Council,
    announcement: &Announcement,
    committees: &Committees,
) -> Result<String, CommitteeError> {
    let (guardian, recovery) = council.roles().await?;
    let (next, now) = (&announcement.committee, committees.current());
    let mut text = String::new();
    let mut line = |line: String| text.extend([line.as_str(), "\n"]);
    line(council.place());
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
            "keys are compromised since epoch {}: votes of it and of later epochs expire at once, and payments wait until the \
             new committee has rebuilt and adopted a checkpoint",
            announcement.compromised_since
        ));
    }
    line(checkpoint(announcement.checkpoint));
    if announcement.checkpoint.is_zero() && announcement.compromised_since < next.epoch() {
        line("  although keys were out: name the newest certified one with --checkpoint, if there is one".into());
    }
    line(format!("to be announced by {}", utc(announcement.deadline)));
    if next.members().len() != now.members().len() {
        line(format!("{} authorities now, {} then", now.members().len(), next.members().len()));
    }
    let (all, joining) = (next.members().len(), joining(announcement, committees));
    if joining > 0 {
        let wait =
            if all.saturating_sub(joining) < next.quorum() { ", and payments wait until a quorum votes" } else { "" };
        line(format!("{joining} of {all} authorities join before they vote{wait}"));
    }
    Ok(text)
}

/// The checkpoint in words, and what naming one means.
pub(super) fn checkpoint(named: Digest) -> String {
    if named.is_zero() {
        return "checkpoint: none".to_owned();
    }
    format!(
        "checkpoint: {named}. Once it is installed, this checkpoint counts without votes: compare it with the newest certified \
         one in your own archive"
    )
}

/// Who has a role then, and who has it now.
pub(super) fn role(name: &str, then: PrimaryAddress, now: PrimaryAddress) -> String {
    let who = if then.is_zero() { "nobody".to_owned() } else { then.to_string() };
    match then == now {
        true => format!("{name}: {who} (as now)"),
        false if now.is_zero() => format!("{name}: {who} (now nobody)"),
        false => format!("{name}: {who} (now {now})"),
    }
}
