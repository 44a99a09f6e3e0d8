//! Places that callers take up. Each address has a bound, so nobody takes all of them; and the members' own addresses have
//! places of their own, so strangers together keep no cluster from its groups.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};

/// A bounded number of places.
#[derive(Clone, Debug)]
pub struct Places {
    taken: Arc<Mutex<Taken>>,
    /// The members' addresses.
    members: Arc<HashSet<IpAddr>>,
    all: usize,
    of_each: usize,
}

#[derive(Debug, Default)]
struct Taken {
    by_strangers: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Places,
    address: IpAddr,
}

impl Places {
    /// Places for `all` strangers, `of_each` address at most; and as many as all of them for each member's address.
    #[must_use]
    pub fn new(all: usize, of_each: usize, members: Arc<HashSet<IpAddr>>) -> Self {
        Self { taken: Arc::default(), members, all, of_each }
    }

    /// Whether a caller has the address of a member.
    #[must_use]
    pub fn is_member(&self, address: Option<IpAddr>) -> bool {
        address.is_some_and(|address| self.members.contains(&place_of(address)))
    }

    /// Takes a place; `None` if there is none. A caller without an address counts as one of its own.
    #[must_use]
    pub fn take(&self, address: Option<IpAddr>) -> Option<Place> {
        let address = place_of(address.unwrap_or(Ipv6Addr::UNSPECIFIED.into()));
        let is_member = self.members.contains(&address);
        let mut taken = self.taken.lock().expect("nothing panics under this lock");
        let strangers = taken.by_strangers;
        let count = taken.by_address.entry(address).or_default();
        let has_room = if is_member { *count < self.all } else { *count < self.of_each && strangers < self.all };
        if !has_room {
            return None;
        }
        *count = count.saturating_add(1);
        taken.by_strangers = strangers.saturating_add(usize::from(!is_member));
        Some(Place { places: self.clone(), address })
    }
}

/// Who has one address of IPv6 has the 2^64 of its network.
fn place_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

/// The addresses of members, as they are told apart.
pub fn members_at(addresses: impl IntoIterator<Item = IpAddr>) -> Arc<HashSet<IpAddr>> {
    Arc::new(addresses.into_iter().map(place_of).collect())
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().expect("nothing panics under this lock");
        if !self.places.members.contains(&self.address) {
            taken.by_strangers = taken.by_strangers.saturating_sub(1);
        }
        match taken.by_address.get_mut(&self.address) {
            Some(count) if *count > 1 => *count = count.saturating_sub(1),
            _ => drop(taken.by_address.remove(&self.address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn nobody_takes_all_places_and_strangers_none_of_the_members() {
        let members = members_at(["10.0.0.1".parse().unwrap(), "2001:db8:1::1".parse().unwrap()]);
        let places = Places::new(4, 2, members);
        let mut taken: Vec<_> =
            ["192.0.2.1", "::ffff:192.0.2.1"].map(|text| places.take(address(text)).unwrap()).into();
        assert!(places.take(address("192.0.2.1")).is_none(), "it has two");
        taken.extend(["2001:db8:2::1", "2001:db8:2::2"].map(|text| places.take(address(text)).unwrap()));
        assert!(places.take(address("2001:db8:2::3")).is_none(), "it is the same network");
        assert!(places.take(address("192.0.2.9")).is_none(), "strangers have all of theirs");
        let members: Vec<_> = (0..4).map(|_| places.take(address("10.0.0.1")).unwrap()).collect();
        assert!(places.take(address("10.0.0.1")).is_none());
        assert!(places.take(address("2001:db8:1::7")).is_some());
        assert!(places.is_member(address("::ffff:10.0.0.1")) && places.is_member(address("2001:db8:1::7")));
        assert!(!places.is_member(address("192.0.2.9")) && !places.is_member(None));
        drop(taken.pop());
        assert!(places.take(address("192.0.2.9")).is_some());
        drop(members);
        assert!(places.take(address("10.0.0.1")).is_some());
        drop(taken);
        assert!(places.taken.lock().unwrap().by_address.is_empty());
        assert_eq!(places.taken.lock().unwrap().by_strangers, 0);
    }
}
