//! What waits is bounded, and a proposal that would add too much is not valid.

use fastpay_core::{Amount, Asset, SequenceNumber, TransactionIndex};
use fastpay_ledger_state::{FoldError, LOOK_UP_BYTES_MAX, PENDING_MAX, WAITING_BYTES_MAX, WAITING_MESSAGES_MAX};
use fastpay_ledger_statement::{
    Action, ClusterId, CommitteeEvent, Condition, EventKind, Funding, GROUP_BYTES_MAX, GROUP_MESSAGES_MAX, Get,
    Instruction, Key, Message, Outcome, Receiver, Rejection, Request, StateKey, Time, VALUE_BYTES_MAX, Value,
    VerifiedRequest,
};

use crate::people::{account, client};
use crate::world::{COMMITTEE, COORDINATOR, SETTLEMENT, STEP_MS, World, namespace};

fn key() -> Key {
    Key::new(b"large".to_vec()).unwrap()
}

fn get(nonce: u64) -> Request {
    Request::Get(Get { namespace: namespace("first"), key: key(), nonce })
}

fn gets(world: &World, nonces: std::ops::Range<u64>) -> Vec<VerifiedRequest> {
    nonces.map(|nonce| get(nonce).verify(world.layout().deployment()).unwrap()).collect()
}

/// Writes the longest value, which every look-up then finds.
fn write_large(world: &mut World) -> ClusterId {
    let value = Some(Value::new(vec![7; VALUE_BYTES_MAX]).unwrap());
    let action = Action::Write { namespace: namespace("first"), key: key(), condition: Condition::Always, value };
    world.act(0, action).unwrap();
    world.partition().of_value(&namespace("first"), &key())
}

impl World {
    /// The number and the length of the messages that wait, which must be what the cluster has counted.
    fn waiting(&self, at: ClusterId, to: Receiver) -> (u64, u64) {
        let (first, end, counted): (u64, u64, u64) = self.read(at, &StateKey::Queue(to)).unwrap_or_default();
        let length = |number| self.clusters[&at].state.read(&StateKey::Queued(to, number)).unwrap().len() as u64;
        assert_eq!((first..end).map(length).sum::<u64>(), counted);
        (end - first, counted)
    }
}

#[test]
fn reads_are_busy_while_too_much_waits_and_found_again_later() {
    let mut world = World::new(1);
    let shard = write_large(&mut world);
    let fit = LOOK_UP_BYTES_MAX / VALUE_BYTES_MAX as u64;
    let requests = gets(&world, 0..2 * fit);
    let digests: Vec<_> = requests.iter().map(VerifiedRequest::digest).collect();
    world.decide(shard, vec![], requests).unwrap();
    assert!(world.waiting(shard, Receiver::Clients).1 < LOOK_UP_BYTES_MAX);
    // The bytes are counted as the messages go, until nothing is left to count.
    while world.waiting(shard, Receiver::Clients) != (0, 0) {
        world.decide(shard, vec![], vec![]).unwrap();
    }
    let found = |result: &Result<Outcome, Rejection>| matches!(result, Ok(Outcome::Found { .. }));
    let answers: Vec<_> = digests.iter().map(|digest| world.answers[digest].clone()).collect();
    let count = answers.iter().filter(|answer| found(answer)).count();
    assert!((fit as usize - 1..=fit as usize + 1).contains(&count), "{count} of {fit}");
    assert!(answers[..count].iter().all(found));
    assert!(answers[count..].iter().all(|answer| *answer == Err(Rejection::Busy)));
    // Nothing waits any more.
    assert!(found(&world.ask(shard, get(0))));
}

/// A group cannot be trimmed, so all its look-ups must be answered without a bound being exceeded.
#[test]
fn a_group_full_of_reads_can_always_be_taken() {
    let mut world = World::new(2);
    let shard = write_large(&mut world);
    let before = world.clusters[&shard].sent.get(&Receiver::Cluster(COORDINATOR)).map_or(0, Vec::len);
    let messages: Vec<_> = (0..GROUP_MESSAGES_MAX as u64).map(|nonce| Message::Request(get(nonce))).collect();
    world.clusters.get_mut(&COORDINATOR).unwrap().forge(Receiver::Cluster(shard), messages);
    let groups = world.due(shard, usize::MAX);
    world.decide(shard, groups, vec![]).unwrap();
    while world.waiting(shard, Receiver::Cluster(COORDINATOR)) != (0, 0) {
        world.decide(shard, vec![], vec![]).unwrap();
    }
    let sent = &world.clusters[&shard].sent[&Receiver::Cluster(COORDINATOR)][before..];
    assert!(sent.len() <= 9, "{} groups", sent.len());
    assert_eq!(sent.iter().map(|decision| decision.group.messages.len()).sum::<usize>(), GROUP_MESSAGES_MAX);
}

#[test]
fn a_proposal_after_which_too_many_messages_wait_is_not_valid() {
    let mut world = World::new(1);
    let shard = world.settlement();
    let fit = WAITING_MESSAGES_MAX + GROUP_MESSAGES_MAX as u64;
    let requests = gets(&world, 0..fit + 1);
    let root = world.clusters[&shard].state.root();
    assert_eq!(world.decide(shard, vec![], requests.clone()), Err(FoldError::Overfull(Receiver::Clients)));
    assert_eq!(world.clusters[&shard].state.root(), root);
    // One fewer is. Then as much waits as can.
    world.decide(shard, vec![], requests[1..].to_vec()).unwrap();
    let more = gets(&world, fit + 1..fit + 2 + GROUP_MESSAGES_MAX as u64);
    assert_eq!(world.decide(shard, vec![], more.clone()), Err(FoldError::Overfull(Receiver::Clients)));
    world.decide(shard, vec![], more[..1].to_vec()).unwrap();
    world.decide(shard, vec![], vec![]).unwrap();
    world.decide(shard, vec![], vec![]).unwrap();
    assert_eq!(world.answers[&more[0].digest()], Ok(Outcome::Missing));
}

#[test]
fn a_proposal_after_which_too_many_bytes_wait_is_not_valid() {
    let mut world = World::new(2);
    let (deployment, signer) = (world.layout().deployment(), client(0).account());
    let shard = ClusterId(1);
    let value = Some(Value::new(vec![7; VALUE_BYTES_MAX]).unwrap());
    let write = |sequence| {
        let (key, condition, value) = (key(), Condition::Always, value.clone());
        let action = Action::Write { namespace: namespace("first"), key, condition, value };
        let sequence = SequenceNumber(sequence);
        let instruction = Instruction { deployment, shard, signer, sequence, action };
        Request::Instruct(Box::new(instruction.signed(&client(0)))).verify(deployment).unwrap()
    };
    // A group holds fewer than 64 of them, and fewer than 512 wait.
    let requests: Vec<_> = (0..576).map(write).collect();
    let overfull = Err(FoldError::Overfull(Receiver::Cluster(shard)));
    assert_eq!(world.decide(COORDINATOR, vec![], requests.clone()), overfull);
    world.decide(COORDINATOR, vec![], requests[..560].to_vec()).unwrap();
    let (count, bytes) = world.waiting(COORDINATOR, Receiver::Cluster(shard));
    assert!(bytes <= WAITING_BYTES_MAX && bytes > count * VALUE_BYTES_MAX as u64, "{bytes}");
}

/// A leader can always propose an installation, alone if need be, and its event comes after those that wait.
#[test]
fn a_rotation_is_taken_however_many_events_wait() {
    let mut world = World::new(2);
    let install = world.matured(1, 1);
    let payer = client(0).account();
    let fund = Funding { committee: COMMITTEE, account: account(1), asset: Asset::ETHER, amount: Amount(1), payer };
    let to = Receiver::Cluster(SETTLEMENT);
    // As many as the first group holds, and wait after it.
    let event = Message::Event(CommitteeEvent { index: TransactionIndex(1), kind: EventKind::Funded(fund) });
    let fit = GROUP_BYTES_MAX / borsh::object_length(&event).unwrap() + WAITING_MESSAGES_MAX as usize;
    let traitor = world.clusters.get_mut(&ClusterId(1)).unwrap();
    for count in [9_000, 9_000, 9_000, 9_000, fit - 36_000, 1] {
        traitor.forge(to, vec![Message::Fund(fund); count]);
    }
    let groups = world.due(SETTLEMENT, usize::MAX);
    let overfull = Err(FoldError::Overfull(Receiver::Committee(COMMITTEE)));
    assert_eq!(world.decide(SETTLEMENT, groups.clone(), vec![]), overfull);
    world.decide(SETTLEMENT, groups[..5].to_vec(), vec![]).unwrap();

    let index = TransactionIndex(fit as u64 + 1);
    let installed = Outcome::Installed(fastpay_core::Epoch(1), index);
    assert_eq!(world.settle_at(Time(world.now().0 + STEP_MS), 5, install), Ok(installed));
    for _ in 0..3 {
        world.decide(SETTLEMENT, vec![], vec![]).unwrap();
    }
    let newest = world.events().pop().unwrap();
    assert!(newest.index == index && matches!(newest.kind, EventKind::Installed { .. }), "{newest:?}");
}

#[test]
fn no_more_requests_await_answers_of_a_cluster_than_two_groups_hold() {
    let mut world = World::new(2);
    let requests = gets(&world, 0..PENDING_MAX + 1);
    let last = requests.last().unwrap().clone();
    world.decide(COORDINATOR, vec![], requests.clone()).unwrap();
    assert_eq!(world.answers[&last.digest()], Err(Rejection::Busy));
    // As the cluster answers, there is room again.
    for _ in 0..4 {
        world.run();
    }
    assert_eq!(world.answers[&requests[0].digest()], Ok(Outcome::Missing));
    assert_eq!(world.ask(COORDINATOR, last.into_request()), Ok(Outcome::Missing));
}

#[test]
fn a_proposal_that_repeats_a_request_is_not_valid() {
    let mut world = World::new(1);
    let shard = world.settlement();
    let instruction = world.sign(0, Action::Open).verify(world.layout().deployment()).unwrap();
    for request in [instruction, gets(&world, 0..1).remove(0)] {
        let other = gets(&world, 1..2).remove(0);
        let repeated = vec![request.clone(), other, request.clone()];
        assert_eq!(world.decide(shard, vec![], repeated), Err(FoldError::Repeated(request.digest())));
    }
}
