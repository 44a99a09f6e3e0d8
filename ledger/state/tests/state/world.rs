//! Clusters with all their keys, and the queues between them.

use std::collections::{BTreeMap, HashSet, VecDeque};

use borsh::BorshDeserialize;
use fastpay_core::{AccountId, Amount, Asset, Balance, Digest, Ed25519Signature};
use fastpay_ledger_state::{Executed, FoldError, Moment, State, overdrafts};
use fastpay_ledger_statement::{
    Action, Answer, Bond, ClusterId, CommitteeEvent, CommitteeNumber, CompactDecision, Cursor, FoundedCommittee,
    Genesis, Group, Header, Height, Instruction, Issue, Layout, MemberIndex, MemberKey, MemberKeys, Message, Namespace,
    Outcome, Outputs, Partition, QuorumCertificate, Receiver, Rejection, Request, SafetyParameters, StateKey,
    StatementVerifier, Time, VerifiedGroup, VerifiedRequest, VoteKind, VoteStatement, payload_digest,
};

use crate::people::{Client, GUARDIAN, address, client, committee};

pub const COMMITTEE: CommitteeNumber = CommitteeNumber(7);
/// A second one, of the same members.
pub const OTHER_COMMITTEE: CommitteeNumber = CommitteeNumber(8);
pub const SETTLEMENT: ClusterId = ClusterId(100);
pub const COORDINATOR: ClusterId = ClusterId(200);
/// What every client's reserve has at first.
pub const ISSUED_EACH: u128 = 1_000;
pub const CLIENTS: u8 = 6;
/// Of both committees.
pub const PARAMETERS: SafetyParameters = SafetyParameters {
    votes_validity_ms: 2 * WINDOW_MS,
    unlock_window_ms: WINDOW_MS,
    endorsed_delay_ms: 30_000,
    announced_delay_ms: 60_000,
    lapse_ms: 60_000,
    unlock_bond: Bond { asset: Asset::ETHER, amount: BOND },
};
pub const WINDOW_MS: u64 = 120_000;
pub const BOND: Amount = Amount(10);
/// When every world begins. A height takes [`STEP_MS`].
pub const BEGIN: Time = Time(1_000_000);
pub const STEP_MS: u64 = 100;

pub struct Cluster {
    pub layout: Layout,
    keys: Vec<MemberKeys>,
    pub state: State,
    pub moment: Moment,
    parent: Digest,
    /// What each receiver has been sent, all of it.
    pub sent: BTreeMap<Receiver, Vec<CompactDecision>>,
    /// What was executed at each height, and the state's root then.
    pub log: Vec<(Moment, Vec<VerifiedGroup>, Vec<VerifiedRequest>, Digest)>,
    pub waiting: VecDeque<VerifiedRequest>,
}

pub struct World {
    pub clusters: BTreeMap<ClusterId, Cluster>,
    pub clients: Vec<Client>,
    pub answers: BTreeMap<Digest, Result<Outcome, Rejection>>,
    verifier: StatementVerifier,
}

fn member_keys(cluster: ClusterId) -> Vec<MemberKeys> {
    let seed = |member: u8| {
        let mut seed = [member; 32];
        seed[..4].copy_from_slice(&cluster.0.to_be_bytes());
        seed
    };
    let mut keys: Vec<_> = (0..4).map(|member| MemberKeys::from_seed(seed(member))).collect();
    keys.sort_by_key(MemberKeys::public);
    keys
}

pub fn namespace(name: &str) -> Namespace {
    Namespace::new(name.into()).unwrap()
}

/// Shards 1, 2, …; a settlement cluster, which is the first shard where there is one shard only; and a coordinator.
pub fn genesis(shards: u32) -> Genesis {
    let settlement = if shards == 1 { ClusterId(1) } else { SETTLEMENT };
    let clusters: Vec<_> = (1..=shards).map(ClusterId).chain([settlement, COORDINATOR]).collect();
    let public = |cluster| member_keys(cluster).iter().map(MemberKeys::public).collect::<Vec<MemberKey>>();
    let issue = |at| Issue { owner: client(at).account(), asset: Asset::ETHER, amount: Amount(ISSUED_EACH) };
    Genesis {
        clusters: clusters.into_iter().map(|cluster| (cluster, public(cluster))).collect(),
        partition: Partition {
            settlement,
            first_shard: ClusterId(1),
            other_shards: (2..=shards).map(ClusterId).collect(),
        },
        namespaces: [(namespace("first"), client(0).account()), (namespace("second"), client(1).account())].into(),
        committees: [COMMITTEE, OTHER_COMMITTEE].map(|number| (number, founded(PARAMETERS))).into(),
        issued: (0..CLIENTS).map(issue).collect(),
    }
}

/// A committee as every world founds it, with other parameters.
pub fn founded(parameters: SafetyParameters) -> FoundedCommittee {
    FoundedCommittee { first: committee(0), guardian: address(GUARDIAN), parameters }
}

impl World {
    pub fn new(shards: u32) -> Self {
        Self::of(genesis(shards))
    }

    pub fn of(genesis: Genesis) -> Self {
        let cluster = |us: ClusterId| {
            let layout = Layout::new(genesis.clone(), us).unwrap();
            let state = State::genesis(&layout);
            let moment = Moment { height: Height(0), time: BEGIN };
            let (sent, log, waiting) = Default::default();
            (us, Cluster { layout, keys: member_keys(us), state, moment, parent: Digest::ZERO, sent, log, waiting })
        };
        let clusters = genesis.clusters.keys().map(|us| cluster(*us)).collect();
        let clients = (0..CLIENTS).map(Client::new).collect();
        Self { clusters, clients, answers: BTreeMap::new(), verifier: StatementVerifier::default() }
    }

    /// The genesis as the coordinator sees it.
    pub fn layout(&self) -> &Layout {
        &self.clusters[&COORDINATOR].layout
    }

    pub fn partition(&self) -> &Partition {
        &self.layout().genesis().partition
    }

    pub fn settlement(&self) -> ClusterId {
        self.partition().settlement
    }

    /// Where an action of this signer is executed.
    pub fn home(&self, signer: &AccountId, action: &Action) -> ClusterId {
        match action {
            Action::Write { namespace, key, .. } => self.partition().of_value(namespace, key),
            Action::Open | Action::Transfer { .. } | Action::Fund { .. } | Action::RequestUnlock(_) => {
                self.partition().of_reserve(signer)
            }
            _ => self.settlement(),
        }
    }

    /// Signs an action with the client's next number at its home.
    pub fn sign(&mut self, client: usize, action: Action) -> Request {
        let signer = self.clients[client].key.account();
        let shard = self.home(&signer, &action);
        let sequence = self.next(client, shard);
        let deployment = self.layout().deployment();
        let instruction = Instruction { deployment, shard, signer, sequence, action };
        Request::Instruct(Box::new(instruction.signed(&self.clients[client].key)))
    }

    /// The client's next number at a cluster, as its state has it.
    pub fn next(&self, client: usize, shard: ClusterId) -> fastpay_core::SequenceNumber {
        self.read(shard, &StateKey::Sequence(self.clients[client].key.account())).unwrap_or_default()
    }

    pub fn submit(&mut self, to: ClusterId, request: Request) -> Digest {
        let verified = request.verify(self.layout().deployment()).unwrap();
        let digest = verified.digest();
        self.clusters.get_mut(&to).unwrap().waiting.push_back(verified);
        digest
    }

    /// Signs, sends by the coordinator, and runs until the answer is there.
    pub fn act(&mut self, client: usize, action: Action) -> Result<Outcome, Rejection> {
        let request = self.sign(client, action);
        self.ask(COORDINATOR, request)
    }

    /// The time of the settlement cluster's newest height.
    pub fn now(&self) -> Time {
        self.clusters[&self.settlement()].moment.time
    }

    /// The time of every cluster's newest height is `time` at least. The next one is a step later.
    pub fn wait_until(&mut self, time: Time) {
        self.clusters.values_mut().for_each(|cluster| cluster.moment.time = cluster.moment.time.max(time));
    }

    /// An action at the settlement cluster, in the height of exactly `time`. No other cluster does anything.
    pub fn settle_at(&mut self, time: Time, client: usize, action: Action) -> Result<Outcome, Rejection> {
        let settlement = self.settlement();
        let request = self.sign(client, action).verify(self.layout().deployment()).unwrap();
        self.clusters.get_mut(&settlement).unwrap().moment.time = Time(time.0 - STEP_MS);
        self.decide(settlement, vec![], vec![request.clone()]).unwrap();
        self.answers.remove(&request.digest()).unwrap()
    }

    pub fn ask(&mut self, to: ClusterId, request: Request) -> Result<Outcome, Rejection> {
        let digest = self.submit(to, request);
        self.answers.remove(&digest);
        self.run();
        self.answers.remove(&digest).expect("an answer")
    }

    /// Steps all clusters until nothing is between them.
    pub fn run(&mut self) {
        for _ in 0..4 {
            for cluster in self.clusters.keys().copied().collect::<Vec<_>>() {
                self.step(cluster, usize::MAX, usize::MAX);
            }
        }
    }

    /// One height of a cluster, with at most so many groups of each other cluster and so many requests.
    pub fn step(&mut self, us: ClusterId, groups_max: usize, requests_max: usize) {
        let groups = self.due(us, groups_max);
        let cluster = self.clusters.get_mut(&us).unwrap();
        let count = requests_max.min(cluster.waiting.len());
        // An honest leader proposes a request once.
        let mut digests = HashSet::new();
        let is_first = |request: &VerifiedRequest| digests.insert(request.digest());
        let requests: Vec<_> = cluster.waiting.drain(..count).filter(is_first).collect();
        self.decide(us, groups, requests).unwrap();
    }

    /// Opens what other clusters have for this one.
    pub fn due(&mut self, us: ClusterId, max: usize) -> Vec<VerifiedGroup> {
        let mut groups = vec![];
        for (from, other) in &self.clusters {
            let mut cursor = self.clusters[&us].state.due_from(*from);
            let from = other.sent.get(&Receiver::Cluster(us)).map_or(&[][..], Vec::as_slice);
            for decision in from.iter().skip(usize::try_from(cursor.next).unwrap() - 1).take(max) {
                let members = self.clusters[&us].layout.members(decision.header.cluster).unwrap();
                let batch = vec![(decision.clone(), members, cursor)];
                let opened = self.verifier.open(Receiver::Cluster(us), batch, &mut rand::rng()).remove(0).unwrap();
                cursor = opened.cursor();
                groups.push(opened);
            }
        }
        groups
    }

    /// Executes, certifies and publishes a height.
    pub fn decide(
        &mut self,
        us: ClusterId,
        groups: Vec<VerifiedGroup>,
        requests: Vec<VerifiedRequest>,
    ) -> Result<(), FoldError> {
        let cluster = self.clusters.get_mut(&us).unwrap();
        let Moment { height, time } = cluster.moment;
        let moment = Moment { height: height.next().unwrap(), time: Time(time.0 + STEP_MS) };
        let Executed { state, outputs } = cluster.state.execute(&cluster.layout, moment, &groups, &requests)?;
        cluster.log.push((moment, groups, requests, state.root()));
        (cluster.state, cluster.moment) = (state, moment);
        cluster.publish(&outputs);
        for group in outputs.groups() {
            for message in &group.messages {
                if let (Receiver::Clients, Message::Answer(Answer { request, result })) = (group.to, message) {
                    self.answers.insert(*request, result.clone());
                }
            }
        }
        Ok(())
    }

    pub fn read<T: BorshDeserialize>(&self, cluster: ClusterId, key: &StateKey) -> Option<T> {
        self.clusters[&cluster].state.read(key).map(|value| borsh::from_slice(value).unwrap())
    }

    pub fn reserve(&self, owner: AccountId) -> u128 {
        let shard = self.partition().of_reserve(&owner);
        self.read(shard, &StateKey::Reserve(owner, Asset::ETHER)).map_or(0, |balance: Balance| balance.spendable().0)
    }

    pub fn omnibus(&self) -> u128 {
        let key = StateKey::Omnibus(COMMITTEE, Asset::ETHER);
        self.read(self.settlement(), &key).map_or(0, |balance: Balance| balance.spendable().0)
    }

    /// All events that the committee has been sent, with the groups checked to be without gap.
    pub fn events(&mut self) -> Vec<CommitteeEvent> {
        let settlement = &self.clusters[&self.settlement()];
        let to = Receiver::Committee(COMMITTEE);
        let (mut events, mut cursor) = (vec![], Cursor::default());
        for decision in settlement.sent.get(&to).into_iter().flatten() {
            let members = settlement.layout.members(decision.header.cluster).unwrap();
            let batch = vec![(decision.clone(), members, cursor)];
            let opened = self.verifier.open(to, batch, &mut rand::rng()).remove(0).unwrap();
            cursor = opened.cursor();
            events.extend(opened.group().messages.iter().map(|message| match message {
                Message::Event(event) => event.clone(),
                other => panic!("not for a committee: {other:?}"),
            }));
        }
        events
    }

    /// What exists, by the books of all clusters, whether or not something is between them.
    pub fn total(&self) -> Balance {
        self.clusters.values().fold(Balance::ZERO, |sum, cluster| {
            let holdings = cluster.state.holdings().remove(&Asset::ETHER).unwrap_or_default();
            sum.plus(holdings.share())
        })
    }

    /// Pairs of clusters of which the second has taken more from the first than that has sent.
    pub fn overdrawn(&self) -> Vec<(ClusterId, ClusterId)> {
        let states = self.clusters.iter().map(|(number, cluster)| (*number, cluster.state.clone())).collect();
        overdrafts(&states).iter().map(|overdraft| (overdraft.from, overdraft.to)).collect()
    }

    pub fn issued(&self) -> Balance {
        self.layout().issued(Asset::ETHER).into()
    }
}

impl Cluster {
    /// Certifies outputs at the current height, and queues them for their receivers.
    pub fn publish(&mut self, outputs: &Outputs) {
        let header = Header {
            deployment: self.layout.deployment(),
            cluster: self.layout.us(),
            height: self.moment.height,
            time: self.moment.time,
            parent: self.parent,
            inputs: payload_digest(b""),
            state: self.state.root(),
            outputs: outputs.root(),
            maker: MemberIndex(0),
            signature: Ed25519Signature([0; 64]),
        }
        .signed(&self.keys[0]);
        self.parent = header.id();
        let certificate = self.certify(&header);
        for group in outputs.groups() {
            let decision = CompactDecision::of(&header, outputs, &certificate, group.to).unwrap();
            self.sent.entry(group.to).or_default().push(decision);
        }
    }

    fn certify(&self, header: &Header) -> QuorumCertificate {
        let Header { deployment, cluster, height, .. } = *header;
        let (kind, value) = (VoteKind::Precommit, Some(header.id()));
        let digest = VoteStatement { deployment, cluster, height, round: 0, kind, value }.digest();
        let votes: Vec<_> = self.keys[..3].iter().map(|key| (key.public(), key.sign(digest))).collect();
        QuorumCertificate::of_votes(self.layout.members(cluster).unwrap(), 0, &votes).unwrap()
    }

    /// What a quorum of traitors certifies next for a receiver.
    pub fn forge(&mut self, to: Receiver, messages: Vec<Message>) {
        let before = self.sent.get(&to).and_then(|sent| sent.last()).map(|decision| decision.group.head());
        let previous = before.map_or(Digest::ZERO, |head| head.digest(self.layout.deployment(), self.layout.us()));
        let number = before.map_or(0, |head| head.number) + 1;
        let group = Group { to, number, previous, messages };
        let outputs = Outputs::new(self.layout.deployment(), self.layout.us(), vec![group]).unwrap();
        self.publish(&outputs);
    }
}
