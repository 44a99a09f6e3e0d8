//! Reads the groups that a cluster has for one receiver, from all of its members.
//!
//! ```text
//!  every member ─► groups from the one that it is asked for ─► opened, or equal to one that was opened
//!      ─► f + 1 members hand over the same group ─► delivered in order
//!                └─ a certified group is another one than was taken: the cluster has forked ─► alarm
//! ```
//! A member that withholds groups, alters them or does not answer is left for a while. Always true: what is delivered
//! has no gap, a quorum certified it, and f + 1 members hand it over. After a fork, the caller stops for good
//! [LEDGER 11]: only f + 1 traitors can cause one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use fastpay_core::Digest;
use fastpay_ledger_statement::{
    ClusterId, CompactDecision, Cursor, Fork, GROUP_MESSAGES_MAX, Header, Height, MemberIndex, MemberKey, Members,
    OpenError, QuorumCertificate, Receiver, StatementVerifier, VerifiedGroup, Wire,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::api::MESSAGE_BYTES_MAX;
use crate::api::proto::DecisionsRequest;
use crate::api::proto::ledger_client::LedgerClient;
use crate::client::{Client, ClientError, Connection};
use crate::transport::Transport;

/// A member waits so long for a group before it says that there is none.
const WAIT: Duration = Duration::from_secs(1);
/// A call may take so long: the wait, and a page of groups over a slow line.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Without an answer of f + 1 members for so long, the cluster counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(12);
/// The pause after a member's first failure, and the longest one. Each is twice as long as the one before.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// At most so many groups are delivered at once, and no second one if there are more messages than one can have: this
/// bounds what the receiver applies in one step.
const DELIVERED_MAX: usize = 64;
/// A member that is ahead of the others by so many groups is asked for no more.
const AHEAD_MAX: u64 = 32;
/// So many groups that were delivered are compared with what members hand over later.
const COMPARED_MAX: usize = 256;

/// A quorum certified two groups of one number. At least f + 1 members signed both histories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkFound {
    /// The cluster.
    pub cluster: ClusterId,
    /// The number of the group from which on, at the latest, there are two histories.
    pub number: u64,
    /// The ids and heights of the two headers; none where the members no longer show the first one that differs.
    pub headers: Option<[(Digest, Height); 2]>,
    /// The members who signed both headers, if these are of one height.
    pub signers: Vec<MemberKey>,
    /// The members who signed both in one round: they are traitors. Empty if the rounds differ.
    pub traitors: Vec<MemberKey>,
}

impl fmt::Display for ForkFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, number, headers, signers, traitors } = self;
        write!(
            f,
            "cluster {cluster} has forked: a quorum certified two histories, which differ from group {number} on"
        )?;
        if let Some([(first, at), (second, and)]) = headers {
            write!(f, ", in header {first} of height {at} and header {second} of height {and}")?;
        }
        let list = |keys: &[MemberKey]| keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match (headers, signers.is_empty(), traitors.is_empty()) {
            (None, ..) => f.write_str(". Where they part is no longer shown, so it is not known who signed both"),
            (Some(_), true, _) => f.write_str(". The heights differ, so nobody is proven to have signed twice at one"),
            (Some(_), false, true) => write!(f, ". These members signed both, in different rounds: {}", list(signers)),
            (Some(_), false, false) => {
                write!(f, ". These members signed both in one round, and are traitors: {}", list(traitors))
            }
        }
    }
}

/// Why there are no groups.
#[derive(Debug, thiserror::Error)]
pub enum GroupsError {
    /// Fewer than f + 1 members answer with what holds. Trying again is right.
    #[error("{answered} of the {needed} members of cluster {cluster} that are needed hand over its groups: {last}")]
    Unreachable {
        /// The cluster.
        cluster: ClusterId,
        /// The number of members that answered.
        answered: usize,
        /// f + 1.
        needed: usize,
        /// Why the last one did not.
        last: String,
    },
    /// The cluster has two histories. An operator must act.
    #[error("{0}")]
    Fork(Box<ForkFound>),
}

/// What was certified under a group's number.
#[derive(Clone, Debug)]
struct Certified {
    /// The group's digest.
    digest: Digest,
    header: Header,
    certificate: QuorumCertificate,
}

impl Certified {
    fn of(group: &VerifiedGroup) -> Self {
        let CompactDecision { header, certificate, .. } = group.decision();
        Self { digest: group.cursor().previous, header: *header, certificate: certificate.clone() }
    }

    /// Whether a decision has the same group under the same header: then it needs no check of its own.
    fn is(&self, decision: &CompactDecision) -> bool {
        let digest = decision.group.head().digest(self.header.deployment, self.header.cluster);
        (digest, decision.header.id()) == (self.digest, self.header.id())
    }
}

/// A group that was opened and is not yet delivered for good.
#[derive(Debug)]
struct Found {
    group: VerifiedGroup,
    certified: Certified,
    /// The members that have handed it over.
    holders: BTreeSet<usize>,
}

/// A member as it is asked.
#[derive(Debug)]
struct Peer {
    client: LedgerClient<Transport>,
    is_asked: bool,
    /// The number that it is asked for next.
    next: u64,
    asked_at: Instant,
    /// It is asked again after this.
    asked_after: Instant,
    failures: u32,
}

#[derive(Debug)]
struct Answer {
    member: usize,
    from: u64,
    decisions: Result<Vec<Vec<u8>>, String>,
}

/// Why a member is left for a while, or the reader stops.
#[derive(Debug)]
enum Judged {
    /// It does not answer, or hands over what does not hold.
    Faulty(String),
    /// A certified group continues another history. The one where they part is looked for.
    OtherHistory(u64),
    /// The proof.
    Fork(Box<ForkFound>),
}

/// Reads groups. The caller keeps the position, on disk.
#[derive(Debug)]
pub struct GroupReader {
    receiver: Receiver,
    members: Members,
    peers: Vec<Peer>,
    asked: JoinSet<Answer>,
    verifier: StatementVerifier,
    due: Cursor,
    /// The groups from `due` on, by number.
    found: BTreeMap<u64, Found>,
    /// The newest groups before `due`.
    taken: BTreeMap<u64, Certified>,
    /// The member that shows another history, and the number from which on at the latest it does.
    suspected: Option<(usize, u64)>,
}

impl GroupReader {
    /// A reader of the groups that the settlement cluster has for `receiver`.
    ///
    /// # Errors
    /// [`ClientError::UnknownCluster`].
    pub fn new(client: &Client, receiver: Receiver) -> Result<Self, ClientError> {
        let (members, connections) = client.cluster(client.partition().settlement)?;
        let now = Instant::now();
        let peer = |(_, channel): &Connection| {
            let client = LedgerClient::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
            Peer { client, is_asked: false, next: 1, asked_at: now, asked_after: now, failures: 0 }
        };
        Ok(Self {
            receiver,
            members: members.clone(),
            peers: connections.iter().map(peer).collect(),
            asked: JoinSet::new(),
            verifier: StatementVerifier::default(),
            due: Cursor::default(),
            found: BTreeMap::new(),
            taken: BTreeMap::new(),
            suspected: None,
        })
    }

    /// f + 1: among so many members, one is honest.
    fn needed(&self) -> usize {
        self.members.keys().len().saturating_sub(self.members.quorum()).saturating_add(1)
    }

    /// The groups from the one that is due on. Empty if f + 1 members have no further one; they wait for a second before
    /// they say so. Asking for the same ones again gives them again.
    ///
    /// # Errors
    /// See [`GroupsError`].
    pub async fn next(&mut self, due: Cursor) -> Result<Vec<VerifiedGroup>, GroupsError> {
        self.begin(due);
        let end = Instant::now().checked_add(PATIENCE).unwrap_or_else(Instant::now);
        let (mut without, mut last) = (BTreeSet::new(), "none has answered yet".to_owned());
        loop {
            if self.suspected.is_none() {
                let ready = self.ready();
                if !ready.is_empty() || without.len() >= self.needed() {
                    return Ok(ready);
                }
            }
            let now = Instant::now();
            if now >= end {
                // The two histories are certified, whether or not the place where they part is found.
                if let Some((_, number)) = self.suspected {
                    return Err(GroupsError::Fork(Box::new(self.unproven(number))));
                }
                let (cluster, answered, needed) = (self.members.cluster(), without.len(), self.needed());
                return Err(GroupsError::Unreachable { cluster, answered, needed, last });
            }
            let wake = self.ask(now).min(end);
            let answered = match self.asked.is_empty() {
                true => {
                    tokio::time::sleep_until(wake).await;
                    None
                }
                false => timeout_at(wake, self.asked.join_next()).await.ok().flatten(),
            };
            let Some(Ok(answer)) = answered else { continue };
            let (member, from) = (answer.member, answer.from);
            match self.judge(answer) {
                Ok(0) if from == self.due.next => _ = without.insert(member),
                Ok(_) => {}
                Err(Judged::Fork(fork)) => return Err(GroupsError::Fork(fork)),
                Err(Judged::OtherHistory(number)) => self.look_back(member, number)?,
                Err(Judged::Faulty(why)) => {
                    tracing::debug!(member, %why, "a member of the settlement cluster is left for a while");
                    last = format!("member {member}: {why}");
                    if let Some((_, number)) = self.suspected.filter(|(suspected, _)| *suspected == member) {
                        return Err(GroupsError::Fork(Box::new(self.unproven(number))));
                    }
                    self.leave(member);
                }
            }
        }
    }

    /// Takes the caller's position. What is before it has been applied.
    fn begin(&mut self, due: Cursor) {
        if due.next < self.due.next || self.cursor_at(due.next) != Some(due) {
            self.found.clear();
            self.taken.clear();
            self.asked.abort_all();
            self.asked = JoinSet::new();
            self.peers.iter_mut().for_each(|peer| (peer.is_asked, peer.next) = (false, due.next));
        }
        let later = self.found.split_off(&due.next);
        let applied = std::mem::replace(&mut self.found, later);
        self.taken.extend(applied.into_iter().map(|(number, found)| (number, found.certified)));
        while self.taken.len() > COMPARED_MAX {
            self.taken.pop_first();
        }
        self.due = due;
        self.peers.iter_mut().for_each(|peer| peer.next = peer.next.max(due.next));
    }

    /// The groups that f + 1 members have handed over, in order.
    fn ready(&self) -> Vec<VerifiedGroup> {
        let needed = self.needed();
        let (mut ready, mut messages) = (Vec::new(), 0_usize);
        for (number, found) in (self.due.next..).zip(self.found.values()).take(DELIVERED_MAX) {
            let group = found.group.group();
            messages = messages.saturating_add(group.messages.len());
            let is_due = found.holders.len() >= needed && group.number == number;
            if !is_due || (messages > GROUP_MESSAGES_MAX && !ready.is_empty()) {
                break;
            }
            ready.push(found.group.clone());
        }
        ready
    }

    /// Asks every member that is not being asked, and says when the next one is to be asked at the latest.
    fn ask(&mut self, now: Instant) -> Instant {
        let mut wake = now.checked_add(PAUSE_MAX).unwrap_or(now);
        let receiver = borsh::to_vec(&self.receiver).expect("memory takes every write");
        let wait_ms = u32::try_from(WAIT.as_millis()).unwrap_or(u32::MAX);
        let ahead = self.due.next.saturating_add(AHEAD_MAX);
        for (member, peer) in self.peers.iter_mut().enumerate() {
            if peer.is_asked || peer.next >= ahead {
                continue;
            }
            if peer.asked_after > now {
                wake = wake.min(peer.asked_after);
                continue;
            }
            (peer.is_asked, peer.asked_at) = (true, now);
            let (mut client, from) = (peer.client.clone(), peer.next);
            let mut call = tonic::Request::new(DecisionsRequest { receiver: receiver.clone(), from, wait_ms });
            call.set_timeout(CALL_TIMEOUT);
            self.asked.spawn(async move {
                let answered = tokio::time::timeout(CALL_TIMEOUT, client.decisions(call)).await;
                let decisions = match answered {
                    Ok(Ok(reply)) => Ok(reply.into_inner().decisions),
                    Ok(Err(status)) => Err(status.to_string()),
                    Err(_) => Err("it does not answer".to_owned()),
                };
                Answer { member, from, decisions }
            });
        }
        wake
    }

    /// Judges what a member handed over, and says how many groups that was.
    fn judge(&mut self, Answer { member, from, decisions }: Answer) -> Result<usize, Judged> {
        if let Some(peer) = self.peers.get_mut(member) {
            peer.is_asked = false;
        }
        let decisions = decisions.map_err(Judged::Faulty)?;
        let count = decisions.len();
        let mut number = from;
        for encoded in decisions {
            let decision = CompactDecision::decode(&encoded).map_err(|error| Judged::Faulty(error.to_string()))?;
            self.compare(member, number, decision)?;
            number = number.saturating_add(1);
            let looks_back = self.suspected.is_some_and(|(suspected, _)| suspected == member);
            if let Some(peer) = self.peers.get_mut(member) {
                peer.next = if looks_back { number } else { number.max(self.due.next) };
            }
        }
        if let Some(peer) = self.peers.get_mut(member) {
            peer.failures = 0;
            // One that says at once that there is nothing is not asked again at once.
            if count == 0 {
                peer.asked_after = peer.asked_at.checked_add(WAIT).unwrap_or(peer.asked_at);
            }
        }
        Ok(count)
    }

    /// Compares a decision with what is known under the number for which the member was asked, and opens it if that is
    /// not the same.
    fn compare(&mut self, member: usize, number: u64, decision: CompactDecision) -> Result<(), Judged> {
        if decision.group.number != number {
            let found = decision.group.number;
            return Err(Judged::Faulty(format!("it hands over group {found} where group {number} is due")));
        }
        if let Some(found) = self.found.get_mut(&number).filter(|found| found.certified.is(&decision)) {
            found.holders.insert(member);
            return Ok(());
        }
        let known = self.found.get(&number).map(|found| &found.certified).or_else(|| self.taken.get(&number)).cloned();
        if known.as_ref().is_some_and(|known| known.is(&decision)) {
            return Ok(());
        }
        // What is further behind than the groups that are kept is compared no more.
        let Some(cursor) = self.cursor_at(number) else { return Ok(()) };
        let opened = self.verifier.open(self.receiver, vec![(decision, &self.members, cursor)], &mut rand::rng());
        for opened in opened {
            let group = match opened {
                Ok(group) => group,
                Err(OpenError::OtherHistory { number }) => return Err(Judged::OtherHistory(number)),
                Err(error) => return Err(Judged::Faulty(error.to_string())),
            };
            let certified = Certified::of(&group);
            if let Some(known) = &known {
                return Err(Judged::Fork(Box::new(self.proven(number, [known, &certified]))));
            }
            self.found.insert(number, Found { group, certified, holders: BTreeSet::from([member]) });
        }
        Ok(())
    }

    /// The group that is due at a number, as far as it is known what comes before it.
    fn cursor_at(&self, number: u64) -> Option<Cursor> {
        if number == self.due.next {
            return Some(self.due);
        }
        let before = number.checked_sub(1)?;
        if before == 0 {
            return Some(Cursor::default());
        }
        let found = self.found.get(&before).map(|found| &found.certified);
        let certified = found.or_else(|| self.taken.get(&before))?;
        Some(Cursor { next: number, previous: certified.digest })
    }

    /// Asks a member that shows another history for what it has in place of the oldest groups that are kept.
    fn look_back(&mut self, member: usize, number: u64) -> Result<(), GroupsError> {
        if self.suspected.is_some_and(|(suspected, _)| suspected != member) {
            self.leave(member);
            return Ok(());
        }
        let oldest = self.taken.keys().next().copied().unwrap_or(self.due.next);
        let oldest = if self.cursor_at(oldest).is_some() { oldest } else { oldest.saturating_add(1) };
        // It shows another history already in place of the oldest one.
        if self.suspected.is_some() || oldest >= number {
            return Err(GroupsError::Fork(Box::new(self.unproven(number))));
        }
        self.suspected = Some((member, number));
        if let Some(peer) = self.peers.get_mut(member) {
            peer.next = oldest;
        }
        Ok(())
    }

    fn leave(&mut self, member: usize) {
        let Some(peer) = self.peers.get_mut(member) else { return };
        let pause = PAUSE_MIN.saturating_mul(2_u32.saturating_pow(peer.failures)).min(PAUSE_MAX);
        peer.failures = peer.failures.saturating_add(1);
        peer.asked_after = Instant::now().checked_add(pause).unwrap_or(peer.asked_after);
    }

    fn unproven(&self, number: u64) -> ForkFound {
        let (signers, traitors) = Default::default();
        ForkFound { cluster: self.members.cluster(), number, headers: None, signers, traitors }
    }

    fn proven(&mut self, number: u64, [first, second]: [&Certified; 2]) -> ForkFound {
        let certified = [first, second].map(|of| (&of.header, &of.certificate));
        let fork = Fork::prove(&self.members, certified, &mut self.verifier, &mut rand::rng());
        let fork = fork.ok().flatten();
        let keys = |members: &[MemberIndex]| members.iter().filter_map(|member| self.members.key(*member)).collect();
        ForkFound {
            headers: Some([first, second].map(|of| (of.header.id(), of.header.height))),
            signers: fork.as_ref().map(|fork| keys(&fork.signers)).unwrap_or_default(),
            traitors: fork.as_ref().map(|fork| keys(fork.traitors())).unwrap_or_default(),
            ..self.unproven(number)
        }
    }
}
