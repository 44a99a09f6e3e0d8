//! The oracle's invariants of numbers that their owners asked to unlock.

use super::oracle::{Books, Breach, Oracle, Slot, require};

impl Oracle {
    /// An owner asks to unlock a number.
    pub fn asks(&mut self, slot: Slot) {
        self.asked.insert(slot);
    }

    /// The contract voided a number, in a final block: nobody honest has executed it, or ever will.
    pub fn voided(&mut self, slot: Slot) -> Result<(), Breach> {
        self.void.insert(slot);
        require!(!self.is_executed_anywhere(slot), "#{} is voided, and an honest authority executed it", slot.1);
        Ok(())
    }

    /// Whether an honest authority has executed a number.
    #[must_use]
    pub fn is_executed_anywhere(&self, slot: Slot) -> bool {
        self.books.iter().any(|books| books.has_executed(slot))
    }

    /// An authority's vote to void a number leaves it: it is on disk that it voted so.
    pub fn void_vote_leaves(&self, authority: usize, slot: Slot) -> Result<(), Breach> {
        let books = &self.books[authority];
        require!(books.void_voted.contains(&slot), "a void vote of authority {authority} is not on its disk");
        Ok(())
    }

    /// An authority's vote that a number has a certificate leaves it: the certificate is on disk.
    pub fn certificate_vote_leaves(&self, authority: usize, slot: Slot) -> Result<(), Breach> {
        let books = &self.books[authority];
        let is_kept = books.seen.contains(&slot) || books.has_executed(slot);
        require!(is_kept, "authority {authority} attests a certificate that is not on its disk");
        Ok(())
    }

    /// A decision is final: who keeps the certificate of what is upheld has executed it.
    pub fn follows(&self, slot: Slot, is_upheld: bool) -> Result<(), Breach> {
        for (authority, books) in self.books.iter().enumerate() {
            let is_left = is_upheld && books.seen.contains(&slot) && !books.has_executed(slot);
            require!(!is_left, "authority {authority} keeps #{}, which is upheld, and does not execute it", slot.1);
        }
        Ok(())
    }

    /// All honest authorities are over a number.
    pub fn is_over(&self, slot: Slot) -> Result<(), Breach> {
        for (authority, books) in self.books.iter().enumerate() {
            let next = books.sent(slot.0);
            require!(next > slot.1, "authority {authority} is at #{next}, and #{} is decided", slot.1);
        }
        Ok(())
    }
}

impl Books {
    /// Whether it has executed a number.
    #[must_use]
    pub fn has_executed(&self, slot: Slot) -> bool {
        self.executed.contains(&slot)
    }
}
