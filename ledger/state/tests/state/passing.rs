//! Requests that a coordinator passes on, and the answers that it passes back.

use fastpay_core::Digest;
use fastpay_ledger_state::FoldError;
use fastpay_ledger_statement::{Answer, ClusterId, Get, Key, Message, Outcome, Receiver, Request, StateKey};

use crate::world::{COORDINATOR, World, namespace};

/// Reads for which this shard is responsible.
fn gets_at(world: &World, shard: ClusterId) -> impl Iterator<Item = Request> {
    let get = |nonce: u64| {
        let key = Key::new(nonce.to_le_bytes().to_vec()).unwrap();
        Request::Get(Get { namespace: namespace("first"), key, nonce })
    };
    let partition = world.partition().clone();
    (0..).map(get).filter(move |get| partition.of_request(get) == shard)
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
        let request = gets_at(&world, one).next().unwrap();
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
    assert!(world.clusters[&COORDINATOR].state.read(&StateKey::Pending(one, 0)).is_none());
    let again = FoldError::Faulty { from: one, number: 2 };
    assert_eq!(answered(&mut world, one, &[digest]), Err(again), "answered before");
}

/// Requests of three heights, of which the second one repeats the first: answers come in that order, in any portions.
#[test]
fn answers_are_taken_in_the_order_in_which_requests_were_passed_on() {
    let one = ClusterId(1);
    let asked = || {
        let mut world = World::new(2);
        let requests: Vec<_> = gets_at(&world, one).take(4).collect();
        let [a, b, c, d] = requests.as_array().unwrap();
        for height in [vec![a, b], vec![a], vec![c, d]] {
            for request in height {
                world.submit(COORDINATOR, request.clone());
            }
            world.step(COORDINATOR, usize::MAX, usize::MAX);
        }
        (world, [a, b, c, d].map(Request::digest))
    };
    let (mut world, [a, b, c, d]) = asked();
    for (number, portion) in (1..).zip([vec![a], vec![b, a, c], vec![d]]) {
        assert!(world.clusters[&COORDINATOR].state.read(&StateKey::Pending(one, 2)).is_some());
        assert_eq!(answered(&mut world, one, &portion), Ok(()), "group {number}");
    }
    assert!((0..3).all(|number| world.clusters[&COORDINATOR].state.read(&StateKey::Pending(one, number)).is_none()));
    for wrong in [vec![b], vec![a, a], vec![a, b, c], vec![a, b, a, d], vec![a, b, a, c, d, d]] {
        let (mut world, _) = asked();
        assert_eq!(answered(&mut world, one, &wrong), Err(FoldError::Faulty { from: one, number: 1 }));
    }
}
