//! Who owns the journal next, and when.

use fastpay_replication::{Alarm, Kind, LogEvent, Millis, Number, TakeoverError, Ticket};

use super::shard::Shard;
use crate::fixture::{FOUNDER, SECOND, THIRD};

#[test]
fn an_owner_begins_once_a_second_machine_holds_its_takeover() {
    let mut shard = Shard::owned();
    shard.append(FOUNDER, 1);
    shard.pass(50);
    shard.cut_off = [FOUNDER, THIRD].into();
    shard.at(SECOND).take_over().unwrap();
    shard.pass(5_000);
    assert_eq!(shard.takeovers(SECOND), 1);
    assert_eq!(shard.began, [FOUNDER], "the stream and one machine hold it");
    assert_eq!(shard.at(SECOND).take_over(), Err(TakeoverError::Owner));
    shard.cut_off.remove(&THIRD);
    shard.pass(1_500);
    assert_eq!(shard.began, [FOUNDER, SECOND]);
    let now = shard.now;
    shard.at(SECOND).append(vec![1], false, Ticket(2), now).unwrap();
    shard.pass(100);
    assert!(shard.is_answered(2));
}

/// The frame is visible on two machines, the servers forgot it, and the third machine takes over with one of the two.
#[test]
fn a_visible_frame_that_the_servers_forgot_is_not_voted_against() {
    let mut shard = Shard::owned();
    shard.cut_off = [THIRD].into();
    shard.append(FOUNDER, 1);
    shard.pass(100);
    assert!(shard.is_answered(1));
    let kept = shard.at(THIRD).chain().number();
    shard.stream.keep(kept);
    shard.cut_off = [FOUNDER].into();
    shard.at(THIRD).take_over().unwrap();
    shard.pass(10_000);
    assert_eq!(shard.takeovers(THIRD), 1);
    assert_eq!(shard.began, [FOUNDER], "the second machine follows no other frame in its place");
    assert_eq!(shard.at(THIRD).answer(Ticket(2)), Err(fastpay_replication::AppendError::NotBegun));
}

#[test]
fn the_whole_chain_is_verified_before_the_takeover() {
    let mut shard = Shard::owned();
    shard.cut_off = [THIRD].into();
    shard.append(FOUNDER, 1);
    shard.append(FOUNDER, 2);
    shard.pass(50);
    let last = shard.stream.last();
    // The third machine sees a hole and then a frame that it cannot judge.
    shard.stream.replace(Number(last.0 - 1), None);
    shard.cut_off = [FOUNDER, SECOND].into();
    shard.at(THIRD).take_over().unwrap();
    shard.pass(3_000);
    assert_eq!(shard.takeovers(THIRD), 0);
    shard.cut_off.remove(&SECOND);
    shard.pass(1_500);
    assert_eq!(shard.began, [FOUNDER, THIRD]);
    assert!(shard.disks[2].starts_with(&shard.disks[0][..shard.disks[0].len()]));
}

/// A hole at the stream's end that no machine can fill was never visible.
#[test]
fn a_hole_that_no_machine_can_fill_is_left_out() {
    let mut shard = Shard::owned();
    shard.cut_off = [SECOND, THIRD].into();
    shard.slow = [FOUNDER].into();
    shard.append(FOUNDER, 1);
    let lost = shard.stream.last();
    shard.stream.replace(lost, None);
    shard.cut_off = [FOUNDER].into();
    shard.at(SECOND).take_over().unwrap();
    shard.pass(5_000);
    assert_eq!(shard.began, [FOUNDER], "the founder may have it");
    shard.restart(FOUNDER);
    shard.slow.clear();
    shard.cut_off.clear();
    shard.pass(3_000);
    assert_eq!(shard.began, [FOUNDER, SECOND]);
    assert!(shard.at(SECOND).chain().number() > lost);
    assert!(shard.disks[0] == shard.disks[1]);
}

/// An owner holds a frame that the servers lost before anybody read it. It is not followed, and writes no more.
#[test]
fn a_machine_on_another_chain_falls_silent_with_an_alarm() {
    let mut shard = Shard::owned();
    shard.cut_off = [SECOND, THIRD].into();
    shard.append(FOUNDER, 1);
    shard.stream.keep(Number(shard.stream.last().0 - 1));
    shard.cut_off = [FOUNDER].into();
    shard.at(SECOND).take_over().unwrap();
    shard.pass(500);
    shard.append(SECOND, 2);
    shard.pass(100);
    assert!(shard.is_answered(2));
    shard.cut_off.clear();
    shard.pass(5_000);
    let by_founder = shard.published.iter().filter(|(by, _)| *by == FOUNDER).count();
    assert!(shard.alarms.iter().any(|(by, alarm)| *by == FOUNDER && matches!(alarm, Alarm::Overtaken { .. })));
    shard.pass(20_000);
    assert_eq!(shard.published.iter().filter(|(by, _)| *by == FOUNDER).count(), by_founder);
    assert!(!shard.is_answered(1));
    shard.append(SECOND, 3);
    shard.pass(100);
    assert!(shard.is_answered(3), "the other two go on");
}

#[test]
fn two_that_take_over_together_leave_one_owner() {
    let mut shard = Shard::owned();
    shard.cut_off = [FOUNDER].into();
    shard.at(SECOND).take_over().unwrap();
    shard.at(THIRD).take_over().unwrap();
    shard.pass(5_000);
    assert_eq!(shard.began.len(), 2);
    assert_eq!([SECOND, THIRD].into_iter().filter(|machine| shard.at(*machine).serves()).count(), 1);
}

#[test]
fn an_owner_that_is_silent_is_replaced_by_a_standby_that_may() {
    let mut shard = Shard::owned();
    shard.at(THIRD).set_automatic(Some(Millis(3_000)));
    shard.pass(10_000);
    assert_eq!(shard.began, [FOUNDER], "it is heard");
    shard.cut_off = [FOUNDER].into();
    shard.pass(2_500);
    assert_eq!(shard.began, [FOUNDER]);
    shard.pass(1_500);
    assert_eq!(shard.began, [FOUNDER, THIRD]);
    // The first owner comes back as a standby, and never takes back by itself.
    shard.at(FOUNDER).set_automatic(Some(Millis(1_000)));
    shard.cut_off.clear();
    shard.pass(2_000);
    assert_eq!(shard.fenced, [FOUNDER]);
    shard.cut_off = [THIRD].into();
    shard.pass(20_000);
    assert_eq!(shard.began, [FOUNDER, THIRD]);
    shard.at(FOUNDER).take_over().unwrap();
    shard.pass(1_000);
    assert_eq!(shard.began, [FOUNDER, THIRD, FOUNDER], "the operator may");
}

#[test]
fn silence_counts_only_while_the_stream_answers() {
    let mut shard = Shard::owned();
    shard.at(SECOND).set_automatic(Some(Millis(3_000)));
    shard.cut_off = [FOUNDER].into();
    shard.pass(500);
    shard.stream_answers = false;
    shard.pass(20_000);
    shard.stream_answers = true;
    shard.cut_off.clear();
    shard.pass(100);
    assert_eq!(shard.began, [FOUNDER]);
    shard.pass(5_000);
    assert_eq!(shard.began, [FOUNDER], "the owner was heard again");
}

#[test]
fn the_operator_overrides_automation() {
    let mut shard = Shard::owned();
    shard.at(SECOND).set_automatic(Some(Millis(1_500)));
    shard.cut_off = [FOUNDER].into();
    shard.pass(1_000);
    shard.at(SECOND).set_automatic(None);
    shard.pass(10_000);
    assert_eq!(shard.began, [FOUNDER]);
}

#[test]
fn a_stream_begins_with_its_founders_journal() {
    let mut shard = Shard::new();
    assert_eq!(shard.at(SECOND).take_over(), Err(TakeoverError::NotFounder(FOUNDER)));
    shard.at(SECOND).set_automatic(Some(Millis(100)));
    shard.pass(2_000);
    assert_eq!(shard.stream.last(), Number(0));
    shard.at(FOUNDER).take_over().unwrap();
    shard.pass(100);
    assert!(matches!(shard.disks[1][0].kind(), Kind::First(start) if **start == crate::fixture::start()));
    assert!(shard.disks[1][0].placement().new_segment);
}

#[test]
fn a_restarted_owner_is_a_standby() {
    let mut shard = Shard::owned();
    shard.append(FOUNDER, 1);
    shard.pass(100);
    shard.restart(FOUNDER);
    shard.pass(5_000);
    assert!(!shard.at(FOUNDER).serves());
    shard.at(FOUNDER).take_over().unwrap();
    shard.pass(200);
    assert_eq!(shard.began, [FOUNDER, FOUNDER]);
    assert!(shard.alarms.iter().all(|(_, alarm)| !matches!(alarm, Alarm::Unfit { .. })));
}

#[test]
fn a_takeover_that_another_one_overtook_is_noticed() {
    let mut shard = Shard::owned();
    shard.cut_off = [FOUNDER, THIRD].into();
    shard.at(SECOND).take_over().unwrap();
    shard.pass(100);
    assert_eq!(shard.takeovers(SECOND), 1);
    shard.cut_off = [SECOND, FOUNDER].into();
    shard.at(THIRD).take_over().unwrap();
    shard.pass(1_500);
    assert_eq!(shard.takeovers(THIRD), 1);
    shard.cut_off = [FOUNDER].into();
    shard.pass(4_000);
    assert_eq!(shard.began, [FOUNDER, THIRD]);
    assert_eq!(shard.at(SECOND).chain().owner(), THIRD);
}

/// The acknowledgement of frame n was lost, and of the owner's read, all but the takeover at place n + 1.
#[test]
fn an_owner_leaves_out_no_place_that_it_cannot_judge() {
    let mut shard = Shard::owned();
    shard.acknowledges = false;
    shard.append(FOUNDER, 1);
    shard.acknowledges = true;
    shard.cut_off = [FOUNDER].into();
    shard.at(SECOND).take_over().unwrap();
    shard.pass(100);
    let takeover = shard.disks[1].last().unwrap().clone();
    assert_eq!(takeover.placement().previous, shard.published[shard.published.len() - 2].1.tag());
    shard.log(FOUNDER, LogEvent::Placed { number: takeover.number(), bytes: Some(takeover.bytes().clone()) });
    shard.append(FOUNDER, 2);
    let (_, frame) = shard.published.last().unwrap();
    assert_eq!(frame.number(), takeover.number(), "the stream refuses it");
    shard.cut_off.clear();
    shard.pass(3_000);
    assert_eq!(shard.fenced, [FOUNDER]);
    assert!(shard.disks[0] == shard.disks[1]);
}
