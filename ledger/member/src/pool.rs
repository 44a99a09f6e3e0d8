//! What waits to be proposed: clients' requests and groups of other clusters, each within bounds, with the time since
//! when this member knows it. A leader that leaves one out for long gets no vote [LEDGER 2].

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;

use borsh::BorshSerialize;
use fastpay_core::{AccountId, Digest};
use fastpay_ledger_state::State;
use fastpay_ledger_statement::{ClusterId, CompactDecision, Cursor, Request, VerifiedGroup, VerifiedRequest, Wire};

use crate::payload::REQUESTS_MAX;
use crate::room::Room;

/// A leader must propose what a member has known for this long.
pub const KNOWN_MS_MAX: u64 = 5_000;
/// What has waited for so long is passed on to all members, again and again: whoever gave it to one member alone can then
/// not have that member vote against all others. It leaves the leader four seconds.
pub const ALONE_MS_MAX: u64 = 1_000;
/// So many requests are passed on again at once: a flood that waits must not become one between members.
const AGAIN_MAX: usize = 1_024;
/// So many reads wait at most, and so many instructions: those of two proposals each.
const REQUESTS_WAITING_MAX: usize = 2 * REQUESTS_MAX;
/// So many bytes of either wait at most.
const REQUEST_BYTES_WAITING_MAX: usize = 8 << 20;
/// So many instructions of one signer wait at most: more than any keeps answers of.
const OF_SIGNER_MAX: usize = 64;
/// So many groups of one cluster wait at most, of up to 1 MiB each.
const GROUPS_WAITING_MAX: usize = 8;

#[derive(Debug)]
struct Waiting {
    request: VerifiedRequest,
    bytes: usize,
    since_ms: u64,
    passed_on_ms: u64,
}

#[derive(Debug)]
struct WaitingGroup {
    group: VerifiedGroup,
    bytes: usize,
    since_ms: u64,
}

/// What waits of one kind of requests. Each kind has a share of its own: reads, which nobody signs, keep no payment out.
#[derive(Debug, Default)]
struct Share {
    count: usize,
    bytes: usize,
}

/// What waits to be proposed.
#[derive(Debug, Default)]
pub struct Pool {
    requests: BTreeMap<u64, Waiting>,
    places: HashMap<Digest, u64>,
    next_place: u64,
    reads: Share,
    instructions: Share,
    of_signer: HashMap<AccountId, usize>,
    groups: BTreeMap<ClusterId, VecDeque<WaitingGroup>>,
    /// Clusters of which a quorum certified what no honest one sends.
    faulty: HashSet<ClusterId>,
}

/// What a proposal has.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Groups, each due after the one before it.
    pub groups: Vec<VerifiedGroup>,
    /// Requests, the oldest first.
    pub requests: Vec<VerifiedRequest>,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It waits.
    New,
    /// It waits already.
    Known,
    /// Too much waits.
    Busy,
}

/// What a leader leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// A request.
    Request(Digest),
    /// The group that is due from a cluster.
    Group(ClusterId),
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(digest) => write!(f, "the request {digest}"),
            Self::Group(cluster) => write!(f, "the group that is due from cluster {cluster}"),
        }
    }
}

impl Pool {
    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.groups.values().all(VecDeque::is_empty)
    }

    /// Adds a request.
    pub fn add_request(&mut self, request: &VerifiedRequest, now_ms: u64) -> Added {
        let digest = request.digest();
        if self.places.contains_key(&digest) {
            return Added::Known;
        }
        let bytes = length(request.request());
        let share = match signer(request) {
            Some(signer) if self.of_signer.get(&signer).is_some_and(|count| *count >= OF_SIGNER_MAX) => {
                return Added::Busy;
            }
            Some(_) => &mut self.instructions,
            None => &mut self.reads,
        };
        let total = share.bytes.saturating_add(bytes);
        if share.count >= REQUESTS_WAITING_MAX || total > REQUEST_BYTES_WAITING_MAX {
            return Added::Busy;
        }
        *share = Share { count: share.count.saturating_add(1), bytes: total };
        if let Some(signer) = signer(request) {
            let count = self.of_signer.entry(signer).or_default();
            *count = count.saturating_add(1);
        }
        self.put_last(request.clone(), bytes, now_ms);
        Added::New
    }

    fn put_last(&mut self, request: VerifiedRequest, bytes: usize, now_ms: u64) {
        self.places.insert(request.digest(), self.next_place);
        let waiting = Waiting { request, bytes, since_ms: now_ms, passed_on_ms: now_ms };
        self.requests.insert(self.next_place, waiting);
        self.next_place = self.next_place.saturating_add(1);
    }

    fn remove_request(&mut self, digest: Digest) {
        let waiting = self.places.remove(&digest).and_then(|place| self.requests.remove(&place));
        let Some(Waiting { request, bytes, .. }) = waiting else { return };
        let share = if let Some(signer) = signer(&request) {
            match self.of_signer.get_mut(&signer) {
                Some(count) if *count > 1 => *count = count.saturating_sub(1),
                _ => drop(self.of_signer.remove(&signer)),
            }
            &mut self.instructions
        } else {
            &mut self.reads
        };
        *share = Share { count: share.count.saturating_sub(1), bytes: share.bytes.saturating_sub(bytes) };
    }

    /// The requests that wait, the oldest first.
    pub fn requests(&self) -> impl Iterator<Item = &VerifiedRequest> {
        self.requests.values().map(|waiting| &waiting.request)
    }

    /// This request, if it waits here, where it was checked.
    #[must_use]
    pub fn known_request(&self, request: &Request) -> Option<&VerifiedRequest> {
        let waiting = self.requests.get(self.places.get(&request.digest())?)?;
        (waiting.request.request() == request).then_some(&waiting.request)
    }

    /// This group, if it waits here, where it was checked. Its certificate may have other votes.
    #[must_use]
    pub fn known_group(&self, decision: &CompactDecision) -> Option<&VerifiedGroup> {
        let mut waiting = self.groups.get(&decision.header.cluster)?.iter().map(|waiting| &waiting.group);
        waiting.find(|group| {
            let known = group.decision();
            known.header == decision.header && known.path == decision.path && known.group == decision.group
        })
    }

    /// Requests that have waited for [`ALONE_MS_MAX`], and for as long since this last gave them; those first that it gave
    /// longest ago. A member that had no room for one then may have it now.
    pub fn due_again(&mut self, now_ms: u64) -> Vec<VerifiedRequest> {
        let is_long_ago = |then_ms: u64| now_ms.saturating_sub(then_ms) >= ALONE_MS_MAX;
        let waiting = self.requests.values_mut().take_while(|waiting| is_long_ago(waiting.since_ms));
        let mut due: Vec<&mut Waiting> = waiting.filter(|waiting| is_long_ago(waiting.passed_on_ms)).collect();
        due.sort_by_key(|waiting| waiting.passed_on_ms);
        let due = due.into_iter().take(AGAIN_MAX);
        due.map(|waiting| {
            waiting.passed_on_ms = now_ms;
            waiting.request.clone()
        })
        .collect()
    }

    /// The group to ask a cluster for: the one after those that wait. `None` if enough wait.
    #[must_use]
    pub fn due_from(&self, cluster: ClusterId, state: &State) -> Option<Cursor> {
        let waiting = self.groups.get(&cluster);
        if self.faulty.contains(&cluster) || waiting.is_some_and(|waiting| waiting.len() >= GROUPS_WAITING_MAX) {
            return None;
        }
        let newest = waiting.and_then(|waiting| waiting.back());
        Some(newest.map_or_else(|| state.due_from(cluster), |waiting| waiting.group.cursor()))
    }

    /// Adds the group that is due; any other is ignored. True if it was added.
    pub fn add_group(&mut self, group: VerifiedGroup, state: &State, now_ms: u64) -> bool {
        let is_due = self.due_from(group.from(), state).is_some_and(|due| group.is_due(due));
        if is_due {
            let bytes = length(group.decision());
            self.groups.entry(group.from()).or_default().push_back(WaitingGroup { group, bytes, since_ms: now_ms });
        }
        is_due
    }

    /// Takes nothing more from a cluster.
    pub fn exclude(&mut self, cluster: ClusterId) {
        self.faulty.insert(cluster);
        self.groups.remove(&cluster);
    }

    /// Removes what was decided, and groups that are no longer due.
    pub fn decided(&mut self, inputs: &Inputs, state: &State, now_ms: u64) {
        for request in &inputs.requests {
            self.remove_request(request.digest());
        }
        self.wait_anew(&full_signers(inputs), now_ms);
        for (cluster, waiting) in &mut self.groups {
            let due = state.due_from(*cluster);
            while waiting.front().is_some_and(|waiting| waiting.group.group().number < due.next) {
                waiting.pop_front();
            }
            // A group that continues another history than the one that was decided is of a fork.
            if waiting.front().is_some_and(|waiting| waiting.group.group().previous != due.previous) {
                waiting.clear();
            }
        }
    }

    /// The leader had no room in its queue for what waits here of these signers, and has it now: it is known from now on.
    fn wait_anew(&mut self, signers: &HashSet<AccountId>, now_ms: u64) {
        if signers.is_empty() {
            return;
        }
        let is_theirs = |waiting: &Waiting| signer(&waiting.request).is_some_and(|signer| signers.contains(&signer));
        let theirs = self.requests.iter().filter(|(_, waiting)| is_theirs(waiting));
        for place in theirs.map(|(place, _)| *place).collect::<Vec<_>>() {
            if let Some(Waiting { request, bytes, .. }) = self.requests.remove(&place) {
                self.put_last(request, bytes, now_ms);
            }
        }
    }

    /// What goes into a proposal: the group that is due from each cluster, then those after them, and requests, the oldest
    /// first, each that has room.
    #[must_use]
    pub fn choose(&self, room: Room) -> Inputs {
        let turns = (0..GROUPS_WAITING_MAX).flat_map(|turn| {
            self.groups.iter().filter_map(move |(cluster, waiting)| Some((*cluster, waiting.get(turn)?)))
        });
        let (mut groups, mut group_bytes, mut skipped) = (Vec::new(), 0_usize, HashSet::new());
        for (cluster, waiting) in turns {
            // What follows a group that has no room is not due.
            if skipped.contains(&cluster) || !Room::has_group(group_bytes, waiting.bytes) {
                skipped.insert(cluster);
                continue;
            }
            group_bytes = group_bytes.saturating_add(waiting.bytes);
            groups.push(waiting.group.clone());
        }
        let (mut requests, mut bytes) = (Vec::new(), 0_usize);
        for waiting in self.requests.values() {
            if room.is_full(requests.len()) {
                break;
            }
            if room.has(requests.len(), bytes, waiting.bytes) {
                bytes = bytes.saturating_add(waiting.bytes);
                requests.push(waiting.request.clone());
            }
        }
        Inputs { groups, requests }
    }

    /// The group that is due from each cluster, where it waits.
    pub fn due_groups(&self) -> impl Iterator<Item = &VerifiedGroup> {
        self.groups.values().filter_map(|waiting| Some(&waiting.front()?.group))
    }

    /// What this member has known for too long and the proposal leaves out, while it has room for it: a request, or else
    /// groups of which at least one can be executed beside the proposal.
    ///
    /// An honest leader proposes all requests in its queue, or has no room for the longest one. Its queue may have been
    /// full for this member's requests. One whose share for requests of a kind is full has more than fit into a proposal;
    /// one whose share for a signer is full proposes that many of the signer.
    #[must_use]
    pub fn left_out(&self, inputs: &Inputs, room: Room, now_ms: u64) -> Vec<(LeftOut, Inputs)> {
        let is_old = |since_ms: u64| now_ms.saturating_sub(since_ms) >= KNOWN_MS_MAX;
        let mut left_out = Vec::new();
        let (count, bytes) = (inputs.requests.len(), lengths(inputs.requests.iter().map(VerifiedRequest::request)));
        let has_old = self.requests.first_key_value().is_some_and(|(_, waiting)| is_old(waiting.since_ms));
        if has_old && room.has(count, bytes, Request::BYTES_MAX) {
            let taken: HashSet<Digest> = inputs.requests.iter().map(VerifiedRequest::digest).collect();
            let full = full_signers(inputs);
            let could_be_taken = |request: &VerifiedRequest| {
                !taken.contains(&request.digest()) && !signer(request).is_some_and(|signer| full.contains(&signer))
            };
            let mut old = self.requests.values().take_while(|waiting| is_old(waiting.since_ms));
            left_out.extend(old.find(|waiting| could_be_taken(&waiting.request)).map(|waiting| {
                let alone = Inputs { groups: Vec::new(), requests: vec![waiting.request.clone()] };
                (LeftOut::Request(waiting.request.digest()), alone)
            }));
        }
        let bytes = lengths(inputs.groups.iter().map(|group| &**group.decision()));
        left_out.extend(self.groups.iter().filter_map(|(cluster, waiting)| {
            let WaitingGroup { group, bytes: added, .. } =
                waiting.front().filter(|waiting| is_old(waiting.since_ms))?;
            let is_taken = inputs.groups.iter().any(|taken| taken.from() == *cluster);
            let alone = Inputs { groups: vec![group.clone()], requests: Vec::new() };
            (!is_taken && Room::has_group(bytes, *added)).then_some((LeftOut::Group(*cluster), alone))
        }));
        left_out
    }
}

/// Who signed a request; `None` for a read.
fn signer(request: &VerifiedRequest) -> Option<AccountId> {
    match request.request() {
        Request::Get(_) => None,
        Request::Instruct(signed) => Some(signed.instruction.signer),
    }
}

/// The signers of whom a proposal has as many instructions as wait at most.
fn full_signers(inputs: &Inputs) -> HashSet<AccountId> {
    let mut counts: HashMap<AccountId, usize> = HashMap::new();
    for signer in inputs.requests.iter().filter_map(signer) {
        let count = counts.entry(signer).or_default();
        *count = count.saturating_add(1);
    }
    counts.into_iter().filter(|(_, count)| *count >= OF_SIGNER_MAX).map(|(signer, _)| signer).collect()
}

fn length(value: &impl BorshSerialize) -> usize {
    borsh::object_length(value).unwrap_or(usize::MAX)
}

fn lengths<'a, T: BorshSerialize + 'a>(values: impl Iterator<Item = &'a T>) -> usize {
    values.map(length).fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::testing::{chain, get, long_get, write, write_by};
    use fastpay_core::AccountKey;

    fn room(chain: &crate::chain::Chain) -> Room {
        Room::after(chain.state(), chain.layout())
    }

    #[test]
    fn what_is_known_for_long_must_be_proposed_and_what_is_new_need_not() {
        let chain = chain();
        let mut pool = Pool::default();
        let (old, new) = (write(&chain, 0), write(&chain, 1));
        assert_eq!(pool.add_request(&old, 1_000), Added::New);
        assert_eq!(pool.add_request(&old, 5_999), Added::Known, "the first time counts");
        assert_eq!(pool.add_request(&new, 5_999), Added::New);
        let (nothing, room) = (Inputs::default(), room(&chain));
        assert!(pool.left_out(&nothing, room, 5_999).is_empty());
        assert_eq!(pool.left_out(&nothing, room, 6_000)[0].0, LeftOut::Request(old.digest()));
        let with_old = Inputs { groups: Vec::new(), requests: vec![old.clone()] };
        assert!(pool.left_out(&with_old, room, 6_000).is_empty());
        assert_eq!(pool.choose(room).requests, [old, new]);
        pool.decided(&with_old, chain.state(), 6_000);
        assert_eq!(pool.choose(room).requests.len(), 1);
    }

    #[test]
    fn what_waits_for_a_second_is_passed_on_then_and_every_second() {
        let chain = chain();
        let mut pool = Pool::default();
        let requests: Vec<_> = (0..3).map(|sequence| write(&chain, sequence)).collect();
        for (request, since_ms) in requests.iter().zip([0, 100, 2_000]) {
            pool.add_request(request, since_ms);
        }
        assert!(pool.due_again(999).is_empty());
        pool.decided(&Inputs { groups: Vec::new(), requests: vec![requests[0].clone()] }, chain.state(), 999);
        assert_eq!(pool.due_again(1_100), [requests[1].clone()]);
        assert!(pool.due_again(2_099).is_empty());
        assert_eq!(pool.due_again(2_100), [requests[1].clone()]);
        assert_eq!(pool.due_again(3_050), [requests[2].clone()]);
        assert_eq!(pool.due_again(3_100), [requests[1].clone()]);

        // Of many, each has its turn.
        let mut pool = Pool::default();
        for nonce in 0..2 * AGAIN_MAX as u64 + 1 {
            pool.add_request(&get(nonce), 0);
        }
        let turns: Vec<Vec<_>> = (0..4).map(|turn| pool.due_again(1_000 + turn * 250)).collect();
        assert_eq!(turns.iter().map(Vec::len).collect::<Vec<_>>(), [AGAIN_MAX, AGAIN_MAX, 1, 0]);
        let given: HashSet<Digest> = turns.iter().flatten().map(VerifiedRequest::digest).collect();
        assert_eq!(given.len(), 2 * AGAIN_MAX + 1);
        assert_eq!(pool.due_again(2_000), turns[0]);
    }

    #[test]
    fn a_group_waits_in_order_and_must_be_proposed_when_it_is_known_for_long() {
        use crate::chain::testing::{NOW, certify, decisions_of_coordinator, keys, opened};
        let (mut chain, mut pool, from) = (chain(), Pool::default(), ClusterId(2));
        let groups = opened(decisions_of_coordinator(10));
        assert!(!pool.add_group(groups[1].clone(), chain.state(), 0), "the first one is due");
        for (at, group) in groups.iter().enumerate() {
            assert_eq!(pool.add_group(group.clone(), chain.state(), 0), at < GROUPS_WAITING_MAX);
            assert!(!pool.add_group(group.clone(), chain.state(), 0), "once");
        }
        assert_eq!(pool.due_from(from, chain.state()), None, "enough wait");
        let (nothing, room) = (Inputs::default(), room(&chain));
        assert!(pool.left_out(&nothing, room, KNOWN_MS_MAX - 1).is_empty());
        let (what, alone) = pool.left_out(&nothing, room, KNOWN_MS_MAX).remove(0);
        assert_eq!((what, alone.groups.len()), (LeftOut::Group(from), 1));
        let mut inputs = pool.choose(room);
        assert_eq!(inputs.groups.len(), 8);
        assert!(pool.left_out(&inputs, room, KNOWN_MS_MAX).is_empty());
        let decision = groups[3].decision();
        assert_eq!(pool.known_group(decision), Some(&groups[3]));
        let mut altered = CompactDecision::clone(decision);
        altered.group.messages.clear();
        assert_eq!(pool.known_group(&altered), None);

        inputs.groups.truncate(2);
        let (_, judged) = chain.make(&keys()[0], NOW, inputs.clone()).unwrap();
        let certificate = certify(&judged.header);
        chain.advance(judged, certificate);
        pool.decided(&inputs, chain.state(), 0);
        assert_eq!(pool.choose(room).groups.first(), groups.get(2));
        pool.exclude(from);
        assert!(pool.is_empty());
        assert_eq!(pool.due_from(from, chain.state()), None, "nothing more is taken from a faulty cluster");
    }

    #[test]
    fn reads_and_one_signer_keep_nobody_else_out() {
        let chain = chain();
        let mut pool = Pool::default();
        for nonce in 0..REQUESTS_WAITING_MAX as u64 {
            assert_eq!(pool.add_request(&get(nonce), 0), Added::New);
        }
        assert_eq!(pool.add_request(&get(u64::MAX), 0), Added::Busy);
        for sequence in 0..OF_SIGNER_MAX as u64 {
            assert_eq!(pool.add_request(&write(&chain, sequence), 0), Added::New);
        }
        assert_eq!(pool.add_request(&write(&chain, OF_SIGNER_MAX as u64), 0), Added::Busy);
        let other = AccountKey::ed25519([77; 32]);
        assert_eq!(pool.add_request(&write_by(&chain, &other, 0), 0), Added::New);
        let decided = Inputs { groups: Vec::new(), requests: vec![write(&chain, 0), get(0)] };
        pool.decided(&decided, chain.state(), 0);
        assert_eq!(pool.add_request(&write(&chain, OF_SIGNER_MAX as u64), 0), Added::New);
        assert_eq!(pool.add_request(&get(u64::MAX), 0), Added::New);
    }

    #[test]
    fn too_much_is_told_to_wait() {
        let chain = chain();
        let full = || Share { count: 1, bytes: REQUEST_BYTES_WAITING_MAX - 10 };
        let mut pool = Pool { reads: full(), instructions: full(), ..Pool::default() };
        assert_eq!(pool.add_request(&write(&chain, 0), 0), Added::Busy);
        assert_eq!(pool.add_request(&get(0), 0), Added::Busy);
        assert!(pool.is_empty());
    }

    /// Two members know requests of all lengths in different orders. Whatever fills the proposal of one, the other one
    /// finds nothing that had room.
    #[test]
    fn an_honest_leader_leaves_out_nothing_that_has_room_in_whatever_order_others_know_it() {
        use crate::chain::testing::write_of;
        use rand::seq::SliceRandom as _;
        use rand::{RngExt as _, SeedableRng as _};
        let chain = chain();
        let seed = rand::random::<u64>();
        println!("seed {seed}");
        let mut random = rand::rngs::StdRng::seed_from_u64(seed);
        let mut requests: Vec<VerifiedRequest> = (0..400)
            .map(|at| {
                let length = [10, 1_000, 16_000, random.random_range(0..16_384)][random.random_range(0..4)];
                write_of(&chain, &AccountKey::ed25519([(at % 200) as u8 + 1; 32]), at, length)
            })
            .collect();
        for room in [room(&chain), Room::tight(1, 0), Room::tight(0, 0), Room::tight(50, 100_000)] {
            let (mut leader, mut judge) = (Pool::default(), Pool::default());
            requests.iter().for_each(|request| assert_eq!(leader.add_request(request, 0), Added::New));
            requests.shuffle(&mut random);
            requests.iter().for_each(|request| assert_eq!(judge.add_request(request, 0), Added::New));
            let inputs = leader.choose(room);
            assert!(!inputs.requests.is_empty());
            assert!(inputs.requests.len() < requests.len(), "not all have room");
            assert!(judge.left_out(&inputs, room, KNOWN_MS_MAX).is_empty(), "seed {seed}");
            // With room for the longest request, what the leader has left out was in none of its queues.
            let mut censored = inputs;
            let bytes = |inputs: &Inputs| lengths(inputs.requests.iter().map(VerifiedRequest::request));
            while !room.has(censored.requests.len(), bytes(&censored), Request::BYTES_MAX) {
                assert!(judge.left_out(&censored, room, KNOWN_MS_MAX).is_empty(), "seed {seed}");
                censored.requests.pop();
            }
            assert!(!judge.left_out(&censored, room, KNOWN_MS_MAX).is_empty(), "seed {seed}");
        }
    }

    /// Whoever gives the leader what fills its queue, and another member something else, must not have that member vote
    /// against the leader.
    #[test]
    fn a_leader_is_not_blamed_for_what_its_full_queue_could_not_take() {
        use crate::chain::testing::write_of;
        let (chain, s) = (chain(), AccountKey::ed25519([77; 32]));
        let room = room(&chain);
        let fill = |pool: &mut Pool, requests: &[VerifiedRequest]| {
            requests.iter().filter(|request| pool.add_request(request, 0) == Added::New).count()
        };
        let of_signer =
            |from: u64| (from..from + 64).map(|sequence| write_by(&chain, &s, sequence)).collect::<Vec<_>>();
        let long_reads: Vec<_> = (0..REQUESTS_WAITING_MAX as u64).map(long_get).collect();
        let of_many = |length| {
            let key = |at: usize| AccountKey::ed25519([(at / OF_SIGNER_MAX) as u8 + 80; 32]);
            (0..600).map(|at| write_of(&chain, &key(at), at as u64, length)).collect::<Vec<_>>()
        };
        let (long, other) = (of_many(16_384), AccountKey::ed25519([78; 32]));
        let cases = [
            ("a signer", of_signer(0), of_signer(64)),
            ("reads", long_reads, vec![get(0)]),
            ("bytes of instructions", long, vec![write_of(&chain, &other, 0, 16_384)]),
        ];
        for (what, queued, others) in cases {
            let (mut leader, mut judge) = (Pool::default(), Pool::default());
            fill(&mut leader, &queued);
            assert_eq!(fill(&mut judge, &others), others.len(), "{what}");
            assert!(others.iter().all(|request| leader.add_request(request, 1_000) == Added::Busy), "{what}");
            let inputs = leader.choose(room);
            assert!(judge.left_out(&inputs, room, KNOWN_MS_MAX).is_empty(), "{what}");
            let mut few = inputs.clone();
            few.requests.truncate(OF_SIGNER_MAX - 1);
            assert_eq!(judge.left_out(&few, room, KNOWN_MS_MAX).len(), 1, "{what}: the leader had room");
            let stranger = write_by(&chain, &AccountKey::ed25519([79; 32]), 0);
            judge.add_request(&stranger, 0);
            let is_blamed = judge.left_out(&inputs, room, KNOWN_MS_MAX).len() == 1;
            assert_eq!(is_blamed, what == "a signer", "{what}: others do not pay for one signer");
        }
    }

    /// Once the leader's queue has room again, it has the time to hear of what waits elsewhere.
    #[test]
    fn what_waits_of_a_signer_that_filled_its_share_waits_anew_once_that_is_decided() {
        let chain = chain();
        let (mut pool, room) = (Pool::default(), room(&chain));
        let (full, other) = (AccountKey::ed25519([77; 32]), write(&chain, 0));
        let waiting: Vec<_> = (64..66).map(|sequence| write_by(&chain, &full, sequence)).collect();
        for request in waiting.iter().chain([&other]) {
            pool.add_request(request, 0);
        }
        let decided = |count: u64| Inputs {
            groups: Vec::new(),
            requests: (0..count).map(|sequence| write_by(&chain, &full, sequence)).collect(),
        };
        pool.decided(&decided(63), chain.state(), 7_000);
        assert_eq!(pool.choose(room).requests, [&*waiting, std::slice::from_ref(&other)].concat());
        pool.decided(&decided(64), chain.state(), 8_000);
        assert_eq!(pool.choose(room).requests, [std::slice::from_ref(&other), &*waiting].concat());
        let with_other = Inputs { groups: Vec::new(), requests: vec![other.clone()] };
        assert!(pool.left_out(&with_other, room, 7_999 + KNOWN_MS_MAX).is_empty());
        assert_eq!(pool.left_out(&with_other, room, 8_000 + KNOWN_MS_MAX).len(), 1);
        assert_eq!(pool.due_again(8_999), [other]);
        assert_eq!(pool.due_again(9_000), waiting, "it is passed on again");
        pool.decided(&pool.choose(room), chain.state(), 9_000);
        assert!(pool.is_empty() && pool.places.is_empty() && pool.of_signer.is_empty());
        assert_eq!((pool.instructions.count, pool.instructions.bytes), (0, 0));
    }
}
