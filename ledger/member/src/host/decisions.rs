//! Decided heights: on disk first, then in the state; given to peers, and taken from them.

use std::collections::BTreeMap;

use fastpay_ledger_statement::{Answers, CompactDecision, MemberIndex, QuorumCertificate, Receiver, Wire};
use malachite::app::engine::host::SyncedValueOutcome;
use malachite::app::types::ProposedValue;
use malachite::app::types::core::{CommitCertificate, Round, Validity};
use malachite::app::types::sync::RawDecidedValue;

use super::{Host, HostError, SYNC_BYTES_MAX};
use crate::chain::{Chain, Judged};
use crate::command::Waiter;
use crate::engine::{Cluster, EngineHeight, MemberAddress, ProposedHeader, commit_of, votes_of};
use crate::pool::Pool;
use crate::store::{CHECKPOINT_INTERVAL, Checkpoint, Decided, Proposed, Store};

impl Host {
    /// Stores a decided height, then applies it.
    pub(super) fn decide(&mut self, commit: &CommitCertificate<Cluster>) -> Result<(), HostError> {
        let (height, id) = (commit.height.0, commit.value_id.0);
        if height <= self.chain.height() {
            return Ok(());
        }
        let proposed = self.store.under_way(&id)?.ok_or(HostError::NoPayload { height })?;
        let round = commit.round.as_u32().unwrap_or(u32::MAX);
        let certificate = QuorumCertificate::of_votes(self.chain.members(), round, &votes_of(commit));
        let certificate = certificate.ok_or(HostError::NoCertificate { height })?;
        let known = self.judged.iter().position(|judged| judged.header.id() == id);
        let judged = match known.and_then(|at| self.judged.remove(at)) {
            Some(judged) => judged,
            None => self.chain.judge(&proposed, &self.pool).map_err(|fault| HostError::Divergence { height, fault })?,
        };
        let decided = Decided { proposed, certificate };
        self.store.decide(&decided)?;
        self.apply(judged, decided.certificate)
    }

    pub(super) fn apply(&mut self, judged: Judged, certificate: QuorumCertificate) -> Result<(), HostError> {
        send_groups(&mut self.store, &judged, &certificate)?;
        self.answer(&judged, &certificate);
        self.pool.decided(&judged.inputs, &judged.executed.state, self.clock.now_ms());
        let leader = self.chain.leader();
        self.chain.advance(judged, certificate);
        if self.chain.leader() != leader {
            for request in self.pool.requests() {
                self.relay.pass_on_to(self.chain.leader(), request.request().encode());
            }
        }
        self.judged.clear();
        self.judged_in.clear();
        if self.chain.height().is_multiple_of(CHECKPOINT_INTERVAL)
            && let Some(checkpoint) = self.chain.checkpoint()
        {
            self.checkpoints.write(&self.store, checkpoint)?;
        }
        self.heights.send_replace(self.chain.height());
        Ok(())
    }

    /// Gives the clients who wait here their answers.
    pub(super) fn answer(&mut self, judged: &Judged, certificate: &QuorumCertificate) {
        let is_awaited = |request| self.waiters.contains_key(&request);
        let Some(answers) = Answers::of(&judged.header, &judged.executed.outputs, certificate, is_awaited) else {
            return;
        };
        let answers = self.lie.about_answers(&self.keys, answers);
        let without = answers.without_answers();
        let mut by_waiter: BTreeMap<u64, (Waiter, Answers)> = BTreeMap::new();
        for (answer, path) in answers.answers {
            for waiter in self.waiters.remove(&answer.request).unwrap_or_default() {
                let (_, answers) = by_waiter.entry(waiter.id).or_insert_with(|| (waiter, without.clone()));
                answers.answers.push((answer.clone(), path.clone()));
            }
        }
        for (waiter, answers) in by_waiter.into_values() {
            // The client may have gone, or read too slowly.
            let _ = waiter.answers.try_send(answers);
        }
    }

    pub(super) fn decided_values(&self, first: u64, last: u64) -> Result<Vec<RawDecidedValue<Cluster>>, HostError> {
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
    pub(super) fn receive_synced(
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
        match self.chain.judge(&proposed, &self.pool) {
            Err(fault) => {
                tracing::error!("what a peer sent for height {height} does not hold: {fault}");
                Ok(SyncedValueOutcome::PeerFault)
            }
            Ok(judged) => {
                self.keep(&proposed, judged)?;
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
/// have it. Groups are not asked of peers: where one of before the checkpoint is missing, all heights are executed again.
///
/// # Errors
/// The disk's.
pub fn restore(mut chain: Chain, store: &mut Store, checkpoint: Option<Checkpoint>) -> std::io::Result<Chain> {
    if let Some(checkpoint) = checkpoint.filter(|checkpoint| checkpoint.header.height.0 <= store.height())
        && let Err(error) = chain.restore(checkpoint)
    {
        tracing::error!("the checkpoint is not certified: {error}; all heights are executed again");
    }
    replay(&mut chain, store)?;
    let Some((to, number)) = store.missing_group(chain.state()) else { return Ok(chain) };
    tracing::error!("group {number} for {to:?} is missing on disk; all heights are executed again");
    let mut chain = Chain::new(chain.layout().clone()).expect("the layout had this cluster before");
    replay(&mut chain, store)?;
    Ok(chain)
}

/// Executes what was decided after the chain's newest height.
fn replay(chain: &mut Chain, store: &mut Store) -> std::io::Result<()> {
    for height in chain.height().saturating_add(1)..=store.height() {
        let judged = match store.decided(height)? {
            Some(decided) => {
                chain.judge(&decided.proposed, &Pool::default()).ok().map(|judged| (judged, decided.certificate))
            }
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
    Ok(())
}
