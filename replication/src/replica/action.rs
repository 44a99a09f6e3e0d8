//! What a machine says to its caller and to the other machines.

use std::sync::Arc;

use thiserror::Error;

use super::FRAMES_IN_FLIGHT_MAX;
use crate::chain::ChainError;
use crate::frame::{Frame, FrameError};
use crate::identity::{MachineId, Number, StartId, Tag, Term};

/// Answers that wait for a frame: a number of the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// What machines of a shard tell each other. The caller's connections authenticate the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The sender has synced the chain up to this frame, and will never follow another one.
    Receipt {
        /// The frame's number.
        number: Number,
        /// Its tag, which stands for all frames before it.
        tag: Tag,
    },
    /// Asks for the frame after this one.
    AskAfter {
        /// The tag of the frame before.
        tag: Tag,
    },
    /// What follows on this frame in the sender's segments.
    After {
        /// The tag of the frame before.
        tag: Tag,
        /// What follows.
        next: Next,
    },
}

/// What follows on a frame in a machine's segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The bytes of this frame.
    Frame(Arc<[u8]>),
    /// Nothing: the machine's chain ends there, too.
    Nothing,
    /// The machine does not hold that frame.
    Unknown,
}

/// What the caller does, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Publish the frame: [`FrameLog::append`](crate::FrameLog::append).
    Publish(Frame),
    /// Read the stream: [`FrameLog::read`](crate::FrameLog::read).
    Read(Number),
    /// Append the frame to the segment, sync, and report [`Replica::stored`]. Frames are stored in this order.
    Store(Frame),
    /// Send a message.
    Send {
        /// To this machine.
        to: MachineId,
        /// The message.
        message: Message,
    },
    /// Look into the segments, also at what is not synced yet, for the frame that names this tag as its predecessor, and
    /// answer with it in a [`Message::After`], or that it is unknown.
    LookUp {
        /// The machine that asks.
        to: MachineId,
        /// The tag.
        tag: Tag,
    },
    /// This machine owns the journal from now on: fold the chain, compare credits, serve.
    Began(Term),
    /// The frames up to this one are visible: send these answers.
    Visible {
        /// The newest visible frame.
        number: Number,
        /// The answers that waited for it.
        tickets: Vec<Ticket>,
    },
    /// This machine owns the journal no longer. Drop all answers that wait; the shard's state may hold decisions that
    /// never became visible, so fold the chain again.
    Fenced,
    /// The stream is sealed by this machine, and two machines hold the seal: this folder goes on alone.
    Left(Sealed),
    /// Tell the operator. It is repeated while it lasts.
    Alarm(Alarm),
}

/// What needs an operator if it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Alarm {
    /// The stream has lost frames that this machine holds. Nothing more becomes visible here.
    #[error("the stream ends at {last}, and this machine holds frame {end}: its servers lost frames")]
    StreamEndsBefore {
        /// The stream's last place.
        last: Number,
        /// The newest frame that was acknowledged here.
        end: Number,
    },
    /// A frame in the stream is damaged. The other machines are asked for it.
    #[error("frame {number} in the stream is damaged: {error}")]
    Damaged {
        /// Its place.
        number: Number,
        /// The damage.
        error: FrameError,
    },
    /// The owner of a later term does not continue this machine's chain. If it lasts, this machine holds a frame that
    /// the servers lost before it was visible: replace this machine.
    #[error("frame {number} continues another chain than this machine's")]
    Overtaken {
        /// The place of its frame.
        number: Number,
    },
    /// An authentic frame follows on the chain and breaks its rules: a machine has another version or an error.
    #[error("frame {number} is authentic and breaks a rule: {error}")]
    Unfit {
        /// Its place.
        number: Number,
        /// The rule.
        error: ChainError,
    },
}

/// Proof that a chain is sealed and that two machines hold its seal. Only a [`Replica`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    pub(super) by: MachineId,
    pub(super) start: StartId,
    pub(super) tag: Tag,
}

impl Sealed {
    /// The owner that sealed it.
    #[must_use]
    pub fn by(&self) -> MachineId {
        self.by
    }

    /// The start of the chain.
    #[must_use]
    pub fn start(&self) -> StartId {
        self.start
    }

    /// The seal's tag.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.tag
    }
}

/// Why nothing was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AppendError {
    /// Another machine owns the journal.
    #[error("machine {0:?} owns this journal")]
    NotOwner(MachineId),
    /// This machine is about to own the journal: answer busy.
    #[error("the takeover is not visible yet")]
    NotBegun,
    /// As many frames are in flight as may be: answer busy.
    #[error("{FRAMES_IN_FLIGHT_MAX} frames are in flight")]
    InFlight,
    /// The batch is empty or above [`RECORDS_BYTES_MAX`](crate::RECORDS_BYTES_MAX).
    #[error("a batch of {0} bytes cannot be one frame")]
    Size(usize),
    /// The stream is being sealed.
    #[error("the journal is leaving its stream")]
    Leaving,
}

/// Why a takeover is not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TakeoverError {
    /// This machine owns the journal, or is about to.
    #[error("this machine owns the journal already")]
    Owner,
    /// The stream is sealed.
    #[error("the stream is sealed: the machine that sealed it goes on alone")]
    Sealed,
    /// The stream is empty, and another machine's journal is to begin it.
    #[error("machine {0:?} begins this stream: take over there first")]
    NotFounder(MachineId),
}
