//! The stream in memory, and a machine's connection to it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use fastpay_replication::{Frame, FrameLog, LogEvent, Number, Tag};

/// The servers: one order of places, as their present leader has it.
#[derive(Default)]
pub struct Stream {
    /// `None` is a hole. The first one is place 1.
    places: Vec<Option<Arc<[u8]>>>,
    purged: usize,
    /// The tag of each frame that was ever acknowledged.
    pub acknowledged: BTreeSet<Tag>,
}

#[derive(Clone)]
pub enum Request {
    Append(Frame),
    Read(Number),
}

impl Stream {
    pub fn answer(&mut self, request: &Request) -> Vec<LogEvent> {
        match request {
            Request::Append(frame) if self.last().next() == frame.number() => {
                self.places.push(Some(frame.bytes().clone()));
                self.acknowledged.insert(frame.tag());
                vec![LogEvent::Acknowledged(frame.tag())]
            }
            Request::Append(frame) => vec![LogEvent::Refused(frame.tag())],
            Request::Read(from) => {
                let first = (from.0.max(1) as usize - 1).max(self.purged);
                let there = self.places.iter().enumerate().skip(first);
                let placed = there.map(|(index, bytes)| {
                    let number = Number(index as u64 + 1);
                    LogEvent::Placed { number, bytes: bytes.clone() }
                });
                placed.chain([LogEvent::End { from: *from, last: self.last() }]).collect()
            }
        }
    }

    pub fn last(&self) -> Number {
        Number(self.places.len() as u64)
    }

    /// A frame up to this one is gone, or one of its bits is another one.
    pub fn damage(&mut self, up_to: Number, random: &mut fastrand::Rng) {
        let up_to = self.places.len().min(up_to.0 as usize);
        if up_to <= self.purged {
            return;
        }
        // Mostly near the end, where a machine has yet to read it.
        let newest = up_to - 1;
        let place = if random.bool() { newest } else { random.usize(self.purged..=newest) };
        self.places[place] = match self.places[place].take() {
            Some(bytes) if random.bool() => {
                let mut altered = bytes.to_vec();
                let bit = random.usize(..altered.len() * 8);
                altered[bit / 8] ^= 1 << (bit % 8);
                Some(altered.into())
            }
            _ => None,
        };
    }

    /// A server that lost its tail leads, or the stream was made anew.
    pub fn forget(&mut self, random: &mut fastrand::Rng) {
        let kept = match random.u8(..5) {
            0 => 0,
            _ => self.places.len().saturating_sub(random.usize(1..12)),
        };
        self.places.truncate(kept);
        self.purged = self.purged.min(kept);
    }

    /// Puts something else at a place.
    pub fn replace(&mut self, number: Number, bytes: Option<Arc<[u8]>>) {
        self.places[number.0 as usize - 1] = bytes;
    }

    /// Forgets everything after a place.
    pub fn keep(&mut self, last: Number) {
        self.places.truncate(last.0 as usize);
    }

    pub fn purge(&mut self, last: Number) {
        self.purged = self.purged.max(last.0 as usize);
    }
}

/// A machine's connection. The world carries its requests to the stream, and the outcomes back.
#[derive(Default)]
pub struct Connection {
    pub requests: Vec<Request>,
    pub outcomes: VecDeque<LogEvent>,
}

impl FrameLog for Connection {
    fn append(&mut self, frame: &Frame) {
        self.requests.push(Request::Append(frame.clone()));
    }

    fn read(&mut self, from: Number) {
        self.requests.push(Request::Read(from));
    }

    fn purge(&mut self, _: Number) {
        unreachable!("a run is shorter than what is kept");
    }

    fn next(&mut self) -> Option<LogEvent> {
        self.outcomes.pop_front()
    }
}
