//! What waits to be proposed: clients' requests and groups of other clusters, each within bounds, with the time since
//! when this member knows it. A leader that leaves one out for long gets no vote [LEDGER 2].

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;

use borsh::BorshSerialize;
use fastpay_core::Digest;
use fastpay_ledger_state::State;
use fastpay_ledger_statement::{ClusterId, Cursor, VerifiedGroup, VerifiedRequest};

use crate::payload::Payload;

/// A leader must propose what a member has known for this long.
pub const KNOWN_MS_MAX: u64 = 5_000;
/// What has waited for so long is passed on to all members again: whoever gave it to one member alone can then not have
/// that member vote against all others. It leaves the leader three seconds.
pub const ALONE_MS_MAX: u64 = 2_000;
/// So many requests wait at most: those of four proposals.
const REQUESTS_WAITING_MAX: usize = 4 * crate::payload::REQUESTS_MAX;
/// So many bytes of requests wait at most.
const REQUEST_BYTES_WAITING_MAX: usize = 16 << 20;
/// So many groups of one cluster wait at most, of up to 1 MiB each.
const GROUPS_WAITING_MAX: usize = 8;

#[derive(Debug)]
struct Waiting {
    request: VerifiedRequest,
    bytes: usize,
    since_ms: u64,
}

/// What waits to be proposed.
#[derive(Debug, Default)]
pub struct Pool {
    requests: BTreeMap<u64, Waiting>,
    places: HashMap<Digest, u64>,
    next_place: u64,
    /// All requests at places before this one were passed on again.
    next_again: u64,
    bytes: usize,
    groups: BTreeMap<ClusterId, VecDeque<(VerifiedGroup, u64)>>,
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
    pub fn add_request(&mut self, request: VerifiedRequest, now_ms: u64) -> Added {
        let digest = request.digest();
        if self.places.contains_key(&digest) {
            return Added::Known;
        }
        let bytes = length(request.request());
        let total = self.bytes.saturating_add(bytes);
        if self.requests.len() >= REQUESTS_WAITING_MAX || total > REQUEST_BYTES_WAITING_MAX {
            return Added::Busy;
        }
        self.bytes = total;
        self.places.insert(digest, self.next_place);
        self.requests.insert(self.next_place, Waiting { request, bytes, since_ms: now_ms });
        self.next_place = self.next_place.saturating_add(1);
        Added::New
    }

    /// The requests that have waited for [`ALONE_MS_MAX`], each once.
    pub fn due_again(&mut self, now_ms: u64) -> Vec<VerifiedRequest> {
        let is_due = |waiting: &Waiting| now_ms.saturating_sub(waiting.since_ms) >= ALONE_MS_MAX;
        let due = self.requests.range(self.next_again..).take_while(|(_, waiting)| is_due(waiting));
        let (places, due): (Vec<u64>, Vec<_>) = due.map(|(place, waiting)| (*place, waiting.request.clone())).unzip();
        self.next_again = places.last().map_or(self.next_again, |place| place.saturating_add(1));
        due
    }

    /// The group to ask a cluster for: the one after those that wait. `None` if enough wait.
    #[must_use]
    pub fn due_from(&self, cluster: ClusterId, state: &State) -> Option<Cursor> {
        let waiting = self.groups.get(&cluster);
        if self.faulty.contains(&cluster) || waiting.is_some_and(|waiting| waiting.len() >= GROUPS_WAITING_MAX) {
            return None;
        }
        let newest = waiting.and_then(|waiting| waiting.back());
        Some(newest.map_or_else(|| state.due_from(cluster), |(group, _)| group.cursor()))
    }

    /// Adds the group that is due; any other is ignored. True if it was added.
    pub fn add_group(&mut self, group: VerifiedGroup, state: &State, now_ms: u64) -> bool {
        let due = self.due_from(group.from(), state);
        let is_due = due == Some(Cursor { next: group.group().number, previous: group.group().previous });
        if is_due {
            self.groups.entry(group.from()).or_default().push_back((group, now_ms));
        }
        is_due
    }

    /// Takes nothing more from a cluster.
    pub fn exclude(&mut self, cluster: ClusterId) {
        self.faulty.insert(cluster);
        self.groups.remove(&cluster);
    }

    /// Removes what was decided, and groups that are no longer due.
    pub fn decided(&mut self, inputs: &Inputs, state: &State) {
        for request in &inputs.requests {
            if let Some(waiting) = self.places.remove(&request.digest()).and_then(|place| self.requests.remove(&place))
            {
                self.bytes = self.bytes.saturating_sub(waiting.bytes);
            }
        }
        for (cluster, waiting) in &mut self.groups {
            let due = state.due_from(*cluster);
            while waiting.front().is_some_and(|(group, _)| group.group().number < due.next) {
                waiting.pop_front();
            }
            // A group that continues another history than the one that was decided is of a fork.
            if waiting.front().is_some_and(|(group, _)| group.group().previous != due.previous) {
                waiting.clear();
            }
        }
    }

    /// What goes into a proposal: one group of each cluster in turn, then requests, as long as they fit. Each further
    /// `attempt` takes less, as the one before was too much: first fewer requests, then none and fewer groups, then no
    /// group and fewer requests, down to a single one, which is always valid.
    #[must_use]
    pub fn choose(&self, attempt: u32) -> Inputs {
        let quarters = |times: u32| 4_usize.saturating_pow(times);
        let groups: usize = self.groups.values().map(VecDeque::len).sum();
        let (groups_max, requests_share) = match attempt {
            0..7 => (groups, Some(quarters(attempt))),
            7..14 => (groups.checked_div(quarters(attempt.saturating_sub(6))).unwrap_or(0), None),
            _ => (0, Some(quarters(attempt.saturating_sub(14)))),
        };
        let mut chosen = Inputs::default();
        let mut bytes = 0_usize;
        let in_turn =
            (0..GROUPS_WAITING_MAX).flat_map(|turn| self.groups.values().filter_map(move |waiting| waiting.get(turn)));
        for (group, _) in in_turn.take(groups_max) {
            let added = length(&group.clone().into_decision());
            if bytes.saturating_add(added) > Payload::BYTES_MAX_OF_INPUTS {
                break;
            }
            bytes = bytes.saturating_add(added);
            chosen.groups.push(group.clone());
        }
        let requests_max = requests_share.map_or(0, |share| self.requests.len().div_ceil(share));
        for waiting in self.requests.values().take(requests_max) {
            if !Payload::has_room(chosen.requests.len(), bytes, waiting.bytes) {
                break;
            }
            bytes = bytes.saturating_add(waiting.bytes);
            chosen.requests.push(waiting.request.clone());
        }
        chosen
    }

    /// What this member has known for too long and the proposal leaves out, while it has room for it.
    #[must_use]
    pub fn left_out(&self, inputs: &Inputs, payload_bytes: usize, now_ms: u64) -> Option<(LeftOut, Inputs)> {
        let is_old = |since_ms: u64| now_ms.saturating_sub(since_ms) >= KNOWN_MS_MAX;
        for (cluster, waiting) in &self.groups {
            let Some((group, _)) = waiting.front().filter(|(_, since_ms)| is_old(*since_ms)) else { continue };
            let is_taken = inputs.groups.iter().any(|taken| taken.from() == *cluster);
            let fits =
                payload_bytes.saturating_add(length(&group.clone().into_decision())) <= Payload::BYTES_MAX_OF_INPUTS;
            if !is_taken && fits {
                let alone = Inputs { groups: vec![group.clone()], requests: Vec::new() };
                return Some((LeftOut::Group(*cluster), alone));
            }
        }
        if self.requests.first_key_value().is_none_or(|(_, waiting)| !is_old(waiting.since_ms)) {
            return None;
        }
        let taken: HashSet<Digest> = inputs.requests.iter().map(VerifiedRequest::digest).collect();
        let left_out = self.requests.values().take_while(|waiting| is_old(waiting.since_ms)).find(|waiting| {
            !taken.contains(&waiting.request.digest())
                && Payload::has_room(inputs.requests.len(), payload_bytes, waiting.bytes)
        })?;
        let alone = Inputs { groups: Vec::new(), requests: vec![left_out.request.clone()] };
        Some((LeftOut::Request(left_out.request.digest()), alone))
    }
}

fn length(value: &impl BorshSerialize) -> usize {
    borsh::object_length(value).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::testing::{chain, write};

    #[test]
    fn what_is_known_for_long_must_be_proposed_and_what_is_new_need_not() {
        let chain = chain();
        let mut pool = Pool::default();
        let (old, new) = (write(&chain, 0), write(&chain, 1));
        assert_eq!(pool.add_request(old.clone(), 1_000), Added::New);
        assert_eq!(pool.add_request(old.clone(), 5_999), Added::Known, "the first time counts");
        assert_eq!(pool.add_request(new.clone(), 5_999), Added::New);
        let nothing = Inputs::default();
        assert!(pool.left_out(&nothing, 0, 5_999).is_none());
        assert_eq!(pool.left_out(&nothing, 0, 6_000).unwrap().0, LeftOut::Request(old.digest()));
        let with_old = Inputs { groups: Vec::new(), requests: vec![old.clone()] };
        assert!(pool.left_out(&with_old, 100, 6_000).is_none());
        let full = Payload::BYTES_MAX_OF_INPUTS;
        assert!(pool.left_out(&nothing, full, 6_000).is_none(), "no room");
        assert_eq!(pool.choose(0).requests, [old, new]);
        pool.decided(&with_old, chain.state());
        assert_eq!(pool.choose(0).requests.len(), 1);
    }

    #[test]
    fn what_waits_for_two_seconds_is_passed_on_again_once() {
        let chain = chain();
        let mut pool = Pool::default();
        let requests: Vec<_> = (0..3).map(|sequence| write(&chain, sequence)).collect();
        for (request, since_ms) in requests.iter().zip([0, 100, 2_000]) {
            pool.add_request(request.clone(), since_ms);
        }
        assert!(pool.due_again(ALONE_MS_MAX - 1).is_empty());
        pool.decided(&Inputs { groups: Vec::new(), requests: vec![requests[0].clone()] }, chain.state());
        assert_eq!(pool.due_again(ALONE_MS_MAX + 100), [requests[1].clone()]);
        assert!(pool.due_again(ALONE_MS_MAX + 1_999).is_empty());
        assert_eq!(pool.due_again(ALONE_MS_MAX + 2_000), [requests[2].clone()]);
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
        let nothing = Inputs::default();
        assert!(pool.left_out(&nothing, 0, KNOWN_MS_MAX - 1).is_none());
        let (what, alone) = pool.left_out(&nothing, 0, KNOWN_MS_MAX).unwrap();
        assert_eq!((what, alone.groups.len()), (LeftOut::Group(from), 1));
        assert!(pool.left_out(&pool.choose(0), 0, KNOWN_MS_MAX).is_none());
        assert_eq!([0, 6, 7, 8, 14].map(|attempt| pool.choose(attempt).groups.len()), [8, 8, 2, 0, 0]);

        let inputs = pool.choose(7);
        let (_, judged) = chain.make(&keys()[0], NOW, inputs.clone()).unwrap();
        let certificate = certify(&judged.header);
        chain.advance(judged, certificate);
        pool.decided(&inputs, chain.state());
        assert_eq!(pool.choose(0).groups.first(), groups.get(2));
        pool.exclude(from);
        assert!(pool.is_empty());
        assert_eq!(pool.due_from(from, chain.state()), None, "nothing more is taken from a faulty cluster");
    }

    #[test]
    fn too_much_is_told_to_wait() {
        let chain = chain();
        let mut pool = Pool { bytes: REQUEST_BYTES_WAITING_MAX - 100, ..Pool::default() };
        assert_eq!(pool.add_request(write(&chain, 0), 0), Added::Busy);
        assert!(pool.is_empty());
    }

    #[test]
    fn less_is_chosen_after_too_much() {
        let chain = chain();
        let mut pool = Pool::default();
        for sequence in 0..10 {
            pool.add_request(write(&chain, sequence), 0);
        }
        assert_eq!(
            [0, 1, 2, 6, 7, 13, 14, 20].map(|attempt| pool.choose(attempt).requests.len()),
            [10, 3, 1, 1, 0, 0, 10, 1]
        );
    }
}
