//! The reputation of one client address: how useful its recent requests were.
//!
//! Requests that change nothing (forged, not covered, out of turn, repeated), and payments of an account to itself,
//! cost an authority about as much as useful ones. An address whose last 1,000 requests were mostly of that kind is on
//! probation: few of its requests wait at a time, and its streams are read one after the other with pauses, so that the
//! others keep nearly all of the shard. It is still served, and useful requests end the probation. Honest clients send
//! few worthless requests for each useful one; an honest client on probation by mistake is slower, not shut out.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// The number of recent requests by which an address is judged.
const JUDGED_REQUESTS: usize = 1_000;
/// An address with more worthless requests than this is on probation. A wallet that repeats a certificate, asks twice,
/// or sends orders to an authority that does not vote stays far below it.
const WORTHLESS_MAX: usize = JUDGED_REQUESTS * 3 / 4;
/// The maximum number of queued requests of an address on probation.
const WAITING_ON_PROBATION_MAX: usize = 16;
/// The pause between reads from a stream on probation: it allows some hundred requests a second. A few forged
/// signatures in a batch triple the cost of verifying it, so they must be few.
const PAUSE_ON_PROBATION: Duration = Duration::from_millis(50);
/// The maximum number of simultaneous reads of one address; further ones wait unread.
const READS_MAX: usize = 64;

/// An IPv4 address, or the first 48 bits of an IPv6 address. A provider gives these to one customer, who would
/// otherwise have 65,536 fresh addresses of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address(IpAddr);

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 80 << 80).into(),
            address => address,
        })
    }
}

/// The record of one address. It is kept while the address is connected, and longer while its reputation is bad.
#[derive(Debug)]
pub struct ClientReputation {
    /// `None` for a client that is not on a network.
    address: Option<Address>,
    waiting: AtomicUsize,
    record: std::sync::Mutex<Record>,
    /// The number of worthless requests in the record, to be read without its lock.
    worthless: AtomicUsize,
    turn: Mutex<()>,
    reads: Arc<Semaphore>,
}

impl Default for ClientReputation {
    fn default() -> Self {
        let reads = Arc::new(Semaphore::new(READS_MAX));
        let record = std::sync::Mutex::new(Record::default());
        Self {
            address: None,
            waiting: AtomicUsize::new(0),
            record,
            worthless: AtomicUsize::new(0),
            turn: Mutex::new(()),
            reads,
        }
    }
}

/// Whether each of the last requests was useful; the newest replaces the oldest. Before an address has sent as many,
/// the missing ones count as useful.
#[derive(Debug, Default)]
struct Record {
    /// A bit for each request: set where it was worthless.
    bits: [u64; JUDGED_REQUESTS.div_ceil(64)],
    next: usize,
    worthless: usize,
}

impl Record {
    fn push(&mut self, is_worthless: bool) {
        let bit = 1_u64 << (self.next % 64);
        if let Some(bits) = self.bits.get_mut(self.next / 64) {
            let without_oldest = self.worthless.saturating_sub((*bits & bit != 0).into());
            self.worthless = without_oldest.saturating_add(is_worthless.into());
            *bits = if is_worthless { *bits | bit } else { *bits & !bit };
        }
        self.next = self.next.saturating_add(1) % JUDGED_REQUESTS;
    }
}

impl ClientReputation {
    /// A good reputation at an address.
    #[must_use]
    pub fn at(address: Address) -> Self {
        Self { address: Some(address), ..Self::default() }
    }

    /// The client's address.
    pub(super) fn address(&self) -> Option<Address> {
        self.address
    }

    /// Whether most of its last requests were worthless.
    #[must_use]
    pub fn is_on_probation(&self) -> bool {
        self.worthless() > WORTHLESS_MAX
    }

    /// The number of its last requests that were worthless.
    #[must_use]
    pub fn worthless(&self) -> usize {
        self.worthless.load(Ordering::Relaxed)
    }

    /// Waits before more of a stream is read, if the address is on probation.
    pub async fn pause(&self) {
        if self.is_on_probation() {
            let _turn = self.turn.lock().await;
            tokio::time::sleep(PAUSE_ON_PROBATION).await;
        }
    }

    /// Waits for the right to read something; reads beyond the bound wait in turn.
    pub async fn read(&self) -> Option<OwnedSemaphorePermit> {
        self.reads.clone().acquire_owned().await.ok()
    }

    /// Records a number of requests, which are all useful or all worthless.
    pub fn judge(&self, requests: usize, worthless: bool) {
        if requests == 0 {
            return;
        }
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        (0..requests.min(JUDGED_REQUESTS)).for_each(|_| record.push(worthless));
        self.worthless.store(record.worthless, Ordering::Relaxed);
    }

    /// How many more of its requests may be queued.
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
        let peer = ClientReputation::default();
        assert_eq!(peer.room(), usize::MAX);
        (0..300).for_each(|_| peer.judge(1, true));
        assert!(!peer.is_on_probation(), "a short spell is forgiven");
        (0..2_000).for_each(|_| peer.judge(1, true));
        assert_eq!(peer.room(), WAITING_ON_PROBATION_MAX);
        peer.queued(WAITING_ON_PROBATION_MAX + 1);
        assert_eq!(peer.room(), 0);
        peer.taken(1);
        (0..250).for_each(|_| peer.judge(1, false));
        assert_eq!(peer.room(), usize::MAX);
    }

    #[test]
    fn a_customer_of_ipv6_has_one_address_and_each_of_ipv4_is_one() {
        let address = |text: &str| Address::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(address("2001:db8:1:1::1"), address("2001:db8:1:ffff:1::"));
        assert_ne!(address("2001:db8:1::1"), address("2001:db8:2::1"));
        assert_ne!(address("10.0.0.1"), address("10.0.0.2"));
        assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
    }

    #[test]
    fn one_good_request_among_four_is_enough_and_one_among_eight_is_not() {
        let judged = |every: usize| {
            let peer = ClientReputation::default();
            (0..10_000).for_each(|number| peer.judge(1, number % every != 0));
            peer.is_on_probation()
        };
        assert_eq!([4, 5, 8, 9].map(judged), [false, true, true, true]);
    }

    #[test]
    fn exactly_the_last_thousand_requests_count() {
        let peer = ClientReputation::default();
        // A huge number of requests at once counts, too.
        peer.judge(usize::MAX, true);
        assert!(peer.is_on_probation());
        peer.judge(JUDGED_REQUESTS - WORTHLESS_MAX - 1, false);
        assert!(peer.is_on_probation());
        peer.judge(1, false);
        assert!(!peer.is_on_probation());
        // The next request replaces a worthless one.
        peer.judge(1, true);
        assert!(!peer.is_on_probation());
        peer.judge(WORTHLESS_MAX - 1, false);
        assert_ne!(peer.worthless(), 0);
        peer.judge(JUDGED_REQUESTS - WORTHLESS_MAX, false);
        assert_eq!(peer.worthless(), 1);
        peer.judge(1, false);
        assert_eq!(peer.worthless(), 0);
    }
}
