//! The rules by which a shard's journal is kept on three machines, beside a replicated stream that no machine believes.
//!
//! ```text
//!           publish (expected number)            read
//!  owner ───────────────────────────► stream ──────────► standbys
//!    ▲  ◄── acknowledged, refused, unclear                 │ verify, follow the chain, append to the segment, sync
//!    └──────────────────── receipts (number, tag) ─────────┘
//! ```
//! The stream decides which frame comes next. The machines decide what is kept: each follows one chain of frames in
//! segments that are only ever appended to. A frame is *visible* once the stream has acknowledged it and two of the
//! three machines have synced it. An owner begins when its own takeover frame is visible, and answers nothing before a
//! frame that it published after the request is visible. Any two pairs of the three machines share one, and that one
//! follows a single chain: this alone makes two owners agree, whatever the stream does. docs/MACHINES.md has the
//! failures that each rule answers.
//!
//! Always true: a segment holds only frames that the stream acknowledged, in the order of their chain; a frame in a
//! segment is never cut or replaced.
//!
//! Deliberately absent: I/O, clocks, randomness. [`Replica`] returns [`Action`]s; its caller performs them in order.

mod chain;
mod credits;
mod folder;
mod frame;
mod identity;
mod key;
mod log;
mod replica;

pub use chain::{ChainEnd, ChainError};
pub use credits::{CreditsAhead, credits_to_resend};
pub use folder::{FolderError, Mode};
pub use frame::{
    Body, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, FRAME_OVERHEAD_BYTES, Frame, FrameError, Kind, Placement,
    RECORDS_BYTES_MAX,
};
pub use identity::{MachineId, Machines, MachinesError, Millis, Nonce, Number, Start, StartId, Tag, Term};
pub use key::FrameKey;
pub use log::{FrameLog, LogEvent};
pub use replica::{
    Action, Alarm, AppendError, EMPTY_FRAME_INTERVAL, FRAMES_IN_FLIGHT_MAX, FRAMES_KEPT_MIN, IDLE_FRAME_INTERVAL,
    Message, Next, RETRY_INTERVAL, Replica, Sealed, TakeoverError, Ticket,
};
