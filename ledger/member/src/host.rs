//! The task that owns a member's state: it answers the engine, and the services.
//!
//! ```text
//!  engine: a part came      ─► judged (executed) ─► on disk ─► the engine votes
//!  engine: make a proposal  ─► waits for work, briefly ─► on disk ─► sent
//!  engine: decided          ─► on disk ─► state, groups, answers ─► acknowledged
//!  services: commands, each with its reply
//! ```

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use fastpay_core::Digest;
use fastpay_ledger_state::FoldError;
use fastpay_ledger_statement::{
    AnswerProof, CompactDecision, MemberIndex, MemberKeys, QuorumCertificate, ReadProof, Receiver, Time,
};
use fastpay_program::Clock;
use malachite::app::engine::host::{HeightParams, Next, SyncedValueOutcome};
use malachite::app::streaming::StreamContent;
use malachite::app::types::core::{CommitCertificate, LinearTimeouts, Round, Validity};
use malachite::app::types::streaming::{StreamId, StreamMessage};
use malachite::app::types::sync::RawDecidedValue;
use malachite::app::types::{LocallyProposedValue, ProposedValue};
use malachite::{AppMsg, NetworkMsg};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::chain::{Chain, Fault, Judged};
use crate::command::{Command, Status};
use crate::engine::{
    Cluster, EngineHeight, EngineVerifier, MemberAddress, Part, ProposedHeader, Validators, commit_of, votes_of,
};
use crate::lie::Lie;
use crate::pool::{Added, Pool};
use crate::relay::Relay;
use crate::store::{CHECKPOINT_INTERVAL, Checkpoint, Decided, Proposed, Store};

/// A leader without work waits this long before it proposes nothing: an idle cluster uses a twentieth of a core.
const IDLE: Duration = Duration::from_millis(500);
/// So many payloads of a height are kept. Each round has one; a liar could make up more.
const UNDER_WAY_MAX: usize = 64;
/// So many parts of each member are kept that are early.
const EARLY_MAX: usize = 2;
/// So many clients wait for answers.
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
    judged: HashMap<Digest, Judged>,
    early: BTreeMap<MemberAddress, Vec<Part>>,
    height: u64,
    round: Round,
    wanted: Option<Wanted>,
    waiters: HashMap<Digest, Vec<oneshot::Sender<AnswerProof>>>,
    heights: watch::Sender<u64>,
    relay: Relay,
    network: mpsc::Sender<NetworkMsg<Cluster>>,
    lie: Lie,
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
}

impl Host {
    /// A host with an empty pool.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let Parts { keys, cluster, votes, chain, store, heights, relay, network } = parts;
        Self {
            me: MemberAddress(keys.public()),
            keys,
            votes,
            clock: Clock::system(),
            chain,
            store,
            pool: Pool::default(),
            verifier: EngineVerifier::new(cluster),
            judged: HashMap::new(),
            early: BTreeMap::new(),
            height: 0,
            round: Round::Nil,
            wanted: None,
            waiters: HashMap::new(),
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
                _ = stop.changed() => return Ok(End::Stopped),
                Ok(()) = until.changed() => {}
            }
            if self.wanted.is_some() && !self.pool.is_empty() {
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
            AppMsg::RestreamProposal { round, valid_round, value_id, .. } => {
                if let Some(proposed) = self.store.under_way(&value_id.0).cloned() {
                    self.publish(round, valid_round, &proposed).await;
                }
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

    /// Makes the proposal that the engine waits for.
    async fn propose(&mut self) -> Result<(), HostError> {
        let Some(Wanted { height, round, reply, .. }) = self.wanted.take() else { return Ok(()) };
        if height != self.next_height() {
            return Ok(());
        }
        let (proposed, judged) = self.make();
        let (proposed, judged) = self.lie.about_outputs(&self.keys, proposed, judged);
        let header = *proposed.header();
        self.store.propose(&proposed)?;
        self.judged.insert(header.id(), judged);
        self.publish(round, Round::Nil, &proposed).await;
        let _ = reply.send(LocallyProposedValue { height, round, value: ProposedHeader(header) });
        Ok(())
    }

    /// As much of the pool as can be executed.
    fn make(&mut self) -> (Proposed, Judged) {
        let now = self.now();
        let mut attempt = 0_u32;
        loop {
            match self.chain.make(&self.keys, now, self.lie.about_inputs(self.pool.choose(attempt))) {
                Ok(made) => return made,
                Err(FoldError::Faulty { from, number }) => {
                    tracing::error!(
                        "cluster {from} sent what no honest one does, in group {number}; ask its operators"
                    );
                    self.pool.exclude(from);
                }
                // One with a single request is always valid, so this ends.
                Err(error) => {
                    tracing::warn!("a proposal is made shorter: {error}");
                    attempt = attempt.saturating_add(1);
                }
            }
        }
    }

    async fn publish(&self, round: Round, valid_round: Round, proposed: &Proposed) {
        let mut part = Part {
            round: round.as_i64(),
            valid_round: valid_round.as_i64(),
            proposer: self.me,
            header: *proposed.header(),
            payload: proposed.payload().to_vec(),
            signature: [0; 64],
        };
        part.signature = self.keys.sign(part.digest()).0;
        let id = StreamId::new(part.digest().to_vec().into());
        let message = StreamMessage::new(id, 0, StreamContent::Data(part));
        // Where the engine has ended, `run` does too.
        let _ = self.network.send(NetworkMsg::PublishProposalPart(message)).await;
    }

    /// Keeps a part that is early, and judges one that is not.
    fn receive(&mut self, part: Part) -> Result<Option<ProposedValue<Cluster>>, HostError> {
        let is_member = self.chain.members().index(&part.proposer.0).is_some();
        if !is_member || !self.verifier.is_signed(part.proposer.0.0, part.digest(), part.signature) {
            tracing::warn!("a part is not by a member");
            return Ok(None);
        }
        let at = (part.header.height.0, part.round);
        if at > (self.height, self.round.as_i64()) {
            let early = self.early.entry(part.proposer).or_default();
            early.push(part);
            let surplus = early.len().saturating_sub(EARLY_MAX);
            early.drain(..surplus);
            return Ok(None);
        }
        let is_under_way = part.header.height.0 == self.height && self.next_height().0 == self.height;
        if is_under_way { self.judge(&part) } else { Ok(None) }
    }

    fn judge_early(&mut self) -> Result<Vec<ProposedValue<Cluster>>, HostError> {
        let now = (self.height, self.round.as_i64());
        let mut due = Vec::new();
        for parts in self.early.values_mut() {
            let early = std::mem::take(parts);
            let (later, others): (Vec<_>, _) =
                early.into_iter().partition(|part| (part.header.height.0, part.round) > now);
            *parts = later;
            due.extend(others.into_iter().filter(|part| part.header.height.0 == now.0));
        }
        let judged = due.iter().map(|part| self.judge(part)).collect::<Result<Vec<_>, _>>()?;
        Ok(judged.into_iter().flatten().collect())
    }

    /// Executes what is proposed. What is valid is on disk before the engine may vote for it.
    fn judge(&mut self, part: &Part) -> Result<Option<ProposedValue<Cluster>>, HostError> {
        let Some(proposed) = Proposed::new(part.header, part.payload.clone()) else {
            tracing::warn!("member {} sent another payload than its header names", part.proposer);
            return Ok(None);
        };
        if self.judged.len() >= UNDER_WAY_MAX {
            return Ok(None);
        }
        let validity = match self.judge_proposed(&proposed, part) {
            Ok(judged) => {
                self.store.propose(&proposed)?;
                self.judged.insert(part.header.id(), judged);
                Validity::Valid
            }
            Err(fault) => {
                tracing::warn!("no vote for the proposal of {} for height {}: {fault}", part.proposer, self.height);
                Validity::Invalid
            }
        };
        Ok(Some(ProposedValue {
            height: EngineHeight(part.header.height.0),
            round: part.round.into(),
            valid_round: part.valid_round.into(),
            proposer: part.proposer,
            value: ProposedHeader(part.header),
            validity,
        }))
    }

    /// A new proposal is its proposer's own, its time is now, and it leaves nothing out. One that a quorum has prevoted
    /// before was asked that when it was new.
    fn judge_proposed(&mut self, proposed: &Proposed, part: &Part) -> Result<Judged, Fault> {
        let header = proposed.header();
        let is_new = part.valid_round < 0;
        if is_new {
            let is_own = self.chain.members().key(header.maker) == Some(part.proposer.0);
            is_own.then_some(()).ok_or(Fault::OtherMaker(header.maker))?;
            header.check_clock(self.now())?;
        }
        let judged = self.chain.judge(proposed)?;
        let now_ms = self.clock.now_ms();
        if is_new
            && let Some((what, alone)) = self.pool.left_out(&judged.inputs, judged.payload_bytes, now_ms)
            && self.chain.has_room(&judged, &alone)
        {
            return Err(Fault::LeftOut(what));
        }
        Ok(judged)
    }

    fn now(&self) -> Time {
        Time(self.clock.now_ms())
    }

    /// Stores a decided height, then applies it.
    fn decide(&mut self, commit: &CommitCertificate<Cluster>) -> Result<(), HostError> {
        let (height, id) = (commit.height.0, commit.value_id.0);
        if height <= self.chain.height() {
            return Ok(());
        }
        let proposed = self.store.under_way(&id).cloned().ok_or(HostError::NoPayload { height })?;
        let round = commit.round.as_u32().unwrap_or(u32::MAX);
        let certificate = QuorumCertificate::of_votes(self.chain.members(), round, &votes_of(commit));
        let certificate = certificate.ok_or(HostError::NoCertificate { height })?;
        let judged = match self.judged.remove(&id) {
            Some(judged) => judged,
            None => self.chain.judge(&proposed).map_err(|fault| HostError::Divergence { height, fault })?,
        };
        let decided = Decided { proposed, certificate };
        self.store.decide(&decided)?;
        self.apply(judged, decided.certificate)
    }

    fn apply(&mut self, judged: Judged, certificate: QuorumCertificate) -> Result<(), HostError> {
        send_groups(&mut self.store, &judged, &certificate)?;
        self.answer(&judged, &certificate);
        self.pool.decided(&judged.inputs, &judged.executed.state);
        self.chain.advance(judged, certificate);
        self.judged.clear();
        if self.chain.height().is_multiple_of(CHECKPOINT_INTERVAL)
            && let Some(checkpoint) = self.chain.checkpoint()
        {
            self.store.checkpoint(&checkpoint)?;
        }
        self.heights.send_replace(self.chain.height());
        Ok(())
    }

    /// Gives the clients who wait here their answers.
    fn answer(&mut self, judged: &Judged, certificate: &QuorumCertificate) {
        for proof in AnswerProof::all(&judged.header, &judged.executed.outputs, certificate, |request| {
            self.waiters.contains_key(&request)
        }) {
            for waiter in self.waiters.remove(&proof.answer.request).unwrap_or_default() {
                // The client may have gone.
                let _ = waiter.send(proof.clone());
            }
        }
    }

    fn decided_values(&self, first: u64, last: u64) -> Result<Vec<RawDecidedValue<Cluster>>, HostError> {
        let mut values = Vec::new();
        let mut bytes = 0_usize;
        for height in first..=last.min(self.store.height()) {
            let Some(Decided { proposed, certificate }) = self.store.decided(height)? else { break };
            let id = proposed.header().id();
            let key = |member: &MemberIndex| self.chain.members().key(*member).map(MemberAddress);
            let votes = certificate.votes.iter().filter_map(|(member, vote)| Some((key(member)?, vote.0))).collect();
            let encoded = proposed.encode();
            bytes = bytes.saturating_add(encoded.len());
            if bytes > SYNC_BYTES_MAX && !values.is_empty() {
                break;
            }
            values.push(RawDecidedValue::new(encoded.into(), commit_of(height, certificate.round, id, votes)));
        }
        Ok(values)
    }

    /// A quorum has certified a header of this height. What does not hold is another one, so the peer lied.
    fn receive_synced(
        &mut self,
        height: EngineHeight,
        round: Round,
        proposer: MemberAddress,
        bytes: &[u8],
    ) -> Result<SyncedValueOutcome<Cluster>, HostError> {
        let Some(proposed) = Proposed::decode(bytes).filter(|proposed| proposed.header().height.0 == height.0) else {
            tracing::warn!("a peer sent another payload for height {height} than its header names");
            return Ok(SyncedValueOutcome::PeerFault);
        };
        if height != self.next_height() {
            return Ok(SyncedValueOutcome::LocalTransientError);
        }
        let header = *proposed.header();
        match self.chain.judge(&proposed) {
            Err(fault) => {
                tracing::error!("what a peer sent for height {height} does not hold: {fault}");
                Ok(SyncedValueOutcome::PeerFault)
            }
            Ok(judged) => {
                self.store.propose(&proposed)?;
                self.judged.insert(header.id(), judged);
                Ok(SyncedValueOutcome::Verdict(ProposedValue {
                    height,
                    round,
                    valid_round: Round::Nil,
                    proposer,
                    value: ProposedHeader(header),
                    validity: Validity::Valid,
                }))
            }
        }
    }

    fn carry_out(&mut self, command: Command) -> Result<(), HostError> {
        match command {
            Command::Submit { request, is_relayed, answer, reply } => {
                let digest = request.digest();
                let is_awaited = answer.is_none_or(|answer| self.add_waiter(digest, answer));
                let added =
                    if is_awaited { self.pool.add_request(request.clone(), self.clock.now_ms()) } else { Added::Busy };
                if added == Added::New && !is_relayed {
                    self.relay.pass_on(&request);
                }
                let _ = reply.send(added);
            }
            Command::Read(key, reply) => {
                let proof = self.chain.head().map(|(header, certificate)| ReadProof {
                    header: *header,
                    certificate: certificate.clone(),
                    proof: self.chain.state().prove(&key),
                });
                let _ = reply.send(proof);
            }
            Command::Groups(to, from, reply) => {
                let groups = self.store.groups(to, from)?;
                let _ = reply.send(groups.into_iter().map(|group| self.lie.about_group(group)).collect());
            }
            Command::Due(cluster, reply) => {
                let _ = reply.send(self.pool.due_from(cluster, self.chain.state()));
            }
            Command::Group(group) => {
                self.pool.add_group(*group, self.chain.state(), self.clock.now_ms());
            }
            Command::Status(reply) => {
                let members = self.chain.members();
                let index = |key| members.index(&key).unwrap_or_default();
                let leader = self.chain.leaders().first().copied().map(index).unwrap_or_default();
                let head = self.chain.head().map(|(header, certificate)| (*header, certificate.clone()));
                let _ = reply.send(Status { member: index(self.me.0), head, leader, votes: self.votes });
            }
            Command::Checkpoint(reply) => {
                let _ = reply.send(self.chain.checkpoint());
            }
        }
        Ok(())
    }

    fn add_waiter(&mut self, request: Digest, waiter: oneshot::Sender<AnswerProof>) -> bool {
        if self.waiters.len() >= WAITERS_MAX {
            self.waiters.retain(|_, waiters| {
                waiters.retain(|waiter| !waiter.is_closed());
                !waiters.is_empty()
            });
        }
        let has_room = self.waiters.len() < WAITERS_MAX;
        if has_room {
            let waiters = self.waiters.entry(request).or_default();
            waiters.retain(|waiter| !waiter.is_closed());
            waiters.push(waiter);
        }
        has_room
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

/// Keeps a height's groups for other clusters and committees.
fn send_groups(store: &mut Store, judged: &Judged, certificate: &QuorumCertificate) -> std::io::Result<()> {
    let outputs = &judged.executed.outputs;
    let receivers = outputs.groups().iter().map(|group| group.to).filter(|to| *to != Receiver::Clients);
    for to in receivers {
        if let Some(decision) = CompactDecision::of(&judged.header, outputs, certificate, to) {
            store.send(&decision)?;
        }
    }
    Ok(())
}

/// The chain as the folder has it: the checkpoint, and what was decided after it. What is damaged is forgotten: peers
/// have it.
///
/// # Errors
/// The disk's.
pub fn restore(mut chain: Chain, store: &mut Store, checkpoint: Option<Checkpoint>) -> std::io::Result<Chain> {
    if let Some(checkpoint) = checkpoint.filter(|checkpoint| checkpoint.header.height.0 <= store.height())
        && let Err(error) = chain.restore(checkpoint)
    {
        tracing::error!("the checkpoint is not certified: {error}; all heights are executed again");
    }
    for height in chain.height().saturating_add(1)..=store.height() {
        let judged = match store.decided(height)? {
            Some(decided) => chain.judge(&decided.proposed).ok().map(|judged| (judged, decided.certificate)),
            None => None,
        };
        let Some((judged, certificate)) = judged else {
            tracing::error!("height {height} is damaged on disk; it and all after it are asked of the other members");
            store.forget_from(height)?;
            break;
        };
        send_groups(store, &judged, &certificate)?;
        chain.advance(judged, certificate);
    }
    Ok(chain)
}
