//! Joins the current epoch with the Closings of a quorum of the epoch before, for a member whose folder is not full.
//!
//! ```text
//!  Closings of a quorum ─► Inheritance ─► certificates that they claim, from the peers ─► Record::Inherited*,
//!     Record::Joined in every shard, on disk ─► the name on disk ─► votes
//! ```
//! Each step may be repeated: a round begins anew, and finds what earlier ones have brought. Nothing is kept apart from
//! the Closings and what the shards record, so an end at any time loses nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fastpay_client::AuthorityClient;
use fastpay_core::handover::{Inheritance, InheritanceError, JoinError, JoinPosition, VerifiedClosing};
use fastpay_core::private::NoProofs;
use fastpay_core::{AccountId, AuthorityName, Committee, Digest, Epoch, SequenceNumber};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::closings::Closings;
use super::fetch::{Followed, Peer};
use super::wait::JoinWait;
use crate::authority::certification::Archive;
use crate::authority::network::{ReadError, ask};
use crate::authority::peer_sync::{self, OwnShards, PeerFailure};
use crate::authority::rotation::Rotation;
use crate::authority::shard::{Command, HistoryReader, JoinStep, ShardHandle};

/// So many accounts are asked about at a time: a shard answers them in one batch. They find room where clients leave
/// little.
const ACCOUNTS_AT_A_TIME: usize = 32;
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
    /// The accounts of that of which certificates may be missing here.
    lacking: Heads,
    /// How often nobody bore out a claim of these members: they come last. Of the epoch that ended.
    unproven: (Epoch, BTreeMap<AuthorityName, u64>),
}

impl Joiner {
    pub fn new(shards: Arc<Vec<(ShardHandle, HistoryReader)>>, context: JoinContext) -> Self {
        Self { shards, context, inheritance: None, lacking: Vec::new(), unproven: (Epoch(0), BTreeMap::new()) }
    }

    /// Joins the epoch after the one of `committee`, as far as it can now. Returns once this authority votes in it.
    pub async fn join(
        &mut self,
        committee: &Committee,
        followed: &Followed<'_>,
        closings: &Closings,
        (peers, within): (&[Peer], Duration),
    ) -> Result<(), JoinWait> {
        if self.unproven.0 != committee.epoch() {
            self.unproven = (committee.epoch(), BTreeMap::new());
        }
        let inheritance = self.inherit(committee, followed, closings)?;
        // To bring certificates is of no use before.
        for (shard, _) in self.shards.iter() {
            asked(shard, |reply| Command::MayJoin(inheritance.clone(), reply)).await?.map_err(JoinWait::Shard)?;
        }
        let missing = self.bring(peers, within).await?;
        for (shard, _) in self.shards.iter() {
            match join_shard(shard, &inheritance).await? {
                Ok(()) => {}
                Err(first @ JoinError::Unproven { authority, .. }) => {
                    // Another quorum may do without it. What is proven later is proven for all.
                    let times = self.unproven.1.entry(authority).or_default();
                    *times = times.saturating_add(1);
                    return Err(JoinWait::Certificates { missing, first });
                }
                Err(error) => return Err(JoinWait::Shard(error)),
            }
        }
        let rotation = self.context.rotation.upgrade().ok_or(JoinWait::NotFollowing)?;
        rotation.join(inheritance.joins()).map_err(|error| JoinWait::Storage(error.to_string()))?;
        (self.inheritance, self.lacking) = (None, Vec::new());
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
                Some(closing) => {
                    let times = self.unproven.1.get(&member).copied().unwrap_or_default();
                    found.push((times, closing.entries, member));
                }
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
        self.lacking = made.reported().collect();
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
    /// sent. What is complete is not asked about again.
    async fn bring(&mut self, peers: &[Peer], within: Duration) -> Result<u64, JoinWait> {
        let (all, mut missing) = (std::mem::take(&mut self.lacking), 0_u64);
        let mut clients: Vec<_> = peers.iter().filter_map(Peer::client).cloned().collect();
        for (number, heads) in all.chunks(ACCOUNTS_AT_A_TIME).enumerate() {
            match bring_some(&self.context.own, heads, &mut clients, within).await {
                Ok((left, count)) => {
                    self.lacking.extend(left);
                    missing = missing.saturating_add(count);
                }
                Err(wait) => {
                    self.lacking.extend(all.iter().skip(number.saturating_mul(ACCOUNTS_AT_A_TIME)));
                    return Err(wait);
                }
            }
        }
        Ok(missing)
    }
}

/// Accounts, each with the number below which certificates are needed.
type Heads = Vec<(AccountId, SequenceNumber)>;

/// Fetches and executes what is missing below these heads. Returns those below which certificates still are, and how
/// many. A peer that fails is removed, and one that is slow comes last.
async fn bring_some(
    own: &OwnShards,
    heads: &[(AccountId, SequenceNumber)],
    peers: &mut Vec<AuthorityClient>,
    within: Duration,
) -> Result<(Heads, u64), JoinWait> {
    let (mut at, end) = (0_usize, Instant::now() + within);
    let (mut lacking, mut count) = lacking_of(own, heads, within).await?;
    while let Some(peer) = peers.get(at).filter(|_| !lacking.is_empty()).cloned() {
        let (brought, before) = (timeout(within, peer_sync::bring(own, &peer, lacking.clone())).await, count);
        (lacking, count) = lacking_of(own, &lacking, within).await?;
        match brought {
            Ok(Ok(_)) => at = at.saturating_add(1),
            Err(_) if count < before => {
                peers.remove(at);
                peers.push(peer);
            }
            // The shards here have too much to do.
            Ok(Err(PeerFailure::NotNow(_))) if Instant::now() < end => sleep(BUSY_PAUSE).await,
            failed => {
                tracing::debug!(peer = %peer.name(), ?failed, "a peer does not send what a Closing claims");
                peers.remove(at);
            }
        }
    }
    Ok((lacking, count))
}

/// Those of these heads below which certificates are missing here, and how many. Shards that have too much to do are
/// asked again.
async fn lacking_of(
    own: &OwnShards,
    heads: &[(AccountId, SequenceNumber)],
    within: Duration,
) -> Result<(Heads, u64), JoinWait> {
    let end = Instant::now() + within;
    loop {
        match own.lacking(heads).await {
            Ok(lacking) => return Ok(lacking),
            Err(error) if Instant::now() >= end => return Err(JoinWait::Busy(error.to_string())),
            Err(_) => sleep(BUSY_PAUSE).await,
        }
    }
}

/// Asks a shard, again while it has too much to do.
async fn asked<T>(shard: &ShardHandle, command: impl Fn(oneshot::Sender<T>) -> Command) -> Result<T, JoinWait> {
    let busy = |error: ReadError| JoinWait::Busy(error.to_string());
    loop {
        match ask(shard, &command) {
            Err(ReadError::Busy) => sleep(BUSY_PAUSE).await,
            answer => return answer.map_err(busy)?.await.map_err(busy),
        }
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
    signed.verify(entries, of, against, &NoProofs, &mut rand::rng()).map_err(|error| {
        if let Err(error) = closings.drop(author) {
            tracing::error!(%member, %error, "a damaged Closing cannot be removed");
        }
        unreadable(&error)
    })
}

/// Brings what is inherited into one shard, part by part.
async fn join_shard(shard: &ShardHandle, inheritance: &Arc<Inheritance>) -> Result<Result<(), JoinError>, JoinWait> {
    let mut after = JoinPosition::default();
    loop {
        match asked(shard, |reply| Command::Join { inheritance: inheritance.clone(), after, reply }).await? {
            Ok(JoinStep::Joined) => return Ok(Ok(())),
            Ok(JoinStep::UpTo(position)) => after = position,
            Err(error) => return Ok(Err(error)),
        }
    }
}
