//! A bounded memory of what was seen lately.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Remembers values in two generations. New ones go to the young one; when that is full it becomes the old
/// one, and the old one is forgotten. What is asked for again is young again.
///
/// So the last `generation_max` different values that were put in or found are always remembered: whoever
/// wants another's value forgotten has to have that many of its own put in, and all that it gains is
/// that the other's is worked out once more.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    generation_max: usize,
}

impl<K: Eq + Hash, V: Copy> Recent<K, V> {
    /// An empty memory of at most twice `generation_max` values.
    pub(super) fn new(generation_max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), generation_max }
    }

    pub(super) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some(value) = self.young.get(key) {
            return Some(*value);
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.insert(key, value);
        Some(value)
    }

    pub(super) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        if self.young.remove(key).is_none() {
            self.old.remove(key);
        }
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.generation_max && !self.young.contains_key(&key) {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered_and_no_more_than_the_bound() {
        let mut recent = Recent::new(3);
        for number in 0..100 {
            recent.insert(number, -number);
            for newest in (number - 2).max(0)..=number {
                assert!(recent.young.contains_key(&newest) || recent.old.contains_key(&newest), "{newest} of {number}");
            }
            assert!(recent.young.len() <= 3 && recent.old.len() <= 3);
        }
        assert_eq!((recent.get(&99), recent.get(&90)), (Some(-99), None));
    }

    #[test]
    fn what_is_removed_is_forgotten() {
        let mut recent = Recent::new(2);
        for number in 0..3 {
            recent.insert(number, ());
        }
        for number in [0, 2, 3] {
            recent.remove(&number);
        }
        assert_eq!((recent.get(&0), recent.get(&1), recent.get(&2)), (None, Some(()), None));
    }

    #[test]
    fn what_is_asked_for_stays() {
        let mut recent = Recent::new(2);
        for number in 0..100 {
            recent.insert(number, ());
            assert_eq!(recent.get(&0), Some(()), "after {number}");
        }
    }
}
