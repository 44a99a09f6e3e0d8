//! The owner: it publishes frames, a few of them in flight, and says what is visible.

use std::collections::{BTreeMap, VecDeque};

use super::{Action, AppendError, RETRY_INTERVAL, Replica, Role, Ticket};
use crate::chain::ChainEnd;
use crate::frame::{Body, Frame, Placement, RECORDS_BYTES_MAX};
use crate::identity::{MachineId, Millis, Number, Tag};

/// How many frames wait for the stream's acknowledgement. More add latency and hardly any rate.
pub const FRAMES_IN_FLIGHT_MAX: usize = 3;
/// Reads that no batch takes along share an empty frame, at most one in this time.
pub const EMPTY_FRAME_INTERVAL: Millis = Millis(100);
/// An idle owner publishes an empty frame this often. Standbys hear by it that it lives, and the owner hears that it was
/// replaced, also before it has begun.
pub const IDLE_FRAME_INTERVAL: Millis = Millis(1_000);
/// So many of the newest places are never purged. A standby that was restarted reads them at the stream's pace.
pub const FRAMES_KEPT_MIN: u64 = 1_000;

pub(super) struct Owner {
    began: bool,
    leaving: bool,
    left: bool,
    /// Published, and not yet taken into the chain; each follows on the one before it.
    flights: VecDeque<Flight>,
    /// In the chain, and not yet visible.
    unseen: VecDeque<Unseen>,
    /// Answers that the next frame takes along.
    waiting: Vec<Ticket>,
    receipts: BTreeMap<MachineId, Receipt>,
    /// Something is unclear: read the stream from the chain's end on, and publish again what is not there.
    looks: bool,
    published: Millis,
    published_empty: Option<Millis>,
    seen: Millis,
}

struct Flight {
    frame: Frame,
    end: ChainEnd,
    acknowledged: bool,
    published: Millis,
    tickets: Vec<Ticket>,
}

struct Unseen {
    number: Number,
    tag: Tag,
    tickets: Vec<Ticket>,
}

struct Receipt {
    number: Number,
    tag: Tag,
    /// The newest frame of this owner's chain that the machine holds for certain.
    holds: Number,
}

impl Owner {
    fn new(now: Millis) -> Self {
        Self {
            began: false,
            leaving: false,
            left: false,
            flights: VecDeque::new(),
            unseen: VecDeque::new(),
            waiting: Vec::new(),
            receipts: BTreeMap::new(),
            looks: false,
            published: now,
            published_empty: None,
            seen: now,
        }
    }

    pub(super) fn began(&self) -> bool {
        self.began
    }

    /// The last time that it was told.
    pub(super) fn seen(&self) -> Millis {
        self.seen
    }

    /// The end of the chain with all frames in flight.
    pub(super) fn end<'a>(&'a self, chain: &'a ChainEnd) -> &'a ChainEnd {
        self.flights.back().map_or(chain, |flight| &flight.end)
    }

    /// Whether this is the oldest frame in flight.
    pub(super) fn next_is(&self, frame: &Frame) -> bool {
        self.flights.front().is_some_and(|flight| flight.frame.tag() == frame.tag())
    }

    pub(super) fn note_receipt(&mut self, from: MachineId, number: Number, tag: Tag) {
        let receipt = self.receipts.entry(from).or_insert(Receipt { number, tag, holds: Number(0) });
        if number >= receipt.number {
            (receipt.number, receipt.tag) = (number, tag);
        }
    }

    /// Counts the machines that hold a frame: this one, and those whose receipts name a frame of this chain.
    fn holders(&self, number: Number, stored: Number) -> usize {
        let others = self.receipts.values().filter(|receipt| receipt.holds >= number).count();
        others + usize::from(stored >= number)
    }
}

impl Replica {
    /// Publishes a batch: a frame of format 1 for [`Replica::records_position`]. The answers of `ticket` may leave when
    /// [`Action::Visible`] names it.
    ///
    /// # Errors
    /// See [`AppendError`]; nothing was published.
    pub fn append(
        &mut self,
        records: Vec<u8>,
        new_segment: bool,
        ticket: Ticket,
        now: Millis,
    ) -> Result<(), AppendError> {
        if records.is_empty() || records.len() > RECORDS_BYTES_MAX {
            return Err(AppendError::Size(records.len()));
        }
        let owner = self.serving()?;
        owner.waiting.push(ticket);
        self.publish(&Body::Records(records), new_segment, now);
        Ok(())
    }

    /// Has answers wait that rest on no new record: reads, refusals, floors. They may leave when [`Action::Visible`]
    /// names the ticket: this machine then was the owner after it was called.
    ///
    /// # Errors
    /// `NotOwner`, `NotBegun`.
    pub fn answer(&mut self, ticket: Ticket) -> Result<(), AppendError> {
        match self.serving() {
            Ok(owner) => owner.waiting.push(ticket),
            Err(AppendError::InFlight | AppendError::Leaving) => {
                if let Role::Owner(owner) = &mut self.role {
                    owner.waiting.push(ticket);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Seals the stream, to go on with one machine: this one, after [`Action::Left`].
    ///
    /// # Errors
    /// See [`AppendError`].
    pub fn leave(&mut self, now: Millis) -> Result<(), AppendError> {
        let owner = self.serving()?;
        owner.leaving = true;
        self.publish(&Body::Seal, false, now);
        Ok(())
    }

    /// The newest place that may be purged from the stream: two machines hold it and everything before it, and enough
    /// newer places remain. Only the owner purges.
    #[must_use]
    pub fn purgeable(&self) -> Option<Number> {
        let Role::Owner(owner) = &self.role else { return None };
        if !owner.began {
            return None;
        }
        let mut held: Vec<Number> = owner.receipts.values().map(|receipt| receipt.holds).collect();
        held.push(self.stored.number());
        held.sort_unstable_by(|a, b| b.cmp(a));
        let by_two = held.get(1)?;
        let newest = self.chain.number().0.checked_sub(FRAMES_KEPT_MIN)?;
        Some(Number(by_two.0.min(newest))).filter(|number| *number > Number(0))
    }

    /// The owner, if it may publish now.
    fn serving(&mut self) -> Result<&mut Owner, AppendError> {
        match &mut self.role {
            Role::Standby(_) => Err(AppendError::NotOwner(self.chain.owner())),
            Role::Owner(owner) if !owner.began => Err(AppendError::NotBegun),
            Role::Owner(owner) if owner.leaving => Err(AppendError::Leaving),
            Role::Owner(owner) if owner.flights.len() >= FRAMES_IN_FLIGHT_MAX => Err(AppendError::InFlight),
            Role::Owner(owner) => Ok(owner),
        }
    }

    /// Becomes the owner once its first frame is visible: the stream's first, or a takeover.
    pub(super) fn begin(&mut self, now: Millis) {
        let body = match self.chain.number() {
            Number(0) => Body::First(self.start.clone()),
            _ => Body::Takeover(self.me),
        };
        let is_first = matches!(body, Body::First(_));
        self.wants_takeover = false;
        self.role = Role::Owner(Owner::new(now));
        self.publish(&body, is_first, now);
    }

    fn publish(&mut self, body: &Body, new_segment: bool, now: Millis) {
        let lacks_frames = self.lacks_frames();
        let Role::Owner(owner) = &mut self.role else { return };
        let end = *owner.end(&self.chain);
        // Places are left out if what they hold was judged to follow neither on the chain nor on a frame in flight. At
        // any other place a takeover may stand, and this frame must be refused.
        let judged = owner.flights.is_empty() && !lacks_frames;
        let free = if judged { self.reading.next } else { end.number().next() };
        let placement = Placement {
            number: end.number().next().max(free),
            term: match body {
                Body::First(_) => end.term().next(),
                Body::Takeover(_) => end.term().max(self.newest_term).next(),
                Body::Records(_) | Body::Empty | Body::Seal => end.term(),
            },
            position: end.position(),
            previous: end.tag(),
            new_segment,
        };
        let frame = Frame::seal(&self.key, placement, body);
        let end = end.follow(&self.start, &frame).expect("an owner's frame follows on its chain");
        let tickets = std::mem::take(&mut owner.waiting);
        owner.flights.push_back(Flight { frame: frame.clone(), end, acknowledged: false, published: now, tickets });
        owner.published = now;
        owner.seen = now;
        self.actions.push(Action::Publish(frame));
    }

    pub(super) fn acknowledged(&mut self, tag: Tag) {
        let Role::Owner(owner) = &mut self.role else { return };
        // An acknowledgement says nothing about the frames before it: another owner's may have come between.
        for flight in owner.flights.iter_mut().filter(|flight| flight.frame.tag() == tag) {
            flight.acknowledged = true;
        }
        while matches!(&self.role, Role::Owner(owner) if owner.flights.front().is_some_and(|first| first.acknowledged))
        {
            self.advance();
        }
    }

    /// The oldest frame in flight is in the stream: it goes into the chain and to disk.
    pub(super) fn advance(&mut self) {
        let Role::Owner(owner) = &mut self.role else { return };
        let Some(Flight { frame, end, tickets, .. }) = owner.flights.pop_front() else { return };
        owner.unseen.push_back(Unseen { number: end.number(), tag: end.tag(), tickets });
        self.take(frame, end);
        self.settle();
    }

    /// The stream refused a frame, or its answer was lost: find out what follows on the chain.
    pub(super) fn look(&mut self, tag: Tag, now: Millis) {
        let Role::Owner(owner) = &mut self.role else { return };
        if owner.flights.iter().any(|flight| flight.frame.tag() == tag && !flight.acknowledged) {
            owner.looks = true;
            self.read(now);
        }
    }

    /// All places of the stream are judged, and none holds the oldest frame in flight. It is published again: the same
    /// bytes if its place is free, else at the next place. An earlier attempt that is late is then refused by the
    /// stream, or by the chain.
    pub(super) fn publish_again(&mut self, now: Millis) {
        let Role::Owner(owner) = &mut self.role else { return };
        if !std::mem::take(&mut owner.looks) {
            return;
        }
        let mut end = self.chain;
        let mut number = self.reading.next;
        for flight in &mut owner.flights {
            let at = Placement { number, previous: end.tag(), ..*flight.frame.placement() };
            if at != *flight.frame.placement() {
                flight.frame = flight.frame.moved(&self.key, at);
                flight.end = end.follow(&self.start, &flight.frame).expect("a moved frame follows on the chain");
            }
            end = flight.end;
            number = number.next();
            flight.acknowledged = false;
            flight.published = now;
            self.actions.push(Action::Publish(flight.frame.clone()));
        }
    }

    /// Finds what is visible: acknowledged by the stream, and synced on two machines.
    pub(super) fn settle(&mut self) {
        let Role::Owner(owner) = &mut self.role else { return };
        let stored = self.stored.number();
        for receipt in owner.receipts.values_mut() {
            let named = (receipt.number, receipt.tag);
            if owner.unseen.iter().any(|frame| (frame.number, frame.tag) == named) {
                receipt.holds = receipt.number;
            }
        }
        let seen = owner.unseen.iter().take_while(|frame| owner.holders(frame.number, stored) >= 2).count();
        let frames: Vec<Unseen> = owner.unseen.drain(..seen).collect();
        if let Some(number) = frames.last().map(|frame| frame.number) {
            if !owner.began {
                owner.began = true;
                self.actions.push(Action::Began(self.chain.term()));
            }
            let tickets = frames.into_iter().flat_map(|frame| frame.tickets).collect();
            self.actions.push(Action::Visible { number, tickets });
        }
        if owner.unseen.is_empty() && self.stored.is_sealed() && !std::mem::replace(&mut owner.left, true) {
            self.actions.push(Action::Left(self.sealed()));
        }
    }

    pub(super) fn tick_owner(&mut self, now: Millis) {
        let Role::Owner(owner) = &mut self.role else { return };
        owner.seen = now;
        if owner.flights.front().is_some_and(|first| now.since(first.published) >= RETRY_INTERVAL) {
            owner.looks = true;
        }
        let looks = owner.looks;
        let room = !owner.leaving && owner.flights.len() < FRAMES_IN_FLIGHT_MAX;
        let rested = owner.published_empty.is_none_or(|at| now.since(at) >= EMPTY_FRAME_INTERVAL);
        let idle = owner.flights.is_empty() && now.since(owner.published) >= IDLE_FRAME_INTERVAL;
        if room && ((rested && !owner.waiting.is_empty()) || idle) {
            owner.published_empty = Some(now);
            self.publish(&Body::Empty, false, now);
        }
        if looks {
            self.read(now);
        }
    }
}
