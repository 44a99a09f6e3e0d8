//! Groups of what a height sends. What does not fit into a group waits in the state for a later one [LEDGER 9].

use fastpay_ledger_statement::{
    Cursor, GROUP_BYTES_MAX, GROUP_MESSAGES_MAX, Group, Message, Outputs, Receiver, StateKey, Time,
};

use crate::draft::Draft;

/// A FastPay committee gets a group at least this often, so that its authorities know the ledger's time [LEDGER 3].
pub const COMMITTEE_GROUP_INTERVAL_MS: u64 = 10_000;

/// A group that is being filled.
#[derive(Default)]
struct Filling {
    messages: Vec<Message>,
    bytes: usize,
}

impl Filling {
    /// Adds a message if it fits; otherwise nothing is added any more.
    fn add(&mut self, message: &Message) -> bool {
        let length = borsh::object_length(message).unwrap_or(usize::MAX);
        self.bytes = self.bytes.saturating_add(length);
        let fits = self.messages.len() < GROUP_MESSAGES_MAX && self.bytes <= GROUP_BYTES_MAX;
        if fits {
            self.messages.push(message.clone());
        } else {
            self.bytes = usize::MAX;
        }
        fits
    }
}

impl Draft<'_> {
    /// Closes the height: one group for each receiver that has messages, or that is due one.
    pub(crate) fn send(&mut self) -> Outputs {
        let receivers: Vec<Receiver> = self.layout.receivers().collect();
        let groups = receivers.into_iter().filter_map(|to| self.group(to)).collect();
        Outputs::new(self.layout.deployment(), self.layout.us(), groups).expect("the genesis bounds the receivers")
    }

    fn group(&mut self, to: Receiver) -> Option<Group> {
        let messages = self.fill(to);
        let (cursor, newest): (Cursor, Option<Time>) = self.state.get(&StateKey::Sent(to)).unwrap_or_default();
        if messages.is_empty() && !self.is_due(to, newest) {
            return None;
        }
        let group = Group { to, number: cursor.next, previous: cursor.previous, messages };
        let previous = group.head().digest(self.layout.deployment(), self.layout.us());
        let next = cursor.next.checked_add(1).expect("a cluster has fewer than 2^64 heights");
        self.state.put(StateKey::Sent(to), &(Cursor { next, previous }, Some(self.moment.time)));
        Some(group)
    }

    /// The messages that fit, the oldest first. The others wait.
    fn fill(&mut self, to: Receiver) -> Vec<Message> {
        let mut filling = Filling::default();
        let (first, end): (u64, u64) = self.state.get(&StateKey::Queue(to)).unwrap_or_default();
        let (mut next, mut last) = (first, end);
        while next < end {
            let key = StateKey::Queued(to, next);
            let waiting = self.state.get(&key).expect("what waits is in the queue");
            if !filling.add(&waiting) {
                break;
            }
            self.state.tree.remove(&key);
            next = next.saturating_add(1);
        }
        for message in self.outbox.remove(&to).unwrap_or_default() {
            // Once one waits, the later ones do.
            if !filling.add(&message) {
                self.state.put(StateKey::Queued(to, last), &message);
                last = last.checked_add(1).expect("fewer than 2^64 messages");
            }
        }
        if next == last {
            self.state.tree.remove(&StateKey::Queue(to));
        } else {
            self.state.put(StateKey::Queue(to), &(next, last));
        }
        filling.messages
    }

    fn is_due(&self, to: Receiver, newest: Option<Time>) -> bool {
        let due = newest.map(|newest| newest.0.saturating_add(COMMITTEE_GROUP_INTERVAL_MS));
        matches!(to, Receiver::Committee(_)) && due.is_none_or(|due| self.moment.time.0 >= due)
    }
}
