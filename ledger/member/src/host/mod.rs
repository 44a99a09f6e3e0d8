//! The task that owns a member's state: it answers the engine, and the services.
//!
//! ```text
//!  engine: a part came      ─► judged (executed) ─► on disk ─► the engine votes
//!  engine: make a proposal  ─► waits for work, briefly ─► on disk ─► sent
//!  engine: decided          ─► on disk ─► state, groups, answers ─► acknowledged
//!  services: commands, each with its reply
//! ```

mod commands;
mod decisions;
mod proposals;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use fastpay_core::Digest;
use fastpay_ledger_statement::{MemberKeys, Time};
use fastpay_program::Clock;
use malachite::app::engine::host::{HeightParams, Next};
use malachite::app::streaming::StreamContent;
use malachite::app::types::LocallyProposedValue;
use malachite::app::types::core::{LinearTimeouts, Round};
use malachite::{AppMsg, NetworkMsg};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};

pub use self::decisions::restore;
use crate::chain::{Chain, Fault, Judged};
use crate::command::{Command, Waiter};
use crate::engine::{Cluster, EngineHeight, EngineVerifier, MemberAddress, Part, Polkas, Validators};
use crate::lie::Lie;
use crate::pool::Pool;
use crate::relay::Relay;
use crate::store::{Checkpoints, Store};

/// A leader without work waits this long before it proposes nothing: an idle cluster uses a twentieth of a core.
const IDLE: Duration = Duration::from_millis(500);
/// Requests are looked for so often that have waited for long.
const PASS_ON_INTERVAL: Duration = Duration::from_millis(250);
/// So many headers of a round are judged. An honest leader proposes one; a liar could make up more.
const HEADERS_PER_ROUND_MAX: usize = 2;
/// Outcomes of so many valid headers are kept.
const JUDGED_MAX: usize = 4;
/// So many payloads of the height under way are kept, beside those that a quorum has prevoted. A cluster that cannot decide
/// makes new ones with every round.
const PROPOSED_MAX: usize = 64;
/// So many parts of each member are kept that are early.
const EARLY_MAX: usize = 2;
/// Those who wait no longer are looked for so often at most: all are walked through.
const PRUNE_INTERVAL_MS: u64 = 1_000;
/// Answers to so many requests are awaited.
const WAITERS_MAX: usize = 16_384;
/// Sync sends so many bytes of heights at once, unless one alone is longer.
const SYNC_BYTES_MAX: usize = 8 << 20;

/// What a member is and has.
pub struct Host {
    keys: MemberKeys,
    me: MemberAddress,
    /// Whether the engine votes, or only follows until that is safe.
    votes: bool,
    clock: Clock,
    chain: Chain,
    store: Store,
    pool: Pool,
    verifier: EngineVerifier,
    /// The newest that are valid; what is missing is executed again.
    judged: VecDeque<Judged>,
    polkas: Polkas,
    checkpoints: Checkpoints,
    /// What was judged in each round of the height.
    judged_in: HashMap<i64, Vec<JudgedPart>>,
    early: BTreeMap<MemberAddress, Vec<Part>>,
    height: u64,
    round: Round,
    wanted: Option<Wanted>,
    waiters: HashMap<Digest, Vec<Waiter>>,
    /// When those were last removed who wait no longer.
    waiters_pruned_ms: u64,
    heights: watch::Sender<u64>,
    relay: Relay,
    network: mpsc::Sender<NetworkMsg<Cluster>>,
    lie: Lie,
}

/// A part of a round's leader that was judged. With the payload it can be passed on.
struct JudgedPart {
    header: Digest,
    valid_round: i64,
    signature: [u8; 64],
}

/// A proposal that the engine waits for.
struct Wanted {
    height: EngineHeight,
    round: Round,
    until: Instant,
    reply: oneshot::Sender<LocallyProposedValue<Cluster>>,
}

/// The member cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The disk.
    #[error("the member's folder cannot be used: {0}")]
    Disk(#[from] std::io::Error),
    /// The engine decided what this member has no payload of.
    #[error("height {height} was decided, and its payload is not here; restart the member")]
    NoPayload {
        /// The height.
        height: u64,
    },
    /// The engine decided what this member cannot execute.
    #[error("height {height} was decided, and does not hold here: {fault}; stop, and compare versions with the others")]
    Divergence {
        /// The height.
        height: u64,
        /// Why.
        fault: Fault,
    },
    /// The votes of a decision are no certificate.
    #[error("height {height} was decided with too few votes of members")]
    NoCertificate {
        /// The height.
        height: u64,
    },
}

/// The parts of a host.
pub struct Parts {
    /// The member's keys.
    pub keys: MemberKeys,
    /// The cluster.
    pub cluster: Cluster,
    /// Whether the engine votes.
    pub votes: bool,
    /// What was decided.
    pub chain: Chain,
    /// The folder.
    pub store: Store,
    /// Who is told about new heights.
    pub heights: watch::Sender<u64>,
    /// The way to the other members.
    pub relay: Relay,
    /// The engine's network.
    pub network: mpsc::Sender<NetworkMsg<Cluster>>,
    /// What the engine has seen prevoted.
    pub polkas: Polkas,
}

impl Host {
    /// A host with an empty pool.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let Parts { keys, cluster, votes, chain, store, heights, relay, network, polkas } = parts;
        Self {
            me: MemberAddress(keys.public()),
            keys,
            votes,
            clock: Clock::system(),
            chain,
            store,
            pool: Pool::default(),
            verifier: EngineVerifier::new(cluster, Polkas::default()),
            judged: VecDeque::new(),
            polkas,
            checkpoints: Checkpoints::default(),
            judged_in: HashMap::new(),
            early: BTreeMap::new(),
            height: 0,
            round: Round::Nil,
            wanted: None,
            waiters: HashMap::new(),
            waiters_pruned_ms: 0,
            heights,
            relay,
            network,
            lie: Lie::of_environment(),
        }
    }

    /// Answers the engine and the services until the engine ends, `stop` does, or height `until` is decided.
    ///
    /// # Errors
    /// See [`HostError`].
    pub async fn run(
        mut self,
        mut engine: mpsc::Receiver<AppMsg<Cluster>>,
        mut commands: mpsc::Receiver<Command>,
        mut stop: watch::Receiver<bool>,
        until: &mut watch::Receiver<Option<u64>>,
    ) -> Result<End, HostError> {
        let mut pass_on = tokio::time::interval(PASS_ON_INTERVAL);
        pass_on.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if until.borrow_and_update().is_some_and(|until| self.chain.height() >= until) {
                return Ok(End::MayVote);
            }
            let due = self.wanted.as_ref().map(|wanted| wanted.until);
            tokio::select! {
                message = engine.recv() => match message {
                    Some(message) => self.answer_engine(message).await?,
                    None => return Ok(End::EngineEnded),
                },
                Some(command) = commands.recv() => self.carry_out(command)?,
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.propose().await?;
                }
                _ = pass_on.tick() => self.pass_on_again(),
                _ = stop.changed() => return Ok(End::Stopped),
                Ok(()) = until.changed() => {}
            }
            if self.wanted.is_some() && self.lie.has_work(&self.pool) {
                self.propose().await?;
            }
        }
    }

    async fn answer_engine(&mut self, message: AppMsg<Cluster>) -> Result<(), HostError> {
        // A reply that nobody awaits is the engine's matter: it ends, and `run` with it.
        match message {
            AppMsg::ConsensusReady { reply } => {
                let _ = reply.send((self.next_height(), self.parameters()));
            }
            AppMsg::StartedRound { height, round, reply_value, .. } => {
                (self.height, self.round) = (height.0, round);
                self.polkas.begin(height.0);
                let values = self.judge_early()?;
                let _ = reply_value.send(values);
            }
            AppMsg::GetValue { height, round, timeout, reply } => {
                let until = Instant::now().checked_add(IDLE.min(timeout / 2)).unwrap_or_else(Instant::now);
                self.wanted = Some(Wanted { height, round, until, reply });
            }
            AppMsg::ReceivedProposalPart { part, reply, .. } => {
                let value = match part.content {
                    StreamContent::Fin => None,
                    StreamContent::Data(part) => self.receive(part)?,
                };
                let _ = reply.send(value);
            }
            AppMsg::RestreamProposal { round, valid_round, address, value_id, .. } => {
                self.publish_again(round, valid_round, address, &value_id.0).await?;
            }
            AppMsg::Decided { certificate, reply, .. } => {
                self.decide(&certificate)?;
                let _ = reply.send(());
            }
            AppMsg::Finalized { reply, .. } => {
                let _ = reply.send(Next::Start(self.next_height(), self.parameters()));
            }
            AppMsg::ExtendVote { reply, .. } => {
                let _ = reply.send(None);
            }
            AppMsg::VerifyVoteExtensions { extensions, reply, .. } => {
                let _ = reply.send(extensions.into_iter().map(|(voter, ())| (voter, Ok(()))).collect());
            }
            AppMsg::GetHistoryMinHeight { reply } => {
                let _ = reply.send(EngineHeight(1));
            }
            AppMsg::GetDecidedValues { range, reply } => {
                let _ = reply.send(self.decided_values(range.start().0, range.end().0)?);
            }
            AppMsg::ProcessSyncedValue { height, round, proposer, value_bytes, reply } => {
                let _ = reply.send(self.receive_synced(height, round, proposer, &value_bytes)?);
            }
        }
        Ok(())
    }

    fn next_height(&self) -> EngineHeight {
        EngineHeight(self.chain.height().saturating_add(1))
    }

    /// A dead leader costs its time to propose, once: the next one stays.
    fn parameters(&self) -> HeightParams<Cluster> {
        let ms = Duration::from_millis;
        let timeouts = LinearTimeouts {
            propose: ms(1_000),
            propose_delta: ms(250),
            prevote: ms(500),
            prevote_delta: ms(250),
            precommit: ms(500),
            precommit_delta: ms(250),
            rebroadcast: ms(2_000),
            max_timeout: ms(10_000),
        };
        let members = Validators::new(self.chain.leaders()).expect("the genesis has checked the keys");
        HeightParams::new(members, timeouts, None)
    }

    fn now(&self) -> Time {
        Time(self.clock.now_ms())
    }
}

/// Why [`Host::run`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The height is decided after which this member may vote.
    MayVote,
    /// The engine ended: see its log.
    EngineEnded,
    /// It was asked to.
    Stopped,
}

#[cfg(test)]
mod tests;
