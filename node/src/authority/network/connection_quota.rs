//! Limits the number of connections, in total and for each address.
//!
//! An address may hold as many connections as are free. An address that opens all it can therefore leaves half of them
//! to the others, the next one half of that, and so on.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::authority::shard::{Address, ClientReputation};

/// The connections of one port, by the address of their clients.
pub(crate) struct ConnectionQuota {
    max: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    total: usize,
    by_address: HashMap<Address, Known>,
}

impl Held {
    /// Forgets the better half of the addresses without connections, so that a client with many fresh addresses cannot
    /// displace the records of worse ones.
    fn forget(&mut self) {
        let gone = self.by_address.iter().filter(|(_, known)| known.connections == 0);
        let mut gone: Vec<_> = gone.map(|(address, known)| (known.peer.worthless(), *address)).collect();
        gone.sort_unstable_by_key(|(worthless, _)| *worthless);
        for (_, address) in gone.iter().take(gone.len().div_ceil(2)) {
            self.by_address.remove(address);
        }
    }
}

/// The entry of an address. It is kept while the address is connected, and longer after worthless requests, so that a
/// client cannot clear a bad reputation by reconnecting.
struct Known {
    connections: usize,
    peer: Arc<ClientReputation>,
}

impl ConnectionQuota {
    /// A quota of `max` connections at a time.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, held: Mutex::default() })
    }

    /// Takes a slot for a connection, until it is dropped. `None` if the address has as many as are free.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionSlot> {
        let address = Address::from(address);
        let mut held = self.held();
        let own = held.by_address.get(&address).map_or(0, |known| known.connections);
        if own >= self.max.saturating_sub(held.total) {
            return None;
        }
        held.total = held.total.saturating_add(1);
        if held.by_address.len() > self.max.saturating_mul(2) {
            held.forget();
        }
        let new = || Known { connections: 0, peer: Arc::new(ClientReputation::at(address)) };
        let known = held.by_address.entry(address).or_insert_with(new);
        known.connections = own.saturating_add(1);
        Some(ConnectionSlot { quota: self.clone(), address, peer: known.peer.clone() })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of one connection.
pub(crate) struct ConnectionSlot {
    quota: Arc<ConnectionQuota>,
    address: Address,
    peer: Arc<ClientReputation>,
}

impl ConnectionSlot {
    /// The reputation of the connection's address.
    pub(crate) fn peer(&self) -> &Arc<ClientReputation> {
        &self.peer
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut held = self.quota.held();
        held.total = held.total.saturating_sub(1);
        let Some(known) = held.by_address.get_mut(&self.address) else { return };
        known.connections = known.connections.saturating_sub(1);
        if known.connections == 0 && known.peer.worthless() == 0 {
            held.by_address.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(quota: &Arc<ConnectionQuota>, address: &str) -> Vec<ConnectionSlot> {
        std::iter::from_fn(|| quota.take(address.parse().unwrap())).collect()
    }

    #[test]
    fn a_greedy_client_leaves_half_of_the_room_to_others() {
        let quota = ConnectionQuota::new(900);
        let first = take_all(&quota, "10.0.0.1");
        assert_eq!(first.len(), 450);
        let second = take_all(&quota, "10.0.0.2");
        assert_eq!(second.len(), 225);
        let others: Vec<_> = (0..4).map(|last| take_all(&quota, &format!("10.0.1.{last}"))).collect();
        assert!(others.iter().all(|held| !held.is_empty()), "who comes late finds room as well");
        assert!(quota.take("10.0.0.1".parse().unwrap()).is_none());
    }

    #[test]
    fn room_comes_back_and_nothing_is_remembered_of_those_that_left() {
        let quota = ConnectionQuota::new(8);
        let held = take_all(&quota, "10.0.0.1");
        assert_eq!(held.len(), 4);
        drop(held);
        assert!(quota.held().by_address.is_empty() && quota.held().total == 0);
        assert_eq!(take_all(&quota, "10.0.0.1").len(), 4);
    }

    #[test]
    fn a_bad_name_outlives_its_connections_and_takes_no_more_memory_than_there_is_room_for() {
        let quota = ConnectionQuota::new(8);
        for last in 0..200 {
            let share = quota.take(format!("10.0.0.{last}").parse().unwrap()).unwrap();
            (0..5_000).for_each(|_| share.peer().judge(1, true));
        }
        let known = quota.held().by_address.len();
        assert!((1..=17).contains(&known), "{known}");
        let again = quota.take("10.0.0.199".parse().unwrap()).unwrap();
        assert!(again.peer().is_on_probation());
    }

    #[test]
    fn reconnecting_does_not_clear_a_name() {
        let quota = ConnectionQuota::new(8);
        for _ in 0..2_000 {
            quota.take("10.0.0.1".parse().unwrap()).unwrap().peer().judge(1, true);
        }
        assert!(quota.take("10.0.0.1".parse().unwrap()).unwrap().peer().is_on_probation());
    }

    #[test]
    fn many_fresh_names_push_out_no_worse_one() {
        let quota = ConnectionQuota::new(8);
        let come = |address: String, requests: usize| {
            let slot = quota.take(address.parse().unwrap()).unwrap();
            slot.peer().judge(requests, true);
            slot.peer().is_on_probation()
        };
        assert!(come("10.0.0.1".into(), 1_000));
        for last in 0..200 {
            come(format!("10.0.1.{last}"), 1);
        }
        assert!(quota.held().by_address.len() <= 17);
        assert!(come("10.0.0.1".into(), 0), "it is still known");
    }

    #[test]
    fn a_customer_of_ipv6_has_one_share_and_one_name() {
        let quota = ConnectionQuota::new(4);
        let held = take_all(&quota, "2001:db8::1");
        assert_eq!(held.len(), 2);
        assert!(quota.take("2001:db8:0:ffff::2".parse().unwrap()).is_none());
        assert!(quota.take("2001:db8:1::1".parse().unwrap()).is_some());
        held[0].peer().judge(1_000, true);
        drop(held);
        assert!(quota.take("2001:db8:0:7::1".parse().unwrap()).unwrap().peer().is_on_probation());
        // Two forms of the same address.
        let mapped = ConnectionQuota::new(2);
        let _held = mapped.take("::ffff:10.0.0.1".parse().unwrap());
        assert!(mapped.take("10.0.0.1".parse().unwrap()).is_none());
    }
}
