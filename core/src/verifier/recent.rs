//! A bounded cache of recent values.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, RandomState};

use hashbrown::HashTable;

use super::work;

/// Keeps values in two generations. New ones go to the young one; when that is full it becomes the old one, and the
/// old one is dropped. A value that is found moves to the young generation.
///
/// The last `generation_max` different values that were put in or found are therefore always remembered. An attacker
/// who wants another client's value dropped has to put in that many of his own, and gains only that the value is
/// computed once more.
///
/// Strangers choose the keys. The keys are therefore hashed by SipHash under a random key of this process, over
/// everything that distinguishes two keys, so nobody can choose keys that collide. The caller hashes a key once and
/// passes the hash along.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    hasher: RandomState,
    young: HashTable<Entry<K, V>>,
    old: HashTable<Entry<K, V>>,
    generation_max: usize,
}

/// The hash of a key, as one [`Recent`] makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyHash(pub(super) u64);

#[derive(Debug)]
struct Entry<K, V> {
    hash: KeyHash,
    key: K,
    value: V,
}

impl<K: Eq, V: Copy> Recent<K, V> {
    /// An empty memory of at most twice `generation_max` values.
    pub(super) fn new(generation_max: usize) -> Self {
        Self { hasher: RandomState::new(), young: HashTable::new(), old: HashTable::new(), generation_max }
    }

    /// The hash under which this memory keeps a key.
    pub(super) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> KeyHash
    where
        K: Borrow<Q>,
    {
        KeyHash(self.hasher.hash_one(key))
    }

    pub(super) fn get<Q: Eq + ?Sized>(&mut self, hash: KeyHash, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some(entry) = self.young.find(hash.0, is(key)) {
            return Some(entry.value);
        }
        let (entry, _) = self.old.find_entry(hash.0, is(key)).ok()?.remove();
        let value = entry.value;
        self.add(entry);
        Some(value)
    }

    pub(super) fn remove<Q: Eq + ?Sized>(&mut self, hash: KeyHash, key: &Q)
    where
        K: Borrow<Q>,
    {
        for generation in [&mut self.young, &mut self.old] {
            if let Ok(entry) = generation.find_entry(hash.0, is(key)) {
                entry.remove();
                return;
            }
        }
    }

    pub(super) fn insert(&mut self, hash: KeyHash, key: K, value: V) {
        match self.young.find_mut(hash.0, is(&key)) {
            Some(entry) => entry.value = value,
            None => self.add(Entry { hash, key, value }),
        }
    }

    /// Adds an entry that is not in the young generation.
    fn add(&mut self, entry: Entry<K, V>) {
        if self.young.len() >= self.generation_max {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert_unique(entry.hash.0, entry, |entry| entry.hash.0);
    }
}

/// Whether an entry is that of a key.
fn is<K: Borrow<Q>, Q: Eq + ?Sized, V>(key: &Q) -> impl Fn(&Entry<K, V>) -> bool {
    move |entry| {
        work::compared();
        entry.key.borrow() == key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert<V: Copy>(recent: &mut Recent<i32, V>, key: i32, value: V) {
        let hash = recent.hash(&key);
        recent.insert(hash, key, value);
    }

    fn get<V: Copy>(recent: &mut Recent<i32, V>, key: i32) -> Option<V> {
        let hash = recent.hash(&key);
        recent.get(hash, &key)
    }

    #[test]
    fn the_newest_are_remembered_and_no_more_than_the_bound() {
        let mut recent = Recent::new(3);
        for number in 0..100 {
            insert(&mut recent, number, -number);
            for newest in (number - 2).max(0)..=number {
                let holds =
                    |generation: &HashTable<Entry<i32, i32>>| generation.iter().any(|entry| entry.key == newest);
                assert!(holds(&recent.young) || holds(&recent.old), "{newest} of {number}");
            }
            assert!(recent.young.len() <= 3 && recent.old.len() <= 3);
        }
        assert_eq!((get(&mut recent, 99), get(&mut recent, 90)), (Some(-99), None));
    }

    #[test]
    fn what_is_removed_is_forgotten() {
        let mut recent = Recent::new(2);
        for number in 0..3 {
            insert(&mut recent, number, ());
        }
        for number in [0, 2, 3] {
            let hash = recent.hash(&number);
            recent.remove(hash, &number);
        }
        assert_eq!((get(&mut recent, 0), get(&mut recent, 1), get(&mut recent, 2)), (None, Some(()), None));
    }

    #[test]
    fn what_is_asked_for_stays() {
        let mut recent = Recent::new(2);
        for number in 0..100 {
            insert(&mut recent, number, ());
            assert_eq!(get(&mut recent, 0), Some(()), "after {number}");
        }
    }
}
