//! A ledger of one cluster for tests: it executes by the real rules, its four members' keys certify every height, and
//! each member is a gRPC server that hands groups over honestly, or as a test says. No engine runs.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Authority, AuthorityKeys, Committee, ContractVote, CouncilStatement, Digest,
    Domain, Ed25519Signature, Epoch, PossessionProof, PrimaryAddress, Redemption, SequenceNumber, VoteSignature,
    sign_council_vote, sign_redemption_vote,
};
use fastpay_ledger_state::{Moment, State};
use fastpay_ledger_statement::{
    Action, Announced, Announcing, AnswerProof, Bond, ClusterId, CommitteeNumber, CompactDecision, Group, Header,
    Height, Instruction, Layout, MemberIndex, MemberKeys, Message, NextCommittee, Outcome, Outputs, QuorumCertificate,
    ReadProof, Receiver, Rejection, Request, SafetyParameters, StateKey, Time, VoteKind, VoteStatement, Wire,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Response, Status};

use crate::Network;
use crate::api::proto::ledger_server::{Ledger, LedgerServer};
use crate::api::proto::{
    DecisionsReply, DecisionsRequest, ReadReply, ReadRequest, RelayReply, RelayRequest, StatePart, StateRequest,
    StatusReply, StatusRequest, SubmitAllReply, SubmitAllRequest, SubmitReply, SubmitRequest,
};
use crate::api::{receiver, state_key};

/// The only cluster: it settles, and keeps all reserves.
pub const CLUSTER: ClusterId = ClusterId(1);
/// The only FastPay committee.
pub const COMMITTEE: CommitteeNumber = CommitteeNumber(0);
/// Of the committee. The unlock window is three days, and an announcement waits for two.
pub const PARAMETERS: SafetyParameters = SafetyParameters {
    votes_validity_ms: 604_800_000,
    unlock_window_ms: 259_200_000,
    endorsed_delay_ms: 86_400_000,
    announced_delay_ms: 172_800_000,
    lapse_ms: 1_209_600_000,
    unlock_bond: Bond { asset: Asset::ETHER, amount: Amount(10) },
};
/// The time between two heights.
const STEP_MS: u64 = 1_000;
const PAUSE: Duration = Duration::from_millis(5);

/// Changes what a member hands over: the groups from a number on.
pub type Lie = Box<dyn Fn(u64, Vec<Vec<u8>>) -> Vec<Vec<u8>> + Send>;

/// The history of a cluster. A clone is another history, which begins with this one.
#[derive(Clone, Debug)]
pub struct History {
    layout: Layout,
    /// In the order of the members.
    keys: Vec<MemberKeys>,
    state: State,
    head: Option<(Header, QuorumCertificate)>,
    time: Time,
    /// For the committee, in order.
    decisions: Vec<CompactDecision>,
    answers: Vec<AnswerProof>,
    /// The round in which the next height is certified, and by whom.
    round: u32,
    voters: [u8; 3],
}

impl History {
    fn new(layout: Layout, keys: Vec<MemberKeys>, time: Time) -> Self {
        let state = State::genesis(&layout);
        let (head, decisions, answers, round) = Default::default();
        Self { layout, keys, state, head, time, decisions, answers, round, voters: [0, 1, 2] }
    }

    /// The domain of the committee.
    #[must_use]
    pub fn domain(&self) -> Domain {
        self.layout.deployment().domain(COMMITTEE)
    }

    /// The time of the newest height.
    #[must_use]
    pub fn time(&self) -> Time {
        self.time
    }

    /// The decisions for the committee.
    #[must_use]
    pub fn decisions(&self) -> &[CompactDecision] {
        &self.decisions
    }

    /// The next heights are certified in this round, by these members.
    pub fn vote(&mut self, round: u32, voters: [u8; 3]) {
        (self.round, self.voters) = (round, voters);
    }

    /// An entry of the newest state.
    #[must_use]
    pub fn read(&self, key: &StateKey) -> Option<Vec<u8>> {
        self.state.read(key).map(<[u8]>::to_vec)
    }

    /// The same, as a member proves it.
    ///
    /// # Panics
    /// Never: the first height is decided.
    #[must_use]
    pub fn prove(&self, key: &StateKey) -> ReadProof {
        let (header, certificate) = self.head.clone().unwrap();
        ReadProof { header, certificate, proof: self.state.prove(key) }
    }

    /// Lets time pass before the next height.
    pub fn wait(&mut self, ms: u64) {
        self.time.0 += ms;
    }

    /// Signs an action with the next number of its signer.
    #[must_use]
    pub fn sign(&self, key: &AccountKey, action: Action) -> Request {
        let (deployment, signer) = (self.layout.deployment(), key.account());
        let next = self.state.read(&StateKey::Sequence(signer)).map(borsh::from_slice::<SequenceNumber>);
        let sequence = next.transpose().unwrap().unwrap_or_default();
        Request::Instruct(Box::new(Instruction { deployment, shard: CLUSTER, signer, sequence, action }.signed(key)))
    }

    /// Has an action carried out at the next height.
    pub fn act(&mut self, key: &AccountKey, action: Action) -> Result<Outcome, Rejection> {
        let request = self.sign(key, action);
        self.decide(&[request]);
        let answer = self.answers.last().unwrap();
        answer.answer.result.clone()
    }

    /// Funds accounts at the next height, each with an amount of the native asset.
    pub fn fund(&mut self, key: &AccountKey, accounts: &[(AccountId, u128)]) {
        let mut requests = Vec::new();
        for (at, (account, amount)) in (0..).zip(accounts) {
            let fund =
                Action::Fund { committee: COMMITTEE, account: *account, asset: Asset::ETHER, amount: Amount(*amount) };
            let Request::Instruct(signed) = self.sign(key, fund) else { unreachable!() };
            let mut instruction = signed.instruction;
            instruction.sequence = SequenceNumber(instruction.sequence.0 + at);
            requests.push(Request::Instruct(Box::new(instruction.signed(key))));
        }
        self.decide(&requests);
    }

    /// Has a redemption paid at the next height that members of the current committee vote for.
    ///
    /// # Errors
    /// The ledger's.
    pub fn redeem(
        &mut self,
        relayer: &AccountKey,
        voters: &[AuthorityKeys],
        epoch: Epoch,
        redemption: &Redemption,
    ) -> Result<Outcome, Rejection> {
        let domain = self.domain();
        let vote = |keys: &AuthorityKeys| {
            let (vote, _) = sign_redemption_vote(keys, &domain, epoch, redemption);
            let VoteSignature::Redemption { signature } = vote.signature else { unreachable!() };
            ContractVote { authority: vote.authority, signature }
        };
        let votes = voters.iter().take(3).map(vote).collect();
        self.act(relayer, Action::Redeem { committee: COMMITTEE, redemption: redemption.clone(), epoch, votes })
    }

    /// Has the next committee announced, and installed once its delay without an endorsement has passed.
    ///
    /// # Errors
    /// The ledger's.
    pub fn rotate(
        &mut self,
        by: &AccountKey,
        now: &[AuthorityKeys],
        (next, keys): (&Committee, &[AuthorityKeys]),
        compromised_since: Epoch,
    ) -> Result<Outcome, Rejection> {
        let id = self.announce(by, now, (next, keys), compromised_since)?;
        self.install(by, keys, id)
    }

    /// Has the next committee announced at the next height, and gives the announcement's id.
    ///
    /// # Errors
    /// The ledger's.
    pub fn announce(
        &mut self,
        by: &AccountKey,
        now: &[AuthorityKeys],
        (next, keys): (&Committee, &[AuthorityKeys]),
        compromised_since: Epoch,
    ) -> Result<Digest, Rejection> {
        let (domain, deadline) = (self.domain(), self.time.0 / 1_000 + 86_400);
        let (guardian, checkpoint) = (PrimaryAddress::ZERO, Digest::ZERO);
        let next = NextCommittee { committee: next.clone(), guardian, compromised_since, checkpoint, deadline };
        let (id, statement) = (next.id(&domain), next.announcement());
        let votes = council_votes(now, &domain, &CouncilStatement::Announcement(&statement));
        let member = |authority: &Authority| keys.iter().find(|keys| keys.public() == *authority).unwrap();
        let prove = |authority| PossessionProof::new(member(authority), &domain).into();
        let proofs = next.committee.members().iter().map(prove).collect();
        self.act(by, Action::Announce(Box::new(Announcing { committee: COMMITTEE, next, proofs, votes })))?;
        Ok(id)
    }

    /// Has an announced committee installed once its delay without an endorsement has passed. Its members have `keys`.
    ///
    /// # Errors
    /// The ledger's.
    pub fn install(&mut self, by: &AccountKey, keys: &[AuthorityKeys], id: Digest) -> Result<Outcome, Rejection> {
        self.wait(PARAMETERS.announced_delay_ms);
        self.act(by, Action::Mature { committee: COMMITTEE, announcement: id })?;
        let announced = self.read(&StateKey::Announcement(COMMITTEE, id)).unwrap();
        let announced: Announced = borsh::from_slice(&announced).unwrap();
        let votes = council_votes(keys, &self.domain(), &announced.acceptance(id).unwrap());
        self.act(by, Action::Install { committee: COMMITTEE, announcement: id, votes })
    }

    /// A quorum of traitors certifies these messages for the committee, whatever the rules say, at the time of the
    /// height before.
    pub fn forge(&mut self, messages: Vec<Message>) {
        let (before, _) = self.head.clone().unwrap();
        let newest = self.decisions.last().unwrap().group.clone();
        let previous = newest.head().digest(self.layout.deployment(), CLUSTER);
        let group = Group { to: Receiver::Committee(COMMITTEE), number: newest.number + 1, previous, messages };
        let outputs = Outputs::new(self.layout.deployment(), CLUSTER, vec![group]).unwrap();
        let (height, parent) = (before.height.next().unwrap(), before.id());
        let header =
            Header { height, time: self.time, parent, outputs: outputs.root(), ..before }.signed(&self.keys[0]);
        let certificate = self.certify(&header);
        let decision = CompactDecision::of(&header, &outputs, &certificate, Receiver::Committee(COMMITTEE));
        self.decisions.extend(decision);
        self.head = Some((header, certificate));
    }

    /// Sets the time of the next height, which no honest cluster sets back.
    pub fn set_time(&mut self, time: Time) {
        self.time = time;
    }

    /// Decides a height.
    pub fn decide(&mut self, requests: &[Request]) {
        self.time.0 += STEP_MS;
        let parent = self.head.as_ref().map(|(header, _)| *header);
        let height = parent.map_or(Height(1), |parent| parent.height.next().unwrap());
        let verified: Vec<_> =
            requests.iter().map(|request| request.clone().verify(self.layout.deployment()).unwrap()).collect();
        let moment = Moment { height, time: self.time };
        let executed = self.state.execute(&self.layout, moment, &[], &verified).unwrap();
        let header = Header {
            deployment: self.layout.deployment(),
            cluster: CLUSTER,
            height,
            time: self.time,
            parent: parent.map_or(Digest::ZERO, |parent| parent.id()),
            inputs: fastpay_ledger_statement::payload_digest(&borsh::to_vec(&requests).unwrap()),
            state: executed.state.root(),
            outputs: executed.outputs.root(),
            maker: MemberIndex(0),
            signature: Ed25519Signature([0; 64]),
        };
        let header = header.signed(&self.keys[0]);
        let certificate = self.certify(&header);
        let decision = CompactDecision::of(&header, &executed.outputs, &certificate, Receiver::Committee(COMMITTEE));
        self.decisions.extend(decision);
        self.answers.extend(AnswerProof::all(&header, &executed.outputs, &certificate, |_| true));
        (self.state, self.head) = (executed.state, Some((header, certificate)));
    }

    fn certify(&self, header: &Header) -> QuorumCertificate {
        let (deployment, cluster, height, round) = (header.deployment, header.cluster, header.height, self.round);
        let value = Some(header.id());
        let vote = VoteStatement { deployment, cluster, height, round, kind: VoteKind::Precommit, value }.digest();
        let votes = self.voters.map(|member| (MemberIndex(member), self.keys[usize::from(member)].sign(vote)));
        QuorumCertificate { round, votes: votes.into() }
    }
}

/// The votes of the first three.
fn council_votes(keys: &[AuthorityKeys], domain: &Domain, statement: &CouncilStatement<'_>) -> Vec<ContractVote> {
    keys.iter().take(3).map(|keys| sign_council_vote(keys, domain, statement)).collect()
}

/// Parameters, as a table of the ledger's file.
#[must_use]
pub fn toml_of(parameters: &SafetyParameters) -> String {
    let Bond { asset, amount } = parameters.unlock_bond;
    format!(
        "[committee.parameters]\nvotes_validity_ms = {}\nunlock_window_ms = {}\nendorsed_delay_ms = {}\n\
         announced_delay_ms = {}\nlapse_ms = {}\nunlock_bond = {{ asset = \"{}\", amount = \"{amount}\" }}",
        parameters.votes_validity_ms,
        parameters.unlock_window_ms,
        parameters.endorsed_delay_ms,
        parameters.announced_delay_ms,
        parameters.lapse_ms,
        asset.0,
    )
}

/// What becomes of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Submits {
    /// They are carried out and answered.
    #[default]
    Work,
    /// They never arrive.
    LoseRequests,
    /// They are carried out, and the answers never arrive.
    LoseAnswers,
    /// The same, but for rejections, which arrive.
    LoseOutcomes,
    /// Many on one call get replies without end, none of which settles anything.
    SettleNothing,
}

/// What a member serves.
struct Served {
    history: Arc<Mutex<History>>,
    lie: Option<Lie>,
    /// It hands over so many groups.
    knows: usize,
    asked: u64,
    reads_asked: u64,
    submits: Submits,
    /// It answers reads from this history: of this key, or of all.
    reads: Option<(Option<StateKey>, History)>,
    /// Connections that were made before end with their next call.
    is_away: bool,
}

/// The cluster, with a server for each member.
pub struct ScriptedLedger {
    history: Arc<Mutex<History>>,
    members: Vec<Arc<Mutex<Served>>>,
    listeners: Vec<Option<JoinHandle<()>>>,
    addresses: Vec<SocketAddr>,
    text: String,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ScriptedLedger {
    /// A ledger with this FastPay committee, on which `owner` has 1,000,000, in a reserve that is open. Its time begins
    /// at `time`. All members serve.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(committee: &Committee, owner: &AccountKey, time: Time) -> Self {
        let mut keys: Vec<_> = (0..4_u8).map(|at| MemberKeys::from_seed([at + 1; 32])).collect();
        keys.sort_by_key(MemberKeys::public);
        let mut text = "settlement = 1\nshards = [1]\n[[cluster]]\nid = 1\n".to_owned();
        let mut sockets = Vec::new();
        for key in &keys {
            let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (key, api) = (key.public(), socket.local_addr().unwrap());
            let unused = "127.0.0.1:1";
            writeln!(
                text,
                "[[cluster.member]]\nkey = \"{key}\"\nengine = \"{unused}\"\napi = \"{api}\"\nhttp = \"{unused}\""
            )
            .unwrap();
            sockets.push(socket);
        }
        let (owner_id, asset) = (owner.account(), Asset::ETHER.0);
        writeln!(text, "[[issue]]\nowner = \"{owner_id}\"\nasset = \"{asset}\"\namount = \"1000000\"").unwrap();
        writeln!(text, "[[committee]]\nnumber = {COMMITTEE}\n{}", toml_of(&PARAMETERS)).unwrap();
        for authority in committee.members() {
            let (name, key) = (authority.name, authority.redemption_key);
            writeln!(text, "[[committee.authority]]\nvotingKey = \"{name}\"\nredemptionKey = \"{key}\"").unwrap();
        }
        let layout = Network::parse(&text).unwrap().layout(CLUSTER).unwrap();
        let mut history = History::new(layout, keys, time);
        history.act(owner, Action::Open).unwrap();
        let history = Arc::new(Mutex::new(history));
        let served = || Served {
            history: history.clone(),
            lie: None,
            knows: usize::MAX,
            asked: 0,
            reads_asked: 0,
            submits: Submits::Work,
            reads: None,
            is_away: false,
        };
        let members: Vec<_> = (0..4).map(|_| Arc::new(Mutex::new(served()))).collect();
        let addresses = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
        let listeners = sockets.into_iter().zip(&members).map(|(socket, member)| Some(serve(socket, member.clone())));
        let listeners = listeners.collect();
        Self { history, members, listeners, addresses, text }
    }

    /// The ledger's file, written into a folder.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    pub fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("ledger.toml");
        std::fs::write(&path, &self.text).unwrap();
        path
    }

    /// The ledger.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn network(&self) -> Network {
        Network::parse(&self.text).unwrap()
    }

    /// The history that members serve.
    pub fn history(&self) -> MutexGuard<'_, History> {
        locked(&self.history)
    }

    /// From now on, a member serves another history.
    pub fn defect(&self, member: usize, history: History) {
        locked(&self.members[member]).history = Arc::new(Mutex::new(history));
    }

    /// From now on, a member serves the same history as the others again.
    pub fn serve_again(&self, member: usize) {
        locked(&self.members[member]).history = self.history.clone();
    }

    /// From now on, a member changes what it hands over.
    pub fn lie(&self, member: usize, lie: impl Fn(u64, Vec<Vec<u8>>) -> Vec<Vec<u8>> + Send + 'static) {
        locked(&self.members[member]).lie = Some(Box::new(lie));
    }

    /// From now on, a member is honest.
    pub fn recover(&self, member: usize) {
        let mut served = locked(&self.members[member]);
        (served.lie, served.knows, served.reads) = (None, usize::MAX, None);
    }

    /// From now on, a member hands over its first groups alone: it lags, or withholds the others.
    pub fn withhold_after(&self, member: usize, groups: usize) {
        locked(&self.members[member]).knows = groups;
    }

    /// How often a member was asked for groups.
    #[must_use]
    pub fn asked(&self, member: usize) -> u64 {
        locked(&self.members[member]).asked
    }

    /// How often a member was asked for an entry of the state.
    #[must_use]
    pub fn reads_asked(&self, member: usize) -> u64 {
        locked(&self.members[member]).reads_asked
    }

    /// From now on, a member answers reads from the states that it has now: they are certified, and get older.
    pub fn read_no_further(&self, member: usize) {
        self.outdate(member, None);
    }

    /// The same for reads of one entry: a liar, or a member that decides between two reads.
    pub fn read_no_further_of(&self, member: usize, key: StateKey) {
        self.outdate(member, Some(key));
    }

    fn outdate(&self, member: usize, of: Option<StateKey>) {
        let mut served = locked(&self.members[member]);
        let now = locked(&served.history).clone();
        served.reads = Some((of, now));
    }

    /// What becomes of requests from now on.
    pub fn submits(&self, submits: Submits) {
        self.members.iter().for_each(|member| locked(member).submits = submits);
    }

    /// Ends a member's server.
    pub fn kill(&mut self, member: usize) {
        locked(&self.members[member]).is_away = true;
        self.listeners[member].take().into_iter().for_each(|listener| listener.abort());
    }

    /// Starts a member's server again.
    ///
    /// # Panics
    /// If its port is taken.
    pub async fn revive(&mut self, member: usize) {
        let socket = TcpListener::bind(self.addresses[member]).await.unwrap();
        locked(&self.members[member]).is_away = false;
        self.listeners[member] = Some(serve(socket, self.members[member].clone()));
    }
}

impl Drop for ScriptedLedger {
    fn drop(&mut self) {
        (0..self.listeners.len()).for_each(|member| self.kill(member));
    }
}

fn serve(socket: TcpListener, member: Arc<Mutex<Served>>) -> JoinHandle<()> {
    let server = tonic::transport::Server::builder().add_service(LedgerServer::new(Member(member)));
    tokio::spawn(async move { server.serve_with_incoming(TcpListenerStream::new(socket)).await.unwrap() })
}

struct Member(Arc<Mutex<Served>>);

impl Member {
    fn served(&self) -> Result<MutexGuard<'_, Served>, Status> {
        let served = locked(&self.0);
        if served.is_away { Err(Status::unavailable("away")) } else { Ok(served) }
    }

    fn groups(&self, from: u64) -> Result<Vec<Vec<u8>>, Status> {
        let served = self.served()?;
        let history = locked(&served.history);
        let after = usize::try_from(from.saturating_sub(1)).unwrap();
        let known = history.decisions.iter().take(served.knows);
        let groups = known.skip(after).map(Wire::encode).collect();
        Ok(match &served.lie {
            Some(lie) => lie(from, groups),
            None => groups,
        })
    }
}

#[tonic::async_trait]
impl Ledger for Member {
    async fn submit(&self, request: tonic::Request<SubmitRequest>) -> Result<Response<SubmitReply>, Status> {
        let request =
            Request::decode(&request.into_inner().request).map_err(|_| Status::invalid_argument("malformed"))?;
        let served = self.served()?;
        if served.submits == Submits::LoseRequests {
            return Err(Status::unavailable("lost"));
        }
        let mut history = locked(&served.history);
        let digest = request.digest();
        let is_known = |proof: &&AnswerProof| proof.answer.request == digest && proof.answer.result.is_ok();
        if history.answers.iter().rev().find(is_known).is_none() {
            history.decide(&[request]);
        }
        if served.submits == Submits::LoseAnswers {
            return Err(Status::unavailable("lost"));
        }
        let answer = history.answers.iter().rev().find(|proof| proof.answer.request == digest).unwrap();
        if served.submits == Submits::LoseOutcomes && answer.answer.result.is_ok() {
            return Err(Status::unavailable("lost"));
        }
        Ok(Response::new(SubmitReply { answer: answer.encode() }))
    }

    type SubmitAllStream = ReceiverStream<Result<SubmitAllReply, Status>>;

    async fn submit_all(
        &self,
        _: tonic::Request<tonic::Streaming<SubmitAllRequest>>,
    ) -> Result<Response<Self::SubmitAllStream>, Status> {
        if self.served()?.submits != Submits::SettleNothing {
            return Err(Status::unimplemented("one request after the other"));
        }
        let (replies, stream) = mpsc::channel(1);
        tokio::spawn(async move {
            while replies.send(Ok(SubmitAllReply::default())).await.is_ok() {
                tokio::time::sleep(PAUSE).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn relay(&self, _: tonic::Request<RelayRequest>) -> Result<Response<RelayReply>, Status> {
        Err(Status::unimplemented("nobody leads"))
    }

    async fn read(&self, request: tonic::Request<ReadRequest>) -> Result<Response<ReadReply>, Status> {
        let key = state_key(&request.into_inner().key)?;
        let mut served = self.served()?;
        served.reads_asked += 1;
        let newest = locked(&served.history);
        let outdated = served.reads.as_ref().filter(|(of, _)| of.as_ref().is_none_or(|of| *of == key));
        let history = outdated.map_or(&*newest, |(_, history)| history);
        Ok(Response::new(ReadReply { proof: history.prove(&key).encode() }))
    }

    async fn decisions(&self, request: tonic::Request<DecisionsRequest>) -> Result<Response<DecisionsReply>, Status> {
        let DecisionsRequest { receiver: to, from, wait_ms } = request.into_inner();
        if receiver(&to)? != Receiver::Committee(COMMITTEE) {
            return Err(Status::invalid_argument("another receiver"));
        }
        self.served()?.asked += 1;
        let mut waited = 0;
        loop {
            let decisions = self.groups(from)?;
            if !decisions.is_empty() || waited >= u128::from(wait_ms) {
                return Ok(Response::new(DecisionsReply { decisions }));
            }
            tokio::time::sleep(PAUSE).await;
            waited += PAUSE.as_millis();
        }
    }

    async fn status(&self, _: tonic::Request<StatusRequest>) -> Result<Response<StatusReply>, Status> {
        Err(Status::unimplemented("nobody leads"))
    }

    type StateStream = tokio_stream::Empty<Result<StatePart, Status>>;

    async fn state(&self, _: tonic::Request<StateRequest>) -> Result<Response<Self::StateStream>, Status> {
        Err(Status::unimplemented("audits read real members"))
    }
}
