//! From three machines back to one.

use fastpay_replication::{AppendError, Message, TakeoverError, Ticket};

use super::shard::Shard;
use crate::fixture::{FOUNDER, SECOND, THIRD};

#[test]
fn an_owner_leaves_once_a_second_machine_holds_the_seal() {
    let mut shard = Shard::owned();
    shard.append(FOUNDER, 1);
    shard.pass(100);
    shard.cut_off = [SECOND, THIRD].into();
    let now = shard.now;
    shard.at(FOUNDER).leave(now).unwrap();
    assert_eq!(shard.at(FOUNDER).append(vec![1], false, Ticket(2), now), Err(AppendError::Leaving));
    assert_eq!(shard.at(FOUNDER).leave(now), Err(AppendError::Leaving));
    shard.pass(3_000);
    assert_eq!(shard.left, [], "only this machine and the stream hold it");
    shard.cut_off.remove(&THIRD);
    shard.pass(1_500);
    assert_eq!(shard.left.len(), 1);
    assert_eq!(shard.left[0].by(), FOUNDER);
    shard.cut_off.clear();
    shard.pass(3_000);
    for machine in [SECOND, THIRD] {
        assert_eq!(shard.at(machine).take_over(), Err(TakeoverError::Sealed));
    }
    assert_eq!(shard.left.len(), 1);
}

#[test]
fn an_owner_that_crashed_after_the_seal_still_leaves_and_no_other_machine_does() {
    let mut shard = Shard::owned();
    shard.cut_off = [SECOND, THIRD].into();
    let now = shard.now;
    shard.at(FOUNDER).leave(now).unwrap();
    shard.pass(100);
    shard.restart(FOUNDER);
    shard.pass(3_000);
    assert_eq!(shard.left, []);
    let end = *shard.at(FOUNDER).chain();
    assert!(end.is_sealed());
    shard.cut_off.clear();
    shard.pass(2_000);
    assert!(!shard.left.is_empty() && shard.left.iter().all(|sealed| sealed.by() == FOUNDER));
    let count = shard.left.len();
    shard.message(FOUNDER, SECOND, Message::Receipt { number: end.number(), tag: end.tag() });
    assert_eq!(shard.left.len(), count);
}

/// A wish from before the seal does not survive it.
#[test]
fn a_takeover_that_was_under_way_does_not_follow_on_the_seal() {
    let mut shard = Shard::owned();
    shard.cut_off = [SECOND].into();
    shard.at(SECOND).take_over().unwrap();
    let now = shard.now;
    shard.at(FOUNDER).leave(now).unwrap();
    shard.pass(100);
    assert_eq!(shard.left.len(), 1);
    let last = shard.stream.last();
    shard.cut_off.clear();
    shard.pass(3_000);
    assert_eq!(shard.stream.last(), last);
}
