//! One address of clients, and what its requests have been worth of late.
//!
//! Requests that change nothing (forged, not covered, out of turn, repeated) cost an authority about as much as those
//! that do. Whoever sends hardly anything else is on probation: few of its requests wait at a time, and its streams
//! are read one after the other with pauses, so that others keep nearly all of the shard. It is still served, and
//! requests that change something again end the probation. Honest clients send few worthless requests for each good
//! one, and one that is taken for a bad one by mistake is slower, not shut out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// About so many of the last requests of an address are remembered.
const REMEMBERED: u64 = 512;
/// All of them.
const WHOLE: u64 = 1 << 16;
/// Above this share of worthless requests an address is on probation. A wallet that repeats a certificate to be sure
/// of it, or asks twice, is far below.
const WORTHLESS_MAX: u64 = WHOLE * 7 / 8;
/// At most so many requests of an address on probation wait in the shard's queue.
const WAITING_ON_PROBATION_MAX: usize = 16;
/// So long one of its streams pauses before another one is read: some hundred requests a second. A few forged signatures
/// in a batch triple what it costs to check it, so they must be few.
const PAUSE_ON_PROBATION: Duration = Duration::from_millis(50);
/// At most so many reads of one address at a time; further ones wait unread.
const READS_MAX: usize = 64;

/// An address, while it is connected and as long as it has a bad name.
#[derive(Debug)]
pub struct Peer {
    waiting: AtomicUsize,
    /// The share of worthless requests, of [`WHOLE`].
    worthless: AtomicU32,
    turn: Mutex<()>,
    reads: Arc<Semaphore>,
}

impl Default for Peer {
    fn default() -> Self {
        let reads = Arc::new(Semaphore::new(READS_MAX));
        Self { waiting: AtomicUsize::new(0), worthless: AtomicU32::new(0), turn: Mutex::new(()), reads }
    }
}

impl Peer {
    /// True where nearly all of its requests of late were worthless.
    #[must_use]
    pub fn is_on_probation(&self) -> bool {
        u64::from(self.worthless.load(Ordering::Relaxed)) > WORTHLESS_MAX
    }

    /// True where nothing worthless came from it of late.
    #[must_use]
    pub fn is_blameless(&self) -> bool {
        self.worthless.load(Ordering::Relaxed) == 0
    }

    /// Waits as long as one on probation has to before more of a stream is read.
    pub async fn pause(&self) {
        if self.is_on_probation() {
            let _turn = self.turn.lock().await;
            tokio::time::sleep(PAUSE_ON_PROBATION).await;
        }
    }

    /// The right to read something, in turn.
    pub async fn read(&self) -> Option<OwnedSemaphorePermit> {
        self.reads.clone().acquire_owned().await.ok()
    }

    /// Takes note of what a number of requests were worth, all of them much or nothing.
    pub fn judge(&self, requests: usize, worthless: bool) {
        let requests = (requests as u64).min(REMEMBERED);
        let found = if worthless { WHOLE } else { 0 };
        let share = u64::from(self.worthless.load(Ordering::Relaxed));
        let (old, new) = (share.saturating_mul(REMEMBERED), found.saturating_mul(requests));
        let share = old.saturating_add(new) / REMEMBERED.saturating_add(requests);
        self.worthless.store(u32::try_from(share).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// How many more of its requests may wait.
    pub(super) fn room(&self) -> usize {
        if self.is_on_probation() {
            WAITING_ON_PROBATION_MAX.saturating_sub(self.waiting.load(Ordering::Relaxed))
        } else {
            usize::MAX
        }
    }

    pub(super) fn queued(&self, requests: usize) {
        self.waiting.fetch_add(requests, Ordering::Relaxed);
    }

    pub(super) fn taken(&self, requests: usize) {
        self.waiting.fetch_sub(requests, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_nothing_of_worth_is_on_probation_until_it_does() {
        let peer = Peer::default();
        assert_eq!(peer.room(), usize::MAX);
        (0..300).for_each(|_| peer.judge(1, true));
        assert!(!peer.is_on_probation(), "a short spell is forgiven");
        (0..2_000).for_each(|_| peer.judge(1, true));
        assert_eq!(peer.room(), WAITING_ON_PROBATION_MAX);
        peer.queued(WAITING_ON_PROBATION_MAX + 1);
        assert_eq!(peer.room(), 0);
        peer.taken(1);
        (0..200).for_each(|_| peer.judge(1, false));
        assert_eq!(peer.room(), usize::MAX);
    }

    #[test]
    fn one_good_request_among_four_is_enough() {
        let peer = Peer::default();
        (0..10_000).for_each(|number| peer.judge(1, number % 4 != 0));
        assert!(!peer.is_on_probation());
        // Many at once count as many.
        peer.judge(usize::MAX, true);
        peer.judge(usize::MAX, true);
        peer.judge(usize::MAX, true);
        peer.judge(usize::MAX, true);
        assert!(peer.is_on_probation());
    }
}
