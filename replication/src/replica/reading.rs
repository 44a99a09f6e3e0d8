//! Reads the stream and the other machines' segments: which frame follows on the chain, and whether one may be missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Action, Alarm, Message, Next, RETRY_INTERVAL, Replica, Role};
use crate::chain::{ChainEnd, ChainError};
use crate::frame::Frame;
use crate::identity::{MachineId, Millis, Number};

/// What is known of the stream's places after the chain's end.
pub(super) struct Reading {
    /// The next place to be judged. All places between the chain's end and this one hold no frame that follows, or
    /// there is a gap.
    pub(super) next: Number,
    /// A place since the chain's end was not shown: read again.
    pub(super) skipped: bool,
    /// A place since the chain's end was a hole or damaged: the frame that follows may have been there.
    pub(super) gap: bool,
    /// A frame of a later term was seen that does not follow on this chain: this machine lacks that term's takeover, or
    /// the other machine is on a chain that two machines will not follow.
    pub(super) overtaken: Option<Number>,
    /// The other machines that show no frame after the chain's end, and whether their chains end there, too.
    pub(super) level: BTreeMap<MachineId, bool>,
    /// When the outstanding read was sent.
    pub(super) since: Option<Millis>,
    /// When the other machines were last asked for a frame.
    pub(super) asked: Option<Millis>,
}

impl Reading {
    pub(super) fn after(chain: &ChainEnd) -> Self {
        Self {
            next: chain.number().next(),
            skipped: false,
            gap: false,
            overtaken: None,
            level: BTreeMap::new(),
            since: None,
            asked: None,
        }
    }
}

impl Replica {
    /// Judges what is at a place of the stream.
    pub(super) fn placed(&mut self, number: Number, bytes: Option<Arc<[u8]>>) {
        if number < self.reading.next {
            return;
        }
        if number > self.reading.next {
            self.reading.skipped = true;
        }
        self.reading.next = number.next();
        let Some(bytes) = bytes else {
            self.reading.gap = true;
            return;
        };
        match Frame::open(&self.key, bytes) {
            Ok(frame) if frame.number() == number => self.judge(frame),
            // A true frame at another place: the stream was made anew, or moved its frames.
            Ok(_) => self.reading.gap = true,
            Err(error) => {
                self.reading.gap = true;
                self.actions.push(Action::Alarm(Alarm::Damaged { number, error }));
            }
        }
    }

    /// Another machine shows what follows on the chain in its segments, or that it has nothing.
    pub(super) fn shown(&mut self, by: MachineId, next: Next, now: Millis) {
        let bytes = match next {
            Next::Frame(bytes) => bytes,
            Next::Nothing | Next::Unknown => {
                self.reading.level.insert(by, next == Next::Nothing);
                return;
            }
        };
        // If its segment is damaged, the third machine may have the frame.
        let Ok(frame) = Frame::open(&self.key, bytes) else { return };
        let before = self.chain.tag();
        self.judge(frame);
        if self.chain.tag() != before {
            self.reading.asked = None;
            self.ask(now);
        }
    }

    /// Follows a frame that continues the chain. A stale owner's frame does not, and only occupies its place. It has no
    /// later term: whoever wrote one has followed a takeover that this machine lacks.
    fn judge(&mut self, frame: Frame) {
        match self.chain.follow(&self.start, &frame) {
            Ok(end) => {
                let own = matches!(&self.role, Role::Owner(owner) if owner.next_is(&frame));
                if own {
                    self.advance();
                } else {
                    self.step_down(&frame);
                    self.take(frame, end);
                }
            }
            Err(ChainError::Previous { .. }) => {
                let term = frame.placement().term;
                self.newest_term = self.newest_term.max(term);
                if term > self.chain.term() {
                    self.reading.overtaken = Some(frame.number());
                }
            }
            Err(error) => {
                let number = frame.number();
                self.actions.push(Action::Alarm(Alarm::Unfit { number, error }));
            }
        }
    }

    /// Adds a frame that the stream acknowledged, here or to another machine.
    pub(super) fn take(&mut self, frame: Frame, end: ChainEnd) {
        self.chain = end;
        self.storing.push_back(end);
        self.reading = Reading { since: self.reading.since, asked: self.reading.asked, ..Reading::after(&end) };
        if let Role::Standby(standby) = &mut self.role {
            standby.heard();
        }
        self.actions.push(Action::Store(frame));
    }

    /// Reads the stream on, from the chain's end if there is a gap after it.
    pub(super) fn read(&mut self, now: Millis) {
        if self.reading.since.is_some_and(|since| now.since(since) < RETRY_INTERVAL) {
            return;
        }
        if self.reading.skipped || self.reading.gap || self.reading.overtaken.is_some() {
            if self.reading.asked.is_some_and(|asked| now.since(asked) < RETRY_INTERVAL) {
                return;
            }
            (self.reading.skipped, self.reading.gap, self.reading.overtaken) = (false, false, None);
            self.reading.next = self.chain.number().next();
        }
        self.reading.since = Some(now);
        self.actions.push(Action::Read(self.reading.next));
    }

    pub(super) fn read_ended(&mut self, from: Number, last: Number, now: Millis) {
        self.reading.since = None;
        // All places before `from` were in the stream when this read began.
        if last.next() < from {
            let end = self.chain.number();
            self.actions.push(Action::Alarm(Alarm::StreamEndsBefore { last, end }));
            return;
        }
        if last.next() != self.reading.next {
            return;
        }
        if self.lacks_frames() {
            self.ask(now);
            return;
        }
        match self.role {
            Role::Standby(_) => self.caught_up(now),
            Role::Owner(_) => self.publish_again(now),
        }
    }

    /// Whether a frame that follows on the chain may exist where this machine has not read it.
    pub(super) fn lacks_frames(&self) -> bool {
        let Reading { skipped, gap, overtaken, level, .. } = &self.reading;
        // What fills a hole was not visible if one other machine does not have it. The second one is asked, too: it
        // could follow no other frame in that place.
        let hole = *gap && level.len() < self.start.machines.others(self.me).count();
        // Two machines whose chains end here go on: the third one's chain is visible nowhere.
        let overtaken = overtaken.is_some() && !level.values().any(|level| *level);
        *skipped || hole || overtaken
    }

    /// Asks the other machines for the frame that follows on the chain.
    fn ask(&mut self, now: Millis) {
        if self.reading.asked.is_some_and(|asked| now.since(asked) < RETRY_INTERVAL) {
            return;
        }
        self.reading.asked = Some(now);
        if let Some(number) = self.reading.overtaken.filter(|_| !self.reading.skipped) {
            self.actions.push(Action::Alarm(Alarm::Overtaken { number }));
        }
        let tag = self.chain.tag();
        for to in self.start.machines.others(self.me) {
            self.actions.push(Action::Send { to, message: Message::AskAfter { tag } });
        }
    }
}
