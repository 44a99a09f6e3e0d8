//! Places for owners' requests in progress, by the address of their clients. An address may take as many as are free, so
//! one that takes all it can leaves half of them to others.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::JOBS_MAX;
use super::desk::ASKED_MAX;

/// As many as wait, and as are being checked.
const PLACES_MAX: usize = ASKED_MAX + JOBS_MAX;

/// The places that are taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    of: IpAddr,
}

impl Places {
    /// Takes a place for a client at an address. `None` if the address has as many as are free.
    pub(super) fn take(&self, address: IpAddr) -> Option<Place> {
        let (of, mut taken) = (network_of(address), self.taken());
        let (own, all) = (taken.get(&of).copied().unwrap_or_default(), taken.values().sum());
        if own >= PLACES_MAX.saturating_sub(all) {
            return None;
        }
        taken.insert(of, own.saturating_add(1));
        drop(taken);
        Some(Place { places: self.clone(), of })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        let own = taken.remove(&self.of).unwrap_or_default().saturating_sub(1);
        if own > 0 {
            taken.insert(self.of, own);
        }
    }
}

/// An IPv4 address, or the /64 network of an IPv6 address, which one client has to itself.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(places: &Places, address: &str) -> Vec<Place> {
        let address = address.parse().unwrap();
        std::iter::from_fn(|| places.take(address)).collect()
    }

    #[test]
    fn an_address_leaves_half_of_the_places_to_others() {
        let places = Places::default();
        let first = take_all(&places, "192.0.2.1");
        assert_eq!((first.len(), take_all(&places, "::ffff:192.0.2.1").len()), (PLACES_MAX / 2, 0));
        let second = take_all(&places, "2001:db8::1");
        assert_eq!((second.len(), take_all(&places, "2001:db8::2").len()), (PLACES_MAX / 4, 0));
        assert_eq!(take_all(&places, "2001:db8:0:1::1").len(), PLACES_MAX / 8);
        drop((first, second));
        assert!(places.taken().is_empty());
    }
}
