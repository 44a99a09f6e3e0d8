//! A start with three machines, and frames of its owner.

use std::sync::Arc;

use fastpay_core::{AuthorityName, JournalPosition, ShardId};
use fastpay_replication::{Body, ChainEnd, Frame, FrameKey, MachineId, Machines, Nonce, Placement, Start, Tag};

pub const SECRET: [u8; 32] = [7; 32];
pub const FOUNDER: MachineId = MachineId([1; 16]);
pub const SECOND: MachineId = MachineId([2; 16]);
pub const THIRD: MachineId = MachineId([3; 16]);

pub fn start() -> Start {
    Start {
        authority: AuthorityName([9; 32]),
        shard: ShardId(4),
        position: JournalPosition(1_000),
        tail: Tag([5; 32]),
        salt: 0x0304,
        machines: Machines::new([FOUNDER, SECOND, THIRD]).unwrap(),
        nonce: Nonce([6; 16]),
    }
}

pub fn key() -> FrameKey {
    FrameKey::derive(&SECRET, &start())
}

/// The frame with this body that follows on a chain.
pub fn next(end: &ChainEnd, body: &Body) -> Frame {
    Frame::seal(&key(), placement(end, body), body)
}

pub fn placement(end: &ChainEnd, body: &Body) -> Placement {
    let new_term = matches!(body, Body::First(_) | Body::Takeover(_));
    Placement {
        number: end.number().next(),
        term: if new_term { end.term().next() } else { end.term() },
        position: end.position(),
        previous: end.tag(),
        new_segment: matches!(body, Body::First(_)),
    }
}

/// Bodies of each kind, in an order in which they follow on each other.
pub fn bodies() -> Vec<Body> {
    let records = Body::Records(b"a frame of format 1".to_vec());
    vec![Body::First(start()), records, Body::Empty, Body::Takeover(SECOND), Body::Seal]
}

/// A chain of all kinds, with the end before each frame.
pub fn chain() -> Vec<(ChainEnd, Frame)> {
    let mut end = ChainEnd::before_first(&start());
    let frames = bodies().into_iter().map(|body| {
        let frame = next(&end, &body);
        let before = end;
        end = before.follow(&start(), &frame).unwrap();
        (before, frame)
    });
    frames.collect()
}

pub fn open(bytes: &[u8]) -> Result<Frame, fastpay_replication::FrameError> {
    Frame::open(&key(), Arc::from(bytes))
}
