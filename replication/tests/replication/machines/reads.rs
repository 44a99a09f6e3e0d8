//! Reads, refusals and floors: a stale owner answers nothing that speaks of the present.

use fastpay_replication::{LogEvent, Message, Ticket};

use super::shard::Shard;
use crate::fixture::{FOUNDER, SECOND, THIRD};
use crate::simulation::stream::Request;

#[test]
fn a_stale_owner_answers_nothing() {
    let mut shard = Shard::owned();
    // Its disk and one standby would make its frames visible: it only does not reach the stream.
    shard.cut_off = [FOUNDER].into();
    shard.at(SECOND).take_over().unwrap();
    shard.pass(300);
    shard.append(SECOND, 1);
    shard.pass(300);
    assert!(shard.is_answered(1));
    assert!(shard.at(FOUNDER).serves(), "it does not know better");
    shard.at(FOUNDER).answer(Ticket(2)).unwrap();
    shard.pass(5_000);
    assert!(!shard.is_answered(2));
    shard.cut_off.clear();
    shard.pass(2_000);
    assert_eq!(shard.fenced, [FOUNDER]);
    assert!(!shard.is_answered(2) && !shard.at(FOUNDER).serves());
    assert_eq!(shard.disks[0], shard.disks[1], "it is a standby");
}

#[test]
fn a_read_waits_for_a_frame_that_is_published_after_it() {
    let mut shard = Shard::owned();
    shard.acknowledges = false;
    shard.append(FOUNDER, 1);
    shard.at(FOUNDER).answer(Ticket(2)).unwrap();
    shard.acknowledges = true;
    let first = shard.published.last().unwrap().1.tag();
    shard.log(FOUNDER, fastpay_replication::LogEvent::Acknowledged(first));
    for machine in [SECOND, THIRD] {
        let now = shard.now;
        shard.at(machine).tick(now);
    }
    shard.perform();
    assert!(shard.is_answered(1) && !shard.is_answered(2), "the frame before was published before the read came");
    shard.pass(200);
    assert!(shard.is_answered(2));
}

#[test]
fn a_batch_takes_waiting_reads_along() {
    let mut shard = Shard::owned();
    shard.pass(200);
    let empty = shard.empty(FOUNDER);
    shard.at(FOUNDER).answer(Ticket(1)).unwrap();
    shard.append(FOUNDER, 2);
    shard.pass(50);
    assert!(shard.is_answered(1) && shard.is_answered(2));
    assert_eq!(shard.empty(FOUNDER), empty);
}

#[test]
fn reads_share_an_empty_frame_and_there_is_one_in_100_ms() {
    let mut shard = Shard::owned();
    let before = shard.empty(FOUNDER);
    for ticket in 0..100 {
        shard.at(FOUNDER).answer(Ticket(ticket)).unwrap();
        shard.pass(10);
    }
    let frames = shard.empty(FOUNDER) - before;
    assert!((9..=11).contains(&frames), "{frames} empty frames in a second");
    shard.pass(200);
    assert!((0..100).all(|ticket| shard.is_answered(ticket)));
}

#[test]
fn an_idle_owner_is_heard_once_a_second() {
    let mut shard = Shard::owned();
    let before = shard.empty(FOUNDER);
    shard.pass(10_000);
    let frames = shard.empty(FOUNDER) - before;
    assert!((9..=10).contains(&frames), "{frames} empty frames in ten seconds");
}

#[test]
fn a_read_does_not_ride_a_frame_in_flight() {
    let mut shard = Shard::owned();
    shard.stream_answers = false;
    for ticket in 1..=3 {
        shard.append(FOUNDER, ticket);
    }
    let published: Vec<_> = shard.published.iter().rev().take(3).map(|(_, frame)| frame.clone()).collect();
    // They arrive, and another machine takes over after them, before the read comes.
    shard.stream_answers = true;
    for frame in published.iter().rev() {
        shard.stream.answer(&Request::Append(frame.clone()));
    }
    shard.at(SECOND).take_over().unwrap();
    for machine in [SECOND, THIRD] {
        for _ in 0..3 {
            let now = shard.now;
            shard.at(machine).tick(now);
            shard.perform();
        }
    }
    assert_eq!(shard.began, [FOUNDER, SECOND]);
    shard.at(FOUNDER).answer(Ticket(4)).unwrap();
    for frame in published.iter().rev() {
        shard.log(FOUNDER, LogEvent::Acknowledged(frame.tag()));
    }
    let last = &published[0];
    shard.message(THIRD, FOUNDER, Message::Receipt { number: last.number(), tag: last.tag() });
    assert!((1..=3).all(|ticket| shard.is_answered(ticket)), "they were there before the takeover");
    shard.pass(3_000);
    assert!(!shard.is_answered(4));
    assert_eq!(shard.fenced, [FOUNDER]);
}
