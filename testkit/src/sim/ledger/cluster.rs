//! One cluster: the real rules and certificates of its honest members, and the leaders who propose what is not valid.

use std::collections::{BTreeMap, VecDeque};

use fastpay_core::{Digest, DigestVerifier, Ed25519Signature};
use fastpay_ledger_state::{Executed, Moment, State};
use fastpay_ledger_statement::{
    AnswerProof, CompactDecision, Header, Height, Layout, MemberIndex, MemberKeys, Outputs, QuorumCertificate,
    Receiver, StatementVerifier, Time, VerifiedGroup, VerifiedRequest, VoteKind, VoteStatement, payload_digest,
};

use crate::sim::dice::Dice;
use crate::sim::oracle::{Breach, require};

/// The members of each cluster. One of them may be faulty.
pub const MEMBERS: usize = 4;
/// A height takes at most so many requests, and so many groups of each other cluster.
const REQUESTS_MAX: usize = 8;
const GROUPS_MAX: usize = 4;

/// A height that is decided.
#[derive(Clone)]
pub struct Decided {
    pub header: Header,
    pub certificate: QuorumCertificate,
    pub state: State,
}

/// See the [module](self).
pub struct Cluster {
    pub layout: Layout,
    /// In the order of the members.
    keys: Vec<MemberKeys>,
    genesis: State,
    pub heights: Vec<Decided>,
    /// Each receiver's groups, with their heights.
    pub sent: BTreeMap<Receiver, Vec<(u64, CompactDecision)>>,
    pub answers: BTreeMap<Digest, Vec<AnswerProof>>,
    pub waiting: VecDeque<VerifiedRequest>,
    /// Everything that was ever requested: anybody may send it again.
    heard: Vec<VerifiedRequest>,
    taken: Option<VerifiedGroup>,
    verifier: StatementVerifier,
    /// By member: how many heights its view is behind the newest.
    pub lags: [usize; MEMBERS],
    /// The member that lies.
    pub liar: Option<usize>,
}

impl Cluster {
    /// Before the first height.
    pub fn new(layout: Layout, keys: Vec<MemberKeys>, liar: Option<usize>) -> Self {
        let genesis = State::genesis(&layout);
        let (heights, sent, answers, waiting, heard, taken, verifier, lags) = Default::default();
        Self { layout, keys, genesis, heights, sent, answers, waiting, heard, taken, verifier, lags, liar }
    }

    /// The newest state.
    pub fn state(&self) -> &State {
        self.heights.last().map_or(&self.genesis, |newest| &newest.state)
    }

    /// A member hears a request.
    pub fn hear(&mut self, request: VerifiedRequest) {
        self.heard.push(request.clone());
        self.waiting.push_back(request);
    }

    /// What a member has decided; none before its first height.
    pub fn view(&self, member: usize) -> &[Decided] {
        let behind = self.lags[member].min(self.heights.len());
        &self.heights[..self.heights.len() - behind]
    }

    /// The groups from a number on that a member has for a receiver.
    pub fn groups(&self, member: usize, to: Receiver, from: u64) -> Vec<CompactDecision> {
        let height = self.view(member).len() as u64;
        let skipped = usize::try_from(from.saturating_sub(1)).unwrap_or(usize::MAX);
        let sent = self.sent.get(&to).into_iter().flatten().skip(skipped);
        sent.take_while(|(at, _)| *at <= height).map(|(_, decision)| decision.clone()).collect()
    }

    /// The groups that are due here, as another cluster's members hand them over.
    pub fn due(&mut self, from: &Self, dice: &Dice) -> Result<Vec<VerifiedGroup>, Breach> {
        let (us, sender) = (self.layout.us(), from.layout.us());
        let to = Receiver::Cluster(us);
        let mut cursor = self.state().due_from(sender);
        let decisions = from.groups(dice.below(MEMBERS), to, cursor.next);
        let members = self.layout.members(sender).expect("clusters know each other");
        let mut groups = Vec::new();
        for decision in decisions.into_iter().take(dice.below(GROUPS_MAX)) {
            let batch = vec![(decision, members, cursor)];
            let opened = self.verifier.open(to, batch, &mut rand::rng()).remove(0);
            let group = opened.map_err(|error| Breach(format!("a group of {sender} for {us} is refused: {error}")))?;
            cursor = group.cursor();
            groups.push(group);
        }
        Ok(groups)
    }

    /// Decides the next height, after proposals that no honest member votes for. Gives what it sends.
    pub fn decide(&mut self, now: Time, groups: Vec<VerifiedGroup>, dice: &Dice) -> Result<Outputs, Breach> {
        let parent = self.heights.last().map(|newest| newest.header);
        let height = parent.map_or(Some(Height(1)), |parent| parent.height.next()).expect("few heights");
        let time = parent.map_or(now, |parent| Time(now.0.max(parent.time.0 + 1)));
        let moment = Moment { height, time };
        self.lead_astray(moment, &groups, dice)?;
        if !self.heard.is_empty() && dice.chance(100) {
            self.waiting.push_back(dice.pick(&self.heard).clone());
        }
        let mut requests: Vec<VerifiedRequest> = Vec::new();
        while requests.len() < REQUESTS_MAX
            && let Some(request) = self.waiting.pop_front()
        {
            if requests.iter().all(|other| other.digest() != request.digest()) {
                requests.push(request);
            }
        }
        let executed = self.state().execute(&self.layout, moment, &groups, &requests);
        let us = self.layout.us();
        let Executed { state, outputs } =
            executed.map_err(|error| Breach(format!("cluster {us} cannot execute an honest proposal: {error}")))?;
        let maker = dice.below(MEMBERS);
        let header = self.header(moment, parent.as_ref(), (&state, &outputs), maker);
        self.check(&header, parent.as_ref(), now)?;
        let certificate = self.certify(&header, dice);
        for group in outputs.groups() {
            let decision = CompactDecision::of(&header, &outputs, &certificate, group.to).expect("it is for them");
            self.sent.entry(group.to).or_default().push((height.0, decision));
        }
        for answer in AnswerProof::all(&header, &outputs, &certificate, |_| true) {
            self.answers.entry(answer.answer.request).or_default().push(answer);
        }
        self.taken = groups.last().cloned().or(self.taken.take());
        self.heights.push(Decided { header, certificate, state });
        Ok(outputs)
    }

    fn header(
        &self,
        Moment { height, time }: Moment,
        parent: Option<&Header>,
        (state, outputs): (&State, &Outputs),
        maker: usize,
    ) -> Header {
        let header = Header {
            deployment: self.layout.deployment(),
            cluster: self.layout.us(),
            height,
            time,
            parent: parent.map_or(Digest::ZERO, Header::id),
            inputs: payload_digest(&height.0.to_be_bytes()),
            state: state.root(),
            outputs: outputs.root(),
            maker: MemberIndex(u8::try_from(maker).expect("few members")),
            signature: Ed25519Signature([0; 64]),
        };
        header.signed(&self.keys[maker])
    }

    /// What an honest member asks of a new header.
    fn check(&self, header: &Header, parent: Option<&Header>, now: Time) -> Result<(), Breach> {
        let members = self.layout.members(self.layout.us()).expect("it is a cluster");
        let checked = header.check_follows(parent).and_then(|()| header.check_clock(now));
        let made = || header.check_made(members, &mut DigestVerifier::new(1), &mut rand::rng());
        checked.and_then(|()| made()).map_err(|error| Breach(format!("an honest header is refused: {error}")))
    }

    /// A leader proposes what is not valid. No honest member votes for it.
    fn lead_astray(&self, moment: Moment, groups: &[VerifiedGroup], dice: &Dice) -> Result<(), Breach> {
        if !dice.chance(200) {
            return Ok(());
        }
        let us = self.layout.us();
        let is_valid = |groups: &[VerifiedGroup], requests: &[VerifiedRequest]| {
            self.state().execute(&self.layout, moment, groups, requests).is_ok()
        };
        if let Some(taken) = &self.taken {
            require!(!is_valid(std::slice::from_ref(taken), &[]), "cluster {us} takes a group twice");
        }
        if let [_, later @ ..] = groups
            && !later.is_empty()
            && later[0].from() == groups[0].from()
        {
            require!(!is_valid(later, &[]), "cluster {us} takes a group before the one that is due");
        }
        if let Some(request) = self.waiting.front() {
            let twice = [request.clone(), request.clone()];
            require!(!is_valid(&[], &twice), "cluster {us} takes a request twice in a height");
        }
        if let Some(Decided { header: parent, state, .. }) = self.heights.last() {
            let none = Outputs::new(self.layout.deployment(), us, Vec::new()).expect("no group is repeated");
            let before = Moment { time: Time(parent.time.0 - dice.below(2) as u64), ..moment };
            let header = self.header(before, Some(parent), (state, &none), 0);
            require!(header.check_follows(Some(parent)).is_err(), "the time of cluster {us} goes back");
        }
        Ok(())
    }

    /// By a quorum, in a round.
    fn certify(&self, header: &Header, dice: &Dice) -> QuorumCertificate {
        let Header { deployment, cluster, height, .. } = *header;
        let (kind, value, round) = (VoteKind::Precommit, Some(header.id()), dice.below(3) as u32);
        let digest = VoteStatement { deployment, cluster, height, round, kind, value }.digest();
        let missing = dice.below(MEMBERS);
        let voters = self.keys.iter().enumerate().filter(|(member, _)| *member != missing);
        let votes: Vec<_> = voters.map(|(_, keys)| (keys.public(), keys.sign(digest))).collect();
        let members = self.layout.members(cluster).expect("it is a cluster");
        QuorumCertificate::of_votes(members, round, &votes).expect("three of four are a quorum")
    }
}
