//! Groups: what does not fit waits, in order; a committee hears of the time; nobody else is sent nothing.

use fastpay_ledger_state::COMMITTEE_GROUP_INTERVAL_MS;
use fastpay_ledger_statement::{
    Action, Condition, GROUP_BYTES_MAX, Get, Key, Message, Outcome, Receiver, Request, VALUE_BYTES_MAX, Value,
};

use crate::world::{COMMITTEE, COORDINATOR, World, namespace};

#[test]
fn answers_that_do_not_fit_into_a_group_wait_for_the_next_ones_in_order() {
    let mut world = World::new(1);
    let shard = world.settlement();
    let (namespace, key) = (namespace("first"), Key::new(b"large".to_vec()).unwrap());
    let value = Some(Value::new(vec![7; VALUE_BYTES_MAX]).unwrap());
    let condition = Condition::Always;
    world.act(0, Action::Write { namespace: namespace.clone(), key: key.clone(), condition, value }).unwrap();
    // Three groups' worth of values, and a small answer at the end.
    let count = 3 * GROUP_BYTES_MAX / VALUE_BYTES_MAX;
    let get = |nonce| Request::Get(Get { namespace: namespace.clone(), key: key.clone(), nonce });
    let mut asked: Vec<_> = (0..count as u64).map(|nonce| world.submit(shard, get(nonce))).collect();
    let small = Request::Get(Get { namespace, key: Key::new(b"none".to_vec()).unwrap(), nonce: 0 });
    asked.push(world.submit(shard, small));
    world.answers.clear();
    let heights_before = world.clusters[&shard].sent.get(&Receiver::Clients).map_or(0, Vec::len);
    world.step(shard, usize::MAX, usize::MAX);
    assert!(!world.answers.contains_key(asked.last().unwrap()), "it came last, and would have fit");
    for _ in 0..3 {
        world.step(shard, usize::MAX, usize::MAX);
    }
    let sent = &world.clusters[&shard].sent[&Receiver::Clients][heights_before..];
    assert_eq!(sent.len(), 4);
    let order: Vec<_> = sent
        .iter()
        .flat_map(|decision| {
            assert!(borsh::object_length(&decision.group.messages).unwrap() <= GROUP_BYTES_MAX + 4);
            &decision.group.messages
        })
        .map(|message| match message {
            Message::Answer(answer) => answer.request,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(order, asked);
    assert_eq!(world.answers[&asked[count]], Ok(Outcome::Missing));
    // Nothing is left over.
    assert!(world.clusters[&shard].state.read(&fastpay_ledger_statement::StateKey::Queue(Receiver::Clients)).is_none());
    world.step(shard, usize::MAX, usize::MAX);
    assert_eq!(world.clusters[&shard].sent[&Receiver::Clients].len(), heights_before + 4);
}

#[test]
fn a_committee_gets_a_group_in_time_whether_or_not_something_happened() {
    let mut world = World::new(2);
    let settlement = world.settlement();
    let to = Receiver::Committee(COMMITTEE);
    let count = |world: &World| world.clusters[&settlement].sent.get(&to).map_or(0, Vec::len);
    world.step(settlement, usize::MAX, usize::MAX);
    assert_eq!(count(&world), 1, "the first height tells the time");
    // Heights are 100 ms apart.
    for _ in 0..COMMITTEE_GROUP_INTERVAL_MS / 100 - 1 {
        world.step(settlement, usize::MAX, usize::MAX);
    }
    assert_eq!(count(&world), 1);
    world.step(settlement, usize::MAX, usize::MAX);
    assert_eq!(count(&world), 2);
    let [first, second] = &world.clusters[&settlement].sent[&to][..] else { panic!() };
    assert!(second.group.messages.is_empty());
    assert_eq!(second.header.time.0 - first.header.time.0, COMMITTEE_GROUP_INTERVAL_MS);
    assert!(world.events().is_empty());
    // No other cluster sends anything when nothing happens.
    world.step(COORDINATOR, usize::MAX, usize::MAX);
    assert!(world.clusters[&COORDINATOR].sent.is_empty());
}
