//! Watches the running node join the current epoch, and says what it waits for and what its operator can do.

use std::fmt;
use std::time::Duration;

use fastpay_client::ClientError;
use fastpay_core::{AuthorityName, Epoch};
use fastpay_rpc::{Joining, ShardStatus};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::own_node;
use crate::authority::config::{Config, ConfigError};

/// The pause between questions to the node.
const PAUSE: Duration = Duration::from_secs(1);

/// How far a join has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinReport {
    /// The authority.
    pub authority: AuthorityName,
    /// Its epoch.
    pub epoch: Epoch,
    /// Whether it votes for every order of that epoch.
    pub votes: bool,
    /// What it waits for, if it joins.
    pub joining: Option<Joining>,
    /// What the operator can do about it.
    pub advice: Option<&'static str>,
}

/// Why there is nothing to watch.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The node does not answer.
    #[error("this authority's node at {address} does not answer: {error}; start it")]
    Node {
        /// Its address.
        address: String,
        /// The error.
        error: ClientError,
    },
    /// It neither votes nor joins.
    #[error("authority {0} neither votes in epoch {1} nor joins it. {2}")]
    Neither(AuthorityName, Epoch, &'static str),
}

/// Asks the node until it votes, or until `wait` is over. Tells each new reason.
///
/// # Errors
/// See [`JoinError`].
pub async fn join(config: &Config, wait: Duration, tell: &mut dyn FnMut(String)) -> Result<JoinReport, JoinError> {
    let node = |(address, error)| JoinError::Node { address, error };
    let first = config.shard_addresses()?.into_iter().next().expect("there is at least one shard");
    let (client, address) = own_node::client(config, first).map_err(node)?;
    let (end, mut told) = (Instant::now() + wait, None);
    loop {
        let is_over = Instant::now() >= end;
        match client.status().await {
            // It may be about to start, or be away to end its journals.
            Err(error) if error.is_retryable() && !is_over => {}
            Err(error) => return Err(node((address, error))),
            Ok(status) => {
                let report = JoinReport::of(&status)?;
                if report.votes || is_over {
                    return Ok(report);
                }
                if told.as_ref() != Some(&report) {
                    tell(report.to_string());
                    told = Some(report);
                }
            }
        }
        sleep(PAUSE).await;
    }
}

impl JoinReport {
    fn of(status: &ShardStatus) -> Result<Self, JoinError> {
        let ShardStatus { authority, epoch, votes, joining, .. } = status;
        if !votes && joining.is_none() {
            return Err(JoinError::Neither(*authority, *epoch, steps(status)));
        }
        let advice = joining.as_ref().and_then(|joining| advice(&joining.waits_for));
        Ok(Self { authority: *authority, epoch: *epoch, votes: *votes, joining: joining.clone(), advice })
    }
}

/// What the operator of an authority can do that neither votes nor joins.
fn steps(status: &ShardStatus) -> &'static str {
    let is_member = status.committee.iter().any(|member| member.name == status.authority);
    match (status.restored, is_member) {
        (true, _) => {
            "Its data folder is marked as an older copy. It joins the next epoch: plan a rotation. Until then it votes only \
             for numbers above those that the other authorities know"
        }
        (false, true) => {
            "The committee lists it. See the node's log, which says at the start why it does not vote. After a recovery, run \
             `fastpay-node recover` and `fastpay-node rebase`"
        }
        (false, false) => {
            "The committee does not list it. If it lists a newer key pair of this authority, add that pair to `keys` in the \
             configuration and restart the node. If this authority has left, run `fastpay-node leave`. Otherwise the members \
             have to announce a committee that lists it"
        }
    }
}

/// What an operator can do about what a join waits for.
fn advice(waits_for: &str) -> Option<&'static str> {
    Some(match waits_for {
        "closings" => {
            "have the operators of these members start their nodes with the keys of that epoch, and check `endpoints` here"
        }
        "certificates" => "nothing: they are being fetched. If it lasts, check that the members in `endpoints` answer",
        "checkpoint" => "configure an `[archive]`: once it has the checkpoint, the node begins from there by itself",
        "installation" => "nothing: the operators announce and install a committee with these keys",
        "primary" | "primary-too-old" => "nothing while the node reads the chain. If it lasts, check the Ethereum node",
        "compromised" => "nobody joins here: follow *Emergency: keys were stolen* in docs/OPERATIONS.md",
        "restored" => "nothing: this member joins the epoch after those in which it may have voted",
        "unreadable" | "storage" | "busy" => "see the node's log for the cause; the node tries again",
        _ => return None,
    })
}

impl fmt::Display for JoinReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { authority, epoch, joining, advice, .. } = self;
        let Some(Joining { epoch: joins, reason, closings_missing, certificates_missing, .. }) = joining else {
            return write!(f, "authority {authority} votes in epoch {epoch}");
        };
        write!(f, "authority {authority} votes in epoch {joins} once it has joined it: {reason}")?;
        if closings_missing.saturating_add(*certificates_missing) > 0 {
            write!(f, " (missing: {closings_missing} Closings, {certificates_missing} certificates)")?;
        }
        advice.map_or(Ok(()), |advice| write!(f, "\nwhat to do: {advice}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::handover::JoinWait;

    #[test]
    fn there_is_advice_for_whatever_a_join_waits_for() {
        let epoch = Epoch(3);
        let waits = [
            JoinWait::Restored(epoch),
            JoinWait::Compromised(epoch),
            JoinWait::Closings { epoch, needed: 3, found: 1, missing: Vec::new() },
            JoinWait::Checkpoint(fastpay_core::Digest::ZERO),
            JoinWait::Unreadable(String::new()),
            JoinWait::NotFollowing,
            JoinWait::Busy(String::new()),
            JoinWait::Storage(String::new()),
        ];
        let codes = waits.iter().map(JoinWait::code).chain(["certificates", "installation", "primary-too-old"]);
        codes.for_each(|code| assert!(advice(code).is_some(), "{code}"));
        assert_eq!(advice("something new"), None);
    }

    #[test]
    fn a_node_that_neither_votes_nor_joins_says_what_to_do() {
        let committee = fastpay_testkit::TestCommittee::new(4).committee;
        let member = committee.members()[0].name;
        let status = |authority, restored| ShardStatus {
            authority,
            epoch: Epoch(3),
            chain_id: 1,
            contract: fastpay_core::PrimaryAddress::ZERO,
            shard: fastpay_core::ShardId(0),
            shard_count: 1,
            synchronized: fastpay_core::TransactionIndex(0),
            redemptions: 0,
            totals: Vec::new(),
            credits_in_flight: 0,
            version: String::new(),
            committee: committee.members().to_vec(),
            truncated: false,
            restored,
            votes: false,
            joining: None,
        };
        let other = AuthorityName([9; 32]);
        for (status, step) in [
            (status(member, true), "plan a rotation"),
            (status(member, false), "See the node's log"),
            (status(other, false), "add that pair to `keys`"),
        ] {
            let error = JoinReport::of(&status).unwrap_err();
            assert!(matches!(&error, JoinError::Neither(name, Epoch(3), _) if *name == status.authority), "{error}");
            assert!(error.to_string().contains(step), "{error}");
        }
        let votes = JoinReport::of(&ShardStatus { votes: true, ..status(member, true) }).unwrap();
        assert_eq!((votes.votes, votes.advice), (true, None));
    }
}
