//! Proposals: this member's own, and its judgement of others'. What is valid is on disk before the engine may vote for it.

use fastpay_core::Digest;
use fastpay_ledger_state::FoldError;
use fastpay_ledger_statement::{ClusterId, MemberKey, Time, VerifiedGroup, VerifiedRequest};
use malachite::NetworkMsg;
use malachite::app::streaming::StreamContent;
use malachite::app::types::core::{Round, Validity};
use malachite::app::types::streaming::{StreamId, StreamMessage};
use malachite::app::types::{LocallyProposedValue, ProposedValue};

use super::{EARLY_MAX, HEADERS_PER_ROUND_MAX, Host, HostError, JUDGED_MAX, JudgedPart, PROPOSED_MAX, Wanted};
use crate::chain::{Fault, Judged};
use crate::engine::{Cluster, EngineHeight, MemberAddress, Part, ProposedHeader};
use crate::pool::Inputs;
use crate::room::Room;
use crate::store::Proposed;

impl Host {
    /// Makes the proposal that the engine waits for.
    pub(super) async fn propose(&mut self) -> Result<(), HostError> {
        let Some(Wanted { height, round, reply, .. }) = self.wanted.take() else { return Ok(()) };
        if height != self.next_height() {
            return Ok(());
        }
        let (proposed, judged) = self.make();
        let (proposed, judged) = self.lie.about_outputs(&self.keys, proposed, judged);
        let header = *proposed.header();
        self.keep(&proposed, judged)?;
        self.publish(round, Round::Nil, &proposed).await;
        let _ = reply.send(LocallyProposedValue { height, round, value: ProposedHeader(header) });
        Ok(())
    }

    /// What of the pool has room. Where its groups cannot be executed all at once, those that are due are taken one by one.
    pub(super) fn make(&mut self) -> (Proposed, Judged) {
        let (now, room) = (self.now(), self.chain.room());
        loop {
            let inputs = self.lie.about_inputs(self.pool.choose(room));
            match self.chain.make(&self.keys, now, inputs.clone()) {
                Ok(made) => return made,
                Err(FoldError::Faulty { from, number }) => self.exclude(from, number),
                Err(error) => {
                    tracing::warn!("a proposal takes fewer groups: {error}");
                    return self.make_with_fewer_groups(now, inputs.requests);
                }
            }
        }
    }

    fn make_with_fewer_groups(&mut self, now: Time, requests: Vec<VerifiedRequest>) -> (Proposed, Judged) {
        let due: Vec<VerifiedGroup> = self.pool.due_groups().cloned().collect();
        let mut inputs = Inputs { groups: Vec::new(), requests };
        let mut made = loop {
            match self.chain.make(&self.keys, now, inputs.clone()) {
                Ok(made) => break made,
                Err(error) if inputs.requests.is_empty() => unreachable!("an empty proposal is valid: {error}"),
                Err(error) => {
                    tracing::error!("requests that have room cannot be executed, half of them are left out: {error}");
                    inputs.requests.truncate(inputs.requests.len() / 2);
                }
            }
        };
        for group in due {
            let (from, bytes) = (group.from(), group_bytes(&inputs));
            if !Room::has_group(bytes, borsh::object_length(group.decision()).unwrap_or(usize::MAX)) {
                continue;
            }
            inputs.groups.push(group);
            match self.chain.make(&self.keys, now, inputs.clone()) {
                Ok(larger) => made = larger,
                Err(error) => {
                    if let FoldError::Faulty { number, .. } = error {
                        self.exclude(from, number);
                    }
                    inputs.groups.pop();
                }
            }
        }
        made
    }

    fn exclude(&mut self, from: ClusterId, number: u64) {
        tracing::error!("cluster {from} sent what no honest one does, in group {number}; ask its operators");
        self.pool.exclude(from);
    }

    pub(super) async fn publish(&self, round: Round, valid_round: Round, proposed: &Proposed) {
        let mut part = Part {
            round: round.as_i64(),
            valid_round: valid_round.as_i64(),
            proposer: self.me,
            header: *proposed.header(),
            payload: self.lie.about_payload(proposed.payload().to_vec()),
            signature: [0; 64],
        };
        part.signature = self.keys.sign(part.digest()).0;
        self.send(part).await;
    }

    /// Proposes what was prevoted before, or passes on what another leader proposed: it may not have sent it to all. The
    /// other's part is passed on as it came, since a member judges what a round's leader has signed alone.
    pub(super) async fn publish_again(
        &self,
        round: Round,
        valid_round: Round,
        leader: MemberAddress,
        id: &Digest,
    ) -> Result<(), HostError> {
        let Some(proposed) = self.store.under_way(id)? else { return Ok(()) };
        if leader == self.me {
            self.publish(round, valid_round, &proposed).await;
            return Ok(());
        }
        let round = round.as_i64();
        let mut judged = self.judged_in.get(&round).into_iter().flatten();
        if let Some(JudgedPart { valid_round, signature, .. }) = judged.find(|judged| judged.header == *id) {
            let (valid_round, signature) = (*valid_round, *signature);
            let (header, payload) = (*proposed.header(), proposed.payload().to_vec());
            self.send(Part { round, valid_round, proposer: leader, header, payload, signature }).await;
        }
        Ok(())
    }

    async fn send(&self, part: Part) {
        let id = StreamId::new(part.digest().to_vec().into());
        let message = StreamMessage::new(id, 0, StreamContent::Data(part));
        // Where the engine has ended, `run` does too.
        let _ = self.network.send(NetworkMsg::PublishProposalPart(message)).await;
    }

    /// Keeps a part that is early, and judges one that is not.
    pub(super) fn receive(&mut self, part: Part) -> Result<Option<ProposedValue<Cluster>>, HostError> {
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

    pub(super) fn judge_early(&mut self) -> Result<Vec<ProposedValue<Cluster>>, HostError> {
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

    /// The member that leads a round of the next height.
    fn leader_of(&self, round: i64) -> Option<MemberKey> {
        let leaders = self.chain.leaders();
        let at = usize::try_from(round).ok()?.checked_rem(leaders.len())?;
        leaders.get(at).copied()
    }

    /// Executes what the leader of a round proposes. What is valid is on disk before the engine may vote for it.
    pub(super) fn judge(&mut self, part: &Part) -> Result<Option<ProposedValue<Cluster>>, HostError> {
        let is_new = part.valid_round == -1;
        let is_of_leader = self.leader_of(part.round) == Some(part.proposer.0);
        if !is_of_leader || !(is_new || (0..part.round).contains(&part.valid_round)) {
            tracing::debug!("member {} sent what no leader of round {} does", part.proposer, part.round);
            return Ok(None);
        }
        let Some(proposed) = Proposed::new(part.header, part.payload.clone()) else {
            tracing::warn!("member {} sent another payload than its header names", part.proposer);
            return Ok(None);
        };
        let id = part.header.id();
        let quorum = self.chain.members().quorum();
        if !is_new && !u32::try_from(part.valid_round).is_ok_and(|round| self.polkas.has(round, &id, quorum)) {
            tracing::debug!("member {} proposes again what no quorum has prevoted as far as is known", part.proposer);
            return Ok(None);
        }
        let judged_in_round = self.judged_in.entry(part.round).or_default();
        let is_known = judged_in_round.iter().any(|judged| judged.header == id);
        if is_known || judged_in_round.len() >= HEADERS_PER_ROUND_MAX {
            return Ok(None);
        }
        let (valid_round, signature) = (part.valid_round, part.signature);
        judged_in_round.push(JudgedPart { header: id, valid_round, signature });
        let validity = match self.judge_proposed(&proposed, part) {
            Ok(judged) => {
                self.keep(&proposed, judged)?;
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

    /// Keeps a valid payload, which is on disk when this returns, and its outcome.
    pub(super) fn keep(&mut self, proposed: &Proposed, judged: Judged) -> Result<(), HostError> {
        self.store.propose(proposed)?;
        if self.store.under_way_count() > PROPOSED_MAX {
            // Whoever precommits has seen a quorum's prevotes. Where others decide what was dropped, it is asked of them.
            let quorum = self.chain.members().quorum();
            self.store.drop_proposed(PROPOSED_MAX / 2, |id| self.polkas.has_any(id, quorum))?;
        }
        self.judged.truncate(JUDGED_MAX.saturating_sub(1));
        self.judged.push_front(judged);
        Ok(())
    }

    /// A new proposal is its proposer's own, its time is now, and it leaves nothing out. One that a quorum is said to have
    /// prevoted before was asked that when it was new; no proposal is ahead of this member's clock.
    pub(super) fn judge_proposed(&mut self, proposed: &Proposed, part: &Part) -> Result<Judged, Fault> {
        let header = proposed.header();
        header.check_not_ahead(self.now())?;
        let is_new = part.valid_round < 0;
        if is_new {
            let is_own = self.chain.members().key(header.maker) == Some(part.proposer.0);
            is_own.then_some(()).ok_or(Fault::OtherMaker(header.maker))?;
            header.check_clock(self.now())?;
        }
        let judged = self.chain.judge(proposed, &self.pool)?;
        let now_ms = self.clock.now_ms();
        // Where another proposal is decided, this member proposes them too. What does not fit was not proposed to it.
        for request in &judged.inputs.requests {
            self.pool.add_request(request, now_ms);
        }
        if is_new {
            let left_out = self.pool.left_out(&judged.inputs, self.chain.room(), now_ms);
            if let Some((what, alone)) = left_out.into_iter().find(|(_, alone)| self.chain.has_room(&judged, alone)) {
                // The leader may not know it.
                alone.requests.iter().for_each(|request| self.relay.pass_on(request));
                return Err(Fault::LeftOut(what));
            }
        }
        Ok(judged)
    }
}

fn group_bytes(inputs: &Inputs) -> usize {
    let length = |group: &VerifiedGroup| borsh::object_length(group.decision()).unwrap_or(usize::MAX);
    inputs.groups.iter().map(length).fold(0, usize::saturating_add)
}
