//! Exactly once, however often and by however many ways an instruction arrives.

use fastpay_core::{Amount, Asset, SequenceNumber};
use fastpay_ledger_state::ANSWERS_KEPT;
use fastpay_ledger_statement::{Action, ClusterId, Condition, Instruction, Key, Outcome, Rejection, Request, Value};

use crate::people::client;
use crate::world::{COORDINATOR, ISSUED_EACH, World, namespace};

fn signed(world: &World, shard: ClusterId, sequence: u64, action: Action) -> Request {
    let (deployment, signer) = (world.layout().deployment(), client(0).account());
    let instruction = Instruction { deployment, shard, signer, sequence: SequenceNumber(sequence), action };
    Request::Instruct(Box::new(instruction.signed(&client(0))))
}

fn transfer(amount: u128) -> Action {
    Action::Transfer { to: client(1).account(), asset: Asset::ETHER, amount: Amount(amount) }
}

#[test]
fn an_instruction_is_carried_out_once_and_answered_every_time() {
    let mut world = World::new(2);
    let home = world.partition().of_reserve(&client(0).account());
    world.act(0, Action::Open).unwrap();
    let request = signed(&world, home, 1, transfer(100));
    // By both ways at once, and again later.
    for _ in 0..2 {
        world.submit(home, request.clone());
        world.submit(COORDINATOR, request.clone());
    }
    world.run();
    for _ in 0..3 {
        assert_eq!(world.ask(COORDINATOR, request.clone()), Ok(Outcome::Transferred));
    }
    assert_eq!(world.reserve(client(0).account()), ISSUED_EACH - 100);
    assert_eq!(world.reserve(client(1).account()), ISSUED_EACH + 100);

    let other = signed(&world, home, 1, transfer(101));
    assert_eq!(world.ask(COORDINATOR, other), Err(Rejection::SequenceConflict(SequenceNumber(2))));
    let gap = signed(&world, home, 3, transfer(1));
    assert_eq!(world.ask(COORDINATOR, gap), Err(Rejection::SequenceGap(SequenceNumber(2))));
    assert_eq!(world.reserve(client(0).account()), ISSUED_EACH - 100);
}

#[test]
fn answers_are_kept_for_a_while() {
    let mut world = World::new(1);
    let shard = world.settlement();
    world.act(0, Action::Open).unwrap();
    for sequence in 1..=ANSWERS_KEPT {
        let request = signed(&world, shard, sequence, transfer(1));
        assert_eq!(world.ask(shard, request), Ok(Outcome::Transferred));
    }
    let next = SequenceNumber(ANSWERS_KEPT + 1);
    let opened = signed(&world, shard, 0, Action::Open);
    assert_eq!(world.ask(shard, opened), Err(Rejection::SequenceForgotten(next)));
    let kept = signed(&world, shard, 1, transfer(1));
    assert_eq!(world.ask(shard, kept), Ok(Outcome::Transferred));
    assert_eq!(world.reserve(client(0).account()), ISSUED_EACH - u128::from(ANSWERS_KEPT));
}

/// A rejected instruction leaves its number free. One whose condition fails uses it up.
#[test]
fn a_failed_condition_uses_its_number_up_and_a_rejection_does_not() {
    let mut world = World::new(1);
    let shard = world.settlement();
    world.act(0, Action::Open).unwrap();
    let too_much = signed(&world, shard, 1, transfer(ISSUED_EACH + 1));
    assert!(matches!(world.ask(shard, too_much), Err(Rejection::ReserveTooLow(_))));
    let (key, value) = (Key::new(b"k".to_vec()).unwrap(), Value::new(b"v".to_vec()));
    let write =
        |condition| Action::Write { namespace: namespace("first"), key: key.clone(), condition, value: value.clone() };
    let written = signed(&world, shard, 1, write(Condition::Absent));
    assert!(matches!(world.ask(shard, written), Ok(Outcome::Written(_))));
    let failing = signed(&world, shard, 2, write(Condition::Absent));
    let answer = world.ask(shard, failing.clone());
    assert!(matches!(answer, Ok(Outcome::ConditionFailed(Some(_)))));
    assert_eq!(world.ask(shard, failing), answer);
    assert_eq!(world.next(0, shard), SequenceNumber(3));
}

#[test]
fn a_request_to_a_cluster_that_does_not_exist_is_answered() {
    let mut world = World::new(1);
    let nowhere = ClusterId(55);
    let request = signed(&world, nowhere, 0, Action::Open);
    assert_eq!(world.ask(COORDINATOR, request), Err(Rejection::UnknownCluster(nowhere)));
}
