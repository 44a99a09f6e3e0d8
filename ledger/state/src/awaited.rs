//! The requests that were passed on to other clusters and await their answers. A cluster answers each request of a group,
//! in the order of the groups, and its answers come in order: so an answer is to the oldest request that awaits one.

use std::collections::VecDeque;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::Digest;
use fastpay_ledger_statement::{ClusterId, StateKey};

use crate::draft::Draft;

/// Where the requests of a cluster are in the state: those that a height passed on are one entry.
#[derive(Clone, Copy, Default, BorshSerialize, BorshDeserialize)]
struct Place {
    /// The number of the first entry.
    first: u64,
    /// The number of the next one to be added.
    end: u64,
    /// The requests in all of them.
    count: u64,
}

/// The requests that await answers of a cluster, while a height is executed.
pub(crate) struct Awaited {
    place: Place,
    /// The first entry, less what was answered; empty where it was not read.
    oldest: VecDeque<Digest>,
    /// What this height passes on.
    newest: Vec<Digest>,
}

impl Draft<'_> {
    fn awaited(&mut self, of: ClusterId) -> &mut Awaited {
        let stored = || self.state.get(&StateKey::PendingCount(of)).unwrap_or_default();
        let (oldest, newest) = (VecDeque::new(), Vec::new());
        self.awaited.entry(of).or_insert_with(|| Awaited { place: stored(), oldest, newest })
    }

    /// How many requests await answers of a cluster.
    pub(crate) fn awaited_count(&mut self, of: ClusterId) -> u64 {
        self.awaited(of).place.count
    }

    /// Awaits the answer of a cluster to a request.
    pub(crate) fn await_answer(&mut self, of: ClusterId, request: Digest) {
        let awaited = self.awaited(of);
        awaited.place.count = awaited.place.count.saturating_add(1);
        awaited.newest.push(request);
    }

    /// Takes the answer of a cluster to a request. `None` if it is not the one that is due.
    pub(crate) fn answered(&mut self, of: ClusterId, request: Digest) -> Option<()> {
        let first = StateKey::Pending(of, self.awaited(of).place.first);
        if self.awaited(of).oldest.is_empty() {
            let stored: Vec<Digest> = self.state.get(&first)?;
            self.awaited(of).oldest = stored.into();
        }
        let awaited = self.awaited(of);
        awaited.oldest.pop_front().filter(|due| *due == request)?;
        awaited.place.count = awaited.place.count.saturating_sub(1);
        if awaited.oldest.is_empty() {
            awaited.place.first = awaited.place.first.saturating_add(1);
            self.state.tree.remove(&first);
        }
        Some(())
    }

    /// Writes what has changed into the state.
    pub(crate) fn close_awaited(&mut self) {
        for (of, Awaited { mut place, oldest, newest }) in std::mem::take(&mut self.awaited) {
            if !oldest.is_empty() {
                self.state.put(StateKey::Pending(of, place.first), &Vec::from(oldest));
            }
            if !newest.is_empty() {
                self.state.put(StateKey::Pending(of, place.end), &newest);
                place.end = place.end.checked_add(1).expect("a cluster has fewer than 2^64 heights");
            }
            self.state.put(StateKey::PendingCount(of), &place);
        }
    }
}
