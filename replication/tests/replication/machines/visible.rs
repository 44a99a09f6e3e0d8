//! When a frame is visible, and what the owner makes of answers that are missing.

use fastpay_replication::{
    Action, Alarm, AppendError, Body, ChainError, FRAMES_IN_FLIGHT_MAX, FRAMES_KEPT_MIN, Frame, Kind, LogEvent,
    Message, Number, Placement, RECORDS_BYTES_MAX, Tag, Term, Ticket,
};

use super::shard::Shard;
use crate::fixture::{FOUNDER, SECOND, THIRD, key, next, placement};

#[test]
fn a_frame_is_visible_once_a_second_machine_has_synced_it() {
    let mut shard = Shard::owned();
    shard.cut_off = [SECOND, THIRD].into();
    shard.append(FOUNDER, 1);
    shard.pass(3_000);
    assert!(!shard.is_answered(1), "the stream and one machine have it");
    shard.cut_off.remove(&SECOND);
    shard.slow = [SECOND].into();
    shard.pass(3_000);
    assert!(!shard.is_answered(1), "the second machine has not synced it");
    shard.sync(SECOND);
    shard.perform();
    assert!(shard.is_answered(1));
}

#[test]
fn a_frame_is_visible_while_the_owners_disk_is_slow_and_two_others_have_it() {
    let mut shard = Shard::owned();
    shard.slow = [FOUNDER].into();
    shard.cut_off = [THIRD].into();
    shard.append(FOUNDER, 1);
    shard.pass(500);
    assert!(!shard.is_answered(1));
    shard.cut_off.clear();
    shard.pass(1_500);
    assert!(shard.is_answered(1));
}

#[test]
fn a_frame_that_the_stream_did_not_acknowledge_is_not_visible_and_not_on_disk() {
    let mut shard = Shard::owned();
    shard.stream_answers = false;
    let before = shard.disks[0].len();
    shard.append(FOUNDER, 1);
    shard.pass(3_000);
    let (_, frame) = shard.published.last().unwrap().clone();
    // A machine that says so has it from nowhere.
    shard.message(SECOND, FOUNDER, Message::Receipt { number: frame.number(), tag: frame.tag() });
    shard.message(THIRD, FOUNDER, Message::Receipt { number: frame.number(), tag: frame.tag() });
    assert!(!shard.is_answered(1));
    assert_eq!(shard.disks[0].len(), before, "a segment does not run ahead of the stream");
    shard.stream_answers = true;
    shard.pass(2_000);
    assert!(shard.is_answered(1), "the same frame is published again");
}

#[test]
fn a_receipt_counts_for_the_frame_with_its_tag_alone() {
    let mut shard = Shard::owned();
    shard.cut_off = [SECOND, THIRD].into();
    shard.append(FOUNDER, 1);
    let number = shard.published.last().unwrap().1.number();
    shard.message(SECOND, FOUNDER, Message::Receipt { number, tag: Tag([0; 32]) });
    shard.message(FOUNDER, FOUNDER, Message::Receipt { number, tag: shard_tag(&shard) });
    assert!(!shard.is_answered(1), "another frame, or the owner itself");
    let stranger = fastpay_replication::MachineId([4; 16]);
    shard.message(stranger, FOUNDER, Message::Receipt { number, tag: shard_tag(&shard) });
    assert!(!shard.is_answered(1), "a machine that is none of the three");
    shard.message(THIRD, FOUNDER, Message::Receipt { number, tag: shard_tag(&shard) });
    assert!(shard.is_answered(1));
}

fn shard_tag(shard: &Shard) -> Tag {
    shard.published.last().unwrap().1.tag()
}

#[test]
fn a_lost_acknowledgement_is_found_in_the_stream() {
    let mut shard = Shard::owned();
    shard.acknowledges = false;
    shard.append(FOUNDER, 1);
    assert!(!shard.is_answered(1));
    let tag = shard_tag(&shard);
    shard.log(FOUNDER, LogEvent::Unclear(tag));
    shard.pass(20);
    assert!(shard.is_answered(1), "soon, if the connection says that it is unclear");
    shard.append(FOUNDER, 2);
    shard.pass(1_500);
    assert!(shard.is_answered(2), "and after a while without any answer");
    assert_eq!(shard.fenced, []);
}

/// Frame n was lost on its way, another machine's takeover took its place, and frame n + 1 came after that.
#[test]
fn an_acknowledgement_says_nothing_about_the_frames_before_it() {
    let mut shard = Shard::owned();
    shard.cut_off = [SECOND, THIRD].into();
    shard.stream_answers = false;
    shard.append(FOUNDER, 1);
    shard.append(FOUNDER, 2);
    let [.., (_, first), (_, second)] = &shard.published[..] else { panic!("two frames") };
    let (first, second) = (first.tag(), second.tag());
    let before = shard.disks[0].len();
    shard.log(FOUNDER, LogEvent::Acknowledged(second));
    assert_eq!(shard.disks[0].len(), before);
    shard.log(FOUNDER, LogEvent::Acknowledged(first));
    assert_eq!(shard.disks[0].len(), before + 2);
}

/// As before, seen by the new owner: a place is taken by a frame that follows on nothing.
#[test]
fn a_stale_owners_frame_takes_a_place_in_the_stream_and_none_in_the_chain() {
    let mut shard = Shard::owned();
    let end = *shard.at(FOUNDER).chain();
    let lost = next(&end, &Body::Records(vec![1]));
    let after_lost = end.follow(&crate::fixture::start(), &lost).unwrap();
    shard.cut_off = [FOUNDER].into();
    shard.at(SECOND).take_over().unwrap();
    shard.pass(200);
    assert_eq!(shard.began, [FOUNDER, SECOND]);
    let late = next(&after_lost, &Body::Records(vec![2]));
    shard.stream.answer(&crate::simulation::stream::Request::Append(late.clone()));
    assert_eq!(shard.stream.last(), late.number(), "the stream takes it: the number fits");
    shard.append(SECOND, 3);
    shard.append(SECOND, 4);
    shard.pass(100);
    assert!(shard.is_answered(3) && shard.is_answered(4));
    shard.cut_off.clear();
    shard.pass(2_000);
    assert_eq!(shard.fenced, [FOUNDER]);
    assert!(shard.disks.iter().all(|disk| disk == &shard.disks[0] && !disk.contains(&late)));
}

#[test]
fn a_stream_that_ends_before_a_machine_stops_it_with_an_alarm() {
    let mut shard = Shard::owned();
    shard.append(FOUNDER, 1);
    shard.pass(100);
    let end = shard.at(FOUNDER).chain().number();
    shard.stream = Default::default();
    shard.append(FOUNDER, 2);
    shard.pass(3_000);
    assert!(!shard.is_answered(2));
    let alarm = Alarm::StreamEndsBefore { last: Number(0), end };
    for machine in [FOUNDER, SECOND, THIRD] {
        assert!(shard.alarms.contains(&(machine, alarm)));
    }
    shard.at(SECOND).take_over().unwrap();
    shard.pass(3_000);
    assert_eq!(shard.began, [FOUNDER], "nobody takes over");
    assert_eq!(shard.stream.last(), Number(0), "and nobody writes to it");
}

#[test]
fn a_damaged_or_missing_frame_is_read_from_another_machine() {
    for damage in [None, Some(vec![0; 200])] {
        let mut shard = Shard::owned();
        shard.cut_off = [THIRD].into();
        for ticket in 1..=3 {
            shard.append(FOUNDER, ticket);
            shard.pass(20);
        }
        let number = shard.published.last().unwrap().1.number();
        shard.stream.replace(number, damage.clone().map(Into::into));
        shard.stream.replace(Number(number.0 - 1), damage.map(Into::into));
        shard.cut_off.clear();
        shard.pass(2_000);
        assert!(shard.disks[2] == shard.disks[0]);
    }
}

#[test]
fn an_authentic_frame_that_breaks_a_rule_is_told_and_not_followed() {
    let mut shard = Shard::owned();
    let end = *shard.at(SECOND).chain();
    let at = Placement { term: Term(9), ..placement(&end, &Body::Empty) };
    let frame = Frame::seal(&key(), at, &Body::Empty);
    shard.log(SECOND, LogEvent::Placed { number: frame.number(), bytes: Some(frame.bytes().clone()) });
    let error = ChainError::Term { found: Term(9), end: Term(1) };
    assert_eq!(shard.alarms, [(SECOND, Alarm::Unfit { number: frame.number(), error })]);
    assert_eq!(*shard.at(SECOND).chain(), end);
    // A true frame at another place is not followed there.
    let moved = next(&end, &Body::Empty);
    shard.log(THIRD, LogEvent::Placed { number: Number(moved.number().0 + 1), bytes: Some(moved.bytes().clone()) });
    assert_eq!(*shard.at(THIRD).chain(), end);
}

#[test]
fn what_cannot_be_appended_is_refused() {
    let mut shard = Shard::new();
    let now = shard.now;
    let append = |shard: &mut Shard, machine, bytes| shard.at(machine).append(vec![1; bytes], false, Ticket(0), now);
    assert_eq!(append(&mut shard, SECOND, 1), Err(AppendError::NotOwner(FOUNDER)));
    assert_eq!(shard.at(SECOND).answer(Ticket(1)), Err(AppendError::NotOwner(FOUNDER)));
    shard.cut_off = [SECOND, THIRD].into();
    shard.at(FOUNDER).take_over().unwrap();
    shard.pass(100);
    assert_eq!(append(&mut shard, FOUNDER, 1), Err(AppendError::NotBegun));
    assert_eq!(shard.at(FOUNDER).answer(Ticket(1)), Err(AppendError::NotBegun));
    shard.cut_off.clear();
    shard.pass(1_500);
    for bytes in [0, RECORDS_BYTES_MAX + 1] {
        assert_eq!(append(&mut shard, FOUNDER, bytes), Err(AppendError::Size(bytes)));
    }
    shard.stream_answers = false;
    for _ in 0..FRAMES_IN_FLIGHT_MAX {
        append(&mut shard, FOUNDER, 1).unwrap();
    }
    assert_eq!(append(&mut shard, FOUNDER, 1), Err(AppendError::InFlight));
    assert_eq!(shard.at(FOUNDER).leave(now), Err(AppendError::InFlight));
    assert_eq!(shard.at(FOUNDER).answer(Ticket(9)), Ok(()));
    shard.stream_answers = true;
    shard.pass(2_000);
    assert!(shard.is_answered(9));
}

#[test]
fn records_stand_where_the_owner_said() {
    let mut shard = Shard::owned();
    for ticket in 1..=3 {
        let position = shard.at(FOUNDER).records_position();
        shard.append(FOUNDER, ticket);
        let (_, frame) = shard.published.last().unwrap();
        let header = fastpay_replication::FRAME_HEADER_BYTES as u64;
        assert_eq!(position.0, frame.placement().position.0 + header);
    }
}

#[test]
fn a_frame_that_is_visible_at_once_is_named_with_its_answers() {
    let mut shard = Shard::owned();
    let now = shard.now;
    shard.at(FOUNDER).append(vec![1], true, Ticket(7), now).unwrap();
    let actions = shard.at(FOUNDER).take_actions();
    let [Action::Publish(frame)] = &actions[..] else { panic!("{actions:?}") };
    assert!(frame.placement().new_segment && *frame.kind() == Kind::Records);
}

#[test]
fn the_owner_purges_what_two_machines_hold_and_keeps_the_newest() {
    let mut shard = Shard::new();
    assert_eq!(shard.at(FOUNDER).purgeable(), None);
    shard.at(FOUNDER).take_over().unwrap();
    shard.pass(200);
    while shard.at(FOUNDER).chain().number().0 < FRAMES_KEPT_MIN {
        shard.append(FOUNDER, 1);
        shard.pass(10);
    }
    assert_eq!(shard.at(FOUNDER).purgeable(), None, "never the newest thousand");
    shard.append(FOUNDER, 2);
    shard.pass(20);
    assert_eq!(shard.at(FOUNDER).purgeable(), Some(Number(1)));
    assert_eq!(shard.at(SECOND).purgeable(), None, "only the owner purges");
    // Two machines lag behind.
    shard.cut_off = [SECOND, THIRD].into();
    let held = shard.at(FOUNDER).chain().number();
    let behind = FRAMES_KEPT_MIN + 50;
    for _ in 0..behind {
        shard.append(FOUNDER, 3);
        shard.pass(10);
    }
    assert_eq!(shard.at(FOUNDER).purgeable(), Some(held), "up to what two machines hold");
}
