//! Selects the next payment. Each sender's payments go one after the other, concurrently with those of others.
//!
//! Payments wait in the order in which they were drawn. One whose sender has an earlier payment open is put
//! aside, and is the next to go once that one is settled. One that was refused as busy goes to the end.

use std::collections::VecDeque;

/// A payment's index among those that were prepared.
pub type PaymentIndex = u32;

/// A payment's sender, and its place among the sender's payments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub sender: u32,
    pub sequence: u32,
}

#[derive(Clone, Debug, Default)]
struct Sender {
    next: u32,
    open: bool,
    aside: VecDeque<PaymentIndex>,
}

/// The order in which payments begin.
#[derive(Debug)]
pub struct Flow {
    places: Vec<Place>,
    senders: Vec<Sender>,
    waiting: VecDeque<PaymentIndex>,
}

impl Flow {
    /// All payments wait in the given order. Each sender's payments are in the order of their sequence, from 0.
    pub fn new(places: Vec<Place>) -> Self {
        let senders = places.iter().map(|place| place.sender as usize + 1).max().unwrap_or_default();
        let waiting = (0..places.len() as PaymentIndex).collect();
        Self { places, senders: vec![Sender::default(); senders], waiting }
    }

    /// Takes and opens the next payment; `None` if no payment can begin now.
    pub fn take(&mut self) -> Option<PaymentIndex> {
        while let Some(index) = self.waiting.pop_front() {
            let place = self.places.get(index as usize)?;
            let sender = self.senders.get_mut(place.sender as usize)?;
            if !sender.open && sender.next == place.sequence {
                sender.open = true;
                return Some(index);
            }
            sender.aside.push_back(index);
        }
        None
    }

    /// Notes that an open payment is settled.
    pub fn settled(&mut self, index: PaymentIndex) {
        let Some(sender) = self.sender_of(index) else { return };
        sender.open = false;
        sender.next += 1;
        if let Some(next) = sender.aside.pop_front() {
            self.waiting.push_front(next);
        }
    }

    /// Notes that an open payment was refused, and may begin again.
    pub fn refused(&mut self, index: PaymentIndex) {
        let Some(sender) = self.sender_of(index) else { return };
        sender.open = false;
        self.waiting.push_back(index);
    }

    /// The number of entries.
    pub fn senders(&self) -> usize {
        self.senders.len()
    }

    /// The number of settled payments of each sender.
    pub fn settled_by_sender(&self) -> Vec<u64> {
        self.senders.iter().map(|sender| u64::from(sender.next)).collect()
    }

    fn sender_of(&mut self, index: PaymentIndex) -> Option<&mut Sender> {
        let place = self.places.get(index as usize)?;
        self.senders.get_mut(place.sender as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    fn places(senders: &[u32]) -> Vec<Place> {
        let mut next = [0; 16];
        let place = |sender: &u32| {
            let sequence = next[*sender as usize];
            next[*sender as usize] += 1;
            Place { sender: *sender, sequence }
        };
        senders.iter().map(place).collect()
    }

    #[test]
    fn a_sender_waits_for_his_own_payment_and_nobody_else_does() {
        let mut flow = Flow::new(places(&[0, 0, 1, 0, 2]));
        assert_eq!((flow.take(), flow.take(), flow.take()), (Some(0), Some(2), Some(4)));
        assert_eq!(flow.take(), None);
        flow.settled(0);
        assert_eq!((flow.take(), flow.take()), (Some(1), None));
        flow.settled(1);
        assert_eq!(flow.take(), Some(3));
    }

    #[test]
    fn a_refused_payment_goes_to_the_end_and_its_successors_wait_for_it() {
        let mut flow = Flow::new(places(&[0, 1, 0, 2]));
        assert_eq!(flow.take(), Some(0));
        flow.refused(0);
        assert_eq!((flow.take(), flow.take()), (Some(1), Some(3)));
        assert_eq!((flow.take(), flow.take()), (Some(0), None));
        flow.settled(0);
        assert_eq!(flow.take(), Some(2));
    }

    #[test]
    fn whatever_is_refused_every_payment_settles_once_and_in_order() {
        for seed in 0..50 {
            let mut rng = StdRng::seed_from_u64(seed);
            let senders: Vec<u32> = (0..300).map(|_| rng.random_range(0..16)).collect();
            let places = places(&senders);
            let mut flow = Flow::new(places.clone());
            let (mut open, mut settled) = (Vec::new(), Vec::new());
            while settled.len() < places.len() {
                while open.len() < 8 {
                    let Some(index) = flow.take() else { break };
                    let sender = |index: u32| places[index as usize].sender;
                    assert!(open.iter().all(|other| sender(*other) != sender(index)), "seed {seed}");
                    open.push(index);
                }
                let index = open.swap_remove(rng.random_range(0..open.len()));
                if rng.random_bool(0.3) {
                    flow.refused(index);
                } else {
                    flow.settled(index);
                    settled.push(index);
                }
            }
            for sender in 0..16 {
                let order = settled.iter().filter(|index| places[**index as usize].sender == sender);
                assert!(order.is_sorted(), "seed {seed}");
            }
            assert_eq!(flow.take(), None);
            assert_eq!(flow.settled_by_sender().iter().sum::<u64>(), places.len() as u64);
        }
    }
}
