//! The key-value store over three rounds, and over one.

use fastpay_ledger_statement::{Action, Condition, Get, Instruction, Key, Outcome, Rejection, Request, Value, Version};

use crate::people::client;
use crate::world::{COORDINATOR, World, namespace};

fn key(text: &str) -> Key {
    Key::new(text.into()).unwrap()
}

fn write(name: &str, condition: Condition, value: Option<&str>) -> Action {
    let value = value.map(|value| Value::new(value.into()).unwrap());
    Action::Write { namespace: namespace("first"), key: key(name), condition, value }
}

fn get(world: &mut World, name: &str) -> Result<Outcome, Rejection> {
    let request = Request::Get(Get { namespace: namespace("first"), key: key(name), nonce: rand::random() });
    // By the coordinator, and at once from the shard that keeps the key: the same answer.
    let shard = world.partition().of_request(&request);
    let answer = world.ask(shard, request.clone());
    assert_eq!(world.ask(COORDINATOR, request), answer);
    answer
}

fn written(world: &mut World, action: Action) -> Version {
    match world.act(0, action) {
        Ok(Outcome::Written(version)) => version,
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_are_written_read_and_deleted_by_version() {
    let mut world = World::new(4);
    assert_eq!(get(&mut world, "a"), Ok(Outcome::Missing));
    let first = written(&mut world, write("a", Condition::Absent, Some("one")));
    let value = |text: &str| Value::new(text.into()).unwrap();
    assert_eq!(get(&mut world, "a"), Ok(Outcome::Found { version: first, value: value("one") }));

    assert_eq!(world.act(0, write("a", Condition::Absent, Some("x"))), Ok(Outcome::ConditionFailed(Some(first))));
    let second = written(&mut world, write("a", Condition::Version(first), Some("two")));
    assert!(second > first);
    let stale = write("a", Condition::Version(first), Some("x"));
    assert_eq!(world.act(0, stale), Ok(Outcome::ConditionFailed(Some(second))));
    assert_eq!(get(&mut world, "a"), Ok(Outcome::Found { version: second, value: value("two") }));

    written(&mut world, write("a", Condition::Version(second), None));
    assert_eq!(get(&mut world, "a"), Ok(Outcome::Missing));
    // A version does not come back after the value was deleted.
    let third = written(&mut world, write("a", Condition::Always, Some("three")));
    assert!(third > second);
    assert_eq!(
        world.act(0, write("a", Condition::Version(second), Some("x"))),
        Ok(Outcome::ConditionFailed(Some(third)))
    );
}

#[test]
fn only_the_writer_writes_and_only_in_namespaces_that_exist() {
    let mut world = World::new(2);
    let writer = client(0).account();
    assert_eq!(world.act(1, write("a", Condition::Always, Some("x"))), Err(Rejection::WrongWriter(writer)));
    let nowhere =
        Action::Write { namespace: namespace("third"), key: key("a"), condition: Condition::Always, value: None };
    assert_eq!(world.act(0, nowhere), Err(Rejection::UnknownNamespace));
    let request = Request::Get(Get { namespace: namespace("third"), key: key("a"), nonce: 1 });
    assert_eq!(world.ask(COORDINATOR, request), Err(Rejection::UnknownNamespace));
    assert_eq!(get(&mut world, "a"), Ok(Outcome::Missing));
}

#[test]
fn a_value_is_written_at_its_own_shard_only() {
    let mut world = World::new(4);
    let home = world.partition().of_value(&namespace("first"), &key("a"));
    let shard = world.partition().shards().find(|shard| *shard != home).unwrap();
    let Request::Instruct(signed) = world.sign(0, write("a", Condition::Always, Some("x"))) else { panic!() };
    let signed = Instruction { shard, ..signed.instruction }.signed(&client(0));
    let answer = world.ask(COORDINATOR, Request::Instruct(Box::new(signed)));
    assert_eq!(answer, Err(Rejection::OtherShard(home)));
    assert_eq!(get(&mut world, "a"), Ok(Outcome::Missing));
}

/// Several writes of one height have versions of their own.
#[test]
fn writes_of_one_height_have_different_versions() {
    let mut world = World::new(1);
    let shard = world.settlement();
    let mut digests = vec![];
    for (sequence, name) in ["a", "b", "a"].into_iter().enumerate() {
        let Request::Instruct(mut signed) = world.sign(0, write(name, Condition::Always, Some("v"))) else { panic!() };
        signed.instruction.sequence = fastpay_core::SequenceNumber(sequence as u64);
        let signed = signed.instruction.signed(&client(0));
        digests.push(world.submit(shard, Request::Instruct(Box::new(signed))));
    }
    world.run();
    let versions: Vec<_> = digests
        .iter()
        .map(|digest| match world.answers[digest] {
            Ok(Outcome::Written(version)) => version,
            ref other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(versions.iter().map(|version| version.position).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(versions[0].height, versions[2].height);
}
