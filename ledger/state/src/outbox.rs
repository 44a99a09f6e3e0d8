//! Groups of what a height sends. What does not fit into a group waits in the state for a later one [LEDGER 9].
//!
//! Always true: what waits is bounded. A proposal that adds too much is not valid, so its leader takes fewer requests
//! and groups. Every height sends as much as a group holds, so these proposals are valid however much waits: an empty
//! one, and one with a single request. One group of another cluster can be taken at the latest when nothing waits.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_ledger_statement::{
    Cursor, GROUP_BYTES_MAX, GROUP_MESSAGES_MAX, Group, Message, Outputs, Receiver, StateKey, Time,
};

use crate::draft::{Draft, FoldError};

/// A FastPay committee gets a group at the first height this long after its last one, so that its authorities know the
/// ledger's time [LEDGER 3].
pub const COMMITTEE_GROUP_INTERVAL_MS: u64 = 10_000;
/// At most so many messages wait for a receiver after a height: two groups.
pub const WAITING_MESSAGES_MAX: u64 = 2 * GROUP_MESSAGES_MAX as u64;
/// At most so many bytes of messages wait for a receiver after a height: eight groups.
pub const WAITING_BYTES_MAX: u64 = 8 * GROUP_BYTES_MAX as u64;
/// Nothing is looked up for a receiver for whom more bytes wait: half of what can, so that the short answers to a whole
/// group of requests always fit beside it.
pub const LOOK_UP_BYTES_MAX: u64 = WAITING_BYTES_MAX / 2;

/// What a height sends to a receiver, in order.
#[derive(Default)]
pub(crate) struct Outgoing {
    messages: Vec<Message>,
    bytes: u64,
}

/// What waits for a receiver in the state.
#[derive(Clone, Copy, Default, BorshSerialize, BorshDeserialize)]
struct Queue {
    /// The number of the first message.
    first: u64,
    /// The number of the next one to be added.
    end: u64,
    /// The length of all.
    bytes: u64,
}

/// A group that is being filled.
#[derive(Default)]
struct Filling {
    messages: Vec<Message>,
    bytes: u64,
    is_full: bool,
}

impl Filling {
    /// Adds a message if it fits; otherwise nothing is added any more.
    fn add(&mut self, message: &Message) -> bool {
        let bytes = self.bytes.saturating_add(length(message));
        self.is_full |= self.messages.len() >= GROUP_MESSAGES_MAX || bytes > GROUP_BYTES_MAX as u64;
        if !self.is_full {
            self.bytes = bytes;
            self.messages.push(message.clone());
        }
        !self.is_full
    }
}

impl Draft<'_> {
    /// Sends a message when the height is closed, or later.
    pub(crate) fn push(&mut self, to: Receiver, message: Message) {
        let outgoing = self.outbox.entry(to).or_default();
        outgoing.bytes = outgoing.bytes.saturating_add(length(&message));
        outgoing.messages.push(message);
    }

    /// The bytes that wait for a receiver before the height is closed.
    pub(crate) fn waiting_bytes(&self, to: Receiver) -> u64 {
        let outgoing = self.outbox.get(&to).map_or(0, |outgoing| outgoing.bytes);
        self.queue(to).bytes.saturating_add(outgoing)
    }

    fn queue(&self, to: Receiver) -> Queue {
        self.state.get(&StateKey::Queue(to)).unwrap_or_default()
    }

    /// Closes the height: one group for each receiver that has messages, or that is due one.
    pub(crate) fn send(&mut self) -> Result<Outputs, FoldError> {
        let receivers: Vec<Receiver> = self.layout.receivers().collect();
        let mut groups = Vec::new();
        for to in receivers {
            groups.extend(self.group(to)?);
        }
        let outputs = Outputs::new(self.layout.deployment(), self.layout.us(), groups);
        Ok(outputs.expect("the genesis bounds the receivers"))
    }

    fn group(&mut self, to: Receiver) -> Result<Option<Group>, FoldError> {
        let messages = self.fill(to)?;
        let (cursor, newest): (Cursor, Option<Time>) = self.state.get(&StateKey::Sent(to)).unwrap_or_default();
        if messages.is_empty() && !self.is_due(to, newest) {
            return Ok(None);
        }
        let group = Group { to, number: cursor.next, previous: cursor.previous, messages };
        let previous = group.head().digest(self.layout.deployment(), self.layout.us());
        let next = cursor.next.checked_add(1).expect("a cluster has fewer than 2^64 heights");
        self.state.put(StateKey::Sent(to), &(Cursor { next, previous }, Some(self.moment.time)));
        if let Receiver::Committee(number) = to {
            self.note_matured(number, previous);
        }
        Ok(Some(group))
    }

    /// The messages that fit, the oldest first. The others wait.
    fn fill(&mut self, to: Receiver) -> Result<Vec<Message>, FoldError> {
        let mut filling = Filling::default();
        let mut queue = self.queue(to);
        while queue.first < queue.end {
            let key = StateKey::Queued(to, queue.first);
            let waiting = self.state.get(&key).expect("what waits is in the queue");
            if !filling.add(&waiting) {
                break;
            }
            self.state.tree.remove(&key);
            queue.first = queue.first.saturating_add(1);
            queue.bytes = queue.bytes.saturating_sub(length(&waiting));
        }
        for message in self.outbox.remove(&to).unwrap_or_default().messages {
            // Once one waits, the later ones do.
            if !filling.add(&message) {
                self.state.put(StateKey::Queued(to, queue.end), &message);
                queue.end = queue.end.checked_add(1).expect("fewer than 2^64 messages");
                queue.bytes = queue.bytes.saturating_add(length(&message));
            }
        }
        let count = queue.end.saturating_sub(queue.first);
        if count > WAITING_MESSAGES_MAX || queue.bytes > WAITING_BYTES_MAX {
            return Err(FoldError::Overfull(to));
        }
        if count == 0 {
            self.state.tree.remove(&StateKey::Queue(to));
        } else {
            self.state.put(StateKey::Queue(to), &queue);
        }
        Ok(filling.messages)
    }

    fn is_due(&self, to: Receiver, newest: Option<Time>) -> bool {
        let Receiver::Committee(number) = to else { return false };
        let due = newest.map(|newest| newest.0.saturating_add(COMMITTEE_GROUP_INTERVAL_MS));
        self.is_maturing(number) || due.is_none_or(|due| self.moment.time.0 >= due)
    }
}

fn length(message: &Message) -> u64 {
    borsh::object_length(message).ok().and_then(|length| length.try_into().ok()).unwrap_or(u64::MAX)
}
