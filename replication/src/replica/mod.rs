//! One machine's part of a shard's journal: a standby that follows the stream, or the owner that writes to it.
//!
//! The caller hands in what happened (an outcome of the stream, a message of another machine, a synced frame, the time)
//! and performs the [`Action`]s in order. A lost message or outcome costs time only: everything is asked for again.

mod action;
mod owner;
mod reading;
mod standby;

use std::collections::VecDeque;

use fastpay_core::JournalPosition;

use crate::chain::ChainEnd;
use crate::frame::{FRAME_HEADER_BYTES, Frame, Kind};
use crate::identity::{MachineId, Millis, Number, Start, Tag, Term};
use crate::key::FrameKey;
use crate::log::LogEvent;
use owner::Owner;
use reading::Reading;
use standby::Standby;

pub use action::{Action, Alarm, AppendError, Message, Next, Sealed, TakeoverError, Ticket};
pub use owner::{EMPTY_FRAME_INTERVAL, FRAMES_IN_FLIGHT_MAX, FRAMES_KEPT_MIN, IDLE_FRAME_INTERVAL};

/// After this time without an outcome, a read, a frame or a receipt is sent again.
pub const RETRY_INTERVAL: Millis = Millis(1_000);

/// One machine's part of one shard's journal.
pub struct Replica {
    me: MachineId,
    start: Start,
    key: FrameKey,
    /// The end of the frames that were followed; the last ones may not be synced.
    chain: ChainEnd,
    /// The end of the synced frames.
    stored: ChainEnd,
    /// The ends of the frames that are being synced.
    storing: VecDeque<ChainEnd>,
    reading: Reading,
    /// The newest term of a frame that did not follow on the chain.
    newest_term: Term,
    role: Role,
    /// Take over as soon as the whole chain is here.
    wants_takeover: bool,
    /// Take over by itself after so much silence.
    automatic: Option<Millis>,
    actions: Vec<Action>,
}

enum Role {
    Standby(Standby),
    Owner(Owner),
}

impl Replica {
    /// The machine `me` with the chain that its segments hold, as a standby. The caller made `stored` by following each
    /// frame of its segments, and cut off only a last frame whose write a crash tore.
    ///
    /// # Panics
    /// If `me` is none of the start's machines: [`Mode::join`](crate::Mode::join) refuses that.
    #[must_use]
    pub fn open(me: MachineId, start: Start, authority_secret: &[u8; 32], stored: ChainEnd, now: Millis) -> Self {
        assert!(start.machines.contains(me), "the folder was joined as one of the machines");
        let key = FrameKey::derive(authority_secret, &start);
        Self {
            me,
            start,
            key,
            chain: stored,
            stored,
            storing: VecDeque::new(),
            reading: Reading::after(&stored),
            newest_term: Term(0),
            role: Role::Standby(Standby::new(now)),
            wants_takeover: false,
            automatic: None,
            actions: Vec::new(),
        }
    }

    /// What the caller has to do since it last asked.
    #[must_use]
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// The end of the frames that were followed.
    #[must_use]
    pub fn chain(&self) -> &ChainEnd {
        &self.chain
    }

    /// Whether this machine owns the journal and may serve.
    #[must_use]
    pub fn serves(&self) -> bool {
        matches!(&self.role, Role::Owner(owner) if owner.began())
    }

    /// Where the next batch's bytes will stand in the journal. Format 1's checksums need it.
    #[must_use]
    pub fn records_position(&self) -> JournalPosition {
        let position = match &self.role {
            Role::Owner(owner) => owner.end(&self.chain).position(),
            Role::Standby(_) => self.chain.position(),
        };
        JournalPosition(position.0.saturating_add(FRAME_HEADER_BYTES as u64))
    }

    /// Takes an outcome of the stream.
    pub fn on_log(&mut self, event: LogEvent, now: Millis) {
        match event {
            LogEvent::Acknowledged(tag) => self.acknowledged(tag),
            LogEvent::Refused(tag) | LogEvent::Unclear(tag) => self.look(tag, now),
            LogEvent::Placed { number, bytes } => self.placed(number, bytes),
            LogEvent::End { from, last } => self.read_ended(from, last, now),
        }
    }

    /// Takes a message of another machine, whom the connection authenticated.
    pub fn on_message(&mut self, from: MachineId, message: Message, now: Millis) {
        if from == self.me || !self.start.machines.contains(from) {
            return;
        }
        match message {
            Message::Receipt { number, tag } => self.receipt(from, number, tag),
            Message::AskAfter { tag } if tag == self.chain.tag() => {
                let message = Message::After { tag, next: Next::Nothing };
                self.actions.push(Action::Send { to: from, message });
            }
            Message::AskAfter { tag } => self.actions.push(Action::LookUp { to: from, tag }),
            Message::After { tag, next } if tag == self.chain.tag() => self.shown(from, next, now),
            Message::After { .. } => {}
        }
    }

    /// The frames up to this number are synced in the segments.
    pub fn stored(&mut self, number: Number, now: Millis) {
        while let Some(end) = self.storing.pop_front_if(|end| end.number() <= number) {
            self.stored = end;
        }
        match self.role {
            Role::Standby(_) => self.send_receipt(now),
            Role::Owner(_) => self.settle(),
        }
    }

    /// Takes the time. Call it about every 10 ms.
    pub fn tick(&mut self, now: Millis) {
        match self.role {
            Role::Standby(_) => self.tick_standby(now),
            Role::Owner(_) => self.tick_owner(now),
        }
    }

    /// The operator moves the journal to this machine, which owns it once it has said [`Action::Began`].
    ///
    /// # Errors
    /// See [`TakeoverError`].
    pub fn take_over(&mut self) -> Result<(), TakeoverError> {
        if matches!(self.role, Role::Owner(_)) {
            return Err(TakeoverError::Owner);
        }
        if self.chain.is_sealed() {
            return Err(TakeoverError::Sealed);
        }
        let founder = self.start.machines.founder();
        if self.chain.number() == Number(0) && founder != self.me {
            return Err(TakeoverError::NotFounder(founder));
        }
        self.wants_takeover = true;
        Ok(())
    }

    /// Lets this machine take over by itself after so much silence of the owner, or forbids it. An owner that was
    /// fenced is forbidden it until this is called again.
    pub fn set_automatic(&mut self, after: Option<Millis>) {
        self.automatic = after;
        self.wants_takeover = false;
    }

    /// A frame of another owner follows where this machine's was to be: it is a standby from now on.
    fn step_down(&mut self, frame: &Frame) {
        let Role::Owner(owner) = &self.role else { return };
        if owner.began() {
            self.automatic = None;
            self.actions.push(Action::Fenced);
        } else {
            // The takeover was too late by a frame, and is tried again, unless another machine was faster.
            self.wants_takeover = !matches!(frame.kind(), Kind::Takeover(machine) if *machine != self.me);
        }
        self.role = Role::Standby(Standby::new(owner.seen()));
    }

    fn receipt(&mut self, from: MachineId, number: Number, tag: Tag) {
        match &mut self.role {
            Role::Owner(owner) => {
                owner.note_receipt(from, number, tag);
                self.settle();
            }
            // After a restart between the seal and leaving.
            Role::Standby(_) => {
                let sealed_here = self.stored.is_sealed() && self.stored.owner() == self.me;
                if sealed_here && (number, tag) == (self.stored.number(), self.stored.tag()) {
                    self.actions.push(Action::Left(self.sealed()));
                }
            }
        }
    }

    fn sealed(&self) -> Sealed {
        Sealed { by: self.me, start: self.key.start(), tag: self.stored.tag() }
    }
}
