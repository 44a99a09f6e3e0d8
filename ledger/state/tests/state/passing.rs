//! Requests that a coordinator passes on, and the answers that it passes back.

use fastpay_core::Digest;
use fastpay_ledger_state::FoldError;
use fastpay_ledger_statement::{Answer, ClusterId, Get, Key, Message, Outcome, Receiver, Request, StateKey};

use crate::world::{COORDINATOR, World, namespace};

/// A read for which this shard is responsible.
fn get_at(world: &World, shard: ClusterId) -> Request {
    let get = |nonce: u64| {
        let key = Key::new(nonce.to_le_bytes().to_vec()).unwrap();
        Request::Get(Get { namespace: namespace("first"), key, nonce })
    };
    (0..).map(get).find(|get| world.partition().of_request(get) == shard).unwrap()
}

/// What a quorum of a shard makes up for the coordinator, which takes it or not.
fn answered(world: &mut World, shard: ClusterId, requests: &[Digest]) -> Result<(), FoldError> {
    let answer = |request: &Digest| Message::Answer(Answer { request: *request, result: Ok(Outcome::Missing) });
    let cluster = world.clusters.get_mut(&shard).unwrap();
    cluster.forge(Receiver::Cluster(COORDINATOR), requests.iter().map(answer).collect());
    let groups = world.due(COORDINATOR, usize::MAX);
    world.decide(COORDINATOR, groups, vec![])
}

#[test]
fn an_answer_is_passed_back_from_the_cluster_that_was_asked_and_once() {
    let [one, two] = [1, 2].map(ClusterId);
    let asked = || {
        let mut world = World::new(2);
        let request = get_at(&world, one);
        let digest = world.submit(COORDINATOR, request);
        world.step(COORDINATOR, usize::MAX, usize::MAX);
        (world, digest)
    };
    let faulty = |from| Err(FoldError::Faulty { from, number: 1 });
    let (mut world, digest) = asked();
    assert_eq!(answered(&mut world, two, &[digest]), faulty(two), "another one was asked");
    let (mut world, digest) = asked();
    assert_eq!(answered(&mut world, one, &[Digest::ZERO]), faulty(one), "nobody asked");
    assert_eq!(world.answers.get(&digest), None);
    let (mut world, digest) = asked();
    assert_eq!(answered(&mut world, one, &[digest, digest]), faulty(one), "one answer to one request");
    let (mut world, digest) = asked();
    assert_eq!(answered(&mut world, one, &[digest]), Ok(()));
    assert_eq!(world.answers[&digest], Ok(Outcome::Missing));
    assert!(world.clusters[&COORDINATOR].state.read(&StateKey::Pending(one, digest)).is_none());
    let again = FoldError::Faulty { from: one, number: 2 };
    assert_eq!(answered(&mut world, one, &[digest]), Err(again), "answered before");
}

#[test]
fn a_request_whose_answer_is_awaited_is_not_passed_on_again() {
    let mut world = World::new(2);
    let shard = ClusterId(1);
    let request = get_at(&world, shard);
    let passed_on = |world: &World| {
        let sent = world.clusters[&COORDINATOR].sent.get(&Receiver::Cluster(shard));
        sent.map_or(0, |sent| sent.iter().map(|decision| decision.group.messages.len()).sum::<usize>())
    };
    for _ in 0..3 {
        world.submit(COORDINATOR, request.clone());
        world.step(COORDINATOR, usize::MAX, usize::MAX);
        assert_eq!(passed_on(&world), 1);
    }
    let digest = request.digest();
    world.run();
    assert_eq!(world.answers.remove(&digest), Some(Ok(Outcome::Missing)));
    // Once it is answered, it is a new question.
    assert_eq!(world.ask(COORDINATOR, request), Ok(Outcome::Missing));
    assert_eq!(passed_on(&world), 2);
}
