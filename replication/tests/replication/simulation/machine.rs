//! A machine: its disk, and its part of the journal while it runs.

use std::collections::{BTreeMap, VecDeque};

use fastpay_replication::{ChainEnd, Frame, MachineId, Millis, Number, Replica, Tag, Ticket};

use super::stream::Connection;
use crate::fixture::{SECRET, key, start};

pub struct Machine {
    pub id: MachineId,
    /// The synced frames of its segments, in order.
    pub disk: Vec<Frame>,
    /// Frames that are written, and not synced yet.
    pub unsynced: VecDeque<Frame>,
    pub replica: Option<Replica>,
    /// Counts its starts: what was under way for an earlier one does not arrive.
    pub run: u64,
    pub stopped_until: Millis,
    pub connection: Connection,
    /// The answers that wait, with the number of frames that were visible when the request came.
    pub waiting: BTreeMap<Ticket, usize>,
}

impl Machine {
    pub fn new(id: MachineId) -> Self {
        Self {
            id,
            disk: Vec::new(),
            unsynced: VecDeque::new(),
            replica: None,
            run: 0,
            stopped_until: Millis(0),
            connection: Connection::default(),
            waiting: BTreeMap::new(),
        }
    }

    /// Starts with what is on disk, each frame verified again.
    pub fn start(&mut self, now: Millis) {
        let start = start();
        let end = self.disk.iter().fold(ChainEnd::before_first(&start), |end, frame| {
            let frame = Frame::open(&key(), frame.bytes().clone()).unwrap();
            end.follow(&start, &frame).unwrap()
        });
        self.run += 1;
        self.replica = Some(Replica::open(self.id, start, &SECRET, end, now));
    }

    /// Loses what is in memory, and a part of what was not synced.
    pub fn crash(&mut self, random: &mut fastrand::Rng) {
        for _ in 0..random.usize(..=self.unsynced.len()) {
            self.disk.extend(self.unsynced.pop_front());
        }
        self.unsynced.clear();
        self.replica = None;
        self.run += 1;
        self.connection = Connection::default();
        self.waiting.clear();
    }

    pub fn sync(&mut self, number: Number) {
        while let Some(frame) = self.unsynced.pop_front_if(|frame| frame.number() <= number) {
            self.disk.push(frame);
        }
    }

    /// The frames that it follows.
    pub fn followed(&self) -> impl Iterator<Item = (Number, Tag)> {
        self.disk.iter().chain(&self.unsynced).map(|frame| (frame.number(), frame.tag()))
    }

    pub fn holds(&self, tag: Tag) -> bool {
        self.disk.iter().any(|frame| frame.tag() == tag)
    }

    pub fn serves(&self) -> bool {
        self.replica.as_ref().is_some_and(Replica::serves)
    }
}
