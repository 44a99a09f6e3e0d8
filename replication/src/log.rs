//! The replicated stream, as the rules see it. Nothing that it says about contents is believed.

use std::sync::Arc;

use crate::frame::Frame;
use crate::identity::{Number, Tag};

/// A stream of frames at places 1, 2, and so on. Calls return at once; their outcomes come from [`FrameLog::next`], in
/// whatever order, more than once, or never. A caller repeats what it hears nothing of.
pub trait FrameLog {
    /// Publishes a frame at the place of its number, if the place before it is the last one.
    fn append(&mut self, frame: &Frame);

    /// Reads from a place on. The log answers [`LogEvent::Placed`] for places in ascending order, and then
    /// [`LogEvent::End`].
    fn read(&mut self, from: Number);

    /// Removes all places up to `last`, inclusive.
    fn purge(&mut self, last: Number);

    /// The next outcome, if there is one now.
    fn next(&mut self) -> Option<LogEvent>;
}

/// An outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// The stream has stored the frame with this tag, synced on most of its servers. A number would not do: an owner may
    /// have published two frames with it.
    Acknowledged(Tag),
    /// The stream has not stored it: the place before it was not the last one. An earlier attempt may have been stored.
    Refused(Tag),
    /// The stream's answer was lost. The frame is stored, or will be, or not.
    Unclear(Tag),
    /// What is at a place. `None` is a hole. Places that are left out between two are holes, too.
    Placed {
        /// The place.
        number: Number,
        /// The bytes there.
        bytes: Option<Arc<[u8]>>,
    },
    /// The end of a read: `last` was the stream's last place after the read began.
    End {
        /// Where the read began.
        from: Number,
        /// The last place; 0 in an empty stream.
        last: Number,
    },
}
