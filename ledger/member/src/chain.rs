//! The decided heights as one fold: what the next height may be, and what comes of it. No I/O and no clock.
//!
//! A member executes each proposal before it votes, and votes only for the header that comes out here too.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastpay_core::{Digest, DigestVerifier};
use fastpay_ledger_state::{Executed, FoldError, Moment, State};
use fastpay_ledger_statement::{
    CertificateError, ClusterId, CompactDecision, Cursor, DecodeError, Header, HeaderError, Height, Layout,
    MemberIndex, MemberKey, MemberKeys, Members, OpenError, QuorumCertificate, Receiver, Request, RequestError,
    StatementVerifier, Time, VerifiedGroup, VerifiedRequest, Wire,
};

use crate::payload::Payload;
use crate::pool::{Inputs, LeftOut, Pool};
use crate::room::Room;
use crate::store::{Checkpoint, Proposed};

/// A leader stays for at most so many heights [LEDGER 2]. While it lives, a change costs nothing.
pub const LEADER_HEIGHTS_MAX: u64 = 64;

/// The newest decided height.
#[derive(Clone, Debug)]
struct Head {
    header: Header,
    certificate: QuorumCertificate,
}

/// A cluster's decided heights.
#[derive(Debug)]
pub struct Chain {
    layout: Layout,
    members: Members,
    state: State,
    head: Option<Head>,
    statements: StatementVerifier,
    makers: DigestVerifier,
}

/// A valid successor of the newest height, with what comes of it.
#[derive(Debug)]
pub struct Judged {
    /// The header.
    pub header: Header,
    /// What its payload has.
    pub inputs: Inputs,
    /// Its outcome.
    pub executed: Executed,
}

impl Chain {
    /// The chain of the layout's own cluster, before its first height. `None` if the layout has no such cluster.
    #[must_use]
    pub fn new(layout: Layout) -> Option<Self> {
        let members = layout.members(layout.us())?.clone();
        let state = State::genesis(&layout);
        let makers = DigestVerifier::new(members.keys().len());
        Some(Self { layout, members, state, head: None, statements: StatementVerifier::default(), makers })
    }

    /// Goes on from a checkpoint.
    ///
    /// # Errors
    /// If no quorum certified it.
    pub fn restore(&mut self, checkpoint: Checkpoint) -> Result<(), CertificateError> {
        let Checkpoint { header, certificate, state } = checkpoint;
        self.statements.check(&header, &certificate, &self.members, &mut rand::rng())?;
        self.head = Some(Head { header, certificate });
        self.state = state;
        Ok(())
    }

    /// The layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The members of this cluster.
    #[must_use]
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// The state after the newest height.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The newest height; 0 before the first.
    #[must_use]
    pub fn height(&self) -> u64 {
        self.head.as_ref().map_or(0, |head| head.header.height.0)
    }

    /// The newest header and its certificate.
    #[must_use]
    pub fn head(&self) -> Option<(&Header, &QuorumCertificate)> {
        self.head.as_ref().map(|head| (&head.header, &head.certificate))
    }

    /// The newest height as a checkpoint.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let Head { header, certificate } = self.head.clone()?;
        Some(Checkpoint { header, certificate, state: self.state.clone() })
    }

    /// The members in the order in which they lead the next height's rounds. Its maker before leads again, until it has
    /// led as many heights as it may.
    #[must_use]
    pub fn leaders(&self) -> Vec<MemberKey> {
        let keys = self.members.keys();
        let first = self.head.as_ref().map_or(0, |head| {
            let changes = head.header.height.0.is_multiple_of(LEADER_HEIGHTS_MAX);
            usize::from(head.header.maker.0).saturating_add(usize::from(changes))
        });
        keys.iter().cycle().skip(first).take(keys.len()).copied().collect()
    }

    /// The member that leads the next height's first round.
    #[must_use]
    pub fn leader(&self) -> MemberKey {
        self.leaders().first().copied().expect("a cluster has members")
    }

    /// Executes what this member proposes as the next height.
    ///
    /// # Errors
    /// See [`FoldError`]: propose less.
    pub fn make(&self, keys: &MemberKeys, now: Time, inputs: Inputs) -> Result<(Proposed, Judged), FoldError> {
        let moment = self.next_moment(now);
        let executed = self.state.execute(&self.layout, moment, &inputs.groups, &inputs.requests)?;
        let payload = Payload {
            decisions: inputs.groups.iter().map(|group| group.decision().clone()).collect(),
            requests: inputs.requests.iter().map(VerifiedRequest::shared).collect(),
        };
        let encoded = payload.encode();
        let header = Header {
            deployment: self.layout.deployment(),
            cluster: self.layout.us(),
            height: moment.height,
            time: moment.time,
            parent: self.head.as_ref().map_or(Digest::ZERO, |head| head.header.id()),
            inputs: fastpay_ledger_statement::payload_digest(&encoded),
            state: executed.state.root(),
            outputs: executed.outputs.root(),
            maker: self.members.index(&keys.public()).unwrap_or(MemberIndex(u8::MAX)),
            signature: fastpay_core::Ed25519Signature([0; 64]),
        };
        let header = header.signed(keys);
        let proposed = Proposed::new(header, encoded).expect("the header names this payload");
        Ok((proposed, Judged { header, inputs, executed }))
    }

    /// Time goes on by at least a millisecond, also where the clock stands still or went back.
    fn next_moment(&self, now: Time) -> Moment {
        let height = Height(self.height().saturating_add(1));
        let after = self.head.as_ref().map_or(0, |head| head.header.time.0);
        Moment { height, time: Time(now.0.max(after.saturating_add(1))) }
    }

    /// Checks that a header with its payload can be the next height, and executes it. What the pool has was checked before.
    ///
    /// # Errors
    /// See [`Fault`].
    pub fn judge(&mut self, proposed: &Proposed, pool: &Pool) -> Result<Judged, Fault> {
        let header = *proposed.header();
        header.check_follows(self.head.as_ref().map(|head| &head.header))?;
        header.check_made(&self.members, &mut self.makers, &mut rand::rng())?;
        let payload = Payload::decode(proposed.payload())?;
        let groups = self.open(payload.decisions, pool)?;
        let requests = self.verify(payload.requests, pool)?;
        let moment = Moment { height: header.height, time: header.time };
        let executed = self.state.execute(&self.layout, moment, &groups, &requests)?;
        if executed.state.root() != header.state {
            return Err(Fault::OtherState);
        }
        if executed.outputs.root() != header.outputs {
            return Err(Fault::OtherOutputs);
        }
        Ok(Judged { header, inputs: Inputs { groups, requests }, executed })
    }

    /// The room for requests in the next proposal.
    #[must_use]
    pub fn room(&self) -> Room {
        Room::after(&self.state, &self.layout)
    }

    /// Whether a valid successor would be valid with this added.
    #[must_use]
    pub fn has_room(&self, judged: &Judged, added: &Inputs) -> bool {
        let moment = Moment { height: judged.header.height, time: judged.header.time };
        let groups = [&*judged.inputs.groups, &*added.groups].concat();
        let requests = [&*judged.inputs.requests, &*added.requests].concat();
        self.state.execute(&self.layout, moment, &groups, &requests).is_ok()
    }

    fn open(&mut self, decisions: Vec<Arc<CompactDecision>>, pool: &Pool) -> Result<Vec<VerifiedGroup>, Fault> {
        let mut due: BTreeMap<ClusterId, Cursor> = BTreeMap::new();
        let mut batch = Vec::with_capacity(decisions.len());
        let mut opened: Vec<Option<VerifiedGroup>> = Vec::with_capacity(decisions.len());
        for decision in decisions {
            let from = decision.header.cluster;
            let members = self.layout.members(from).filter(|_| from != self.layout.us());
            let members = members.ok_or(Fault::UnknownCluster(from))?;
            let cursor = due.entry(from).or_insert_with(|| self.state.due_from(from));
            let taken = *cursor;
            let known = pool.known_group(&decision).filter(|known| known.is_due(taken)).cloned();
            if known.as_ref().is_some_and(|known| known.decision().certificate != decision.certificate) {
                let checked = self.statements.check(&decision.header, &decision.certificate, members, &mut rand::rng());
                checked.map_err(OpenError::Certificate)?;
            }
            let after = || {
                let previous = decision.group.head().digest(self.layout.deployment(), from);
                Cursor { next: taken.next.saturating_add(1), previous }
            };
            *cursor = known.as_ref().map_or_else(after, VerifiedGroup::cursor);
            if known.is_none() {
                batch.push((decision, members, taken));
            }
            opened.push(known);
        }
        let receiver = Receiver::Cluster(self.layout.us());
        let mut others = self.statements.open(receiver, batch, &mut rand::rng()).into_iter();
        let next = |known: Option<VerifiedGroup>| known.map(Ok).or_else(|| others.next());
        Ok(opened.into_iter().filter_map(next).collect::<Result<_, _>>()?)
    }

    fn verify(&mut self, requests: Vec<Arc<Request>>, pool: &Pool) -> Result<Vec<VerifiedRequest>, Fault> {
        let known: Vec<Option<VerifiedRequest>> =
            requests.iter().map(|request| pool.known_request(request).cloned()).collect();
        let unknown = requests.into_iter().zip(&known).filter(|(_, known)| known.is_none());
        let unknown = unknown.map(|(request, _)| request).collect();
        let mut others = self.statements.verify(unknown, self.layout.deployment(), &mut rand::rng()).into_iter();
        let next = |known: Option<VerifiedRequest>| known.map(Ok).or_else(|| others.next());
        Ok(known.into_iter().filter_map(next).collect::<Result<_, _>>()?)
    }

    /// Goes on to a decided height.
    pub fn advance(&mut self, judged: Judged, certificate: QuorumCertificate) {
        self.state = judged.executed.state;
        self.head = Some(Head { header: judged.header, certificate });
    }
}

/// Why a header cannot be the next height.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The header itself.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The payload is none.
    #[error("the payload: {0}")]
    Payload(#[from] DecodeError),
    /// A group is of no other cluster.
    #[error("a group is of cluster {0}, which is not another cluster of this ledger")]
    UnknownCluster(ClusterId),
    /// A group does not hold.
    #[error("a group: {0}")]
    Group(#[from] OpenError),
    /// A request does not hold.
    #[error("a request: {0}")]
    Request(#[from] RequestError),
    /// The payload cannot be executed.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The leader lies about the state.
    #[error("the inputs lead to another state than the header names")]
    OtherState,
    /// The leader lies about messages.
    #[error("the inputs lead to other messages than the header names")]
    OtherOutputs,
    /// The proposer of a new header is another member.
    #[error("member {0} made the header, and another one proposes it as new")]
    OtherMaker(MemberIndex),
    /// The leader keeps something out [LEDGER 2].
    #[error("the proposal leaves out {0}, which this member has known for too long")]
    LeftOut(LeftOut),
}

/// A cluster in this process, for tests.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use fastpay_core::{AccountId, AccountKey, SequenceNumber};
    use fastpay_ledger_statement::{
        Action, Condition, Genesis, Get, Instruction, KEY_BYTES_MAX, Key, Namespace, Partition, Value, VoteKind,
        VoteStatement,
    };

    pub(crate) const NOW: Time = Time(1_000_000);

    /// The keys of a cluster's members, in the order of their public sides.
    pub(crate) fn keys_of(cluster: ClusterId) -> Vec<MemberKeys> {
        let first = u8::try_from(cluster.0).unwrap() * 10;
        let mut keys: Vec<_> = (first..first + 4).map(|seed| MemberKeys::from_seed([seed; 32])).collect();
        keys.sort_by_key(MemberKeys::public);
        keys
    }

    /// The keys of cluster 1.
    pub(crate) fn keys() -> Vec<MemberKeys> {
        keys_of(ClusterId(1))
    }

    pub(crate) fn writer() -> AccountKey {
        AccountKey::ed25519([9; 32])
    }

    /// Cluster 1 keeps everything, with one namespace. Cluster 2 passes requests on.
    pub(crate) fn chain_of(us: ClusterId) -> Chain {
        let public = |cluster| keys_of(cluster).iter().map(MemberKeys::public).collect();
        let (first, second) = (ClusterId(1), ClusterId(2));
        let genesis = Genesis {
            clusters: BTreeMap::from([(first, public(first)), (second, public(second))]),
            partition: Partition { settlement: first, first_shard: first, other_shards: Vec::new() },
            namespaces: BTreeMap::from([(Namespace::new("prices".to_owned()).unwrap(), writer().account())]),
            committees: BTreeMap::new(),
            issued: Vec::new(),
        };
        Chain::new(Layout::new(genesis, us).unwrap()).unwrap()
    }

    /// The chain of cluster 1.
    pub(crate) fn chain() -> Chain {
        chain_of(ClusterId(1))
    }

    /// What cluster 2 has for cluster 1: a group for each of the writer's first `count` writes.
    pub(crate) fn decisions_of_coordinator(count: u64) -> Vec<CompactDecision> {
        let mut chain = chain_of(ClusterId(2));
        let keys = keys_of(ClusterId(2));
        let decide = |sequence| {
            let inputs = Inputs { groups: Vec::new(), requests: vec![write(&chain, sequence)] };
            let (_, judged) = chain.make(&keys[0], NOW, inputs).unwrap();
            let (header, certificate) = (judged.header, certify(&judged.header));
            let to = Receiver::Cluster(ClusterId(1));
            let decision = CompactDecision::of(&header, &judged.executed.outputs, &certificate, to).unwrap();
            chain.advance(judged, certificate);
            decision
        };
        (0..count).map(decide).collect()
    }

    /// These groups of cluster 2, checked.
    pub(crate) fn opened(decisions: Vec<CompactDecision>) -> Vec<VerifiedGroup> {
        chain().open(decisions.into_iter().map(Arc::new).collect(), &Pool::default()).unwrap()
    }

    /// The writer's write with this number.
    pub(crate) fn write(chain: &Chain, sequence: u64) -> VerifiedRequest {
        write_by(chain, &writer(), sequence)
    }

    /// A write that somebody signs.
    pub(crate) fn write_by(chain: &Chain, by: &AccountKey, sequence: u64) -> VerifiedRequest {
        write_of(chain, by, sequence, 4)
    }

    /// A write of so many bytes.
    pub(crate) fn write_of(chain: &Chain, by: &AccountKey, sequence: u64, bytes: usize) -> VerifiedRequest {
        let action = Action::Write {
            namespace: Namespace::new("prices".to_owned()).unwrap(),
            key: Key::new(b"gold".to_vec()).unwrap(),
            condition: Condition::Always,
            value: Value::new(vec![7; bytes]),
        };
        let deployment = chain.layout().deployment();
        let signer: AccountId = by.account();
        let (shard, sequence) = (ClusterId(1), SequenceNumber(sequence));
        let instruction = Instruction { deployment, shard, signer, sequence, action };
        Request::Instruct(Box::new(instruction.signed(by))).verify(deployment).unwrap()
    }

    /// A read.
    pub(crate) fn get(nonce: u64) -> VerifiedRequest {
        get_of(b"gold", nonce)
    }

    /// A read of the longest key.
    pub(crate) fn long_get(nonce: u64) -> VerifiedRequest {
        get_of(&[7; KEY_BYTES_MAX], nonce)
    }

    fn get_of(key: &[u8], nonce: u64) -> VerifiedRequest {
        let namespace = Namespace::new("prices".to_owned()).unwrap();
        let get = Get { namespace, key: Key::new(key.to_vec()).unwrap(), nonce };
        Request::Get(get).verify(chain().layout().deployment()).unwrap()
    }

    pub(crate) fn certify(header: &Header) -> QuorumCertificate {
        let Header { deployment, cluster, height, .. } = *header;
        let value = Some(header.id());
        let vote = VoteStatement { deployment, cluster, height, round: 0, kind: VoteKind::Precommit, value };
        let votes = (0..3).zip(keys_of(cluster)).map(|(member, keys)| (MemberIndex(member), keys.sign(vote.digest())));
        QuorumCertificate { round: 0, votes: votes.collect() }
    }

    /// Decides a height that member `maker` makes.
    pub(crate) fn decide(chain: &mut Chain, maker: usize, requests: Vec<VerifiedRequest>) -> Proposed {
        let inputs = Inputs { groups: Vec::new(), requests };
        let (proposed, judged) = chain.make(&keys()[maker], NOW, inputs).unwrap();
        chain.advance(judged, certify(proposed.header()));
        proposed
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{NOW, certify, chain, decide, keys, write};
    use super::*;

    #[test]
    fn what_one_member_makes_the_others_find_too() {
        let (mut maker, mut judge) = (chain(), chain());
        for sequence in 0..3 {
            let request = write(&maker, sequence);
            let proposed = decide(&mut maker, 0, vec![request]);
            let judged = judge.judge(&proposed, &Pool::default()).unwrap();
            judge.advance(judged, certify(proposed.header()));
            assert_eq!(judge.state().root(), maker.state().root());
        }
        assert_eq!(judge.height(), 3);
    }

    /// The maker signs each altered header anew, so the signature is not what gives it away.
    #[test]
    fn a_header_that_does_not_come_out_of_its_inputs_is_refused() {
        let mut chain = chain();
        let request = write(&chain, 0);
        decide(&mut chain, 0, vec![request]);
        let inputs = Inputs { groups: Vec::new(), requests: vec![write(&chain, 1)] };
        let (proposed, _) = chain.make(&keys()[1], NOW, inputs).unwrap();
        chain.judge(&proposed, &Pool::default()).unwrap();
        let mut refuse = |alter: &dyn Fn(&mut Header)| {
            let mut header = *proposed.header();
            alter(&mut header);
            let header = header.signed(&keys()[1]);
            chain.judge(&Proposed::new(header, proposed.payload().to_vec()).unwrap(), &Pool::default()).unwrap_err()
        };
        let other = Digest::repeat_byte(1);
        assert!(matches!(refuse(&|header| header.state = other), Fault::OtherState));
        assert!(matches!(refuse(&|header| header.outputs = other), Fault::OtherOutputs));
        assert!(matches!(refuse(&|header| header.parent = other), Fault::Header(HeaderError::Parent)));
        assert!(matches!(refuse(&|header| header.height.0 = 3), Fault::Header(HeaderError::Height { .. })));
        let before = refuse(&|header| header.time = NOW);
        assert!(matches!(before, Fault::Header(HeaderError::TimeNotAfterParent { .. })), "{before}");
        assert!(matches!(refuse(&|header| header.maker.0 = 2), Fault::Header(HeaderError::NotByMaker(_))));
        assert!(matches!(refuse(&|header| header.cluster.0 = 2), Fault::Header(HeaderError::OtherCluster { .. })));
        assert!(matches!(
            refuse(&|header| header.deployment = fastpay_ledger_statement::Deployment(Digest::ZERO)),
            Fault::Header(HeaderError::OtherDeployment(_))
        ));
    }

    #[test]
    fn a_payload_that_is_none_or_repeats_a_request_is_refused() {
        let mut chain = chain();
        let (proposed, _) = chain.make(&keys()[0], NOW, Inputs::default()).unwrap();
        let request = write(&chain, 0).shared();
        let twice = Payload { decisions: Vec::new(), requests: vec![request.clone(), request] }.encode();
        for (payload, what) in [(b"none".to_vec(), "the payload"), (twice, "twice")] {
            let mut header = *proposed.header();
            header.inputs = fastpay_ledger_statement::payload_digest(&payload);
            let altered = Proposed::new(header.signed(&keys()[0]), payload).unwrap();
            let fault = chain.judge(&altered, &Pool::default()).unwrap_err().to_string();
            assert!(fault.contains(what), "{fault}");
        }
    }

    #[test]
    fn groups_of_another_cluster_are_taken_once_in_order_and_as_they_are() {
        let mut chain = chain();
        let decisions = testing::decisions_of_coordinator(3);
        let (proposed, _) = chain.make(&keys()[0], NOW, Inputs::default()).unwrap();
        let judge = |chain: &mut Chain, decisions: Vec<CompactDecision>| {
            let decisions = decisions.into_iter().map(Arc::new).collect();
            let payload = Payload { decisions, requests: Vec::new() }.encode();
            let mut header = *proposed.header();
            header.inputs = fastpay_ledger_statement::payload_digest(&payload);
            chain.judge(&Proposed::new(header.signed(&keys()[0]), payload).unwrap(), &Pool::default()).unwrap_err()
        };
        // What holds leads to another state than this header's.
        assert!(matches!(judge(&mut chain, decisions.clone()), Fault::OtherState));
        let with = |alter: &dyn Fn(&mut CompactDecision)| {
            let mut altered = decisions.clone();
            alter(&mut altered[1]);
            altered
        };
        for bad in [
            with(&|decision| decision.group.messages.clear()),
            with(&|decision| decision.group.messages.extend(decision.group.messages.clone())),
            with(&|decision| decision.group.number = 3),
            with(&|decision| decision.header.state = Digest::repeat_byte(7)),
            with(&|decision| decision.certificate.round = 1),
            with(&|decision| decision.certificate = certify(&Header { cluster: ClusterId(1), ..decision.header })),
            with(&|decision| decision.certificate.votes.truncate(2)),
            with(&|decision| *decision = decisions[0].clone()),
            decisions[1..].to_vec(),
        ] {
            let fault = judge(&mut chain, bad);
            assert!(matches!(fault, Fault::Group(_)), "{fault}");
        }
        let own = with(&|decision| decision.header.cluster = ClusterId(1));
        assert!(matches!(judge(&mut chain, own), Fault::UnknownCluster(ClusterId(1))));

        let inputs = Inputs { groups: testing::opened(decisions.clone()), requests: Vec::new() };
        let (taken, judged) = chain.make(&keys()[0], NOW, inputs).unwrap();
        assert_eq!(chain.judge(&taken, &Pool::default()).unwrap().executed.state.root(), judged.executed.state.root());
        chain.advance(judged, certify(taken.header()));
        let decisions = decisions.into_iter().map(Arc::new).collect();
        let again = Payload { decisions, requests: Vec::new() }.encode();
        let (next, _) = chain.make(&keys()[0], NOW, Inputs::default()).unwrap();
        let mut header = *next.header();
        header.inputs = fastpay_ledger_statement::payload_digest(&again);
        let replay =
            chain.judge(&Proposed::new(header.signed(&keys()[0]), again).unwrap(), &Pool::default()).unwrap_err();
        assert!(matches!(replay, Fault::Group(OpenError::AlreadyTaken { .. })), "{replay}");
    }

    #[test]
    fn time_goes_on_whatever_the_clock_says() {
        let mut chain = chain();
        let first = decide(&mut chain, 0, Vec::new());
        let second = decide(&mut chain, 0, Vec::new());
        assert_eq!((first.header().time, second.header().time), (NOW, Time(NOW.0 + 1)));
    }

    #[test]
    fn a_leader_stays_until_its_heights_are_over() {
        let mut chain = chain();
        let keys: Vec<MemberKey> = keys().iter().map(MemberKeys::public).collect();
        assert_eq!(chain.leaders(), keys);
        for height in 1..=LEADER_HEIGHTS_MAX {
            decide(&mut chain, 3, Vec::new());
            let first = if height == LEADER_HEIGHTS_MAX { 0 } else { 3 };
            assert_eq!(chain.leaders()[0], keys[first], "after height {height}");
            assert_eq!(chain.leaders().len(), 4);
        }
    }

    #[test]
    fn a_checkpoint_is_read_back_and_an_altered_one_is_not() {
        let mut chain = chain();
        let request = write(&chain, 0);
        decide(&mut chain, 0, vec![request]);
        let encoded = chain.checkpoint().unwrap().encode();
        let mut restored = testing::chain();
        restored.restore(Checkpoint::decode(&encoded).unwrap()).unwrap();
        assert_eq!((restored.height(), restored.state().root()), (1, chain.state().root()));
        for at in 0..encoded.len() {
            let mut altered = encoded.clone();
            altered[at] ^= 1;
            let accepted = Checkpoint::decode(&altered).is_some_and(|checkpoint| restored.restore(checkpoint).is_ok());
            assert!(!accepted, "byte {at}");
        }
    }
}
