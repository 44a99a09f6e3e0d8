use fastpay_ledger_statement::{Answers, CLOCK_AHEAD_MS_MAX, CLOCK_BEHIND_MS_MAX, Header, VerifiedRequest, Wire};
use malachite::app::engine::host::SyncedValueOutcome;
use malachite::app::types::ProposedValue;

use super::*;
use crate::chain::testing::{chain, get, keys, write};
use crate::pool::{ALONE_MS_MAX, Added, Inputs, KNOWN_MS_MAX};
use crate::store::Proposed;

/// Member 0, at height 1 in round 30. Member 0 leads the height's first round, member 1 the next one, and so on.
struct Fixture {
    host: Host,
    /// What member 0 passes on to another member.
    passed_on: mpsc::Receiver<Vec<u8>>,
    _folder: tempfile::TempDir,
    network: mpsc::Receiver<NetworkMsg<Cluster>>,
}

fn host() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path()).unwrap();
    let chain = chain();
    let cluster = Cluster { deployment: chain.layout().deployment(), cluster: chain.layout().us() };
    let (network, received) = mpsc::channel(16);
    let (heights, _) = watch::channel(0);
    let (relay, passed_on) = mpsc::channel(16);
    let relay = Relay::to(keys()[1].public(), relay);
    let keys = keys()[0].clone();
    let polkas = Polkas::default();
    let mut host = Host::new(Parts { keys, cluster, votes: true, chain, store, heights, relay, network, polkas });
    host.polkas.begin(1);
    (host.height, host.round) = (1, Round::new(30));
    Fixture { host, passed_on, _folder: folder, network: received }
}

/// A proposal of member 1 with this time.
fn proposed(now: Time, inputs: Inputs) -> Proposed {
    chain().make(&keys()[1], now, inputs).unwrap().0
}

/// The part in which a member sends it.
fn part(by: usize, valid_round: i64, round: i64, header: Header, payload: Vec<u8>) -> Part {
    let proposer = MemberAddress(keys()[by].public());
    let mut part = Part { round, valid_round, proposer, header, payload, signature: [0; 64] };
    part.signature = keys()[by].sign(part.digest()).0;
    part
}

fn new_part(proposed: &Proposed) -> Part {
    part(1, -1, 1, *proposed.header(), proposed.payload().to_vec())
}

/// The engine sees that members 1 to 3 prevote a header in a round of height 1.
fn prevote_by_quorum(host: &Host, round: u32, header: Digest) {
    for keys in &keys()[1..] {
        host.polkas.see(&crate::engine::testing::prevote(1, round, Some(header), MemberAddress(keys.public())));
    }
}

fn is_valid(value: Option<ProposedValue<Cluster>>) -> Option<bool> {
    value.map(|value| value.validity.is_valid())
}

/// A liar shows this member another prevote than members 1 and 2, who have locked the value with its vote.
#[tokio::test]
async fn what_others_locked_with_the_vote_of_a_member_that_voted_twice_is_judged_and_kept() {
    let Fixture { mut host, _folder, .. } = host();
    let now = host.now();
    let see = |host: &Host, by: usize, id| {
        host.polkas.see(&crate::engine::testing::prevote(1, 1, Some(id), MemberAddress(keys()[by].public())));
    };
    let (locked, other) = (proposed(now, Inputs::default()), proposed(Time(now.0 + 1), Inputs::default()));
    let (header, payload) = (*locked.header(), locked.payload().to_vec());
    let again = || part(2, 1, 6, header, payload.clone());
    see(&host, 3, other.header().id());
    see(&host, 1, header.id());
    see(&host, 2, header.id());
    assert_eq!(is_valid(host.receive(again()).unwrap()), None, "two are no quorum");
    see(&host, 3, header.id());
    assert_eq!(is_valid(host.receive(again()).unwrap()), Some(true));
    for at in 0..PROPOSED_MAX as i64 + 20 {
        let round = 9 + 4 * at;
        host.round = Round::from(round);
        let newer = proposed(Time(now.0 + 2 + at as u64), Inputs::default());
        let sent = part(1, -1, round, *newer.header(), newer.payload().to_vec());
        assert_eq!(is_valid(host.receive(sent).unwrap()), Some(true), "round {round}");
    }
    assert!(host.store.under_way_count() <= PROPOSED_MAX);
    assert!(host.store.under_way(&header.id()).unwrap().is_some(), "it may be decided");
}

#[tokio::test]
async fn a_new_proposal_is_its_makers_own_of_now_and_leaves_nothing_out() {
    let Fixture { mut host, .. } = host();
    let now = host.now();
    let good = proposed(now, Inputs::default());
    assert_eq!(is_valid(host.receive(new_part(&good)).unwrap()), Some(true));
    assert!(host.store.under_way(&good.header().id()).unwrap().is_some(), "on disk before the engine may vote");

    // Another member proposes it as its own: as new no, and as one that a quorum has prevoted yes.
    let (header, payload) = (*good.header(), good.payload().to_vec());
    assert_eq!(is_valid(host.receive(part(2, -1, 2, header, payload.clone())).unwrap()), Some(false));
    let again = || part(2, 1, 6, header, payload.clone());
    assert_eq!(is_valid(host.receive(again()).unwrap()), None, "no quorum has prevoted it");
    prevote_by_quorum(&host, 1, header.id());
    assert_eq!(is_valid(host.receive(again()).unwrap()), Some(true));

    let margin = 60_000;
    let (behind, ahead) = (now.0 - CLOCK_BEHIND_MS_MAX - margin, now.0 + CLOCK_AHEAD_MS_MAX + margin);
    for (new, time, is_valid_again) in [(5, behind, true), (9, ahead, false), (13, u64::MAX, false)] {
        let late = proposed(Time(time), Inputs::default());
        let by_member_1 = |valid_round, round| part(1, valid_round, round, *late.header(), late.payload().to_vec());
        host.judged_in.clear();
        assert_eq!(is_valid(host.receive(by_member_1(-1, new)).unwrap()), Some(false));
        prevote_by_quorum(&host, u32::try_from(new).unwrap(), late.header().id());
        // Whether it is late was asked when it was new. Ahead of the clock nothing is ever valid.
        assert_eq!(is_valid(host.receive(by_member_1(new, 17)).unwrap()), Some(is_valid_again), "{time}");
    }

    let request = write(&host.chain, 0);
    host.pool.add_request(&request, host.clock.now_ms() - KNOWN_MS_MAX);
    let empty = proposed(Time(now.0 + 1), Inputs::default());
    host.judged_in.clear();
    assert_eq!(is_valid(host.receive(new_part(&empty)).unwrap()), Some(false), "it leaves a request out");
    let with_request = proposed(Time(now.0 + 2), Inputs { groups: Vec::new(), requests: vec![request] });
    assert_eq!(is_valid(host.receive(new_part(&with_request)).unwrap()), Some(true));
}

/// Whoever gives each member one request of its own would otherwise have all vote against all.
#[tokio::test]
async fn what_one_member_alone_knows_is_passed_on_to_the_leader() {
    let Fixture { mut host, mut passed_on, .. } = host();
    let now = host.now();
    let request = write(&host.chain, 0);
    let (reply, _) = oneshot::channel();
    let command = Command::Submit { requests: vec![request.clone()], is_relayed: true, waiter: None, reply };
    host.carry_out(command).unwrap();
    host.pass_on_again();
    assert!(passed_on.try_recv().is_err(), "it came from a member");
    host.clock = Clock::at(now.0 + ALONE_MS_MAX);
    host.pass_on_again();
    assert_eq!(passed_on.try_recv().unwrap(), request.request().encode());
    host.clock = Clock::at(now.0 + KNOWN_MS_MAX);
    let empty = proposed(host.now(), Inputs::default());
    assert_eq!(is_valid(host.receive(new_part(&empty)).unwrap()), Some(false));
    assert_eq!(passed_on.try_recv().unwrap(), request.request().encode(), "the leader left it out");
}

#[tokio::test]
async fn what_is_proposed_is_known_from_then_on() {
    let Fixture { mut host, .. } = host();
    let request = write(&host.chain, 0);
    let inputs = Inputs { groups: Vec::new(), requests: vec![request.clone()] };
    let good = proposed(host.now(), inputs);
    assert_eq!(is_valid(host.receive(new_part(&good)).unwrap()), Some(true));
    assert_eq!(host.pool.choose(host.chain.room()).requests, [request]);
}

#[tokio::test]
async fn parts_that_are_forged_altered_or_of_another_height_are_ignored() {
    let Fixture { mut host, .. } = host();
    let now = host.now();
    let (good, other) =
        (proposed(now, Inputs::default()), Inputs { groups: Vec::new(), requests: vec![write(&host.chain, 0)] });
    let other = proposed(now, other);
    let mut forged = new_part(&good);
    forged.signature[0] ^= 1;
    let mut by_nobody = new_part(&good);
    by_nobody.proposer = MemberAddress(MemberKeys::from_seed([77; 32]).public());
    let another_payload = part(1, -1, 1, *good.header(), other.payload().to_vec());
    for ignored in [forged, by_nobody, another_payload] {
        assert_eq!(is_valid(host.receive(ignored).unwrap()), None);
        assert!(host.store.under_way(&good.header().id()).unwrap().is_none());
    }
}

#[tokio::test]
async fn of_a_round_only_the_leaders_first_two_headers_are_judged() {
    let Fixture { mut host, .. } = host();
    let now = host.now();
    let headers = [0, 1, 2].map(|ahead| proposed(Time(now.0 + ahead), Inputs::default()));
    let by = |by, valid_round, round, at: usize| {
        part(by, valid_round, round, *headers[at].header(), headers[at].payload().to_vec())
    };
    // Nobody leads a round before the first. No round is before itself, and none before round 0.
    for ignored in [by(2, -1, 1, 0), by(1, -1, -3, 0), by(1, 1, 1, 0), by(1, 2, 1, 0), by(1, -2, 1, 0), by(0, 0, 0, 0)]
    {
        assert_eq!(is_valid(host.receive(ignored).unwrap()), None);
        assert!(host.store.under_way(&headers[0].header().id()).unwrap().is_none());
    }
    let expected = [(0, Some(true)), (0, None), (1, Some(true)), (2, None)];
    for (at, expected) in expected {
        assert_eq!(is_valid(host.receive(by(1, -1, 1, at)).unwrap()), expected, "header {at}");
    }
    assert_eq!(is_valid(host.receive(by(1, -1, 5, 2)).unwrap()), Some(true), "another round");
}

/// A leader that sends its proposal to some members only would otherwise have the others wait for the next height.
#[tokio::test]
async fn what_another_leader_proposed_is_passed_on_as_it_came() {
    let Fixture { mut host, mut network, .. } = host();
    let good = proposed(host.now(), Inputs::default());
    let (id, part) = (good.header().id(), new_part(&good));
    let leader = part.proposer;
    host.publish_again(Round::new(1), Round::Nil, leader, &id).await.unwrap();
    assert!(network.try_recv().is_err(), "it is not known");
    assert_eq!(is_valid(host.receive(part.clone()).unwrap()), Some(true));
    host.publish_again(Round::new(5), Round::Nil, leader, &id).await.unwrap();
    assert!(network.try_recv().is_err(), "it is not the proposal of that round");
    host.publish_again(Round::new(1), Round::Nil, leader, &id).await.unwrap();
    let NetworkMsg::PublishProposalPart(message) = network.try_recv().unwrap();
    assert_eq!(message.content, StreamContent::Data(part));
    // In its own round it proposes that itself.
    host.publish_again(Round::new(4), Round::new(1), host.me, &id).await.unwrap();
    let NetworkMsg::PublishProposalPart(message) = network.try_recv().unwrap();
    let own = self::part(0, 1, 4, *good.header(), good.payload().to_vec());
    assert_eq!(message.content, StreamContent::Data(own));
}

#[tokio::test]
async fn early_parts_are_kept_within_bounds_and_judged_when_their_round_comes() {
    let Fixture { mut host, .. } = host();
    let now = host.now();
    for ahead in 0..5 {
        let early = proposed(Time(now.0 + ahead), Inputs::default());
        let early = part(1, -1, 33, *early.header(), early.payload().to_vec());
        assert_eq!(is_valid(host.receive(early).unwrap()), None);
    }
    assert_eq!(host.early.values().map(Vec::len).sum::<usize>(), EARLY_MAX);
    assert_eq!(host.judge_early().unwrap().len(), 0, "it is still round 30");
    host.round = Round::new(33);
    assert_eq!(host.judge_early().unwrap().len(), EARLY_MAX);
}

#[tokio::test]
async fn another_payload_than_the_headers_is_the_peers_fault_and_wedges_nothing() {
    let Fixture { mut host, .. } = host();
    let now = host.now();
    let good = proposed(now, Inputs::default());
    let other = proposed(now, Inputs { groups: Vec::new(), requests: vec![write(&host.chain, 0)] });
    let mixed = borsh::to_vec(&(good.header(), other.payload())).unwrap();
    let mut altered = *good.header();
    altered.state = Digest::repeat_byte(1);
    let altered = Proposed::new(altered.signed(&keys()[1]), good.payload().to_vec()).unwrap().encode();
    let proposer = MemberAddress(keys()[1].public());
    for lie in [b"nothing".to_vec(), mixed, altered] {
        let outcome = host.receive_synced(EngineHeight(1), Round::new(0), proposer, &lie).unwrap();
        assert!(matches!(outcome, SyncedValueOutcome::PeerFault));
    }
    let later = host.receive_synced(EngineHeight(2), Round::new(0), proposer, &good.encode()).unwrap();
    assert!(matches!(later, SyncedValueOutcome::PeerFault), "of another height than was asked for");
    let outcome = host.receive_synced(EngineHeight(1), Round::new(0), proposer, &good.encode()).unwrap();
    let SyncedValueOutcome::Verdict(value) = outcome else { panic!("the true one is taken from the next peer") };
    assert!(value.validity.is_valid());
}

/// A cluster that cannot decide makes new proposals with every round.
#[tokio::test]
async fn what_a_height_without_an_end_leaves_behind_is_bounded_and_what_is_prevoted_stays() {
    let Fixture { mut host, _folder, .. } = host();
    let now = host.now();
    let mut first = None;
    for at in 0..PROPOSED_MAX as i64 + 20 {
        let round = 1 + 4 * at;
        host.round = Round::from(round);
        let proposed = proposed(Time(now.0 + at as u64), Inputs::default());
        let sent = part(1, -1, round, *proposed.header(), proposed.payload().to_vec());
        assert_eq!(is_valid(host.receive(sent).unwrap()), Some(true), "round {round}");
        let id = *first.get_or_insert(proposed.header().id());
        prevote_by_quorum(&host, 1, id);
        assert!(host.store.under_way_count() <= PROPOSED_MAX && host.judged.len() <= JUDGED_MAX, "round {round}");
        assert!(host.store.under_way(&proposed.header().id()).unwrap().is_some());
    }
    assert!(host.store.under_way(&first.unwrap()).unwrap().is_some(), "it may be decided");
}

/// What one client asks of a member, and for which it waits.
fn submit(host: &mut Host, requests: Vec<VerifiedRequest>, id: u64) -> (Vec<Added>, mpsc::Receiver<Answers>) {
    let (answers, answered) = mpsc::channel(1);
    let (reply, mut added) = oneshot::channel();
    let waiter = Some(Waiter { id, answers });
    host.carry_out(Command::Submit { requests, is_relayed: false, waiter, reply }).unwrap();
    (added.try_recv().unwrap(), answered)
}

#[tokio::test]
async fn a_client_whose_requests_are_not_taken_keeps_no_other_one_out() {
    let Fixture { mut host, passed_on, .. } = host();
    drop(passed_on);
    let requests: Vec<_> = (0..4_096).map(|sequence| write(&host.chain, sequence)).collect();
    let (added, _first) = submit(&mut host, requests.clone(), 0);
    let taken = |added: &[Added], what| added.iter().filter(|added| **added == what).count();
    assert_eq!((taken(&added, Added::New), taken(&added, Added::Busy)), (64, 4_032));
    let (again, _second) = submit(&mut host, requests, 1);
    assert_eq!((taken(&again, Added::Known), taken(&again, Added::Busy)), (64, 4_032));
    assert_eq!(host.waiters.len(), 64, "none waits for what is not taken");
    assert!(host.waiters.values().all(|waiters| waiters.len() == 2));
    assert_eq!(submit(&mut host, vec![get(0)], 2).0, [Added::New], "another client");
}

#[tokio::test]
async fn waiters_are_bounded_and_those_who_are_gone_make_room_once_a_second() {
    let Fixture { mut host, .. } = host();
    let now = host.now();
    let (answers, answered) = mpsc::channel(1);
    for at in 0..WAITERS_MAX as u64 {
        let waiter = Waiter { id: at, answers: answers.clone() };
        host.waiters.insert(Digest::new(*blake3::hash(&at.to_le_bytes()).as_bytes()), vec![waiter]);
    }
    host.clock = Clock::at(now.0);
    assert_eq!(submit(&mut host, vec![get(0)], 0).0, [Added::Busy]);
    assert!(host.pool.is_empty(), "whoever is told that it is not taken must not find it carried out");
    drop(answered);
    host.clock = Clock::at(now.0 + PRUNE_INTERVAL_MS - 1);
    assert_eq!(submit(&mut host, vec![get(0)], 0).0, [Added::Busy], "it has just looked");
    host.clock = Clock::at(now.0 + PRUNE_INTERVAL_MS);
    assert_eq!(submit(&mut host, vec![get(0)], 0).0, [Added::New]);
    assert_eq!(host.waiters.len(), 1);
}
