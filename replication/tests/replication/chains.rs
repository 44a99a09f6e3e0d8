//! Which frame follows on a chain, and by which error another one is refused.

use fastpay_core::JournalPosition;
use fastpay_replication::{
    Body, ChainEnd, ChainError, Frame, MachineId, Machines, Number, Placement, Start, Tag, Term,
};

use crate::fixture::{FOUNDER, SECOND, chain, key, next, placement, start};

fn refused(end: &ChainEnd, body: &Body, change: impl FnOnce(&mut Placement)) -> ChainError {
    let mut at = placement(end, body);
    change(&mut at);
    end.follow(&start(), &Frame::seal(&key(), at, body)).unwrap_err()
}

#[test]
fn frames_follow_on_each_other_and_on_no_other() {
    let frames = chain();
    for (index, (_, frame)) in frames.iter().enumerate() {
        for (other, (end, _)) in frames.iter().enumerate() {
            assert_eq!(end.follow(&start(), frame).is_ok(), index == other, "{index} after {other}");
        }
    }
    let (last, seal) = frames.last().unwrap();
    let end = last.follow(&start(), seal).unwrap();
    assert_eq!((end.number(), end.term(), end.owner(), end.is_sealed()), (Number(5), Term(2), SECOND, true));
    let bytes: usize = frames.iter().map(|(_, frame)| frame.bytes().len()).sum();
    assert_eq!(end.position(), JournalPosition(1_000 + bytes as u64));
    assert_eq!((frames[1].0.owner(), frames[1].0.term()), (FOUNDER, Term(1)));
}

#[test]
fn each_rule_of_the_chain_refuses_with_its_error() {
    let end = chain()[2].0;
    let empty = Body::Empty;
    assert!(matches!(refused(&end, &empty, |at| at.previous = Tag([0; 32])), ChainError::Previous { .. }));
    for number in [0, end.number().0] {
        assert!(matches!(refused(&end, &empty, |at| at.number = Number(number)), ChainError::Number { .. }));
    }
    for position in [end.position().0 - 1, end.position().0 + 1] {
        let moved = refused(&end, &empty, |at| at.position = JournalPosition(position));
        assert!(matches!(moved, ChainError::Position { .. }));
    }
    for (body, terms) in [(Body::Empty, [0, 2]), (Body::Seal, [0, 2]), (Body::Takeover(SECOND), [0, 1])] {
        for term in terms {
            assert!(matches!(refused(&end, &body, |at| at.term = Term(term)), ChainError::Term { .. }));
        }
    }
    let stranger = MachineId([4; 16]);
    assert_eq!(refused(&end, &Body::Takeover(stranger), |_| {}), ChainError::Machine(stranger));
    assert_eq!(refused(&end, &Body::First(start()), |_| {}), ChainError::First);
}

#[test]
fn a_chain_begins_with_the_first_frame_of_its_start() {
    let end = ChainEnd::before_first(&start());
    for body in [Body::Empty, Body::Records(vec![1]), Body::Takeover(FOUNDER), Body::Seal] {
        assert_eq!(refused(&end, &body, |_| {}), ChainError::First);
    }
    let other = Start { machines: Machines::new([SECOND, FOUNDER, MachineId([3; 16])]).unwrap(), ..start() };
    assert_eq!(refused(&end, &Body::First(other), |_| {}), ChainError::First);
    let elsewhere = refused(&end, &Body::First(start()), |at| at.previous = Tag([0; 32]));
    assert!(matches!(elsewhere, ChainError::Previous { .. }), "the journal that it names has another tail");
}

#[test]
fn numbers_may_skip_places_of_frames_outside_of_the_chain() {
    let (end, _) = chain()[2];
    let at = Placement { number: Number(900), ..placement(&end, &Body::Empty) };
    assert_eq!(end.follow(&start(), &Frame::seal(&key(), at, &Body::Empty)).unwrap().number(), Number(900));
}

#[test]
fn nothing_follows_on_a_seal() {
    let (last, seal) = chain().pop().unwrap();
    let end = last.follow(&start(), &seal).unwrap();
    for body in [Body::Records(vec![1]), Body::Empty, Body::Takeover(FOUNDER), Body::Seal, Body::First(start())] {
        assert_eq!(end.follow(&start(), &next(&end, &body)), Err(ChainError::Sealed));
    }
}
