//! The accounts of a shard that are in memory: a bounded part of all; the store has the rest.
//!
//! ```text
//!  load ─► stored ──change──► changed ──begin checkpoint──► due ──take──► taken ──finish──► stored ─► evicted
//!                                ▲                           │ change: copied first           │
//!                                └───────────────────────────┴────────────────────────────────┘ change
//! ```
//! A checkpoint is every account that changed since the one before, as it was when the checkpoint
//! began. It is taken in slices while the shard goes on: an account that changes before its turn is
//! copied first.
//!
//! Invariants: an account leaves memory only after its newest state is in the store and the decision under way no
//! longer needs it. Memory never holds more than `accounts_max` accounts, or the accounts of one record if those are
//! more. No operation takes time in proportion to all accounts; therefore slots come in chunks that never move, and
//! the index is many small tables that grow one at a time.
//!
//! Eviction is second chance: a hand goes round and evicts the first account that has not changed since its last
//! visit. Reading protects no account, so strangers who name many accounts evict none that is in use.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use crate::account::Account;
use crate::identity::AccountId;
use crate::transfer::PAYOUT_OUTPUTS_MAX;

/// The smallest table: the accounts of one record, beside those of the record before.
pub(crate) const ACCOUNTS_MIN: usize = 4;
/// Room for the accounts of one record: a sender and the recipients of a payout.
const ACCOUNTS_PER_RECORD_MAX: usize = PAYOUT_OUTPUTS_MAX + 1;
const CHUNK_SLOTS: usize = 1_024;
/// Average number of accounts per table of the index when all tables are full.
const INDEX_TABLE_ACCOUNTS: usize = 1_024;
/// The hand passes at most this many accounts in use before it evicts one of them.
const SECOND_CHANCES_MAX: usize = 256;

/// An account in a slot, and its place in checkpoints.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// The number of the checkpoint that includes its newest change; 0 if it has not changed since it was loaded.
    checkpoint: u32,
    /// It was loaded or changed since the last visit of the hand.
    used: bool,
    /// The checkpoint under way includes its present state.
    taken: bool,
    /// The decision under way needs it.
    held: bool,
}

#[derive(Clone, Debug)]
struct Chunk {
    /// Apart from the slots, so that the hand reads little.
    marks: Vec<Mark>,
    slots: Vec<(AccountId, Account)>,
}

/// A checkpoint that is not yet in the store.
#[derive(Clone, Debug)]
struct UnderWay {
    /// The slots still to be taken. Slots that changed since the checkpoint began are skipped.
    due: Vec<u32>,
    /// Accounts that changed before their turn, as they were when it began.
    copied: Vec<(AccountId, Vec<u8>)>,
    /// The number of its accounts that have not changed since it began.
    unchanged: usize,
}

/// See the module header.
#[derive(Clone, Debug)]
pub(crate) struct AccountTable {
    accounts_max: usize,
    chunks: Vec<Chunk>,
    slots: u32,
    free: Vec<u32>,
    index: Vec<HashTable<u32>>,
    /// SipHash under a random key: strangers choose the names of accounts.
    hasher: RandomState,
    hand: u32,
    /// The slots that the decision under way needs.
    held: Vec<u32>,
    /// The number of the checkpoint that will include the changes of now. From 1.
    next: u32,
    /// The slots that changed since the newest checkpoint began, each once.
    changed: Vec<u32>,
    /// The checkpoint of number `next − 1`.
    under_way: Option<UnderWay>,
}

impl AccountTable {
    pub(crate) fn new(accounts_max: usize) -> Self {
        let accounts_max = accounts_max.clamp(ACCOUNTS_MIN, u32::MAX as usize);
        let tables = accounts_max.div_ceil(INDEX_TABLE_ACCOUNTS).next_power_of_two();
        Self {
            accounts_max,
            chunks: Vec::new(),
            slots: 0,
            free: Vec::new(),
            index: vec![HashTable::new(); tables],
            hasher: RandomState::new(),
            hand: 0,
            held: Vec::new(),
            next: 1,
            changed: Vec::new(),
            under_way: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        (self.slots as usize).saturating_sub(self.free.len())
    }

    /// Number of accounts that changed since the newest checkpoint began.
    pub(crate) fn changed(&self) -> usize {
        self.changed.len()
    }

    /// Number of accounts that are newer in memory than in the store.
    fn unstored(&self) -> usize {
        self.changed.len().saturating_add(self.under_way.as_ref().map_or(0, |checkpoint| checkpoint.unchanged))
    }

    pub(crate) fn get(&self, id: &AccountId) -> Option<&Account> {
        let slot = self.find(self.hasher.hash_one(id), id)?;
        Some(&slot_of(&self.chunks, slot).1)
    }

    /// Prepares an account for a change. If the checkpoint under way has not taken it yet, its present state is copied
    /// first.
    pub(crate) fn get_mut(&mut self, id: &AccountId) -> Option<&mut Account> {
        let slot = self.find(self.hasher.hash_one(id), id)?;
        let (mark, (_, account)) = parts_of(&mut self.chunks, slot);
        mark.used = true;
        if mark.checkpoint != self.next {
            if let Some(checkpoint) = &mut self.under_way
                && mark.checkpoint == self.next.wrapping_sub(1)
            {
                checkpoint.unchanged = checkpoint.unchanged.saturating_sub(1);
                if !mark.taken {
                    checkpoint.copied.push((*id, encode(account)));
                }
            }
            mark.checkpoint = self.next;
            mark.taken = false;
            self.changed.push(slot);
        }
        Some(account)
    }

    /// Whether this many accounts of one record can be loaded together. False if too many accounts are newer in memory
    /// than in the store.
    pub(crate) fn has_room(&self, accounts: usize) -> bool {
        let accounts = accounts.min(ACCOUNTS_PER_RECORD_MAX);
        self.unstored().saturating_add(accounts) <= self.accounts_max.max(accounts)
    }

    /// Loads an account with its state in the store, unless it is in memory, and holds it until [`Self::release`]. If
    /// the table is full, it evicts an account that the store has and that is not held.
    pub(crate) fn load(&mut self, id: AccountId, account: Account) {
        let hash = self.hasher.hash_one(id);
        if let Some(slot) = self.find(hash, &id) {
            self.hold(slot);
            return;
        }
        let slot = self.vacate();
        let (mark, place) = parts_of(&mut self.chunks, slot);
        *mark = Mark { checkpoint: 0, used: true, taken: false, held: false };
        *place = (id, account);
        let (chunks, hasher) = (&self.chunks, &self.hasher);
        if let Some(table) = table_of(&mut self.index, hash) {
            table.insert_unique(hash, slot, |slot| hasher.hash_one(slot_of(chunks, *slot).0));
        }
        self.hold(slot);
    }

    fn hold(&mut self, slot: u32) {
        let (mark, _) = parts_of(&mut self.chunks, slot);
        if !std::mem::replace(&mut mark.held, true) {
            self.held.push(slot);
        }
    }

    /// Releases all accounts: no decision is under way.
    pub(crate) fn release(&mut self) {
        for slot in self.held.drain(..) {
            parts_of(&mut self.chunks, slot).0.held = false;
        }
    }

    /// Evicts an account if the store has its present state.
    pub(crate) fn unload(&mut self, id: &AccountId) {
        let oldest_unstored = self.oldest_unstored();
        if let Some(slot) = self.find(self.hasher.hash_one(id), id)
            && let (mark, _) = parts_of(&mut self.chunks, slot)
            && mark.checkpoint < oldest_unstored
            && !mark.held
        {
            self.remove(slot);
            self.free.push(slot);
        }
    }

    /// Begins a checkpoint of all changes up to now. The one before must be in the store.
    pub(crate) fn begin_checkpoint(&mut self) {
        assert!(self.under_way.is_none(), "one checkpoint is written at a time");
        let due = std::mem::take(&mut self.changed);
        self.under_way = Some(UnderWay { unchanged: due.len(), due, copied: Vec::new() });
        self.next = self.next.wrapping_add(1);
    }

    /// Takes about `limit` next accounts of the checkpoint under way, as they were when it began. None if all are
    /// taken, or none is under way.
    pub(crate) fn take(&mut self, limit: usize) -> Option<Vec<(AccountId, Vec<u8>)>> {
        let number = self.next.wrapping_sub(1);
        let checkpoint = self.under_way.as_mut()?;
        if checkpoint.due.is_empty() && checkpoint.copied.is_empty() {
            return None;
        }
        let mut taken = std::mem::take(&mut checkpoint.copied);
        let rest = checkpoint.due.len().saturating_sub(limit);
        for slot in checkpoint.due.drain(rest..) {
            let (mark, (id, account)) = parts_of(&mut self.chunks, slot);
            if mark.checkpoint == number {
                mark.taken = true;
                taken.push((*id, encode(account)));
            }
        }
        Some(taken)
    }

    /// Ends the checkpoint under way, which is now in the store.
    pub(crate) fn finish_checkpoint(&mut self) {
        let finished = self.under_way.take();
        assert!(
            finished.is_some_and(|it| it.due.is_empty() && it.copied.is_empty()),
            "what was not taken is not stored"
        );
    }

    /// From this checkpoint on, what changed is not in the store.
    fn oldest_unstored(&self) -> u32 {
        if self.under_way.is_some() { self.next.wrapping_sub(1) } else { self.next }
    }

    fn find(&self, hash: u64, id: &AccountId) -> Option<u32> {
        let table = self.index.get(table_number(self.index.len(), hash))?;
        table.find(hash, |slot| slot_of(&self.chunks, *slot).0 == *id).copied()
    }

    /// A slot without an account. Panics if there is none.
    fn vacate(&mut self) -> u32 {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        if (self.slots as usize) < self.accounts_max {
            return self.add_slot();
        }
        if let Some(slot) = self.choose() {
            self.remove(slot);
            return slot;
        }
        // All that are here belong to one record that has more accounts than the table is meant for.
        assert!(self.unstored() == 0, "no account may leave memory before a checkpoint has it");
        self.add_slot()
    }

    fn add_slot(&mut self) -> u32 {
        if self.chunks.last().is_none_or(|chunk| chunk.slots.len() == CHUNK_SLOTS) {
            let room = CHUNK_SLOTS.min(self.accounts_max);
            self.chunks.push(Chunk { marks: Vec::with_capacity(room), slots: Vec::with_capacity(room) });
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.marks.push(Mark::default());
            chunk.slots.push((AccountId::ZERO, Account::default()));
        }
        let slot = self.slots;
        self.slots = slot.wrapping_add(1);
        slot
    }

    /// The slot whose account is evicted next.
    fn choose(&mut self) -> Option<u32> {
        let oldest_unstored = self.oldest_unstored();
        let (mut first, mut chances) = (None, 0_usize);
        // Twice round at most: the first time may clear marks only.
        for _ in 0..(self.slots as usize).saturating_mul(2) {
            let slot = self.hand;
            self.hand = if slot.wrapping_add(1) < self.slots { slot.wrapping_add(1) } else { 0 };
            let (mark, _) = parts_of(&mut self.chunks, slot);
            if mark.checkpoint >= oldest_unstored || mark.held {
                continue;
            }
            if !mark.used {
                return Some(slot);
            }
            mark.used = false;
            first = first.or(Some(slot));
            chances = chances.saturating_add(1);
            if chances >= SECOND_CHANCES_MAX {
                break;
            }
        }
        first
    }

    /// Empties a slot.
    fn remove(&mut self, slot: u32) {
        let id = slot_of(&self.chunks, slot).0;
        let hash = self.hasher.hash_one(id);
        if let Some(table) = table_of(&mut self.index, hash)
            && let Ok(entry) = table.find_entry(hash, |other| *other == slot)
        {
            entry.remove();
        }
        let (mark, place) = parts_of(&mut self.chunks, slot);
        *mark = Mark::default();
        *place = (AccountId::ZERO, Account::default());
    }
}

fn encode(account: &Account) -> Vec<u8> {
    borsh::to_vec(account).expect("writing to memory does not fail")
}

/// The bits in the middle: those at both ends choose the place inside of the table.
fn table_number(tables: usize, hash: u64) -> usize {
    (hash >> 24) as usize & tables.wrapping_sub(1)
}

fn table_of(index: &mut [HashTable<u32>], hash: u64) -> Option<&mut HashTable<u32>> {
    let number = table_number(index.len(), hash);
    index.get_mut(number)
}

fn slot_of(chunks: &[Chunk], slot: u32) -> &(AccountId, Account) {
    let slot = slot as usize;
    let chunk = chunks.get(slot / CHUNK_SLOTS);
    chunk.and_then(|chunk| chunk.slots.get(slot % CHUNK_SLOTS)).expect("slots are never taken away")
}

fn parts_of(chunks: &mut [Chunk], slot: u32) -> (&mut Mark, &mut (AccountId, Account)) {
    let slot = slot as usize;
    let chunk = chunks.get_mut(slot / CHUNK_SLOTS).expect("slots are never taken away");
    let at = slot % CHUNK_SLOTS;
    chunk.marks.get_mut(at).zip(chunk.slots.get_mut(at)).expect("slots are never taken away")
}

#[cfg(test)]
mod tests;
