//! Joins the current epoch with the Closings of a quorum of the epoch before, for a member whose folder is not full.
//!
//! ```text
//!  Closings of a quorum ─► Inheritance ─► certificates that they claim, from the peers ─► Record::Inherited*,
//!     Record::Joined in every shard, on disk ─► the name on disk ─► votes
//! ```
//! Each step may be repeated: a round begins anew, and finds what earlier ones have brought. Nothing is kept apart from
//! the Closings and what the shards record, so an end at any time loses nothing.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fastpay_core::handover::{Inheritance, InheritanceError, JoinError, VerifiedClosing};
use fastpay_core::{AccountId, AuthorityName, Committee, Digest, SequenceNumber};
use tokio::time::{sleep, timeout};

use super::closings::Closings;
use super::fetch::{Followed, Peer};
use super::wait::JoinWait;
use crate::authority::certification::Archive;
use crate::authority::network::{ReadError, ask};
use crate::authority::peer_sync::{self, OwnShards, PeerFailure};
use crate::authority::rotation::Rotation;
use crate::authority::shard::{Command, HistoryReader, JoinStep, ShardHandle};

/// So many accounts are asked about at a time: a shard answers them in one batch.
const ACCOUNTS_AT_A_TIME: usize = 256;
/// A Closing may begin so many checkpoints before this authority's journals: years, by default.
const CHECKPOINTS_BEFORE_MAX: usize = 256;
/// The wait before a shard that has too much to do is asked again.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// The parts of the node that a join needs.
pub struct JoinContext {
    /// The shards of this authority.
    pub own: OwnShards,
    /// The voter status, while the node runs: its folder is locked as long.
    pub rotation: Weak<Rotation>,
    /// The archive of certified checkpoints, if there is one.
    pub archive: Option<Archive>,
}

/// See the [module](self).
pub(super) struct Joiner {
    shards: Arc<Vec<(ShardHandle, HistoryReader)>>,
    context: JoinContext,
    /// What was last made of Closings.
    inheritance: Option<Arc<Inheritance>>,
    /// Members whose claims nobody has borne out.
    unproven: BTreeSet<AuthorityName>,
}

impl Joiner {
    pub fn new(shards: Arc<Vec<(ShardHandle, HistoryReader)>>, context: JoinContext) -> Self {
        Self { shards, context, inheritance: None, unproven: BTreeSet::new() }
    }

    /// Joins the epoch after the one of `committee`, as far as it can now. Returns once this authority votes in it.
    pub async fn join(
        &mut self,
        committee: &Committee,
        followed: &Followed<'_>,
        closings: &Closings,
        (peers, within): (&[Peer], Duration),
    ) -> Result<(), JoinWait> {
        let inheritance = self.inherit(committee, followed, closings)?;
        let missing = self.bring(&inheritance, peers, within).await?;
        for (shard, _) in self.shards.iter() {
            match join_shard(shard, &inheritance).await? {
                Ok(()) => {}
                Err(first @ JoinError::Unproven { authority, .. }) => {
                    // Another quorum may do without it. What is proven later is proven for all.
                    self.unproven.insert(authority);
                    return Err(JoinWait::Certificates { missing, first });
                }
                Err(error) => return Err(JoinWait::Shard(error)),
            }
        }
        let rotation = self.context.rotation.upgrade().ok_or_else(|| JoinWait::Busy("the node stops".into()))?;
        rotation.join(inheritance.joins()).map_err(|error| JoinWait::Storage(error.to_string()))?;
        (self.inheritance, self.unproven) = (None, BTreeSet::new());
        Ok(())
    }

    /// What the Closings with the fewest entries say, those of members with unproven claims last.
    fn inherit(
        &mut self,
        committee: &Committee,
        followed: &Followed<'_>,
        closings: &Closings,
    ) -> Result<Arc<Inheritance>, JoinWait> {
        let (epoch, needed) = (committee.epoch(), committee.quorum());
        let (mut found, mut missing, mut unknown) = (Vec::new(), Vec::new(), None);
        for member in committee.members().iter().map(|member| member.name) {
            let checked = || {
                let signed = closings.statement((epoch, member)).ok()?;
                let against = (followed.installations, followed.up_to);
                signed.check_statement((followed.domain, epoch), against).ok()?;
                (signed.authority == member).then_some(signed.closing)
            };
            match checked() {
                None => missing.push(member),
                Some(closing) if !self.includes(followed, &closing.checkpoint) => unknown = Some(closing.checkpoint),
                Some(closing) => found.push((self.unproven.contains(&member), closing.entries, member)),
            }
        }
        if found.len() < needed {
            let wait = JoinWait::Closings { epoch, needed, found: found.len(), missing };
            return Err(unknown.map_or(wait, JoinWait::Checkpoint));
        }
        found.sort_unstable();
        found.truncate(needed);
        let chosen: BTreeSet<_> = found.iter().map(|(.., member)| *member).collect();
        let is_of_these = |made: &&Arc<Inheritance>| {
            made.joins().0.checked_sub(1) == Some(epoch.0)
                && made.authors().iter().copied().collect::<BTreeSet<_>>() == chosen
        };
        if let Some(made) = self.inheritance.as_ref().filter(is_of_these) {
            return Ok(made.clone());
        }
        self.inheritance = None;
        let verified: Result<Vec<_>, _> = chosen.iter().map(|member| read(closings, followed, *member)).collect();
        let made = Inheritance::new(committee, verified?, |checkpoint| self.includes(followed, checkpoint));
        let made = Arc::new(made.map_err(|error| match error {
            InheritanceError::TooFew { unknown: Some(checkpoint), .. } => JoinWait::Checkpoint(checkpoint),
            error => JoinWait::Unreadable(error.to_string()),
        })?);
        tracing::info!(%epoch, authors = ?made.authors(), up_to = %made.up_to(), "joining with the Closings of a quorum");
        Ok(self.inheritance.insert(made).clone())
    }

    /// Whether the journals begin from this checkpoint or from one that follows it.
    fn includes(&self, followed: &Followed<'_>, checkpoint: &Digest) -> bool {
        let base = self.shards.first().and_then(|(_, history)| history.base());
        let Some(base) = base.filter(|_| *checkpoint != Digest::ZERO) else { return *checkpoint == Digest::ZERO };
        let is_archived = |archive: &Archive| {
            let numbers = (1..base.number).rev().take(CHECKPOINTS_BEFORE_MAX);
            let mut before = numbers.filter_map(|number| archive.checkpoint(number).ok());
            before.any(|archived| followed.domain.checkpoint_digest(&archived) == *checkpoint)
        };
        base.checkpoint == *checkpoint || self.context.archive.as_ref().is_some_and(is_archived)
    }

    /// Fetches and executes what the Closings claim and this authority lacks. Returns how many certificates nobody
    /// sent.
    async fn bring(&self, inheritance: &Inheritance, peers: &[Peer], within: Duration) -> Result<u64, JoinWait> {
        let busy = |error: PeerFailure| JoinWait::Busy(error.to_string());
        let (own, mut silent, mut missing) = (&self.context.own, BTreeSet::new(), 0_u64);
        let reported: Vec<(AccountId, SequenceNumber)> = inheritance.reported().collect();
        for heads in reported.chunks(ACCOUNTS_AT_A_TIME) {
            let (mut lacking, mut count) = own.lacking(heads).await.map_err(busy)?;
            for client in peers.iter().filter_map(Peer::client) {
                if lacking.is_empty() {
                    break;
                }
                if silent.contains(&client.name()) {
                    continue;
                }
                let brought = timeout(within, peer_sync::bring(own, client, lacking.clone())).await;
                if !matches!(brought, Ok(Ok(_))) {
                    tracing::debug!(peer = %client.name(), ?brought, "a peer does not send what a Closing claims");
                    silent.insert(client.name());
                }
                (lacking, count) = own.lacking(&lacking).await.map_err(busy)?;
            }
            missing = missing.saturating_add(count);
        }
        Ok(missing)
    }
}

/// Reads and checks a member's Closing. One that the disk has damaged is removed, and fetched again.
fn read(closings: &Closings, followed: &Followed<'_>, member: AuthorityName) -> Result<VerifiedClosing, JoinWait> {
    let author = (followed.epoch, member);
    let unreadable = |error: &dyn std::fmt::Display| JoinWait::Unreadable(format!("{member}: {error}"));
    let (signed, entries) = match closings.read(author) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData || error.kind() == io::ErrorKind::UnexpectedEof => {
            closings.drop(author).map_err(|error| unreadable(&error))?;
            return Err(unreadable(&error));
        }
        read => read.map_err(|error| unreadable(&error))?,
    };
    let (of, against) = ((followed.domain, followed.epoch), (followed.installations, followed.up_to));
    signed.verify(entries, of, against, &mut rand::rng()).map_err(|error| {
        if let Err(error) = closings.drop(author) {
            tracing::error!(%member, %error, "a damaged Closing cannot be removed");
        }
        unreadable(&error)
    })
}

/// Brings what is inherited into one shard, part by part.
async fn join_shard(shard: &ShardHandle, inheritance: &Arc<Inheritance>) -> Result<Result<(), JoinError>, JoinWait> {
    let busy = |error: ReadError| JoinWait::Busy(error.to_string());
    let mut after = None;
    loop {
        let inheritance = inheritance.clone();
        let answer = match ask(shard, move |reply| Command::Join { inheritance, after, reply }) {
            Err(ReadError::Busy) => {
                sleep(BUSY_PAUSE).await;
                continue;
            }
            asked => asked.map_err(busy)?.await.map_err(busy)?,
        };
        match answer {
            Ok(JoinStep::Joined) => return Ok(Ok(())),
            Ok(JoinStep::UpTo(account)) => after = account,
            Err(error) => return Ok(Err(error)),
        }
    }
}
