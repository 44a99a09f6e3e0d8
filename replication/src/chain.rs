//! The end of a verified chain, and which frame may follow on it.

use fastpay_core::JournalPosition;
use thiserror::Error;

use crate::frame::{Frame, Kind};
use crate::identity::{MachineId, Number, Start, Tag, Term};

/// The end of a chain of frames, each of which follows on the one before it, from the start on. A caller gets one only
/// by following every frame, so a machine that has one has the whole journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainEnd {
    number: Number,
    term: Term,
    position: JournalPosition,
    tag: Tag,
    owner: MachineId,
    sealed: bool,
}

/// Why an authentic frame does not follow on a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChainError {
    /// It names another frame as the one before it: a stale owner wrote it, or a frame in between is missing.
    #[error("the frame follows on {found:?}, the chain ends with {end:?}")]
    Previous {
        /// The frame that it names.
        found: Tag,
        /// The end of the chain.
        end: Tag,
    },
    /// Its number is not above the last one.
    #[error("frame {found} follows on frame {end}")]
    Number {
        /// Its number.
        found: Number,
        /// The last number.
        end: Number,
    },
    /// It stands elsewhere in the journal.
    #[error("the frame stands at {found}, the journal ends at {end}")]
    Position {
        /// Its position.
        found: JournalPosition,
        /// The journal's end.
        end: JournalPosition,
    },
    /// Its term is not that of the owner, or not a later one in a takeover.
    #[error("the frame has term {found:?} after term {end:?}")]
    Term {
        /// Its term.
        found: Term,
        /// The term of the chain.
        end: Term,
    },
    /// The first frame is missing, is another one's, or comes a second time.
    #[error("the stream does not begin with this journal's first frame, or begins twice")]
    First,
    /// A machine takes over that is none of the three.
    #[error("machine {0:?} takes over, and is none of this shard's")]
    Machine(MachineId),
    /// The chain was sealed.
    #[error("the stream was sealed: nothing follows")]
    Sealed,
}

impl ChainEnd {
    /// The end before the first frame.
    #[must_use]
    pub fn before_first(start: &Start) -> Self {
        let (owner, tag, position) = (start.machines.founder(), start.tail, start.position);
        Self { number: Number(0), term: Term(0), position, tag, owner, sealed: false }
    }

    /// The end with one more frame.
    ///
    /// # Errors
    /// See [`ChainError`]; the chain stays.
    pub fn follow(&self, start: &Start, frame: &Frame) -> Result<Self, ChainError> {
        let at = frame.placement();
        if self.sealed {
            return Err(ChainError::Sealed);
        }
        if at.previous != self.tag {
            return Err(ChainError::Previous { found: at.previous, end: self.tag });
        }
        if at.number <= self.number {
            return Err(ChainError::Number { found: at.number, end: self.number });
        }
        if at.position != self.position {
            return Err(ChainError::Position { found: at.position, end: self.position });
        }
        let is_first = self.number == Number(0);
        let (term, owner) = match frame.kind() {
            Kind::First(named) if is_first && **named == *start => (self.term.next(), self.owner),
            Kind::First(_) => return Err(ChainError::First),
            _ if is_first => return Err(ChainError::First),
            Kind::Takeover(machine) if !start.machines.contains(*machine) => {
                return Err(ChainError::Machine(*machine));
            }
            // Above the terms of all takeovers that its owner has seen, also of those that were not followed.
            Kind::Takeover(machine) => (at.term.max(self.term.next()), *machine),
            Kind::Records | Kind::Empty | Kind::Seal => (self.term, self.owner),
        };
        if at.term != term {
            return Err(ChainError::Term { found: at.term, end: self.term });
        }
        let position = JournalPosition(self.position.0.saturating_add(frame.bytes().len() as u64));
        let sealed = *frame.kind() == Kind::Seal;
        Ok(Self { number: at.number, term, position, tag: frame.tag(), owner, sealed })
    }

    /// The last frame's number.
    #[must_use]
    pub fn number(&self) -> Number {
        self.number
    }

    /// The term of the present owner.
    #[must_use]
    pub fn term(&self) -> Term {
        self.term
    }

    /// The position after the last frame.
    #[must_use]
    pub fn position(&self) -> JournalPosition {
        self.position
    }

    /// The last frame's tag.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// The machine that wrote the last first or takeover frame.
    #[must_use]
    pub fn owner(&self) -> MachineId {
        self.owner
    }

    /// Whether the last frame is a seal.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }
}
